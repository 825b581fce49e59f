"""Speedups, intervals and verdicts: known answers, what may not change them, and inputs that have no answer."""

from __future__ import annotations

import json
import math
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from statistics import median, stdev
from statistics import variance as exact

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special
from scipy import stats as reference

from bottleneck_doctor.statistics import distributions, speedups
from bottleneck_doctor.statistics.speedups import Observation, SpeedupEstimate
from bottleneck_doctor.statistics.spread import OF_PROCESSES, own_spread, typical, variance

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
DEGREES = [0.3, 0.7, 1, 1.33, 2, 3.7, 10, 100, 1e4]


def observed(table: dict[str, list[float]]) -> list[Observation]:
    """One window a session; the position in the list is the session."""
    return [Observation(s, 0, setting, value) for setting, row in table.items() for s, value in enumerate(row)]


def an_estimate(low: float, high: float, sessions: int = 4) -> SpeedupEstimate:
    log_mean = (math.log(low) + math.log(high)) / 2
    error = (math.log(high) - math.log(low)) / 2 / distributions.student_t_quantile(0.975, sessions - 1)
    return SpeedupEstimate(
        "x", math.exp(log_mean), low, high, 2 * sessions, sessions, log_mean, error, sessions - 1, 0.01
    )


# Special functions, against scipy


@pytest.mark.parametrize("df", DEGREES)
@pytest.mark.parametrize("probability", [0.5001, 0.6, 0.9, 0.975, 0.9958, 0.9999, 1 - 1e-9])
def test_student_t_quantile_is_that_of_scipy(probability: float, df: float) -> None:
    expected = float(reference.t.ppf(probability, df))
    assert distributions.student_t_quantile(probability, df) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("df", DEGREES)
@pytest.mark.parametrize("t", [0, 1e-6, 0.3, 1, 2.5, 12, 1e3, 1e8])
def test_student_t_tail_is_that_of_scipy(t: float, df: float) -> None:
    assert distributions.student_t_tail(t, df) == pytest.approx(float(reference.t.sf(t, df)), rel=1e-9)


@pytest.mark.parametrize("x", [0.005, 0.3, 1, 5, 7.99, 8, 80, 1e5])
def test_digamma_and_trigamma_are_those_of_scipy(x: float) -> None:
    assert distributions.digamma(x) == pytest.approx(float(special.digamma(x)), rel=1e-12)
    assert distributions.trigamma(x) == pytest.approx(float(special.polygamma(1, x)), rel=1e-12)


@pytest.mark.parametrize("value", [1e-8, 1e-3, 0.5, 3, 50, 1e8])
def test_trigamma_inverse_undoes_trigamma(value: float) -> None:
    assert distributions.trigamma(distributions.trigamma_inverse(value)) == pytest.approx(value, rel=1e-6)


def test_quantile_refuses_what_has_no_answer() -> None:
    assert distributions.student_t_quantile(0.5, 3) == 0
    with pytest.raises(ValueError, match="probability"):
        distributions.student_t_quantile(1.0, 3)
    with pytest.raises(ValueError, match="degrees of freedom"):
        distributions.student_t_quantile(0.975, 0)


# Estimates


def test_one_setting_alone_gets_the_t_interval_of_its_session_means() -> None:
    # GIVEN two windows in each of three sessions, whose means are 0.1, 0.2 and 0.3
    seen = [Observation(s, b, "x", 0.1 * (s + 1) + (0.05 if b else -0.05)) for s in range(3) for b in range(2)]
    # WHEN
    estimate = speedups.estimate_all(seen)["x"]
    # THEN the windows inside a session add nothing to what the sessions say
    interval = reference.t.interval(0.95, 2, loc=0.2, scale=0.1 / math.sqrt(3))
    assert estimate.estimate == pytest.approx(math.exp(0.2))
    assert (estimate.low, estimate.high) == pytest.approx(tuple(math.exp(end) for end in interval))
    assert (estimate.pairs, estimate.sessions, estimate.degrees_of_freedom) == (6, 3, 2)
    assert estimate.p_value == pytest.approx(float(reference.ttest_1samp([0.1, 0.2, 0.3], 0).pvalue))


