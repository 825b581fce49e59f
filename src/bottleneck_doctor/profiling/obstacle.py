"""Why py-spy can't read a process here, and what to do about it.

What the kernel allows and what py-spy printed before it ended go in; a `Warning` for the report comes out. The
examination continues without py-spy.
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from bottleneck_doctor.documents.report import Warning

_CAP_SYS_PTRACE = 19
"""From linux/capability.h."""

_REFUSED = ("permission denied", "operation not permitted", "eperm", "os error 1)", "os error 13)", "must be root")
_STRANGE_PYTHON = (
    "failed to find python version",
    "unsupported version",
    "unknown python version",
    "no python processes",
)


@dataclass(frozen=True)
class Surroundings:
    """What decides whether one process may read another. None if the system does not say."""

    platform: str
    root: bool
    ptrace_scope: int | None = None
    can_trace: bool | None = None
    """Whether this process has the capability SYS_PTRACE."""
    filtered: bool | None = None
    """Whether a seccomp filter stands before system calls, as in containers."""


def look_around() -> Surroundings:
    """The surroundings of this process."""
    status = _read("/proc/self/status")
    effective = re.search(r"^CapEff:\s*([0-9a-f]+)$", status, re.MULTILINE)
    filtered = re.search(r"^Seccomp:\s*(\d+)$", status, re.MULTILINE)
    scope = _read("/proc/sys/kernel/yama/ptrace_scope").strip()
    return Surroundings(
        platform=sys.platform,
        root=hasattr(os, "geteuid") and os.geteuid() == 0,
        ptrace_scope=int(scope) if scope.isdigit() else None,
        can_trace=bool(int(effective[1], 16) >> _CAP_SYS_PTRACE & 1) if effective else None,
        filtered=filtered[1] != "0" if filtered else None,
    )


def _read(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""


def no_tool() -> Warning:
    """py-spy is not installed."""
    return Warning(
        slug="sampling-no-tool",
        sentence="py-spy was not found, so there is no sampling profile: install it with `pip install py-spy`.",
    )


def explain(said: str, here: Surroundings) -> Warning:
    """Why py-spy ended without a recording, according to what it `said`."""
    lower = said.lower()
    if any(sign in lower for sign in _REFUSED):
        return _refused(here)
    if any(sign in lower for sign in _STRANGE_PYTHON):
        return Warning(
            slug="sampling-strange-python",
            sentence="py-spy does not know this Python, so there is no sampling profile: update it with "
            "`pip install --upgrade py-spy`.",
        )
    return Warning(
        slug="sampling-failed",
        sentence=f"py-spy ended without a recording, so there is no sampling profile; it said: {_last_words(said)}",
    )


def _refused(here: Surroundings) -> Warning:
    refused = "The system does not let py-spy read the training process, so there is no sampling profile"
    if here.platform == "darwin":
        why = "on macOS, only root may do that. Run doctor with `sudo`."
    elif here.platform == "win32":
        why = "run doctor as an administrator."
    elif here.ptrace_scope == 3:
        why = "kernel.yama.ptrace_scope is 3. Only a reboot with another value allows it."
    elif here.ptrace_scope == 2 and not here.can_trace:
        why = (
            "kernel.yama.ptrace_scope is 2. Allow it with `sudo sysctl kernel.yama.ptrace_scope=1`, or run doctor with "
            "the capability SYS_PTRACE."
        )
    elif here.can_trace is False and (here.filtered or here.root):
        why = "this looks like a container without the capability SYS_PTRACE. Start it with `--cap-add=SYS_PTRACE`."
    elif here.filtered:
        why = (
            "a seccomp filter seems to forbid it. Start the container with `--cap-add=SYS_PTRACE`, or with a seccomp "
            "profile that allows ptrace and process_vm_readv."
        )
    else:
        why = "perhaps the training runs as another user. Run doctor as that user, or with the capability SYS_PTRACE."
    return Warning(slug="sampling-not-permitted", sentence=f"{refused}: {why}")


def _last_words(said: str) -> str:
    """The error itself, without the backtrace and the greeting around it."""
    lines = [line.strip() for line in said.split("Stack backtrace")[0].splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith("error")]
    words = (errors or lines or ["nothing"])[-1][:300]
    return words if words.endswith((".", "!", "?")) else f"{words}."
