"""JPEG is decoded at a part of its size: windows and the edited program train on the same pictures, scaled anew."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.process.conftest import StartGuest
from tests.process.driver import PRELUDE, notes, run_plain, write

from bottleneck_doctor.documents.report import Setting
from bottleneck_doctor.edits.advice import changes_for, edited_files
from bottleneck_doctor.fixes import Offer, catalogue

pytestmark = pytest.mark.process

ON: Setting = {"reduced_decoding": True}
FIX = next(fix for fix in catalogue() if fix.id == "reduced-decoding")
CAMERA = (
    PRELUDE
    + """
import numpy
from PIL import Image
from torchvision import transforms


class Camera(Rows):
    def __init__(self, transform):
        super().__init__(60, 0.0)
        self.transform = transform
        for number in range(4):
            coarse = numpy.random.default_rng(number).integers(0, 256, (6, 8, 3), dtype=numpy.uint8)
            Image.fromarray(coarse).resize((1280, 960), Image.Resampling.BICUBIC).save(f"{number}.jpg")

    def __getitem__(self, index):
        picture = Image.open(f"{index % 4}.jpg").convert("RGB")
        note("size", picture.size)
        return self.transform(picture), index


chain = transforms.Compose([transforms.Resize((60, 80)), transforms.RandomHorizontalFlip(), transforms.ToTensor()])
data = Camera(transform=chain)
loader = DataLoader(data, batch_size=6, shuffle=True, num_workers=int(sys.argv[1]))
model = nn.Linear(60 * 80 * 3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.0001)
for epoch in range(12):
    for images, _ in loader:
        optimizer.zero_grad()
        loss = model(images.flatten(1)).square().mean()
        loss.backward()
        optimizer.step()
        note("seen", round(images.mean().item(), 3))
"""
)


@pytest.mark.alone
@pytest.mark.parametrize("workers", ["0", pytest.param("1", marks=pytest.mark.slow)])
def test_a_window_decodes_less(guest: StartGuest, workers: str) -> None:
    script = guest(CAMERA, workers)
    found = script.found()
    offer = FIX.propose(found)
    assert isinstance(offer, Offer)
    assert offer.settings == (ON,)
    step = []
    for setting in (dict[str, bool](), ON, dict[str, bool](), ON):
        done = script.window(setting, lead_in=3, steps=10)
        assert (done.status, done.reason) == ("ok", "")
        assert done.effect == dict.fromkeys(setting, True)
        step.append(done.seconds / done.steps)
    assert max(step[1], step[3]) < min(step[0], step[2])
    sizes = {tuple(each) for each in script.notes("size")}
    assert sizes == {(1280, 960), (160, 120)}
    (change,) = changes_for(ON, found)
    assert '+        picture = decoded_smaller(Image.open(f"{index % 4}.jpg")).convert("RGB")' in change.diff


@pytest.mark.slow(together=True)
def test_the_edited_program_trains_on_pictures_as_bright(guest: StartGuest, tmp_path: Path) -> None:
    found = guest(CAMERA, "0").found()
    ((_, after),) = edited_files(ON, found).values()
    folders = [tmp_path / "written", tmp_path / "edited"]
    for folder, text in zip(folders, (CAMERA, after), strict=True):
        assert run_plain([str(write(folder, text)), "0"], folder).code == 0
    before, edited = (notes(folder / "seen") for folder in folders)
    assert len(before) == len(edited) > 0
    assert all(abs(one - other) < 0.01 for one, other in zip(before, edited, strict=True))
    assert {tuple(each) for each in notes(folders[1] / "size")} == {(160, 120)}


@pytest.mark.slow(together=True)
def test_the_edited_program_has_it_on_already(guest: StartGuest) -> None:
    found = guest(CAMERA, "0").found()
    ((_, after),) = edited_files(ON, found).values()
    refused = FIX.propose(guest(after, "0").found())
    assert not isinstance(refused, Offer)
    assert refused.reason.startswith("already on: ")


FOLDER = (
    PRELUDE
    + """
import numpy
from pathlib import Path
from PIL import Image
from torchvision import datasets, transforms

for number in range(24):
    file = Path("pictures", str(number % 2), f"{number}.jpg")
    file.parent.mkdir(parents=True, exist_ok=True)
    coarse = numpy.random.default_rng(number).integers(0, 256, (6, 8, 3), dtype=numpy.uint8)
    Image.fromarray(coarse).resize((960, 720), Image.Resampling.BICUBIC).save(file)
chain = transforms.Compose([transforms.RandomResizedCrop(64, scale=(0.6, 1.0)), transforms.ToTensor()])
data = datasets.ImageFolder("pictures", chain)
loader = DataLoader(data, batch_size=4, shuffle=True)
model = nn.Linear(64 * 64 * 3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.0001)
for epoch in range(4):
    for images, _ in loader:
        optimizer.zero_grad()
        model(images.flatten(1)).square().mean().backward()
        optimizer.step()
note("classes", data.classes)
"""
)


@pytest.mark.slow(together=True)
def test_pictures_of_a_folder_are_opened_by_a_function_that_decodes_less(guest: StartGuest, tmp_path: Path) -> None:
    script = guest(FOLDER)
    found = script.found()
    assert FIX.propose(found) == Offer((ON,))
    done = script.window(ON, lead_in=1, steps=3)
    assert (done.status, done.reason, done.effect) == ("ok", "", {"reduced_decoding": True})
    ((_, after),) = edited_files(ON, found).values()
    assert 'data = datasets.ImageFolder("pictures", chain, loader=decoded_smaller)' in after
    refused = FIX.propose(guest(after).found())
    assert not isinstance(refused, Offer)
    assert refused.reason.startswith("already on: ")
