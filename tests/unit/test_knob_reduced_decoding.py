"""Pictures that are decoded at a part of their size: the same samples, scaled in another way, or a word why not."""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import ConcatDataset, DataLoader, Dataset, IterableDataset, Subset
from torchvision import datasets, transforms
from torchvision.transforms import functional

from bottleneck_doctor.runtime.knobs import reduced_decoding, shape
from bottleneck_doctor.runtime.knobs._around import stands_around
from bottleneck_doctor.runtime.knobs._tail import WithoutTail
from bottleneck_doctor.runtime.knobs.reduced_decoding import NAME, Reduced, Sizes, look, reduced, unlike

Use = Callable[[Path], Any]
WHOLE = (640, 480)
MASK = np.uint8(np.add.outer(np.arange(480), np.arange(640)) % 97)
HERE = str(Path(__file__).resolve())


def saved(folder: Path, number: int, size: tuple[int, int] = WHOLE, suffix: str = ".jpg") -> None:
    """Blobs of colour, so that parts of a picture are unlike."""
    coarse = np.random.default_rng(number).integers(0, 256, (6, 8, 3), dtype=np.uint8)
    picture = Image.fromarray(coarse).resize(size, Image.Resampling.BICUBIC)
    folder.mkdir(exist_ok=True)
    picture.save(folder / f"{number}{suffix}")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(6):
        saved(tmp_path / "pictures", number)
    return tmp_path / "pictures"


@pytest.fixture(autouse=True)
def _nothing_known() -> Iterator[None]:
    yield
    reduced_decoding._found.clear()


class Camera(Dataset[Any]):
    def __init__(self, folder: Path, use: Use) -> None:
        self.files = sorted(folder.iterdir())
        self.use = use

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> Any:
        return self.use(self.files[index]), index


def thumbnail(path: Path) -> Any:
    return functional.pil_to_tensor(Image.open(path).convert("RGB").resize((80, 60)))


def with_opencv(path: Path) -> Any:
    return cv2.resize(read(str(path)), (80, 60))


def of_bytes_with_opencv(path: Path) -> Any:
    decoded: Any = cv2.imdecode(np.fromfile(path, np.uint8), cv2.IMREAD_GRAYSCALE)
    return cv2.resize(decoded, (80, 60))


def as_a_picture(path: Path) -> Any:
    return Image.open(path).resize((80, 60))


def crops_at_random(path: Path) -> Any:
    part = transforms.RandomResizedCrop(56, scale=(0.6, 1.0))(Image.open(path).convert("RGB"))
    return functional.pil_to_tensor(part)


def thumbnail_source(path: Path) -> Any:
    return functional.pil_to_tensor(Image.open(path).convert("RGB"))


def flips(path: Path) -> Any:
    return transforms.RandomHorizontalFlip()(thumbnail(path))


