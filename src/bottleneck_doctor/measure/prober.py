"""Runs one window in a live session: sizes, grants and awaits it, keeps what came back, and blames who broke it."""

from __future__ import annotations

import math
import socket
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from bottleneck_doctor import knobs
from bottleneck_doctor.documents import labels
from bottleneck_doctor.documents.labels import BASELINE
from bottleneck_doctor.documents.report import Setting, Window
from bottleneck_doctor.knobs import num_workers
from bottleneck_doctor.measure import schedule
from bottleneck_doctor.measure.budget import Budget, OutOfTime
from bottleneck_doctor.measure.measurements import Measurements
from bottleneck_doctor.measure.schedule import LoopShape, Plan, Probe
from bottleneck_doctor.measure.waiting import awaited
from bottleneck_doctor.measure.windows import BURN_IN as BURN_IN
from bottleneck_doctor.measure.windows import kept
from bottleneck_doctor.runtime import messages
from bottleneck_doctor.session import autopsy
from bottleneck_doctor.session.ending import Hung, TooSlow, ended
from bottleneck_doctor.session.failure import Cause, Failure, Stack, cause, signal_name
from bottleneck_doctor.session.session import Exited, Session
from bottleneck_doctor.system.progress import Progress
from bottleneck_doctor.wording import words

HANG_SECONDS = 30.0
HANG_FACTOR = 12.0
"""A training that makes no step for this many times as long as its whole window should take (and for `HANG_SECONDS` at
least) hangs. As long as it makes steps it is slow."""
SLOW_SHARE = 0.25
"""Part of the time left that a window of a setting may take where its steps are slow: the rest belongs to others."""
TOO_LONG = 3.0
"""A lead-in or a timed part that has lasted this many times as long as planned ends where it is: what made it so slow
(the setting, a neighbour) is seen by then, and the time belongs to other windows."""
EXPLAINING_GRACE = 5.0
"""How long a window that explains may go on past any budget: cut short, all of its time would have been for nothing."""
GRACE_SECONDS = 30.0
"""How long a window may go on past a budget that the user did not set."""

HARDLY_WORTH = 0.5
"""A window for less than this part of which there is time is not begun: its time belongs to what still fits."""
MOST_OF_AN_EPOCH = 1.5
"""Epochs that pass, about, until one is timed from its start to its end."""

NAMES = {BASELINE: "the training as written", BURN_IN: "warming up"}
EXPLAINING = {
    "phases": "timing the phases of a step",
    "sampled": "looking into the process with py-spy",
    "trace": "tracing operators",
    "lines": "timing lines",
}
"""What windows that explain do, by their mode."""


