"""Watches what the user's program saves: measures how long it takes, and tells the guard about files that Python
doesn't report.

torch writes checkpoints in native code, which raises no audit event.
"""

from __future__ import annotations

import functools
from typing import Any, Callable

import torch

from ..process.originals import now
from . import guard


class Saving:
    """Seconds that the user's program spent in `torch.save` so far."""

    seconds = 0.0


def install() -> None:
    """Watch `torch.save` and its relatives. Called once torch is executed."""
    torch.save = _timed(guard.announced(torch.save, "f", 1))
    torch.jit.save = guard.announced(torch.jit.save, "f", 1)


def _timed(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def timed(*args: Any, **kwargs: Any) -> Any:
        begun = now()
        try:
            return function(*args, **kwargs)
        finally:
            Saving.seconds += now() - begun

    return timed
