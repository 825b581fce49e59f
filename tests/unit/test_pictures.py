"""Pictures that are decoded larger than they are used: seen where Pillow decodes them and makes them smaller."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import torch
from PIL import Image, ImageFile
from torchvision import transforms

from bottleneck_doctor.documents.report import PictureUse
from bottleneck_doctor.measure import phases
from bottleneck_doctor.runtime.loop import decoding, pictures
from bottleneck_doctor.runtime.loop.pictures import PictureCount, Pictures, divisor, size_of, summary

WHOLE = (640, 480)
Use = Callable[[Path], Any]


def saved(folder: Path, name: str = "one.jpg", size: tuple[int, int] = WHOLE) -> Path:
    path = folder / name
    grain = np.random.default_rng(0).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    Image.fromarray(grain).save(path)
    return path


def told(*uses: tuple[Use, Path]) -> Pictures | None:
    """What is seen where a batch is made of these."""
    count = PictureCount()
    count.begin()
    try:
        for use, path in uses:
            use(path)
    finally:
        count.end()
    return count.told(str(uses[0][1].parent) if uses else "")


def shrinks(path: Path) -> Any:
    return Image.open(path).convert("RGB").resize((80, 60))


def from_a_handle(path: Path) -> Any:
    """As torchvision's ImageFolder does it."""
    with path.open("rb") as handle:
        return Image.open(handle).convert("RGB").resize((80, 60))


def from_bytes(path: Path) -> Any:
    """As archives and data sets of Hugging Face's do it."""
    with io.BytesIO(path.read_bytes()) as content:
        return Image.open(content).convert("RGB").resize((80, 60))


def read(*args: Any, **kwargs: Any) -> Any:
    return cv2.imread(*args, **kwargs)


def with_opencv(path: Path) -> Any:
    return cv2.resize(cv2.cvtColor(read(str(path)), cv2.COLOR_BGR2RGB), (80, 60))


def grey_with_opencv(path: Path) -> Any:
    return cv2.resize(read(str(path), flags=cv2.IMREAD_GRAYSCALE), dsize=(80, 60))


def crops_with_opencv(path: Path) -> Any:
    return cv2.resize(read(str(path))[10:250, 10:330], (80, 60))


def from_bytes_with_opencv(path: Path) -> Any:
    encoded = np.frombuffer(path.read_bytes(), np.uint8)
    decoded: Any = cv2.imdecode(encoded, cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION)
    return cv2.resize(decoded, (80, 60))


def reduced_with_opencv(path: Path) -> Any:
    return cv2.resize(read(str(path), cv2.IMREAD_REDUCED_COLOR_4), (80, 60))


def crops(path: Path) -> Any:
    """As RandomResizedCrop does it: a quarter of the picture."""
    return Image.open(path).convert("RGB").crop((10, 10, 330, 250)).resize((80, 60))


def takes_a_box(path: Path) -> Any:
    return Image.open(path).resize((80, 60), box=(0, 0, 320, 240))


def as_array(path: Path) -> Any:
    """With tensors, as torchvision's first transforms do it; OpenCV's function is watched in the same way."""
    pixels = torch.from_numpy(np.array(Image.open(path))).permute(2, 0, 1)
    return transforms.functional.resize(pixels, [60, 80], antialias=True)


def works_slowly(path: Path) -> Any:
    image = Image.open(path)
    image.load()
    time.sleep(0.05)
    return image.convert("L").resize((80, 60))


def keeps(path: Path) -> Any:
    return np.array(Image.open(path))


def drafts(path: Path) -> Any:
    image = Image.open(path)
    image.draft("RGB", (80, 60))
    return image.resize((80, 60))


def enlarges(path: Path) -> Any:
    return Image.open(path).resize((700, 600))


@pytest.mark.parametrize(
    ("use", "factor"),
    [
        (shrinks, 8),
        (from_a_handle, 8),
        (crops, 4),
        (takes_a_box, 4),
        (as_array, 8),
        (with_opencv, 8),
        (grey_with_opencv, 8),
        (crops_with_opencv, 4),
        (drafts, 1),
        (enlarges, 1),
    ],
)
def test_what_is_made_smaller_is_seen_with_how_much_larger_it_was_decoded(
    tmp_path: Path, use: Use, factor: int
) -> None:
    path = saved(tmp_path)
    seen = told((use, path))
    assert seen is not None
    assert (seen.decoded, seen.shrunk, seen.factor) == (1, 1, factor)
    assert seen.seconds > 0
    assert Path(seen.file) == path
    if factor > 1:
        assert (seen.width, seen.height, seen.used_width, seen.used_height) == (*WHOLE, 80, 60)


