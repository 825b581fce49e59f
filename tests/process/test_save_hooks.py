"""The user's process is somebody's house: what runs under the guest behaves as without it."""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from tests.process.conftest import StartGuest
from tests.process.driver import LOOP, PRELUDE, Guest, notes, run_plain, write

from bottleneck_doctor.protection.protector import protecting
from bottleneck_doctor.session.session import Command

pytestmark = pytest.mark.process

SURROUNDINGS = """
import json, os, sys, importlib.util
here = {
    "name": __name__,
    "argv": sys.argv,
    "path": sys.path,
    "cwd": os.getcwd(),
    "main": sys.modules["__main__"].__file__,
    "package": __package__,
    "executable": sys.executable,
    "flags": str(sys.flags),
    "found torch": importlib.util.find_spec("torch") is not None and "torch" not in sys.modules,
    "own sitecustomize": getattr(sys.modules.get("sitecustomize"), "MARK", None),
    "terminal": [sys.stdin.isatty(), sys.stdin.read()],
    "signals": [str(__import__("signal").getsignal(number)) for number in (2, 15)],
    "home variables": {name: os.environ.get(name) for name in ("HOME", "PATH", "MINE")},
}
"""

TRAINING = """
def main():
    for batch in DataLoader(Rows(160), batch_size=4):
        train_on(batch)
    import inspect
    from torch.utils.data.dataloader import _BaseDataLoaderIter

    # Frameworks look at the classes that we patch.
    patched = (DataLoader.__init__, DataLoader, _BaseDataLoaderIter.__next__, torch.save, torch.load,
               torch.autograd.backward, torch.amp.GradScaler.step)
    here["classes"] = [[each.__qualname__, str(inspect.signature(each)), each.__module__, each.__doc__]
                       for each in patched]
    note("surroundings", here)
    sys.exit(3)


if __name__ == "__main__":
    main()
"""


def compare(plain: dict[str, Any], ours: dict[str, Any]) -> None:
    for name, value in plain.items():
        assert ours[name] == value, name


def test_script_sees_what_it_sees_without_us(guest: StartGuest, tmp_path: Path) -> None:
    site = tmp_path / "site"
    write(site, "MARK = 'the user wrote this'\n", "sitecustomize.py")
    environment = {"PYTHONPATH": str(site), "MINE": "a b"}
    arguments = ["--n", "key=value", "--", "-x", "ü 'quoted'"]
    script = guest(SURROUNDINGS + PRELUDE + TRAINING, *arguments, environment=environment)
    script.found()
    for setting in ({}, {"num_workers": 1}):
        assert script.window(setting).status == "ok"
    assert script.run_out().code == 3
    assert script.ended is not None
    assert script.ended.served
    ours = script.notes("surroundings")[0]
    (tmp_path / "surroundings").unlink()
    plain = run_plain([str(tmp_path / "train.py"), *arguments], tmp_path, environment)
    assert plain.code == 3
    compare(script.notes("surroundings")[0], ours)
    assert ours["name"] == "__main__"
    assert ours["found torch"]
    assert ours["own sitecustomize"] == "the user wrote this"


@pytest.mark.slow(together=True)
def test_module_with_relative_imports(tmp_path: Path) -> None:
    write(tmp_path, "", "trainers/__init__.py")
    write(tmp_path, PRELUDE, "trainers/parts.py")
    write(tmp_path, SURROUNDINGS + "from .parts import *\n" + TRAINING, "trainers/deep.py")
    script = Guest(Command((sys.executable, "-m", "trainers.deep", "--epochs", "3"), tmp_path))
    try:
        script.found()
        assert script.window({"num_workers": 2}, lead_in=6).status == "ok"
        assert script.run_out().code == 3
    finally:
        script.close()
    ours = script.notes("surroundings")[0]
    (tmp_path / "surroundings").unlink()
    run_plain(["-m", "trainers.deep", "--epochs", "3"], tmp_path)
    compare(notes(tmp_path / "surroundings")[0], ours)
    assert ours["package"] == "trainers"