def test_two_settings_are_too_few_to_speak_of_one_another() -> None:
    estimates = speedups.estimate_all(observed({"x": [0.1, 0.2, 0.3], "y": [0.0, 0.4, 0.1]}))
    assert {e.degrees_of_freedom for e in estimates.values()} == {2}
    assert estimates["x"].standard_error == pytest.approx(0.1 / math.sqrt(3))


def test_settings_with_luck_of_their_own_lend_degrees_of_freedom() -> None:
    rng = random.Random(4)
    estimates = speedups.estimate_all(observed({f"fix {k}": [rng.gauss(0, 0.05) for _ in range(3)] for k in range(8)}))
    freedom = sorted(estimate.degrees_of_freedom for estimate in estimates.values())
    assert freedom[0] >= 1
    assert freedom[4] > 3


def test_luck_that_all_settings_share_is_known_only_as_well_as_there_are_sessions() -> None:
    # GIVEN three sessions that differ by 20 % for every setting, and settings that otherwise agree within 1 %
    rng = random.Random(5)
    shared = [-0.2, 0.0, 0.2]
    table = {f"fix {k}": [luck + rng.gauss(0, 0.01) for luck in shared] for k in range(12)}
    # WHEN
    estimates = speedups.estimate_all(observed(table))
    # THEN twelve settings do not make three sessions more than three
    for estimate in estimates.values():
        assert estimate.degrees_of_freedom == pytest.approx(2, abs=0.1)
        assert estimate.standard_error == pytest.approx(0.2 / math.sqrt(3), rel=0.05)


def test_a_setting_wilder_than_the_others_keeps_its_own_spread() -> None:
    rng = random.Random(6)
    table = {f"fix {k}": [rng.gauss(0, 0.01) for _ in range(4)] for k in range(8)}
    table["wild"] = [-0.2, 0.1, 0.3, 0.0]
    estimates = speedups.estimate_all(observed(table))
    assert estimates["wild"].standard_error == pytest.approx(stdev(table["wild"]) / 2, rel=0.1)
    assert estimates["wild"].degrees_of_freedom < 4
    assert max(e.standard_error for name, e in estimates.items() if name != "wild") < 0.02


def test_a_spread_that_is_small_by_luck_is_drawn_up() -> None:
    rng = random.Random(7)
    table = {f"fix {k}": [rng.gauss(0, 0.05) for _ in range(3)] for k in range(8)}
    table["lucky"] = [0.1001, 0.1, 0.0999]
    lucky = speedups.estimate_all(observed(table))["lucky"]
    assert lucky.standard_error > 50 * stdev(table["lucky"]) / math.sqrt(3)


def test_the_control_neither_lends_nor_borrows() -> None:
    # GIVEN sessions whose luck cancels in the control, as it does when the baseline is compared with itself
    fixes = {"x": [-0.2, 0.0, 0.2], "y": [-0.15, 0.05, 0.25], "z": [-0.22, 0.01, 0.19]}
    with_control = speedups.estimate_all(observed({**fixes, "aa": [0.001, -0.002, 0.001]}))
    # THEN the fixes are what they are without it, and it is what it is alone
    assert {name: with_control[name] for name in fixes} == speedups.estimate_all(observed(fixes))
    assert with_control["aa"] == speedups.estimate_all(observed({"aa": [0.001, -0.002, 0.001]}))["aa"]


# Differences


def test_what_a_session_does_to_all_settings_cancels_in_their_differences() -> None:
    rng = random.Random(9)
    table = {f"fix {k}": [luck + rng.gauss(0, 0.01) for luck in (-0.2, 0.0, 0.2)] for k in range(6)}
    table["more"] = [0.1 + value for value in (-0.19, -0.01, 0.2)]
    alone = speedups.estimate_all(observed(table))["more"]
    assert alone.low < 1
    added = speedups.differences(observed(table), {"more": "fix 0"})["more"]
    assert 1.05 < added.low < added.estimate < added.high < 1.2
    assert added.degrees_of_freedom > 3


def test_the_difference_of_two_settings_alone_has_the_t_interval_of_its_sessions() -> None:
    table = {"x": [0.1, 0.2, 0.3], "y": [0.0, 0.15, 0.1]}
    added = speedups.differences(observed(table), {"x": "y", "y": "never", "never": "x"})
    assert list(added) == ["x"]
    seen = [0.1, 0.05, 0.2]
    assert added["x"].degrees_of_freedom == 2
    assert added["x"].standard_error == pytest.approx(stdev(seen) / math.sqrt(3))
    assert added["x"].p_value == pytest.approx(float(reference.ttest_1samp(seen, 0).pvalue))


