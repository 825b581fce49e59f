"""Where the time goes comes before any figure: slow steps get a reason, nothing of the look stays, time is kept."""

from __future__ import annotations

import math
import re
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from statistics import median

import pytest
from tests.process.conftest import StartGuest
from tests.process.driver import PRELUDE, write

from bottleneck_doctor.documents.report import Result, from_json
from bottleneck_doctor.errors import Exit
from bottleneck_doctor.profiling.pyspy import PySpySampler

pytestmark = [pytest.mark.process, pytest.mark.timeout(240)]

KEPT = 1.03
"""Part of a budget in which all has to be over."""


def program(step: float, start: float) -> str:
    """Waits half of a step for data and half of it for the rest."""
    return (
        PRELUDE
        + f"""
time.sleep({start})


class Slow(Rows):
    def __getitem__(self, index):
        time.sleep({step / 8})
        return super().__getitem__(index)


for epoch in range(100000):
    for batch in DataLoader(Slow(4000), batch_size=4):
        train_on(batch)
        time.sleep({step / 2})
"""
    )


class Ran:
    """One `doctor run`, with what it took from the command's start to its end."""

    def __init__(self, folder: Path, text: str, budget: float) -> None:
        script = write(folder, text)
        lines = script.read_text().splitlines()
        self.place = lines.index("class Slow(Rows):") + 3
        """The line of the sleep in `__getitem__`."""
        command = [sys.executable, "-m", "bottleneck_doctor", "run", "--budget", f"{budget:g}s", "train.py"]
        began = time.monotonic()
        done = subprocess.run(
            command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=200, check=False
        )
        self.seconds = time.monotonic() - began
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr
        self._report = folder / "report.json"

    @property
    def result(self) -> Result:
        return from_json(self._report.read_bytes(), source="report.json")

    def longest_silence(self) -> float:
        """Seconds without a word on stderr, from the first to the last."""
        moments = [float(found) for found in re.findall(r"^\[ *([0-9.]+) s\]", self.err, re.MULTILINE)]
        return max(later - earlier for earlier, later in pairwise([0.0, *moments]))

    def totals(self) -> set[str]:
        """What was said to be the whole time."""
        return set(re.findall(r" of (\d[\d a-z]*)\)$", self.err, re.MULTILINE))


@pytest.mark.slow
@pytest.mark.alone
def test_slow_steps_leave_a_reason_and_a_place(tmp_path: Path) -> None:
    ran = Ran(tmp_path, program(2.0, 10.0), 60.0)
    assert ran.code == Exit.DONE, ran.err
    result = ran.result
    assert result.baseline is not None
    first = result.findings[0]
    assert first.id == "workers-io-bound", "a sleep computes nothing"
    assert first.site is not None
    assert (Path(first.site.file).name, first.site.line) == ("train.py", ran.place)
    assert f"(train.py, line {ran.place})" in result.verdict.sentence
    assert "slow-fetch" in [each.id for each in result.findings]
    assert ran.seconds <= KEPT * 60.0
    assert ran.longest_silence() < 10.0, ran.err
    assert ran.totals() == {"1 min"}


@pytest.mark.slow
@pytest.mark.alone
def test_out_of_time_before_a_figure_the_report_still_says_why(tmp_path: Path) -> None:
    ran = Ran(tmp_path, program(2.0, 10.0), 40.0)
    assert ran.code == Exit.OUT_OF_TIME, ran.err
    result = ran.result
    assert result.baseline is None
    assert result.phases is not None
    assert abs(result.phases.baseline.data_wait - 0.5) < 0.05
    assert result.findings
    assert "[out-of-time]" in ran.err
    assert "could not be measured within 40 s" in result.verdict.sentence
    assert (tmp_path / "report.html").exists()
    assert ran.seconds <= KEPT * 40.0


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.parametrize("budget", [20.0, 35.0])
def test_a_budget_is_kept_from_start_to_end(tmp_path: Path, budget: float) -> None:
    ran = Ran(tmp_path, program(0.02, 0.0), budget)
    assert ran.code == Exit.DONE, ran.err
    assert ran.result.findings
    assert ran.seconds <= KEPT * budget
    assert ran.longest_silence() < 10.0, ran.err


# -- nothing of it stays -----------------------------------------------------------------------------------------------

SEEN = """
import gc
from torch.utils.data.dataloader import _BaseDataLoaderIter

OWNERS = (nn.Module, nn.Linear, torch.Tensor, torch.optim.Optimizer, torch.optim.SGD, torch.autograd, torch, Rows,
          torch.amp.GradScaler, DataLoader, _BaseDataLoaderIter)


def seen():
    what = [f"{owner.__name__}.{name}:{id(value)}" for owner in OWNERS for name, value in vars(owner).items()
            if callable(value)]
    return sorted([*what, *(f"gc:{id(each)}" for each in gc.callbacks)])


first = None
for epoch in range(100000):
    for batch in DataLoader(Rows(), batch_size=4):
        train_on(batch)
        now = seen()
        first = first or now
        note("same", sorted(set(now) ^ set(first)))
"""


def test_what_a_look_puts_on_is_taken_off(guest: StartGuest, tmp_path: Path) -> None:
    """Every function that it replaced is the one that was there before."""
    running = guest(PRELUDE + SEEN)
    running.found()
    hello = running.session.hello
    assert hello is not None
    running.window()
    before = len(running.notes("same"))
    running.window(mode="phases", lead_in=1, steps=4)
    between = len(running.notes("same"))
    with PySpySampler(hello.pid, tmp_path / "artifacts"):
        running.window(mode="sampled", lead_in=1, steps=4)
    running.window(steps=8)
    told = running.notes("same")
    assert any(told[before:between]), "the hooks of phases are seen while they are on"
    assert told[-8:] == [told[before - 2]] * 8, told[-1]


COMPUTING = """
wide = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 4))
weights = torch.optim.SGD(wide.parameters(), lr=1e-4)


def compute():
    weights.zero_grad()
    for _ in range(4):
        wide(torch.ones(64, 256)).mean().backward()
    weights.step()


for epoch in range(100000):
    for batch in DataLoader(Rows(), batch_size=4):
        train_on(batch)
        compute()
"""


@pytest.mark.slow
@pytest.mark.alone
def test_windows_behind_a_look_are_as_fast_as_those_before(guest: StartGuest, tmp_path: Path) -> None:
    running = guest(PRELUDE + COMPUTING)
    running.found()
    hello = running.session.hello
    assert hello is not None

    def step() -> float:
        """Seconds of a step in the quickest of some short windows, as neighbours slow down whole windows."""
        windows = [running.window(lead_in=2, steps=25) for _ in range(5)]
        return min(done.seconds / done.steps for done in windows)

    step()
    ratios = []
    for _ in range(7):
        before = step()
        running.window(mode="phases", lead_in=2, steps=40)
        with PySpySampler(hello.pid, tmp_path / "artifacts"):
            running.window(mode="sampled", lead_in=2, steps=60)
        ratios.append(math.log(step() / before))
    assert abs(median(ratios)) < 0.03, ratios
