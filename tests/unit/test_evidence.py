"""From windows to ratios, with numbers whose answer is known exactly."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean, stdev
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bottleneck_doctor.documents.labels import BASELINE, CONTROL
from bottleneck_doctor.documents.report import Setting, Surroundings, Window
from bottleneck_doctor.measure import pairing
from bottleneck_doctor.statistics import speedups

FAST: Setting = {"num_workers": 2}


def window(label: str = BASELINE, *, seconds: float = 1.0, at: float = 0.0, **others: Any) -> Window:
    """A window of ten steps of four samples whose middle lies at `at`."""
    values: dict[str, Any] = {
        "session": 1,
        "rank": 0,
        "block": 1,
        "setting": {} if label == BASELINE else FAST,
        "mode": "timed",
        "steps": 10,
        "samples": 40.0,
        "seconds": seconds,
        "lead_in_steps": 2,
        "lead_in_seconds": 0.2,
        "wait_seconds": 0.0,
        "turn_seconds": None,
        "whole_epochs": 0,
        "queue_change": 0,
        "ready_share": None,
        "effect": {},
        "started": at - seconds / 2 - 0.2,
        "label": label,
    }
    return Window(**{**values, **others})


def ratios(windows: list[Window], key: str = "fast", epoch_batches: int | None = None) -> list[float]:
    return [math.exp(pair.promised) for pair in pairing.pairs(windows, epoch_batches) if pair.key == key]


def test_ratio_of_a_window_to_the_baseline_around_it() -> None:
    assert ratios([window(at=0), window("fast", seconds=0.5, at=5), window(at=10)]) == pytest.approx([2.0])


@given(
    drift=st.floats(0.5, 2.0),
    speedup=st.floats(0.2, 5.0),
    moments=st.lists(st.floats(0.0, 100.0), min_size=1, max_size=6),
)
def test_steady_drift_cancels_exactly(drift: float, speedup: float, moments: list[float]) -> None:
    """A machine that gets slower at a constant rate changes no ratio."""

    def seconds(at: float) -> float:
        return float(0.01 * drift ** (at / 100))

    windows = [window(seconds=seconds(at), at=at) for at in (0.0, 40.0, 100.0)]
    windows += [window("fast", seconds=seconds(at) / speedup, at=at) for at in moments]
    assert ratios(windows) == pytest.approx([speedup] * len(moments), rel=1e-9)


def beside(wanted: float | None, cpus: float | None = 2.0) -> Surroundings:
    """A machine on which others want so many CPUs."""
    return Surroundings(cpus=cpus, others_wanted=wanted)


@pytest.mark.parametrize(
    ("loads", "always"),
    [
        ((1.0, 0.9, 1.4), 0.9),
        ((2.0, 0.0, 2.0), 0.0),
        ((None, 1.0, 1.1), 1.0),
        ((1.0,), 0.0),
        ((1.0, None), 0.0),
        ((), 0.0),
    ],
)
def test_what_others_want_all_the_time(loads: Sequence[float | None], always: float) -> None:
    """One window alone may have met a burst."""
    seen = [window(around=beside(each)) for each in loads]
    failed = window(status="failed", around=beside(0.0))
    assert pairing.others_always([*seen, failed, window()]) == always


BUSY = (0.0, 2.0, 0.0, 2.0, 0.0, 2.0)
"""What others want of two CPUs beside windows of the training as written: all of them, half of the time."""


def in_bursts(**others: Any) -> list[Window]:
    """The training as written, which takes twice as long while others want both CPUs."""
    return [
        window(seconds=1.0 + wanted / 2, at=10.0 * number, around=beside(wanted), **others)
        for number, wanted in enumerate(BUSY)
    ]


@pytest.mark.parametrize("wanted", [0.0, 1.0, 2.0])
@pytest.mark.parametrize("at", [5.0, 15.0, 31.0])
def test_a_window_is_held_against_the_baseline_under_its_own_load(wanted: float, at: float) -> None:
    fast = window("fast", seconds=(1.0 + wanted / 2) / 1.5, at=at, around=beside(wanted))
    assert ratios([*in_bursts(), fast]) == pytest.approx([1.5], rel=0.01)


def test_what_a_setting_shows_beside_others_is_its_own() -> None:
    """It is twice as fast alone, and no faster in bursts: that is not made up for."""
    fast = [
        window("fast", seconds=0.5, at=5.0, around=beside(0.0)),
        window("fast", seconds=2.0, at=25.0, around=beside(2.0)),
    ]
    assert ratios([*in_bursts(), *fast]) == pytest.approx([2.0, 1.0], rel=0.01)


def test_loads_that_the_baseline_never_met_are_taken_for_the_highest_that_it_met() -> None:
    fast = window("fast", seconds=1.0, at=5.0, around=beside(10.0))
    assert ratios([*in_bursts(), fast]) == pytest.approx([2.0], rel=0.01)


def test_controls_are_adjusted_by_a_slope_that_they_have_no_part_in() -> None:
    assert ratios(in_bursts(), CONTROL) == pytest.approx([1.0] * 4, rel=0.01)
    windows = in_bursts()
    windows[2] = replace(windows[2], seconds=1.3)
    assert ratios(windows, CONTROL)[1] == pytest.approx(1 / 1.3, rel=0.01)


@pytest.mark.parametrize("unknown", [None, beside(None), beside(2.0, None)])
def test_nothing_is_adjusted_where_a_load_is_not_known(unknown: Surroundings | None) -> None:
    fast = window("fast", seconds=1.0, at=5.0, around=unknown)
    assert ratios([*in_bursts(), fast]) == pytest.approx([2**0.5], rel=0.01)
    known = window("fast", seconds=1.0, at=5.0, around=beside(2.0))
    rest = [window(seconds=1.0, at=-10.0, around=unknown), *in_bursts()]
    assert ratios([*rest, known]) == pytest.approx([2**0.5], rel=0.01)


SPUN = 20.0
"""Threads that spin for one another, beside a program that keeps a core busy, make a step take this many times as
long."""


def calm_but_for_one(session: int, *, wild: bool) -> list[Window]:
    """Four windows of the training as written, of which the second is beside another program if `wild`."""
    loads = (0.02, 2.0 if wild else 0.05, 0.04, 0.03)
    return [
        window(
            seconds=SPUN if load > 1 else 1.0 + 0.01 * number, at=30.0 * number, session=session, around=beside(load)
        )
        for number, load in enumerate(loads)
    ]


def test_a_calm_window_is_held_against_the_calm_ones_of_its_process() -> None:
    windows = [*calm_but_for_one(1, wild=True), *calm_but_for_one(2, wild=False), *calm_but_for_one(3, wild=False)]
    fast = [window("fast", seconds=0.7, at=at, around=beside(0.05)) for at in (15.0, 45.0, 75.0)]
    assert ratios([*windows, *fast]) == pytest.approx([1 / 0.7] * 3, rel=0.03)
    assert {pair.session for pair in pairing.pairs([*windows, *fast], None) if pair.key == "fast"} == {1}


def test_what_one_wild_window_costs_is_not_what_others_are_worth() -> None:
    """A setting that was disturbed itself is not thought to be many times as fast for it."""
    windows = [*calm_but_for_one(1, wild=True), *calm_but_for_one(2, wild=False), *calm_but_for_one(3, wild=False)]
    disturbed = window("fast", seconds=1.0, at=45.0, session=2, around=beside(1.6))
    assert ratios([*windows, disturbed]) == pytest.approx([1.0], rel=0.05)


def test_a_pair_is_as_disturbed_as_its_worst_window() -> None:
    windows = [each for number in (1, 2, 3) for each in calm_but_for_one(number, wild=False)]
    fast = [window("fast", seconds=0.7, at=45.0, session=number, around=beside(0.05)) for number in (1, 2)]
    disturbed = window("fast", seconds=0.7, at=45.0, session=3, around=beside(0.9))
    made = [*windows, *fast, disturbed]
    assert [each.session for each in pairing.undisturbed(pairing.pairs(made, None), made) if each.key == "fast"] == [
        1,
        2,
    ]


def of_lengths(costs: Sequence[float], label: str = BASELINE, **others: Any) -> list[Window]:
    """Windows with so many elements a sample; a step takes a fixed part, and one that grows with them."""
    speed = 1.0 if label == BASELINE else 1.5
    return [
        window(label, seconds=(0.2 + length / 100) / speed, at=10.0 * number, elements=round(40 * length), **others)
        for number, length in enumerate(costs)
    ]


LENGTHS = (60.0, 110.0, 75.0, 90.0, 130.0, 80.0)


@pytest.mark.parametrize("length", [70.0, 100.0, 125.0])
def test_a_window_is_held_against_the_baseline_with_batches_of_its_own_size(length: float) -> None:
    [fast] = of_lengths([length], "fast")
    assert ratios([*of_lengths(LENGTHS), replace(fast, started=14.0)]) == pytest.approx([1.5], rel=0.015)
    # Beside others, too, each is told apart.
    busy = [
        replace(each, seconds=each.seconds * (1 + wanted / 2), around=beside(wanted))
        for each, wanted in zip([*of_lengths(LENGTHS), replace(fast, started=14.0)], [*BUSY, 2.0], strict=True)
    ]
    assert ratios(busy) == pytest.approx([1.5], rel=0.04)


def test_batches_that_a_setting_makes_smaller_are_what_it_is_worth() -> None:
    for setting, expected in ((FAST, 1.0), ({"trimmed_padding": True}, 2.0), ({"batch_size": 16}, 2.0)):
        short = window("fast", seconds=0.5, at=15.0, elements=40 * 50, setting=setting)
        rest = [window(seconds=length / 100, at=at, elements=round(40 * length)) for at, length in AROUND]
        assert ratios([*rest, short]) == pytest.approx([expected], rel=0.1), setting


def test_a_setting_that_makes_batches_smaller_is_held_against_batches_of_the_usual_size() -> None:
    """Which batches the windows beside it happened to have says nothing of it."""
    usual = sum(LENGTHS) / len(LENGTHS)
    for at in (4.0, 14.0, 34.0):
        [cut] = of_lengths([usual / 2], "fast", setting={"trimmed_padding": True})
        expected = 1.5 * (0.2 + usual / 100) / (0.2 + usual / 200)
        assert ratios([*of_lengths(LENGTHS), replace(cut, started=at)]) == pytest.approx([expected], rel=0.015)


AROUND = ((0.0, 50.0), (10.0, 100.0), (20.0, 100.0), (30.0, 150.0), (40.0, 70.0), (50.0, 120.0))


@pytest.mark.parametrize("unknown", [None, 0])
def test_nothing_is_adjusted_where_a_size_is_not_known(unknown: int | None) -> None:
    rest = of_lengths(LENGTHS)
    plain = ratios([*[replace(each, elements=None) for each in rest], window("fast", at=14.0)])
    assert ratios([*rest, window("fast", at=14.0, elements=unknown)]) == pytest.approx(plain)
    # A window as written whose size is not known has no part in the slope, and none of its neighbours is adjusted.
    lost = [replace(rest[0], elements=unknown), *rest[1:]]
    assert ratios([*lost, window("fast", at=14.0, elements=4000)]) == pytest.approx(plain)


def test_sizes_that_come_by_chance_favour_no_setting() -> None:
    """A step's cost grows with its batches, under a setting less than as written: over many examinations, what is
    promised is what the setting is worth on average, and it is much surer than without the sizes."""
    generator = random.Random(11)
    promised: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(150):
        made = []
        for session in (1, 2, 3):
            luck = math.exp(generator.gauss(0.0, 0.03))
            for number in range(9):
                length = generator.gauss(100.0, 15.0)
                label = "fast" if number % 2 else BASELINE
                cost = (20 + length) / 120 if label == BASELINE else (60 + length) / 160 / 1.3
                cost *= luck * math.exp(generator.gauss(0.0, 0.01))
                made.append(window(label, seconds=cost, at=10.0 * number, session=session, elements=round(40 * length)))
        for known in promised:
            seen = made if known else [replace(each, elements=None) for each in made]
            promised[known].append(fmean(map(math.log, ratios(seen))))
    assert fmean(promised[True]) == pytest.approx(math.log(1.3), abs=0.006)
    assert stdev(promised[True]) < stdev(promised[False]) / 2


def by_session(loads: dict[int, float], ratio: dict[int, float]) -> list[Window]:
    """Processes in which others want so many CPUs, and a setting is so many times as fast."""
    made: list[Window] = []
    for session, wanted in loads.items():
        seen: dict[str, Any] = {"session": session, "around": beside(wanted)}
        made += [window(at=0, **seen), window("fast", seconds=1 / ratio[session], at=5, **seen), window(at=10, **seen)]
    return made


def kept(windows: list[Window]) -> set[int]:
    return {pair.session for pair in pairing.undisturbed(pairing.pairs(windows, None), windows)}


def test_what_a_passing_neighbour_disturbed_is_left_out_where_the_rest_is_enough() -> None:
    ratio = dict.fromkeys(range(1, 7), 1.5)
    assert kept(by_session({1: 1.0, 2: 0, 3: 0, 4: 0}, ratio)) == {2, 3, 4}
    assert kept(by_session({1: 1.0, 2: 0, 3: 0}, ratio)) == {2, 3}
    assert kept(by_session({1: 1.0, 2: 0}, ratio)) == {1, 2}, "too few would be left"
    assert kept(by_session({1: 1, 2: 1, 3: 1, 4: 0, 5: 0, 6: 0}, ratio)) == set(range(1, 7)), "there half of the time"
    assert kept(by_session(dict.fromkeys(range(1, 5), 1.0), ratio)) == {1, 2, 3, 4}, "one that stays"
    assert kept(by_session({1: 0.2, 2: 0, 3: 0, 4: 0}, ratio)) == {1, 2, 3, 4}, "hardly a load"


@given(ratios=st.lists(st.floats(0.2, 5.0), min_size=5, max_size=5))
def test_only_the_load_decides_what_is_left_out(ratios: list[float]) -> None:
    assert kept(by_session({1: 0, 2: 0, 3: 2.0, 4: 0, 5: 0}, dict(enumerate(ratios, 1)))) == {1, 2, 4, 5}


def test_what_is_not_known_to_be_disturbed_is_kept() -> None:
    windows = by_session({1: 1.0, 2: 0, 3: 0, 4: 0}, dict.fromkeys(range(1, 5), 1.5))
    assert kept([replace(each, around=None) if each.session == 1 else each for each in windows]) == {1, 2, 3, 4}


def test_outside_its_baselines_a_window_takes_the_nearest() -> None:
    windows = [window("fast", at=0), window(seconds=2.0, at=10), window(seconds=4.0, at=20), window("fast", at=30)]
    assert ratios(windows) == pytest.approx([2.0, 4.0])


def test_sessions_are_not_mixed() -> None:
    slow_process = [window(seconds=3.0, at=0, session=2), window("fast", seconds=1.0, at=1, session=2)]
    alone = [window("fast", at=0, session=3)]
    windows = [window(at=0), window("fast", seconds=0.5, at=1), *slow_process, *alone]
    assert ratios(windows) == pytest.approx([2.0, 3.0])
    assert [pair.session for pair in pairing.pairs(windows, None)] == [1, 2]


def test_only_windows_that_ran_and_took_effect_count() -> None:
    good = [window(at=0), window("fast", seconds=0.5, at=1), window(at=2)]
    bad = [
        window("fast", at=1, status="failed", steps=0, samples=0.0, seconds=0.0),
        window("fast", seconds=0.1, at=1, status="no_effect"),
        window("burn-in", seconds=9.0, at=1, status="discarded"),
        window(seconds=9.0, at=1, status="discarded"),
        window("fast", at=1, steps=0, samples=0.0),
    ]
    assert ratios(good + bad) == pytest.approx([2.0])
    assert pairing.pairs(bad, 10) == []
    assert pairing.samples_per_step(good + bad) == 4.0


# -- the control ---------------------------------------------------------------------------------------------------


def test_baseline_between_two_others_is_the_control() -> None:
    windows = [window(seconds=cost, at=at) for at, cost in ((0, 1.0), (10, 1.1), (20, 1.21), (30, 1.0))]
    control = ratios(windows, CONTROL)
    # The second lies on the line between its neighbours; the third is above it.
    assert control == pytest.approx([1.0, math.sqrt(1.1 * 1.0) / 1.21])
    assert ratios(windows[:2], CONTROL) == []


# -- queues and ragged batches -------------------------------------------------------------------------------------


def test_batches_made_before_the_window_do_not_count() -> None:
    """Of 100 batches 20 came from the queue: what can be kept up is 80 in the same time."""
    drained = window("fast", steps=100, samples=400.0, seconds=1.0, queue_change=-20)
    assert pairing.step_cost(drained, 4.0) == pytest.approx(1.0 / 80)
    # A queue that fills, or moves within what is counted as noise, changes nothing.
    for change in (20, 2, -1, -2):
        assert pairing.step_cost(replace(drained, queue_change=change), 4.0) == pytest.approx(1.0 / 100)
    # What is taken from a loader alone is never used up by a model.
    assert pairing.step_cost(replace(drained, mode="loader_only"), 4.0) == pytest.approx(1.0 / 100)


def test_ragged_batches_are_compared_by_sample() -> None:
    """Twice the samples in the same steps and twice the time: no faster, no slower."""
    windows = [window(at=0), window("fast", seconds=2.0, at=5, samples=80.0), window(at=10)]
    assert ratios(windows) == pytest.approx([1.0])
    assert pairing.samples_per_step(windows) == pytest.approx(160 / 30)


# -- epochs --------------------------------------------------------------------------------------------------------


def test_promise_weighs_the_start_of_an_epoch_by_its_length() -> None:
    """Steps twice as fast, but 2 s to start the workers where the baseline starts in nothing."""
    windows = [
        window(at=0, turn_seconds=0.0),
        window("fast", seconds=0.5, at=5, turn_seconds=2.0),
        window(at=10, turn_seconds=0.0),
    ]
    # A step takes 0.1 s before and 0.05 s after.
    assert ratios(windows, epoch_batches=25) == pytest.approx([25 * 0.1 / (25 * 0.05 + 2.0)])
    assert ratios(windows, epoch_batches=4000) == pytest.approx([4000 * 0.1 / (4000 * 0.05 + 2.0)])
    assert ratios(windows, epoch_batches=None) == pytest.approx([2.0])
    steady = [pair.steady for pair in pairing.pairs(windows, 25) if pair.key == "fast"]
    assert steady == pytest.approx([math.log(2.0)])


def test_both_sides_pay_for_their_own_start() -> None:
    windows = [
        window(at=0, turn_seconds=1.0),
        window("fast", seconds=1.0, at=5, turn_seconds=0.25),
        window(at=10, turn_seconds=3.0),
    ]
    assert ratios(windows, epoch_batches=10) == pytest.approx([(10 * 0.1 + 2.0) / (10 * 0.1 + 0.25)])


def test_start_is_taken_from_windows_with_the_same_loader() -> None:
    """Autocast changes no loader: its epochs start as the baseline's do, whatever the luck of its own window."""
    windows = [
        window(at=0, turn_seconds=1.0),
        window("autocast", seconds=0.5, at=5, setting={"autocast": "bfloat16"}, turn_seconds=None),
        window(at=10, turn_seconds=1.0),
    ]
    assert ratios(windows, "autocast", 10) == pytest.approx([(1.0 + 1.0) / (0.5 + 1.0)])
    # The starts of another session stand in where this one has none.
    other = [window(at=0, session=2), window("fast", at=1, seconds=1.0, session=2)]
    seen = [window(at=0, turn_seconds=0.0), window("fast", at=1, turn_seconds=1.0)]
    assert ratios(seen + other, epoch_batches=10) == pytest.approx([1.0 / 2.0, 1.0 / 2.0])


