"""Pairs of processes that take the same batches are compared over the same ones: a program whose batches cost very
different times, each known beforehand, in a fixed order."""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.process.driver import PRELUDE, Guest, write

from bottleneck_doctor.gate import plan
from bottleneck_doctor.measure.budget import Budget
from bottleneck_doctor.measure.outside import Outside
from bottleneck_doctor.measure.side_by_side import SideBySide
from bottleneck_doctor.measure.side_pairs import PairSample, SideSample
from bottleneck_doctor.measure.starter import Live, Side, Starter
from bottleneck_doctor.protection.protector import Protector
from bottleneck_doctor.system.progress import SilentProgress

pytestmark = pytest.mark.process

SPEED = 1.6
# Twelve batches that take 20 ms each, then twelve that take four times as long. A row says what it costs.
COSTS = (
    PRELUDE
    + """
scale = float(os.environ["SCALE"])
taken = 0


def step(batch):
    train_on(batch)
    time.sleep(0.020 * (1 + 3 * (batch[1][0].item() // 12 % 2)) * scale)


class Numbered(Rows):
    def __getitem__(self, index):
        return torch.ones(4), torch.tensor(float(index))
"""
)
LOADED = (
    COSTS
    + """
for epoch in range(100):
    for batch in DataLoader(Numbered(100000), batch_size=1{loader}):
        step(batch)
"""
)
BARE = (
    COSTS
    + """
while True:
    step([torch.ones(4), torch.tensor([float(taken)])])
    taken += 1
"""
)


def side(script: Path, name: str, scale: float) -> Side:
    return Side(
        name=name,
        argv=(sys.executable, str(script)),
        cwd=script.parent,
        environment={"SCALE": str(scale)},
        protector=Protector(),
    )


def sample(pair: SideBySide, live: Live) -> SideSample:
    return SideSample(windows=pair.windows(live), has_loader=live.loop.has_loader, epoch_batches=None)


NOTED = (
    COSTS
    + """
loader = DataLoader(Numbered(40), batch_size=1{loader})
for epoch in range(100):
    for batch in loader:
        note("taken.txt", int(batch[1][0].item()))
        train_on(batch)
"""
)


@pytest.mark.parametrize(
    ("loader", "keeps_workers"),
    [
        pytest.param("", False, marks=pytest.mark.slow(together=False)),
        (", num_workers=2", False),
        (", num_workers=2", True),
        pytest.param(", num_workers=1, prefetch_factor=4", False, marks=pytest.mark.slow(together=False)),
    ],
)
def test_a_guest_tells_which_batch_comes_next(guest: Callable[..., Guest], loader: str, keeps_workers: bool) -> None:
    """Its timed part begins where it was told to, whatever its workers had and lost, or kept."""
    ran = guest(NOTED.format(loader=loader), environment={"SCALE": "0"})
    found = ran.found()
    workers, prefetch = found.num_workers, found.prefetch_factor or 0
    place = found.position + workers * prefetch
    for skipped, lead_in, steps in ((0, 2, 3), (5, 2, 4), (0, 3, 6), (4, 1, 30), (1, 2, 5)):
        before = len(ran.notes("taken.txt"))
        done = ran.window(lead_in=lead_in, skipped=skipped, steps=steps, keeps_workers=keeps_workers)
        assert (done.steps, done.elements) == (steps, steps * 5)
        # One window holds the end of an epoch, and leads in once more behind it.
        assert done.lead_in_steps - skipped - lead_in == (steps == 30)
        taken = ran.notes("taken.txt")[before:]
        assert taken[0] == place % 40
        assert taken[skipped + lead_in] == (place + skipped + lead_in) % 40
        place = done.position + done.ahead
    assert (done.ahead > 0) == (workers > 0), "what was lost at the end of the epoch, if nowhere else"


@pytest.mark.parametrize(
    ("base", "head"),
    [
        pytest.param(LOADED.format(loader=""), LOADED.format(loader=""), id="loader"),
        pytest.param(
            LOADED.format(loader=", num_workers=1"),
            LOADED.format(loader=""),
            id="workers",
            marks=pytest.mark.slow(together=False),
        ),
        pytest.param(BARE, BARE, id="bare", marks=pytest.mark.slow(together=False)),
    ],
)
def test_the_side_that_is_faster_is_not_held_against_other_batches(tmp_path: Path, base: str, head: str) -> None:
    sides = [
        side(write(tmp_path, base, "base.py"), "base", 1.0),
        side(write(tmp_path, head, "head.py"), "head", 1 / SPEED),
    ]
    starter = Starter(Budget(100.0, strict=True), SilentProgress(), Outside())
    with starter.live(sides, what="Pair 1", patience=lambda: 60.0) as lives:
        lives.sort(key=lambda live: live.side.name)
        pair = SideBySide(lives, starter.budget, starter.outside, window_seconds=plan.WINDOW_SECONDS)
        pair.burn_in()
        pair.rounds(plan.order(2, random.Random(1)))
        made = PairSample(number=1, base=sample(pair, lives[0]), head=sample(pair, lives[1]))
        steps = [[window.steps for window in pair.windows(live)] for live in lives]
    assert steps[0] == steps[1]
    # What is known: a step's sleep. The rest of it takes a millisecond, and a sleep may last a little longer.
    for base_step, head_step in made.rounds():
        assert base_step / head_step == pytest.approx(SPEED, rel=0.06)
    assert math.exp(-made.ratio().log) == pytest.approx(SPEED, rel=0.05)
