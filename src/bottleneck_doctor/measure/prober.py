"""Runs one window in a live session: grants it, waits for it, and keeps the result."""

from __future__ import annotations

import math
import socket
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from bottleneck_doctor import knobs
from bottleneck_doctor.documents.report import Window
from bottleneck_doctor.measure.blame import Blame
from bottleneck_doctor.measure.budget import Budget, NotBegun, OutOfTime
from bottleneck_doctor.measure.costs import Costs
from bottleneck_doctor.measure.measurements import Measurements, Unfinished
from bottleneck_doctor.measure.schedule import Probe, WindowSize
from bottleneck_doctor.measure.waiting import awaited
from bottleneck_doctor.measure.windows import AS_WRITTEN, kept
from bottleneck_doctor.monitor import RunQueue
from bottleneck_doctor.runtime.wire import messages
from bottleneck_doctor.session import autopsy
from bottleneck_doctor.session.ending import Ending, Hung, SessionOver, ended
from bottleneck_doctor.session.failure import Stack
from bottleneck_doctor.session.session import Exited, Session

HANG_SECONDS = 30.0
HANG_FACTOR = 12.0
"""A training hangs if it makes no step for this many times as long as its whole window should take, and for at least
`HANG_SECONDS`. As long as it makes steps, it is only slow."""
LEAST_PAUSE = 10.0
"""Seconds that a pause may take in any case, before a new process is started for it."""
LAST_STEPS = 4.0
"""The last step of a training takes at most this many times as long as others."""
SLOW_SHARE = 0.25
"""Part of the time left that a window of a setting may take if its steps are slow: the rest is for other settings."""
TOO_LONG = 3.0
"""A lead-in or a timed part ends early after this many times its planned time. By then it is seen how slow it is, and
the time belongs to other windows."""
MOST_WALL = 2.0
"""A window that explains may take in all this many times what its timed part may take. With short epochs and many
workers, nearly all of its time is the starting of epochs, which is not timed."""
EXPLAINING_GRACE = 5.0
"""Seconds that a window that explains may last past any budget: if it were cut short, all of its time would be lost."""
GRACE_SECONDS = 30.0
"""Seconds that a window may last past a budget that the user did not set."""

HARDLY_WORTH = 0.5
"""A window is not begun if there is time for less than this part of it: the time belongs to windows that still fit."""
TOO_SHORT = 0.4
"""A window is taken again if its timed part lasted less than this part of what it aims at, and workers fed it. Part of
its batches were made before it began, so the shorter it is, the faster the setting looks."""
AGAIN_REASON = "it was too short for the batches that workers had made before it began, so a longer window counts"

MOST_OF_AN_EPOCH = 1.5
"""About how many epochs pass until one has been timed from its start to its end."""


