"""Who comes first where there is no time for all."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest
from tests.unit.test_selection import FOUND

from bottleneck_doctor.documents.report import Setting
from bottleneck_doctor.examine.likeliest import in_turn, likely_workers
from bottleneck_doctor.examine.selection import Selection
from bottleneck_doctor.fixes._fix import Part
from bottleneck_doctor.measure.measurements import Measurements
from bottleneck_doctor.measure.schedule import probe
from bottleneck_doctor.measure.supply import Supply

AMP = "autocast=bfloat16"
WAITS = Supply(wait=0.7, epoch_start=0.0, step=1.0, batch=0.7, workers=0)
COMPUTES = Supply(wait=0.001, epoch_start=0.0, step=1.0, batch=0.01, workers=0)


@pytest.fixture
def selection() -> Selection:
    return Selection(Measurements(FOUND), frozenset(), frozenset())


def order(selection: Selection, supply: Supply | None, speeds: dict[str, float] | None = None) -> list[str]:
    probes = selection.probes(1, first_block=True)
    made = in_turn(probes, selection.candidates, speeds or {}, supply, FOUND)
    assert [each.priority for each in made] == list(range(len(made)))
    return [each.key for each in made]


def test_where_steps_wait_loading_comes_first_and_computing_elsewhere(selection: Selection) -> None:
    assert order(selection, WAITS)[0] == "num_workers=2"
    assert order(selection, COMPUTES)[0] == AMP
    # Nobody looked: as the catalogue has it.
    assert order(selection, None)[0] == "num_workers=2"


@pytest.mark.parametrize(("wait", "epoch_start"), [(0.3, 0.0), (0.01, 0.2)])
def test_where_steps_wait_for_a_part_of_the_time_computing_has_its_turn_too(
    selection: Selection, wait: float, epoch_start: float
) -> None:
    """Steps that wait for a quarter of the time can get 1.3 times as fast by loading, and more by computing."""
    partly = replace(WAITS, wait=wait, epoch_start=epoch_start, batch=1.6)
    made = order(selection, partly)
    assert made[:2] == ["num_workers=2", AMP]
    assert "num_workers" in made[2]
    assert set(made) == set(order(selection, WAITS))
    # What was tried has its place, whatever it acts on.
    made = order(selection, partly, {AMP: 1.01, "num_workers=2": 1.2})
    assert made[0] == "num_workers=2"
    assert order(selection, replace(WAITS, wait=0.6))[1] != AMP


def test_what_acts_on_little_of_the_time_comes_behind_what_may_bring_more() -> None:
    found = replace(FOUND, obstacles={**FOUND.obstacles, "fused_optimizer": ""})
    selection = Selection(Measurements(found), frozenset(), frozenset())
    fused = "fused_optimizer=True"
    assert order(selection, COMPUTES).index(fused) < order(selection, COMPUTES).index(AMP)
    shares = dict.fromkeys(get_args(Part), 0.0)
    selection.heed_phases({**shares, "forward": 0.4, "backward": 0.3, "optimizer": 0.3})
    assert order(selection, COMPUTES).index(fused) < order(selection, COMPUTES).index(AMP)
    selection.heed_phases({**shares, "forward": 0.5, "backward": 0.44, "optimizer": 0.06})
    assert order(selection, COMPUTES).index(AMP) < order(selection, COMPUTES).index(fused)


def test_ceilings_come_last_and_other_numbers_of_workers_behind_other_fixes(selection: Selection) -> None:
    keys = order(selection, WAITS)
    assert keys[-2:] == ["replay=True", "loader_only:"]
    assert keys.index("intra_op_threads=1,num_workers=2") < keys.index("num_workers=1") < keys.index(AMP)


@pytest.mark.parametrize(
    ("threads", "cpus", "others", "first"),
    [
        (2, 2, 1.0, "intra_op_threads=1"),
        (2, 2, 0.4, "num_workers=2"),  # Nobody else wants a CPU all the time.
        (2, 2, 0.0, "num_workers=2"),
        (1, 2, 1.0, "num_workers=2"),  # One thread has its CPU.
        (16, 16, 8.0, "intra_op_threads=8"),
        (16, 16, 15.0, "intra_op_threads=1"),
        (8, 16, 2.0, "num_workers=4"),  # There is room for all of them.
    ],
)
def test_beside_a_program_that_keeps_cores_busy_fewer_threads_come_first(
    threads: int, cpus: int, others: float, first: str
) -> None:
    found = replace(FOUND, threads=threads, usable_cpus=cpus)
    selection = Selection(Measurements(found), frozenset(), frozenset())
    probes = selection.probes(1, first_block=True)
    assert in_turn(probes, selection.candidates, {}, WAITS, found, others=others)[0].key == first


def test_on_a_gpu_computing_in_fewer_bits_comes_first_and_compiling_last() -> None:
    facts = {"float32_precision": {"levels": ["high"], "matrices": 4, "contradictory": False, "own": "highest"}}
    found = replace(FOUND, device="cuda:0", obstacles={**FOUND.obstacles, "compiled": ""}, facts=facts)
    selection = Selection(Measurements(found), frozenset(), frozenset())
    probes = selection.probes(1, first_block=True)
    keys = [each.key for each in in_turn(probes, selection.candidates, {}, COMPUTES, found)]
    assert keys[:2] == [AMP, "float32_precision=high"]
    assert keys.index("num_workers=2") < keys.index("compiled=True") < keys.index("replay=True")


def test_what_was_fastest_so_far_stays_first_and_what_has_lost_is_out(selection: Selection) -> None:
    speeds = {"num_workers=2": 1.05, AMP: 1.3, "num_workers=1": 0.9}
    assert order(selection, WAITS, speeds)[:2] == [AMP, "num_workers=2"]
    assert "num_workers=1" not in order(selection, WAITS, speeds)
    everything = dict.fromkeys((each.key for each in selection.probes(1, first_block=True)), 0.5)
    assert order(selection, WAITS, everything), "where all have lost, that is measured in more processes"


def test_what_brings_nothing_comes_behind_what_may(selection: Selection) -> None:
    both = probe("both", {"autocast": "bfloat16", "num_workers": 2})
    probes = [both, *selection.probes(1, first_block=True)]
    made = in_turn(probes, selection.candidates, {AMP: 1.3, "num_workers=2": 1.01}, COMPUTES, FOUND)
    keys = [each.key for each in made]
    assert keys[:2] == [AMP, "both"]
    assert keys.index("num_workers=1") < keys.index("num_workers=2") < keys.index("replay=True")


def test_a_combination_comes_behind_what_leads(selection: Selection) -> None:
    both = probe("both", {"autocast": "bfloat16", "num_workers": 2})
    probes = [both, *selection.probes(1, first_block=True)]
    made = in_turn(probes, selection.candidates, {AMP: 1.2, "num_workers=2": 1.1}, WAITS, FOUND)
    assert [each.key for each in made][:3] == [AMP, "both", "num_workers=2"]


CACHED = "cached_samples=True,num_workers=0"
TOGETHER = "autocast=bfloat16,num_workers=2"


@pytest.mark.parametrize(("speed", "place"), [(None, 1), (1.2, 1), (0.97, None)])
def test_a_part_of_what_leads_comes_right_behind_it(speed: float | None, place: int | None) -> None:
    """Keeping the samples in a list takes the workers away, too: that alone may be what helps."""
    found = replace(FOUND, num_workers=4)
    selection = Selection(Measurements(found), frozenset(), frozenset())
    cached: Setting = {"cached_samples": True, "num_workers": 0}
    next(each for each in selection.candidates if each.fix.id == "cached-samples").settings = [cached]
    speeds = {CACHED: 1.4, "num_workers=2": 1.25} | ({} if speed is None else {"num_workers=0": speed})
    probes = selection.probes(2, first_block=True)
    keys = [each.key for each in in_turn(probes, selection.candidates, speeds, WAITS, found)]
    assert keys[0] == CACHED
    assert (keys.index("num_workers=0") == 1) == (place == 1)


def test_the_parts_of_a_combination_are_known(selection: Selection) -> None:
    probes = [*selection.probes(2, first_block=True), probe(TOGETHER, {"autocast": "bfloat16", "num_workers": 2})]
    speeds = {TOGETHER: 1.5, AMP: 1.05, "num_workers=2": 1.2, "num_workers=1": 1.15}
    keys = [each.key for each in in_turn(probes, selection.candidates, speeds, WAITS, FOUND)]
    assert keys[:4] == [TOGETHER, "num_workers=2", "num_workers=1", AMP]


def test_computing_comes_first_once_a_setting_is_known_under_which_steps_hardly_wait(selection: Selection) -> None:
    probes = selection.probes(1, first_block=True)
    first = in_turn(probes, selection.candidates, {"num_workers=2": 1.3}, WAITS, FOUND, fed=True)
    assert [each.key for each in first][:2] == ["num_workers=2", AMP]


@pytest.mark.parametrize(("speed", "other_first"), [(2.0, True), (1.2, False)])
def test_other_fixes_come_before_what_refines_a_large_gain(
    selection: Selection, speed: float, other_first: bool
) -> None:
    probes = [each for each in selection.probes(1, first_block=True) if each.key != "num_workers=2"]
    keys = [each.key for each in in_turn(probes, selection.candidates, {"num_workers=2": speed}, WAITS, FOUND)]
    assert (keys.index(AMP) < keys.index("num_workers=1")) is other_first


@pytest.mark.parametrize(("speed", "late"), [(2.0, True), (1.2, False)])
def test_what_a_large_gain_left_untried_comes_before_what_is_slower_than_it(
    selection: Selection, speed: float, late: bool
) -> None:
    speeds = {"num_workers=2": speed, "num_workers=1": 1.15}
    keys = order(selection, WAITS, speeds)
    assert keys[0] == "num_workers=2"
    assert (keys.index(AMP) < keys.index("num_workers=1")) is late


@pytest.mark.parametrize(("leading", "refines_first"), [("num_workers=2", True), (AMP, False)])
def test_what_builds_on_a_setting_comes_before_what_is_known_only_if_that_setting_leads(
    selection: Selection, leading: str, refines_first: bool
) -> None:
    """Otherwise the runner-up would have no second process, without which nothing can be said of it."""
    selection.chosen_after = 1
    for candidate in selection.candidates:
        if candidate.with_workers:
            candidate.base = {"num_workers": 2}
    speeds = {AMP: 1.5, "num_workers=2": 1.4, "num_workers=1": 1.35} | {leading: 3.0}
    keys = order(selection, WAITS, speeds)
    assert keys[0] == leading
    assert (keys.index("num_workers=2,persistent_workers=True") < keys.index("num_workers=1")) is refines_first


@pytest.mark.parametrize(
    ("batch", "computes", "workers"),
    [(0.1, True, 1), (0.5, True, 2), (1.5, True, 2), (1.0, False, 4), (9.0, False, 4), (None, True, 2)],
)
def test_the_fewest_workers_that_keep_up(
    selection: Selection, batch: float | None, computes: bool, workers: int
) -> None:
    """Of 1, 2 and 4 on two CPUs; a step computes 0.3 s."""
    supply = replace(WAITS, batch=batch, computes=computes)
    assert likely_workers(selection.candidates, supply, FOUND) == workers


def test_no_number_where_none_is_offered() -> None:
    selection = Selection(Measurements(replace(FOUND, has_loader=False)), frozenset(), frozenset())
    assert likely_workers(selection.candidates, WAITS, FOUND) is None
