"""Keeps a journal of what the user's program does to files, so that the supervisor can undo it when the session ends.

Before a file is changed for the first time, its content is copied. Before a new file is made, its name is recorded.
Then the change takes place as the program wants it, and the program sees its own files as without doctor. The journal
is on disk before the change, so that the change can be undone whichever process is killed. The supervisor undoes the
changes, the last one first (`bottleneck_doctor.protection.journal`).

Python's audit events report nearly all changes. Other writers are reported to `before_write`: by `save_hooks` for
torch, by `announced` for safetensors. The guard does not see what native libraries and other programs write.

Folders that the sandbox covers, and those of the supervisor, are left alone.
"""

from __future__ import annotations

import errno
import functools
import json
import os
import stat
import sys
import threading
from typing import Any, Callable, Dict, List, Optional, Set

JOURNAL = "journal"
LARGEST_UPDATE = 1 << 30
"""Bytes. A larger file that is opened for changes in place is not copied: some libraries open data sets in this way by
default, and never change them."""
MOST_PROGRAMS = 20
_BLOCK = 1 << 20
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_NEVER = ("/dev/", "/proc/", "/sys/")


class Guard:
    """There is one in each process; forked children share its journal and what it knows. Nothing in it raises."""

    def __init__(self, folder: str, covered: List[str]) -> None:
        self._folder = folder
        self._covered = [path.rstrip("/") + "/" for path in covered]
        self._done: Set[str] = set()
        self._programs: Set[str] = set()
        self._lock = threading.RLock()
        self._busy = threading.local()
        self._number = 0
        self._watched: Dict[str, Callable[..., None]] = {
            "open": self._open,
            "os.remove": self._remove,
            "os.rename": self._rename,
            "os.mkdir": self._mkdir,
            "os.rmdir": self._rmdir,
            "os.link": self._link,
            "os.symlink": self._symlink,
            "os.truncate": self._truncate,
            "os.chmod": self._chmod,
            "os.chown": self._chown,
            "os.utime": self._utime,
            "sqlite3.connect": self._sqlite,
            "subprocess.Popen": self._program,
            "os.posix_spawn": self._program,
            "os.system": self._shell,
        }

    def install(self) -> None:
        """Watch from now on; an audit hook can't be removed."""
        os.register_at_fork(after_in_child=self._in_child)
        sys.addaudithook(self._audit)

    def _in_child(self) -> None:
        self._lock = threading.RLock()
        self._busy = threading.local()

    def _audit(self, event: str, arguments: Any) -> None:
        handle = self._watched.get(event)
        if handle is None or getattr(self._busy, "now", False):
            return
        self._quietly(handle, arguments)

    def _quietly(self, handle: Callable[..., None], arguments: Any) -> None:
        self._busy.now = True
        try:
            with self._lock:
                handle(*arguments)
        except Exception:  # What we can't follow is theirs all the same.
            pass
        finally:
            self._busy.now = False

    def before_write(self, path: Any, truncates: bool = True) -> None:
        """A file is about to be written by code that raises no audit event."""
        if not getattr(self._busy, "now", False):
            self._quietly(self._change, (path, truncates))

    def copied(self, path: str) -> None:
        """A folder of the user's was copied instead of renamed. It is new in the layer, but is no cache."""
        self._quietly(lambda: self._note(op="copied", path=path), ())

    # -- events: what they hold is in the table of audit events of Python's documentation ------------------------------

    def _open(self, path: Any, mode: Any, flags: Any) -> None:
        if isinstance(flags, int) and flags & _WRITING:
            self._change(path, bool(flags & os.O_TRUNC))

    def _truncate(self, path: Any, length: int) -> None:
        self._change(path, True)

    def _remove(self, path: Any, dir_fd: int = -1) -> None:
        name = self._name(path, dir_fd)
        if name is not None and name not in self._done:
            self._save(name, going=True)

    def _rename(self, source: Any, target: Any, source_fd: int = -1, target_fd: int = -1) -> None:
        old, new = self._any_name(source, source_fd), self._any_name(target, target_fd)
        if old is None or new is None or old == new or (self._outside(old) and self._outside(new)):
            return
        found = os.lstat(old)
        if os.path.lexists(new) and new not in self._done:
            if stat.S_ISDIR(found.st_mode):
                self._rmdir(new)
            else:
                self._save(new, going=True)
        self._note(op="moved", path=new, source=old, device=found.st_dev, inode=found.st_ino)
        known = {path for path in self._done if path == old or path.startswith(old + "/")}
        self._done = {path for path in self._done - known if path != new and not path.startswith(new + "/")}
        self._done |= {new + path[len(old) :] for path in known}

    def _mkdir(self, path: Any, mode: int = 0, dir_fd: int = -1) -> None:
        name = self._name(path, dir_fd)
        if name is not None and not os.path.lexists(name) and os.path.isdir(os.path.dirname(name)):
            self._made(name, "folder")

    def _rmdir(self, path: Any, dir_fd: int = -1) -> None:
        name = self._name(path, dir_fd)
        if name is None:
            return
        if name in self._done:
            self._done.discard(name)
        elif os.path.isdir(name) and not os.listdir(name):
            self._note(op="gone", path=name, **_looks(os.lstat(name)))

    def _link(self, source: Any, target: Any, source_fd: int = -1, target_fd: int = -1) -> None:
        name = self._name(target, target_fd)
        if name is not None and not os.path.lexists(name):
            # Not done with it: what is written by this name changes a file that was there before.
            self._made(name, "new", done=False)

    def _symlink(self, source: Any, target: Any, dir_fd: int = -1) -> None:
        name = self._name(target, dir_fd)
        if name is not None and not os.path.lexists(name):
            self._made(name, "new", done=False)

    def _chmod(self, path: Any, mode: int = 0, dir_fd: int = -1) -> None:
        self._touch(path, dir_fd)

    def _chown(self, path: Any, uid: int = 0, gid: int = 0, dir_fd: int = -1) -> None:
        self._touch(path, dir_fd)

    def _utime(self, path: Any, times: Any = None, ns: Any = None, dir_fd: int = -1) -> None:
        self._touch(path, dir_fd)

    def _sqlite(self, database: Any, *_: Any) -> None:
        name = os.fsdecode(database)
        if name.startswith("file:"):
            name = name[len("file:") :].partition("?")[0]
        if name and not name.startswith(":"):
            for ending in ("", "-journal", "-wal", "-shm"):
                self._change(name + ending, True)

    def _program(self, executable: Any, arguments: Any = None, *_: Any) -> None:
        words = [executable] if isinstance(executable, (str, bytes)) else list(arguments or [])[:1]
        for word in words:
            name = os.path.basename(os.fsdecode(word))
            if not name.startswith("python") and name not in self._programs and len(self._programs) < MOST_PROGRAMS:
                self._programs.add(name)
                self._note(op="program", path=name)

    def _shell(self, command: Any) -> None:
        self._program(os.fsdecode(command).split()[:1][0])

    # -- what is written down ----------------------------------------------------------------------------------------

    def _change(self, path: Any, truncates: bool) -> None:
        """The content of a file is about to change, or a file is about to be made."""
        if isinstance(path, int):
            return
        name = os.path.realpath(os.fsdecode(path))
        if name in self._done or self._outside(name):
            return
        try:
            found = os.lstat(name)
        except FileNotFoundError:
            if os.path.isdir(os.path.dirname(name)):
                self._made(name, "new")
            return
        if stat.S_ISREG(found.st_mode):
            if not truncates and found.st_size > LARGEST_UPDATE:
                self._note(op="unsaved", path=name, size=found.st_size)
            else:
                self._save(name)
            self._done.add(name)

    def _save(self, name: str, going: bool = False) -> None:
        """Save what is at a path. `going`: the path will be removed, and its file is not written to."""
        found = os.lstat(name)
        if stat.S_ISLNK(found.st_mode):
            self._note(op="linked", path=name, target=os.readlink(name))
        elif stat.S_ISREG(found.st_mode):
            copy = self._new_copy()
            try:
                if not (going and found.st_nlink == 1 and _linked(name, copy)):
                    _copied(name, copy)
            except OSError:
                self._note(op="unsaved", path=name, size=found.st_size)
                return
            self._note(op="saved", path=name, copy=copy, **_looks(found))

    def _made(self, name: str, kind: str, done: bool = True) -> None:
        self._note(op=kind, path=name)
        if done:
            self._done.add(name)

    def _touch(self, path: Any, dir_fd: int) -> None:
        name = self._name(path, dir_fd)
        if name is not None and name not in self._done and os.path.exists(name):
            self._note(op="looks", path=name, **_looks(os.stat(name)))

    def _note(self, **record: Any) -> None:
        line = json.dumps(record, ensure_ascii=True).encode() + b"\n"
        # Opened each time, because programs close descriptors that they don't know.
        handle = os.open(os.path.join(self._folder, JOURNAL), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(handle, line)
        finally:
            os.close(handle)

    def _new_copy(self) -> str:
        self._number += 1
        return os.path.join(self._folder, f"{os.getpid()}-{threading.get_ident()}-{self._number}")

    # -- names -------------------------------------------------------------------------------------------------------

    def _any_name(self, path: Any, dir_fd: Any) -> Optional[str]:
        """The absolute path, with links on the way resolved, but not a link at its end."""
        if isinstance(path, int):
            return None
        text = os.fsdecode(path)
        if isinstance(dir_fd, int) and dir_fd >= 0:
            text = os.path.join(os.readlink(f"/proc/self/fd/{dir_fd}"), text)
        folder, last = os.path.split(os.path.abspath(text))
        return os.path.join(os.path.realpath(folder), last)

    def _name(self, path: Any, dir_fd: Any) -> Optional[str]:
        name = self._any_name(path, dir_fd)
        return None if name is None or self._outside(name) else name

    def _outside(self, name: str) -> bool:
        """Whether a path does not need guarding."""
        return name.startswith(_NEVER) or any(name.startswith(folder) for folder in self._covered)


def _looks(found: os.stat_result) -> Dict[str, Any]:
    return {
        "mode": stat.S_IMODE(found.st_mode),
        "uid": found.st_uid,
        "gid": found.st_gid,
        "times": [found.st_atime_ns, found.st_mtime_ns],
    }


def _linked(name: str, copy: str) -> bool:
    try:
        os.link(name, copy)
    except OSError:  # Another file system.
        return False
    return True


def _copied(name: str, copy: str) -> None:
    source = os.open(name, os.O_RDONLY)
    try:
        target = os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            while True:
                block = os.read(source, _BLOCK)
                if not block:
                    return
                while block:
                    block = block[os.write(target, block) :]
        finally:
            os.close(target)
    finally:
        os.close(source)


_guard: Optional[Guard] = None


def install(invitation: Dict[str, Any]) -> bool:
    """Guard files if the invitation says so. Returns whether it does."""
    global _guard
    said = invitation.get("guard")
    if not said:
        return False
    if said.get("folder"):
        _guard = Guard(said["folder"], said.get("covered", []))
        _guard.install()
    if said.get("renames"):
        _mend_renames()
    return True


def before_write(path: Any) -> None:
    """See `Guard.before_write`; does nothing if there is no guard."""
    if _guard is not None and isinstance(path, (str, bytes, os.PathLike)):
        _guard.before_write(os.fspath(path))


def announced(function: Callable[..., Any], name: str, position: int) -> Callable[..., Any]:
    """The same function, but it first tells the guard about the file that it will write, which its argument names."""

    @functools.wraps(function)
    def telling(*args: Any, **kwargs: Any) -> Any:
        before_write(args[position] if len(args) > position else kwargs.get(name))
        return function(*args, **kwargs)

    return telling


def watch_safetensors(module: Any) -> None:
    """Watch what safetensors writes. Its native module has just been executed; nothing was imported from it yet."""
    module.serialize_file = announced(module.serialize_file, "filename", 1)


def _mend_renames() -> None:
    """Make renaming folders of the lower layer work, which an overlay of an unprivileged user refuses (EXDEV)."""

    def mended(original: Any) -> Any:
        @functools.wraps(original)
        def rename(src: Any, dst: Any, **where: Any) -> None:
            try:
                original(src, dst, **where)
            except OSError as error:
                if error.errno != errno.EXDEV or where or not os.path.isdir(src) or os.path.islink(src):
                    raise
                if os.path.lexists(dst) and not (os.path.isdir(dst) and not os.listdir(dst)):
                    raise
                import shutil

                shutil.copytree(src, dst, symlinks=True, dirs_exist_ok=True)
                shutil.rmtree(src)
                if _guard is not None:
                    _guard.copied(os.path.realpath(dst))

        return rename

    os.rename = mended(os.rename)
    os.replace = mended(os.replace)
