"""Settings that a process has to be started with, on a machine that is made up: when pairs are taken, in which order,
and what is said of them."""

from __future__ import annotations

import os

import pytest
from tests.unit.made_up_machine import Examined, Machine, Training

from bottleneck_doctor.documents import labels
from bottleneck_doctor.documents.report import FixOutcome
from bottleneck_doctor.examine.pair_costs import PAIRS, ROUNDS
from bottleneck_doctor.fixes import allocator as fix
from bottleneck_doctor.knobs import allocator

KEEPS = labels.key_of({allocator.NAME: allocator.KEEPS})
VARIABLE = next(iter(allocator.KEEPING))


@pytest.fixture(autouse=True)
def no_other_allocators(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allocator, "installed", lambda name: None)
    for name in (*allocator.KEEPING, "LD_PRELOAD"):
        monkeypatch.delenv(name, raising=False)


def examined(kept: Training, *, kernel: float = 0.3, budget: float | None = None, **given: float) -> Examined:
    """A training that the kernel works for, and what it is where it keeps its memory."""
    machine = Machine(wait=0.02, kernel=kernel, started_with={VARIABLE: kept}, **given)  # type: ignore[arg-type]
    return Examined(machine, budget=budget, only=frozenset({"allocator"}))


def outcome(made: Examined) -> FixOutcome:
    return next(each for each in made.result.fixes if each.id == "allocator")


def test_what_a_process_is_started_with_is_measured_in_pairs_that_train_in_turn() -> None:
    made = examined(Training(step=0.008, wait=0.02))
    found = outcome(made)
    assert found.status == "faster"
    assert found.speedup is not None
    assert found.speedup.estimate == pytest.approx(1.25, abs=0.01)
    assert (found.speedup.pairs, found.speedup.sessions) == (PAIRS, PAIRS)
    assert found.change is None or VARIABLE in found.change.note
    assert VARIABLE in made.result.verdict.sentence, "the verdict says what to set"
    beside = [each for each in made.result.windows if each.label in (KEEPS, labels.BESIDE)]
    assert len(beside) == 2 * PAIRS * ROUNDS
    assert {each.label: each.setting for each in beside} == {
        KEEPS: {allocator.NAME: allocator.KEEPS},
        labels.BESIDE: {},
    }
    in_order = [each.label for each in sorted(beside, key=lambda each: each.started)]
    rounds = [set(in_order[at : at + 2]) for at in range(0, len(in_order), 2)]
    assert all(len(each) == 2 for each in rounds), "each round holds a window of both"


def test_what_makes_no_difference_is_not_called_faster() -> None:
    found = outcome(examined(Training(wait=0.02)))
    assert found.status == "no_difference"


@pytest.mark.parametrize("kernel", [0.0, 0.015])
def test_what_the_kernel_hardly_works_for_is_not_tried(kernel: float) -> None:
    made = examined(Training(step=0.005), kernel=kernel)
    assert outcome(made).status == "not_applicable"
    assert "the kernel works for" in outcome(made).reason
    assert KEEPS not in {each.label for each in made.result.windows}


def test_a_process_that_fails_with_a_setting_is_the_settings_fault() -> None:
    found = outcome(examined(Training(steps=4, code=1)))
    assert found.status == "failed"
    assert found.reason


def test_there_is_no_time_for_pairs_in_a_small_budget() -> None:
    made = examined(Training(step=0.008), budget=25.0, start=4.0)
    assert outcome(made).status == "cannot_tell"
    assert "time was over" in outcome(made).reason
    assert made.machine.now <= 25.0


def test_what_is_set_already_is_not_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "LD_PRELOAD", "/usr/lib/libjemalloc.so.2")
    assert outcome(examined(Training(step=0.008))).reason == "already on: `jemalloc` is set"
    assert "LD_PRELOAD" in fix.FIX.how
