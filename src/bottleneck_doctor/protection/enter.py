"""Runs by path as a process of its own: builds the sandbox around itself, then becomes the program to examine.

A specification (a JSON file) and the program's command line go in. The program then runs in this same process, so that
its process id, parent, group, terminal and standard streams are the same as without the sandbox. Errors before that are
reported on a pipe, in JSON. This file uses the standard library only and nobody imports it, because its start is added
to every start of the user's program.

The sandbox is a mount namespace in which overlays lie over the folders that may be written: the files below are read
where they are, changes go into layers of ours. Without the right to mount, a user namespace gives it, in which the own
user and group are mapped to themselves. There is no namespace for processes, network or devices.

Edits of the user's files, where there are any, are written once the overlays lie: they end up in the layers, and only
what is started here sees them.
"""

import base64
import ctypes
import errno
import json
import os
import signal
import stat
import sys
from typing import Any

_CLONE_NEWNS = 0x00020000
_CLONE_NEWUSER = 0x10000000
_MS_BIND = 4096
_MS_REC = 16384
_MS_PRIVATE = 1 << 18
"""From linux/sched.h and linux/mount.h."""

_libc = ctypes.CDLL(None, use_errno=True)


class Failed(Exception):
    """A step that the kernel refused: what was tried, on which path, and the error number."""

    def __init__(self, what: str, path: str, number: int | None) -> None:
        super().__init__(what, path, number)
        self.told = {"what": what, "path": path, "errno": number}


def _call(what: str, path: str, function: Any, *arguments: Any) -> None:
    if function(*arguments) != 0:
        raise Failed(what, path, ctypes.get_errno())


def _mount(source: str, target: str, kind: str | None, flags: int, options: str | None) -> None:
    def encoded(text: str | None) -> bytes | None:
        return None if text is None else os.fsencode(text)

    _call(
        "mount " + (kind or "bind"),
        target,
        _libc.mount,
        encoded(source),
        encoded(target),
        encoded(kind),
        ctypes.c_ulong(flags),
        encoded(options),
    )


def _separate(own_user_namespace: bool) -> None:
    """Enter a mount namespace of our own."""
    user, group = os.geteuid(), os.getegid()
    _call("unshare", "", _libc.unshare, _CLONE_NEWNS | (_CLONE_NEWUSER if own_user_namespace else 0))
    if own_user_namespace:
        try:
            for name, text in (
                ("setgroups", "deny"),
                ("uid_map", f"{user} {user} 1"),
                ("gid_map", f"{group} {group} 1"),
            ):
                with open(f"/proc/self/{name}", "w") as handle:
                    handle.write(text)
        except OSError as error:
            raise Failed("map the user", "", error.errno) from error
    _mount("none", "/", None, _MS_REC | _MS_PRIVATE, None)


def _opened(path: str) -> int:
    try:
        return os.open(path, os.O_PATH)
    except OSError as error:
        raise Failed("open", path, error.errno) from error


def _overlay(target: dict[str, str], descriptors: list[int], own_user_namespace: bool) -> None:
    """Lay a layer over a folder. Both are given as file descriptors, so that no path needs escaping."""
    lower, upper, work = (f"/proc/self/fd/{descriptor}" for descriptor in descriptors)
    options = f"lowerdir={lower},upperdir={upper},workdir={work}"
    # Only the initial namespace may keep the notes by which a folder of the lower layer can be renamed.
    options += ",userxattr" if own_user_namespace else ",index=off,redirect_dir=on"
    _mount(target["source"], target["path"], "overlay", 0, options)


def _build(specification: dict[str, Any]) -> tuple[list[dict[str, Any]], set[int]]:
    """Lay everything over. What failed, which only a trial goes on after, and the device numbers of what lies.

    An overlay's folders have a number of its own, so a folder with another one has none over it.
    """
    own = specification["own_user_namespace"]
    targets = specification["targets"]
    _separate(own)
    # Everything is opened before anything is mounted: layers, and folders that must stay visible, may lie in a target.
    descriptors = [[_opened(target[name]) for name in ("path", "upper", "work")] for target in targets]
    through = []
    for path in specification["through"]:
        try:
            through.append((path, os.open(path, os.O_PATH)))
        except OSError:  # Gone meanwhile.
            continue
    failed = []
    laid = set()
    for target, opened in zip(targets, descriptors, strict=True):
        try:
            _overlay(target, opened, own)
            laid.add(os.stat(target["path"]).st_dev)
        except Failed as failure:
            if not specification["trial"]:
                raise
            failed.append(failure.told)
    for path, descriptor in through:
        _mount(f"/proc/self/fd/{descriptor}", path, None, _MS_BIND, None)
    for descriptor in [each for opened in descriptors for each in opened] + [each for _, each in through]:
        os.close(descriptor)
    os.chdir(specification["cwd"])
    return failed, laid


