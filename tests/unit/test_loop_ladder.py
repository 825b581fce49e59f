"""After how many steps a loop without a loader is found."""

from __future__ import annotations

import pytest
import torch
from torch.utils.data import DataLoader

from bottleneck_doctor.runtime.loop import ladder, records
from bottleneck_doctor.runtime.loop import steps as all_steps
from bottleneck_doctor.runtime.loop.ladder import look
from bottleneck_doctor.runtime.loop.period import MINIMUM_STEPS
from bottleneck_doctor.runtime.loop.steps import Steps
from bottleneck_doctor.runtime.wire.expected import BARE_STEPS, Expected


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
    """Twelve steps of 22 s, as those of LBFGS over all data, are four minutes."""
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


def test_what_another_process_found_is_expected_only_of_such_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    known = Expected("optimizer step", 1, [])
    assert steps_until_found(monkeypatch, 0.05, known) == BARE_STEPS
    assert steps_until_found(monkeypatch, 0.05, Expected("optimizer step", 1, ["another"])) == BARE_STEPS
