"""Order and size of windows: exact, since the schedule knows neither clock nor process."""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bottleneck_doctor.documents.labels import BASELINE
from bottleneck_doctor.documents.report import Setting
from bottleneck_doctor.measure.schedule import (
    BASELINE_EVERY,
    LEAST_SESSIONS,
    LEAST_STEPS,
    LEAST_TOLD_STEPS,
    LONGEST_WINDOW_STEPS,
    MOST_CONFIRMING,
    PLAIN_LEAD_IN,
    LoopShape,
    Probe,
    around_best,
    block,
    block_seconds,
    confirming,
    cut,
    fewest_workers,
    fitting,
    least_steps,
    level,
    plan,
    probe,
    regular,
    session_share,
    typical_step,
    whole_epochs,
    window_size,
)

BASE = probe(BASELINE, {})
SHAPE = LoopShape(period=1, epoch_batches=500, num_workers=0, prefetch_factor=2, served=True)


def probes(count: int) -> list[Probe]:
    return [probe(f"num_workers={number}", {"num_workers": number}) for number in range(count)]


def test_probe_keeps_its_setting_in_a_fixed_order() -> None:
    one = probe("key", {"num_workers": 2, "autocast": "bfloat16"})
    other = probe("key", {"autocast": "bfloat16", "num_workers": 2})
    assert one == other
    assert one.as_setting() == {"autocast": "bfloat16", "num_workers": 2}


# -- order ---------------------------------------------------------------------------------------------------------


@given(count=st.integers(0, 40), seed=st.integers(0, 1000), after_baseline=st.booleans())
def test_block_holds_every_probe_once_between_baselines(count: int, seed: int, after_baseline: bool) -> None:
    given_probes = probes(count)
    order = block(given_probes, BASE, random.Random(seed), after_baseline=after_baseline)
    whole = [BASE, *order] if after_baseline else order
    assert whole[0] == whole[-1] == BASE
    assert Counter(each for each in order if each != BASE) == Counter(given_probes)
    run = 0
    for each in whole:
        run = 0 if each == BASE else run + 1
        assert run <= BASELINE_EVERY
    # No two windows of the baseline in a row: the second would tell nothing of a setting.
    if count:
        assert all((first, second) != (BASE, BASE) for first, second in pairwise(whole))


@given(count=st.integers(2, 40), seed=st.integers(0, 1000))
def test_every_block_has_a_control(count: int, seed: int) -> None:
    """A window of the baseline between two others."""
    assert block(probes(count), BASE, random.Random(seed)).count(BASE) >= 3


def test_same_seed_same_order() -> None:
    orders = [block(probes(12), BASE, random.Random(seed)) for seed in (3, 3, 4)]
    assert orders[0] == orders[1] != orders[2]


def test_order_is_shuffled_evenly() -> None:
    generator = random.Random(0)
    firsts = Counter(block(probes(4), BASE, generator)[1].key for _ in range(800))
    assert all(120 < count < 280 for count in firsts.values())
    assert len(firsts) == 4


def test_block_leaves_its_probes_as_they_are() -> None:
    given_probes = probes(9)
    block(given_probes, BASE, random.Random(1))
    assert given_probes == probes(9)


# -- sizes ---------------------------------------------------------------------------------------------------------


@given(
    workers=st.integers(0, 16),
    period=st.integers(1, 12),
    prefetch=st.integers(1, 8),
    step=st.floats(1e-5, 20),
    target=st.floats(0.1, 5),
)
def test_windows_are_whole_periods_and_rounds_of_workers(
    workers: int, period: int, prefetch: int, step: float, target: float
) -> None:
    shape = replace(SHAPE, period=period)
    setting: Setting = {"num_workers": workers, "prefetch_factor": prefetch}
    size = window_size(shape, setting, "timed", step, target, epochs=False)
    assert size.epochs == 0
    assert size.steps % period == size.steps % max(1, workers) == size.lead_in % period == 0
    assert size.steps >= LEAST_STEPS
    assert size.lead_in >= PLAIN_LEAD_IN
    # Beyond what the workers prepare while nobody takes batches.
    assert size.lead_in > workers * prefetch
    wanted = min(target / step, LONGEST_WINDOW_STEPS)
    assert size.steps >= math.floor(wanted)
    assert size.steps <= max(LEAST_STEPS, wanted) + math.lcm(period, max(1, workers))


