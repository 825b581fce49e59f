"""What the guest finds out of a loop's length, in real programs: loops of one's own, and those of trainers."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.process.conftest import StartGuest
from tests.process.driver import PRELUDE
from tests.process.test_frameworks import QUIET, program

pytestmark = pytest.mark.process

EPOCHS = (
    PRELUDE
    + """
import argparse

def train_epoch(loader):
    for index, batch in enumerate(loader):
        train_on(batch)
        if index > 1000:
            break

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4000)
    args = parser.parse_args()
    loader = DataLoader(Rows(), batch_size=4)
    for epoch in range(1, args.epochs + 1):
        train_epoch(loader)
"""
)
STEPS = (
    PRELUDE
    + """
def step():
    optimizer.zero_grad()
    model(torch.ones(4)).sum().backward()
    optimizer.step()

for index in range(90000):
    time.sleep(0.001)
    step()
"""
)


def test_epochs_of_a_loop_of_ones_own(guest: StartGuest) -> None:
    found = guest(EPOCHS, "--epochs", "7000").found()
    assert (found.run_epochs, found.run_steps, found.run_may_end_sooner) == (7000, None, True)


def test_steps_of_a_loop_without_a_loader(guest: StartGuest) -> None:
    found = guest(STEPS).found()
    assert (found.run_epochs, found.run_steps, found.run_may_end_sooner) == (None, 90000, False)


@pytest.mark.parametrize(
    ("framework", "epochs", "steps"),
    [("lightning", 50, 50 * 40), ("transformers", None, 50 * 40), ("accelerate", 50, None)],
)
def test_what_a_framework_was_told(
    guest: StartGuest, tmp_path: Path, framework: str, epochs: int | None, steps: int | None
) -> None:
    script = guest(program(framework), "--epochs", "50", "--batches", "40", "--accumulate", "2", environment=QUIET)
    found = script.found()
    assert (found.run_epochs, found.run_steps) == (epochs, steps)
    assert found.run_may_end_sooner == (framework != "accelerate")