@pytest.mark.timed
@pytest.mark.parametrize(
    ("use", "library", "mode"),
    [(from_bytes, "Pillow", "RGB"), (from_bytes_with_opencv, "OpenCV", "RGB"), (grey_with_opencv, "OpenCV", "L")],
)
def test_pictures_are_tried_with_the_library_that_decodes_them(
    tmp_path: Path, use: Use, library: str, mode: str
) -> None:
    batches = []
    for name in ("one", "two", "three"):  # One decoding alone may meet another program, and a small one any.
        (tmp_path / name).mkdir()
        seen = told((use, saved(tmp_path / name, size=(2000, 1500))))
        assert seen is not None
        assert (seen.decoded, seen.shrunk, seen.factor) == (1, 1, 8)
        batches.append(seen)
    found = summary(batches)["pictures"]
    assert (found["library"], found["mode"], found["tried"]) == (library, mode, 3)
    assert (found["width"], found["height"], found["used_width"], found["used_height"]) == (2000, 1500, 80, 60)
    assert 0 < found["reduced_seconds"] < found["whole_seconds"]


@pytest.mark.parametrize("library", ["Pillow", "OpenCV"])
@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_what_is_tried_decodes_a_part_of_the_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: str, mode: str
) -> None:
    sizes = []

    def seen(original: Callable[..., Any]) -> Callable[..., Any]:
        def decoded(*args: Any) -> Any:
            result = original(*args)
            sizes.append(args[0].size if library == "Pillow" else size_of(result))
            return result

        return decoded

    owner, name = (ImageFile.ImageFile, "load") if library == "Pillow" else (cv2, "imdecode")
    monkeypatch.setattr(owner, name, seen(getattr(owner, name)))
    assert len(decoding.tried([str(saved(tmp_path))], library, mode, 4)) == 1
    assert set(sizes) == {WHOLE, (160, 120)}


def test_few_pictures_that_come_as_bytes_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(tmp_path)
    path.rename(tmp_path / "taken")
    count = PictureCount()
    kept = []
    for _ in range(5):
        count.begin()
        from_bytes(tmp_path / "taken")
        count.end()
        seen = count.told(str(tmp_path))
        assert seen is not None
        kept.append(seen.file)
    assert [bool(file) for file in kept] == [True, True, True, False, False]
    assert all(Path(file).read_bytes() == (tmp_path / "taken").read_bytes() for file in kept[:3])
    monkeypatch.setattr(pictures, "MOST_BYTES", 100)
    large = told((from_bytes, tmp_path / "taken"))
    assert large is not None
    assert (large.factor, large.file) == (8, "")


def unchanged_with_opencv(path: Path) -> Any:
    return cv2.resize(read(str(path), cv2.IMREAD_UNCHANGED), (80, 60))


def partly_drafts(path: Path) -> Any:
    image = Image.open(path)
    image.draft("RGB", (320, 240))
    return image.resize((80, 60))


def test_what_is_decoded_at_a_part_of_its_size_is_not_asked_to_be_smaller(tmp_path: Path) -> None:
    path = saved(tmp_path)
    for use in (reduced_with_opencv, partly_drafts):
        seen = told((use, path))
        assert seen is not None
        assert (seen.decoded, seen.shrunk, seen.factor) == (1, 1, 1)


def test_what_opencv_reads_otherwise_is_needed_whole(tmp_path: Path) -> None:
    path = saved(tmp_path)
    seen = told((unchanged_with_opencv, path))
    assert seen is not None
    assert (seen.decoded, seen.shrunk, seen.factor) == (1, 0, 1)
    other = told((with_opencv, saved(tmp_path, "one.png")))
    assert other is not None
    assert (other.decoded, other.factor) == (0, 1)


def test_what_opencv_cannot_read_fails_as_without_us(tmp_path: Path) -> None:
    def missing(path: Path) -> None:
        assert read(str(path.with_name("gone.jpg"))) is None
        with pytest.raises(cv2.error):
            read(path, path)

    seen = told((missing, saved(tmp_path)))
    assert seen is None or seen.decoded == 0


def test_decoding_and_converting_are_timed_and_nothing_else(tmp_path: Path) -> None:
    path = saved(tmp_path)
    seen = told((works_slowly, path))
    assert seen is not None
    assert seen.mode == "L"
    assert 0 < seen.seconds < 0.05
    alone = told((takes_a_box, path))
    assert alone is not None
    assert alone.mode == ""