@given(
    workers=st.integers(0, 16),
    period=st.integers(1, 12),
    step=st.floats(1e-5, 20),
    most=st.floats(0, 60),
)
def test_a_window_that_explains_is_cut_to_what_fits(workers: int, period: int, step: float, most: float) -> None:
    shape = replace(SHAPE, period=period)
    setting: Setting = {"num_workers": workers}
    whole = window_size(shape, setting, "phases", step, 3.0, epochs=False, least=least_steps(step))
    size = cut(whole, period, step, most)
    assert 1 <= size.lead_in <= whole.lead_in
    assert LEAST_TOLD_STEPS <= size.steps <= whole.steps
    assert size.steps % period == 0
    fewest = 1 + max(LEAST_TOLD_STEPS, math.ceil(LEAST_TOLD_STEPS / period) * period)
    assert (size.lead_in + size.steps) * step <= max(most, fewest * step) + 1e-9
    if (whole.lead_in + whole.steps) * step <= most:
        assert size == whole


@pytest.mark.parametrize(("step", "steps"), [(0.01, 6), (0.5, 6), (0.75, 4), (1.0, 3), (7.0, 3)])
def test_long_steps_need_fewer(step: float, steps: int) -> None:
    assert least_steps(step) == steps


@pytest.mark.parametrize(("step", "steps"), [(0.5, 6), (1.0, 3), (1.4, 3), (1.5, 2), (7.0, 2)])
def test_long_steps_that_are_alike_need_two(step: float, steps: int) -> None:
    assert least_steps(step, regular=True) == steps


@pytest.mark.parametrize(
    ("steps", "alike"),
    [
        ([2.5] * 7, True),
        ([9.0, 4.0, 2.5, 2.55, 2.45, 2.5, 2.52], True),
        ([2.5, 2.5, 2.5, 2.5, 3.1, 2.5, 2.5], False),
        ([2.5, 2.5, 2.5], False),
        ([], False),
    ],
)
def test_steps_are_regular_by_the_last_that_were_seen(steps: list[float], alike: bool) -> None:
    """The first warm up; of too few it is not known."""
    assert regular(steps) is alike


def test_window_under_the_users_own_workers() -> None:
    shape = replace(SHAPE, num_workers=4, prefetch_factor=3)
    size = window_size(shape, {}, "timed", 0.01, 1.0, epochs=False)
    assert (size.lead_in, size.steps) == (16, 100)
    assert window_size(shape, {"prefetch_factor": 8}, "timed", 0.01, 1.0, epochs=False).lead_in == 36


def test_replayed_batches_have_no_queue() -> None:
    shape = replace(SHAPE, num_workers=8)
    assert window_size(shape, {"replay": True}, "timed", 0.01, 1.0, epochs=False).lead_in == PLAIN_LEAD_IN


def test_loop_without_a_loader_has_no_queue() -> None:
    shape = replace(SHAPE, num_workers=8, served=False, epoch_batches=None)
    assert window_size(shape, {}, "timed", 0.01, 1.0, epochs=False).lead_in == PLAIN_LEAD_IN


def test_whole_epochs_are_counted_in_epochs() -> None:
    shape = replace(SHAPE, epoch_batches=25)
    size = window_size(shape, {"num_workers": 2}, "timed", 0.01, 1.0, epochs=True)
    assert (size.lead_in, size.steps, size.epochs) == (0, 0, 4)
    # What outlives an epoch has to settle in one first.
    kept: Setting = {"num_workers": 2, "persistent_workers": True}
    assert window_size(shape, kept, "timed", 0.01, 1.0, epochs=True).lead_in == 1
    assert window_size(shape, {"autocast": "bfloat16"}, "timed", 0.01, 1.0, epochs=True).lead_in == 1
    assert window_size(shape, {"autocast": "bfloat16"}, "timed", 0.01, 1.0, epochs=True, warm=True).lead_in == 0
    # The loader alone knows no epochs of the user's.
    assert window_size(shape, {}, "loader_only", 0.01, 1.0, epochs=True).epochs == 0


def test_short_epochs_are_summed_over_many_steps() -> None:
    size = window_size(replace(SHAPE, epoch_batches=3), {}, "timed", 5.0, 1.0, epochs=True)
    assert size.epochs * 3 >= 2 * LEAST_STEPS


@pytest.mark.parametrize(
    ("batches", "step", "whole"),
    [
        (25, 0.1, True),  # 2.5 s: as long as the window of one second should be, or nearly
        (26, 0.1, False),
        (8, 0.9, True),
        (8, 10.0, False),  # some long steps fit into an epoch
        (3, 10.0, True),
        (9, 10.0, False),
        (100_000, 0.001, False),
    ],
)
def test_windows_of_whole_epochs_where_epochs_are_about_as_long(batches: int, step: float, whole: bool) -> None:
    assert whole_epochs(replace(SHAPE, epoch_batches=batches, usable_cpus=1), step, 1.0) is whole
    if batches == 8:  # So few batches that a queue would never settle.
        assert whole_epochs(replace(SHAPE, epoch_batches=batches, usable_cpus=1, num_workers=2), step, 1.0)