@pytest.mark.parametrize(("sessions", "shared", "own"), [(3, 0.05, 0.02), (3, 0.0, 0.05), (5, 0.1, 0.03)])
def test_differences_hold_the_truth_and_are_narrower_than_alone(sessions: int, shared: float, own: float) -> None:
    """Settings differ in how uneven they are, as in docs/statistics.md."""
    rng, held, needless, widths, plain = random.Random(11), 0, 0, [], []
    runs = 1000
    for _ in range(runs):
        luck = [rng.gauss(0, shared) for _ in range(sessions)]
        deviations = {f"fix {k}": own * rng.choice([0.5, 1.0, 1.5]) for k in range(7)}
        table = {name: [each + rng.gauss(0, spread) for each in luck] for name, spread in deviations.items()}
        added = speedups.differences(observed(table), {"fix 0": "fix 1"})["fix 0"]
        held += added.low < 1 < added.high
        needless += added.low > 1
        widths.append(math.log(added.high / added.low))
        alone = speedups.differences(observed({name: table[name] for name in ("fix 0", "fix 1")}), {"fix 0": "fix 1"})
        plain.append(math.log(alone["fix 0"].high / alone["fix 0"].low))
    print(f"held {held / runs:.3f}, needless {needless / runs:.3f}, width {median(widths):.3f} of {median(plain):.3f}")
    assert held / runs >= 0.94
    assert needless / runs <= 0.03
    if sessions == 3:
        assert median(widths) < 0.8 * median(plain)


def test_settings_of_different_sessions_do_not_speak_of_one_another() -> None:
    here = observed({"x": [0.1, 0.2, 0.3], "y": [0.0, 0.4, 0.1], "z": [0.3, 0.1, 0.2]})
    there = [replace(seen, session=seen.session + 10, setting="other " + seen.setting) for seen in here]
    both = speedups.estimate_all(here + there)
    assert {name: both[name] for name in "xyz"} == speedups.estimate_all(here)


def test_a_setting_that_left_the_race_is_judged_by_its_own_sessions() -> None:
    rng = random.Random(8)
    table = {f"fix {k}": [rng.gauss(0, 0.05) for _ in range(5)] for k in range(6)}
    table["loser"] = [-0.5, -0.52]
    table["gone"] = [-0.7]
    estimates = speedups.estimate_all(observed(table))
    assert estimates["loser"].estimate == pytest.approx(math.exp(-0.51))
    assert estimates["loser"].sessions == 2
    assert estimates["loser"].standard_error > 1.3 * estimates["fix 0"].standard_error * math.sqrt(2 / 5)
    assert (estimates["gone"].low, estimates["gone"].high) == (0, math.inf)


def test_settings_that_hardly_overlap_fall_back_on_their_own_spread() -> None:
    chain = {"x": (0, 1), "y": (1, 2), "z": (2, 3)}
    seen = [Observation(s, 0, name, 0.1 * s) for name, sessions in chain.items() for s in sessions]
    degrees = {e.degrees_of_freedom for e in speedups.estimate_all(seen).values()}
    assert degrees == {1 + OF_PROCESSES.degrees_of_freedom}


@pytest.mark.parametrize("fixes", [1, 2, 5])
def test_one_session_claims_nothing(fixes: int) -> None:
    seen = [Observation(0, b, f"fix {k}", 0.5) for b in range(4) for k in range(fixes)]
    for estimate in speedups.estimate_all(seen).values():
        assert (estimate.low, estimate.high, estimate.p_value) == (0, math.inf, 1)
        assert estimate.estimate == pytest.approx(math.exp(0.5))
        assert speedups.verdict(estimate, adjusted_p=0.0, floor=0.01) == "cannot_tell"


@pytest.mark.parametrize("fixes", [1, 2, 3, 8])
@pytest.mark.parametrize("sessions", [2, 3, 6])
def test_identical_values_still_have_an_interval(fixes: int, sessions: int) -> None:
    estimates = speedups.estimate_all(observed({f"fix {k}": [0.3] * sessions for k in range(fixes)}))
    for estimate in estimates.values():
        assert estimate.standard_error >= speedups.MINIMUM_STANDARD_ERROR
        assert estimate.low < estimate.estimate < estimate.high
        assert 0 < estimate.p_value < 0.01


