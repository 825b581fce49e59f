"""The edit that decodes pictures at a part of their size: each layout of a call, and what it leaves alone."""

from __future__ import annotations

import pytest

from bottleneck_doctor.edits.reduced_pictures import reduced_folder_change, reduced_pictures_change
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


OPENING = '''def decoded_smaller(path):
    """Open a picture. JPEG is decoded at a part of its size, with no side shorter than 60 pixels."""
    from PIL import Image

    with Image.open(path) as image:
        image.draft(image.mode, (60, 60))
        return image.convert("RGB")


'''


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        (
            "data = ImageFolder(root, chain)\nprint(data.classes)\nloader = DataLoader(data)\n",
            "data = ImageFolder(root, chain, loader=decoded_smaller)\nprint(data.classes)\nloader = DataLoader(data)\n",
        ),
        (
            "loader = DataLoader(datasets.ImageFolder(root, transform=chain), 8)\n",
            "loader = DataLoader(datasets.ImageFolder(root, transform=chain, loader=decoded_smaller), 8)\n",
        ),
    ],
)
def test_image_folders_get_a_function_that_opens_their_pictures(before: str, expected: str) -> None:
    change = reduced_folder_change(before, before.count("\n"), 60)
    assert change is not None
    assert change.edited == OPENING + expected
    # The line of the user's that changes, and not the one in front of which the function stands.
    assert change.line == 1


def test_the_line_is_that_of_the_data_set() -> None:
    source = "import torch\n\n\ndef main():\n    data = ImageFolder(root)\n    loader = DataLoader(data)\n"
    change = reduced_folder_change(source, 6, 60)
    assert change is not None
    assert change.line == 5
    assert change.edited.index("def decoded_smaller") < change.edited.index("def main")


@pytest.mark.parametrize(
    "source",
    [
        "data = ImageFolder(root, loader=mine)\nloader = DataLoader(data)\n",
        "data = ImageFolder(root, chain, None, mine)\nloader = DataLoader(data)\n",
        "data = ImageFolder(*given)\nloader = DataLoader(data)\n",
        "data = Pictures(root)\nloader = DataLoader(data)\n",
        "data = ImageFolder(a)\ndata = ImageFolder(b)\nloader = DataLoader(data)\n",
        "data, other = ImageFolder(a), 1\nloader = DataLoader(data)\n",
        "data = ImageFolder(a)\ndef f():\n    return DataLoader(data)\n",
        "data = {x: ImageFolder(x) for x in names}\nloader = {x: DataLoader(data[x]) for x in names}\n",
        "data = ImageFolder(a)\nloader = DataLoader(random_split(data, [1, 2])[0])\n",
        "decoded_smaller = 1\nloader = DataLoader(ImageFolder(a))\n",
        "loader = DataLoader(\n",
    ],
)
def test_an_image_folder_that_is_not_sure_is_left_alone(source: str) -> None:
    assert reduced_folder_change(source, source.count("\n"), 60) is None
