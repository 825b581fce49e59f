"""What neighbours cost: slopes whose answer is known, and simulated machines whose truth is."""

from __future__ import annotations

import math

import pytest
from benchmarks import neighbours as simulated

from bottleneck_doctor.statistics.neighbours import disturbed, load, wanted


def test_load_grows_with_what_others_want_of_all_cpus() -> None:
    assert load(0.0, 2) == load(-0.1, 2) == 0.0
    # Beside two threads on two CPUs, a training that uses both takes twice as long.
    assert math.exp(load(2.0, 2)) == pytest.approx(2.0)
    assert load(2.0, 64) < 0.04


def test_a_neighbour_that_stays_disturbs_nobody() -> None:
    assert disturbed(0.7, [0.0, 0.1, 0.0])
    assert not disturbed(0.7, [0.7, 0.6, 0.7])
    assert not disturbed(0.2, [0.0, 0.1])
    assert not disturbed(0.7, [])
    # One that always comes and goes stays too.
    assert not disturbed(1.7, [1.3, 1.5, 1.4, 1.7, 1.6])
    assert disturbed(2.1, [1.3, 1.5, 1.4, 1.7, 1.6])


ROWS = {each.name: each for each in simulated.SCENARIOS}


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("bursts, both CPUs", 0.005),
        ("long bursts, four threads", 0.01),
        ("one that stays", 0.005),
        ("bursts, both CPUs, and threads of ours counted as others'", 0.005),
        ("bursts by program, and threads of ours counted as others'", 0.005),
    ],
)
def test_adjusting_is_unbiased_where_a_setting_starves_its_neighbour(name: str, most: float) -> None:
    assert abs(simulated.rows(ROWS[name], 250, 3, ("wanted",))["wanted"].bias) <= most


def test_what_others_wanted_is_no_more_than_was_seen_nor_than_agrees_with_what_they_got() -> None:
    # Two threads of others all the time on two CPUs, beside one and beside three of ours.
    assert wanted(2.0, 4 / 3, 1.0, 2.0) == pytest.approx(2.0)
    assert wanted(2.0, 0.8, 3.0, 2.0) == pytest.approx(2.0)
    # The same for half of the time.
    assert wanted(1.0, 0.4, 3.0, 2.0) == pytest.approx(1.0)
    # Nobody was there: threads of ours were taken for others'.
    assert wanted(0.4, 0.0, 2.7, 2.0) == 0.0
    assert wanted(0.4, 0.01, 2.7, 2.0) < 0.03
    # Each program has a half of the CPUs, however many threads it has.
    assert wanted(2.0, 1.0, 3.0, 2.0) == pytest.approx(2.0)
    assert wanted(-0.1, -0.02, 1.0, 2.0) == wanted(0.0, 0.5, 1.0, 2.0) == 0.0
    assert wanted(30.0, 2.0, 1.0, 2.0) < 30.0


def test_what_others_got_would_bias() -> None:
    """The reason for which nothing is adjusted for what the kernel's counters tell of others."""
    assert simulated.rows(ROWS["bursts, both CPUs"], 150, 3, ("got",))["got"].bias < -0.02


def test_bursts_widen_intervals_half_as_much_and_they_hold() -> None:
    made = simulated.rows(ROWS["bursts, both CPUs"], 150, 4, ("plain", "wanted"))
    assert made["wanted"].coverage >= 0.94
    assert made["wanted"].width < 0.6 * made["plain"].width
    assert made["wanted"].spread < 0.6 * made["plain"].spread
    quiet = simulated.rows(ROWS["nobody"], 100, 4, ("plain", "wanted"))
    assert quiet["wanted"].coverage >= 0.94
    assert quiet["wanted"].width == pytest.approx(quiet["plain"].width, rel=0.02)


def test_windows_taken_again_narrow_intervals_where_a_setting_alone_is_slowed() -> None:
    """The training as written has a CPU for itself beside such a neighbour, so that no slope tells of it."""
    scenario = ROWS["bursts, one thread"]
    once = simulated.rows(scenario, 100, 5, ("wanted",))["wanted"]
    again = simulated.rows(scenario, 100, 5, ("wanted",), again=True)["wanted"]
    assert again.width < 0.7 * once.width
    assert again.coverage >= 0.94
    assert abs(again.bias) <= 0.005


def test_a_neighbour_of_the_first_process_alone_has_no_part_in_the_figures() -> None:
    scenario = next(each for each in simulated.FIRST_ONLY if each.name == "1 threads beside the first of 6")
    everything, kept = simulated.kept(scenario, 100, 6)
    assert kept.width < 0.5 * everything.width
    assert kept.coverage >= 0.93
    assert abs(kept.bias) <= 0.005 < abs(everything.bias)


@pytest.mark.parametrize("name", [each.name for each in simulated.IN_PAIRS])
def test_pairs_that_know_those_before_them_are_surer_beside_bursts_and_as_true(name: str) -> None:
    scenario = next(each for each in simulated.IN_PAIRS if each.name == name)
    alone, told = simulated.in_pairs(scenario, 80, 5)
    assert abs(told.bias) <= max(0.025, 0.5 * abs(alone.bias))
    assert told.coverage >= 0.9
    if scenario.threads > 0 and scenario.busy < scenario.every:
        assert told.width < 0.8 * alone.width
    else:
        assert told.width < 1.2 * alone.width