def test_windows_of_whole_epochs_hold_their_starts_already() -> None:
    windows = [
        window(at=0, whole_epochs=2, turn_seconds=9.0),
        window("fast", seconds=0.5, at=5, whole_epochs=2, turn_seconds=0.0),
        window(at=10, whole_epochs=2),
    ]
    assert ratios(windows, epoch_batches=5) == pytest.approx([2.0])
    assert pairing.baseline_epoch_overhead(windows) is None


FROZEN = {"gc_freeze": 50_000}


@pytest.mark.parametrize("whole", [0, 2])
def test_what_the_collector_takes_between_epochs_is_a_part_of_them(whole: int) -> None:
    """Epochs of 1 s, with 0.5 s of collecting after each, or 0.1 s once all is frozen."""
    before: dict[str, Any] = {"turns": 2, "turns_collecting": 1.0, "whole_epochs": whole}
    windows = [
        window(at=0, **before),
        window("frozen", at=5, setting=FROZEN, turns=4, turns_collecting=0.4, whole_epochs=whole),
        window("fast", at=8, seconds=0.5, **before),
        window(at=10, **before),
    ]
    assert ratios(windows, "frozen", 10) == pytest.approx([1.5 / 1.1])
    assert ratios(windows, "fast", 10) == pytest.approx([1.5 / 1.0])
    assert ratios(windows, "frozen", None) == pytest.approx([1.0])
    assert pairing.collecting_a_turn(windows) == pytest.approx(0.5)


