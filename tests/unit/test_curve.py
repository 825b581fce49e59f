"""Numbers of workers that can't be faster are not tried, and fixes that waiting hides are tried on top of workers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.unit.test_selection import FOUND, Machine, candidate, keys

from bottleneck_doctor.documents.labels import BASELINE
from bottleneck_doctor.documents.report import Setting
from bottleneck_doctor.examine import curve
from bottleneck_doctor.examine.selection import Selection
from bottleneck_doctor.measure.measurements import Measurements
from bottleneck_doctor.measure.schedule import probe
from bottleneck_doctor.runtime.wire.messages import Found

GPU = replace(FOUND, device="cuda:0", usable_cpus=16, threads=16, num_workers=4, prefetch_factor=2)


def selected(found: Found = GPU) -> Selection:
    return Selection(Measurements(found), frozenset(), frozenset())


def fed(make: float, compute: float, own: int) -> Callable[[Setting, str], float]:
    """How many times as fast as with the user's `own` workers, where a batch takes `make` seconds to be made."""

    def step(setting: Setting) -> float:
        workers = int(setting.get("num_workers", own))
        computing = compute / (2.0 if "autocast" in setting else 1.0)
        return make + computing if workers == 0 else max(computing, make / workers)

    return lambda setting, mode: step({}) / step(setting)


def measured(selection: Selection, make: float, compute: float, *counts: int | None) -> None:
    """One window with each number of workers; None is the user's own."""
    own = selection.found.num_workers
    for count in counts:
        speed = fed(make, compute, own)
        setting: Setting = {} if count is None else {"num_workers": count}
        workers = own if count is None else count
        step = max(compute, make / workers) if workers else make + compute
        machine = Machine(selection, speed, wait=1 - compute / step)
        machine.clock = 20.0 * len(selection.measured.windows)
        machine.measure(1, probe(BASELINE if count is None else f"num_workers={count}", setting))


def test_waiting_is_known_by_number_of_workers() -> None:
    selection = selected()
    measured(selection, 0.4, 0.06, None, 8, 2)
    assert curve.waits(selection.measured) == pytest.approx({4: 0.4, 8: 0.0, 2: 0.7}, abs=0.01)
    assert curve.speeds(selection.candidates, selection.measured) == pytest.approx(
        {4: 1.0, 2: 0.5, 8: 0.1 / 0.06}, abs=0.01
    )


def test_more_workers_are_not_tried_once_fewer_leave_no_waiting() -> None:
    selection = selected()
    measured(selection, 0.4, 0.06, None)
    assert curve.pointless([2, 8, 16, 32], selection.measured) == {2}, "only the user's own was measured"
    measured(selection, 0.4, 0.06, 16)
    assert curve.pointless([2, 8, 16, 32], selection.measured) == {2, 32}, "eight may do as well"
    measured(selection, 0.4, 0.06, 8)
    assert curve.pointless([2, 8, 16, 32], selection.measured) == {2, 16, 32}


def test_fewer_workers_may_be_faster_where_they_take_each_others_cpus() -> None:
    selection = selected(replace(GPU, usable_cpus=4))
    measured(selection, 0.4, 0.06, None)
    assert not curve.pointless([1, 2, 8], selection.measured)


def test_fewer_workers_may_be_faster_where_nothing_waits() -> None:
    """They leave the CPUs to what computes."""
    selection = selected()
    measured(selection, 0.1, 0.06, None)
    assert curve.pointless([1, 2, 8], selection.measured) == {8}


def test_no_workers_at_all_stay_in_question() -> None:
    selection = selected()
    measured(selection, 0.4, 0.06, None, 8)
    assert 0 not in curve.pointless([0, 2], selection.measured)


def test_what_was_measured_stays_on_the_curve() -> None:
    selection = selected()
    measured(selection, 0.4, 0.06, None, 32, 8)
    selection.heed_waits()
    assert candidate(selection, "workers").settings == [{"num_workers": 8}, {"num_workers": 32}]
    asked = Selection(Measurements(GPU), frozenset({"workers"}), frozenset())
    measured(asked, 0.4, 0.06, None, 32, 8)
    asked.heed_waits()
    assert len(candidate(asked, "workers").settings) > 2, "whoever asks for the curve gets it"


def test_faster_computing_is_tried_on_top_of_the_workers_that_it_waits_for() -> None:
    selection = selected()
    measured(selection, 0.4, 0.06, None, 8)
    selection.choose(1)
    assert candidate(selection, "amp-bf16").base == {"num_workers": 8}
    assert candidate(selection, "pinned-memory").base == {}
    assert "autocast=bfloat16,num_workers=8" in keys(selection.probes(2, first_block=True))
    assert "autocast=bfloat16" not in keys(selection.probes(2, first_block=True))


@pytest.mark.parametrize(
    ("make", "compute", "own"),
    [
        (0.1, 0.06, 4),  # No step waits.
        (4.0, 0.06, 4),  # With the best number of workers, steps wait as well.
        (0.4, 0.06, 0),  # The training process makes its batches: whatever is saved is seen.
    ],
)
def test_faster_computing_stands_by_itself_where_waiting_does_not_hide_it(
    make: float, compute: float, own: int
) -> None:
    selection = selected(replace(GPU, num_workers=own))
    measured(selection, make, compute, None, 8)
    selection.choose(1)
    assert candidate(selection, "amp-bf16").base == {}


def test_faster_computing_that_showed_by_itself_is_left_where_it_is() -> None:
    """Where workers and training share CPUs, computing less leaves more of these to the workers."""
    selection = selected()
    measured(selection, 0.4, 0.06, None, 8)
    machine = Machine(selection, lambda setting, mode: 1.2)
    machine.clock = 60.0
    machine.measure(1, probe("autocast=bfloat16", {"autocast": "bfloat16"}))
    selection.choose(1)
    assert candidate(selection, "amp-bf16").base == {}
    assert candidate(selection, "amp-fp16").base == {"num_workers": 8}
