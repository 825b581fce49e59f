"""The chance that a setting is worth an edit: its order, its assumptions, and how often it is right."""

from __future__ import annotations

import math
import runpy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as reference

from bottleneck_doctor.statistics import chance, distributions
from bottleneck_doctor.statistics.chance import Spread
from bottleneck_doctor.statistics.speedups import Observation, SpeedupEstimate, estimate_all

SIMULATION: dict[str, Any] = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "chances.py"), run_name="it")
WORLDS = {world.name: world for world in SIMULATION["WORLDS"]}

QUIET = Spread(windows=0.04)


def seen(ratio: float, *, sessions: int = 1, error: float = 0.02, pairs: int = 2) -> SpeedupEstimate:
    """An estimate as `estimate_all` makes it; of one session nothing is known of the error."""
    known = sessions > 1
    return SpeedupEstimate(
        "x", ratio, 0.0, math.inf, pairs * sessions, sessions, math.log(ratio),
        error if known else math.inf, sessions - 1.0 if known else 0.0, 1.0,
    )  # fmt: skip


def worth(estimate: SpeedupEstimate, spread: Spread = QUIET) -> float:
    return chance.chance_worth(estimate, spread)


@pytest.mark.parametrize("df", [1, 2, 3.7, 100])
@pytest.mark.parametrize("t", [0, 0.3, -2.5, 40])
def test_student_t_density_is_that_of_scipy(t: float, df: float) -> None:
    assert distributions.student_t_density(t, df) == pytest.approx(float(reference.t.pdf(t, df)), rel=1e-9)


ratios = st.floats(-3, 3).map(math.exp)


@given(one=ratios, other=ratios, sessions=st.integers(1, 6), windows=st.floats(0.001, 2), error=st.floats(0.001, 1))
def test_a_larger_gain_never_has_the_smaller_chance(
    one: float, other: float, sessions: int, windows: float, error: float
) -> None:
    low, high = sorted((one, other))
    chances = [worth(seen(ratio, sessions=sessions, error=error), Spread(windows)) for ratio in (low, high)]
    assert 0 <= chances[0] <= chances[1] + 1e-12
    assert chances[1] <= 1


@given(gain=st.floats(1.03, 3), windows=st.floats(0.01, 1), more=st.floats(1.01, 5))
def test_more_noise_makes_no_likely_gain_surer(gain: float, windows: float, more: float) -> None:
    known = worth(seen(gain), Spread(windows))
    noisier = [
        worth(seen(gain), Spread(windows * more)),
        worth(seen(gain), Spread(windows, chance.PROCESS_SPREAD * more)),
    ]
    assert max(noisier) <= max(known, 0.5)


def test_where_noise_hides_everything_nothing_is_likely() -> None:
    assert all(0.1 < worth(seen(ratio), Spread(windows=5.0)) < 0.2 for ratio in (0.5, 1.0, 2.0))


def test_agreeing_processes_are_surer_than_those_that_differ() -> None:
    chances = [worth(seen(1.5, sessions=3, error=error)) for error in (0.03, 0.1, 0.3)]
    assert chances == sorted(chances, reverse=True)
    assert chances[0] > 0.95
    assert chances[-1] < 0.8


def test_one_process_says_less_of_a_small_gain_than_of_a_large_one() -> None:
    assert worth(seen(1.5)) > 0.9
    assert worth(seen(1.1)) < 0.5
    assert worth(seen(1.0)) < 0.05
    assert worth(seen(0.7)) < 0.05


def test_two_processes_that_agree_by_luck_are_no_surer_than_their_windows() -> None:
    lucky = seen(1.06, sessions=2, error=0.001)
    assert worth(lucky, Spread(windows=0.2)) < 0.3
    assert worth(lucky, Spread(windows=0.002)) > worth(lucky, Spread(windows=0.2))


# -- what one process is sure of --------------------------------------------------------------------------------------


def test_one_process_is_sure_of_what_no_luck_of_a_process_explains() -> None:
    quantile = float(reference.t.ppf(0.975, chance.PROCESS_DF))
    least = chance.at_least(seen(2.0, pairs=4), QUIET, floor=0.01)
    assert least == pytest.approx(2.0 * math.exp(-quantile * chance.PROCESS_SPREAD))
    noisy = chance.at_least(seen(4.0, pairs=4), Spread(windows=0.4), floor=0.01)
    assert noisy == pytest.approx(4.0 * math.exp(-quantile * 0.2))


