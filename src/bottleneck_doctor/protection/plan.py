"""Which folders the sandbox covers. The machine's mounts and the program's command line go in.

The sandbox should cover every folder that a program may write, but none whose covering could change the program's
behaviour: no system folders, whose sockets serve to look up names, and no network or user-space file systems, where
other hosts and programs must see the changes and where an overlay may not work. The guard protects the folders that are
not covered.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

SYSTEM = frozenset(
    f"/{name}"
    for name in ("bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "libx32", "lost+found", "nix", "proc", "run")
)
SYSTEM |= {"/sbin", "/snap", "/sys", "/usr", "/var"}
"""Never covered as a whole; a home or a working folder inside one of them is covered."""

FOR_ALL = ("/tmp", "/var/tmp")

LAYABLE = frozenset(
    ("bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "jfs", "overlay", "reiserfs", "tmpfs", "xfs", "zfs")
)
"""File systems that an overlay may lie on."""

MOST_TARGETS = 100
MOST_ENTRIES = 500
"""So many entries of a folder are searched for folders that belong to the user."""


@dataclass(frozen=True)
class Mount:
    point: str
    kind: str
    read_only: bool = False


@dataclass(frozen=True)
class Target:
    """A folder to cover, and the type of its file system."""

    path: str
    kind: str


@dataclass(frozen=True)
class User:
    """Who runs the program. `privileged`: may mount without a user namespace, so that all owners stay known."""

    uid: int
    gid: int
    privileged: bool


def read_mounts(text: str) -> list[Mount]:
    """The mounts of a /proc/self/mountinfo, see proc(5)."""
    mounts = []
    for line in text.splitlines():
        before, separator, after = line.partition(" - ")
        fields, kinds = before.split(), after.split()
        if separator and len(fields) >= 6 and kinds:
            point = re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), fields[4])
            mounts.append(Mount(point, kinds[0], "ro" in fields[5].split(",")))
    return mounts


def inside(path: str, folder: str) -> bool:
    """Whether a path is the folder itself or lies in it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def mount_of(path: str, mounts: Sequence[Mount]) -> Mount:
    """The mount that a path lies on. Of several mounts on one point, the last is visible."""
    best = Mount("/", "")
    for mount in mounts:
        if inside(path, mount.point) and len(mount.point) >= len(best.point):
            best = mount
    return best


def targets(mounts: Sequence[Mount], user: User, folders: Iterable[Path]) -> list[Target]:
    """The folders to cover; none contains another. `folders`: those that the program is known to use."""
    plan = _Plan(mounts, user)
    for folder in folders:
        plan.add_known(os.path.realpath(folder))
    for name in FOR_ALL:
        plan.add_common(os.path.realpath(name))
    for name in _folders_in("/"):
        if name not in SYSTEM:
            plan.add_found(name)
    return plan.result()


class _Plan:
    def __init__(self, mounts: Sequence[Mount], user: User) -> None:
        self._mounts = mounts
        self._user = user
        self._found: dict[str, Target] = {}

    def add_known(self, path: str) -> None:
        """For a folder that the program uses, cover the topmost folder around it that belongs to the user."""
        if path == "/" or path in SYSTEM or not os.path.isdir(path):
            return
        if any(inside(path, each) for each in SYSTEM):
            self.cover(path)
            return
        chain = [path, *(str(parent) for parent in Path(path).parents)]
        allowed = [each for each in chain if each != "/" and self._mine(each)]
        if allowed:
            self.cover(allowed[-1])

    def add_common(self, path: str) -> None:
        """Cover a folder that everybody may write to, unless folders of the user lie deeper in it, in those of others.

        To change something in a folder, all folders above it are copied into the layer, where their owners must be
        known.
        """
        for each in self._found:
            if inside(each, path) and not self._mine(str(Path(each).parent)) and str(Path(each).parent) != path:
                return
        self.cover(path)

    def add_found(self, path: str) -> None:
        """Cover a folder at the top of the tree, or the folders in it that belong to the user."""
        if self._user.privileged or self._mine(path):
            self.cover(path)
        elif mount_of(path, self._mounts).kind in LAYABLE:
            for name in _folders_in(path):
                if self._mine(name):
                    self.cover(name)

    def cover(self, path: str) -> None:
        """Cover a folder. If other file systems are mounted below it, cover the folders in it instead."""
        if len(self._found) >= MOST_TARGETS or not os.path.isdir(path):
            return
        mount = mount_of(path, self._mounts)
        below = [each.point for each in self._mounts if each.point != path and inside(each.point, path)]
        if mount.kind in LAYABLE and not mount.read_only and not below:
            self._found[path] = Target(path, mount.kind)
        elif below and mount.kind in LAYABLE:
            # Those on the way to a mount come first, because in a large folder not all entries are looked at.
            towards = {os.path.join(path, os.path.relpath(point, path).split(os.sep)[0]) for point in below}
            for name in (*sorted(towards), *_folders_in(path)):
                if self._mine(name) or name in towards:
                    self.cover(name)
        else:
            for point in below:
                if self._mine(point):
                    self.cover(point)

    def _mine(self, path: str) -> bool:
        """Whether the folder can be covered: in a user namespace, only folders of the user can."""
        if self._user.privileged:
            return True
        try:
            found = os.stat(path)
        except OSError:
            return False
        return (found.st_uid, found.st_gid) == (self._user.uid, self._user.gid)

    def result(self) -> list[Target]:
        paths = sorted(self._found)
        return [self._found[path] for path in paths if not any(path != each and inside(path, each) for each in paths)]


def _folders_in(path: str) -> list[str]:
    """Folders, but no links, in a folder; of a large folder, only those among the first entries."""
    try:
        with os.scandir(path) as entries:
            found = [entry.path for number, entry in enumerate(entries) if number <= MOST_ENTRIES if _is_folder(entry)]
    except OSError:
        return []
    return sorted(found)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def sockets(listing: str, covered: Sequence[str]) -> list[str]:
    """Sockets in covered folders, from the text of /proc/net/unix. An overlay would cut them off from their server."""
    found = {line.split(maxsplit=7)[7] for line in listing.splitlines()[1:] if len(line.split(maxsplit=7)) == 8}
    kept = []
    for path in sorted(found):
        if path.startswith("/") and any(inside(path, folder) for folder in covered):
            try:
                if stat.S_ISSOCK(os.lstat(path).st_mode):
                    kept.append(path)
            except OSError:
                continue
    return kept
