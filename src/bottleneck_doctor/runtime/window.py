"""One window inside the user's loop: lead-in, timed part, and what was measured.

Two kinds. A `SteadyRun` times a run of steps once the loader's queue has settled, and measures apart what starting an
epoch costs (`turn`). An `EpochRun` times whole epochs from the making of the iterator to the end of its workers, which
is the truth itself where epochs are short. Times are taken at batch requests: a step lasts from one request to the
next.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Tuple

import torch

from .knobs import House, Knob, registry
from .loader import Feed, IndexStream, batch_size, worker_died
from .messages import Grant, WindowDone
from .modes import Refused, mode_for
from .originals import now
from .pantry import Pantry, ReplayFeed
from .steps import batch_samples
from .turn import LeadIn, epoch_turn, queue_tolerance

READY_SECONDS = 0.0005
"""A batch that comes faster than this lay ready: taking one over from another process costs 0.1 to 0.3 ms."""
MOST_EXTENSIONS = 2
LEAST_LEAD_IN = 3
"""Steps that a lead-in holds at least, unless fewer were granted."""


class WindowFailed(Exception):
    """The window's own setting does not work here; the user's program is unharmed."""


class TheirError(Exception):
    """The user's own loading failed under the user's own setting: theirs to see, and not a failure of the guest."""

    def __init__(self, original: Exception) -> None:
        super().__init__(str(original))
        self.original = original


def device_memory() -> Optional[Tuple[int, int]]:
    """Bytes that tensors have had and that the allocator has held at most so far, on the device with the most of them.

    The counters are the user's as well, so they are read and never reset. None where no device was used.
    """
    if not torch.cuda.is_available() or not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        return None
    devices = range(torch.cuda.device_count())
    return max(map(torch.cuda.max_memory_allocated, devices)), max(map(torch.cuda.max_memory_reserved, devices))


class Run:
    """What both kinds share: knobs on and off, synchronisation, counting."""

    def __init__(self, grant: Grant, house: House, synchronise: Callable[[], None]) -> None:
        self.grant = grant
        self.house = house
        self._synchronise = synchronise
        try:
            self.mode = mode_for(grant.mode)(grant.options, house, synchronise)
        except KeyError:
            raise WindowFailed(f"this guest has no mode named {grant.mode}") from None
        self._knobs: Dict[str, Knob] = {}
        self._effect: Dict[str, bool] = {}
        self._checked = False
        self.steps = 0
        self.samples = 0.0
        self.seconds = 0.0
        self.lead_in_steps = 0
        self.lead_in_seconds = 0.0
        self.wait_seconds = 0.0
        self.ready_batches = 0
        self.queue_change = 0
        self.turn_seconds: Optional[float] = None
        self.epochs = 0
        self.started = now()
        self._optimizer_steps_before = house.steps.optimizer_steps

    def apply(self) -> None:
        """Put the setting's knobs on. Raises `WindowFailed`."""
        known = registry()
        for name, value in self.grant.setting.items():
            knob = known.get(name)
            if knob is None:
                raise WindowFailed(f"this guest has no knob named {name}")
            self._knobs[name] = knob
            try:
                knob.apply(value, self.house)
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
        for knob in self._knobs.values():
            knob.revert(self.house)

    def before_step(self) -> None:
        for knob in self._knobs.values():
            knob.before_step(self.house)

    def check_effect(self) -> None:
        """At the end of lead-in: did each knob take effect?"""
        self._checked = True
        for name, knob in self._knobs.items():
            seen = knob.effect(self.grant.setting[name], self.house)
            if seen is not None:
                self._effect[name] = seen
            knob.timed_part_begins(self.house)

    def late(self, timed_seconds: float) -> bool:
        """Whether the timed part took so much longer than it was planned for that it has to do as it is. Not of several
        ranks, which must not end at different steps."""
        most = self.grant.most_seconds
        return not self.grant.together and 0 < most < timed_seconds and self.steps % max(1, self.grant.unit) == 0

    def clock(self) -> float:
        """Now, with the device's queue empty."""
        self._synchronise()
        return now()

    def done(self) -> WindowDone:
        """The message for the supervisor."""
        memory = device_memory()
        idle = [name for name, seen in self._effect.items() if not seen]
        return WindowDone(
            window=self.grant.window,
            status="no_effect" if idle else "ok",
            reason=f"{', '.join(idle)} did not take effect" if idle else "",
            steps=self.steps,
            samples=self.samples,
            seconds=self.seconds,
            lead_in_steps=self.lead_in_steps,
            lead_in_seconds=self.lead_in_seconds,
            wait_seconds=self.wait_seconds,
            ready_batches=self.ready_batches,
            turn_seconds=self.turn_seconds,
            whole_epochs=self.epochs,
            queue_change=self.queue_change,
            optimizer_steps=self.house.steps.optimizer_steps - self._optimizer_steps_before,
            effect=self._effect,
            started=self.started,
            ended=now(),
            detail=self.mode.detail(),
            device_bytes=memory and memory[0],
            device_reserved_bytes=memory and memory[1],
        )


