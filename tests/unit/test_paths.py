"""What the text of paths tells: names of one file."""

from __future__ import annotations

import pytest

from bottleneck_doctor.system.paths import same_file


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("train.py", "train.py"),
        ("/home/me/project/train.py", "train.py"),
        ("data/train.py", "/home/me/project/data/train.py"),
        ("./train.py", "train.py"),
        ("project/./train.py", "project/train.py"),
        ("C:\\project\\train.py", "project/train.py"),
    ],
)
def test_names_of_one_file(one: str, other: str) -> None:
    assert same_file(one, other)
    assert same_file(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("train.py", "retrain.py"),
        ("/home/me/train.py", "/home/you/train.py"),
        ("data/train.py", "train/train.py"),
        ("train.py", ""),
        ("", ""),
    ],
)
def test_names_of_two_files(one: str, other: str) -> None:
    assert not same_file(one, other)
    assert not same_file(other, one)
