"""What the transforms get is kept in memory: a window decodes nothing, and draws the transforms again."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.process.conftest import StartGuest
from tests.process.driver import PRELUDE, notes, run_plain, write

from bottleneck_doctor.documents.report import Setting
from bottleneck_doctor.edits.advice import changes_for, edited_files
from bottleneck_doctor.fixes import Offer, catalogue

pytestmark = pytest.mark.process

ON: Setting = {"cached_inputs": True}
FIX = next(fix for fix in catalogue() if fix.id == "cached-inputs")
PICTURES = (
    PRELUDE
    + """
import numpy
from PIL import Image
from torchvision import transforms


class Pictures(Rows):
    def __init__(self, transform):
        super().__init__(60, 0.0)
        self.transform = transform

    def __getitem__(self, index):
        time.sleep(0.01)
        pixels = numpy.random.default_rng(index).integers(0, 256, (8, 8, 3), dtype=numpy.uint8)
        return self.transform(Image.fromarray(pixels)), index


data = Pictures(transform=transforms.Compose([transforms.RandomHorizontalFlip(), transforms.ToTensor()]))
loader = DataLoader(data, batch_size=6, shuffle=True, num_workers=int(sys.argv[1]))
model = nn.Linear(192, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(12):
    for images, _ in loader:
        optimizer.zero_grad()
        loss = model(images.flatten(1)).square().mean()
        loss.backward()
        optimizer.step()
        note("seen", [str(images.dtype), [round(image.double().sum().item(), 4) for image in images]])
"""
)


@pytest.mark.sleeping
@pytest.mark.parametrize("workers", ["0", pytest.param("1", marks=pytest.mark.slow)])
def test_a_window_reads_nothing_again(guest: StartGuest, workers: str) -> None:
    script = guest(PICTURES, workers)
    found = script.found()
    offer = FIX.propose(found)
    assert isinstance(offer, Offer)
    assert ON in offer.settings
    step = []
    for setting in (dict[str, bool](), ON, dict[str, bool](), ON):
        done = script.window(setting, lead_in=3, steps=10)
        assert (done.status, done.reason) == ("ok", "")
        assert done.effect == dict.fromkeys(setting, True)
        step.append(done.seconds / done.steps)
    assert min(step[0], step[2]) > 0.05, "six samples of 10 ms"
    assert max(step[1], step[3]) < 0.03
    (change,) = changes_for(ON, found)
    assert "+loader = DataLoader(KeptInputs(data), " in change.diff


def test_samples_under_it_are_samples_of_the_dataset(guest: StartGuest) -> None:
    script = guest(PICTURES, "0")
    script.found()
    before = len(script.notes("seen"))
    assert script.window(ON, lead_in=3, steps=12).status == "ok"
    during = script.notes("seen")[before:]
    assert script.run_out().code == 0
    sums = {each for kind, row in script.notes("seen")[:before] + script.notes("seen")[-20:] for each in row}
    assert {kind for kind, _ in during} == {"torch.float32"}
    # A flip leaves the sum of a picture as it is.
    assert {each for _, row in during for each in row} <= sums


@pytest.mark.slow(together=True)
def test_the_edited_program_trains_on_the_same_batches(guest: StartGuest, tmp_path: Path) -> None:
    found = guest(PICTURES, "0").found()
    ((_, after),) = edited_files({**ON, "batched_transforms": True}, found).values()
    assert "collate_fn=transformed" in after
    assert "DataLoader(KeptInputs(data), " in after
    ((_, after),) = edited_files(ON, found).values()
    folders = [tmp_path / "written", tmp_path / "edited"]
    for folder, text in zip(folders, (PICTURES, after), strict=True):
        assert run_plain([str(write(folder, text)), "0"], folder).code == 0
    assert notes(folders[0] / "seen") == notes(folders[1] / "seen")


def test_both_ways_of_looking_at_transforms_go_together(guest: StartGuest) -> None:
    script = guest(PICTURES, "0")
    script.found()
    both: Setting = {**ON, "batched_transforms": True}
    done = script.window(both, lead_in=3, steps=8)
    assert (done.status, done.reason, done.effect) == ("ok", "", dict.fromkeys(both, True))
    phases = script.window(both, mode="phases", lead_in=2, steps=4)
    assert (phases.status, phases.detail["loading"] is not None) == ("ok", True)
