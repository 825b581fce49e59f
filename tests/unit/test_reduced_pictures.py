"""The edit that decodes pictures at a part of their size: each layout of a call, and what it leaves alone."""

from __future__ import annotations

import pytest

from bottleneck_doctor.edits.reduced_pictures import reduced_pictures_change
from bottleneck_doctor.knobs import SmallerPictures

ASKED = SmallerPictures("Pillow", 60, 8, ())
HELPER = '''def decoded_smaller(image):
    """Let JPEG be decoded at a part of its size, with no side shorter than 60 pixels."""
    image.draft(image.mode, (60, 60))
    return image


'''


def after(source: str, *calls: tuple[str, int]) -> str | None:
    change = reduced_pictures_change(source, calls, ASKED)
    return None if change is None else change.edited


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("x = Image.open(f)\n", "x = decoded_smaller(Image.open(f))\n"),
        ('x = PIL.Image.open(f).convert("RGB")\n', 'x = decoded_smaller(PIL.Image.open(f)).convert("RGB")\n'),
        ("with Image.open(f) as x:\n    pass\n", "with decoded_smaller(Image.open(f)) as x:\n    pass\n"),
    ],
)
def test_what_pillow_opens_is_set_to_be_decoded_smaller(before: str, expected: str) -> None:
    assert after(before, ("open", 1)) == HELPER + expected


def test_the_function_stands_above_what_uses_it() -> None:
    source = (
        '"""Trains."""\n\nfrom PIL import Image\n\n\nclass Data:\n    def get(self, f):\n        return Image.open(f)\n'
    )
    edited = after(source, ("open", 8))
    assert edited is not None
    assert edited.index("from PIL") < edited.index("def decoded_smaller") < edited.index("class Data:")
    assert "        return decoded_smaller(Image.open(f))\n" in edited
    compile(edited, "train.py", "exec")


def test_several_lines_share_the_function() -> None:
    edited = after("x = Image.open(f)\ny = Image.open(g)\n", ("open", 1), ("open", 2))
    assert edited == HELPER + "x = decoded_smaller(Image.open(f))\ny = decoded_smaller(Image.open(g))\n"


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("x = cv2.imread(f)\n", "x = cv2.imread(f, flags=cv2.IMREAD_REDUCED_COLOR_8)\n"),
        ("x = cv2.imread(f, 1)[:, :, ::-1]\n", "x = cv2.imread(f, cv2.IMREAD_REDUCED_COLOR_8)[:, :, ::-1]\n"),
        ("x = cv2.imread(f, cv2.IMREAD_GRAYSCALE)\n", "x = cv2.imread(f, cv2.IMREAD_REDUCED_GRAYSCALE_8)\n"),
        ("x = cv.imdecode(b, flags=cv.IMREAD_COLOR)\n", "x = cv.imdecode(b, flags=cv.IMREAD_REDUCED_COLOR_8)\n"),
    ],
)
def test_what_opencv_reads_gets_a_flag(before: str, expected: str) -> None:
    name = "imdecode" if "imdecode" in before else "imread"
    assert after(before, (name, 1)) == expected


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("x = open(f)\n", "open"),
        ("x = path.open()\n", "open"),
        ("x = Image.open(*f)\n", "open"),
        ("x = Image.open(f), Image.open(g)\n", "open"),
        ("decoded_smaller = 1\nx = Image.open(f)\n", "open"),
        ("x = imread(f)\n", "imread"),
        ("x = cv2.imread(f, flags)\n", "imread"),
        ("x = cv2.imread(f, cv2.IMREAD_UNCHANGED)\n", "imread"),
        ("x = cv2.imread(f, cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION)\n", "imread"),
        ("x = cv2.imread(f, *more)\n", "imread"),
        ("x = Image.open(\n", "open"),
        ("x = 1\n", "open"),
    ],
)
def test_a_call_that_is_not_sure_is_left_alone(source: str, name: str) -> None:
    assert after(source, (name, source.count("\n"))) is None
    assert after(source) is None