def test_a_setting_between_whose_epochs_nobody_looked_collects_as_the_training_does() -> None:
    windows = [
        window(at=0, turns=1, turns_collecting=0.5),
        window("frozen", at=5, setting=FROZEN, seconds=0.5),
        window(at=10),
    ]
    assert ratios(windows, "frozen", 10) == pytest.approx([1.5 / 1.0])


def test_loader_only_windows_promise_no_epochs() -> None:
    windows = [window(at=0, turn_seconds=1.0), window("only", seconds=0.25, at=5, mode="loader_only")]
    assert ratios(windows, "only", 10) == pytest.approx([4.0])


def test_start_measured_far_below_zero_is_bounded() -> None:
    """A first batch by luck faster than the rest must not make the promise infinite."""
    windows = [window(at=0, turn_seconds=0.0), window("fast", seconds=0.5, at=5, turn_seconds=-50.0)]
    (ratio,) = ratios(windows, epoch_batches=10)
    assert 1 < ratio <= 4


# -- the rest ------------------------------------------------------------------------------------------------------


def test_what_a_setting_adds_to_the_one_it_builds_on() -> None:
    windows = [
        window(at=0),
        window("workers", seconds=0.5, at=2),
        window("workers,persistent", seconds=0.4, at=4, setting={**FAST, "persistent_workers": True}),
        window(at=6),
        window(at=0, session=2),
        window("workers,persistent", seconds=0.4, at=4, session=2),
    ]
    observed = pairing.observations(pairing.pairs(windows, None))
    added = speedups.differences(observed, {"workers,persistent": "workers", "workers": "never"})
    assert list(added) == ["workers,persistent"]
    assert added["workers,persistent"].estimate == pytest.approx(0.5 / 0.4)
    assert (added["workers,persistent"].sessions, added["workers,persistent"].high) == (1, math.inf)