class Prober:
    """Measures probes in sessions. `cost_seconds` is what each last cost, lead-in and all."""

    def __init__(
        self, measured: Measurements, shape: LoopShape, plan: Plan, clock: Budget, progress: Progress, step: float
    ) -> None:
        self.cost_seconds: dict[str, float] = {}
        self.device_bytes: int | None = None
        self.device_reserved_bytes: int | None = None
        """The most device memory that tensors had and that the allocator held so far; None without a device."""
        self.block = 0
        self.brief = False
        """Whether a window of long steps may hold few of them."""
        self.spare = 0.0
        """Seconds beyond the time left that the training as written may take until it was measured once: with nothing
        to compare with, nothing that they were set apart for can be had."""
        self._measured = measured
        self._shape = shape
        self.plan = plan
        self._clock = clock
        self._progress = progress
        self._baseline_step = step
        self._step_seconds: dict[str, float] = {}
        self._crashes: Counter[str] = Counter()
        self._number = 0
        self._memory_kills: int | None = None
        self._loaded_here: tuple[int, Probe] | None = None
        """The session and the probe that last loaded in the main process, where the user has workers."""
        self.epochs = schedule.whole_epochs(shape, step, plan.window_seconds)

    @property
    def epoch_seconds(self) -> float:
        """About how long one epoch takes as written."""
        return (self._shape.epoch_batches or 0) * self._baseline_step

    def baseline_cost(self) -> float:
        """Seconds that a window of the baseline takes with its lead-in."""
        known = self.cost_seconds.get(BASELINE)
        return known if known is not None else self.measuring_seconds(schedule.probe(BASELINE, {}))

    def has_baseline(self) -> bool:
        """Whether the training as written was measured."""
        return self._measured.has_baseline()

    def measure(self, session: Session, each: Probe, *, seconds: float | None = None) -> Window:
        """Run one window of about `seconds` and keep it. Raises `SessionOver` where the session does not survive it,
        and `OutOfTime` where the budget ends first, or would before the window could tell anything."""
        begun = self._clock.now()
        seconds = seconds or self.plan.window_seconds
        warm = self._computed(session, each)
        size = self._size(each, seconds, warm=warm)
        first = each.key in NAMES and not self.has_baseline()
        grace = self._grace(self.spare if first else 0.0)
        there = min(self._clock.left() + grace, self._clock.until_end())
        # Of the very first window it is not known how long it takes: a guess from the first steps is no reason to end.
        guessed = first and not any(window.status in ("ok", "discarded") for window in self._measured.windows)
        if first and self.epochs and not guessed and there < MOST_OF_AN_EPOCH * self.epoch_seconds:
            self.epochs = False
            size = self._size(each, seconds, warm=warm)
        timed = self._timed_seconds(each, size)
        room = there - (self._whole_seconds(each, size) - timed)
        needed = timed / size.epochs if size.epochs else HARDLY_WORTH * timed
        if not guessed and room < needed:
            raise OutOfTime
        event = self._granted(
            session,
            each,
            size,
            {},
            grace=grace,
            most_seconds=min(TOO_LONG * max(seconds, timed), max(room, needed)),
        )
        if isinstance(event, messages.WindowDone):
            self.cost_seconds[each.key] = self._clock.now() - begun
            return self._keep(session, each, event)
        if isinstance(event, Hung):
            before = [window.setting for window in self._measured.windows if window.session == session.number]
            changed = any(before) or bool(each.setting)
            event = replace(event, stacks=_stacks(session), tail=session.tail(), changed=changed)
        self._blame(session, each, event)
        raise ended(event)

    def explain(
        self,
        session: Session,
        each: Probe,
        seconds: float,
        options: dict[str, Any],
        *,
        most_steps: int | None = None,
        most_seconds: float = math.inf,
    ) -> tuple[Window, dict[str, Any]]:
        """Run one window that explains, and return it with what its mode found. It is kept, and never counted.

        `most_seconds`: what it may take with its lead-in, about; where steps are too long for that it is cut, to a step
        of lead-in and two that count at the least. A window that fails is returned as such, with nothing found. Raises
        `SessionOver` and `OutOfTime` as `measure`.
        """
        size = self._explaining_size(each, seconds, most_steps, most_seconds)
        planned = self._timed_seconds(each, size)
        # What is expected may come from a few steps that a full queue fed: then it ends early, at a step's end.
        late = min(TOO_LONG * max(seconds, planned), max(most_seconds, planned))
        event = self._granted(session, each, size, options, grace=self._grace(EXPLAINING_GRACE), most_seconds=late)
        if not isinstance(event, messages.WindowDone):
            raise ended(event)
        window = kept(session.number, self.block, each, event)
        self._measured.windows.append(window)
        if window.status == "ok" and window.steps and not window.setting and not self.has_baseline():
            # The first windows of all: what is known of a step until then are the few in which the loop was found.
            self._baseline_step = window.seconds / window.steps
        return window, event.detail

    def explaining_seconds(
        self, each: Probe, seconds: float, *, most_steps: int | None = None, most_seconds: float = math.inf
    ) -> float:
        """What `explain` would take with its lead-in, about."""
        return self._whole_seconds(each, self._explaining_size(each, seconds, most_steps, most_seconds))

    def _explaining_size(
        self, each: Probe, seconds: float, most_steps: int | None, most_seconds: float
    ) -> schedule.WindowSize:
        step = self.expected_step(each.as_setting())
        size = schedule.window_size(
            self._shape, each.as_setting(), each.mode, step, seconds, epochs=False, least=self._least(step)
        )
        if most_steps is not None:
            size = replace(size, steps=min(size.steps, max(most_steps, self._shape.period)))
        return schedule.cut(size, self._shape.period, step, most_seconds)

    def measuring_seconds(self, each: Probe, seconds: float | None = None) -> float:
        """What `measure` would take with its lead-in, about."""
        return self._whole_seconds(each, self._size(each, seconds or self.plan.window_seconds))

    def expected_step(self, setting: Setting) -> float:
        """Seconds that a step takes under a setting: as measured, or by what the workers that it lacks did at once."""
        known = self._step_seconds.get(labels.key_of(setting))
        if known is not None:
            return known
        own = self._shape.num_workers
        fewer = own / max(1, num_workers.under(setting, own))
        return self._baseline_step * max(1.0, fewer)

    def _size(self, each: Probe, seconds: float, *, warm: bool = False) -> schedule.WindowSize:
        step, setting = self._step(each), each.as_setting()
        return schedule.window_size(
            self._shape, setting, each.mode, step, seconds, epochs=self.epochs, warm=warm, least=self._least(step)
        )

    def _least(self, step: float) -> int:
        return schedule.least_steps(step) if self.brief else schedule.LEAST_STEPS

    def _computed(self, session: Session, each: Probe) -> bool:
        """Whether the session has settled to computing as this probe does: kernels were picked for it."""
        wanted = knobs.settling(each.as_setting())
        return any(
            window.session == session.number and window.status == "ok" and knobs.settling(window.setting) == wanted
            for window in self._measured.windows
        )

    def _granted(
        self,
        session: Session,
        each: Probe,
        size: schedule.WindowSize,
        options: dict[str, Any],
        *,
        grace: float = 0.0,
        most_seconds: float = 0.0,
    ) -> Any:
        """Grant a window and wait for it: its `WindowDone`, or what came instead. Raises `OutOfTime`."""
        step = self._step(each)
        limit = max(HANG_SECONDS, HANG_FACTOR * self._steps(size) * max(step, self._baseline_step))
        most_lead_in = 0.0 if size.epochs else max(most_seconds, TOO_LONG * size.lead_in * step)
        self._number += 1
        self._memory_kills = autopsy.memory_kills()
        self._tell(session, each)
        session.grant(
            messages.Grant(
                self._number,
                each.as_setting(),
                each.mode,
                size.lead_in,
                size.steps,
                size.epochs,
                options,
                most_seconds,
                size.unit,
                most_lead_in_seconds=most_lead_in,
            )
        )
        time_left = min(max(1.0, self._clock.left()) + grace, self._clock.until_end())
        # Without the training as written nothing can be had, and what it takes is its own.
        patience = max(limit, SLOW_SHARE * time_left) if each.setting or each.mode == "loader_only" else math.inf
        event = awaited(session, limit, self._clock.now() + time_left, patience, self._clock.now)
        if isinstance(event, messages.WindowDone):
            if event.window != self._number:
                return messages.Trouble(text=f"window {self._number} was granted, and {event.window} ended")
            self.device_bytes = _larger(self.device_bytes, event.device_bytes)
            self.device_reserved_bytes = _larger(self.device_reserved_bytes, event.device_reserved_bytes)
        if event is None or isinstance(event, Hung):
            event = session.company.parted(hung=event is not None) or event
            if event is None:
                raise OutOfTime
        return event

    def _grace(self, strict: float) -> float:
        """How long a window may go on past the time left: `strict` where the user set it."""
        return strict if self._clock.strict else GRACE_SECONDS

    def _step(self, each: Probe) -> float:
        """Seconds that a step is expected to take in a window of this probe."""
        if each.mode in EXPLAINING:
            return self.expected_step(each.as_setting())
        return self._step_seconds.get(each.key, self._baseline_step)

    def _whole_seconds(self, each: Probe, size: schedule.WindowSize) -> float:
        """Seconds that a window is expected to take with its lead-in."""
        # Of the epoch in which an epoch's window is granted, half is still to come.
        lead_in = (size.lead_in + 0.5) * (self._shape.epoch_batches or 1) if size.epochs else size.lead_in
        return self._timed_seconds(each, size) + lead_in * self._step(each)

    def _timed_seconds(self, each: Probe, size: schedule.WindowSize) -> float:
        """Seconds that the timed part of a window is expected to take."""
        steps = size.epochs * (self._shape.epoch_batches or 1) if size.epochs else size.steps
        return steps * self._step(each)

    def _steps(self, size: schedule.WindowSize) -> int:
        if size.epochs:
            # One more: the rest of the epoch in which the window was granted.
            return (size.epochs + size.lead_in + 1) * (self._shape.epoch_batches or 1)
        return size.steps + size.lead_in

    def _keep(self, session: Session, each: Probe, done: messages.WindowDone) -> Window:
        window = kept(session.number, self.block, each, done)
        self._measured.windows.append(window)
        if window.status in ("ok", "discarded") and window.steps:
            self._step_seconds[each.key] = window.seconds / window.steps
            if each.key in (BASELINE, BURN_IN):
                self._baseline_step = window.seconds / window.steps
            if self._shape.num_workers and num_workers.asked(each.as_setting()) == 0:
                self._loaded_here = (session.number, each)
        elif window.status == "no_effect" and each.key not in NAMES:
            idle = [name for name, seen in window.effect.items() if not seen]
            self._measured.rule_out_idle(each, idle or window.setting)
        elif window.status == "failed" and each.key not in NAMES:
            self._rule_out(each, cause(self._failure(each, words=done.reason)))
        return window

    def _blame(self, session: Session, each: Probe, event: Any) -> None:
        """A session died in this window. A setting that does so twice, or is known to be to blame, has failed; anything
        else may have been the script's own end, and is tried once more."""
        hung = isinstance(event, Hung)
        if isinstance(event, Hung):
            known = cause(self._failure(each, hung=True, stacks=event.stacks))
        elif isinstance(event, TooSlow):
            known = Cause(f"a window {event}, over ten times as long as expected")
        elif isinstance(event, Exited) and event.code != 0:
            known = cause(self._failure(each, words=event.tail, signal=signal_name(event.code)))
        elif isinstance(event, messages.Trouble):
            known = Cause(f"a bug of doctor's own: {event.text.strip().splitlines()[-1]}", certain=False)
        else:
            return
        if each.key in NAMES:
            if hung and self._loaded_here is not None and self._loaded_here[0] == session.number:
                # As written it has hung nowhere else: what loading here left behind, its workers did not bear.
                self._rule_out(
                    self._loaded_here[1],
                    Cause("workers that were started after loading in the main process hung, so it was not pursued"),
                )
            return
        self._crashes[each.key] += 1
        if hung or known.certain or knobs.may_crash(each.as_setting()) or self._crashes[each.key] >= 2:
            self._rule_out(each, known)
        done = messages.WindowDone(window=self._number, status="failed", reason=known.sentence)
        self._measured.windows.append(kept(session.number, self.block, each, done))

    def _rule_out(self, each: Probe, known: Cause) -> None:
        self._measured.rule_out(each, known.sentence)
        if known.every_count and not self._shape.num_workers and num_workers.asked(each.as_setting()) is not None:
            self._measured.rule_out_workers(known.sentence)

    def _failure(
        self, each: Probe, *, words: str = "", signal: str = "", hung: bool = False, stacks: Sequence[Stack] = ()
    ) -> Failure:
        """What is known of a probe that failed just now."""
        kills, before = autopsy.memory_kills(), self._memory_kills
        return Failure(
            setting=each.as_setting(),
            words=words,
            signal=signal,
            hung=hung,
            own_workers=self._shape.num_workers,
            start_method=self._measured.found.start_method,
            stacks=stacks,
            shared_memory=autopsy.shared_memory(),
            open_handle="" if self._shape.num_workers else self._measured.found.open_handle,
            out_of_memory=kills is not None and before is not None and kills > before,
        )

    def _tell(self, session: Session, each: Probe) -> None:
        named = {
            key: speed
            for key, speed in self._measured.speeds().items()
            if key not in (labels.CONTROL, labels.REPLAY) and not key.startswith(labels.LOADER_ONLY)
        }
        best = max(named, key=lambda key: named[key], default=None)
        so_far = ""
        if best is not None and named[best] > 1.02:
            so_far = f"; best so far {self._name(best)} {named[best]:.2f}×"
        what = EXPLAINING.get(each.mode) or f"measuring {self._name(each.key, each)}"
        what = NAMES[BURN_IN] if each.key == BURN_IN else what
        self._progress.update(f"Process {session.number}: {what}{so_far}", self._clock.elapsed(), self._clock.total)

    def _name(self, key: str, each: Probe | None = None) -> str:
        """What is measured, as a user would write it."""
        if key in NAMES:
            return NAMES[key]
        if each is None:
            setting = next((window.setting for window in self._measured.windows if window.label == key), {})
        else:
            setting = each.as_setting()
        if knobs.is_ceiling(setting):
            return "the same batches again"
        text = words.setting_text(setting, self._measured.found.device) if setting else NAMES[BASELINE]
        return f"loading alone, {text}" if key.startswith(labels.LOADER_ONLY) else text


def _stacks(session: Session) -> list[Stack]:
    """Where a session that hangs stands."""
    here = session.hello is not None and session.hello.host in ("", socket.gethostname())
    return autopsy.stacks(session.hello.pid) if here and session.hello is not None else []


def _larger(first: int | None, second: int | None) -> int | None:
    return max((each for each in (first, second) if each is not None), default=None)
