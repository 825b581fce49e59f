"""One window inside the user's loop: what all kinds of windows share, such as switching knobs, batches, and
measurements.

Times are taken at batch requests: a step lasts from one request to the next.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Tuple

import torch

from ..knobs import GuestContext, Knob, Refused, keeps_batches, registry
from ..loader.attributes import samples_told, worker_died
from ..loader.feed import READY_SECONDS, Feed, IndexStream
from ..loop.batches import batch_elements, batch_samples
from ..modes import mode_for
from ..process import held_memory
from ..process.originals import now
from ..process.surroundings import Surroundings
from ..wire.error_text import naming_line
from ..wire.messages import Grant, WindowDone
from .batch_cache import BatchCache, ReplayFeed

Ask = Callable[[Optional[WindowDone]], Grant]
"""Report the window that ended (None at first) and wait for the next grant. Does not return once it is time to end."""


class WindowFailed(Exception):
    """The window's own setting does not work here; the user's program is unharmed."""


class TheirError(Exception):
    """The user's own loading failed under the user's own setting: the user should see it; it is no failure of the
    guest."""

    def __init__(self, original: Exception) -> None:
        super().__init__(str(original))
        self.original = original


def synchroniser(device: str) -> Callable[[], None]:
    """A function that waits until the device's queue is empty; nothing to wait for on a CPU."""
    if device.startswith("cuda") and torch.cuda.is_available():
        return torch.cuda.synchronize
    if device.startswith("mps"):
        return torch.mps.synchronize
    return lambda: None


def device_memory() -> Optional[Tuple[int, int]]:
    """Peak bytes of tensors and of the allocator so far, on the device with the highest peak.

    The user may read these counters too, so they are never reset. None if no device was used.
    """
    if not torch.cuda.is_available() or not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        return None
    devices = range(torch.cuda.device_count())
    return max(map(torch.cuda.max_memory_allocated, devices)), max(map(torch.cuda.max_memory_reserved, devices))


class Run:
    """What both kinds share: knobs on and off, synchronisation, counting."""

    def __init__(self, grant: Grant, context: GuestContext, synchronise: Callable[[], None]) -> None:
        self.grant = grant
        self.context = context
        self._synchronise = synchronise
        try:
            self.mode = mode_for(grant.mode)(grant.options, context, synchronise)
        except KeyError:
            raise WindowFailed(f"this guest has no mode named {grant.mode}") from None
        self._knobs: Dict[str, Knob] = {}
        self._effect: Dict[str, bool] = {}
        self._checked = False
        self.around = Surroundings()
        self.steps = 0
        self.samples = 0.0
        self.elements = 0
        self.seconds = 0.0
        self.lead_in_steps = 0
        self.lead_in_seconds = 0.0
        self.wait_seconds = 0.0
        self.ready_batches = 0
        self.queue_change = 0
        self.epoch_overhead_seconds: Optional[float] = None
        self.epochs = 0
        self.turns = 0
        self.turns_collecting = 0.0
        self.started = now()
        self._optimizer_steps_before = context.steps.optimizer_steps
        context.steps.losses.wanted = context.steps.losses.wanted or grant.losses

    def apply(self) -> None:
        """Apply the setting's knobs. Raises `WindowFailed`."""
        known = registry()
        for name, value in self.grant.setting.items():
            knob = known.get(name)
            if knob is None:
                raise WindowFailed(f"this guest has no knob named {name}")
            self._knobs[name] = knob
            try:
                knob.apply(value, self.context)
            except Refused as refusal:
                raise WindowFailed(str(refusal)) from None
            except Exception as error:
                raise WindowFailed(reason(error)) from error
        try:
            self.mode.apply()
        except Refused as refusal:
            raise WindowFailed(str(refusal)) from None
        except Exception as error:
            raise WindowFailed(reason(error)) from error

    def revert(self) -> None:
        self.mode.revert()
        for knob in reversed(self._knobs.values()):  # Two may have put something in the place of the same.
            knob.revert(self.context)

    def before_step(self) -> None:
        for knob in self._knobs.values():
            knob.before_step(self.context)

    def loop_left(self) -> None:
        """The user's loop is left for a while: an evaluation may come, or an epoch is over."""
        for knob in self._knobs.values():
            knob.loop_left(self.context)

    def epoch_turned(self, collected: float) -> None:
        """An epoch ended and the next one began in this window; the garbage collector ran so many seconds between."""
        self.turns += 1
        self.turns_collecting += collected

    def check_effect(self) -> None:
        """At the end of lead-in: did each knob take effect?"""
        self._checked = True
        for name, knob in self._knobs.items():
            seen = knob.effect(self.grant.setting[name], self.context)
            if seen is not None:
                self._effect[name] = seen
            knob.timed_part_begins(self.context)

    def late(self, timed_seconds: float) -> bool:
        """Whether the timed part has taken so much longer than planned that it should end now. Never true with several
        ranks, which must not end at different steps."""
        most = self.grant.most_seconds
        return not self.grant.together and 0 < most < timed_seconds and self.steps % max(1, self.grant.unit) == 0

    def overdue(self) -> bool:
        """Whether the whole window took so long that it has to do as it is: where epochs are short, most of it may be
        their starts."""
        most = self.grant.most_wall_seconds
        return not self.grant.together and 0 < most < now() - self.started

    def clock(self) -> float:
        """The time now, after the device's queue is empty."""
        self._synchronise()
        return now()

    def done(self) -> WindowDone:
        """The message for the supervisor."""
        gave_up = next((knob.gave_up for knob in self._knobs.values() if knob.gave_up), "")
        if gave_up:
            return WindowDone(window=self.grant.window, status="failed", reason=gave_up)
        memory = device_memory()
        idle = [name for name, seen in self._effect.items() if not seen]
        return WindowDone(
            window=self.grant.window,
            status="no_effect" if idle else "ok",
            reason=f"{', '.join(idle)} did not take effect" if idle else "",
            steps=self.steps,
            samples=self.samples,
            elements=self.elements,
            seconds=self.seconds,
            lead_in_steps=self.lead_in_steps,
            lead_in_seconds=self.lead_in_seconds,
            wait_seconds=self.wait_seconds,
            ready_batches=self.ready_batches,
            epoch_overhead_seconds=self.epoch_overhead_seconds,
            whole_epochs=self.epochs,
            turns=self.turns,
            turns_collecting=self.turns_collecting,
            queue_change=self.queue_change,
            optimizer_steps=self.context.steps.optimizer_steps - self._optimizer_steps_before,
            effect=self._effect,
            started=self.started,
            ended=now(),
            detail=self.mode.detail(),
            device_bytes=memory and memory[0],
            device_reserved_bytes=memory and memory[1],
            peak_bytes=held_memory.peak_bytes(),
            workers_bytes=self._workers_bytes(),
            around=self.around.told(),
            stretches=self.around.stretches,
            losses=self.context.steps.losses.read(),
        )

    def _workers_bytes(self) -> Optional[int]:
        """Bytes that the window's workers have for themselves; None if that can no longer be read."""
        return 0


