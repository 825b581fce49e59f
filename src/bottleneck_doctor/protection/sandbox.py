"""Whether a sandbox works on this machine, which is tried once in each examination, and how a program starts in it.

No documentation says what a kernel, a container and their security modules allow together, so doctor tries it:
`enter.py` builds the sandbox around itself, writes some files and ends. That takes about as long as starting Python.
"""

from __future__ import annotations

import base64
import errno
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bottleneck_doctor.errors import DoctorError
from bottleneck_doctor.protection import plan, scratch
from bottleneck_doctor.protection.layers import Layers
from bottleneck_doctor.protection.retention import Moments

ENTER = Path(__file__).with_name("enter.py")
SOURCE = "bottleneck-doctor:"
"""The mount source of doctor's overlays begins like this; the type of the file system below follows."""

LEAST_FREE = 1 << 30
"""Bytes that must be free on the disk that holds the layers: the program would fail on a full disk."""
_TRIAL_SECONDS = 10.0
_CAP_SYS_ADMIN = 21
"""From linux/capability.h."""


Edits = Mapping[str, bytes | None]
"""Files as an edited program sees them: whole paths with no link on the way, and the content of each, None of one that
is deleted. Nobody else sees any of it."""


class NotHere(Exception):
    """There is no sandbox. The text is the reason, as a part of a sentence."""


@dataclass(frozen=True)
class Entered:
    """A command line that builds the sandbox and becomes the program, and the pipe on which it reports errors."""

    argv: tuple[str, ...]
    pipe: tuple[int, int]

    @property
    def passed(self) -> tuple[int, ...]:
        """Descriptors that the process must inherit."""
        return self.pipe[1:]

    def check(self) -> None:
        """Wait until the program runs. Raises `NotHere` if the sandbox fails, `OSError` if the program can't start."""
        reading, writing = self.pipe
        os.close(writing)
        with open(reading, "rb") as handle:
            said = handle.read()
        refused = json.loads(said).get("refused") if said else None
        if refused is None:
            return
        if refused["what"] == "start":
            raise OSError(refused["errno"], os.strerror(refused["errno"]), refused["path"])
        raise NotHere(why(refused))

    def abandon(self) -> None:
        """The process could not be started at all."""
        for end in self.pipe:
            os.close(end)


