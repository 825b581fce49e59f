"""What the guest remembers of a loader, or of steps in a loop without a loader, until the loop is found."""

from __future__ import annotations

import weakref
from collections import deque
from typing import Any, Deque, List, Optional, Tuple

from ..process.originals import now
from .period import Signature


class Alone:
    """Events of one kind in a row, with nothing between them by which a loop would rather be found.

    `since`: when the first of them was, in seconds. `steps`: when each was, its signature, and how often the modules
    that train had been called by then. Times of `steps` leave out what was `away`.
    """

    def __init__(self) -> None:
        self.count = 0
        self.since = 0.0
        self.steps: Deque[Tuple[float, Signature, int]] = deque(maxlen=4096)

    def add(self, signature: Signature, calls: int = 0, away: float = 0.0) -> None:
        """`away`: seconds so far that belong to none of them."""
        at = now()
        if not self.count:
            self.since = at
        self.count += 1
        self.steps.append((at - away, signature, calls))

    def clear(self) -> None:
        self.count = 0
        self.steps.clear()

    def gaps(self) -> List[float]:
        """Seconds from each of the last ones to the next."""
        times = [entry[0] for entry in self.steps]
        return [later - earlier for earlier, later in zip(times, times[1:])]

    def calls(self) -> List[int]:
        """How often the modules that train were called between the same steps."""
        totals = [entry[2] for entry in self.steps]
        return [later - earlier for earlier, later in zip(totals, totals[1:])]

    def lasted(self) -> float:
        """Seconds since the first."""
        return now() - self.since if self.count else 0.0


def likeness(loader: Any) -> Optional[Tuple[Any, ...]]:
    """What a loader and the one made in its place for the next epoch share; None where nobody saw it being made."""
    site = loader.__dict__.get("_doctor_site")
    if site is None:
        return None
    try:
        length = len(loader._index_sampler)
    except (TypeError, NotImplementedError, AttributeError):
        length = None
    parts = (loader, loader.dataset, loader.sampler, getattr(loader, "batch_sampler", None))
    # By name: a function that makes the loader may define the class of its dataset as well, anew each time.
    kinds = [(type(each).__module__, type(each).__qualname__) for each in parts]
    return (site, *kinds, loader.batch_size, loader.drop_last, length)


class LoaderRecord:
    """What one loader did: batches, waits, and how often an optimizer step followed."""

    def __init__(self, loader: Any) -> None:
        self.loader = weakref.ref(loader)
        self.likeness = likeness(loader)
        self.made_anew = False
        self.batches = 0
        self.credited = 0
        self.wait_total = 0.0
        self.samples: List[float] = []
        self.epoch_lengths: List[int] = []
        self.in_epoch = 0
        self.requests: Deque[Tuple[float, float, Signature]] = deque(maxlen=512)
        self._begins: Deque[int] = deque(maxlen=512)
        """Batches that had been delivered when an epoch began."""

    def epoch_begins(self) -> None:
        """The batch that was just delivered is the first of an epoch."""
        self.epoch_ended()  # Unless its end was seen: the user left it early.
        self._begins.append(self.batches - 1)

    def epochs(self) -> List[List[Signature]]:
        """What happened before each batch, by epoch, as far as it is remembered."""
        made: List[List[Signature]] = []
        begins, first = set(self._begins), self.batches - len(self.requests)
        for number, (_, _, happened) in enumerate(self.requests, first):
            if number in begins or not made:
                made.append([])
            made[-1].append(happened)
        return made

    def epoch_seen(self) -> Optional[int]:
        """How many batches the last epoch had; None where none was seen to its end. If the present one is longer by
        now, that was none: somebody had only looked at a batch."""
        last = self.epoch_lengths[-1] if self.epoch_lengths else 0
        return last if last >= max(1, self.in_epoch) else None

    def epoch_ended(self) -> None:
        """Note how many batches the epoch had, however it ended."""
        if self.in_epoch:
            self.epoch_lengths.append(self.in_epoch)
        self.in_epoch = 0
