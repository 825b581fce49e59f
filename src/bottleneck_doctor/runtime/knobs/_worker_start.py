"""What is done in a loader's workers when they start, after what the user does there."""

from __future__ import annotations

from typing import Any


class WorkerStart:
    """A loader's `worker_init_fn`, with something after it (`then`). Several may stand around each other."""

    def __init__(self, theirs: Any) -> None:
        self.theirs = theirs

    def __call__(self, worker: int) -> None:
        if self.theirs is not None:
            self.theirs(worker)
        self.then()

    def then(self) -> None:
        raise NotImplementedError


def has(loader: Any, kind: Any) -> bool:
    """Whether workers of this loader start with one of a class of these."""
    start = loader.worker_init_fn
    while isinstance(start, WorkerStart):
        if isinstance(start, kind):
            return True
        start = start.theirs
    return False