# -- where it can be ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("use", "library", "factor"),
    [
        (thumbnail, "Pillow", 8),
        (flips, "Pillow", 8),
        (as_a_picture, "Pillow", 8),
        (with_opencv, "OpenCV", 8),
        (of_bytes_with_opencv, "OpenCV", 8),
    ],
)
def test_pictures_that_are_made_small_can_be_decoded_smaller(folder: Path, use: Use, library: str, factor: int) -> None:
    told = look(DataLoader(Camera(folder, use)))
    assert (told["obstacle"], told["library"], told["factor"], told["side"]) == ("", library, factor, 480 // factor)
    ((name, file, line),) = told["calls"]
    assert file == HERE
    assert f"{name}(" in Path(HERE).read_text(encoding="utf-8").splitlines()[line - 1]


def test_random_parts_of_pictures_can_be_made_of_smaller_ones(folder: Path) -> None:
    told = look(DataLoader(Camera(folder, crops_at_random)))
    assert told["obstacle"] == ""
    assert told["factor"] >= 4


def test_a_library_that_opens_them_has_no_line_of_the_users(folder: Path) -> None:
    data = datasets.ImageFolder(str(folder.parent), transforms.Compose([transforms.Resize(60), transforms.ToTensor()]))
    told = look(DataLoader(data))
    assert (told["obstacle"], told["calls"], told["folder"]) == ("", [], True)
    part = look(DataLoader(Subset(data, [0, 1, 2])))
    assert (part["obstacle"], part["calls"], part["folder"]) == ("", [], False)


def test_pictures_of_several_sizes_keep_what_the_largest_need(folder: Path) -> None:
    saved(folder, 6, (160, 120))
    saved(folder, 7, (1280, 960))
    told = look(DataLoader(Camera(folder, thumbnail)))
    # The smallest can only be divided by two; the largest is not divided by more than leaves its shorter side.
    assert (told["obstacle"], told["factor"], told["side"]) == ("", 2, 120)


# -- where it can't ----------------------------------------------------------------------------------------------------


def whole(path: Path) -> Any:
    return thumbnail_source(path)


def part_in_pixels(path: Path) -> Any:
    return functional.pil_to_tensor(Image.open(path).crop((0, 0, 480, 360)).resize((80, 60)))


def small_part_in_pixels(path: Path) -> Any:
    """It lies within the smaller picture, too, and is made of other pixels then."""
    return functional.pil_to_tensor(Image.open(path).crop((0, 0, 60, 45)).resize((8, 6)))


def flipped_part_in_pixels(path: Path) -> Any:
    return transforms.RandomHorizontalFlip()(small_part_in_pixels(path))


def with_its_size(path: Path) -> Any:
    image = Image.open(path)
    return torch.tensor(image.size), functional.pil_to_tensor(image.resize((80, 60)))


def with_a_mask(path: Path) -> Any:
    """The mask is no JPEG, and both are cut at the same place in pixels."""
    image, mask = Image.open(path).convert("RGB"), Image.fromarray(MASK)
    place = transforms.RandomResizedCrop.get_params(image, [0.5, 1.0], [1.0, 1.4])
    pixels, cut = (functional.pil_to_tensor(functional.resized_crop(each, *place, [60, 80])) for each in (image, mask))
    return pixels, cut


def with_a_mask_of_its_size(path: Path) -> Any:
    """As albumentations asks for it."""
    with Image.open(path) as image:
        if image.size != WHOLE:
            raise ValueError("Height and Width of image and mask should be equal")
        return functional.pil_to_tensor(image.resize((80, 60)))


def noise(path: Path) -> Any:
    return torch.rand(3, 60, 80)


def computes(path: Path) -> Any:
    until = time.thread_time() + 0.1
    while time.thread_time() < until:
        pass
    return thumbnail(path)


def drafts(path: Path) -> Any:
    image = Image.open(path)
    image.draft("RGB", (80, 60))
    return functional.pil_to_tensor(image.resize((80, 60)))


def fails(path: Path) -> Any:
    raise OSError("gone")


@pytest.mark.parametrize(
    ("use", "obstacle"),
    [
        (whole, "its pictures are not decoded at twice the size that is used"),
        (part_in_pixels, "its samples would not be the same but for how pictures are scaled"),
        (small_part_in_pixels, "its samples would not be the same but for how pictures are scaled"),
        (flipped_part_in_pixels, "its samples would not be the same but for how pictures are scaled"),
        (with_its_size, "its samples would not be the same but for how pictures are scaled"),
        (with_a_mask, "its samples would not be the same but for how pictures are scaled"),
        (with_a_mask_of_its_size, "its samples would not be the same but for how pictures are scaled"),
        (noise, "its samples are not made of JPEG pictures that Pillow or OpenCV decodes"),
        (computes, "nearly all of the time of a sample goes into something else than decoding"),
        (drafts, "already on: its pictures are decoded at a part of their size"),
        (fails, "preparing a sample in the main process failed (OSError)"),
    ],
)
def test_what_needs_pictures_as_they_are_says_so(folder: Path, use: Use, obstacle: str) -> None:
    assert look(DataLoader(Camera(folder, use))) == {"obstacle": obstacle}


def test_other_formats_have_no_smaller_size(tmp_path: Path) -> None:
    for number in range(2):
        saved(tmp_path / "pictures", number, suffix=".png")
    for use in (thumbnail, with_opencv):
        told = look(DataLoader(Camera(tmp_path / "pictures", use)))
        assert "not made of JPEG pictures" in told["obstacle"]


class Stream(IterableDataset[Any]):
    def __iter__(self) -> Iterator[Any]:
        return iter(())


def test_loaders_without_samples_by_index_are_left_alone(folder: Path) -> None:
    assert "iterable" in look(DataLoader(Stream()))["obstacle"]
    assert "whole batches" in look(DataLoader(Camera(folder, thumbnail), batch_size=None))["obstacle"]


# -- in a window -------------------------------------------------------------------------------------------------------


def samples(loader: Any) -> list[Any]:
    torch.manual_seed(0)
    return [sample for batch in loader for sample in zip(*batch, strict=True)]


def decoded_sizes(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    from PIL import ImageFile

    sizes = []
    load = ImageFile.ImageFile.load

    def seen(image: Any) -> Any:
        if image.tile:
            sizes.append(image.size)
        return load(image)

    monkeypatch.setattr(ImageFile.ImageFile, "load", seen)
    return sizes


def test_windows_have_the_same_samples_of_smaller_pictures(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loader = DataLoader(Camera(folder, thumbnail), batch_size=2)
    assert look(loader)["obstacle"] == ""
    sizes = decoded_sizes(monkeypatch)
    before = samples(loader)
    assert set(sizes) == {WHOLE}
    del sizes[:]
    written = loader.dataset
    shape(loader, {NAME: True})
    during = samples(loader)
    assert set(sizes) == {(80, 60)}
    for (one, number), (other, same) in zip(before, during, strict=True):
        assert number == same
        assert one.shape == other.shape
        assert (one.float() - other.float()).abs().mean() < 8
    kind = reduced_decoding.KNOB
    assert kind().effect_on_loading(True, _feed(loader)) is True
    loader.__dict__["dataset"] = written
    assert kind().effect_on_loading(True, _feed(loader)) is False
    assert kind().effect_on_loading(True, _feed(None)) is None


def _feed(loader: Any) -> Any:
    class Feed:
        pass

    feed = Feed()
    feed.loader = loader  # type: ignore[attr-defined]
    return feed


def test_it_goes_with_transforms_of_whole_batches(folder: Path) -> None:
    data = datasets.ImageFolder(
        str(folder.parent), transforms.Compose([transforms.Resize((6, 8)), transforms.ToTensor()])
    )
    loader = DataLoader(data, batch_size=2)
    assert look(loader)["obstacle"] == ""
    around = Reduced(loader.dataset, Sizes(60, 8))
    from bottleneck_doctor.runtime.knobs._tail import tail_of

    tail = tail_of(around)
    assert tail is not None
    assert stands_around(WithoutTail(around, tail), Reduced)
    assert not stands_around(WithoutTail(data, tail), Reduced)


def read(*args: Any, **kwargs: Any) -> Any:
    return cv2.imread(*args, **kwargs)


def test_opencv_reads_only_jpeg_smaller_and_nothing_with_flags_of_its_own(folder: Path, tmp_path: Path) -> None:
    saved(tmp_path / "other", 0, suffix=".png")
    jpeg, png = str(next(folder.iterdir())), str(tmp_path / "other" / "0.png")
    with reduced(Sizes(60, 8)):
        assert read(jpeg).shape == (60, 80, 3)
        assert read(jpeg, cv2.IMREAD_GRAYSCALE).shape == (60, 80)
        assert read(jpeg, flags=cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION).shape == (60, 80, 3)
        assert read(jpeg, cv2.IMREAD_UNCHANGED).shape == (480, 640, 3)
        assert read(jpeg, cv2.IMREAD_REDUCED_COLOR_2).shape == (240, 320, 3)
        assert read(png).shape == (480, 640, 3)
        assert read(str(tmp_path / "gone.jpg")) is None
    assert read(jpeg).shape == (480, 640, 3)


def test_nothing_is_left_behind_and_other_threads_see_nothing(folder: Path) -> None:
    before = Image.open, cv2.imread, cv2.imdecode
    seen: list[tuple[int, int]] = []
    path = next(folder.iterdir())

    def size_here() -> tuple[int, int]:
        with Image.open(path) as image:
            return image.size

    def fails() -> None:
        with reduced(Sizes(60, 8)):
            other = threading.Thread(target=lambda: seen.append(size_here()))
            other.start()
            other.join()
            assert size_here() == (80, 60)
            raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        fails()
    assert seen == [WHOLE]
    assert (Image.open, cv2.imread, cv2.imdecode) == before


def test_datasets_in_datasets_and_workers_that_inherit_nothing(folder: Path) -> None:
    data: Dataset[Any] = Subset(ConcatDataset([Camera(folder, thumbnail), Camera(folder, thumbnail)]), [0, 7, 3])
    assert look(DataLoader(data))["obstacle"] == ""
    around = pickle.loads(pickle.dumps(Reduced(data, Sizes(60, 8))))
    assert len(around) == 3
    assert around[1][0].shape == (3, 60, 80)
    assert around.__getitems__([0, 1])[1][1] == 1


def test_the_users_random_numbers_stay_the_same(folder: Path) -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    look(DataLoader(Camera(folder, flips)))
    assert torch.equal(torch.rand(3), expected)


def test_samples_are_unlike_in_nothing_but_their_pictures() -> None:
    pixels = torch.arange(100.0).reshape(10, 10)
    one = {"image": pixels, "label": 3, "boxes": [torch.zeros(4)]}
    assert unlike(one, {**one, "image": pixels.clone()}) == []
    (pair,) = unlike(one, {**one, "image": pixels + 1}) or []
    assert torch.equal(pair[1] - pair[0], torch.ones(10, 10, dtype=torch.float64))
    for other in (
        {**one, "label": 4},
        {**one, "boxes": [torch.ones(4)]},
        {**one, "boxes": []},
        {"image": pixels + 1},
        {**one, "image": pixels[1:]},
        {**one, "image": pixels.tolist()},
        {**one, "image": (pixels + 1).long()},
        one["label"],
    ):
        assert unlike(one, other) is None
    arrays = unlike([np.zeros((8, 8), np.uint8)], [np.ones((8, 8), np.uint8)])
    assert arrays is not None
    assert len(arrays) == 1
