"""What a block holds, on a machine that is made up: the likeliest first, a few at a time, and a large gain confirmed
before all else is tried."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from tests.unit.made_up_machine import Examined, Happened, Machine
from tests.unit.test_selection import FOUND

from bottleneck_doctor.examine import fitting
from bottleneck_doctor.measure import schedule
from bottleneck_doctor.measure.costs import Costs

ABLE = ("autocast", "channels_last", "fused_optimizer", "merged_groups", "compiled", "late_values", "trim_padding")
EXPLAINS = ("phases", "sampled", "trace", "lines")


def windows(examined: Examined, session: int) -> list[Happened]:
    return [each for each in examined.machine.happened if each.session == session and each.name not in EXPLAINS]


def groups(names: list[str]) -> list[list[str]]:
    """The settings between windows as written."""
    places = [place for place, name in enumerate(names) if name == "baseline"]
    return [names[one + 1 : other] for one, other in pairwise(places)]


def computing(**details: Any) -> Machine:
    """Steps that hardly wait for data, and fixes of computing that can be applied."""
    return Machine(**{"step": 0.12, "start": 14.0, "wait": 0.03, "device": "cuda:0", "able": ABLE, **details})


def test_settings_are_tried_a_few_at_a_time() -> None:
    examined = Examined(computing())
    names = [each.name for each in windows(examined, 1)]
    tried = groups(names)
    assert all(len(group) <= schedule.BASELINE_EVERY for group in tried)
    # Where little waits for data, the first that is tried computes less or better.
    first = next(name for name in names if name not in ("baseline", "replay", "loader_only"))
    assert not first.startswith("num_workers")


def test_what_takes_long_is_alone_between_two_windows_as_written() -> None:
    examined = Examined(computing(step=2.0, start=5.0))
    assert all(len(group) <= 1 for group in groups([each.name for each in windows(examined, 1)]))


@pytest.mark.parametrize("start", [3.0, 14.0, 30.0])
def test_a_large_gain_is_confirmed_before_all_else_is_tried(start: float) -> None:
    examined = Examined(computing(start=start, speeds={"autocast=bfloat16": 2.5}))
    first = windows(examined, 1)
    tried = [each for each in first if each.name not in ("baseline", "replay", "loader_only")]
    group = fitting.GROUP_SECONDS + max(each.ended - each.began for each in tried)
    assert tried[-1].ended - tried[0].began <= max(fitting.EXPLORED, start) + group
    assert "compiled=True" not in [each.name for each in first]
    second = [each.name for each in windows(examined, 2)]
    assert "autocast=bfloat16" in second[:4]
    # What the first process left is tried in others.
    later = {each.name for each in examined.machine.happened if each.session > 1}
    assert "compiled=True" in later
    assert examined.result.verdict is not None
    assert examined.result.verdict.fix == "amp-bf16"


@pytest.mark.parametrize("asked", [{"sessions": 1}, {"budget": 105.0, "explain": False}])
def test_the_only_process_tries_everything(asked: dict[str, Any]) -> None:
    examined = Examined(computing(speeds={"autocast=bfloat16": 2.5}, start=60.0, step=0.05), **asked)
    assert {each.session for each in examined.machine.happened} <= {1, 2}
    measured = {each.name for each in windows(examined, 1)}
    assert {"autocast=bfloat16", "fused_optimizer=True", "merged_groups=True", "num_workers=2"} <= measured


def test_without_a_large_gain_everything_is_tried_in_one_process() -> None:
    examined = Examined(computing(speeds={"autocast=bfloat16": 1.2}))
    first = {each.name for each in windows(examined, 1)}
    assert {"autocast=bfloat16", "fused_optimizer=True", "merged_groups=True", "compiled=True"} <= first


def test_what_is_tried_late_joins_the_rest() -> None:
    """Compiling takes long to try, so the second process tries it. Later ones measure it on top of autocast."""
    speeds = {"autocast=bfloat16": 2.5, "compiled=True": 1.4, "autocast=bfloat16,compiled=True": 3.5}
    examined = Examined(computing(speeds=speeds))
    combination = examined.result.combination
    assert combination is not None
    assert combination.setting == {"autocast": "bfloat16", "compiled": True}
    assert combination.speedup.estimate == pytest.approx(3.5, rel=0.02)
    seen = {each.session for each in examined.machine.happened if each.name == "autocast=bfloat16,compiled=True"}
    assert min(seen) > 2
    assert len(seen) >= 2


def test_a_ceiling_that_was_not_measured_keeps_nothing_open() -> None:
    """Loading alone under the best number of workers is of interest, and no reason to go on."""
    speeds = {"num_workers=2": 1.9, "num_workers=4": 1.6, "num_workers=1": 1.5}
    examined = Examined(Machine(step=0.1, start=4.0, speeds=speeds))
    assert examined.result.method.sure_after_seconds is not None


def test_whoever_asks_for_processes_gets_everything_measured_in_each() -> None:
    speeds = {"autocast=bfloat16": 2.5}
    machine = computing(speeds=speeds, step=0.02, start=2.0)
    examined = Examined(machine, sessions=4)
    sessions = {each.session for each in machine.happened if each.name == "fused_optimizer=True"}
    assert len(sessions) >= schedule.LEAST_SESSIONS
    assert examined.result.method.sure_after_seconds is None


class Together(dict[str, float]):
    """What settings are worth together: the product of what each change brings."""

    def get(self, key: str, default: Any = None) -> float:
        return math.prod(super(Together, self).get(each, 1.0) for each in key.split(","))


@pytest.mark.parametrize(
    ("load", "workers", "speed"),
    [
        (0.3, 8, 2.5),  # Four workers are enough for the model as written, and too few for one that is faster.
        (0.5, 16, 3.1),  # They are too few for both.
        (0.1, None, 2.5),  # They are enough for both.
    ],
)
def test_more_workers_are_tried_on_top_of_what_makes_steps_wait(
    load: float, workers: int | None, speed: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.unit.made_up_machine.FOUND", replace(FOUND, usable_cpus=16))
    machine = computing(step=0.1, start=8.0, load=load, workers=4, cpus=16, able=("autocast", "merged_groups"))
    machine.speeds = Together({"autocast=bfloat16": 2.5})
    examined = Examined(machine)
    combination = examined.result.combination
    if workers is None:
        assert combination is None
        assert examined.result.verdict.fix == "amp-bf16"
    else:
        assert combination is not None
        assert combination.setting == {"autocast": "bfloat16", "num_workers": workers}
        assert combination.speedup.estimate == pytest.approx(speed, rel=0.03)
        assert "num_workers" in examined.result.verdict.sentence


@pytest.mark.parametrize(
    ("noise", "workers", "wait", "longer"),
    [(0.2, 4, 0.4, True), (0.01, 4, 0.4, False), (0.2, 4, 0.01, False), (0.2, 0, 0.4, False)],
)
def test_windows_become_longer_where_batches_come_in_bursts(
    noise: float, workers: int, wait: float, longer: bool
) -> None:
    examined = Examined(computing(step=0.05, start=5.0, noise=noise, workers=workers, wait=wait))
    steps = [window.steps for window in examined.result.windows if window.label == "baseline"]
    assert (max(steps[-3:]) > 2 * steps[0]) is longer
    assert 0.05 * max(steps) <= 1.5 * fitting.LONGEST_WINDOW


def test_what_is_timed_is_as_long_as_its_lead_in() -> None:
    """Up to twice as long as windows are otherwise: with 32 workers, 96 steps fill the queue."""
    found = replace(FOUND, device="cuda:0", usable_cpus=16, num_workers=8, prefetch_factor=2)
    costs = Costs(schedule.shape_of(found), 0.08, 0.8, brief=True)
    as_written = costs.size(schedule.probe("baseline", {}), 0.8)
    assert (as_written.lead_in, as_written.steps) == (24, 24)
    many = costs.size(schedule.probe("num_workers=32", {"num_workers": 32}), 0.8)
    assert (many.lead_in, many.steps) == (96, 32)
    none = costs.size(schedule.probe("num_workers=0", {"num_workers": 0}), 0.8)
    assert none.steps == 10


def test_a_process_ends_once_it_has_told_enough_of_what_leads_by_far() -> None:
    """Another one tells more. What is still to be tried is tried before."""
    examined = Examined(Machine(step=0.02, start=2.0, speeds={"num_workers=2": 3.0}, luck=0.2))
    later = range(3, max(each.session for each in examined.machine.happened))
    ends = [windows(examined, session) for session in later if windows(examined, session)]
    assert len(ends) >= 3
    for one in ends[:-1]:
        held = [each for each in one if each.name == "num_workers=2"]
        assert fitting.OFTEN_ENOUGH <= len(held) <= fitting.OFTEN_ENOUGH + 2
