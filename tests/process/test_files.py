"""A machine is found afterwards as it was: what a program writes, replaces and removes is undone, or never happened."""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import re
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from tests.process.driver import LOOP, PRELUDE, Guest, run_plain, write

from bottleneck_doctor.documents.report import from_json
from bottleneck_doctor.errors import Exit
from bottleneck_doctor.profiling.pyspy import PySpySampler, find_tool
from bottleneck_doctor.protection import plan, sandbox, scratch
from bottleneck_doctor.protection.protector import FileProtector, Protector, protecting
from bottleneck_doctor.session.session import Command, Session

pytestmark = pytest.mark.process

_PR_CAPBSET_DROP = 24
_CAP_SYS_ADMIN = 21
"""From linux/prctl.h and linux/capability.h."""

TOUCHING = (
    PRELUDE
    + """
import csv, shutil, sqlite3
from pathlib import Path

home, elsewhere = Path.home(), Path(sys.argv[1])
said = {"resumed": Path("checkpoints/last.pt").exists(), "cached": Path("data/cache.bin").exists()}
print("at the start:", json.dumps(said), flush=True)


def prepare():
    # What a first run makes to train with.
    Path("data/cache.bin").write_bytes(b"decoded")
    (home / ".cache").mkdir(exist_ok=True)
    (home / ".cache" / "weights").write_text("downloaded")
    # A run that begins again.
    shutil.rmtree("runs/old")
    os.makedirs("runs/old/events")
    os.rename("runs/best", "runs/best of last week")
    with open("runs/old/config.json", "w") as handle:
        json.dump({"lr": 1}, handle)


def save(number):
    torch.save(model.state_dict(), "model.pt")
    try:
        from safetensors.torch import save_file
        save_file(model.state_dict(), "model.safetensors")
    except ImportError:
        pass
    os.makedirs("checkpoints", exist_ok=True)
    torch.save({"step": number}, "checkpoints/temporary.pt")
    os.replace("checkpoints/temporary.pt", "checkpoints/last.pt")
    torch.save({"step": number}, "replaced.tmp")
    os.replace("replaced.tmp", "replaced.pt")
    assert torch.load("checkpoints/last.pt")["step"] == number == torch.load("replaced.pt")["step"]
    with open("log.txt", "a") as handle:
        handle.write(f"step {number}\\n")
    with open("metrics.csv", "w", newline="") as handle:
        csv.writer(handle).writerow([number, 0.5])
    with open("metrics.json", "r+") as handle:
        handle.write(json.dumps({"step": number}))
        handle.truncate()
    with sqlite3.connect("tracking.db") as database:
        database.execute("create table if not exists metrics (step)")
        database.execute("insert into metrics values (?)", [number])
    Path("events.out").open("ab").write(b"record")
    (elsewhere / "summary.txt").write_text(str(number))
    if (elsewhere / "mine").exists():
        shutil.move(elsewhere / "mine", elsewhere / "archive")
    if number > 3 and Path("obsolete").exists():
        os.unlink("obsolete")
        os.unlink("link")
        os.symlink("log.txt", "link")
        os.link("hard", "harder")
        open("harder", "w").write("changed by another name")
        os.chmod("private", 0o644)
        os.utime("private", (1, 1))
        os.truncate("long", 2)
        subfolder = os.open("folder", os.O_RDONLY)
        os.unlink("inner", dir_fd=subfolder)
        os.close(subfolder)
        os.rmdir("folder")


prepare()
number = 0
for epoch in range(100000):
    for batch in DataLoader(Rows(40, 0.001), batch_size=4):
        train_on(batch)
        number += 1
        if number % 3 == 0:
            save(number)
        if number == 12:
            print("trained", flush=True)
"""
)


def lay_out(folder: Path) -> Path:
    """A project, a home and an output folder as a user has them, with remains of earlier runs."""
    project, home, elsewhere = folder / "project", folder / "home", folder / "output"
    for each in (project / "runs" / "old", project / "runs" / "best", project / "data", project / "folder", home):
        each.mkdir(parents=True)
    (elsewhere / "mine").mkdir(parents=True)
    (elsewhere / "mine" / "report.txt").write_text("of last week")
    (home / ".settings").write_text("mine")
    for name in ("log.txt", "metrics.csv", "metrics.json", "obsolete", "hard", "private", "long", "folder/inner"):
        (project / name).write_text(f"{name} of last week " * 20)
    for name in ("model.pt", "model.safetensors", "replaced.pt", "runs/best/model.pt", "runs/old/model.pt"):
        (project / name).write_bytes(name.encode() * 1000)
    (project / "private").chmod(0o600)
    (project / "link").symlink_to("metrics.csv")
    return write(project, TOUCHING)