# Two settings that need not share sessions


@pytest.mark.parametrize(("ratio", "sure"), [(1.05, False), (1.5, True), (0.7, False)])
def test_one_setting_is_surely_faster_than_another_of_other_sessions(ratio: float, sure: bool) -> None:
    one, other = [0.03, -0.03, 0.01, -0.01], [0.04, -0.04, 0.02]
    seen = [Observation(s, 0, "one", math.log(ratio) + value) for s, value in enumerate(one)]
    seen += [Observation(10 + s, 0, "other", value) for s, value in enumerate(other)]
    made = speedups.estimate_all(seen)
    assert speedups.surely_faster(made["one"], made["other"]) == sure
    welch = reference.ttest_ind([math.log(ratio) + value for value in one], other, equal_var=False)
    assert (welch.pvalue < 0.05 and ratio > 1) == sure


def test_a_setting_of_one_session_is_not_surely_slower_than_any() -> None:
    made = speedups.estimate_all(observed({"one": [0.7, 0.7, 0.7], "other": [0.0]}))
    assert not speedups.surely_faster(made["one"], made["other"])


# Two sessions, with what other programs lend


def test_what_two_sessions_lend_is_what_the_kept_examinations_show() -> None:
    corpus = json.loads((BENCHMARKS / "process_luck.json").read_text())
    cpu = [each["settings"].values() for each in corpus["examinations"] if each["device"] == "cpu"]
    fitted = typical([own_spread(values) for settings in cpu for values in settings], 100.0)
    assert math.sqrt(fitted.variance) == pytest.approx(math.sqrt(OF_PROCESSES.variance), abs=0.001)
    assert fitted.degrees_of_freedom == pytest.approx(OF_PROCESSES.degrees_of_freedom, abs=0.1)


@pytest.mark.parametrize("values", [[0.70, 0.71], [0.3, 1.1]])
def test_two_sessions_are_no_surer_than_other_programs_and_no_surer_than_they_look(values: list[float]) -> None:
    estimate = speedups.estimate_all(observed({"x": values}))["x"]
    own, degrees = stdev(values) ** 2, 1 + OF_PROCESSES.degrees_of_freedom
    drawn = (OF_PROCESSES.degrees_of_freedom * OF_PROCESSES.variance + own) / degrees
    half = float(reference.t.ppf(0.975, degrees)) * math.sqrt(max(own, drawn) / 2)
    assert estimate.lent
    assert math.log(estimate.high) == pytest.approx(sum(values) / 2 + half)
    assert math.log(estimate.low) == pytest.approx(sum(values) / 2 - half)


def test_only_two_sessions_of_windows_are_lent_anything() -> None:
    table = {"two": [0.5, 0.52], "three": [0.5, 0.52, 0.49], "aa": [0.01, 0.0]}
    started = [Observation(100 + s, 0, "started", value, of_processes=True) for s, value in enumerate((0.5, 0.52))]
    estimates = speedups.estimate_all([*observed(table), *started])
    assert [name for name, each in estimates.items() if each.lent] == ["two"]
    assert estimates["started"].degrees_of_freedom == 1


@pytest.mark.parametrize(("ratio", "expected"), [(1.05, "cannot_tell"), (2.0, "faster"), (0.5, "slower")])
def test_two_sessions_claim_what_is_large(ratio: float, expected: str) -> None:
    table = {"x": [math.log(ratio) + 0.02, math.log(ratio) - 0.02]}
    estimate = speedups.estimate_all(observed(table))["x"]
    assert speedups.verdict(estimate, adjusted_p=min(1.0, 10 * estimate.p_value), floor=0.01) == expected


@given(st.lists(st.floats(-30, 30), min_size=2, max_size=40))
def test_a_variance_is_the_exact_one(values: list[float]) -> None:
    assert variance(values) == pytest.approx(exact(values), rel=1e-9, abs=1e-24)
    assert variance(values, 1.0) == pytest.approx(exact(values, 1.0), rel=1e-9)
    with pytest.raises(ValueError, match="no variance"):
        variance(values[:1])


