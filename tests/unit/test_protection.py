"""Protection of files without processes: what is covered, what is kept between starts, and a journal undone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from bottleneck_doctor.protection import journal, plan
from bottleneck_doctor.protection.guarding import Guarding
from bottleneck_doctor.protection.retention import Made, Moments, kept, may_hinder
from bottleneck_doctor.runtime.wire import channel
from bottleneck_doctor.session.entrypoint_process import ENTRY_FOLDER

MOUNTS = """\
22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw
23 22 0:5 / /proc rw - proc proc rw
24 22 0:6 / /mnt/with\\040space rw - xfs /dev/sdb rw
25 22 0:7 / /mnt/shared rw - nfs4 server:/ rw
26 22 0:8 / /mnt/disc ro,relatime - ext4 /dev/sr0 ro
27 22 0:9 / /mnt/shared rw - lustre server:/ rw
"""

MOMENTS = Moments(first_batch=100.0, found=110.0)


def test_mounts_are_read_and_the_last_on_a_point_counts() -> None:
    mounts = plan.read_mounts(MOUNTS)
    assert plan.mount_of("/mnt/with space/data", mounts).kind == "xfs"
    assert plan.mount_of("/mnt/shared/me", mounts).kind == "lustre"
    assert plan.mount_of("/mnt/sharedother", mounts).kind == "ext4"
    assert plan.mount_of("/mnt/disc", mounts).read_only
    assert plan.read_mounts("not a line of it\n") == []


def targets(tmp_path: Path, mounts: str, *, privileged: bool = True, uid: int | None = None) -> list[str]:
    user = plan.User(os.getuid() if uid is None else uid, os.getgid(), privileged)
    found = plan.targets(plan.read_mounts(mounts), user, [tmp_path / "home"])
    return [target.path for target in found]


def test_targets_hold_the_home_and_do_not_contain_one_another(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    found = targets(tmp_path, "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n")
    assert any(plan.inside(str(tmp_path / "home"), path) for path in found)
    assert not any(one != other and plan.inside(one, other) for one in found for other in found)
    assert not set(found) & plan.SYSTEM


def test_network_file_systems_are_left_to_the_guard(tmp_path: Path) -> None:
    (tmp_path / "home" / "mine").mkdir(parents=True)
    mounts = f"22 1 8:1 / / rw - ext4 /dev/sda1 rw\n23 22 0:7 / {tmp_path}/home rw - nfs4 server:/ rw\n"
    assert not any(plan.inside(str(tmp_path / "home" / "mine"), path) for path in targets(tmp_path, mounts))


def test_around_a_folder_where_something_is_mounted_its_neighbours_are_covered(tmp_path: Path) -> None:
    for name in ("remote", "own"):
        (tmp_path / "home" / name).mkdir(parents=True)
    mounts = f"22 1 8:1 / / rw - ext4 /dev/sda1 rw\n23 22 0:7 / {tmp_path}/home/remote rw - fuse.sshfs me rw\n"
    found = targets(tmp_path, mounts)
    assert str(tmp_path / "home" / "own") in found
    assert not any(plan.inside(str(tmp_path / "home" / "remote"), path) for path in found)


def test_folders_of_others_are_not_covered_for_who_is_not_root(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    found = targets(tmp_path, "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n", privileged=False, uid=os.getuid() + 12345)
    assert str(tmp_path / "home") not in found


def test_sockets_are_found_where_they_still_are(tmp_path: Path) -> None:
    import socket

    path = tmp_path / "a socket"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))
        listing = "Num RefCount Protocol Flags Type St Inode Path\n"
        for name in (path, tmp_path / "gone", "/elsewhere/socket", "@abstract"):
            listing += f"0000: 00000002 00000000 00010000 0001 01 123 {name}\n"
        assert plan.sockets(listing, [str(tmp_path)]) == [str(path)]


# -- what later starts may see -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ([Made("/data/labels.cache", 90, "")], {"/data/labels.cache"}),
        ([Made("/project/step-5.pt", 101, "")], set()),
        ([Made("/p/data", 95, "/p/data", True), Made("/p/data/a", 95, "/p/data")], {"/p/data/a"}),
        # Training writes into this folder, so that nothing in it is a cache.
        ([Made("/p/run/config", 95, "/p/run"), Made("/p/run/deep/log", 120, "/p/run")], set()),
        ([Made("/p/run/config", 95, "/p/run"), Made("/p/run/deep", 120, "/p/run", True)], set()),
        # A compiler's cache fills in the first steps.
        ([Made("/h/.cache/a", 105, "/h/.cache"), Made("/h/.cache/b", 111, "/h/.cache")], {"/h/.cache/a"}),
        ([Made("/tmp/torchinductor_me/a.so", 105, "/tmp/torchinductor_me")], {"/tmp/torchinductor_me/a.so"}),
    ],
)  # fmt: skip
def test_caches_are_kept_and_outcomes_are_not(made: list[Made], expected: set[str]) -> None:
    assert kept(made, MOMENTS) == expected
    assert kept(made, None) == frozenset()


def test_a_compiler_s_caches_keep_no_program_from_starting() -> None:
    caches = ["/p/__pycache__/a.pyc", "/h/.cache/weights", "/tmp/torchinductor_me/a.so"]
    assert not may_hinder([])
    assert not may_hinder(caches)
    assert may_hinder([*caches, "/p/config.yaml"])


# -- the journal -------------------------------------------------------------------------------------------------------


def test_a_line_that_was_cut_off_is_not_a_record(tmp_path: Path) -> None:
    (tmp_path / journal.JOURNAL).write_text('{"op": "new", "path": "/a"}\n{"op": "new", "pa')
    assert journal.read(tmp_path) == [{"op": "new", "path": "/a"}]
    assert journal.read(tmp_path / "nowhere") == []


def test_nothing_is_touched_that_is_not_what_the_journal_says(tmp_path: Path) -> None:
    """A rename that failed after it was announced, and a name that is somebody else's by now."""
    source, target = tmp_path / "source", tmp_path / "target"
    target.write_text("of somebody else")
    records: list[dict[str, Any]] = [
        {"op": "moved", "path": str(target), "source": str(source), "device": 1, "inode": 2},
        {"op": "moved", "path": str(tmp_path / "gone"), "source": str(source), "device": 1, "inode": 2},
        {"op": "folder", "path": str(target)},
        {"op": "new", "path": str(tmp_path)},
        {"op": "of a later release", "path": str(target)},
    ]
    assert journal.undo(records).left == []
    assert target.read_text() == "of somebody else"
    assert not source.exists()