def test_observations_carry_the_figure_asked_for() -> None:
    windows = [window(at=0, turn_seconds=0.0), window("fast", seconds=0.5, at=5, turn_seconds=0.5)]
    made = pairing.pairs(windows, 10)
    assert [each.log_ratio for each in pairing.observations(made)] == pytest.approx([0.0])
    assert [each.log_ratio for each in pairing.observations(made, steady=True)] == pytest.approx([math.log(2)])
    assert [(each.session, each.block, each.setting) for each in pairing.observations(made)] == [(1, 1, "fast")]


def test_share_of_waiting_is_that_of_the_baseline() -> None:
    windows = [window(wait_seconds=0.5), window(seconds=3.0, wait_seconds=2.5), window("fast", wait_seconds=0.9)]
    assert pairing.wait_share(windows) == pytest.approx(3.0 / 4.0)
    assert pairing.wait_share(windows[2:]) is None
    assert pairing.wait_share([window(wait_seconds=1.2)]) == 1.0


def test_cost_of_starting_an_epoch_now() -> None:
    windows = [window(turn_seconds=1.0), window(turn_seconds=2.0), window("fast", turn_seconds=9.0), window()]
    assert pairing.baseline_epoch_overhead(windows) == pytest.approx(1.5)
    assert pairing.baseline_epoch_overhead([window()]) is None
    by_chance = [window(turn_seconds=-0.5), window(turn_seconds=0.1)]
    assert pairing.baseline_epoch_overhead(by_chance) == 0.0, "nobody starts an epoch in less than no time"
    assert pairing.baseline_epoch_overhead([window(turn_seconds=-0.5), window(turn_seconds=1.5)]) == pytest.approx(0.5)


def test_a_window_that_was_taken_again_tells_what_load_costs_and_nothing_else() -> None:
    again = [replace(each, status="discarded") if each.around == beside(2.0) else each for each in in_bursts()]
    fast = window("fast", seconds=1.0, at=5.0, around=beside(2.0))
    assert ratios([*again, fast]) == pytest.approx([2.0], rel=0.01)
    assert ratios(again, CONTROL) == pytest.approx([1.0], rel=0.01)
    failed = [replace(each, status="failed") if each.around == beside(2.0) else each for each in in_bursts()]
    assert ratios([*failed, fast]) == pytest.approx([1.0], rel=0.01)
