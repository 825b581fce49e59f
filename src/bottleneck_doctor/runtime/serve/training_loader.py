"""Which loader the loop trains on, also if the script makes it again for every epoch or keeps others that look the
same."""

from __future__ import annotations

import gc
import weakref
from typing import Any, Dict, Optional, Tuple

from torch.utils.data import BatchSampler, RandomSampler, SequentialSampler

from ..loader.attributes import epoch_length
from ..loader.feed import IndexStream
from ..loader.iterators import ahead, retire
from ..loop.ladder import Loop
from ..loop.records import likeness
from ..loop.steps import Steps

SURE_BATCHES = 8
"""If this many batches in a row come from another loader and are trained on, that one is the training loader."""


class TrainingLoader:
    """The loader that the loop trains on now.

    `iterator` is the user's own over `loader`; it becomes a shell. The guest may hold no other reference to the loader:
    a loader that nobody holds any more has been replaced by a new one, and one that is still held stands beside it.
    """

    def __init__(self, steps: Steps, loop: Loop, loader: Any, iterator: Any) -> None:
        self._steps = steps
        self._period = loop.period
        self._rung = loop.rung
        self._likeness = likeness(loader)
        self.loader = loader
        self.length = epoch_length(loader)
        """Batches of an epoch; None where the loader does not know."""
        asked_for = ahead(iterator)
        self.stream = IndexStream(loader._index_sampler, retire(iterator, loader))
        iterator._doctor_loader = weakref.ref(loader)  # Weak, so that only others keep it alive.
        self.position = loop.record.batches if loop.record is not None else 0
        """Batches that were trained on since the process started."""
        self._taken_before = self.position + asked_for
        self.made_anew = loop.record is not None and loop.record.made_anew
        """Whether the script makes a new loader for every epoch."""
        self._others: Dict[int, Any] = {}
        """Loaders that look like the training one and exist beside it, such as that of an evaluation. Held weakly."""
        self._others_since = (-1, 0)
        """The position of the training loader when the others were first used, and the steps made by then."""
        self._others_batches = 0
        self._epochs: Tuple[int, int] = (0, 0)
        """Batches of the last two epochs."""
        self._companions = {
            key
            for key, record in steps.records.items()
            if record is not loop.record and record.batches >= 4 and record.credited * 2 > record.batches
        }

    def is_this(self, loader: Any) -> bool:
        """Whether this is the training loader. If it has replaced the training loader, it is the one from now on."""
        if loader is self.loader:
            return True
        known = self._steps.records.get(id(loader))
        if (known is not None and known.loader() is loader) or not self._is_alike(loader):
            return False
        other = self._others.get(id(loader))
        is_new = other is None or other() is not loader
        if not self._is_gone(thoroughly=is_new) and not self._others_train():
            self._others[id(loader)] = weakref.ref(loader)
            return False
        self.made_anew = True
        self.loader = loader
        self._taken_before += self.stream.taken
        self.stream = IndexStream(loader._index_sampler)
        return True

    @property
    def ahead(self) -> int:
        """Batches that the sampler has given beyond those that were trained on. Workers had them when a window ended,
        and they are lost. 0 where batches have no indices."""
        return max(0, self._taken_before + self.stream.taken - self.position)

    def had_epoch(self, batches: int) -> None:
        """The loop took so many batches in an epoch that is over, all of them or only the first."""
        self._epochs = (self._epochs[1], batches)

    @property
    def epoch_batches(self) -> Optional[int]:
        """How many batches the loop takes in an epoch, if the last two epochs agree; None if that is not known."""
        before, last = self._epochs
        return last if last and before == last else None

    def has_same_data(self, loader: Any) -> bool:
        """Whether this loader goes through the training data: it is the training loader, or gives all samples of the
        same dataset. With samplers of the user's own, it may give a part that training leaves out."""
        mine = self.loader
        return loader is mine or (loader.dataset is mine.dataset and _gives_all(loader) and _gives_all(mine))

    def has_companion(self, loader: Any) -> bool:
        """Whether batches of this other loader are trained on too, together with those of the training loader."""
        return id(loader) in self._companions

    def _is_alike(self, loader: Any) -> bool:
        """Whether this loader was made by the same line, in the same way, as the training one."""
        return self._likeness is not None and self._likeness == likeness(loader)

    def _others_train(self) -> bool:
        """Whether the loop now trains on such loaders, and no longer on the one that somebody still holds."""
        if self._others_since[0] != self.position:
            self._others_since = (self.position, self._steps.made(self._rung))
            self._others_batches = 0
        self._others_batches += 1
        steps = self._steps.made(self._rung) - self._others_since[1]
        return self._others_batches > SURE_BATCHES and steps * self._period >= self._others_batches - 2 * self._period

    def _is_gone(self, *, thoroughly: bool) -> bool:
        """Whether nobody but this object holds the training loader any more. If so, a new loader has replaced it; if
        not, the new one stands beside it, as for an evaluation. `thoroughly`: also look at reference cycles."""
        reference = weakref.ref(self.loader)
        self.loader = None
        if thoroughly and reference() is not None:
            gc.collect()
        self.loader = reference()
        return self.loader is None


def _gives_all(loader: Any) -> bool:
    """Whether a loader of torch's gives every sample of its dataset."""
    # With a batch sampler of the user's own, `sampler` is torch's default, which nothing uses.
    return type(loader.sampler) in (RandomSampler, SequentialSampler) and (
        loader.batch_sampler is None or type(loader.batch_sampler) is BatchSampler
    )
