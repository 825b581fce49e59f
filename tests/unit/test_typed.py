"""Commands that stand in the place of a script: what they mean in doctor's own options."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bottleneck_doctor.cli import _typed
from bottleneck_doctor.cli._typed import Typed


@pytest.fixture(autouse=True)
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in PATH with some commands, beside a folder with a script, which is the current one."""
    there = tmp_path / "bin"
    there.mkdir()
    for name in ("python", "python3", "torchrun", "accelerate", "nnUNetv2_train", "train", "python3.11"):
        (there / name).write_text("#!/bin/sh\n")
        (there / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{there}{os.pathsep}{os.defpath}")
    work = tmp_path / "work"
    work.mkdir()
    (work / "train.py").write_text("")
    monkeypatch.chdir(work)
    return there


def test_a_script_is_a_script(tmp_path: Path) -> None:
    assert _typed.read(()) is None
    assert _typed.read(("train.py", "--lr", "3")) is None
    assert _typed.read(("missing.py",)) is None
    assert _typed.read(("no_such_command", "x")) is None
    assert _typed.read(("bin/torchrun", "train.py")) is None
    # The ending was forgotten.
    assert _typed.read(("train", "--lr", "3")) is None
    # A file of that name, beside the command.
    Path("torchrun").write_text("")
    assert _typed.read(("torchrun", "train.py")) is None


@pytest.mark.parametrize("name", ["python", "python3", "python3.11"])
def test_an_interpreter_before_the_script(name: str, commands: Path) -> None:
    found = _typed.read((name, "train.py", "--lr", "3"))
    assert found == Typed(words=("train.py", "--lr", "3"), python=str(commands / name))
    assert _typed.read((name, "train.py"), launched=True) == Typed(words=("train.py",), python=str(commands / name))


def test_an_interpreter_before_a_module(commands: Path) -> None:
    found = _typed.read(("python", "--", "-m", "pets.train", "--lr", "3"))
    assert found == Typed(module="pets.train", words=("--lr", "3"), python=str(commands / "python"))


def test_an_interpreter_with_options_of_its_own_is_a_command(commands: Path) -> None:
    assert _typed.read(("python", "-u", "train.py")) == Typed(command=(str(commands / "python"), "-u", "train.py"))
    assert _typed.read(("python",)) == Typed(command=(str(commands / "python"),))


def test_a_launcher_before_the_script() -> None:
    plain = ("torchrun", "--nproc-per-node", "2", "train.py", "--lr", "3")
    assert _typed.read(plain) == Typed(words=("train.py", "--lr", "3"), launch="torchrun --nproc-per-node 2")
    configured = ("accelerate", "launch", "--config_file", "a b.yaml", "train.py")
    assert _typed.read(configured) == Typed(words=("train.py",), launch="accelerate launch --config_file 'a b.yaml'")


def test_a_launcher_without_a_script_is_a_command(commands: Path) -> None:
    assert _typed.read(("torchrun", "-m", "pets")) == Typed(command=(str(commands / "torchrun"), "-m", "pets"))
    assert _typed.read(("torchrun", "train.py"), launched=True) is None


def test_an_executable_script_of_another_language_is_run_as_it_is() -> None:
    script = Path("train.sh")
    script.write_text("#!/bin/sh\npython train.py\n")
    assert _typed.read(("./train.sh", "x")) is None
    script.chmod(0o755)
    assert _typed.read(("./train.sh", "x")) == Typed(command=(str(script.absolute()), "x"))
    assert _typed.read(("train.sh",), launched=True) is None
    own = Path("run")
    own.write_text("#!/usr/bin/env python3\n")
    own.chmod(0o755)
    assert _typed.read(("./run", "x")) is None
    assert _typed.read((".", "x")) is None


def test_any_other_command_is_run_as_it_is(commands: Path) -> None:
    there = str(commands / "nnUNetv2_train")
    assert _typed.read(("nnUNetv2_train", "3", "2d")) == Typed(command=(there, "3", "2d"))
    assert _typed.read(("nnUNetv2_train", "--", "3", "2d")) == Typed(command=(there, "3", "2d"))
