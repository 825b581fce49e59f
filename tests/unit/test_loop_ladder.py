"""After how many steps a loop without a loader is found."""

from __future__ import annotations

import pytest
import torch
from torch.utils.data import DataLoader

from bottleneck_doctor.runtime.loop import closures, ladder, records
from bottleneck_doctor.runtime.loop import steps as all_steps
from bottleneck_doctor.runtime.loop.ladder import look, look_at_backwards, look_at_closures
from bottleneck_doctor.runtime.loop.period import MINIMUM_STEPS
from bottleneck_doctor.runtime.loop.steps import Steps
from bottleneck_doctor.runtime.wire.expected import BARE_STEPS, CLOSURE_PASSES, Expected


def steps_until_found(
    monkeypatch: pytest.MonkeyPatch,
    seconds: float,
    expected: Expected | None = None,
    *,
    first: DataLoader[int] | None = None,
) -> int:
    """Of a loop whose optimizer steps once in `seconds`. `first`: a loader that it has taken one batch from."""
    clock = [1000.0]
    for module in (ladder, records, all_steps):
        monkeypatch.setattr(module, "now", lambda: clock[0])
    steps = Steps()
    steps.started = clock[0]
    if first is not None:
        steps.batch_delivered(first, clock[0], clock[0], 4.0)
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
    for number in range(1, 4000):
        clock[0] += seconds
        steps.optimizer_steps += 1
        steps._observe_optimizer(optimizer)
        if (loop := look(steps, expected)) is not None:
            assert (loop.rung, loop.period, loop.record) == ("optimizer step", 1, None)
            return number
    raise AssertionError("not found")


def test_fewer_long_steps_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twelve steps of 22 s are four minutes."""
    assert steps_until_found(monkeypatch, 0.05) == BARE_STEPS
    assert steps_until_found(monkeypatch, 1.5) == BARE_STEPS
    assert steps_until_found(monkeypatch, 3.0) == 8
    assert steps_until_found(monkeypatch, 22.0) == MINIMUM_STEPS


def test_what_trains_on_one_batch_is_a_loop_without_a_loader(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes all of its data from a loader when it begins, and never asks again."""
    loader: DataLoader[int] = DataLoader(range(8), batch_size=4)  # type: ignore[arg-type]
    assert steps_until_found(monkeypatch, 0.011, first=loader) == 1376, "for 15 s, batches may still come"
    assert steps_until_found(monkeypatch, 1.0, first=loader) == 40
    assert steps_until_found(monkeypatch, 3.0, first=loader) == 22
    assert steps_until_found(monkeypatch, 22.0, first=loader) == BARE_STEPS
    known = Expected("optimizer step", 1, [])
    assert steps_until_found(monkeypatch, 0.05, known, first=loader) == BARE_STEPS


def passes_until_found(monkeypatch: pytest.MonkeyPatch, seconds: float, *, stepped: bool) -> int:
    """Of a program with an optimizer that makes backward passes and no steps. `stepped`: it had made one before."""
    clock = [1000.0]
    for module in (ladder, records, all_steps):
        monkeypatch.setattr(module, "now", lambda: clock[0])
    steps = Steps()
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
    if stepped:
        steps.optimizer_steps += 1
        steps._observe_optimizer(optimizer)
    for number in range(1, 40000):
        clock[0] += seconds
        steps.own_backwards += 1
        steps.bare_backwards.add(("backward", ("train.py", 3)))
        if (loop := look_at_backwards(steps)) is not None:
            assert (loop.rung, loop.record) == ("backward", None)
            return number
    raise AssertionError("not found")


@pytest.mark.parametrize(("stepped", "least"), [(False, 30.0), (True, 180.0)])
def test_an_evaluation_that_computes_gradients_is_not_taken_for_the_training(
    monkeypatch: pytest.MonkeyPatch, stepped: bool, least: float
) -> None:
    """MAML evaluates after its first step, and trains a copy of its model for each task: 10 000 passes of 7 ms."""
    number = passes_until_found(monkeypatch, 0.007, stepped=stepped)
    assert least < 0.007 * number < least + 5


