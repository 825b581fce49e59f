"""What grew: a transform that was planted in an example's chain, named with the line that adds it; and where py-spy may
not look, the lines of both revisions, which are timed instead, the changed ones among them."""

from __future__ import annotations

import difflib
import random
import sys
from pathlib import Path

import pytest
from tests.process.driver import PRELUDE

from bottleneck_doctor.documents.report import Warning
from bottleneck_doctor.gate import plan
from bottleneck_doctor.gate.cause import explain, hunks
from bottleneck_doctor.gate.paired import Pairs
from bottleneck_doctor.measure.budget import Budget
from bottleneck_doctor.measure.outside import Outside
from bottleneck_doctor.measure.side_pairs import PairSample
from bottleneck_doctor.measure.starter import Side, Starter
from bottleneck_doctor.profiling import obstacle
from bottleneck_doctor.profiling.pyspy import PySpySampler
from bottleneck_doctor.protection.protector import Protector
from bottleneck_doctor.system.progress import SilentProgress

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


DIGITS = """
import torch
from PIL import Image
from torch import nn, optim
from torch.nn import functional as F
from torch.utils.data import DataLoader
from torchvision import datasets, transforms


class Digits(datasets.MNIST):
    def __init__(self, transform):
        self.data = torch.randint(0, 256, (4000, 28, 28), dtype=torch.uint8)
        self.targets = torch.randint(0, 10, (4000,))
        self.transform, self.target_transform = transform, None


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(784, 32)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, x):
        return F.log_softmax(self.fc2(F.relu(self.fc1(torch.flatten(x, 1)))), dim=1)


def train(model, loader, optimizer, epoch):
    model.train()
    for batch_idx, (data, target) in enumerate(loader):
        optimizer.zero_grad()
        loss = F.nll_loss(model(data), target)
        loss.backward()
        optimizer.step()


def main():
    torch.set_num_threads(1)
    transform = transforms.Compose([
        transforms.ToTensor(),
        transforms.Normalize((0.1307,), (0.3081,)),
    ])
    model = Net()
    optimizer = optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(10000):
        train(model, DataLoader(Digits(transform), batch_size=16, shuffle=True), optimizer, epoch)


main()
"""
AUGMENTED = DIGITS.replace(
    "        transforms.ToTensor(),\n",
    "        transforms.RandomAffine(10, translate=(0.1, 0.1), scale=(0.9, 1.1)),\n        transforms.ToTensor(),\n",
)
AFFINE_SECONDS = 0.0005
"""At least, a step: 16 images."""


class Against:
    """A pair of two folders, each with its own files."""

    def __init__(self, folder: Path, base: dict[str, str], head: dict[str, str], outside: Outside) -> None:
        self.roots: dict[str, tuple[Path]] = {}
        sides = []
        for name, files in (("base", base), ("head", head)):
            root = folder / name
            root.mkdir()
            self.roots[name] = (root,)
            for file, text in files.items():
                (root / file).write_text(text)
            argv = (sys.executable, "train.py")
            sides.append(
                Side(name=name, said=f"the {name}", argv=argv, cwd=root, environment={}, protector=Protector())
            )
        starter = Starter(Budget(100.0, strict=True), SilentProgress(), outside)
        self._pairs = Pairs(sides[0], sides[1], starter, random.Random(1))

    def explained(self, grew: float, differences: hunks.Differences) -> tuple[explain.GrowthExplanation, PairSample]:
        """What is found where a step grew by so many seconds, and what the pair showed."""
        with self._pairs.pair(1) as both:
            sample = self._pairs.measure(1, both)
            return explain.explain(both, self.roots, [sample], grew, differences), sample


@pytest.mark.slow
def test_a_planted_transform_is_named_with_the_line_that_adds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The dataset is the library's, so that the innermost line of the user's own is that of the loop."""
    pytest.importorskip("torchvision")
    monkeypatch.setattr(plan, "USUAL_SECONDS", 1.0)
    before, after = (text.splitlines(keepends=True) for text in (DIGITS, AUGMENTED))
    differences = hunks.read("".join(difflib.unified_diff(before, after, "train.py", "train.py", n=0)))
    pair = Against(tmp_path, {"train.py": DIGITS}, {"train.py": AUGMENTED}, Outside())
    # What the pair says of the growth is no matter here: other processes of the machine may have a part in it.
    found, _ = pair.explained(AFFINE_SECONDS, differences)
    assert found.missing == []
    first = found.culprits[0]
    assert (first.kind, first.name, first.changed_here) == ("function", "RandomAffine.forward", True)
    assert first.site is not None
    assert "transforms.RandomAffine(10" in AUGMENTED.splitlines()[first.site.line - 1]
    assert first.base == 0
    assert first.head > AFFINE_SECONDS / 2
    loop = AUGMENTED.splitlines().index("    for batch_idx, (data, target) in enumerate(loader):") + 1
    assert all(each.site is None or each.site.line != loop for each in found.culprits)


@pytest.mark.slow
def test_lines_are_timed_where_py_spy_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "USUAL_SECONDS", 1.0)
    monkeypatch.setattr(explain, "TIMED_SECONDS", 1.0)

    class Refused(PySpySampler):
        def start(self) -> None:
            """The system would say no."""

        def stop(self) -> Path | Warning:
            here = obstacle.Surroundings(platform="linux", root=False, ptrace_scope=3, can_trace=False, filtered=False)
            return obstacle.explain("Permission Denied", here)

    base, head = ({"train.py": TRAIN, "helper.py": helper} for helper in (QUICK, SLOW))
    found, sample = Against(tmp_path, base, head, Outside(sampler=Refused)).explained(GROWTH, DIFFERENCE)
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