def test_what_cannot_be_put_back_is_named(tmp_path: Path) -> None:
    record = {"op": "saved", "path": str(tmp_path / "file"), "copy": str(tmp_path / "no copy"), "mode": 0o600}
    assert journal.undo([record]).left == [str(tmp_path / "file")]


def test_what_is_kept_goes_at_the_end(tmp_path: Path) -> None:
    folder, cache = tmp_path / "new", tmp_path / "new" / "cache"
    folder.mkdir()
    for name in ("cache", "log"):
        (folder / name).write_text(name)
    records: list[dict[str, Any]] = [
        {"op": "folder", "path": str(folder)},
        {"op": "new", "path": str(cache)},
        {"op": "new", "path": str(folder / "log")},
    ]
    keep = frozenset([str(cache)])
    assert {made.path for made in journal.made(records)} == {str(folder), str(cache), str(folder / "log")}
    later = tmp_path / "journal"
    journal.append(later, journal.removals(sorted(keep), records))
    journal.undo(records, keep)
    assert [path.name for path in folder.iterdir()] == ["cache"]
    journal.undo(journal.read(later))
    assert not folder.exists()
    assert json.loads((later / journal.JOURNAL).read_text().splitlines()[0])["op"] == "folder"


CHANGES = """
import os, shutil, sqlite3
shutil.rmtree("old")
os.makedirs("old/events")
open("old/config", "w").write("new")
os.rename("best", "best of last week")
open("best of last week/model", "a").write("more")
os.makedirs("data/deep")
open("data/deep/temporary", "w").write("cache")
os.replace("data/deep/temporary", "data/deep/cache")
open("model", "wb").write(b"new")
open("made", "w").write("new")
os.replace("made", "replaced")
os.link("hard", "harder")
open("harder", "w").write("by another name")
with sqlite3.connect("tracking") as database:
    database.execute("create table steps (step)")
os.unlink("link")
os.symlink("model", "link")
os.truncate("long", 1)
os.chmod("model", 0o600)
folder = os.open("folder", os.O_RDONLY)
os.unlink("inner", dir_fd=folder)
try:
    os.rename("model", "not there/model")
except FileNotFoundError:
    pass
if os.fork() == 0:
    open("of a child", "w").write("new")
    os._exit(0)
os.wait()
"""


def _lay_out(folder: Path) -> None:
    for name in ("old/model", "best/model", "model", "replaced", "hard", "long", "folder/inner"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"{name} of last week")
    (folder / "link").symlink_to("long")