class FedRun(Run):
    """A run whose batches the guest serves. `feed`: one of an earlier window that goes on; else it gets its own."""

    def __init__(
        self,
        grant: Grant,
        context: GuestContext,
        synchronise: Callable[[], None],
        loader: Any,
        stream: Optional[IndexStream],
        batch_cache: BatchCache,
        epoch: Optional[int],
        feed: Optional[Feed] = None,
    ) -> None:
        super().__init__(grant, context, synchronise)
        self._batch_cache = batch_cache
        self.feed: Any
        if feed is not None:
            self.feed = feed
        elif keeps_batches(grant.setting):
            if not batch_cache.batches:
                raise WindowFailed("no batch could be kept for replay")
            if grant.epochs and epoch is None:
                raise WindowFailed("how many batches an epoch has is not known, so kept ones would come without an end")
            self.feed = ReplayFeed(batch_cache, epoch if grant.epochs else None)
        else:
            self.feed = Feed(loader, grant.setting, stream, lasting=not context.made_anew)
        self._batch_size = self.feed.samples_told if isinstance(self.feed, Feed) else samples_told(loader)
        context.feed = self.feed
        self._next: Optional[Callable[[], Any]] = None
        """What gives the next batch; None until the first one of an epoch is asked for."""
        self._timing = False
        self._led_waits: List[float] = []

    def _next_batch(self) -> Any:
        if self._next is None:
            self._next = self.feed.next
            for name, knob in self._knobs.items():
                self._next = knob.fetching(self.grant.setting[name], self._next, self.context)
        return self._next()

    def _fetch(self) -> Any:
        self.mode.fetching()
        begun = now()
        try:
            batch = self._next_batch()
            for name, knob in self._knobs.items():
                batch = knob.delivered(self.grant.setting[name], batch, self.context)
        except StopIteration:
            raise
        except Exception as error:
            if self.grant.setting:
                raise WindowFailed(self.reason(error)) from error
            raise TheirError(error) from None
        waited = now() - begun
        if self._timing:
            self.wait_seconds += waited
            self.ready_batches += waited < READY_SECONDS
            self.samples += batch_samples(batch, self._batch_size)
            self.elements += batch_elements(batch)
        else:
            self._led_waits.append(waited)
            self.context.batch = batch
        self._batch_cache.offer(batch)
        self.mode.fetched(batch)
        return batch

    def _guard(self, action: Callable[[], None]) -> None:
        try:
            action()
        except Exception as error:
            if self.grant.setting:
                raise WindowFailed(self.reason(error)) from error
            raise TheirError(error) from None

    def reason(self, error: BaseException) -> str:
        """An exception in one line. If a worker has ended, with its exit code, which torch may not know."""
        text = reason(error)
        codes = ", ".join(map(str, self.feed.exit_codes())) if worker_died(error) else ""
        return f"{text} (exit code {codes})" if codes and "exit code" not in text else text

    def _workers_bytes(self) -> Optional[int]:
        workers = self.feed.worker_pids()
        return None if workers is None else held_memory.own_bytes(workers)

    def close(self) -> None:
        self.revert()
        self.feed.close()

    def let_go(self, *, goes_on: bool) -> Optional[Feed]:
        """As `close`, but hand over the feed if its workers may go on with batches of another window. `goes_on`: the
        grant lets them, and there is nothing more to be learnt from starting them."""
        self.close()
        return None


def reason(error: BaseException) -> str:
    """An exception in one line, as Python would print its first."""
    text = str(error).strip()
    # An error in a worker comes with the worker's traceback, behind which a line names the error.
    name, line = type(error).__name__, naming_line(text) or text.partition("\n")[0].strip()
    return (line if line == name or line.startswith(f"{name}:") else f"{name}: {line}".rstrip(": "))[:2000]