@pytest.mark.parametrize("typical_luck", [0.005, 0.03, 0.057, 0.08])
def test_two_sessions_hold_the_truth(typical_luck: float) -> None:
    """Where programs differ in how much their processes differ, as they do. Wilder programs than those known: above."""
    rng = random.Random(3)
    inside = 0
    for _ in range(2000):
        degrees = OF_PROCESSES.degrees_of_freedom
        luck = typical_luck * math.sqrt(degrees / rng.gammavariate(degrees / 2, 2))
        shared = [rng.gauss(0, 0.7 * luck) for _ in range(2)]
        table = {f"fix {k}": [0.3 + value + rng.gauss(0, 0.7 * luck) for value in shared] for k in range(3)}
        estimate = speedups.estimate_all(observed(table))["fix 0"]
        inside += estimate.low <= math.exp(0.3) <= estimate.high
    assert inside / 2000 >= 0.94


def test_nothing_in_nothing_out() -> None:
    assert speedups.estimate_all([]) == {}
    assert speedups.holm([]) == []


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_ratio_that_is_not_finite_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="'x' in session 2"):
        speedups.estimate_all([Observation(2, 0, "x", value)])


def test_a_level_outside_0_to_1_is_refused() -> None:
    with pytest.raises(ValueError, match="level"):
        speedups.estimate_all([], level=95)


log_ratios = st.floats(-2, 2).map(lambda x: round(x, 6))
examinations = st.lists(
    st.builds(Observation, st.integers(0, 4), st.integers(0, 2), st.sampled_from(["aa", *"uvwxyz"]), log_ratios),
    min_size=1,
    max_size=60,
)


@given(examinations, st.randoms(use_true_random=False))
def test_order_of_observations_changes_nothing(seen: list[Observation], rng: random.Random) -> None:
    shuffled = list(seen)
    rng.shuffle(shuffled)
    assert speedups.estimate_all(shuffled) == speedups.estimate_all(seen)


@given(examinations)
def test_every_interval_holds_its_estimate_and_agrees_with_its_p_value(seen: list[Observation]) -> None:
    for estimate in speedups.estimate_all(seen).values():
        assert 0 <= estimate.low < estimate.estimate < estimate.high
        assert 0 <= estimate.p_value <= 1
        if estimate.sessions > 1:
            assert estimate.standard_error >= speedups.MINIMUM_STANDARD_ERROR
            assert estimate.degrees_of_freedom >= 1 - 1e-9
        if abs(estimate.p_value - 0.05) > 1e-6:
            assert (estimate.p_value < 0.05) == (not estimate.low <= 1 <= estimate.high)


@given(examinations, st.floats(-1, 1))
def test_a_constant_moves_every_estimate_and_no_spread(seen: list[Observation], constant: float) -> None:
    moved = speedups.estimate_all([replace(each, log_ratio=each.log_ratio + constant) for each in seen])
    for name, before in speedups.estimate_all(seen).items():
        assert moved[name].log_mean == pytest.approx(before.log_mean + constant, abs=1e-9)
        assert moved[name].standard_error == pytest.approx(before.standard_error, rel=1e-4, abs=1e-7)


@settings(deadline=None)
@given(st.integers(0, 10_000), st.floats(1, 5), st.integers(1, 9), st.integers(3, 6))
def test_scaling_log_ratios_scales_everything(seed: int, factor: float, fixes: int, sessions: int) -> None:
    rng = random.Random(seed)
    table = {f"fix {k}": [rng.gauss(0.1, 0.3) for _ in range(sessions)] for k in range(fixes)}
    scaled = {name: [factor * value for value in row] for name, row in table.items()}
    after = speedups.estimate_all(observed(scaled))
    for name, before in speedups.estimate_all(observed(table)).items():
        if before.standard_error > 10 * speedups.MINIMUM_STANDARD_ERROR:
            assert after[name].log_mean == pytest.approx(factor * before.log_mean)
            assert after[name].standard_error == pytest.approx(factor * before.standard_error, rel=1e-3)
            assert after[name].p_value == pytest.approx(before.p_value, rel=1e-2, abs=1e-9)


@given(examinations, st.floats(0.5, 0.94), st.floats(0.96, 0.999))
def test_a_higher_level_is_a_wider_interval(seen: list[Observation], lower: float, higher: float) -> None:
    narrow, wide = speedups.estimate_all(seen, level=lower), speedups.estimate_all(seen, level=higher)
    assert all(wide[name].low <= narrow[name].low and narrow[name].high <= wide[name].high for name in narrow)