class Sandbox:
    """The sandbox of one examination. `edits`: what its programs see changed from their start on.

    Raises `NotHere` where there can be none, or none that covers the edits.
    """

    def __init__(
        self, cwd: Path, known: Sequence[Path], environment: Mapping[str, str], edits: Edits | None = None
    ) -> None:
        user = _user()
        _check_devices(user)
        mounts = plan.read_mounts(_read("/proc/self/mountinfo"))
        self._environment = dict(environment)
        self._cwd = os.path.realpath(cwd)
        self._home = os.path.realpath(os.path.expanduser("~"))
        # Once for all starts, so that later ones find what Python compiled of an edited file in the first.
        self._edits = [_edit(path, content, time.time_ns()) for path, content in (edits or {}).items()]
        temporary = Path(tempfile.gettempdir())
        folders = [_existing(Path(path).parent) for path in edits or ()]
        found = plan.targets(mounts, user, [cwd, Path(self._home), temporary, *known, *folders])
        self._own_user_namespace = not user.privileged
        self._check_folders(found, mounts)
        self._folder = _folder_for_layers(temporary, mounts)
        try:
            self._targets = self._tried(found, [self._cwd, self._home, str(temporary)])
            self._check_folders(self._targets, mounts)
        except BaseException:
            scratch.remove(self._folder)
            raise
        self._layers = Layers(self._folder, self._targets, frozenset(edits or ()))

    @property
    def covered(self) -> list[str]:
        return [target.path for target in self._targets]

    @property
    def own_user_namespace(self) -> bool:
        """Whether it needs a user namespace, in which a folder of the lower layer can't be renamed."""
        return self._own_user_namespace

    def enter(self, argv: Sequence[str], folder: Path) -> Entered:
        """How to start a program in it. The specification is written to `folder`, the session's own."""
        specification = self._specification(self._targets, self._layers.made, self._cwd)
        return _entered(specification, argv, folder)

    def leave(self, moments: Moments | None, copies: Sequence[str] = ()) -> frozenset[str]:
        """Call when a session is over and its processes are gone. `copies`: other paths of folders of the user.
        Returns the files that the next one finds."""
        try:
            return self._layers.prune(moments, copies)
        except OSError:
            return self._layers.prune(None)

    def close(self) -> None:
        scratch.remove(self._folder)

    def _check_folders(self, targets: Sequence[plan.Target], mounts: Sequence[plan.Mount]) -> None:
        if not any(plan.inside(self._cwd, target.path) for target in targets):
            kind = plan.mount_of(self._cwd, mounts).kind
            what = "which overlays are not laid on" if kind not in plan.LAYABLE else "where it can't be covered"
            raise NotHere(f"the working folder lies on {kind or 'an unknown file system'}, {what}")
        for each in self._edits:
            if not any(plan.inside(each["path"], target.path) for target in targets):
                raise NotHere(f"{each['path']} lies where it can't be covered")

    def _tried(self, targets: Sequence[plan.Target], to_write: Sequence[str]) -> list[plan.Target]:
        """Build the sandbox once without a program. Returns the targets that worked."""
        trial = self._folder / "trial"
        (trial / "lower" / "folder").mkdir(parents=True)
        (trial / "lower" / "file").write_text("a", encoding="ascii")
        (trial / "lower" / "folder" / "file").write_text("a", encoding="ascii")
        every = [*targets, plan.Target(str(trial / "lower"), "trial")]
        layers = Layers(trial, every)
        specification = self._specification(every, layers.made, self._cwd)
        specification["trial"] = str(trial / "lower")
        specification["to_write"] = [
            path
            for path in to_write
            if os.access(path, os.W_OK) and any(plan.inside(path, target.path) for target in targets)
        ]
        entered = _entered(specification, [], trial)
        try:
            process = subprocess.Popen(
                entered.argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                pass_fds=entered.passed,
                env=self._environment,
            )
        except OSError as error:
            entered.abandon()
            raise NotHere(f"trying it failed: {error.strerror}") from error
        reading, writing = entered.pipe
        os.close(writing)
        try:
            with open(reading, "rb") as handle:
                _, said = process.communicate(timeout=_TRIAL_SECONDS)
                told = json.loads(handle.read() or b"{}")
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise NotHere(f"trying it took more than {_TRIAL_SECONDS:.0f} s") from None
        finally:
            scratch.remove(trial)
        if "refused" in told:
            raise NotHere(why(told["refused"]))
        if "failed" not in told:
            raise NotHere(f"trying it failed: {said.decode(errors='replace').strip().splitlines()[-1:]}")
        return self._without(targets, told["failed"])

    def _without(self, targets: Sequence[plan.Target], failed: Sequence[dict[str, Any]]) -> list[plan.Target]:
        left = list(targets)
        for each in failed:
            path = each["path"]
            if plan.inside(path, str(self._folder)) or (plan.inside(self._cwd, path) and each["what"] != "write"):
                raise NotHere(why(each))
            left = [target for target in left if not plan.inside(path, target.path)]
        return left

    def _specification(
        self, targets: Sequence[plan.Target], made: Callable[[int], tuple[Path, Path]], cwd: str
    ) -> dict[str, Any]:
        rows = []
        for number, target in enumerate(targets):
            upper, work = made(number)
            rows.append({"path": target.path, "source": SOURCE + target.kind, "upper": str(upper), "work": str(work)})
        covered = [target.path for target in targets]
        return {
            "own_user_namespace": self._own_user_namespace,
            "targets": rows,
            "through": self._through(covered),
            "edits": self._edits,
            "cwd": cwd,
            "trial": "",
        }

    def _through(self, covered: Sequence[str]) -> list[str]:
        """Paths that must be the same file inside and outside: doctor's own folders, and sockets of others."""
        pipes = self._environment.get("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps")
        ours = [str(folder) for folder in scratch.own_folders() if folder != self._folder]
        found = [path for path in [*ours, os.path.realpath(pipes)] if os.path.exists(path)]
        found = [os.path.realpath(path) for path in found if any(plan.inside(path, each) for each in covered)]
        sockets = plan.sockets(_read("/proc/net/unix"), covered)
        return found + [path for path in sockets if not any(plan.inside(path, each) for each in found)]