def _looks(folder: Path) -> dict[str, tuple[int, str, int]]:
    return {
        str(path.relative_to(folder)): (
            path.lstat().st_mode,
            os.readlink(path) if path.is_symlink() else path.read_text() if path.is_file() else "",
            path.lstat().st_mtime_ns if path.is_file() and not path.is_symlink() else 0,
        )
        for path in sorted(folder.rglob("*"))
    }


def test_all_that_a_program_changes_is_undone_and_its_cache_when_all_is_over(tmp_path: Path) -> None:
    project, notes, later = tmp_path / "project", tmp_path / "notes", tmp_path / "later"
    _lay_out(project)
    notes.mkdir()
    before = _looks(project)
    said = {"guard": {"folder": str(notes), "covered": [], "renames": False}}
    done = subprocess.run(
        [sys.executable, "-c", CHANGES],
        cwd=project,
        env={**os.environ, channel.VARIABLE: json.dumps(said), "PYTHONPATH": str(ENTRY_FOLDER)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert (project / "of a child").exists()
    assert (project / "harder").read_text() == "by another name"
    now = time.time()
    records = journal.read(notes)
    # Made before the first batch: all of it could be a cache, but not in a folder that was there before.
    keep = kept(journal.made(records), Moments(now, now))
    assert str(project / "data" / "deep" / "cache") in keep
    assert str(project / "old" / "config") not in keep
    keep = frozenset([str(project / "data" / "deep" / "cache")])
    journal.append(later, journal.removals(sorted(keep), records))
    assert journal.undo(records, keep).left == []
    assert set(_looks(project)) - set(before) == {"data", "data/deep", "data/deep/cache"}
    assert journal.undo(journal.read(later)).left == []
    assert _looks(project) == before


# -- several at once ---------------------------------------------------------------------------------------------------

STEP_BY_STEP = """
import sys
for line in sys.stdin:
    exec(line)
    print("done", flush=True)
"""


class Standing:
    """A session that does what it is told, under a guard alone."""

    def __init__(self, folder: Path, project: Path, guarding: Guarding) -> None:
        self.folder = folder
        folder.mkdir()
        self._guarding = guarding
        said = {"guard": {"folder": str(guarding.place(folder)), "covered": [], "renames": False}}
        self._process = subprocess.Popen(
            [sys.executable, "-c", STEP_BY_STEP],
            cwd=project,
            env={**os.environ, channel.VARIABLE: json.dumps(said), "PYTHONPATH": str(ENTRY_FOLDER)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def does(self, statement: str) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(statement + "\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == "done\n"

    def ends(self, moments: Moments | None = None) -> None:
        self._process.communicate()
        self._guarding.leave(self.folder, moments)


@pytest.mark.parametrize("first", [0, 1])
def test_what_several_change_at_once_is_put_back_whoever_ends_first(tmp_path: Path, first: int) -> None:
    """Each finds what the other one wrote, and neither may take that for the user's."""
    project = tmp_path / "project"
    _lay_out(project)
    before = _looks(project)
    guarding = Guarding()
    both = [Standing(tmp_path / name, project, guarding) for name in ("base", "head")]
    both[0].does("open('model', 'w').write('of the base')")
    both[1].does("open('model', 'w').write('of the head')")
    both[1].does("open('long', 'w').write('of the head')")
    both[0].does("open('long', 'a').write('of the base')")
    both[0].does("open('made', 'w').write('of the base')")
    both[1].does("open('made', 'w').write('of the head')")
    both[1].does("import os; os.replace('made', 'replaced')")
    both[0].does("open('made', 'w').write('again')")
    both[first].ends()
    assert (project / "made").exists(), "somebody may still need it"
    both[1 - first].ends()
    assert _looks(project) == before
    assert guarding.lost == []


def test_a_cache_of_one_is_kept_only_if_it_was_there_before_any_of_them_trained(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    guarding = Guarding()
    both = [Standing(tmp_path / name, project, guarding) for name in ("base", "head")]
    both[0].does("open('early', 'w').write('cache')")
    time.sleep(0.02)
    trains = time.time()
    time.sleep(0.02)
    both[1].does("open('late', 'w').write('cache')")
    both[0].ends(Moments(trains, trains))
    both[1].ends(Moments(time.time(), time.time()))
    assert [path.name for path in project.iterdir()] == ["early"]
    guarding.close()
    assert list(project.iterdir()) == []


def test_what_stands_is_undone_where_all_is_over_early(tmp_path: Path) -> None:
    project = tmp_path / "project"
    _lay_out(project)
    before = _looks(project)
    guarding = Guarding()
    one = Standing(tmp_path / "one", project, guarding)
    one.does("open('model', 'w').write('new')")
    guarding.close()
    assert _looks(project) == before
    one.ends()
    guarding.close()
