"""Rules about the machine that have more than one side."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.diagnosable import (
    BY_ID,
    LEAKING,
    MB,
    finding,
    healthy,
    use,
    window,
)

from bottleneck_doctor.diagnose import diagnose
from bottleneck_doctor.documents.report import Environment, Span

ENVIRONMENT = Environment(
    python="3.12.7",
    torch="2.9.1",
    platform="Linux",
    cpu="",
    usable_cpus=4,
    total_cpus=16,
    memory_bytes=16 << 30,
    devices=[],
    variables={},
    fingerprint="",
)


def test_a_cpu_limit_is_said_in_periods_since_nobody_knows_how_long_each_stood() -> None:
    found = finding("machine-noise", healthy(utilization=use(throttled_share=0.3)))
    assert found is not None
    assert found.sentence.startswith("In 30 % of its periods, the CPU limit of the container")
    assert "of the time" not in found.sentence


def test_memory_that_levels_off_is_not_growth() -> None:
    filling = [sum(600.0 / 4**each for each in range(count)) * MB for count in range(1, 8)]
    windows = [window(index) for index in range(7)]
    assert finding("memory-growth", healthy(windows=windows, utilization=use(resident=filling))) is None


@pytest.mark.parametrize(
    "taken_once", [[782.5, 784.3, 784.6, 856.7, 867.1], [777.3, 853.3, 865.1], [500.0, 501.0, 700.0, 701.0]]
)
def test_what_takes_memory_once_is_not_growth(taken_once: list[float]) -> None:
    windows = [window(index) for index in range(len(taken_once))]
    resident = [each * MB for each in taken_once]
    assert finding("memory-growth", healthy(windows=windows, utilization=use(resident=resident))) is None


def test_memory_growth_is_not_judged_on_few_windows() -> None:
    made = diagnose(healthy(utilization=use(resident=LEAKING[:2])), [BY_ID["memory-growth"]])
    assert [each.id for each in made.not_judged] == ["memory-growth"]


@pytest.mark.parametrize(("steps", "grows"), [(5, False), (60, True)])
def test_the_first_steps_of_a_process_say_nothing_of_growth(steps: int, grows: bool) -> None:
    """Steps of seconds: three windows hold a dozen of them, in which a process takes what it keeps from then on."""
    windows = [replace(window(index), steps=steps) for index in range(len(LEAKING))]
    made = diagnose(healthy(windows=windows, utilization=use(resident=LEAKING)), [BY_ID["memory-growth"]])
    assert [each.id for each in made.findings] == (["memory-growth"] if grows else [])
    assert [each.id for each in made.not_judged] == ([] if grows else ["memory-growth"])


def test_windows_of_other_settings_and_modes_say_nothing_of_the_training_as_written() -> None:
    other = [window(0, setting={"num_workers": 4}), window(1, mode="lines"), window(2, mode="phases"), window(3)]
    made = diagnose(healthy(windows=other, utilization=use(resident=LEAKING)), [BY_ID["memory-growth"]])
    assert [each.id for each in made.not_judged] == ["memory-growth"]


def test_memory_is_not_called_free_where_only_its_size_is_known() -> None:
    growing = healthy(utilization=use(resident=LEAKING, memory_available_bytes=None))
    free = finding("memory-growth", healthy(utilization=use(resident=LEAKING)))
    assert free is not None
    assert "the 8 GiB that are free will last" in free.sentence
    whole = finding("memory-growth", replace(growing, environment=ENVIRONMENT))
    assert whole is not None
    assert "all 16 GiB of the machine will last" in whole.sentence
    assert "free" not in whole.sentence


@pytest.mark.parametrize(("within", "grows"), [(15.0, True), (5.0, True), (2.0, False), (-20.0, False)])
def test_memory_grows_within_windows_too(within: float, grows: bool) -> None:
    """What other settings take between windows as written may stay. `within`: MiB that a window of a second adds."""
    sampled = use(resident=LEAKING)
    times: list[float] = []
    sizes: list[float | None] = []
    spans: list[Span] = []
    for number, size in enumerate(LEAKING):
        spans.append(Span(start=10.0 * number, end=10.0 * number + 1.0, label="baseline", session=1))
        for part in range(6):
            times.append(10.0 * number + 0.2 * part)
            sizes.append(size + within * MB * 0.2 * part)
    # From one window to the next, 300 MiB in 20 seconds.
    known = replace(sampled, times=times, series={"main_rss_bytes": sizes}, spans=spans)
    assert (finding("memory-growth", healthy(utilization=known)) is not None) == grows
    short = replace(known, times=times[::3], series={"main_rss_bytes": sizes[::3]})
    assert finding("memory-growth", healthy(utilization=short)) is not None, "too few samples to tell"
