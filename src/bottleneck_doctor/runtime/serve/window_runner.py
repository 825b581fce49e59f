"""Runs windows one after another, from grant to report, and serves the batches between them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Callable, Dict, Optional, Tuple, Union

from ..knobs import GuestContext, keeps_batches, of_loader
from ..loader.feed import Feed
from ..loader.iterators import ahead
from ..loader.shadow import IN_THIS_PROCESS
from ..process.originals import now
from ..wire.messages import Grant, WindowDone
from .batch_cache import BatchCache
from .epoch_run import EpochRun
from .loader_only import loader_only
from .steady_run import JointRun, SteadyRun
from .training_loader import TrainingLoader
from .window import Ask, TheirError, WindowFailed

STOCK = 8
"""Batches that are kept for replay, unless that takes longer than `STOCK_SECONDS`."""
STOCK_SECONDS = 5.0
_KNOWN = 2
"""So many starts of workers are seen before they go on in other windows, or one of which it is known what it costs. If
steps are slow, lead-ins are too short to tell."""


class WindowRunner:
    """Runs the windows that are granted, on the batches of the training loader.

    `run` is the current window, None between two. `took` is called for each batch of a window that only loads.
    """

    def __init__(
        self,
        training: TrainingLoader,
        context: GuestContext,
        synchronise: Callable[[], None],
        ask: Ask,
        took: Callable[[], None],
    ) -> None:
        self.run: Optional[Union[SteadyRun, EpochRun]] = None
        self._training = training
        self._context = context
        self._synchronise = synchronise
        self._ask = ask
        self._took = took
        self._batch_cache = BatchCache()
        self._filler: Optional[Feed] = None
        self._report: Optional[WindowDone] = None
        self._failure = ""
        """Why a window of several ranks failed in this one, while its remaining steps are still run."""
        self._idle: Optional[Tuple[Any, Feed]] = None
        """A feed between two windows, and what it was made for. Its workers go on if the next window loads in the same
        way: to start them anew may take longer than the window."""
        self._starts: Dict[Any, int] = {}
        """How well is known what starting the workers of a feed costs, by what it was made for: `_KNOWN` is enough."""
        self._epoch_to_fill = False
        """The current epoch still belongs to a failed window; the next grant is requested at its end."""

    def runs_as_written(self) -> bool:
        """Whether the current window runs the user's own setting."""
        return self.run is not None and not self.run.grant.setting

    def runs_otherwise(self) -> bool:
        """Whether the current epoch is measured as a whole under a setting, which may make it shorter or longer."""
        return self.measures_epoch() and not self.runs_as_written()

    def measures_epoch(self) -> bool:
        """Whether the current epoch is measured as a whole."""
        return isinstance(self.run, EpochRun) and self.run.running

    def take(self, *, mid_epoch: bool) -> Any:
        """The next batch for the user. If there is no current window, one is requested. `mid_epoch`: the user's epoch
        has already given a batch. Raises `StopIteration`, `WindowFailed` and `TheirError`."""
        if self._epoch_to_fill:
            return self._fill()
        while self.run is None:
            self._start(self._ask_next())
        run = self.run
        if isinstance(run, SteadyRun):
            return run.take()
        if not run.running:
            if mid_epoch:
                return self._fill()
            run.begin_epoch()
        return run.take()

    def epoch_begins(self) -> None:
        """The user's loop begins an epoch."""
        self._epoch_to_fill = False
        self._close_filler()
        self._epoch_of_idle_over()

    def epoch_ends(self) -> None:
        """The user's epoch is over."""
        self._close_filler()
        self._epoch_of_idle_over()

    def finish(self, run: Union[SteadyRun, EpochRun]) -> None:
        """The window is complete: keep its report until the next grant is requested."""
        self._report = run.done()
        if self._failure:
            self._report = WindowDone(window=run.grant.window, status="failed", reason=self._failure)
            self._failure = ""
        made_for = self._made_for(run.grant)
        if isinstance(run, SteadyRun) and run.starts_loading:
            seen = _KNOWN if self._report.epoch_overhead_seconds is not None else 1
            self._starts[made_for[1:]] = self._starts.get(made_for[1:], 0) + seen
        feed = run.let_go(goes_on=_goes_on(run.feed, run.grant) and self._starts.get(made_for[1:], 0) >= _KNOWN)
        self._idle = None if feed is None else (made_for, feed)
        self.run = None

    def fail(self, reason: str, *, mid_epoch: bool, grant: Optional[Grant] = None) -> None:
        """The current window failed, or the one of `grant`, which could not begin."""
        run, self.run = self.run, None
        failed = run.grant if run is not None else grant
        if run is not None:
            run.close()
        if failed is None:
            return
        self._report = WindowDone(window=failed.window, status="failed", reason=reason)
        if failed.together and failed.mode != "loader_only":
            self._run_out(failed, run, reason, mid_epoch=mid_epoch)

    def kill_workers(self) -> None:
        """End every process that a feed started, at once."""
        if self.run is not None:
            self.run.feed.kill()
        if self._filler is not None:
            self._filler.kill()
        if self._idle is not None:
            self._idle[1].kill()

    def close_idle(self) -> bool:
        """End the workers that wait for another window. Returns whether there were any."""
        idle, self._idle = self._idle, None
        if idle is not None:
            idle[1].close()
        return idle is not None

    def _ask_next(self) -> Grant:
        report, self._report = self._report, None
        if report is not None:
            training = self._training
            # What workers hold that go on is trained on next.
            kept = 0 if self._idle is None else ahead(self._idle[1].iterator)
            report = replace(
                report,
                position=training.position,
                ahead=max(0, training.ahead - kept),
                epoch_batches=training.epoch_batches,
                pauses=self._context.pauses_so_far(),
            )
        return self._ask(report)

    def _epoch_of_idle_over(self) -> None:
        if self._idle is not None and not self._idle[1].persistent:
            self.close_idle()

    def _made_for(self, grant: Grant) -> Tuple[Any, ...]:
        """What the feed of a window depends on, the loader first: equal for two windows that load in the same way."""
        return id(self._training.loader), self._context.made_anew, of_loader(grant.setting)

    def _start(self, grant: Grant) -> None:
        training = self._training
        idle = self._idle
        if idle is not None and not (_goes_on(idle[1], grant) and idle[0] == self._made_for(grant)):
            self.close_idle()
        try:
            if keeps_batches(grant.setting) and not self._batch_cache.batches:
                self._stock()
            if grant.mode == "loader_only":
                self._report = loader_only(
                    grant, self._context, training.loader, training.stream, self._batch_cache, self._took
                )
                return
            self.run = self._made(grant)
            self.run.apply()
        except WindowFailed as failure:
            self.fail(str(failure), mid_epoch=False, grant=grant)

    def _made(self, grant: Grant) -> Union[SteadyRun, EpochRun]:
        kind = EpochRun if grant.epochs else JointRun if grant.together else SteadyRun
        training = self._training
        stream = None if grant.epochs else training.stream
        idle, self._idle = self._idle, None
        feed = None if idle is None else idle[1]
        return kind(
            grant,
            self._context,
            self._synchronise,
            training.loader,
            stream,
            self._batch_cache,
            training.length or training.epoch_batches,
            feed=feed,
        )

    def _run_out(
        self, grant: Grant, run: Optional[Union[SteadyRun, EpochRun]], reason: str, *, mid_epoch: bool
    ) -> None:
        """The other ranks run the window to its end, so its steps are run here too, as the user wrote them."""
        rest = replace(grant, setting={}, mode="timed", options={}, lead_in=0, skipped=0)
        if grant.epochs:
            rest = replace(rest, epochs=grant.lead_in + grant.epochs)
            if isinstance(run, EpochRun):
                rest = replace(rest, epochs=run.epochs_left())
                if run.running and mid_epoch:
                    self._epoch_to_fill = True
                    rest = replace(rest, epochs=rest.epochs - 1)
            if rest.epochs == 0:
                return
        else:
            left = run.left if isinstance(run, JointRun) else grant.all_steps
            rest = replace(rest, steps=left)
        self._report = None
        self._failure = reason
        self.run = self._made(rest)

    def _fill(self) -> Any:
        """A batch under the user's own setting, to reach the end of the epoch."""
        if self._filler is None:
            self._filler = Feed(self._training.loader, {}, self._training.stream)
            self._filler.open()
        try:
            batch = self._filler.next()
        except StopIteration:
            raise
        except Exception as error:
            raise TheirError(error) from None
        self._batch_cache.offer(batch)
        return batch

    def _close_filler(self) -> None:
        filler, self._filler = self._filler, None
        if filler is not None:
            filler.close()

    def _stock(self) -> None:
        """Keep a few batches for replay."""
        feed = Feed(self._training.loader, IN_THIS_PROCESS, self._training.stream)
        feed.open()
        begun = now()
        try:
            while len(self._batch_cache.batches) < STOCK and now() - begun < STOCK_SECONDS:
                self._batch_cache.offer(feed.next())
        except StopIteration:
            pass


def _goes_on(feed: Any, grant: Grant) -> bool:
    """Whether a feed may come from an earlier window, or go on in a later one. A mode that explains has its own."""
    if not grant.keeps_workers or grant.mode != "timed" or grant.epochs or grant.together:
        return False
    return bool(grant.keeps_iterables if feed.iterable else feed.endless and feed.workers)