def test_no_whole_epochs_without_a_known_end_or_a_loader() -> None:
    assert not whole_epochs(replace(SHAPE, epoch_batches=None), 0.001, 1.0)
    assert not whole_epochs(replace(SHAPE, epoch_batches=5, served=False), 0.001, 1.0)


# -- what fits -----------------------------------------------------------------------------------------------------


def test_what_fits_goes_by_priority_and_then_by_what_was_measured_least() -> None:
    named = [probe(name, {}, priority=priority) for name, priority in (("c", 2), ("a", 0), ("b2", 1), ("b1", 1))]
    chosen = fitting(named, dict.fromkeys("ac", 1.0) | {"b1": 1.0, "b2": 1.0}, 1.0, 100.0, {"b2": 3, "b1": 1})
    assert [each.key for each in chosen] == ["a", "b1", "b2", "c"]


def test_what_fits_never_passes_the_time_left_but_for_the_first() -> None:
    costs = {each.key: 2.0 for each in probes(10)}
    for seconds in (0.0, 3.0, 10.0, 17.0, 1000.0):
        chosen = fitting(probes(10), costs, 1.0, seconds, {})
        spent = 1.0 + len(chosen) * (2.0 + 1.0 / BASELINE_EVERY)
        assert len(chosen) == 1 or spent <= seconds
        assert len(chosen) == 10 or spent + 2.0 + 1.0 / BASELINE_EVERY > seconds


def test_a_dear_probe_makes_room_for_a_cheap_one() -> None:
    named = [probe(name, {}) for name in ("first", "dear", "cheap")]
    chosen = fitting(named, {"first": 1.0, "dear": 50.0, "cheap": 1.0}, 1.0, 6.0, {})
    assert [each.key for each in chosen] == ["first", "cheap"]


def test_nothing_fits_of_nothing() -> None:
    assert fitting([], {}, 1.0, 10.0, {}) == []


# -- workers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("measured", "extra"),
    [
        ({0: 1.0, 1: 1.5, 2: 2.4, 4: 3.9}, [8, 3]),  # still rising at the top
        ({0: 1.0, 1: 1.5, 2: 2.4, 4: 2.45}, [3]),  # level at the top
        ({0: 1.0, 1: 1.5, 2: 2.4, 4: 2.0, 8: 1.0}, [3]),
        ({0: 1.0, 4: 2.0, 8: 3.0, 16: 2.0}, [6, 12]),
        ({0: 1.0, 1: 0.6, 2: 0.5}, []),  # workers are worse than none
        ({0: 1.0}, []),
        ({0: 1.0, 8: 3.0}, []),  # twice that is beyond the limit
    ],
)
def test_sweep_is_widened_around_its_best(measured: dict[int, float], extra: list[int]) -> None:
    assert around_best(measured, 16 if 4 in measured else 8) == extra


def test_fewest_workers_within_two_percent_of_the_best() -> None:
    assert fewest_workers({0: 1.0, 1: 1.97, 2: 2.0, 4: 2.01}) == 1
    assert fewest_workers({0: 1.0, 1: 1.9, 2: 1.98, 4: 2.01}) == 2
    assert fewest_workers({0: 1.0, 2: 1.01}) == 0
    assert fewest_workers({3: 0.5}) == 3


# -- plan ----------------------------------------------------------------------------------------------------------


@given(budget=st.floats(10, 2000), setup=st.floats(0.1, 200), step=st.floats(1e-4, 10), count=st.integers(1, 20))
def test_plan_divides_the_budget(budget: float, setup: float, step: float, count: int) -> None:
    made = plan(budget, setup, step, count, None)
    assert made.sessions >= LEAST_SESSIONS
    assert made.sessions * made.session_seconds == pytest.approx(budget)
    assert 0.5 < made.window_seconds <= 4


def test_plan_keeps_to_the_number_of_sessions_asked_for() -> None:
    assert plan(100.0, 1.0, 0.01, 8, 7).sessions == 7


def test_dear_starts_make_few_sessions() -> None:
    assert plan(180.0, 1.0, 0.01, 8, None).sessions > plan(180.0, 44.0, 0.01, 8, None).sessions == LEAST_SESSIONS


