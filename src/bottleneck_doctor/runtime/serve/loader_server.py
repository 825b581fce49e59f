"""Serves windows at the boundaries of the user's loop: asks for a grant, runs it, reports, asks again."""

from __future__ import annotations

import weakref
from typing import Any, Optional

import torch

from ..knobs import GuestContext
from ..loader.attributes import construction_site
from ..loader.iterators import retire, shell
from ..loop.evaluation_mode import EvaluationMode
from ..loop.ladder import Loop
from ..loop.pauses import Described
from ..loop.steps import Steps
from ..process.originals import now
from ..wire.liveness import Liveness
from .epoch_run import EpochRun
from .steady_run import SteadyRun
from .training_loader import TrainingLoader
from .window import Ask, TheirError, WindowFailed, synchroniser
from .window_runner import WindowRunner

SHORTEST_EPOCH = 4
"""Fewer batches than this don't count as an epoch: `next(iter(loader))` makes an iterator for every step."""


class LoaderServer:
    """Serves a loop that takes its batches from a loader of torch."""

    def __init__(
        self,
        steps: Steps,
        loop: Loop,
        iterator: Any,
        trained: Any,
        delivered: int,
        ask: Ask,
        device: str,
        liveness: Liveness,
    ) -> None:
        self._steps = steps
        self._liveness = liveness
        self._context = GuestContext(steps, device)
        self._training = TrainingLoader(steps, loop, trained, iterator)
        self._context.made_anew = self._training.made_anew
        self._windows = WindowRunner(self._training, self._context, synchroniser(device), ask, liveness.step)
        self._iterator = iterator
        self._begun: Any = weakref.WeakSet([iterator])
        """Iterators over the training loader: a loop may continue with one after it used another."""
        self._delivered = delivered
        self._over = False
        self._requested = 0.0
        self._stops_after: Optional[int] = None
        """Number of batches after which the loop last began a new epoch without requesting one more, as trainers do
        that count batches. Then no request ends an epoch's last step."""
        self._paused_at: Optional[float] = None
        self._by_mode = False
        """Whether nothing but the model's evaluation mode tells of that pause. It may be a part of a step."""
        mode = EvaluationMode(
            steps, self._evaluation_begins, self._evaluation_ended, self._evaluates, lambda: self._over
        )
        mode.watch()
        self._ended_under: Any = None
        """The window in which the last epoch ended; None between two."""
        self._ended_at = 0.0
        self._steps_begun = self._steps_ended = steps.optimizer_steps
        self._trailing = 0.0
        """Seconds by which the last step of an epoch ended later than the epoch did, in loops that fetch ahead."""

    # -- which loader ------------------------------------------------------------------------------------------------

    def serves(self, loader: Any) -> bool:
        """Whether this is the training loader, also if the user makes a new one for every epoch."""
        if not self._training.is_this(loader):
            return False
        self._context.made_anew = self._training.made_anew
        return True

    def shell(self, loader: Any) -> Optional[Any]:
        """An iterator without workers for the user to hold, if this is the training loader."""
        known = loader is self._training.loader
        # A loop without gradients evaluates, perhaps on the training data: it gets iterators of its own.
        if torch.is_grad_enabled() and self.serves(loader):
            return shell(loader, again=known and loader.persistent_workers)
        self.foreign_request(loader)  # Its workers may take a while to start.
        self._context.pauses.foreign(now(), training=self._training.has_same_data(loader), begins=True)
        return None

    def foreign_request(self, loader: Any) -> None:
        """Another loader begins or is asked for a batch: unless it trains alongside, the loop is evaluating."""
        self._context.pauses.asked(now())
        if not self._training.has_companion(loader):
            self._by_mode = False
            self._pause_begins()

    def _evaluation_begins(self) -> None:
        """The model is put into evaluation mode: no loader need be asked for what it evaluates."""
        self._context.pauses.evaluation_mode(now(), on=True)
        if self._paused_at is None and not self._over:
            self._by_mode = True
            self._pause_begins()

    def _evaluation_ended(self) -> None:
        self._context.pauses.evaluation_mode(now(), on=False)

    def _evaluates(self, on: bool) -> None:
        """The same within a step."""
        if self._windows.run is not None:
            self._windows.run.mode.evaluates(on)

    def _pause_begins(self) -> None:
        if self._paused_at is not None:
            return
        self._paused_at = now()
        self._context.interruptions.began(self._steps.backwards)
        if not self._over:
            self._context.evaluated_within.begin()
        self._liveness.away()
        if self._windows.run is not None:
            self._windows.run.mode.interrupted(self._paused_at)
            self._windows.run.loop_left()

    def foreign_answered(self, loader: Any) -> None:
        """The other loader gave its batch, or ended."""
        training = self._training.has_same_data(loader)
        self._context.pauses.foreign(now(), training=training, loader=_described(loader))

    # -- requests ----------------------------------------------------------------------------------------------------

    def request(self, iterator: Any) -> Any:
        """The user requests the next training batch. Raises `StopIteration` at the end of the user's epoch."""
        requested = now()
        self._context.evaluated_within.end()
        self._context.evaluated.end()
        self._liveness.step()
        self._pause_over(requested, same_epoch=iterator is self._iterator)
        if iterator is not self._iterator and iterator._num_yielded:
            # The loop goes on where it was before it looked at another, or takes from two in turn.
            if iterator not in self._begun:  # That is from before it was found.
                retire(iterator, self._training.loader)
                self._begun.add(iterator)
            self._iterator, self._delivered, self._over = iterator, iterator._num_yielded, False
        elif iterator is not self._iterator or (iterator._num_yielded == 0 and self._delivered):
            self._begin_epoch(iterator)
        if self._over:
            raise StopIteration
        run = self._windows.run
        if isinstance(run, SteadyRun) and run.step_ended():
            self._windows.finish(run)
        self._requested = requested
        as_written = self._windows.runs_as_written()
        if self._stops_after is not None:
            self._near_the_end()
        length = self._training.length
        if length is not None and self._delivered >= length and not self._windows.measures_epoch():
            self._training.stream.epoch_over()
            self._end_epoch(None)
            self._epoch_ended(requested, as_written)
            raise StopIteration
        while True:
            try:
                batch = self._windows.take(mid_epoch=self._delivered > 0)
                break
            except StopIteration:
                self._end_epoch(requested)
                self._epoch_ended(requested, as_written)
                raise
            except WindowFailed as failure:
                self._windows.fail(str(failure), mid_epoch=self._delivered > 0)
        if self._delivered == 0:
            # Persistent workers are not restarted in a steady run, unlike in the user's loop.
            restarted = isinstance(run, EpochRun) or (run is not None and not run.feed.persistent)
            trained = self._steps.optimizer_ended_at
            same = self._windows.run is run
            collected = self._context.pauses.ended(requested, now(), as_written and same and restarted, trained)
            if run is not None and same and run is self._ended_under:
                run.epoch_turned(collected)
            self._ended_under = None
        self._delivered += 1
        self._training.position += 1
        self._liveness.reached(self._training.position)
        self._steps.batches += 1
        iterator._num_yielded += 1
        if self._delivered == self._stops_after or (self._delivered < SHORTEST_EPOCH and self._is_whole()):
            self._epoch_ended(now(), as_written)
            self._liveness.away()
        return batch

    def _epoch_ended(self, requested: float, as_written: bool) -> None:
        """The last batch of an epoch was handed out, or more was asked for at `requested`."""
        self._context.pauses.began(requested, now(), as_written)
        self._context.evaluated.begin()
        self._ended_under = self._windows.run

    def _near_the_end(self) -> None:
        """Leave the last batch of an epoch untimed if the loop will not show when its step ends."""
        if self._delivered == self._stops_after:  # But it asks for more.
            self._stops_after = None
            self._context.pauses.began(0.0, 0.0, False)
        elif self._delivered + 1 == self._stops_after and isinstance(self._windows.run, SteadyRun):
            self._windows.run.hold()

    def _begin_epoch(self, iterator: Any) -> None:
        run = self._windows.run
        made = self._steps.optimizer_steps
        if self._over and self._lags():
            self._trailing = self._steps.optimizer_ended_at - self._ended_at if made == self._steps_ended + 1 else 0.0
        self._steps_begun = made
        if not self._over:
            # The user left the last epoch early; its end can't be seen, so the pause after it counts. The first time
            # that this happens at a certain batch, its step ends with the optimizer's; from then on it isn't timed.
            if self._delivered >= SHORTEST_EPOCH or self._is_whole():
                self._had_epoch()
            known = self._delivered == self._stops_after or self._delivered < SHORTEST_EPOCH
            self._stops_after = self._delivered if self._delivered >= SHORTEST_EPOCH else None
            trained = self._steps.optimizer_ended_at
            if isinstance(run, SteadyRun):
                run.pause(None if known or trained < self._requested else trained)
                run.epoch_over()
            elif (
                isinstance(run, EpochRun)
                and run.running
                and run.end_epoch(None if trained < self._requested else trained)
            ):
                self._windows.finish(run)
        retire(iterator, self._training.loader)
        self._begun.add(iterator)
        self._iterator = iterator
        self._delivered = 0
        self._over = False
        self._windows.epoch_begins()

    def _is_whole(self) -> bool:
        """Whether the loop has taken all that the loader has. It may ask for no more, as trainers do that count."""
        return self._delivered == self._training.length

    def _had_epoch(self) -> None:
        if self._delivered and not self._windows.runs_otherwise():
            self._training.had_epoch(self._delivered)

    def _lags(self) -> bool:
        """Whether the epoch ended before its last batch was trained on, in a loop with one step for each batch."""
        return self._steps_ended - self._steps_begun == self._delivered - 1 > 0

    def _end_epoch(self, at: Optional[float]) -> None:
        self._over = True
        self._had_epoch()
        self._liveness.away()
        self._ended_at, self._steps_ended = now(), self._steps.optimizer_steps
        self._stops_after = None
        run = self._windows.run
        if isinstance(run, SteadyRun):
            run.pause(at)
            run.epoch_over()
        elif isinstance(run, EpochRun) and run.running:
            if self._trailing and self._lags():
                run.lengthen(self._trailing)
            if run.end_epoch():
                self._windows.finish(run)
        if self._windows.run is not None:
            self._windows.run.loop_left()
        self._windows.epoch_ends()

    def _pause_over(self, requested: float, *, same_epoch: bool) -> None:
        began, self._paused_at = self._paused_at, None
        if began is None:
            return
        # A loop may leave its epoch before the end, and evaluate then.
        mid_epoch = same_epoch and not self._over and self._delivered > 0
        by_mode, self._by_mode = self._by_mode, False
        trained = self._context.interruptions.ended(
            requested - began, self._training.position, self._steps.backwards, mid_epoch=mid_epoch, by_mode=by_mode
        )
        if by_mode and trained:
            began = requested
        if self._over:
            return
        if isinstance(self._windows.run, SteadyRun):
            # Evaluation begins when a step's own work is done: that step counts, the time after `began` does not.
            self._windows.run.pause(began, epoch_over=False)
        elif isinstance(self._windows.run, EpochRun):
            self._windows.run.pause(began, requested)

    def give_up_window(self, error: RuntimeError) -> bool:
        """A worker ended, and torch raised that during the guest's own work. Returns whether the loop goes on: that
        fails a window, or no window had that worker.

        Raises `TheirError` if it is a worker of the user's own setting.
        """
        run = self._windows.run
        if run is None:
            return self._windows.close_idle()
        if not run.grant.setting:
            raise TheirError(error)
        self._windows.fail(run.reason(error), mid_epoch=self._delivered > 0)
        return True

    def kill_workers(self) -> None:
        """End every process that a feed started, at once."""
        self._windows.kill_workers()


def _described(loader: Any) -> Described:
    site = construction_site(loader)
    return (loader.num_workers, "", 0) if site is None else (loader.num_workers, site.file, site.line)
