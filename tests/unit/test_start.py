"""What is started, and the command lines of ours that start it again."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bottleneck_doctor.session.start import Start


@pytest.mark.parametrize(
    ("start", "said"),
    [
        (Start(script=Path("train.py")), ["train.py"]),
        (Start(script=Path("train.py"), arguments=("--epochs", "3")), ["train.py", "--", "--epochs", "3"]),
        (Start(module="pets.train"), ["-m", "pets.train"]),
        (Start(module="pets.train", arguments=("--epochs", "3")), ["-m", "pets.train", "--", "--epochs", "3"]),
        (
            Start(words=("trl", "sft", "a b"), environment={"KEY": "secret"}),
            ["--exec", "KEY=... trl sft 'a b'"],
        ),
        (
            Start(
                script=Path("t.py"),
                launcher=("nice", "-n", "1"),
                listen=("here", 0),
                python="/bin/python",
                in_place=True,
            ),
            ["--launch", "nice -n 1", "--listen", "here:0", "--python", "/bin/python", "--in-place", "t.py"],
        ),
    ],
)
def test_what_starts_the_same(start: Start, said: list[str]) -> None:
    assert start.again("run", "--seed", "7") == ["doctor", "run", "--seed", "7", *said]


def test_a_command_runs_as_it_is_and_all_else_under_an_interpreter() -> None:
    words = (sys.executable, "-m", "pets.train")
    assert Start(words=words).argv() == Start(words=words).entrypoint() == words
    assert Start(words=words).interpreter == sys.executable
    assert Start(words=("trl", "sft")).interpreter == sys.executable
    assert Start(module="pets").argv() == (sys.executable, "-m", "pets")
    named = Start(script=Path("train.py"), arguments=("x",), python="/opt/python")
    assert named.argv() == ("/opt/python", "train.py", "x")
    assert named.argv(("../base/train.py", "x")) == ("/opt/python", "../base/train.py", "x")
    assert named.name == "train.py"
