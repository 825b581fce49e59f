"""Undoes the changes in a guard's journal (`runtime/files/guard.py`): the last one first, each if it still applies.

A file is removed or overwritten only if it still is what the journal says. This is used at the end of a session, or by
the next doctor if this one was killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bottleneck_doctor.protection.retention import Made

FOLDER = "guard"
JOURNAL = "journal"

Record = dict[str, Any]


@dataclass
class Undone:
    """Files that could not be restored, files that were never saved, and other programs that the script started."""

    left: list[str] = field(default_factory=list)
    unsaved: list[str] = field(default_factory=list)
    programs: list[str] = field(default_factory=list)


def read(folder: Path) -> list[Record]:
    """The records of a journal. A last line that was cut off is ignored."""
    found = []
    with contextlib.suppress(OSError):
        for line in (folder / JOURNAL).read_bytes().splitlines():
            with contextlib.suppress(ValueError, RecursionError):
                record = json.loads(line)
                if _is_record(record):
                    found.append(record)
    return found


def _is_record(said: object) -> bool:
    if not isinstance(said, dict):
        return False
    path, op = said.get("path"), said.get("op")
    return isinstance(path, str) and path != "" and "\0" not in path and isinstance(op, str)


def undo(records: Sequence[Record], keep: frozenset[str] = frozenset()) -> Undone:
    """Restore everything except the new files in `keep` and the folders around them."""
    undone = Undone()
    around = {str(parent) for path in keep for parent in Path(path).parents}
    for record in reversed(records):
        step = _STEPS.get(record.get("op", ""))
        path = record["path"]
        if record.get("op") == "unsaved":
            undone.unsaved.append(path)
        elif record.get("op") == "program":
            undone.programs.append(path)
        if step is None or path in keep:
            continue
        try:
            step(record, keep, around)
        except (OSError, KeyError, OverflowError, TypeError, ValueError):
            undone.left.append(path)
    return undone


def made(records: Sequence[Record]) -> list[Made]:
    """Files and folders that exist now and did not exist before, each with the topmost new folder around it."""
    names: dict[str, bool] = {}
    # A path that existed before, was removed and made again is not new, and neither is what lies in it.
    before = [record["path"] for record in records if record.get("op") in ("saved", "linked", "gone")]
    for record in records:
        path, kind = record["path"], record.get("op")
        if kind in ("new", "folder"):
            names[path] = kind == "folder"
        elif kind == "moved":
            old = str(record.get("source"))
            for name in [name for name in names if name == old or name.startswith(old + "/")]:
                names[path + name[len(old) :]] = names.pop(name)
    names = {
        name: is_folder
        for name, is_folder in names.items()
        if not any(name == old or name.startswith(old + "/") for old in before)
    }
    folders = [name for name, is_folder in names.items() if is_folder]
    tops = [each for each in folders if not any(each.startswith(other + "/") for other in folders)]
    found = []
    for name, is_folder in names.items():
        if not is_folder and not any(name.startswith(top + "/") for top in tops):
            found += _seen(name, "")
    for top in tops:
        for folder, _, files in os.walk(top):
            found += _seen(folder, top)
            for name in files:
                found += _seen(os.path.join(folder, name), top)
    return found


def _seen(path: str, top: str) -> list[Made]:
    try:
        looks = os.lstat(path)
    except OSError:
        return []
    return [Made(path, looks.st_ctime, top, os.path.isdir(path) and not os.path.islink(path))]


def removals(keep: Sequence[str], records: Sequence[Record]) -> list[Record]:
    """Records that later remove what is kept for now."""
    around = {str(parent) for path in keep for parent in Path(path).parents}
    theirs = {record["path"] for record in records if record.get("op") == "gone"}
    folders = [
        record
        for record in records
        if record.get("op") == "folder" and record["path"] in around and record["path"] not in theirs
    ]
    return [*folders, *({"op": "new", "path": path} for path in keep)]


def append(folder: Path, records: Sequence[Record]) -> None:
    """Write records to disk at once."""
    folder.mkdir(exist_ok=True)
    with open(folder / JOURNAL, "ab") as handle:
        for record in records:
            handle.write(json.dumps(record).encode() + b"\n")


# -- steps back: a record, the paths to keep, and the folders around them ----------------------------------------------


def _remove_new(record: Record, keep: frozenset[str], around: set[str]) -> None:
    with contextlib.suppress(FileNotFoundError):
        if not os.path.isdir(record["path"]) or os.path.islink(record["path"]):
            os.unlink(record["path"])


def _remove_folder(record: Record, keep: frozenset[str], around: set[str]) -> None:
    path = record["path"]
    if os.path.islink(path) or not os.path.isdir(path):
        return
    if path not in around:
        shutil.rmtree(path)
        return
    # Something in the folder is kept; everything else is removed.
    for name in os.listdir(path):
        inner = os.path.join(path, name)
        if inner in keep:
            continue
        if os.path.isdir(inner) and not os.path.islink(inner):
            _remove_folder({"path": inner}, keep, around)
        else:
            os.unlink(inner)


def _move_back(record: Record, keep: frozenset[str], around: set[str]) -> None:
    path, source = record["path"], record["source"]
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return
    if (found.st_dev, found.st_ino) == (record["device"], record["inode"]) and not os.path.lexists(source):
        os.rename(path, source)


def _put_back(record: Record, keep: frozenset[str], around: set[str]) -> None:
    path, copy = record["path"], record["copy"]
    if os.path.isfile(path) and not os.path.islink(path):
        # Write into the same file, so that its hard links, owner and permissions stay.
        if not os.path.samefile(path, copy):
            with contextlib.suppress(OSError):
                os.chmod(path, record["mode"] | 0o200)
            with open(copy, "rb") as source, open(path, "r+b") as target:
                shutil.copyfileobj(source, target)
                target.truncate()
    else:
        temporary = f"{path}.bottleneck-doctor"
        try:
            os.link(copy, temporary)
        except OSError:
            shutil.copyfile(copy, temporary)
        os.replace(temporary, path)
    _look_as_before(record, keep, around)


def _link_back(record: Record, keep: frozenset[str], around: set[str]) -> None:
    if not os.path.lexists(record["path"]):
        os.symlink(record["target"], record["path"])


def _make_again(record: Record, keep: frozenset[str], around: set[str]) -> None:
    with contextlib.suppress(FileExistsError):
        os.mkdir(record["path"])
    _look_as_before(record, keep, around)


def _look_as_before(record: Record, keep: frozenset[str], around: set[str]) -> None:
    path = record["path"]
    if not os.path.exists(path):
        return
    found = os.stat(path)
    if (found.st_uid, found.st_gid) != (record["uid"], record["gid"]):
        with contextlib.suppress(PermissionError):
            os.chown(path, record["uid"], record["gid"])
    os.chmod(path, record["mode"])
    os.utime(path, ns=(record["times"][0], record["times"][1]))


_STEPS: dict[str, Callable[[Record, frozenset[str], set[str]], None]] = {
    "new": _remove_new,
    "folder": _remove_folder,
    "moved": _move_back,
    "saved": _put_back,
    "linked": _link_back,
    "gone": _make_again,
    "looks": _look_as_before,
}
