"""The last transforms done to whole batches: windows train on the batches that come without us, and so does the edited
program."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.process.conftest import StartGuest
from tests.process.driver import PRELUDE, notes, run_plain, write

from bottleneck_doctor.documents.report import Setting
from bottleneck_doctor.edits.advice import changes_for, edited_files
from bottleneck_doctor.fixes import Offer, catalogue

pytestmark = pytest.mark.process

ON: Setting = {"batched_transforms": True}
ON_DEVICE: Setting = {"batched_transforms": "device"}
FIX = next(fix for fix in catalogue() if fix.id == "batched-transforms")
PICTURES = (
    PRELUDE
    + """
import numpy
from PIL import Image
from torchvision import transforms

pictures = [
    Image.fromarray(numpy.random.default_rng(index).integers(0, 256, (16, 16, 3), dtype=numpy.uint8))
    for index in range(60)
]


class Pictures(Rows):
    def __init__(self, transform):
        super().__init__(60, 0.0)
        self.transform = transform

    def __getitem__(self, index):
        return self.transform(pictures[index]), index


chain = transforms.Compose(
    [transforms.RandomHorizontalFlip(), transforms.ToTensor(), transforms.Normalize((0.5, 0.4, 0.3), (0.2, 0.3, 0.4))]
)
data = Pictures(transform=chain)
loader = DataLoader(data, batch_size=6, shuffle=True, num_workers=int(sys.argv[1]))
model = nn.Linear(768, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(4):
    for images, _ in loader:
        optimizer.zero_grad()
        loss = model(images.flatten(1)).square().mean()
        loss.backward()
        optimizer.step()
        note("seen", [str(images.dtype), images.stride(), round(images.double().sum().item(), 6)])
    evaluated, _ = Pictures(transform=loader.dataset.transform)[0]
    note("evaluated", str(evaluated.dtype))
"""
)


def test_windows_train_on_the_batches_that_come_without_us(guest: StartGuest, tmp_path: Path) -> None:
    alone = tmp_path / "alone"
    assert run_plain([str(write(alone, PICTURES)), "0"], alone).code == 0
    script = guest(PICTURES, "0")
    found = script.found()
    assert FIX.propose(found) == Offer((ON,))
    settings: list[Setting] = [ON, {}, ON_DEVICE]
    for setting in settings:
        done = script.window(setting, lead_in=2, steps=8)
        assert (done.status, done.reason) == ("ok", "")
        assert done.effect == dict.fromkeys(setting, True)
    assert script.run_out().code == 0
    expected, seen = notes(alone / "seen"), script.notes("seen")
    assert len(expected) == len(seen) == 40
    assert [row[:2] for row in seen] == [row[:2] for row in expected]
    # One stream of random numbers serves flips and shuffling, so the pictures of both are the same ones.
    assert seen[: found.position + 30] == expected[: found.position + 30]
    assert script.notes("evaluated") == ["torch.float32"] * 4


def test_workers_transform_their_batches(guest: StartGuest) -> None:
    # How far the lead-in goes past the queue of workers is a matter of chance.
    script = guest(PICTURES.replace("range(4)", "range(12)"), "1")
    script.found()
    done = script.window(ON, lead_in=2, steps=8)
    assert (done.status, done.reason, done.effect) == ("ok", "", {"batched_transforms": True})
    both = script.window({**ON, "num_workers": 2}, lead_in=2, steps=6)
    assert (both.status, both.effect) == ("ok", {"batched_transforms": True, "num_workers": True})
    phases = script.window(ON, mode="phases", lead_in=2, steps=4)
    assert (phases.status, phases.detail["loading"] is not None) == ("ok", True)
    loading = script.window(ON, mode="loader_only", lead_in=1, steps=3)
    assert (loading.status, loading.effect) == ("ok", {"batched_transforms": True})
    assert {row[0] for row in script.notes("seen")} == {"torch.float32"}


@pytest.mark.slow(together=True)
def test_the_edited_program_trains_on_the_same_batches(guest: StartGuest, tmp_path: Path) -> None:
    source = PICTURES.replace("    evaluated, _ = Pictures(transform=loader.dataset.transform)[0]\n", "").replace(
        '    note("evaluated", str(evaluated.dtype))\n', ""
    )
    found = guest(source, "0").found()
    (change,) = changes_for(ON, found)
    assert "collate_fn=transformed" in change.diff
    (told,) = changes_for(ON_DEVICE, found)
    assert told.diff == ""
    assert "`batch[0]` after it was moved to the device." in told.note
    ((_, after),) = edited_files(ON, found).values()
    folders = [tmp_path / "written", tmp_path / "edited"]
    for folder, text in zip(folders, (source, after), strict=True):
        assert run_plain([str(write(folder, text)), "0"], folder).code == 0
    assert notes(folders[0] / "seen") == notes(folders[1] / "seen")
