"""Serves windows at the boundaries of the user's loop: asks for a grant, runs it, reports, asks again."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace
from typing import Any, Callable, Dict, Optional, Union

import torch

from . import loader as loading
from .bare_run import BareRun
from .epoch_run import EpochRun
from .knobs import House, keeps_batches, needs_loader
from .ladder import Loop
from .liveness import Liveness
from .loader_only import loader_only
from .messages import Grant, WindowDone
from .originals import now
from .pantry import Pantry
from .steady_run import JointRun, SteadyRun
from .steps import Steps
from .window import TheirError, WindowFailed

SHORTEST_EPOCH = 4
"""Fewer batches than this are no epoch to speak of: `next(iter(loader))` makes an iterator for every step."""

SURE_BATCHES = 8
"""After so many batches in a row that another loader gave and that were trained on, that is the training one."""

Ask = Callable[[Optional[WindowDone]], Grant]
"""Report the window that ended (None at first) and wait for the next grant. Does not return once it is time to end."""


def synchroniser(device: str) -> Callable[[], None]:
    """A function that waits until the device's queue is empty; nothing to wait for on a CPU."""
    if device.startswith("cuda") and torch.cuda.is_available():
        return torch.cuda.synchronize
    if device.startswith("mps"):
        return torch.mps.synchronize
    return lambda: None


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
        self._loader = trained
        self._others: Dict[int, Any] = {}
        """Loaders like the training one that were there beside it, such as that of an evaluation, held weakly."""
        self._others_since = (-1, 0)
        """Where the training loader stood as the others began to be asked, and the optimizer steps made by then."""
        self._others_batches = 0
        self._period = loop.period
        self._ask = ask
        self._house = House(steps, device)
        self._synchronise = synchroniser(device)
        self._pantry = Pantry()
        self._length = loading.epoch_length(trained)
        self._stream = loading.IndexStream(trained._index_sampler, loading.retire(iterator, trained))
        iterator._doctor_loader = weakref.ref(trained)  # What would keep it alive is told from what does.
        self._iterator = iterator
        self._begun: Any = weakref.WeakSet([iterator])
        """Iterators over the training loader: a loop may go on with one after it looked at another."""
        self._delivered = delivered
        self._over = False
        self._requested = 0.0
        self._stops_after: Optional[int] = None
        """Batches after which the loop last went on to a new epoch without asking for one more, as trainers do that
        count them: no request ends an epoch's last step then."""
        self._run: Optional[Union[SteadyRun, EpochRun]] = None
        self._filler: Optional[loading.Feed] = None
        self._report: Optional[WindowDone] = None
        self._position = loop.record.batches if loop.record is not None else 0
        self._failure = ""
        """Why the window that several ranks run together failed here, while its steps are run to their end."""
        self._epoch_to_fill = False
        """The epoch under way still belongs to a window that failed; the next grant is asked for at its end."""
        self._companions = {
            key
            for key, record in steps.records.items()
            if record is not loop.record and record.batches >= 4 and record.credited * 2 > record.batches
        }
        self._paused_at: Optional[float] = None
        self._ended_at = 0.0
        self._steps_begun = self._steps_ended = steps.optimizer_steps
        self._trailing = 0.0
        """Seconds by which the last step of an epoch ended later than the epoch did, in loops that fetch ahead."""
        self._house.made_anew = loop.record is not None and loop.record.made_anew

    # -- which loader ------------------------------------------------------------------------------------------------

    def serves(self, loader: Any) -> bool:
        """Whether this is the training loader, also when the user makes it anew every epoch."""
        if loader is self._loader:
            return True
        known = self._steps.records.get(id(loader))
        if (known is not None and known.loader() is loader) or not self._is_alike(loader):
            return False
        other = self._others.get(id(loader))
        is_new = other is None or other() is not loader
        if not self._is_gone(thoroughly=is_new) and not self._others_train():
            self._others[id(loader)] = weakref.ref(loader)
            return False
        self._house.made_anew = True
        self._loader = loader
        self._stream = loading.IndexStream(loader._index_sampler)
        return True

    def _is_alike(self, loader: Any) -> bool:
        """Whether this loader was made by the same line, in the same way, as the training one."""
        site = loading.construction_site(loader)
        mine = self._loader
        return (
            site is not None
            and site == loading.construction_site(mine)
            and loader.batch_size == mine.batch_size
            and loader.drop_last == mine.drop_last
            and type(loader.dataset) is type(mine.dataset)
            and type(loader.sampler) is type(mine.sampler)
            and loading.epoch_length(loader) == self._length
        )

    def _others_train(self) -> bool:
        """Whether it is such loaders that are trained on by now, in place of one that somebody keeps."""
        if self._others_since[0] != self._position:
            self._others_since = (self._position, self._steps.optimizer_steps)
            self._others_batches = 0
        self._others_batches += 1
        steps = self._steps.optimizer_steps - self._others_since[1]
        return self._others_batches > SURE_BATCHES and steps * self._period >= self._others_batches - 2 * self._period

    def _is_gone(self, *, thoroughly: bool) -> bool:
        """Whether nobody but this server holds the training loader any more. A loader that is made anew takes the place
        of one that is gone; one that is there beside it is that of an evaluation. `thoroughly`: also of what holds
        itself."""
        reference = weakref.ref(self._loader)
        self._loader = None
        if thoroughly and reference() is not None:
            gc.collect()
        self._loader = reference()
        return self._loader is None

    def shell(self, loader: Any) -> Optional[Any]:
        """An iterator without workers for the user to hold, where this is the training loader."""
        known = loader is self._loader
        # Who iterates without gradients evaluates, on the training data perhaps: with iterators of their own.
        if torch.is_grad_enabled() and self.serves(loader):
            return loading.shell(loader, again=known and loader.persistent_workers)
        self.foreign_request(loader)  # Its workers may take a while to start.
        self._house.pauses.foreign(now())
        return None

    def foreign_request(self, loader: Any) -> None:
        """Another loader begins or is asked for a batch: unless it trains alongside, the loop is evaluating."""
        if id(loader) not in self._companions and self._paused_at is None:
            self._paused_at = now()
            self._liveness.away()
            if self._run is not None:
                self._run.mode.interrupted(self._paused_at)

    def foreign_answered(self) -> None:
        """The other loader gave its batch, or came to its end."""
        self._house.pauses.foreign(now())

    # -- requests ----------------------------------------------------------------------------------------------------

    def request(self, iterator: Any) -> Any:
        """The user asks for the next training batch. Raises `StopIteration` where the user's epoch ends."""
        requested = now()
        self._liveness.step()
        self._pause_over(requested)
        if iterator is not self._iterator and iterator._num_yielded:
            # The loop goes on where it was before it looked at another, or takes from two in turn.
            if iterator not in self._begun:  # That is from before it was found.
                loading.retire(iterator, self._loader)
                self._begun.add(iterator)
            self._iterator, self._delivered, self._over = iterator, iterator._num_yielded, False
        elif iterator is not self._iterator or (iterator._num_yielded == 0 and self._delivered):
            self._begin_epoch(iterator)
        if self._over:
            raise StopIteration
        run = self._run
        if isinstance(run, SteadyRun) and run.step_ended():
            self._finish(run)
        self._requested = requested
        as_written = self._runs_as_written()
        if self._stops_after is not None:
            self._near_the_end()
        if self._length is not None and self._delivered >= self._length and not self._epoch_is_measured():
            self._stream.epoch_over()
            self._end_epoch(None)
            self._house.pauses.began(requested, now(), as_written)
            raise StopIteration
        while True:
            try:
                batch = self._take()
                break
            except StopIteration:
                self._end_epoch(requested)
                self._house.pauses.began(requested, now(), as_written)
                raise
            except WindowFailed as failure:
                self._fail(str(failure))
        if self._delivered == 0:
            # Persistent workers are not started anew in a steady run, as they would be by the user.
            restarted = isinstance(run, EpochRun) or (run is not None and not run.feed.persistent)
            trained = self._steps.optimizer_ended_at
            self._house.pauses.ended(requested, now(), as_written and self._run is run and restarted, trained)
        self._delivered += 1
        self._position += 1
        iterator._num_yielded += 1
        if self._delivered == self._stops_after:
            delivered = now()
            self._house.pauses.began(delivered, delivered, as_written)
            self._liveness.away()
        return batch

    def _near_the_end(self) -> None:
        """Leave the last batch of an epoch untimed, where the loop will not tell when it is done with it."""
        if self._delivered == self._stops_after:  # But it asks for more.
            self._stops_after = None
            self._house.pauses.began(0.0, 0.0, False)
        elif self._delivered + 1 == self._stops_after and isinstance(self._run, SteadyRun):
            self._run.hold()

    def _runs_as_written(self) -> bool:
        return self._run is not None and not self._run.grant.setting

    def _epoch_is_measured(self) -> bool:
        return isinstance(self._run, EpochRun) and self._run.running

    def _begin_epoch(self, iterator: Any) -> None:
        run = self._run
        made = self._steps.optimizer_steps
        if self._over and self._lags():
            self._trailing = self._steps.optimizer_ended_at - self._ended_at if made == self._steps_ended + 1 else 0.0
        self._steps_begun = made
        if not self._over:
            # The user left the last epoch early; its end can't be seen, so the pause after it counts. The first time
            # that this happens at a certain batch, its step ends with the optimizer's; from then on it isn't timed.
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
                self._finish(run)
        loading.retire(iterator, self._loader)
        self._begun.add(iterator)
        self._iterator = iterator
        self._delivered = 0
        self._over = False
        self._epoch_to_fill = False
        self._close_filler()

    def _lags(self) -> bool:
        """Whether the epoch that is over ended before its last batch was trained on, each of them in a step."""
        return self._steps_ended - self._steps_begun == self._delivered - 1 > 0

    def _end_epoch(self, at: Optional[float]) -> None:
        self._over = True
        self._liveness.away()
        self._ended_at, self._steps_ended = now(), self._steps.optimizer_steps
        self._stops_after = None
        run = self._run
        if isinstance(run, SteadyRun):
            run.pause(at)
            run.epoch_over()
        elif isinstance(run, EpochRun) and run.running:
            if self._trailing and self._lags():
                run.lengthen(self._trailing)
            if run.end_epoch():
                self._finish(run)
        self._close_filler()

    def _pause_over(self, requested: float) -> None:
        began, self._paused_at = self._paused_at, None
        if began is None or self._over:
            return
        if isinstance(self._run, SteadyRun):
            # Evaluation begins when a step's own work is done: that step counts, the time after `began` does not.
            self._run.pause(began, epoch_over=False)
        elif isinstance(self._run, EpochRun):
            self._run.pause(began, requested)

    def _take(self) -> Any:
        if self._epoch_to_fill:
            return self._fill()
        while self._run is None:
            self._start(self._ask_next())
        run = self._run
        if isinstance(run, SteadyRun):
            return run.take()
        if not run.running:
            if self._delivered:
                return self._fill()
            run.begin_epoch()
        return run.take()

    def _fill(self) -> Any:
        """A batch to get to the end of the epoch with, under the user's own setting."""
        if self._filler is None:
            self._filler = loading.Feed(self._loader, {}, self._stream)
            self._filler.open()
        try:
            batch = self._filler.next()
        except StopIteration:
            raise
        except Exception as error:
            raise TheirError(error) from None
        self._pantry.offer(batch)
        return batch

    def _close_filler(self) -> None:
        filler, self._filler = self._filler, None
        if filler is not None:
            filler.close()

    # -- windows -----------------------------------------------------------------------------------------------------

    def _ask_next(self) -> Grant:
        report, self._report = self._report, None
        if report is not None:
            report = replace(report, position=self._position)
        return self._ask(report)

    def _start(self, grant: Grant) -> None:
        try:
            if keeps_batches(grant.setting) and not self._pantry.batches:
                self._stock()
            if grant.mode == "loader_only":
                self._report = loader_only(
                    grant, self._house, self._loader, self._stream, self._pantry, self._liveness.step
                )
                return
            self._run = self._made(grant)
            self._run.apply()
        except WindowFailed as failure:
            self._fail(str(failure), grant)

    def _made(self, grant: Grant) -> Union[SteadyRun, EpochRun]:
        kind = EpochRun if grant.epochs else JointRun if grant.together else SteadyRun
        stream = None if grant.epochs else self._stream
        return kind(grant, self._house, self._synchronise, self._loader, stream, self._pantry, self._length)

    def _stock(self) -> None:
        """Put a few batches by for replay."""
        feed = loading.Feed(self._loader, loading.IN_THIS_PROCESS, self._stream)
        feed.open()
        begun = now()
        try:
            while len(self._pantry.batches) < 8 and now() - begun < 5.0:
                self._pantry.offer(feed.next())
        except StopIteration:
            pass

    def _finish(self, run: Union[SteadyRun, EpochRun]) -> None:
        self._report = run.done()
        if self._failure:
            self._report = WindowDone(window=run.grant.window, status="failed", reason=self._failure)
            self._failure = ""
        run.close()
        self._run = None

    def _fail(self, reason: str, grant: Optional[Grant] = None) -> None:
        run, self._run = self._run, None
        failed = run.grant if run is not None else grant
        if run is not None:
            run.close()
        if failed is None:
            return
        self._report = WindowDone(window=failed.window, status="failed", reason=reason)
        if failed.together and failed.mode != "loader_only":
            self._run_out(failed, run, reason)

    def give_up_window(self, error: RuntimeError) -> bool:
        """A worker is gone, and torch said so amid the guest's own work: whether that fails a window of ours.

        Raises `TheirError` where it is a worker of the user's own setting.
        """
        if self._run is None:
            return False
        if not self._run.grant.setting:
            raise TheirError(error)
        self._fail(self._run.reason(error))
        return True

    def _run_out(self, grant: Grant, run: Optional[Union[SteadyRun, EpochRun]], reason: str) -> None:
        """The other ranks run the window to its end, so its steps are run here too, as the user wrote them."""
        rest = replace(grant, setting={}, mode="timed", options={}, lead_in=0)
        if grant.epochs:
            rest = replace(rest, epochs=grant.lead_in + grant.epochs)
            if isinstance(run, EpochRun):
                rest = replace(rest, epochs=run.epochs_left())
                if run.running and self._delivered:
                    self._epoch_to_fill = True
                    rest = replace(rest, epochs=rest.epochs - 1)
            if rest.epochs == 0:
                return
        else:
            left = run.left if isinstance(run, JointRun) else grant.lead_in + grant.steps
            rest = replace(rest, steps=left)
        self._report = None
        self._failure = reason
        self._run = self._made(rest)

    def kill_workers(self) -> None:
        """End every process that a feed started, at once."""
        if self._run is not None:
            self._run.feed.kill()
        if self._filler is not None:
            self._filler.kill()


