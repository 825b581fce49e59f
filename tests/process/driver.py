"""Runs small scripts under a guest and plays the supervisor: grants in, what the guest said out.

A `Guest` is one start of a script with a `Session` in front of it. The scripts stand in the
tests, so that what is asserted can be read beside what ran; `PRELUDE` is what nearly all of them begin with.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bottleneck_doctor.documents.report import SettingValue
from bottleneck_doctor.explain import details
from bottleneck_doctor.protection.protector import Protector
from bottleneck_doctor.runtime.wire import messages
from bottleneck_doctor.runtime.wire.expected import Expected
from bottleneck_doctor.session.session import Command, Exited, Session

Setting = Mapping[str, SettingValue]

PATIENCE = 60.0
"""Seconds after which a guest that says nothing has failed the test: far more than any window here takes."""

WITHOUT_COMPILER = """\
class Later(types.ModuleType):
    disable = staticmethod(lambda function, *args, **kwargs: function)
    graph_break = staticmethod(lambda: None)

    def __getattr__(self, name):
        if sys.modules.get("torch._dynamo") is self:
            del sys.modules["torch._dynamo"], torch._dynamo
        return getattr(importlib.import_module("torch._dynamo"), name)


if "SLOW_TESTS" not in os.environ:
    torch._dynamo = sys.modules["torch._dynamo"] = Later("torch._dynamo")
"""
"""torch's optimizers import its compiler when they are made, which takes as long as the rest of a script's start. Here
it is imported where anything of it is used but what optimizers call. Where slow tests run, scripts do without this."""

PRELUDE = f"""\
import importlib, json, os, sys, time, types
import torch

{WITHOUT_COMPILER}
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(0)


class Rows(Dataset):
    def __init__(self, count=64, seconds=0.0):
        self.count, self.seconds = count, seconds

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if index >= self.count:
            raise IndexError(index)
        time.sleep(self.seconds)
        return torch.full((4,), float(index % 7)), torch.tensor(float(index))


def note(name, value):
    with open(name, "a") as handle:
        handle.write(json.dumps(value) + "\\n")


model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)


def train_on(batch):
    optimizer.zero_grad()
    loss = model(batch[0]).mean()
    loss.backward()
    optimizer.step()
    return loss


"""

LOOP = PRELUDE + (
    "loader = DataLoader(Rows(), batch_size=4)\nfor epoch in range(100000):\n    for batch in loader:\n"
    "        train_on(batch)\n"
)
"""A loop that goes on for as long as anybody wants: sixteen batches an epoch."""


IMPATIENT = """
import sys
from bottleneck_doctor.measure import prober
from bottleneck_doctor.cli import main

prober.HANG_SECONDS = 5.0
prober.HANG_FACTOR = 4.0
sys.exit(main())
"""
"""`doctor` that takes a window for hung after seconds, for `python -c`."""


@dataclass(frozen=True)
class Plain:
    """What a script did without us."""

    code: int
    out: str
    err: str


class Guest:
    """A script under a guest. Windows are granted one by one; `close` ends it and all that it started."""

    def __init__(
        self,
        command: Command,
        protector: Protector | None = None,
        expected: Expected | None = None,
        tried: Mapping[str, Any] | None = None,
    ) -> None:
        self.session = Session(command, 1, protector=protector, expected=expected, tried=tried)
        self.ended: messages.Ended | None = None
        self.output = ""
        self._windows = 0
        self._cwd = command.cwd
        self.session.start()

    def event(self, timeout: float = PATIENCE) -> Any:
        """The next thing that happens; what the guest saw until the end is kept aside in `ended`."""
        while True:
            event = self.session.event(timeout)
            if isinstance(event, messages.Ended):
                self.ended = event
                continue
            return event

    def found(self) -> messages.Found:
        event = self.event()
        assert isinstance(event, messages.Found), (event, self.session.tail())
        return event

    def grant(
        self,
        setting: Setting | None = None,
        *,
        mode: str = "timed",
        lead_in: int = 2,
        steps: int = 6,
        epochs: int = 0,
        most_seconds: float = 0.0,
        unit: int = 1,
        most_lead_in_seconds: float = 0.0,
        most_wall_seconds: float = 0.0,
        keeps_workers: bool = False,
        skipped: int = 0,
        losses: bool = False,
        keeps_iterables: bool = False,
    ) -> int:
        """Grant a window and return its number."""
        self._windows += 1
        grant = messages.Grant(
            self._windows, dict(setting or {}), mode, lead_in, steps, epochs, {}, most_seconds, unit,
            most_lead_in_seconds=most_lead_in_seconds, most_wall_seconds=most_wall_seconds,
            keeps_workers=keeps_workers, skipped=skipped, losses=losses, keeps_iterables=keeps_iterables,
        )  # fmt: skip
        self.session.grant(grant)
        return self._windows

    def window(self, setting: Setting | None = None, **size: Any) -> messages.WindowDone:
        """Grant a window, as `grant` takes it, and wait until it is done."""
        number = self.grant(setting, **size)
        event = self.event()
        assert isinstance(event, messages.WindowDone), (event, self.session.tail())
        assert event.window == number
        if size.get("mode") == "phases" and event.status == "ok":
            details.check(event.detail, details.PhasesDetail)
        return event

    def run_out(self) -> Exited:
        """Let the script run to its own end under its own setting."""
        self.grant({}, lead_in=1, steps=10**9)
        return self.exited()

    def exited(self, timeout: float = PATIENCE) -> Exited:
        event = self.event(timeout)
        assert isinstance(event, Exited), (event, self.session.tail())
        return event

    def notes(self, name: str) -> list[Any]:
        """The lines that the script wrote with `note`."""
        return notes(self._cwd / name)

    def close(self) -> None:
        self.output = self.output or self.session.tail()
        self.session.stop()


def notes(path: Path) -> list[Any]:
    """What the prelude's `note` wrote to `path`: one JSON value a line."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def write(folder: Path, text: str, name: str = "train.py") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text))
    return path


def run_plain(argv: list[str], cwd: Path, environment: dict[str, str] | None = None) -> Plain:
    """Run Python without us, to compare with."""
    done = subprocess.run(
        [sys.executable, *argv],
        cwd=cwd,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    return Plain(done.returncode, done.stdout, done.stderr)


def wait_until(condition: Any, timeout: float = 10.0) -> bool:
    """Whether `condition()` came true in time."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return bool(condition())