def batches_until_found(monkeypatch: pytest.MonkeyPatch, seconds: float, updates: int) -> int:
    """Of a loop that makes so many updates with each batch of its loader, and takes `seconds` for them."""
    clock = [1000.0]
    for module in (ladder, records, all_steps):
        monkeypatch.setattr(module, "now", lambda: clock[0])
    steps = Steps()
    steps.started = clock[0]
    loader: DataLoader[int] = DataLoader(range(8), batch_size=4)  # type: ignore[arg-type]
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
    for number in range(1, 100):
        steps.batch_delivered(loader, clock[0], clock[0], 4.0)
        if (loop := look(steps)) is not None:
            assert (loop.rung, loop.period) == ("optimizer step", 1)
            assert loop.record is not None
            return number
        clock[0] += seconds
        for _ in range(updates):
            steps.optimizer_steps += 1
            steps._observe_optimizer(optimizer)
    raise AssertionError("not found")


def test_fewer_long_batches_do_where_each_has_several_updates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four updates of 10 s with each of seven batches are nearly five minutes."""
    assert batches_until_found(monkeypatch, 0.1, 4) == MINIMUM_STEPS + 1
    assert batches_until_found(monkeypatch, 40.0, 4) == 4
    assert batches_until_found(monkeypatch, 40.0, 1) == MINIMUM_STEPS + 1


def test_what_another_process_found_is_expected_only_of_such_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    known = Expected("optimizer step", 1, [])
    assert steps_until_found(monkeypatch, 0.05, known) == BARE_STEPS
    assert steps_until_found(monkeypatch, 0.05, Expected("optimizer step", 1, ["another"])) == BARE_STEPS


def calls_until_found(
    monkeypatch: pytest.MonkeyPatch,
    seconds: float,
    calls: int,
    expected: Expected | None = None,
    *,
    batch_each: int | None = None,
    between: float = 0.0,
) -> int | None:
    """Of an optimizer that calls its closure `calls` times in each step, once in `seconds`; None where its steps are
    found to be the loop's, or nothing is. `batch_each`: steps after which a loader gives a batch, before the first."""
    clock = [1000.0]
    for module in (ladder, records, closures, all_steps):
        monkeypatch.setattr(module, "now", lambda: clock[0])
    steps = Steps()
    loader: DataLoader[int] = DataLoader(range(8), batch_size=4)  # type: ignore[arg-type]
    optimizer = torch.optim.LBFGS([torch.nn.Parameter(torch.zeros(1))])
    for step in range(200):
        if batch_each is not None and step % batch_each == 0:
            steps.batch_delivered(loader, clock[0], clock[0], 4.0)
        steps._optimizer_begins(optimizer, (optimizer, None), {})
        for _ in range(calls):
            clock[0] += seconds
            steps.closures.passed(("train.py", 7))
            loop = look_at_closures(steps, expected)
            if loop is not None:
                assert (loop.rung, loop.period, loop.periodic, loop.record) == ("closure", 1, True, None)
                assert steps.optimizers == [optimizer]
                assert max(steps.closures.row.gaps()) == pytest.approx(seconds)
                return steps.closures.passes
        steps._in_optimizer = False
        steps.optimizer_steps += 1
        steps._observe_optimizer(optimizer)
        steps.closures.step_ended()
        clock[0] += between
        if look(steps, expected) is not None:
            return None
    return None


KNOWN_CLOSURE = Expected("closure", 1, [])


@pytest.mark.parametrize(
    ("seconds", "calls", "expected", "found"),
    [
        (0.9, 20, None, 13),
        (0.04, 100_000, None, 256),
        (4.0, 20, None, 7),
        (0.9, 20, KNOWN_CLOSURE, CLOSURE_PASSES),
        (4.0, 20, KNOWN_CLOSURE, CLOSURE_PASSES),
        (0.9, 1, None, None),
        (0.9, 3, None, None),
        (0.04, 20, None, None),
    ],
)
def test_calls_of_a_closure_are_steps_where_those_of_the_optimizer_take_long(
    monkeypatch: pytest.MonkeyPatch, seconds: float, calls: int, expected: Expected | None, found: int | None
) -> None:
    """What lies between two of the optimizer's steps is no part of theirs."""
    assert calls_until_found(monkeypatch, seconds, calls, expected) == found
    assert calls_until_found(monkeypatch, seconds, calls, expected, between=30.0) == found


def test_a_batch_may_come_after_each_step_of_the_optimizer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its wait is no part of a call of the closure, so the loop is that over the loader."""
    assert calls_until_found(monkeypatch, 0.5, 100, batch_each=1) is None
    assert calls_until_found(monkeypatch, 0.5, 1000, batch_each=1) == 128
    assert calls_until_found(monkeypatch, 0.5, 30, batch_each=1000) == 31