class BareServer:
    """Serves a loop that no loader feeds, behind the optimizer's steps or, by its `rung`, behind backward passes."""

    def __init__(self, steps: Steps, rung: str, ask: Ask, device: str, liveness: Liveness) -> None:
        self.rung = rung
        self._liveness = liveness
        self._house = House(steps, device)
        self._synchronise = synchroniser(device)
        self._ask = ask
        self._run: Optional[BareRun] = None
        self._position = steps.bare_position(rung)
        self._failure = ""

    def step_ended(self) -> None:
        """A step of the user's loop is done."""
        self._liveness.step()
        report: Optional[WindowDone] = None
        self._position += self._run is not None
        if self._run is not None:
            if not self._run.step_ended():
                return
            report = replace(self._run.done(), position=self._position)
            if self._failure:
                report = replace(report, status="failed", reason=self._failure, steps=0)
                self._failure = ""
            self._run.revert()
            self._run = None
        while self._run is None:
            grant = self._ask(report)
            try:
                if grant.mode == "loader_only" or grant.epochs or needs_loader(grant.setting):
                    raise WindowFailed("this loop takes no batches from a DataLoader")
                run = BareRun(grant, self._house, self._synchronise)
                try:
                    run.apply()
                except WindowFailed:
                    run.revert()  # What of the setting was applied before.
                    raise
                self._run = run
            except WindowFailed as failure:
                if grant.together and grant.mode != "loader_only" and not grant.epochs:
                    # The other ranks may run it, so its steps are run here too.
                    self._failure = str(failure)
                    rest = replace(grant, setting={}, mode="timed", options={})
                    self._run = BareRun(rest, self._house, self._synchronise)
                    continue
                report = WindowDone(window=grant.window, status="failed", reason=str(failure), position=self._position)

    def kill_workers(self) -> None:
        """No workers here."""