RAISING = (
    PRELUDE
    + """
class Broken(Rows):
    def __getitem__(self, index):
        if "dataset" in sys.argv and index == 100:
            raise ValueError("sample 100 is broken")
        return super().__getitem__(index)


def step(number, batch):
    try:
        train_on(batch)
        if "early" in sys.argv and number == 3:
            {}["early"]
    except KeyError as error:
        raise RuntimeError("chained") from error


for number, batch in enumerate(DataLoader(Broken(800), batch_size=4)):
    step(number, batch)
"""
)


@pytest.mark.parametrize("where", [pytest.param("dataset", marks=pytest.mark.slow(together=True)), "early"])
def test_traceback_and_exit_code_are_those_without_us(guest: StartGuest, tmp_path: Path, where: str) -> None:
    script = guest(RAISING, where)
    if where != "early":
        script.found()
        script.grant({}, lead_in=2, steps=10**6)
    exited = script.exited()
    plain = run_plain([str(tmp_path / "train.py"), where], tmp_path)
    assert "Traceback" in plain.err
    assert (exited.code, exited.tail) == (plain.code, plain.out + plain.err)


@pytest.mark.slow(together=True)
def test_workers_that_the_user_spawns_find_their_functions(guest: StartGuest) -> None:
    """Spawned processes import the main script again and unpickle from it."""
    script = guest(
        PRELUDE
        + """
if __name__ == "__main__":
    loader = DataLoader(Rows(400), batch_size=4, num_workers=1, multiprocessing_context="spawn")
    for batch in loader:
        train_on(batch)
"""
    )
    found = script.found()
    assert (found.start_method, found.workers_unsafe, found.num_workers) == ("spawn", "", 1)
    assert script.window({}, lead_in=4).status == "ok"


def test_what_is_saved_can_be_loaded_and_overwrites_nothing(tmp_path: Path) -> None:
    (tmp_path / "best.pt").write_bytes(b"the model of last week")
    write(
        tmp_path,
        PRELUDE
        + """
from pathlib import Path
for epoch in range(5):
    for batch in DataLoader(Rows(48), batch_size=4):
        train_on(batch)
    for name in ("best.pt", Path("new.pt"), os.path.abspath("third.pt")):
        torch.save({"epoch": epoch, "model": model.state_dict()}, name)
    loaded = torch.load(Path("best.pt"))
    model.load_state_dict(loaded["model"])
    print(loaded["epoch"], torch.load("third.pt")["epoch"], os.path.getsize("new.pt") > 100)
""",
    )
    protector = protecting(tmp_path, ["train.py"])
    script = Guest(Command((sys.executable, "train.py"), tmp_path), protector)
    try:
        script.found()
        assert script.window({}, steps=20).status == "ok"
        exited = script.run_out()
    finally:
        script.close()
        protector.close()
    assert exited.code == 0
    assert exited.tail.splitlines() == [f"{epoch} {epoch} True" for epoch in range(5)]
    assert (tmp_path / "best.pt").read_bytes() == b"the model of last week"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["best.pt", "train.py"]


def test_nothing_of_ours_is_printed(guest: StartGuest) -> None:
    script = guest(PRELUDE + "for batch in DataLoader(Rows(400), batch_size=4): train_on(batch)\nprint('done')\n")
    script.found()
    for setting in ({"num_workers": 2}, {"autocast": "bfloat16"}, {"autocast": "float16"}, {"replay": True}):
        script.window(setting, lead_in=6)
    exited = script.run_out()
    assert re.sub(r"\s", "", exited.tail) == "done"


def test_long_name_of_the_temporary_folder(guest: StartGuest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Schedulers of clusters set long ones, and the path of a socket must be short."""
    folder = tmp_path / ("scratch-of-job-" * 8)
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    script = guest(LOOP)
    script.found()
    assert script.window({}).status == "ok"
    script.close()
    assert list(folder.iterdir()) == []
    assert not script.session._folder.exists()