def _edit(specification: dict[str, Any], laid: set[int]) -> None:
    """Write edited files into the layers, through the overlays: none over which there lies nothing.

    Each has a whole path, its new content (None: it is deleted) and the time of change that it gets.
    """
    edits = specification["edits"]
    for each in edits:
        try:
            _check_laid_over(each["path"], laid)
            if each["content"] is None:
                os.unlink(each["path"])
            else:
                _write(each["path"], base64.b64decode(each["content"]), each["changed"])
        except OSError as error:
            raise Failed("editing", each["path"], error.errno or errno.EIO) from error
    for each in edits:
        if each["content"] is None:
            _remove_empty(os.path.dirname(each["path"]), specification["cwd"])


def _check_laid_over(path: str, laid: set[int]) -> None:
    folder = os.path.dirname(path)
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    if os.path.realpath(folder) != folder or os.stat(folder).st_dev not in laid or os.path.islink(path):
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), path)


def _write(path: str, content: bytes, changed: int) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    mode = stat.S_IMODE(os.stat(path).st_mode) if os.path.exists(path) else None
    if mode is not None and not os.access(path, os.W_OK):
        os.chmod(path, mode | stat.S_IWUSR)
    with open(path, "wb") as handle:
        handle.write(content)
    if mode is not None and stat.S_IMODE(os.stat(path).st_mode) != mode:
        os.chmod(path, mode)
    os.utime(path, ns=(changed, changed))


def _remove_empty(folder: str, cwd: str) -> None:
    """Remove folders that held nothing but what was deleted, as git does: Python would import them as packages."""
    while not (cwd + "/").startswith(folder.rstrip("/") + "/"):
        try:
            os.rmdir(folder)
        except OSError:  # Not empty, or gone already.
            return
        folder = os.path.dirname(folder)


def _try_out(folders: list[str], trial: str) -> list[dict[str, Any]]:
    """Do what programs do (append, remove, rename) in the sandbox. Returns the `folders` that could not be written."""
    with open(os.path.join(trial, "file"), "a") as handle:
        handle.write("b")
    os.remove(os.path.join(trial, "folder", "file"))
    os.rmdir(os.path.join(trial, "folder"))
    os.mkdir(os.path.join(trial, "folder"))
    os.rename(os.path.join(trial, "file"), os.path.join(trial, "folder", "file"))
    refused: list[dict[str, Any]] = []
    for folder in folders:
        name = os.path.join(folder, f".bottleneck-doctor-{os.getpid()}")
        try:
            os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            os.remove(name)
        except OSError as error:
            refused.append({"what": "write", "path": folder, "errno": error.errno})
    return refused


def _own_environment() -> dict[bytes, bytes]:
    """What this process was started with: Python itself adds to it where the locale is C."""
    with open("/proc/self/environ", "rb") as handle:
        entries = handle.read().split(b"\0")
    return {name: value for name, _, value in (entry.partition(b"=") for entry in entries) if name}


def main() -> None:
    """`enter.py SPECIFICATION PIPE COMMAND ...`."""
    pipe = int(sys.argv[2])
    os.set_inheritable(pipe, False)
    try:
        with open(sys.argv[1], encoding="utf-8") as handle:
            specification = json.load(handle)
        failed, laid = _build(specification)
        if specification["trial"]:
            failed += _try_out(specification["to_write"], specification["trial"])
        _edit(specification, laid)
        if specification["trial"]:
            os.write(pipe, json.dumps({"failed": failed}).encode())
            return
        # Python ignores these two signals; the program should start as from a shell.
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        os.execvpe(sys.argv[3], sys.argv[3:], _own_environment())
    except Failed as failure:
        told = {"refused": failure.told}
    except OSError as error:
        told = {"refused": {"what": "start", "path": error.filename or sys.argv[-1], "errno": error.errno or errno.EIO}}
    os.write(pipe, json.dumps(told).encode())
    os._exit(127)


if __name__ == "__main__":
    main()
