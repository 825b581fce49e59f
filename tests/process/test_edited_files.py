"""An edited program sees its edits where the user's files lie, and nobody else does: real processes, real overlays."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.process.driver import LOOP, Guest, wait_until
from tests.process.test_files import looks

from bottleneck_doctor.errors import DoctorError
from bottleneck_doctor.protection import plan, sandbox, scratch
from bottleneck_doctor.protection.protector import FileProtector, protecting
from bottleneck_doctor.protection.retention import Moments
from bottleneck_doctor.protection.sandbox import NotHere
from bottleneck_doctor.session.session import Command

pytestmark = pytest.mark.process

LOOK = """
import json, os, stat, sys
import helper, package.made
found = {
    "cwd": os.getcwd(),
    "file": __file__,
    "helper": [helper.__file__, helper.SAID],
    "package": package.made.SAID,
    "left": sorted(os.listdir(".")),
    "gone": os.path.exists("old"),
    "mode": stat.S_IMODE(os.stat("helper.py").st_mode),
    "data": open("data/rows.txt").read(),
}
open("data/rows.txt", "a").write("changed")
open("log.txt", "w").write("new")
print(json.dumps(found), flush=True)
"""
EDITED_HELPER = "SAID = 'edited'\n"

Protecting = Callable[[Mapping[str, bytes | None]], FileProtector]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    for name, text in {
        "look.py": "raise SystemExit('as written')\n",
        "helper.py": "SAID = 'before'\n",
        "data/rows.txt": "rows",
        "old/module.py": "",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "helper.py").chmod(0o440)
    return folder


@pytest.fixture(params=["sandbox", pytest.param("user namespace", marks=pytest.mark.slow(together=True))])
def shown(
    request: pytest.FixtureRequest, project: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., FileProtector]]:
    """Protection that shows edits, by paths from the project. Skipped where there is no sandbox."""
    monkeypatch.setenv("HOME", str(project.parent))
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    if request.param == "user namespace":
        # As for everybody who is not root.
        monkeypatch.setattr(sandbox, "_user", lambda: plan.User(os.geteuid(), os.getegid(), False))
    made: list[FileProtector] = []

    def protector(edits: Mapping[str, bytes | None]) -> FileProtector:
        plain = protecting(project, ["look.py"])
        plain.close()
        if plain.told().kind != "sandbox":
            pytest.skip(f"no sandbox here: {plain.told().reason}")
        made.append(protecting(project, ["look.py"], {str(project / name): text for name, text in edits.items()}))
        return made[-1]

    yield protector
    for each in made:
        each.close()


EDITS: Mapping[str, bytes | None] = {
    "look.py": LOOK.encode(),
    "helper.py": EDITED_HELPER.encode(),
    "package/made.py": b"SAID = 'new'\n",
    "old/module.py": None,
}


def look(protector: FileProtector, project: Path) -> dict[str, Any]:
    script = Guest(Command((sys.executable, "look.py"), project), protector)
    try:
        exited = script.exited()
        assert exited.code == 0, exited.tail
        found: dict[str, Any] = json.loads(exited.tail.splitlines()[-1])
        return found
    finally:
        script.close()


def test_the_program_sees_the_edits_and_the_users_files_stay(shown: Protecting, project: Path) -> None:
    before = looks(project)
    protector = shown(EDITS)
    for _ in range(2):  # Edits are there at every start, and what the program itself changed at none.
        assert look(protector, project) == {
            "cwd": str(project),
            "file": str(project / "look.py"),
            "helper": [str(project / "helper.py"), "edited"],
            "package": "new",
            "left": ["__pycache__", "data", "helper.py", "look.py", "package"],
            "gone": False,
            "mode": 0o440,
            "data": "rows",
        }
        assert looks(project) == before
    protector.close()
    assert looks(project) == before
    assert not [path for path in project.rglob("*") if "doctor" in path.name]


def test_what_python_compiled_of_the_file_as_written_is_not_run(shown: Protecting, project: Path) -> None:
    """Python knows it by size and second of change: both are the same here."""
    assert len((project / "helper.py").read_bytes()) == len(EDITED_HELPER)
    now = time.time()
    os.utime(project / "helper.py", (now, now))
    subprocess.run([sys.executable, "-c", "import helper"], cwd=project, check=True)
    assert (project / "__pycache__").exists()
    assert look(shown(EDITS), project)["helper"][1] == "edited"


def test_between_two_starts_caches_stay_and_edits_do_not(shown: Protecting, project: Path) -> None:
    protector = shown({**EDITS, "look.py": b"import package.made, helper\nopen('cache.bin', 'w').write('built')\n"})
    folder = scratch.new_folder()
    try:
        entered = protector.enter([sys.executable, "look.py"], folder)
        assert entered is not None
        process = subprocess.Popen(entered.argv, cwd=project, pass_fds=entered.passed)
        entered.check()
        assert process.wait(30) == 0
        # Everything that was new came before the first batch.
        protector.leave(folder, Moments(float("inf"), float("inf")))
        assert protector._sandbox is not None
        left = list(protector._sandbox._layers._folder.glob("upper-*/**/*"))
        assert {path.name.partition(".")[0] for path in left if path.is_file()} == {"cache", "helper", "made"}
        assert not {path.name for path in left} & {"made.py", "helper.py", "look.py", "module.py", "old"}
    finally:
        scratch.remove(folder)


def test_a_guest_trains_in_the_edited_program(shown: Protecting, project: Path) -> None:
    protector = shown({"look.py": LOOP.encode()})
    script = Guest(Command((sys.executable, "look.py"), project), protector)
    try:
        script.found()
        assert script.window({}, steps=12).status == "ok"
    finally:
        script.close()
    assert (project / "look.py").read_text() == "raise SystemExit('as written')\n"


def test_a_kill_in_the_middle_leaves_nothing(shown: Protecting, project: Path) -> None:
    before = looks(project)
    protector = shown({"look.py": b"import os, time\nopen('log.txt', 'w').write('new')\ntime.sleep(60)\n"})
    folder = scratch.new_folder()
    try:
        entered = protector.enter([sys.executable, "look.py"], folder)
        assert entered is not None
        process = subprocess.Popen(entered.argv, cwd=project, pass_fds=entered.passed)
        entered.check()
        inside = Path(f"/proc/{process.pid}/root{project}/log.txt")
        assert wait_until(inside.exists, 20)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert looks(project) == before
    finally:
        scratch.remove(folder)


@pytest.mark.parametrize("path", ["/etc/edited.py", "/proc/edited.py"])
def test_what_no_overlay_can_cover_is_refused_before_anything_starts(project: Path, path: str) -> None:
    with pytest.raises(NotHere):
        protecting(project, ["look.py"], {path: b""})
    assert not Path(path).exists()


def test_an_edit_through_a_link_is_refused(shown: Protecting, project: Path, tmp_path: Path) -> None:
    """What a link leads to may lie where nothing is laid over."""
    (tmp_path / "elsewhere").mkdir()
    (project / "linked").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(NotHere, match="linked"):
        shown({"linked/new.py": b""})
    (project / "link.py").symlink_to(tmp_path / "elsewhere" / "file.py")
    with pytest.raises(NotHere, match=r"link\.py"):
        shown({"link.py": b""})
    assert not list((tmp_path / "elsewhere").iterdir())


def test_the_program_as_written_never_runs_in_place_of_the_edited_one(shown: Protecting, project: Path) -> None:
    """Where the sandbox can't be entered although trying it worked, a plain start would measure no edit."""
    protector = shown({"look.py": b""})
    with pytest.raises(DoctorError) as refused:
        protector.give_up("the kernel forbids it")
    assert refused.value.slug == "edit-not-shown"