def test_more_tries_are_less_sure_and_small_gains_are_not() -> None:
    many = [chance.at_least(seen(3.0), QUIET, floor=0.01, fixes_tried=tried) or 0.0 for tried in (1, 4, 12)]
    assert many == sorted(many, reverse=True)
    assert chance.at_least(seen(1.2), QUIET, floor=0.01) is None
    assert chance.at_least(seen(2.0, pairs=4), QUIET, floor=0.9) is None
    assert chance.at_least(seen(2.0, sessions=2), QUIET, floor=0.01) is None


# -- what an examination says of its spread ----------------------------------------------------------------------------


def test_windows_that_differ_are_seen_in_pairs_and_in_the_baseline() -> None:
    assert chance.spread([], [], {}).windows == pytest.approx(chance.WINDOW_SPREAD)
    pairs = [Observation(1, block, "x", value) for block, value in enumerate([0.0, 0.6] * 10)]
    assert chance.spread(pairs, [], {}).windows == pytest.approx(0.3, rel=0.05)
    changes = [0.4, -0.4] * 20
    expected = math.sqrt(chance.PAIR_SHARE) * 0.4
    assert chance.spread([], changes, {}).windows == pytest.approx(expected, rel=0.05)


def test_what_processes_have_in_common_is_no_luck_of_windows() -> None:
    pairs = [Observation(session, block, "x", 0.5 * session) for session in (1, 2, 3) for block in (0, 1)]
    assert chance.spread(pairs, [], {}).windows < chance.WINDOW_SPREAD


def test_settings_of_one_process_learn_from_those_of_several() -> None:
    observed = [Observation(s, 0, name, value) for name in "ab" for s, value in enumerate([0.1, 0.9, 0.4])]
    spread = chance.spread(observed, [], estimate_all(observed))
    assert spread.processes == pytest.approx(0.4, rel=0.05)
    control = [replace(each, setting="aa") for each in observed]
    assert chance.spread(control, [], estimate_all(control)).processes == chance.PROCESS_SPREAD


# -- how many sessions -------------------------------------------------------------------------------------------------


def test_a_clear_gain_needs_as_many_sessions_as_any_claim() -> None:
    assert chance.sessions_to_settle(seen(2.0), QUIET, floor=0.01) == 3
    assert chance.sessions_to_settle(seen(2.0, sessions=2), QUIET, floor=0.01) == 3


def test_noise_takes_more_sessions_until_more_time_would_not_do() -> None:
    needed = [chance.sessions_to_settle(seen(1.3), Spread(windows), floor=0.01) for windows in (0.02, 0.2, 2.0)]
    assert needed[0] is not None
    assert needed[1] is not None
    assert 3 <= needed[0] < needed[1] <= chance.MOST_SESSIONS
    assert needed[2] is None
    between = seen(1.05, sessions=6, error=0.002)
    assert chance.sessions_to_settle(between, QUIET, floor=0.2) is None


# -- how often it is right ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sessions", [1, 2, 3])
def test_chances_are_what_they_say_where_the_assumptions_hold(sessions: int) -> None:
    """With one process they are calibrated; with more, Student's t knows no prior, and they are modest."""
    for row in SIMULATION["table"](WORLDS["as assumed"], sessions, 4000):
        noise = 3 * math.sqrt(row.said * (1 - row.said) / row.count)
        if sessions == 1:
            assert row.true == pytest.approx(row.said, abs=0.09 + noise)
        if row.low >= 0.5:
            assert row.true > row.said - noise
        if row.high <= 0.2:
            assert row.true < row.said + 0.01 + noise


def test_the_best_chances_hold_where_processes_differ_as_much_as_they_ever_did() -> None:
    rows = SIMULATION["table"](WORLDS["processes differ by a normal 12 %"], 1, 4000)
    assert [row.true for row in rows] == sorted(row.true for row in rows)
    assert rows[-1].true > 0.95
    assert rows[-2].true > 0.6
