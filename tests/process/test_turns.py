"""Processes that are started at once do not disturb each other's first steps: they find their loops in turn."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest
from tests.process.driver import PRELUDE, write

from bottleneck_doctor.measure.budget import Budget
from bottleneck_doctor.measure.outside import Outside
from bottleneck_doctor.measure.starter import Broken, Side, Starter
from bottleneck_doctor.protection.protector import Protector
from bottleneck_doctor.runtime.wire.turn import LONGEST
from bottleneck_doctor.system.progress import SilentProgress

# A step's work is the sleep. Without a loader, the first backward pass is where a process waits for its turn.
STEPS = PRELUDE + (
    "loader = DataLoader(Rows(), batch_size=4{loader})\n"
    "for epoch in range(100000):\n"
    "    for batch in loader:\n"
    "        train_on(batch)\n"
    "        began = time.monotonic()\n"
    "        time.sleep(0.1)\n"
    "        note(os.environ['STEPS'], [began, time.monotonic()])\n"
)
BARE = PRELUDE + (
    "while True:\n"
    "    train_on([torch.ones(4, 4)])\n"
    "    began = time.monotonic()\n"
    "    time.sleep(0.1)\n"
    "    note(os.environ['STEPS'], [began, time.monotonic()])\n"
)
CRASHING = (
    STEPS.format(loader=", num_workers=1")
    + "        if len(open(os.environ['STEPS']).readlines()) == 2:\n            os.kill(os.getpid(), 9)\n"
)


def side(name: str, script: Path) -> Side:
    return Side(
        name=name,
        argv=(sys.executable, str(script)),
        cwd=script.parent,
        environment={"STEPS": str(script.parent / f"{name}.steps")},
        protector=Protector(),
    )


def starter() -> Starter:
    return Starter(Budget(60.0, strict=True), SilentProgress(), Outside())


def steps_of(each: Side) -> list[list[float]]:
    return [json.loads(line) for line in Path(each.environment["STEPS"]).read_text().splitlines()]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(STEPS.format(loader=""), id="loader", marks=pytest.mark.slow(together=True)),
        pytest.param(STEPS.format(loader=", num_workers=1"), id="workers", marks=pytest.mark.slow(together=True)),
        pytest.param(BARE, id="bare"),
    ],
)
def test_they_train_one_after_the_other(tmp_path: Path, text: str) -> None:
    sides = [side(name, write(tmp_path, text, f"{name}.py")) for name in ("first", "second")]
    starting = starter()
    with starting.live(sides, what="Pair 1", patience=lambda: 60.0) as lives:
        assert all(live.found is not None for live in lives)
        lasted = [max(live.loop.step_seconds) for live in lives]
        set_up = sorted(live.loop.setup_seconds for live in lives)
    first, second = sorted((steps_of(each) for each in sides), key=lambda steps: steps[0][0])
    assert first[-1][1] <= second[0][0] + 0.01, "the second waits until the first stands at its loop"
    assert max(lasted) < 1.0, "and waiting is no part of a step"
    held = second[0][0] - first[0][0]
    assert set_up[1] - set_up[0] < held / 2, "nor of setting up"


def test_one_that_dies_holds_nobody_up(tmp_path: Path) -> None:
    sides = [side("dies", write(tmp_path, CRASHING, "dies.py"))]
    sides.append(side("second", write(tmp_path, STEPS.format(loader=""), "second.py")))
    began = time.monotonic()
    with pytest.raises(Broken) as broken, starter().live(sides, what="Pair 1", patience=lambda: 45.0):
        pass
    assert broken.value.live.side.name == "dies"
    assert broken.value.alone, "the other one stands at its loop"
    assert time.monotonic() - began < LONGEST
