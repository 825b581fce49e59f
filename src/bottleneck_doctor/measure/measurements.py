"""The results so far: the windows that were kept, and the settings that are no longer measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from bottleneck_doctor.documents.labels import BASELINE
from bottleneck_doctor.documents.report import Setting, Window
from bottleneck_doctor.knobs import is_ceiling, num_workers
from bottleneck_doctor.measure import pairing
from bottleneck_doctor.measure.schedule import Probe
from bottleneck_doctor.runtime.wire.messages import Found
from bottleneck_doctor.session.failure import Stack


@dataclass(frozen=True)
class Out:
    """Why a setting is no longer measured: the reason why it crashed or hung, or its knobs that took no effect."""

    reason: str = ""
    idle: tuple[str, ...] = ()


@dataclass(frozen=True)
class Unfinished:
    """Other work of the script's than training that had lasted for so many `seconds` when its process was ended, after
    so many `steps` of training. `stacks`: what ran then; empty where that was not seen."""

    seconds: float
    steps: int
    stacks: Sequence[Stack] = ()


class Measurements:
    """Windows of one loop, in the order in which they were taken."""

    def __init__(self, found: Found) -> None:
        self.found = found
        self.windows: list[Window] = []
        self.epoch_batches = found.epoch_length
        self.pauses: dict[int, dict[str, Any]] = {}
        """What each session has told last of its pauses: `WindowDone.pauses`."""
        self.steps_followed = False
        """Whether an optimizer made a step in a loop that was found without one."""
        self.lost: Counter[str] = Counter()
        """How often a process came to its end in a window of a setting, by key."""
        self.unfinished: list[Unfinished] = []
        """Pauses whose end was not awaited."""
        self._out: dict[str, Out] = {}
        self._workers_out: tuple[Out, frozenset[str]] | None = None
        """Why no other number of workers is measured any more, and the settings that had been measured by then."""

    def speeds(self) -> dict[str, float]:
        """Rough speed of each setting relative to the baseline, by key."""
        return pairing.quick_speeds(self.windows, self.epoch_batches)

    def collecting_share(self) -> float:
        """The part of the time of the training as written, 0 to 1, in which Python's garbage collector runs between
        epochs; 0 where windows did not show it."""
        collecting, per_step = pairing.collecting_a_turn(self.windows), pairing.samples_per_step(self.windows)
        costs = [
            pairing.step_cost(each, per_step)
            for each in self.windows
            if pairing.usable(each) and each.label == BASELINE
        ]
        if not collecting or not self.epoch_batches or not costs:
            return 0.0
        return collecting / (collecting + self.epoch_batches * fmean(costs))

    def tried(self) -> dict[str, Setting]:
        """The settings that a user may choose and that were measured, by key, but for those that are ruled out."""
        return {
            window.label: window.setting
            for window in self.windows
            if pairing.usable(window) and window.mode == "timed" and window.setting and not is_ceiling(window.setting)
            if window.label not in self._out
        }

    def fastest(self, least: float) -> Setting | None:
        """The fastest setting so far that a user may choose; None if none is over `least` times as fast as written."""
        speeds, tried = self.speeds(), self.tried()
        best = max(tried, key=lambda key: speeds.get(key, 0.0), default=None)
        return tried[best] if best is not None and speeds.get(best, 0.0) > least else None

    def has_baseline(self) -> bool:
        """Whether a window of the training as written was counted."""
        return any(pairing.usable(window) and window.label == BASELINE for window in self.windows)

    def comparing(self) -> set[int]:
        """The processes that hold a comparison."""
        return {each.session for each in self.windows if pairing.usable(each) and each.label != BASELINE}

    def gathered(self) -> int:
        """How many windows have shown something."""
        told = sum(window.status == "ok" and window.mode not in pairing.COUNTED for window in self.windows)
        return told + sum(map(pairing.usable, self.windows))

    def sessions_by_key(self) -> dict[str, set[int]]:
        """The sessions in which each setting was measured."""
        sessions: dict[str, set[int]] = {}
        for window in self.windows:
            if pairing.usable(window):
                sessions.setdefault(window.label, set()).add(window.session)
        return sessions

    def discard(self, window: Window, reason: str) -> None:
        """Let a window count for nothing, because another one was taken in its place."""
        place = next(place for place, each in enumerate(self.windows) if each is window)
        self.windows[place] = replace(window, status="discarded", reason=reason)

    # -- ruled out -----------------------------------------------------------------------------------------------------

    def rule_out(self, each: Probe, reason: str) -> None:
        """A setting crashed or hung: don't measure it again."""
        self._out[each.key] = Out(reason)

    def rule_in(self, reason: str) -> None:
        """What was ruled out for this reason is measured again: no setting is to blame for it."""
        self._out = {key: out for key, out in self._out.items() if out.reason != reason}
        if self._workers_out is not None and self._workers_out[0].reason == reason:
            self._workers_out = None

    def rule_out_idle(self, each: Probe, knobs: Iterable[str]) -> None:
        """These knobs of a setting took no effect: don't measure it again."""
        self._out[each.key] = Out(idle=tuple(knobs))

    def rule_out_workers(self, reason: str) -> None:
        """Any number of workers fails here: don't measure settings with workers, except those measured before."""
        self._workers_out = Out(reason), frozenset(self.sessions_by_key())

    def out(self, key: str, setting: Setting) -> Out | None:
        """Why a setting is no longer measured; None if it may be."""
        known = self._out.get(key)
        if known is None and self._workers_out is not None and num_workers.under(setting, 0) > 0:
            why, measured = self._workers_out
            return None if key in measured else why
        return known