def test_level_once_the_steps_stop_getting_faster() -> None:
    assert level([0.1] * 9)
    assert level([0.5, 0.4, 0.3, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1])
    assert not level([0.5, 0.4, 0.3, 0.2, 0.15, 0.12, 0.1, 0.1, 0.1])
    assert not level([0.1] * 5)
    assert not level([])


def test_settings_found_late_get_the_processes_that_a_claim_needs() -> None:
    thin = plan(27.0, 2.7, 0.01, 9, None)
    assert thin.sessions == LEAST_SESSIONS
    more = confirming(thin, 1, 14.4, 2.7, 0.4, (6.0, 6.0), news=True)
    assert more.sessions == 1 + LEAST_SESSIONS
    assert more.session_seconds == pytest.approx(14.4 / LEAST_SESSIONS)
    assert more.window_seconds == thin.window_seconds
    assert confirming(thin, 1, 14.4, 4.0, 0.4, (6.0, 6.0), news=True).sessions == LEAST_SESSIONS, (
        "each could hold nothing"
    )
    assert confirming(thin, 1, 14.4, 2.7, 0.4, (6.0, 6.0), news=False).sessions == LEAST_SESSIONS


def test_time_goes_into_processes_and_not_into_second_blocks() -> None:
    ample = plan(180.0, 5.0, 0.14, 8, None)
    assert confirming(ample, 1, 125.0, 5.0, 2.4, (20.0, 20.0), news=True).sessions == 1 + 4
    assert confirming(ample, 1, 125.0, 5.0, 2.4, (5.0, 5.0), news=True).sessions == 1 + MOST_CONFIRMING
    assert confirming(ample, 1, 125.0, 60.0, 2.4, (20.0, 20.0), news=True).sessions == ample.sessions, "starts are dear"
    assert confirming(ample, 1, 105.0, 5.0, 2.4, (20.0, 20.0), news=True).sessions == 1 + 4, "most of a block will do"
    asked = plan(180.0, 5.0, 0.14, 8, 12)
    assert confirming(asked, 1, 160.0, 5.0, 2.4, (20.0, 20.0), news=False).sessions == 12


def test_sessions_beyond_what_a_claim_needs_are_counted_by_what_they_will_measure() -> None:
    ample = plan(180.0, 5.0, 0.14, 8, None)
    assert confirming(ample, 1, 140.0, 5.0, 2.5, (32.5, 32.5), news=False).sessions == 1 + 3
    assert confirming(ample, 1, 140.0, 5.0, 2.5, (32.5, 12.5), news=False).sessions == 1 + 2 + 3
    assert confirming(ample, 3, 140.0, 5.0, 2.5, (32.5, 12.5), news=False).sessions == 3 + 7


def test_a_block_takes_its_windows_and_the_baselines_between() -> None:
    costs = {"num_workers=0": 2.0, "num_workers=1": 3.0}
    assert block_seconds(probes(4), costs, 1.0) == pytest.approx(2 + 3 + 1 + 1 + 3)
    assert block_seconds([], {}, 1.0) == 1.0


def test_sessions_share_what_starting_the_others_leaves() -> None:
    assert session_share(12.0, 1, 8.0, 1.0) == 2.0
    assert session_share(100.0, 3, 4.0, 3.0) == 22.0
    assert session_share(30.0, 0, 8.0, 1.0) == 30.0
    # What could not measure after its start does not come, and leaves its time to this one.
    assert session_share(12.0, 1, 8.0, 2.5) == 12.0
    assert session_share(60.0, 2, 50.0, 3.0) == 5.0


@given(st.floats(1, 600), st.integers(0, 8), st.floats(0.5, 60), st.floats(0.5, 10))
def test_every_session_that_comes_has_its_share(left: float, others: int, setup: float, least: float) -> None:
    for to_come in range(others, -1, -1):
        share = session_share(left, to_come, setup, least)
        assert share > 0
        if left >= least:
            assert share >= least - 1e-9
        left -= share
        if left < setup + least - 1e-9:
            break
        left -= setup
    assert left >= -1e-6


def test_step_to_plan_by_is_the_mean_of_a_period() -> None:
    rollouts = [0.9, *([0.002] * 15 + [0.17]) * 4]
    assert typical_step(rollouts, 0) == pytest.approx(0.002)
    assert typical_step(rollouts, 0, 16) == pytest.approx((15 * 0.002 + 0.17) / 16)
    assert typical_step([0.1, 0.2], 0, 16) == 0.2
    assert typical_step([], 0, 4) == 0.1
