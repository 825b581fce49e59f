"""Optimizers that call a closure often, as LBFGS does: each call is a step, and what lies between two steps of the
optimizer belongs to none."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.process.conftest import StartGuest
from tests.process.driver import PRELUDE, Guest, write
from tests.quiet import lasting

from bottleneck_doctor.runtime.wire.expected import CLOSURE_PASSES, Expected
from bottleneck_doctor.session.session import Command

pytestmark = pytest.mark.process

STEPS = (
    PRELUDE
    + """
class Slow(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 1)

    def forward(self, rows):
        time.sleep(0.03)
        return self.inner(rows)


model = Slow()
rows = torch.linspace(-1, 1, 64).reshape(16, 4)
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.01, max_iter={calls}, tolerance_grad=0, tolerance_change=0)


def closure():
    note("calls", 1)
    optimizer.zero_grad()
    time.sleep(0.01)
    loss = (model(rows) - rows.sum(1, keepdim=True)).square().mean() + 1
    loss.backward()
    return loss


for number in range(100000):
    optimizer.step(closure)
    time.sleep({between})
"""
)
TOLD = Expected("closure", 1, [])


def told(guests: list[Guest], tmp_path: Path, text: str) -> Guest:
    """A guest that was told what an earlier process had."""
    guests.append(Guest(Command((sys.executable, str(write(tmp_path, text))), tmp_path, {}), expected=TOLD))
    return guests[-1]


@pytest.mark.timed
def test_what_lies_between_two_steps_of_the_optimizer_belongs_to_none(guests: list[Guest], tmp_path: Path) -> None:
    script = told(guests, tmp_path, STEPS.format(calls=20, between=0.5))
    found = script.found()
    assert (found.rung, found.period, found.periodic, found.has_loader) == ("closure", 1, True, False)
    assert found.position == CLOSURE_PASSES
    assert found.has_root_module
    assert found.run_steps is None
    # Two steps of the optimizer begin in it.
    done = script.window(steps=50)
    assert (done.status, done.steps) == ("ok", 50)
    assert done.seconds / done.steps in lasting(0.04, rel=0.2)
    assert done.optimizer_steps >= 2
    assert len(done.stretches) >= 3
    seen = script.window(mode="phases", steps=30)
    assert seen.status == "ok"
    shares = {name: seconds / seen.detail["seconds"] for name, seconds in seen.detail["phases"].items()}
    assert shares["forward"] == pytest.approx(0.75, abs=0.1)
    assert shares["between"] == pytest.approx(0.25, abs=0.1), "what a closure does by itself"
    assert sum(seen.detail["step_seconds"]) in lasting(30 * 0.04, rel=0.2)
    again = script.window({"intra_op_threads": 1}, steps=10)
    assert again.status == "ok"
    assert again.seconds / again.steps in lasting(0.04, rel=0.2)


def test_losses_are_told_by_call(guests: list[Guest], tmp_path: Path) -> None:
    script = told(guests, tmp_path, STEPS.format(calls=20, between=0.0))
    found = script.found()
    done = script.window(steps=30, losses=True)
    numbers = [int(step) for step, _ in done.losses]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert numbers[0] >= found.position
    assert len(numbers) >= 30


@pytest.mark.parametrize(
    ("calls", "between"),
    [
        pytest.param(1_000_000, 0.0, id="one-step", marks=pytest.mark.slow(together=True)),
        pytest.param(100, 0.1, id="long-steps", marks=pytest.mark.slow(together=True)),
    ],
)
def test_a_step_that_takes_long_is_not_waited_for(guest: StartGuest, calls: int, between: float) -> None:
    """Not even to the end of the one step that trains all of the network."""
    script = guest(STEPS.format(calls=calls, between=between))
    found = script.found()
    assert (found.rung, found.period, found.has_loader) == ("closure", 1, False)
    assert found.has_root_module
    assert found.forward_site is not None
    assert found.backward_site is not None
    assert len(found.step_seconds) > 50
    assert Expected.of(found) == TOLD
    assert script.window(steps=10).status == "ok"
    assert script.window({"autocast": "bfloat16"}, steps=5).status == "ok"
    # py-spy or line_profiler may look at it as at any other.
    lines = script.window(mode="phases", steps=5)
    assert lines.detail["phases"]["optimizer"] < 0.2 * lines.detail["seconds"]


@pytest.mark.slow(together=True)
def test_short_steps_of_such_an_optimizer_are_steps(guest: StartGuest) -> None:
    found = guest(STEPS.format(calls=4, between=0.0)).found()
    assert found.rung == "optimizer step"


@pytest.mark.slow(together=True)
def test_batches_of_a_loader_are_steps_however_often_each_is_computed(guest: StartGuest) -> None:
    """A step of the optimizer takes 0.8 s."""
    text = STEPS.format(calls=20, between=0.0).replace(
        "for number in range(100000):\n", "for batch in DataLoader(Rows(100000), batch_size=16):\n    rows = batch[0]\n"
    )
    found = guest(text).found()
    assert (found.rung, found.has_loader) == ("optimizer step", True)