def _existing(folder: Path) -> Path:
    """A folder, or the nearest one around it that is there."""
    return next(each for each in (folder, *folder.parents) if each.is_dir())


def _edit(path: str, content: bytes | None, moment: int) -> dict[str, Any]:
    """An edit as a specification holds it. `moment`: when it is made, in nanoseconds of Unix time."""
    try:
        # Python knows a file that it has compiled by its size and by the second of its last change.
        same_second = os.stat(path).st_mtime_ns // 10**9 == moment // 10**9
    except OSError:
        same_second = False
    return {
        "path": path,
        "content": None if content is None else base64.b64encode(content).decode("ascii"),
        "changed": moment + 10**9 * same_second,
    }


def _entered(specification: Mapping[str, Any], argv: Sequence[str], folder: Path) -> Entered:
    path = folder / "sandbox.json"
    path.write_text(json.dumps(specification), encoding="utf-8")
    pipe = os.pipe()
    # -I and -S: nothing of the user's Python runs here, not even their sitecustomize.
    return Entered((sys.executable, "-I", "-S", str(ENTER), str(path), str(pipe[1]), *argv), pipe)


def _user() -> plan.User:
    if sys.platform != "linux":
        raise NotHere("only Linux has what it needs")
    effective = re.search(r"^CapEff:\s*([0-9a-f]+)$", _read("/proc/self/status"), re.MULTILINE)
    privileged = os.geteuid() == 0 and effective is not None and bool(int(effective[1], 16) >> _CAP_SYS_ADMIN & 1)
    if os.geteuid() == 0 and not privileged:
        # In a user namespace, root could not change the files of other users, and the program might fail.
        raise NotHere("root may not mount here, as in containers without the capability SYS_ADMIN")
    return plan.User(os.geteuid(), os.getegid(), privileged)


def _check_devices(user: plan.User) -> None:
    if not user.privileged and os.path.exists("/proc/driver/nvidia") and not os.path.exists("/dev/nvidia-uvm"):
        # The driver's own set-user-id helper makes it at first use, which it could not do in a user namespace.
        raise NotHere("/dev/nvidia-uvm does not exist yet, and could not be made inside it")


def _folder_for_layers(temporary: Path, mounts: Sequence[plan.Mount]) -> Path:
    """A folder on a disk if there is one: in tmpfs, the files that the program writes would take memory from it."""
    places = [place for place in (temporary, Path("/var/tmp")) if os.access(place, os.W_OK)]
    on_disk = [place for place in places if plan.mount_of(os.path.realpath(place), mounts).kind != "tmpfs"]
    for place in [*on_disk, *places][:1]:
        free = os.statvfs(place)
        if free.f_bavail * free.f_frsize < LEAST_FREE:
            raise NotHere(f"less than 1 GiB is free in {place}")
        try:
            return scratch.new_folder(place)
        except DoctorError:
            break
    raise NotHere("no folder for temporary files can be written")


def why(refused: Mapping[str, Any]) -> str:
    """Why the kernel refused, as far as it says: part of a sentence."""
    what, number = refused["what"], refused["errno"]
    said = os.strerror(number)
    if what in ("unshare", "map the user") or (what.startswith("mount") and number in (errno.EPERM, errno.EACCES)):
        if _read("/proc/sys/kernel/unprivileged_userns_clone").strip() == "0":
            return "user namespaces are forbidden (kernel.unprivileged_userns_clone is 0)"
        if _read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns").strip() == "1":
            return "AppArmor restricts user namespaces (kernel.apparmor_restrict_unprivileged_userns is 1)"
        if _read("/proc/sys/user/max_user_namespaces").strip() == "0" or number == errno.ENOSPC:
            return "user namespaces are forbidden (user.max_user_namespaces)"
        if what == "unshare" and not re.search(r"^Seccomp:\s*0$", _read("/proc/self/status"), re.MULTILINE):
            return "a seccomp filter forbids namespaces, as in containers"
        return f"the kernel forbids it ({what}: {said})"
    if what == "mount overlay" and number == errno.ENODEV:
        return "this kernel has no overlay file system"
    return f"{what} {refused['path']} failed: {said}"


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""
