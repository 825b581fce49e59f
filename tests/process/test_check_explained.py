"""What grew, where py-spy may not look: the lines of both revisions are timed instead, the changed ones among them."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.process.driver import PRELUDE

from bottleneck_doctor.gate import explain, hunks, plan
from bottleneck_doctor.gate.duel import Contender, Duel
from bottleneck_doctor.gate.plan import Name
from bottleneck_doctor.prober import Clock
from bottleneck_doctor.profiling import obstacle
from bottleneck_doctor.profiling.pyspy import Sampler
from bottleneck_doctor.progress import SilentProgress
from bottleneck_doctor.protection.keeper import Keeper
from bottleneck_doctor.result import Warning

pytestmark = pytest.mark.process

TRAIN = (
    PRELUDE
    + """
from helper import note_loss

for epoch in range(100000):
    for batch in DataLoader(Rows(400, 0.001), batch_size=4):
        note_loss(train_on(batch))
"""
)
QUICK = "def note_loss(loss):\n    return float(loss)\n"
SLOW = "import time\n\n\ndef note_loss(loss):\n    time.sleep(0.004)\n    return float(loss)\n"
GROWTH = 0.004
"""Seconds a step."""
DIFFERENCE = hunks.read(
    "--- helper.py\n+++ helper.py\n@@ -0,0 +1,3 @@\n+import time\n+\n+\n@@ -1,0 +5 @@\n+    time.sleep\n"
)


@pytest.fixture
def duel(tmp_path: Path) -> Callable[[], Duel]:
    def made() -> Duel:
        sides: dict[Name, str] = {"base": QUICK, "head": SLOW}
        contenders: dict[Name, Contender] = {}
        for name, helper in sides.items():
            folder = tmp_path / name
            folder.mkdir()
            (folder / "train.py").write_text(TRAIN)
            (folder / "helper.py").write_text(helper)
            contenders[name] = Contender(
                name=name,
                said=f"the {name}",
                argv=(sys.executable, "train.py"),
                cwd=folder,
                roots=(folder,),
                environment={},
                keeper=Keeper(),
            )
        clock = Clock(100.0, strict=True)
        return Duel(contenders["base"], contenders["head"], clock, random.Random(1), SilentProgress())

    return made


@pytest.mark.slow
def test_lines_are_timed_where_py_spy_is_refused(duel: Callable[[], Duel], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "USUAL_SECONDS", 1.0)
    monkeypatch.setattr(explain, "TIMED_SECONDS", 1.0)

    class Refused(Sampler):
        def start(self) -> None:
            """The system would say no."""

        def stop(self) -> Path | Warning:
            here = obstacle.Surroundings(platform="linux", root=False, ptrace_scope=3, can_trace=False, filtered=False)
            return obstacle.explain("Permission Denied", here)

    monkeypatch.setattr(explain, "Sampler", Refused)
    with duel().pair(1) as live:
        sample = live.measure()
        found = explain.explain(live, [sample], GROWTH, DIFFERENCE)
    (warning,) = found.missing
    assert warning.slug == "sampling-not-permitted"
    assert "Lines were timed instead" in warning.sentence
    assert found.growth == []
    (function,) = (each for each in found.culprits if each.kind == "function" and each.name == "note_loss")
    assert function.changed_here
    lines = [each for each in found.culprits if each.kind == "line"]
    assert lines[0].name == "helper.py:5"
    assert 0.003 < lines[0].head - lines[0].base < 0.02
    assert sample.head.peak_bytes is not None
    assert sample.head.peak_bytes > 50 << 20