def test_a_picture_that_is_needed_whole_says_so_for_all(tmp_path: Path) -> None:
    path = saved(tmp_path)
    seen = told((shrinks, path), (keeps, path))
    assert seen is not None
    assert (seen.decoded, seen.shrunk, seen.factor) == (2, 1, 1)
    least = told((shrinks, path), (crops, path))
    assert least is not None
    assert least.factor == 4


def test_of_other_pictures_only_the_time_counts(tmp_path: Path) -> None:
    other = told((shrinks, saved(tmp_path, "one.png")))
    assert other is not None
    assert other.seconds > 0
    assert (other.decoded, other.factor) == (0, 1)
    assert told() is None


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    before = dict(vars(ImageFile.ImageFile)), Image.Image.resize
    with pytest.raises(FileNotFoundError):
        told((shrinks, saved(tmp_path)), (shrinks, tmp_path / "gone.jpg"))
    assert (dict(vars(ImageFile.ImageFile)), Image.Image.resize) == before


@pytest.mark.parametrize(
    "picture", [Image.new("RGB", (6, 4)), np.zeros((4, 6, 3)), torch.zeros(3, 4, 6), torch.zeros(2, 3, 4, 6)]
)
def test_sizes_are_width_and_height(picture: Any) -> None:
    assert size_of(picture) == (6, 4)


def test_what_has_no_size_is_no_picture() -> None:
    assert size_of(np.zeros(3)) is None
    assert size_of("picture") is None


@pytest.mark.parametrize(
    ("before", "after", "factor"),
    [((640, 480), (80, 60), 8), ((640, 480), (81, 60), 4), ((300, 300), (224, 224), 1), ((500, 375), (224, 160), 2)],
)
def test_decoding_divides_by_what_leaves_enough(before: tuple[int, int], after: tuple[int, int], factor: int) -> None:
    assert divisor(before, after) == factor


@pytest.mark.timed
def test_both_ways_of_decoding_are_tried(tmp_path: Path) -> None:
    path = saved(tmp_path, size=(2000, 1504))
    seen = told((shrinks, path))
    assert seen is not None
    made = summary([seen, seen])
    assert made["decoded_seconds"] == 2 * seen.seconds
    found = made["pictures"]
    assert (found["factor"], found["tried"]) == (8, 1)
    assert 0 < found["reduced_seconds"] < found["whole_seconds"]
    assert (found["width"], found["height"], found["used_width"], found["used_height"]) == (2000, 1504, 80, 60)


def test_nothing_is_said_where_nothing_was_tried(tmp_path: Path) -> None:
    path = saved(tmp_path)
    thumbnail, drafted, whole = (told((use, path)) for use in (shrinks, drafts, keeps))
    other = told((shrinks, saved(tmp_path, "one.png")))
    assert thumbnail is not None
    assert drafted is not None
    assert whole is not None
    assert other is not None
    assert summary([drafted])["pictures"] is None
    assert summary([thumbnail, whole])["pictures"] is None
    assert summary([]) == {"decoded_seconds": 0, "pictures": None}
    assert summary([thumbnail, other])["pictures"] is not None
    path.unlink()
    assert summary([thumbnail])["pictures"] is None


def window(pictures: dict[str, Any] | None, seconds: float = 0.0) -> dict[str, Any]:
    made = {"num_workers": 0, "fetch_seconds": [0.01, 0.01], "collate_seconds": 0.001, "samples": 8.0, "bytes": 100.0}
    made |= {"hand_over_seconds": [], "delivered": 0, "out_of_order": 0, "span": 1.0, "workers": [], "files": None}
    return {
        "loading": {
            **made,
            "fetch_site": None,
            "collate_site": None,
            "transforms": [],
            "pictures": pictures,
            "decoded_seconds": seconds,
        }
    }


def test_windows_add_up() -> None:
    one: dict[str, Any] = {"factor": 8, "tried": 3, "whole_seconds": 0.004, "reduced_seconds": 0.001}
    one |= {"library": "OpenCV", "mode": "L", "width": 640, "height": 480, "used_width": 80, "used_height": 60}
    found = phases.loading([window(one, 0.018), window({**one, "factor": 4, "reduced_seconds": 0.003}, 0.012)], {})
    assert found is not None
    assert found.pictures == PictureUse(
        width=640,
        height=480,
        used_width=80,
        used_height=60,
        factor=4,
        whole_ms=4.0,
        reduced_ms=2.0,
        tried=6,
        library="OpenCV",
        mode="L",
    )
    assert found.decoding == pytest.approx(0.75)
    # In the other window, pictures were used whole.
    without = phases.loading([window(one), window(None)], {})
    assert without is not None
    assert without.pictures is None
    assert without.decoding is None