class FedRun(Run):
    """A run whose batches the guest serves."""

    def __init__(
        self,
        grant: Grant,
        house: House,
        synchronise: Callable[[], None],
        loader: Any,
        stream: Optional[IndexStream],
        pantry: Pantry,
        epoch: Optional[int],
    ) -> None:
        super().__init__(grant, house, synchronise)
        self._pantry = pantry
        self._batch_size = batch_size(loader)
        self.feed: Any
        if grant.setting.get("replay"):
            if not pantry.batches:
                raise WindowFailed("no batch could be kept for replay")
            self.feed = ReplayFeed(pantry, epoch if grant.epochs else None)
        else:
            self.feed = Feed(loader, grant.setting, stream, lasting=not house.made_anew)
        house.feed = self.feed
        self._timing = False
        self._led_waits: List[float] = []

    def _fetch(self) -> Any:
        self.mode.fetching()
        begun = now()
        try:
            batch = self.feed.next()
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
        else:
            self._led_waits.append(waited)
            self.house.batch = batch
        self._pantry.offer(batch)
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
        """An exception in one line, and where a worker is gone, by what code it ended: torch may not know."""
        text = reason(error)
        codes = ", ".join(map(str, self.feed.exit_codes())) if worker_died(error) else ""
        return f"{text} (exit code {codes})" if codes and "exit code" not in text else text

    def close(self) -> None:
        self.revert()
        self.feed.close()