# Holm


def test_holm_known_answers() -> None:
    assert speedups.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert speedups.holm([0.2]) == [0.2]
    assert speedups.holm([0.9, 0.8]) == [1.0, 1.0]


@given(st.lists(st.floats(0, 1), max_size=15))
def test_holm_keeps_the_order_and_lies_between_the_raw_and_the_bonferroni_values(p_values: list[float]) -> None:
    adjusted = speedups.holm(p_values)
    for raw, after in zip(p_values, adjusted, strict=True):
        assert raw <= after <= min(1, len(p_values) * raw)
    ordered = [after for _, after in sorted(zip(p_values, adjusted, strict=True))]
    assert ordered == sorted(ordered)


# Noise floor and verdicts


def test_the_floor_without_a_control_is_the_minimum() -> None:
    assert speedups.noise_floor({}) == 0.01
    assert speedups.noise_floor(speedups.estimate_all(observed({"x": [0.1, 0.2, 0.3]})), minimum=0.03) == 0.03


def test_a_quiet_control_leaves_the_minimum() -> None:
    assert speedups.noise_floor(speedups.estimate_all(observed({"aa": [0.002, -0.001, 0.001]}))) == 0.01


def test_the_floor_is_what_doing_nothing_looks_like() -> None:
    estimates = speedups.estimate_all(observed({"aa": [0.08, -0.02, 0.03], "x": [0.1, 0.2, 0.3]}))
    error = stdev([0.08, -0.02, 0.03]) / math.sqrt(3)
    assert speedups.noise_floor(estimates) == pytest.approx(math.exp(max(0.03, error)) - 1)


def test_one_wild_window_of_the_control_widens_the_floor_and_does_not_hide_everything() -> None:
    rng = random.Random(9)
    table = {f"fix {k}": [0.4 + rng.gauss(0, 0.02) for _ in range(4)] for k in range(8)}
    calm = speedups.noise_floor(speedups.estimate_all(observed({**table, "aa": [0.01, -0.01, 0.0, 0.01]})))
    wild = speedups.noise_floor(speedups.estimate_all(observed({**table, "aa": [0.01, -0.01, 0.0, 1.5]})))
    assert calm < wild < 0.1


def test_a_control_that_leans_beyond_luck_counts_in_full() -> None:
    rng = random.Random(10)
    table = {f"fix {k}": [rng.gauss(0, 0.005) for _ in range(4)] for k in range(8)}
    estimates = speedups.estimate_all(observed({**table, "aa": [0.2, 0.21, 0.19, 0.2]}))
    assert speedups.noise_floor(estimates) == pytest.approx(math.exp(0.2) - 1)


def test_the_floor_of_a_single_session_is_the_deviation_of_the_control() -> None:
    assert speedups.noise_floor(speedups.estimate_all(observed({"aa": [0.05], "x": [0.3]}))) == pytest.approx(
        math.exp(0.05) - 1
    )


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (1.05, 1.30, "faster"),
        (1.005, 1.30, "cannot_tell"),  # clear of 1, not of the floor
        (0.98, 1.30, "cannot_tell"),
        (0.70, 0.95, "slower"),
        (0.70, 0.995, "cannot_tell"),
        (0.985, 1.015, "no_difference"),
        (1.011, 1.019, "no_difference"),  # real, and too small to matter
        (0.97, 1.015, "cannot_tell"),
    ],
)
def test_verdicts(low: float, high: float, expected: str) -> None:
    assert speedups.verdict(an_estimate(low, high), adjusted_p=0.01, floor=0.01) == expected


def test_a_difference_needs_the_corrected_p_value() -> None:
    assert speedups.verdict(an_estimate(1.05, 1.3), adjusted_p=0.051, floor=0.01) == "cannot_tell"
    assert speedups.verdict(an_estimate(0.7, 0.9), adjusted_p=0.051, floor=0.01) == "cannot_tell"


def test_a_claim_by_its_own_spread_needs_three_sessions() -> None:
    for low, high in [(1.05, 1.3), (0.7, 0.9), (0.99, 1.01)]:
        assert speedups.verdict(an_estimate(low, high, sessions=2), adjusted_p=0.0, floor=0.01) == "cannot_tell"
        assert speedups.verdict(an_estimate(low, high, sessions=3), adjusted_p=0.0, floor=0.01) != "cannot_tell"


