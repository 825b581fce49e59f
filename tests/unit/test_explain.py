"""The time that explaining may take: bounded, and never the measurement's."""

from __future__ import annotations

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
    ExplainOptions,
    reserve,
)
from bottleneck_doctor.explain.phased import PhasedWindows
from bottleneck_doctor.measure.budget import Allowance, Budget
from bottleneck_doctor.profiling.pyspy import usual_rate
from bottleneck_doctor.session.ending import Ending, SessionOver
from bottleneck_doctor.system.progress import choose_progress


class Passing:
    """A clock that goes on when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def make(seconds: float = 10.0, now: Passing | None = None) -> Explainer:
    """One with an allowance of so many seconds."""
    unused: Any = None
    budget = Budget(100.0, strict=True, now=now or Passing())
    progress = choose_progress(quiet=True, verbose=False)
    allowance = Allowance(budget, seconds, inside=budget.strict)
    return Explainer(unused, unused, budget, progress, ExplainOptions(folder=Path()), allowance)


@pytest.mark.parametrize(("processes", "rate"), [(1, 100), (4, 100), (5, 80), (11, 36), (1000, 1)])
def test_many_processes_are_sampled_less_often(processes: int, rate: int) -> None:
    assert usual_rate(processes) == rate


def test_our_own_budget_is_left_whole() -> None:
    budget = Budget(180.0, strict=False, now=Passing())
    assert reserve(budget).left() == ALLOWANCE
    assert budget.seconds == 180.0


def test_a_budget_that_the_user_set_is_shared() -> None:
    budget = Budget(100.0, strict=True, now=Passing())
    assert reserve(budget).seconds == 100 * ALLOWANCE_SHARE
    assert budget.seconds == 100 * (1 - ALLOWANCE_SHARE)


def test_a_dear_start_leaves_less_to_explain_and_not_nothing_to_measure() -> None:
    now = Passing()
    budget = Budget(30.0, strict=True, now=now)
    now.now = 13.4
    assert reserve(budget).seconds <= LARGEST_SHARE * 16.6
    assert budget.left() >= (1 - LARGEST_SHARE) * 16.5
    now.now = 40.0
    assert reserve(budget).seconds == 0.0


@pytest.mark.parametrize("seconds", [5.0, 30.0, 60.0, 100.0, 600.0])
def test_no_budget_is_spent_on_explaining_for_the_greater_part(seconds: float) -> None:
    budget = Budget(seconds, strict=True, now=Passing())
    reserved = reserve(budget).seconds
    assert reserved + budget.seconds == pytest.approx(seconds)
    assert reserved <= 0.4 * seconds + 1e-9


def test_what_is_spent_is_spent_even_where_the_session_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    now = Passing()
    explainer = make(LINES_SECONDS + 3.0, now)
    monkeypatch.setattr(explainer, "_lines_seconds", lambda: LINES_SECONDS)
    assert explainer.wants_session(0.0)

    def ended() -> None:
        with explainer.allowance.charged():
            now.now += 0.3
            raise SessionOver(Ending.END)

    with pytest.raises(SessionOver):
        ended()
    assert explainer.wants_session(2.0)
    assert not explainer.wants_session(2.8)
    (cut,) = explainer.explanation.missing
    assert cut.slug == "explanation-cut"
    assert "lines" in cut.sentence


def test_what_cannot_be_read_is_missing_and_costs_nothing_else() -> None:
    explainer = make()
    found: Any = None
    explainer._within(["phases"], 1.0, lambda: explainer.explanation.read_phases({}, [{"phases": 3}], found))
    (missing,) = explainer.explanation.missing
    assert missing.slug == "explanation-unreadable"
    assert "the phases of a step" in missing.sentence


@pytest.mark.parametrize("error", [AttributeError, TypeError, KeyError, ValueError, ZeroDivisionError])
def test_an_error_of_our_own_is_not_taken_for_something_unreadable(error: type[Exception]) -> None:
    explainer = make()

    def broken() -> None:
        raise error("a bug of ours")

    with pytest.raises(error, match="a bug of ours"):
        explainer._within(["phases"], 1.0, broken)
    assert not explainer.explanation.missing


class Told:
    """A prober whose windows of phases take as long as told; a timed step takes 0.1 s."""

    def __init__(self, *steps: float) -> None:
        self.steps = list(steps)

    def explain(self, *_: Any, **__: Any) -> tuple[Window, dict[str, Any]]:
        step = self.steps.pop(0)
        return window(mode="phases", steps=10, seconds=10 * step), {"step": step}

    costs = SimpleNamespace(explaining=lambda *_, **__: 1.0, expected_step=lambda _: 0.1)


@pytest.mark.parametrize(
    ("took", "kept"),
    [((0.1,), [0.1]), ((0.3, 0.11), [0.11]), ((0.3, 0.4, 0.35), [0.3]), ((0.4, 0.3, 0.12), [0.12])],
)
def test_phases_that_a_neighbour_slowed_are_taken_again(
    took: tuple[float, ...], kept: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    explainer = make()
    told = Told(*took)
    read: list[list[float]] = []
    phases_of(explainer, told, monkeypatch, read)
    live: Any = SimpleNamespace(session=SimpleNamespace(number=1))
    explainer._phases(live, {})
    assert (read[-1], told.steps) == (kept, [])


@pytest.mark.parametrize(
    ("took", "kept"),
    [
        ((0.1, 0.11), [0.1, 0.11]),
        ((0.3, 0.11), [0.11]),
        ((0.1, 0.3, 0.12), [0.1, 0.12]),
        ((0.3, 0.4, 0.35), [0.3]),
    ],
)
def test_first_phases_are_judged_once_a_step_is_known(
    took: tuple[float, ...], kept: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first window comes before anything was timed; the one at the end of the process says more of the same."""
    explainer = make()
    told = Told(*took)
    read: list[list[float]] = []
    phases_of(explainer, told, monkeypatch, read)
    live: Any = SimpleNamespace(session=SimpleNamespace(number=1))
    explainer._phases(live, {}, most_seconds=5.0)
    assert len(told.steps) == len(took) - 1, "it is not taken twice in a row"
    explainer._phases(live, {})
    assert (read[-1], told.steps) == (kept, [])


def phases_of(explainer: Explainer, told: Told, monkeypatch: pytest.MonkeyPatch, read: list[list[float]]) -> None:
    """Let the explainer ask `told`, and note in `read` what it takes in."""
    monkeypatch.setattr(explainer, "_prober", told)
    measured: Any = SimpleNamespace(found=None, windows=[], epoch_batches=None)
    monkeypatch.setattr(explainer, "_measured", measured)
    asked: Any = told
    monkeypatch.setattr(explainer, "_phased", PhasedWindows(measured, asked))
    monkeypatch.setattr(
        explainer.explanation, "read_phases", lambda _, details, __: read.append([each["step"] for each in details])
    )
    monkeypatch.setattr("bottleneck_doctor.measure.first_look.heed", lambda *_: None)