class SteadyRun(FedRun):
    """`lead_in` steps, then `steps` timed ones; a pause (evaluation, end of an epoch) is left out and led in again."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._open = False
        self._asked = False
        self._lead_in = self._lead_left = self.grant.lead_in
        self._led = 0
        self._led_since = 0.0
        """When the first step of the lead-in was over. Workers start in it, kernels are picked and graphs compiled."""
        self._target = self.grant.steps
        self._segment_began = 0.0
        self._opened = 0.0
        self._queue_before = 0
        self._extensions = 0
        self._segments = 0
        self._broken = False
        self._held = False
        self._opening = 0.0
        self._led_without_pause = True
        self._first_lead: Optional[LeadIn] = None

    def step_ended(self) -> bool:
        """The user asks for the next batch. True once the window is complete."""
        self.before_step()
        self.mode.step_ended()
        if not self._timing and self.steps >= self._target:
            self._finish()
            return True
        if not self._asked:
            return False
        self._asked = False
        if not self._timing:
            self.lead_in_steps += 1
            self._led += 1
            self._lead_left -= 1
            self._cut_lead_in()
            return False
        self.steps += 1
        late = self.late(self.seconds + now() - self._segment_began)
        if self.steps < self._target and not late:
            return False
        ended = self.clock()
        change = self.feed.ready() - self._queue_before
        settled = abs(change) <= queue_tolerance(self.steps)
        if not settled and self._extensions < MOST_EXTENSIONS and not self._broken and not late:
            self._extensions += 1
            self._target += self.grant.steps
            return False
        self.seconds += ended - self._segment_began
        self.mode.suspend()
        self.queue_change = 0 if self._broken else change
        self._finish()
        return True

    def _cut_lead_in(self) -> None:
        """End a lead-in that takes far longer than planned: at so slow a pace the timed part tells enough, and whatever
        is in the queue by then is corrected for, as ever. Each worker has given a batch by then."""
        if self._led == 1:
            self._led_since = now()
            return
        most = self.grant.most_lead_in_seconds
        enough = self._led >= max(LEAST_LEAD_IN, self.feed.workers)
        if enough and self._lead_left > 0 and 0 < most < now() - self._led_since:
            self._lead_left = 0
            self._led_without_pause = False  # Too few waits to tell what starting an epoch costs.

    def _finish(self) -> None:
        self._timing = False
        lead = self._first_lead
        if lead is not None and (self._segments == 1 or lead.waits):
            self.turn_seconds = epoch_turn(
                lead, steps=self.steps, seconds=self.seconds, waited=self.wait_seconds, queue_change=self.queue_change
            )

    def take(self) -> Any:
        """The next batch for the user."""
        if not self._open:
            if not self.feed.persistent:
                self._opened = self.clock()  # Starting workers is what starting an epoch costs.
            self._guard(self.feed.open_warm)
            if self.feed.persistent:
                self._opened = self.clock()
            self._guard(self.feed.restart)
            self._opening = now() - self._opened
            self._led_waits.clear()
            self._led_without_pause = True
            self._open = True
        if not self._timing and self._lead_left <= 0:
            self._begin_timing()
        batch = self._fetch()
        self._asked = True
        return batch

    def _begin_timing(self) -> None:
        self.check_effect()
        self.mode.resume()
        self._segment_began = self.clock()
        if self._segments == 0:
            self.lead_in_seconds = self._segment_began - self._opened
            if self._led_without_pause:
                self._first_lead = LeadIn(
                    self.lead_in_seconds, self._opening, tuple(self._led_waits), self.feed.workers
                )
        self._segments += 1
        self._queue_before = self.feed.ready()
        self._timing = True

    def pause(self, at: Optional[float] = None, *, epoch_over: bool = True) -> None:
        """The user's loop stops training for a while (since `at`): what was timed is kept, then lead in again.

        In the middle of an epoch the loader goes on behind the user's back, as the user's own would: what it has ready
        by then is behind the lead-in.
        """
        if self._timing:
            self._stop_timing(self.clock() if at is None else at)
        elif self._led + self._asked and not self._held:
            # The lead-in outlasts what the user runs at a stretch: half of that has to do, or nothing is ever timed.
            self._lead_in = min(self._lead_in, (self._led + self._asked) // 2)
        self._led_without_pause = False
        if epoch_over and self._open and not self.feed.persistent:
            self.feed.close()
            self._open = False
        self._lead_left = self._lead_in
        self._led = 0
        self._asked = False
        self._held = False

    def hold(self) -> None:
        """The batch now asked for is served but not timed: nobody will see when its step is done."""
        if self._timing:
            self._stop_timing(self.clock())
            self._lead_left = max(1, self._lead_in)
            self._held = True

    def _stop_timing(self, at: float) -> None:
        self.seconds += at - self._segment_began
        self.mode.interrupted(at)
        self.mode.suspend()
        self.steps += self._asked
        self._timing = False
        self._broken = True

    def epoch_over(self) -> None:
        """The user's epoch is over: workers that persist begin their next one, where they don't just go on."""
        if self.feed.persistent and not self.feed.endless:
            self._open = False


class JointRun(SteadyRun):
    """A steady run of several ranks: it ends after exactly as many batches as were granted, on every rank.

    One that went on for longer, because its queue had changed or it alone evaluated, would leave the others waiting in
    a collective of a step that they were not granted. So a pause eats into the timed part, and nothing lengthens it.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.left = self.grant.lead_in + self.grant.steps

    def take(self) -> Any:
        batch = super().take()
        self.left -= 1
        return batch

    def step_ended(self) -> bool:
        self.before_step()
        self.mode.step_ended()
        if self._asked:
            self._asked = False
            if self._timing:
                self.steps += 1
            else:
                self.lead_in_steps += 1
                self._led += 1
                self._lead_left -= 1
        if self.left > 0:
            return False
        if self._timing:
            change = self.feed.ready() - self._queue_before
            self._stop_timing(self.clock())
            self.queue_change = 0 if self._segments > 1 else change
        if self.steps:
            self._finish()
        return True

    def pause(self, at: Optional[float] = None, *, epoch_over: bool = True) -> None:
        super().pause(at, epoch_over=epoch_over)
        self._lead_left = min(self._lead_left, self.left // 2)


class EpochRun(FedRun):
    """`lead_in` whole epochs, then `epochs` timed ones, each with its own start and end of the loader."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._lead_left = self.grant.lead_in
        self._began: Optional[float] = None
        self._pauses: List[Tuple[float, float]] = []
        self._steps_in_epoch = 0

    @property
    def running(self) -> bool:
        """Whether an epoch of this window is under way."""
        return self._began is not None

    def epochs_left(self) -> int:
        """Epochs that this window still takes, one that is under way included."""
        return max(0, self._lead_left) + self.grant.epochs - self.epochs

    def begin_epoch(self) -> None:
        """The user starts an epoch."""
        self._synchronise()
        self._began = now()
        self._pauses.clear()
        self._steps_in_epoch = 0
        self._timing = self._lead_left <= 0
        if self._timing:
            self.mode.resume()
        self._guard(self.feed.open)

    def take(self) -> Any:
        self.before_step()
        if self._steps_in_epoch:
            self.mode.step_ended()
        batch = self._fetch()
        self._steps_in_epoch += 1
        if self._steps_in_epoch == 1:
            self.house.batch = batch
        elif not self._checked:
            self.check_effect()
        return batch

    def pause(self, began: float, ended: float) -> None:
        self._pauses.append((began, ended))
        if self._timing:
            self.mode.suspend()
            self.mode.resume()

    def lengthen(self, seconds: float) -> None:
        """The epoch takes so much longer than until it ends: the step on its last batch is still to come."""
        if self._began is not None:
            self._began -= seconds

    def end_epoch(self, at: Optional[float] = None) -> bool:
        """The epoch is over (its workers too), since `at` where the user went on without asking for more. True once the
        window is complete."""
        if self._began is None:
            return False
        self.before_step()
        if not self._checked:
            self.check_effect()
        # What a device still has to do by then, nobody has seen.
        end = self.clock() if at is None or not self.house.device.startswith("cpu") else at
        seconds = end - self._began - sum(ended - began for began, ended in self._pauses if began < end)
        self._began = None
        if self._timing:
            self.mode.suspend()
            self.seconds += seconds
            self.steps += self._steps_in_epoch
            self.epochs += 1
            self._timing = False
            late = not self.grant.together and 0 < self.grant.most_seconds < self.seconds
            return late or self.epochs >= self.grant.epochs
        self._lead_left -= 1
        self.lead_in_steps += self._steps_in_epoch
        self.lead_in_seconds += seconds
        return False


class BareRun(Run):
    """A window in a loop that no loader feeds: steps are counted at the optimizer, or at backward passes."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._lead_left = self.grant.lead_in
        self._timing = False
        self._began = 0.0
        self._left = self.grant.lead_in + self.grant.steps

    def step_ended(self) -> bool:
        """A step is done. True once the window is complete."""
        self.before_step()
        self.mode.step_ended()
        self._left -= 1
        if not self._timing:
            self.lead_in_steps += 1
            self._lead_left -= 1
            if self._lead_left <= 0:
                self.check_effect()
                self._timing = True
                self.mode.resume()
                self._began = self.clock()
                self.lead_in_seconds = self._began - self.started
            return self.grant.together and self._left <= 0
        self.steps += 1
        self.samples += 1.0
        late = self.late(now() - self._began)
        if self._left > 0 if self.grant.together else self.steps < self.grant.steps and not late:
            return False
        self.seconds = self.clock() - self._began
        self.mode.suspend()
        return True


def loader_only(
    grant: Grant, house: House, loader: Any, stream: IndexStream, pantry: Pantry, took: Callable[[], None]
) -> WindowDone:
    """Take batches and drop them: how fast could loading be if computing were free. `took`: called after each."""
    run = FedRun(grant, house, lambda: None, loader, stream, pantry, None)
    feed = run.feed
    samples = 0.0
    try:
        feed.open()

        def take() -> Any:
            try:
                batch = feed.next()
            except StopIteration:
                feed.close()
                feed.open()
                batch = feed.next()
            took()
            return batch

        for _ in range(grant.lead_in):
            pantry.offer(take())
        began = now()
        for _ in range(grant.steps):
            samples += batch_samples(take(), batch_size(loader))
        ended = now()
        effect = {}
        if "num_workers" in grant.setting:
            effect["num_workers"] = feed.live_workers() == grant.setting["num_workers"]
    except StopIteration:
        raise WindowFailed("the loader gave no batch") from None
    except Exception as error:
        raise WindowFailed(run.reason(error)) from error
    finally:
        feed.close()
    return WindowDone(
        window=grant.window,
        status="ok",
        steps=grant.steps,
        samples=samples,
        seconds=ended - began,
        lead_in_steps=grant.lead_in,
        wait_seconds=ended - began,
        effect=effect,
        started=run.started,
        ended=ended,
    )


def reason(error: BaseException) -> str:
    """An exception in one line, as Python would print its last."""
    text = str(error).strip().splitlines()
    name, last = type(error).__name__, text[-1].strip() if text else ""
    # What failed in a worker comes with the traceback there, whose last line names it already.
    return (last if last == name or last.startswith(f"{name}:") else f"{name}: {last}".rstrip(": "))[:2000]
