"""The time that explaining may take: bounded, and never the measurement's."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.test_evidence import window

from bottleneck_doctor.documents.report import Window
from bottleneck_doctor.explain.explainer import (
    ALLOWANCE,
    ALLOWANCE_SHARE,
    LARGEST_SHARE,
    LINES_SECONDS,
    Explainer,
    Wishes,
    reserve,
)
from bottleneck_doctor.measure.prober import Clock, SessionOver
from bottleneck_doctor.system.progress import choose_progress


def make(clock: Clock, allowance: float) -> Explainer:
    unused: Any = None
    return Explainer(
        unused, unused, clock, choose_progress(quiet=True, verbose=False), Wishes(folder=Path()), allowance
    )


def test_our_own_budget_is_left_whole() -> None:
    clock = Clock(180.0, strict=False)
    assert reserve(clock) == ALLOWANCE
    assert clock.budget == 180.0


def test_a_budget_that_the_user_set_is_shared() -> None:
    clock = Clock(100.0, strict=True)
    assert reserve(clock) == pytest.approx(100 * ALLOWANCE_SHARE, rel=0.01)
    assert clock.budget == pytest.approx(100 * (1 - ALLOWANCE_SHARE), rel=0.01)


def test_a_dear_start_leaves_less_to_explain_and_not_nothing_to_measure() -> None:
    clock = Clock(30.0, strict=True, started=time.monotonic() - 13.4)
    assert reserve(clock) <= LARGEST_SHARE * 16.6
    assert clock.left() >= (1 - LARGEST_SHARE) * 16.5
    assert reserve(Clock(30.0, strict=True, started=time.monotonic() - 40.0)) == 0.0


@pytest.mark.parametrize("budget", [5.0, 30.0, 60.0, 100.0, 600.0])
def test_no_budget_is_spent_on_explaining_for_the_greater_part(budget: float) -> None:
    clock = Clock(budget, strict=True)
    seconds = reserve(clock)
    assert seconds + clock.budget == pytest.approx(budget)
    assert seconds <= 0.4 * budget + 1e-9


def test_explaining_takes_nothing_of_what_is_left_to_measure() -> None:
    clock = Clock(100.0, strict=True)
    explainer = make(clock, 5.0)
    before = clock.left()
    with explainer.on_the_allowance():
        time.sleep(0.2)
        with explainer.on_the_allowance():
            time.sleep(0.1)
        assert clock.left() > before
    assert clock.left() == pytest.approx(before, abs=0.05)


@pytest.mark.parametrize("strict", [True, False])
def test_what_is_lent_to_measuring_comes_back_as_far_as_it_is_left(strict: bool) -> None:
    clock = Clock(10.0, strict=strict, started=time.monotonic() - 8.0)
    explainer = make(clock, 6.0)
    with explainer.lent():
        assert clock.left() == pytest.approx(8.0, abs=0.1)
        clock.started -= 3.0
    # Two of its own, and one of those that were lent.
    assert explainer.left() == pytest.approx(5.0, abs=0.1)
    assert clock.left() == pytest.approx(0.0, abs=0.1)
    with explainer.lent():
        clock.started -= 9.0
    assert explainer.left() == 0.0


def test_what_is_spent_is_spent_even_where_the_session_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    explainer = make(Clock(100.0, strict=True), LINES_SECONDS + 3.0)
    monkeypatch.setattr(explainer, "_lines_seconds", lambda: LINES_SECONDS)
    assert explainer.wants_session(0.0)

    def ended() -> None:
        with explainer.on_the_allowance():
            time.sleep(0.3)
            raise SessionOver("the script came to its end")

    with pytest.raises(SessionOver):
        ended()
    assert explainer.wants_session(2.0)
    assert not explainer.wants_session(2.8)
    (cut,) = explainer.explanation.missing
    assert cut.slug == "explanation-cut"
    assert "lines" in cut.sentence


def test_what_cannot_be_read_is_missing_and_costs_nothing_else() -> None:
    explainer = make(Clock(100.0, strict=True), 10.0)
    found: Any = None
    explainer._within("phases", 1.0, lambda: explainer.explanation.read_phases({}, [{"phases": 3}], found))
    (missing,) = explainer.explanation.missing
    assert missing.slug == "explanation-unreadable"
    assert "(phases)" in missing.sentence


@pytest.mark.parametrize("error", [AttributeError, TypeError, KeyError, ValueError, ZeroDivisionError])
def test_an_error_of_our_own_is_not_taken_for_something_unreadable(error: type[Exception]) -> None:
    explainer = make(Clock(100.0, strict=True), 10.0)

    def broken() -> None:
        raise error("a bug of ours")

    with pytest.raises(error, match="a bug of ours"):
        explainer._within("phases", 1.0, broken)
    assert not explainer.explanation.missing


class Told:
    """A prober whose windows of phases take as long as told; a timed step takes 0.1 s."""

    def __init__(self, *steps: float) -> None:
        self.steps = list(steps)

    def explain(self, *_: Any, **__: Any) -> tuple[Window, dict[str, Any]]:
        step = self.steps.pop(0)
        return window(mode="phases", steps=10, seconds=10 * step), {"step": step}

    def explaining_seconds(self, *_: Any, **__: Any) -> float:
        return 1.0

    def expected_step(self, _: Any) -> float:
        return 0.1


@pytest.mark.parametrize(
    ("took", "kept"), [((0.1,), [0.1]), ((0.3, 0.11), [0.11]), ((0.3, 0.4), [0.3]), ((0.4, 0.3), [0.3])]
)
def test_phases_that_a_neighbour_slowed_are_taken_once_more(
    took: tuple[float, ...], kept: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    explainer = make(Clock(100.0, strict=True), 10.0)
    told = Told(*took)
    read: list[list[float]] = []
    phases_of(explainer, told, monkeypatch, read)
    session: Any = SimpleNamespace(number=1)
    explainer._phases(session, {})
    assert (read[-1], told.steps) == (kept, [])


@pytest.mark.parametrize(
    ("took", "kept"), [((0.1, 0.11), [0.1, 0.11]), ((0.3, 0.11), [0.11]), ((0.1, 0.3), [0.1]), ((0.3, 0.4), [0.3])]
)
def test_first_phases_are_judged_once_a_step_is_known(
    took: tuple[float, ...], kept: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first window comes before anything was timed; the one at the end of the process says more of the same."""
    explainer = make(Clock(100.0, strict=True), 10.0)
    told = Told(*took)
    read: list[list[float]] = []
    phases_of(explainer, told, monkeypatch, read)
    session: Any = SimpleNamespace(number=1)
    explainer._phases(session, {}, most_seconds=5.0)
    assert len(told.steps) == 1, "it is not taken twice in a row"
    explainer._phases(session, {})
    assert (read[-1], told.steps) == (kept, [])


def phases_of(explainer: Explainer, told: Told, monkeypatch: pytest.MonkeyPatch, read: list[list[float]]) -> None:
    """Let the explainer ask `told`, and note in `read` what it takes in."""
    monkeypatch.setattr(explainer, "_prober", told)
    monkeypatch.setattr(explainer, "_measured", SimpleNamespace(found=None, windows=[]))
    monkeypatch.setattr(
        explainer.explanation, "read_phases", lambda _, details, __: read.append([each["step"] for each in details])
    )
    monkeypatch.setattr(explainer.explanation, "read_pause", lambda *_: None)
