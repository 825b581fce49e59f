"""Why nothing is claimed: every sentence is true of the interval that it speaks of."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bottleneck_doctor.documents.report import FixOutcome, Speedup
from bottleneck_doctor.examine import undecided
from bottleneck_doctor.statistics import speedups

logs = st.floats(-1.5, 1.5).filter(lambda value: value == 0 or abs(value) > 1e-5)
floors = st.floats(speedups.MINIMUM_FLOOR, 0.5)


def estimate(low: float, high: float, sessions: int = 3) -> Speedup:
    return Speedup(estimate=math.sqrt(low * high), low=low, high=high, pairs=2 * sessions, sessions=sessions)


def figures(sentence: str) -> list[float]:
    return [float(text) for text in re.findall(r"([\d.]+)×", sentence)]


@given(one=logs, other=logs, floor=floors, tried=st.integers(1, 12))
def test_every_reason_is_true_of_its_interval(one: float, other: float, floor: float, tried: int) -> None:
    low, high = sorted((math.exp(one), math.exp(other)))
    assume(not (low >= 1 / (1 + speedups.EQUIVALENCE) and high <= 1 + speedups.EQUIVALENCE))
    assume(all(abs(end / bound - 1) > 1e-5 for end in (low, high) for bound in (1 + floor, 1 / (1 + floor))))
    said = undecided.reason(estimate(low, high), floor=floor, tried=tried)
    numbers = figures(said)
    assert numbers
    if "may be slower or faster" in said:
        assert numbers == [pytest.approx(low, abs=0.0051), pytest.approx(high, abs=0.0051)]
        assert low < 1 < high
        assert numbers[0] < 1 < numbers[1], "what is written stands on both sides of 1 as well"
    elif "looks faster" in said:
        assert low >= 1
        assert numbers[0] == pytest.approx(low, abs=0.0051)
        assert numbers[0] >= 1
        if "noise" in said:
            assert low <= 1 + floor
            assert numbers[1] == pytest.approx(1 + floor, abs=0.0051)
            assert numbers[0] < numbers[1]
        else:
            assert low > 1 + floor
            assert said.endswith(
                "but that may still be chance" + (f", since {tried} fixes were tried" if tried > 1 else "")
            )
    else:
        assert "looks slower" in said
        assert high <= 1
        assert numbers[0] == pytest.approx(high, abs=0.0051)
        assert numbers[0] <= 1
        if "noise" in said:
            assert high >= 1 / (1 + floor)
            assert numbers[0] > numbers[1]
        else:
            assert high < 1 / (1 + floor)


def test_an_interval_below_one_holds_no_gain() -> None:
    said = undecided.reason(estimate(0.78, 0.994), floor=0.03, tried=4)
    assert said == (
        "it looks slower, but the interval ends at 0.99×, and with this much noise it would have to end below 0.97×"
    )


@pytest.mark.parametrize("sessions", [1, 2])
def test_few_processes_are_the_reason_whatever_the_interval(sessions: int) -> None:
    said = undecided.reason(estimate(1.5, 1.6, sessions), floor=0.01, tried=1, over="`num_workers=4`")
    processes = "1 process" if sessions == 1 else "2 processes"
    assert said.startswith(f"on top of `num_workers=4` it was measured in only {processes}, and")


def outcome(low: float, high: float, sessions: int) -> FixOutcome:
    return FixOutcome(
        id="x", title="", why="", setting={"num_workers": 3}, status="cannot_tell", risk="identical", reason="why",
        speedup=estimate(low, high, sessions),
    )  # fmt: skip


@given(
    ends=st.lists(st.tuples(logs, logs, st.integers(1, 5)), min_size=1, max_size=4), late=st.booleans(),
    decided=st.booleans(),
)  # fmt: skip
def test_no_verdict_names_what_is_no_gain(ends: list[tuple[float, float, int]], late: bool, decided: bool) -> None:
    found = [outcome(math.exp(min(pair)), math.exp(max(pair)), sessions) for *pair, sessions in ends]
    lost = FixOutcome(
        id="y", title="", why="", setting={}, status="cannot_tell", risk="identical", reason="the time was over"
    )
    others = [outcome(0.5, 0.6, 3)] if decided else []
    said = undecided.sentence(found + [lost] * late, others, "cpu", "the time was over")
    best = max(each.speedup.estimate for each in found if each.speedup is not None)
    assert ("num_workers" in said) is (best > undecided.WORTH_NAMING)
    if "num_workers" in said:
        assert all(figure > 1 for figure in figures(said)[:1])
    elif "up to" in said:
        percent = float(re.findall(r"up to (\d+) %", said)[0])
        assert all(100 * (each.speedup.high - 1) <= percent + 1e-6 for each in found if each.speedup is not None)
    elif "yet" not in said:
        assert all(each.speedup.high <= undecided.WORTH_NAMING for each in found if each.speedup is not None)


def test_a_fix_that_adds_nothing_to_what_it_builds_on_does_not_lead() -> None:
    base = outcome(1.3, 1.5, 2)
    dependent = FixOutcome(
        id="d", title="", why="", setting={"num_workers": 3, "prefetch_factor": 4}, status="cannot_tell",
        risk="identical", reason="why", speedup=estimate(1.35, 1.5, 2), over=base.setting, added=estimate(0.9, 1.1, 2),
    )  # fmt: skip
    assert "prefetch" not in undecided.sentence([base, dependent], [], "cpu", "the time was over")


def test_where_nothing_is_likely_to_help_the_verdict_says_so() -> None:
    """A loop at the limit of its processor: what looks like a gain of 3 % has hardly a chance to be one."""
    likeliest, behind = replace(outcome(0.999, 1.061, 7), chance=0.06), replace(outcome(0.92, 0.99, 3), chance=0.004)
    said = undecided.sentence([likeliest, behind], [], "cpu", "the time was over")
    assert said == (
        "Nothing that was tried is likely to help: the likeliest is `num_workers=3`, measured at 1.03× (95 % "
        "1.00–1.06, 14 pairs), with a chance of about 6 % to be worth the edit."
    )
    assert undecided.sentence([behind], [], "cpu", "the time was over") == "Nothing that was tried is likely to help."
    lost = replace(behind, speedup=None, chance=None)
    said = undecided.sentence([behind, lost], [], "cpu", "the time was over")
    assert said.endswith("likely to help. The time was over before 1 more fix could be measured.")
    # One that may help is named as before, and so is one whose chance nobody knows.
    assert undecided.sentence([replace(likeliest, chance=0.3), behind], [], "cpu", "").startswith("Cannot tell: ")
    assert undecided.sentence([outcome(0.999, 1.061, 7), behind], [], "cpu", "").startswith("Cannot tell: ")


def test_what_is_no_more_likely_than_not_and_stays_open_has_no_long_explanation() -> None:
    hopeless = f"it looks faster, but{undecided.AND_NEVER}{undecided.PAIRS_TAKEN}"
    open_still = replace(outcome(0.97, 1.29, 3), chance=0.32, reason=hopeless)
    said = undecided.sentence([open_still], [], "cpu", "the time was over")
    assert said == (
        "Nothing that was tried is sure to help: the likeliest is `num_workers=3`, measured at 1.12× (95 % 0.97–1.29, "
        "6 pairs), with a chance of about 32 % to be worth the edit."
    )
    # What more time would settle, and what may well help, are told with their reasons.
    assert undecided.sentence([replace(open_still, reason="why")], [], "cpu", "").startswith("Cannot tell: ")
    assert undecided.sentence([replace(open_still, chance=0.6)], [], "cpu", "").startswith("Cannot tell: ")


def test_the_likeliest_has_the_best_chance_also_where_another_seems_to_bring_more() -> None:
    seems_more = replace(outcome(0.9, 1.5, 3), chance=0.151)
    likeliest = replace(outcome(0.99, 1.14, 4), chance=0.19, setting={"num_workers": 4})
    said = undecided.sentence([seems_more, likeliest], [], "cpu", "the time was over")
    assert "the likeliest is `num_workers=4`" in said
    assert "about 19 %" in said
    seems_more, likeliest = replace(seems_more, chance=0.62), replace(likeliest, chance=0.64)
    advice = undecided.quieter([seems_more, likeliest], "cpu", others=False)
    assert advice.endswith("Best chance so far: `num_workers=4` (64 %).")