def looks(folder: Path) -> dict[str, tuple[object, ...]]:
    """Everything in a folder: type, rights, and of files the time of change and the content."""
    found: dict[str, tuple[object, ...]] = {}
    for path in sorted(folder.rglob("*")):
        if "__pycache__" in path.parts:
            continue
        about = path.lstat()
        entry: tuple[object, ...] = (stat.filemode(about.st_mode), about.st_uid)
        if path.is_symlink():
            entry = (*entry, os.readlink(path))
        elif path.is_file():
            entry = (*entry, about.st_mtime_ns, hashlib.sha256(path.read_bytes()).hexdigest())
        found[str(path.relative_to(folder))] = entry
    return found


class Guarding(FileProtector):
    """Protection where there is no sandbox, whatever this machine allows."""

    def __init__(self, cwd: Path) -> None:
        super().__init__(cwd, [], os.environ)
        self.give_up("the test wants none")


@pytest.fixture(params=["sandbox", pytest.param("user namespace", marks=pytest.mark.slow(together=True)), "guard"])
def protector(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[FileProtector]:
    """Each kind of protection for `tmp_path/project`, with a home in `tmp_path/home`."""
    lay_out(tmp_path)
    project = tmp_path / "project"
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    if request.param == "user namespace":
        # As for everybody who is not root.
        monkeypatch.setattr(sandbox, "_user", lambda: plan.User(os.geteuid(), os.getegid(), False))
    made = (
        Guarding(project) if request.param == "guard" else protecting(project, ["train.py", str(tmp_path / "output")])
    )
    if request.param != "guard" and made.told().kind != "sandbox":
        made.close()
        pytest.skip(f"no sandbox here: {made.told().reason}")
    try:
        yield made
    finally:
        made.close()


def train(protector: Protector, folder: Path) -> Guest:
    script = Guest(Command((sys.executable, "train.py", str(folder / "output")), folder / "project"), protector)
    try:
        script.found()
        assert script.window({}, steps=12).status == "ok", script.session.tail()
        assert script.window({"num_workers": 2}, lead_in=6, steps=12).status == "ok", script.session.tail()
    finally:
        script.close()
    return script


def at_the_start(script: Guest) -> dict[str, bool]:
    said = re.search(r"at the start: (.*)", script.output)
    assert said is not None, script.output
    found: dict[str, bool] = json.loads(said[1])
    return found


def test_files_are_as_before(protector: FileProtector, tmp_path: Path) -> None:
    before = looks(tmp_path)
    first = train(protector, tmp_path)
    assert at_the_start(first) == {"resumed": False, "cached": False}
    # A later start finds caches that were built to train with, and nothing that training made.
    second = train(protector, tmp_path)
    assert at_the_start(second) == {"resumed": False, "cached": True}
    protector.close()
    assert looks(tmp_path) == before
    assert protector.lost == []


def test_what_is_kept_is_thrown_away_where_a_start_fails(protector: FileProtector, tmp_path: Path) -> None:
    before = looks(tmp_path)
    train(protector, tmp_path)
    failing = Guest(Command((sys.executable, "-c", "raise SystemExit('a cache is in the way')"), tmp_path), protector)
    assert failing.exited().code == 1
    failing.close()
    assert looks(tmp_path) == before
    third = Guest(Command((sys.executable, "train.py", str(tmp_path / "output")), tmp_path / "project"), protector)
    try:
        third.found()
    finally:
        third.close()
    assert at_the_start(third) == {"resumed": False, "cached": False}


def test_in_place_lets_changes_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lay_out(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    train(Protector(), tmp_path)
    assert (tmp_path / "project" / "checkpoints" / "last.pt").exists()
    assert "step 3" in (tmp_path / "project" / "log.txt").read_text()


SURROUNDINGS = """
import grp, json, os, signal, sys
here = {
    "cwd": os.getcwd(),
    "ids": [os.getuid(), os.geteuid(), os.getgid(), os.getegid()],
    "owner": [os.stat(".").st_uid, os.stat(__file__).st_uid, os.stat(__file__).st_mode],
    "group": os.getpgid(0) == os.getpid(),
    "signals": [str(signal.getsignal(each)) for each in (signal.SIGINT, signal.SIGPIPE, signal.SIGTERM)],
    "blocked": [line for line in open("/proc/self/status") if line.startswith(("SigBlk", "SigIgn", "NoNewPrivs"))],
    "descriptors": sorted(os.listdir("/proc/self/fd"), key=int)[:3],
    "open": len(os.listdir("/proc/self/fd")),
    "devices": sorted(os.listdir("/dev"))[:5],
    "memory": os.path.isdir("/dev/shm") and os.access("/dev/shm", os.W_OK),
    "environment": sorted(name for name in os.environ if "BOTTLENECK" not in name),
    "parent": os.getppid(),
    "pid": os.getpid(),
    "terminal": sys.stdin.isatty(),
}
print(json.dumps(here), flush=True)
sys.exit(3)
"""


def test_program_sees_what_it_sees_without_us(protector: FileProtector, tmp_path: Path) -> None:
    write(tmp_path / "project", SURROUNDINGS, "look.py")
    guarded = Guest(Command((sys.executable, "look.py"), tmp_path / "project"), protector)
    exited = guarded.exited()
    pid = guarded.session.pid
    guarded.close()
    ours = json.loads(exited.tail)
    assert exited.code == 3
    assert (ours["pid"], ours["parent"]) == (pid, os.getpid())
    plain = json.loads(run_plain(["look.py"], tmp_path / "project").out)
    added = set(ours.pop("environment")) - set(plain.pop("environment"))
    # Loggers stay offline.
    assert {"WANDB_MODE", "MPLBACKEND", "MLFLOW_TRACKING_URI"} <= added
    for name in ("pid", "group"):
        ours.pop(name)
        plain.pop(name)
    assert ours == plain


def test_settings_of_loggers_by_the_user_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_MODE", "online")
    script = Guest(Command((sys.executable, "-c", "import os; print(os.environ['WANDB_MODE'])"), tmp_path))
    assert script.exited().tail == "online\n"
    script.close()


@pytest.mark.skipif(find_tool() is None, reason="py-spy is not installed")
def test_stacks_can_be_read_from_outside(protector: FileProtector, tmp_path: Path) -> None:
    write(tmp_path / "project", LOOP.replace("Rows()", "Rows(64, 0.002)"), "loop.py")
    script = Guest(Command((sys.executable, "loop.py"), tmp_path / "project"), protector)
    try:
        script.found()
        script.grant({"num_workers": 1}, lead_in=4, steps=4000)
        assert script.session.pid is not None
        seen = ""
        for _ in range(10):  # On a busy machine few samples are taken in a second.
            with PySpySampler(script.session.pid, tmp_path) as sampler:
                time.sleep(1)
            recorded = sampler.stop()
            assert isinstance(recorded, Path), recorded
            seen = recorded.read_text()
            if "train_on" in seen:
                break
    finally:
        script.close()
    assert "train_on" in seen


def test_a_program_that_does_not_exist_is_told_as_such(protector: FileProtector, tmp_path: Path) -> None:
    session = Session(Command((str(tmp_path / "no-python"), "train.py"), tmp_path), 1, protector=protector)
    with pytest.raises(FileNotFoundError, match="no-python"):
        session.start()
    session.stop()


# -- the whole command, ended in all ways ------------------------------------------------------------------------------


@dataclass
class Running:
    """A `doctor run` whose program has begun to change files, what it protects by, and the files before it started."""

    process: subprocess.Popen[bytes]
    kind: str
    before: dict[str, tuple[object, ...]]


def _without_the_right_to_mount() -> None:
    ctypes.CDLL(None).prctl(_PR_CAPBSET_DROP, _CAP_SYS_ADMIN, 0, 0, 0)


@pytest.fixture(params=["sandbox", pytest.param("guard", marks=pytest.mark.slow(together=True))])
def doctor(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Running]:
    script = lay_out(tmp_path)
    before = looks(tmp_path)
    if request.param == "guard" and os.geteuid() != 0:
        pytest.skip("only root can lose the right to mount")
    words = ["run", "-v", "--budget", "60s", "--no-explain", "-o", str(tmp_path / "report")]
    process = subprocess.Popen(
        [sys.executable, "-m", "bottleneck_doctor", *words, script.name, "--", str(tmp_path / "output")],
        cwd=script.parent,
        env={**os.environ, "HOME": str(tmp_path / "home")},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=_without_the_right_to_mount if request.param == "guard" else None,
    )
    assert process.stderr is not None
    said = []
    for line in process.stderr:
        said.append(line)
        if line.startswith(b"trained"):
            break
    else:
        pytest.fail(b"".join(said).decode())
    try:
        yield Running(process, request.param, before)
    finally:
        process.kill()
        process.communicate()


def looks_but_for_the_report(folder: Path) -> dict[str, tuple[object, ...]]:
    return {path: look for path, look in looks(folder).items() if path.partition("/")[0] != "report"}


def test_interrupted(doctor: Running, tmp_path: Path) -> None:
    doctor.process.send_signal(signal.SIGINT)
    out, err = doctor.process.communicate(timeout=60)
    assert doctor.process.returncode == Exit.INTERRUPTED, err
    result = from_json((tmp_path / "report" / "report.json").read_bytes(), source="report.json")
    assert result.method.protection is not None
    if doctor.kind == "guard" or protecting_here(tmp_path):
        assert result.method.protection.kind == doctor.kind
    assert "Files:" in out.decode()
    assert looks_but_for_the_report(tmp_path) == doctor.before


def protecting_here(folder: Path) -> bool:
    """Whether this machine has a sandbox."""
    found = protecting(folder, [])
    found.close()
    return found.told().kind == "sandbox"


def test_killed(doctor: Running, tmp_path: Path) -> None:
    guests = psutil.Process(doctor.process.pid).children(recursive=True)
    doctor.process.kill()
    doctor.process.communicate(timeout=60)
    assert psutil.wait_procs(guests, timeout=10)[1] == []
    # The next doctor of this user begins by clearing up.
    scratch.remove(scratch.new_folder())
    assert looks_but_for_the_report(tmp_path) == doctor.before
