"""What the guest finds out of a loop's length, in real programs: loops of one's own, and those of trainers."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.process.conftest import StartGuest
from tests.process.driver import PRELUDE, Guest, write
from tests.process.test_frameworks import QUIET, program

from bottleneck_doctor.runtime.wire.messages import Site, Taker
from bottleneck_doctor.session.session import Command

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
    assert found.trainer == ("" if framework == "accelerate" else framework)


def test_an_installed_package_that_is_the_program_has_lines_of_its_own(tmp_path: Path) -> None:
    """As the trainers of nnU-Net, which `python -m` starts: nothing else of the program is the user's."""
    installed = tmp_path / "lib" / "site-packages"
    trainer = write(installed, STEPS, "cells/train.py")
    write(installed, "", "cells/__init__.py")
    command = Command((sys.executable, "-m", "cells.train"), tmp_path, {"PYTHONPATH": str(installed)})
    script = Guest(command)
    try:
        found = script.found()
    finally:
        script.close()
    lines = STEPS.splitlines()
    assert found.forward_site == Site(str(trainer), 1 + lines.index("    model(torch.ones(4)).sum().backward()"))
    assert found.run_steps == 90000


KIT = """
from torch.utils.data import DataLoader

class Trainer:
    def __init__(self, rows, **kwargs):
        self.rows, self.num_workers = rows, kwargs.get("num_workers", 0)

    def fit(self, step, batch_size=1):
        for index in range(1000):
            for batch in DataLoader(self.rows, batch_size=batch_size, num_workers=self.num_workers):
                step(batch)
"""


def test_what_takes_the_arguments_of_a_loader_that_a_library_makes(tmp_path: Path) -> None:
    write(tmp_path / "lib" / "site-packages", KIT, "kit.py")
    trains = f"{PRELUDE}from kit import Trainer\nTrainer(Rows(4000)).fit(train_on, batch_size=4)\n"
    script = write(tmp_path, trains)
    path = {"PYTHONPATH": str(tmp_path / "lib" / "site-packages")}
    program = Guest(Command((sys.executable, str(script)), tmp_path, path))
    try:
        found = program.found()
    finally:
        program.close()
    assert found.loader_site == Site(str(script), len(trains.splitlines()))
    assert found.loader_takers == [
        Taker("", {"batch_size": "batch_size"}, {"batch_size": 1}, called="fit"),
        Taker("Trainer", {"num_workers": "num_workers"}),
    ]
    assert found.dataset_takers == [Taker("Trainer", {"dataset": "rows"}, {"dataset": 0})]


BY_HAND = """
with torch.no_grad():
    for each in model.parameters():
        each -= 1e-4 * each.grad
        each.grad = None
"""
TRIED = (
    PRELUDE
    + """
with torch.autocast("cpu", dtype=torch.bfloat16):
    print(model(torch.ones(4)).shape)
if "backwards" in sys.argv:
    model(torch.ones(4)).sum().backward()
for rows, _ in DataLoader(Rows(4000), batch_size=4):
    model(rows).mean().backward()  # trains
    """
)


@pytest.mark.parametrize("tried", ["forward", pytest.param("backwards", marks=pytest.mark.slow(together=True))])
@pytest.mark.parametrize("steps", ["optimizer.step()", "\n    ".join(BY_HAND.strip().splitlines())])
def test_a_model_is_called_where_it_trains_and_not_where_it_was_tried_out(
    guest: StartGuest, tried: str, steps: str
) -> None:
    found = guest(TRIED + steps, tried).found()
    trains = 1 + next(number for number, line in enumerate(TRIED.splitlines()) if "# trains" in line)
    assert found.forward_site is not None
    assert (found.forward_site.line, found.has_root_module, found.autocast) == (trains, True, "")


HELPED = (
    PRELUDE
    + """
def encode(rows):
    return [model(each) for each in [rows]][0]  # innermost

def loss_of(rows):
    return encode(rows).mean()  # between

for rows, _ in DataLoader(Rows(4000), batch_size=4):
    loss_of(rows).backward()  # outermost
    optimizer.step()
"""
)


def test_the_lines_that_lead_to_the_model_are_told_from_the_innermost_out(guest: StartGuest) -> None:
    found = guest(HELPED).found()
    lines = HELPED.splitlines()
    marked = [1 + next(n for n, line in enumerate(lines) if mark in line) for mark in ("innermost", "between", "outer")]
    assert found.forward_site is not None
    # A list is made in a frame of its own before Python 3.12.
    assert list(dict.fromkeys([found.forward_site.line, *(each.line for each in found.forward_path)])) == marked


COUNTED_FIRST = (
    PRELUDE
    + """
del model, optimizer
loader = DataLoader(Rows(400), batch_size=4)
total = 0.0
for _ in range(2):  # The mean of the data, and how far they lie from it.
    for batch in loader:
        total += float(batch[0].mean())
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for batch in loader:
        optimizer.zero_grad()
        model(batch[0]).mean().backward()
        optimizer.step()
"""
)


def test_a_look_through_the_data_is_not_taken_for_training(guest: StartGuest) -> None:
    script = guest(COUNTED_FIRST)
    found = script.found()
    assert found.rung == "optimizer step"
    assert found.run_epochs == 3