class Prober:
    """Measures probes in sessions that train one loop. `tell` is called at the start of each window with the number of
    its session and its probe. `run_queue`: watches the machine while a window lasts."""

    def __init__(
        self,
        measured: Measurements,
        costs: Costs,
        budget: Budget,
        tell: Callable[[int, Probe], None] = lambda session, each: None,
        run_queue: Callable[[], RunQueue] = RunQueue,
    ) -> None:
        self.costs = costs
        self.device_bytes: int | None = None
        self.device_reserved_bytes: int | None = None
        """The most bytes of device memory that tensors used, and that the allocator held; None without a device."""
        self.epoch_seen: int | None = None
        """Batches of an epoch, as windows showed; None until two epochs agreed."""
        self.keeps_workers = False
        """Whether workers go on from one window to the next that loads in the same way."""
        self.leaves_pauses = False
        """Whether a process is given up that does something other than training, such as an evaluation, for longer than
        a new one takes until it shows something."""
        self.keeps_losses = False
        """Whether guests tell the losses of the training, too."""
        self.losses: dict[int, float] = {}
        """Those that they have told, by the number of optimizer steps before."""
        self.skips = 0
        """Steps that go by before the next window of steps that counts, or warms up."""
        self.lived: int | None = None
        """Steps that the last process which ended by itself made once its loop was found; None if that is not known."""
        self._reached = 0, 0, 0
        """The number of the session of the last window, and the batches that had gone by when it was over: of the
        training, and since the loop was found."""
        self._granted_first = 0, 0.0
        """The session of the last window, and when its first one was granted."""
        self._shown_after = 0.0
        """Seconds from the first grant of a session until one of its windows had shown something."""
        self.position: int | None = None
        """Batches of the training's order, or steps, that had gone by when the last window was over; None before the
        first."""
        self.block = 0
        self.spare = 0.0
        """Seconds that the first window of the training as written may take beyond the time left. They are reserved for
        explaining, which is worth nothing if there is no baseline."""
        self._measured = measured
        self._blame = Blame(measured, costs.shape)
        self._budget = budget
        self._tell = tell
        self._run_queue = run_queue
        self._runnable: float | None = None
        """Threads of the whole machine that ran or were ready to run during the last window, on average."""
        self._number = 0

    def has_baseline(self) -> bool:
        """Whether a window of the training as written was counted."""
        return self._measured.has_baseline()

    def size(self, session: Session, each: Probe, seconds: float | None = None) -> WindowSize:
        """How long a window of about `seconds` would be that counts."""
        warm = self._computed(session, each)
        return self.costs.size(each, seconds or self.costs.window_seconds, warm=warm)

    def measure(
        self, session: Session, each: Probe, *, seconds: float | None = None, size: WindowSize | None = None
    ) -> Window:
        """Run one window of that `size`, or of about `seconds`, and keep it. If a setting is so fast that its window
        was too short, a second one counts instead. Raises `SessionOver` if the session does not survive it, and
        `OutOfTime` if the budget ends first, or would end before the window could show anything."""
        window = self._measured_once(session, each, seconds, size)
        if not self._too_short(window, each, seconds or self.costs.window_seconds):
            return window
        longer = self._measured_once(session, each, seconds)
        if longer.status != "ok":
            return longer
        self._measured.discard(window, AGAIN_REASON)
        return longer

    def _too_short(self, window: Window, each: Probe, seconds: float) -> bool:
        """Whether workers had made too much of what this window trained on, and there is time for a longer one."""
        costs = self.costs
        if window.status != "ok" or window.mode != "timed" or costs.epochs or costs.most_steps is not None:
            return False
        if costs.shape.loading(each.as_setting()).workers == 0 or window.seconds >= TOO_SHORT * seconds:
            return False
        longer = costs.size(each, seconds, warm=True)
        return window.steps < TOO_SHORT * longer.steps and costs.whole(each, longer) < self._budget.left()

    def _measured_once(
        self, session: Session, each: Probe, seconds: float | None, size: WindowSize | None = None
    ) -> Window:
        begun = self._budget.now()
        costs, seconds = self.costs, seconds or self.costs.window_seconds
        size = size or replace(self.size(session, each, seconds), skipped=self.skips)
        self.skips = 0
        first = each.key in AS_WRITTEN and not self.has_baseline()
        grace = self._grace(self.spare if first else 0.0)
        there = min(self._budget.left() + grace, self._budget.until_end())
        # How long the very first window takes is only guessed from the first steps, which is no reason to end.
        guessed = first and not any(window.status in ("ok", "discarded") for window in self._measured.windows)
        if first and costs.epochs and not guessed and there < MOST_OF_AN_EPOCH * costs.epoch_seconds:
            costs.epochs = False
            size = self.size(session, each, seconds)
        timed = costs.timed(each, size)
        room = there - (costs.whole(each, size) - timed)
        needed = timed / size.epochs if size.epochs else HARDLY_WORTH * timed
        if not guessed and room < needed:
            raise NotBegun
        event = self._granted(
            session,
            each,
            size,
            {},
            grace=grace,
            most_seconds=min(TOO_LONG * max(seconds, timed), max(room, needed)),
        )
        if isinstance(event, messages.WindowDone):
            costs.seconds[each.key] = self._budget.now() - begun
            return self._keep(session, each, event)
        if isinstance(event, Hung):
            before = [window.setting for window in self._measured.windows if window.session == session.number]
            changed = any(before) or bool(each.setting)
            event = replace(event, stacks=_stacks(session), tail=session.tail(), changed=changed)
        known = self._blame.died(session.number, each, event)
        if known is not None:
            done = messages.WindowDone(window=self._number, status="failed", reason=known.sentence)
            self._measured.windows.append(kept(session.number, self.block, each, done))
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
        """Run one window that explains, and return it with what its mode found. It is kept, but never counted.

        `most_seconds`: about how long it may take with its lead-in. If steps are too long for that, it is cut, at most
        down to one step of lead-in and two timed steps. A window that fails is returned with the status `failed` and
        nothing found. Raises `SessionOver` and `OutOfTime` as `measure` does.
        """
        size = self.costs.explaining_size(each, seconds, most_steps, most_seconds)
        planned = self.costs.timed(each, size)
        # The expectation may come from a few steps that a full queue fed. If it was too short, the window ends early,
        # at the end of a step.
        late = min(TOO_LONG * max(seconds, planned), max(most_seconds, planned))
        event = self._granted(
            session,
            each,
            size,
            options,
            grace=self._grace(EXPLAINING_GRACE),
            most_seconds=late,
            most_wall_seconds=MOST_WALL * late,
        )
        if not isinstance(event, messages.WindowDone):
            raise ended(event)
        window = kept(session.number, self.block, each, event, self._runnable)
        self._measured.windows.append(window)
        if window.status == "ok" and window.steps and not window.setting and not self.has_baseline():
            self.costs.learnt_first(window)
        return window, event.detail

    def _computed(self, session: Session, each: Probe) -> bool:
        """Whether the session has already computed in the way that this probe does, so that kernels are chosen."""
        wanted = knobs.settling(each.as_setting())
        return any(
            window.session == session.number and window.status == "ok" and knobs.settling(window.setting) == wanted
            for window in self._measured.windows
        )

    def _granted(
        self,
        session: Session,
        each: Probe,
        size: WindowSize,
        options: dict[str, Any],
        *,
        grace: float = 0.0,
        most_seconds: float = 0.0,
        most_wall_seconds: float = 0.0,
    ) -> Any:
        """Grant a window and wait for it: its `WindowDone`, or what came instead. Raises `OutOfTime`."""
        step = self.costs.step(each)
        limit = max(HANG_SECONDS, HANG_FACTOR * self.costs.steps(size) * max(step, self.costs.baseline_step))
        limit += 0.0 if self._computed(session, each) else knobs.first_step_seconds(each.as_setting())
        most_lead_in = 0.0 if size.epochs else max(most_seconds, TOO_LONG * (size.skipped + size.lead_in) * step)
        if self._granted_first[0] != session.number:
            self._granted_first = session.number, self._budget.now()
        self._number += 1
        self._blame.begin()
        self._tell(session.number, each)
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
                losses=self.keeps_losses,
                most_lead_in_seconds=most_lead_in,
                most_wall_seconds=most_wall_seconds,
                keeps_workers=self.keeps_workers,
                skipped=size.skipped,
                keeps_iterables=not self.costs.loading_may_pay,
            )
        )
        time_left = min(max(1.0, self._budget.left()) + grace, self._budget.until_end())
        # Nothing can be measured without the training as written, so it may take as long as it needs.
        patience = max(limit, SLOW_SHARE * time_left) if each.setting or each.mode == "loader_only" else math.inf
        with self._run_queue() as queue:
            until, now = self._budget.now() + time_left, self._budget.now
            last, pause = self._longest_last_step(step), self._longest_pause(session, size)
            try:
                event = awaited(session, limit, until, patience, now, last=last, pause=pause)
            except SessionOver as over:
                self._note_end(session, each, over)
                raise
        if isinstance(event, messages.WindowDone):
            if event.window != self._number:
                return messages.Trouble(text=f"window {self._number} was granted, and {event.window} ended")
            self._runnable = queue.mean(event.stretches)
            self.position = event.position + event.ahead
            self._reached = session.number, event.position, sum(session.progress().values())
            if event.pauses:
                self._measured.pauses[session.number] = event.pauses
            self.losses |= {int(step): loss for step, loss in event.losses}
            followed = event.optimizer_steps > 0 and self._measured.found.rung == "batches"
            self._measured.steps_followed = self._measured.steps_followed or followed
            if event.epoch_batches:
                self._learn_epoch(event.epoch_batches)
            self.device_bytes = _larger(self.device_bytes, event.device_bytes)
            self.device_reserved_bytes = _larger(self.device_reserved_bytes, event.device_reserved_bytes)
        if isinstance(event, Exited):
            self._note_end(session, each)
        if event is None or isinstance(event, Hung):
            event = session.rank_group.parted(hung=event is not None) or event
            if event is None:
                raise OutOfTime
        return event

    def _note_end(self, session: Session, each: Probe, over: SessionOver | None = None) -> None:
        """The script came to its end in a window of `each`, or does something other than training, and nobody waits for
        the end of that."""
        self._measured.lost[each.key] += 1
        if session.rank_group.size > 1:
            return
        self.lived = sum(session.progress().values())
        number, position, before = self._reached
        if over is not None and over.ending is Ending.AWAY and over.still and number == session.number:
            steps = position + self.lived - before
            self._measured.unfinished.append(Unfinished(over.still, steps, _stacks(session)))

    def _learn_epoch(self, batches: int) -> None:
        """The loop takes so many batches in an epoch, whatever its loader says. What kind of window it takes stays, if
        one was counted already: the two kinds are not compared."""
        self.epoch_seen = self._measured.epoch_batches = batches
        self.costs.learnt_epoch(batches, anew=not self.has_baseline())

    def _longest_last_step(self, step: float) -> float:
        """Seconds to wait for another step after the last one that the program says it makes. It may say too little, so
        that is as long as a new process would take to come to its loop."""
        return max(LAST_STEPS * max(step, self.costs.baseline_step), self._measured.found.setup_seconds)

    def _longest_pause(self, session: Session, size: WindowSize) -> float:
        """Seconds to wait where the script does something other than training. Nobody knows how long that takes, so
        after as long as a new process takes until it shows something, a new one is the better guess: to its loop, until
        that is found, and through its first window. But windows of whole epochs hold pauses, and where a process has
        shown nothing yet, the next one would come no further."""
        if not self.leaves_pauses or size.epochs or not self._has_shown(session.number):
            return math.inf
        found = self._measured.found
        return max(LEAST_PAUSE, found.setup_seconds + sum(found.step_seconds) + self._shown_after)

    def _has_shown(self, session: int) -> bool:
        """Whether a window of that session has shown something."""
        return any(each.session == session and each.status == "ok" for each in self._measured.windows)

    def _grace(self, strict: float) -> float:
        """Seconds that a window may last past the time left: `strict` if the user set the budget."""
        return strict if self._budget.strict else GRACE_SECONDS

    def _keep(self, session: Session, each: Probe, done: messages.WindowDone) -> Window:
        window = kept(session.number, self.block, each, done, self._runnable)
        if window.status == "ok" and not self._has_shown(session.number):
            self._shown_after = self._budget.now() - self._granted_first[1]
        self._measured.windows.append(window)
        if window.status in ("ok", "discarded") and window.steps:
            self.costs.learnt(each, window)
        self._blame.ended(each, window)
        return window


def _stacks(session: Session) -> list[Stack]:
    """The stacks of a session that hangs."""
    here = session.hello is not None and session.hello.host in ("", socket.gethostname())
    return autopsy.stacks(session.hello.pid) if here and session.hello is not None else []


def _larger(first: int | None, second: int | None) -> int | None:
    return max((each for each in (first, second) if each is not None), default=None)