def test_the_equivalence_is_the_user_s() -> None:
    estimate = an_estimate(0.97, 1.04)
    assert speedups.verdict(estimate, adjusted_p=1, floor=0.01) == "cannot_tell"
    assert speedups.verdict(estimate, adjusted_p=1, floor=0.01, equivalence=0.05) == "no_difference"


# How much more would decide


def test_sessions_needed_of_a_decided_setting_is_none_more() -> None:
    assert speedups.sessions_needed(an_estimate(1.2, 1.3), floor=0.01) == 0
    assert speedups.sessions_needed(an_estimate(0.99, 1.01), floor=0.01) == 0


def test_sessions_needed_grows_with_the_spread_and_with_the_fixes_tried() -> None:
    near = speedups.sessions_needed(an_estimate(0.98, 1.2), floor=0.01)
    far = speedups.sessions_needed(an_estimate(0.9, 1.3), floor=0.01)
    many = speedups.sessions_needed(an_estimate(0.98, 1.2), floor=0.01, fixes_tried=12)
    assert near is not None
    assert far is not None
    assert many is not None
    assert 0 < near < far
    assert near < many


def test_blocks_needed_counts_the_blocks_of_the_new_sessions() -> None:
    estimate = an_estimate(0.98, 1.2)
    sessions = speedups.sessions_needed(estimate, floor=0.01)
    assert sessions is not None
    assert speedups.blocks_needed(estimate, floor=0.01) == 2 * sessions


def test_an_estimate_between_the_floor_and_the_equivalence_is_not_decided_by_more() -> None:
    assert speedups.blocks_needed(an_estimate(0.95, 1.09), floor=0.05) is None


def test_one_session_needs_two_more() -> None:
    estimate = speedups.estimate_all([Observation(0, b, "x", 0.3) for b in range(4)])["x"]
    assert speedups.sessions_needed(estimate, floor=0.01) == 2
    assert speedups.blocks_needed(estimate, floor=0.01) == 8


# Epochs and baselines


def test_promised_speedup_of_the_measured_jpeg_script() -> None:
    # steps 0.74 of the baseline's speed, and a worker restart of 3.4 baseline steps every 25 batches
    promised = speedups.promised_log_ratio(25, 1.0, 0.0, 1 / 0.74, 3.4)
    assert math.exp(promised) == pytest.approx(25 / (25 / 0.74 + 3.4))
    assert math.exp(promised) == pytest.approx(0.67, abs=0.005)


def test_an_endless_epoch_promises_the_steady_ratio() -> None:
    assert speedups.promised_log_ratio(None, 1.0, 50.0, 0.5, 90.0) == pytest.approx(math.log(2))
    assert speedups.promised_log_ratio(10**9, 1.0, 50.0, 0.5, 90.0) == pytest.approx(math.log(2), abs=1e-6)


@pytest.mark.parametrize(
    ("at", "expected"), [(0, 1.0), (10, 1.0), (15, 2.0), (20, 4.0), (25, 2.0), (30, 1.0), (99, 1.0)]
)
def test_the_baseline_moves_log_linearly_between_its_windows(at: float, expected: float) -> None:
    assert speedups.baseline_at([20, 10, 30], [4.0, 1.0, 1.0], at) == pytest.approx(expected)


def test_exponential_drift_cancels() -> None:
    def drift(at: float) -> float:
        return 0.1 * math.exp(0.03 * at)

    times = [0.0, 7.0, 31.0]
    assert speedups.baseline_at(times, [drift(t) for t in times], 12.5) == pytest.approx(drift(12.5))


def test_a_block_without_a_baseline_is_refused() -> None:
    with pytest.raises(ValueError, match="no baseline window"):
        speedups.baseline_at([], [], 1.0)


def test_two_baseline_windows_at_one_moment() -> None:
    assert speedups.baseline_at([5, 5, 9], [2.0, 3.0, 3.0], 5) in (2.0, 3.0)


# Weight


def test_importing_the_statistics_imports_no_library() -> None:
    code = "import sys, bottleneck_doctor.statistics.speedups; print({'numpy', 'scipy', 'torch'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"
