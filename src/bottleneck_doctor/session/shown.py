"""What guests show of themselves in their folder while they say nothing on their lines: bytes that are looked up.

Guests on other hosts write into folders of their own, so nothing is known of those here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

from bottleneck_doctor.runtime.wire import liveness
from bottleneck_doctor.runtime.wire import seen as seen_so_far


def is_away(folder: Path) -> bool:
    """Whether training stands still for something of the user's own: an evaluation, a checkpoint."""
    with contextlib.suppress(OSError):
        return any(shown.away for shown in map(_liveness_of, folder.glob(liveness.PREFIX + "*")) if shown)
    return False


def steps(folder: Path, pids: Mapping[int, int]) -> dict[int, int]:
    """Steps that each rank has begun since its loop was found, of those that show them. `pids`: by rank."""
    shown = {rank: _liveness_of(folder / f"{liveness.PREFIX}{pid}") for rank, pid in pids.items()}
    return {rank: each.steps for rank, each in shown.items() if each is not None}


def most_seen(folder: Path) -> seen_so_far.Counts | None:
    """What was seen so far by the process that saw most; None where none has imported torch."""
    found = []
    with contextlib.suppress(OSError):
        for file in folder.glob(seen_so_far.PREFIX + "*"):
            found.append(seen_so_far.read(file.read_bytes()))
    known = [counts for counts in found if counts is not None]
    return max(known, key=lambda counts: (counts.optimizer_steps, counts.backwards, counts), default=None)


def _liveness_of(file: Path) -> liveness.Shown | None:
    try:
        return liveness.read(file.read_bytes())
    except OSError:
        return None
