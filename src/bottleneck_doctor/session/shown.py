"""What guests show in the session's folder without sending a message: the supervisor reads bytes from files.

Guests on other hosts write into their own folders, so nothing is known about them here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

from bottleneck_doctor.runtime.wire import liveness
from bottleneck_doctor.runtime.wire import seen as seen_so_far

FAILED = "failed"
"""The name of the files in which guests that could not begin say why, before the number of the process."""


def is_away(folder: Path) -> bool:
    """Whether training stands still for other work of the user's, such as an evaluation or a checkpoint."""
    return any(each.away for each in _shown(folder))


def has_last_step(folder: Path) -> bool:
    """Whether the last step has begun that the program says it will make."""
    return any(each.last for each in _shown(folder))


def steps(folder: Path, pids: Mapping[int, int]) -> dict[int, int]:
    """Steps that each rank has begun since its loop was found, by rank, if it shows them. `pids`: by rank."""
    shown = {rank: _liveness_of(folder / f"{liveness.PREFIX}{pid}") for rank, pid in pids.items()}
    return {rank: each.steps for rank, each in shown.items() if each is not None}


def most_seen(folder: Path) -> seen_so_far.Counts | None:
    """What was seen so far in the process in which most was seen; None if no process has imported torch."""
    found = []
    with contextlib.suppress(OSError):
        for file in folder.glob(seen_so_far.PREFIX + "*"):
            found.append(seen_so_far.read(file.read_bytes()))
    known = [counts for counts in found if counts is not None]
    return max(known, key=lambda counts: (counts.optimizer_steps, counts.backwards, counts), default=None)


def failure(folder: Path, pid: int | None = None) -> str:
    """Why the guest of this process, or of any on this host, could not begin; "" if none has said that."""
    with contextlib.suppress(OSError):
        for file in sorted(folder.glob(f"{FAILED}-{'*' if pid is None else pid}")):
            return file.read_text(encoding="utf-8", errors="replace")
    return ""


def _shown(folder: Path) -> list[liveness.Shown]:
    """What each guest on this host shows."""
    with contextlib.suppress(OSError):
        return [shown for shown in map(_liveness_of, folder.glob(liveness.PREFIX + "*")) if shown is not None]
    return []


def _liveness_of(file: Path) -> liveness.Shown | None:
    try:
        return liveness.read(file.read_bytes())
    except OSError:
        return None
