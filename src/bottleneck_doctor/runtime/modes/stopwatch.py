"""Exclusive time of phases that may be nested: at any moment exactly one phase is charged, so shares sum to one.

The beginnings and ends of phases, of steps and of the timed stretches go in. Seconds of each phase, seconds of each
step, and the phases of some consecutive steps one by one come out.
"""

from __future__ import annotations

from typing import Callable, Dict, List, NamedTuple, Optional, Tuple

from ..process.originals import now

DATA_WAIT = "data_wait"
HOST_TO_DEVICE = "host_to_device"
FORWARD = "forward"
BACKWARD = "backward"
OPTIMIZER = "optimizer"
ZERO_GRAD = "zero_grad"
BETWEEN = "between"
COMMUNICATION = "communication"
PHASES = (DATA_WAIT, HOST_TO_DEVICE, FORWARD, BACKWARD, OPTIMIZER, ZERO_GRAD, BETWEEN, COMMUNICATION)

DRAWN_STEPS = 12
"""Consecutive steps whose phases are kept one by one."""
MOST_EVENTS = 600

Stretch = Tuple[str, float, float, Optional[int]]
"""A phase, its begin and end, and the number of the batch."""


class SoFar(NamedTuple):
    """What a stopwatch had charged: since when steps counted, until when, and the seconds by phase."""

    began: float
    at: float
    seconds: Dict[str, float]


class Stopwatch:
    """`running` only while steps count. Before every change of phase it waits for the device."""

    def __init__(self, synchronise: Callable[[], None]) -> None:
        self._synchronise = synchronise
        self.running = False
        self.current = BETWEEN
        self.nested = 0
        """Wrapped calls that have begun and not ended. As long as there are some, the stack of phases is right."""
        self.seconds: Dict[str, float] = dict.fromkeys(PHASES, 0.0)
        self.step_seconds: List[float] = []
        self.segments: List[Tuple[float, float]] = []
        self.drawn: List[Stretch] = []
        self.batch: Optional[int] = None
        self._stack: List[str] = []
        self._mark = 0.0
        self._began = 0.0
        self._step_began = 0.0
        self._stretches: List[Stretch] = []
        self._steps_here = 0
        self._drawn_steps = 0

    # -- phases ------------------------------------------------------------------------------------------------------

    def begin(self, phase: str) -> int:
        """Charge `phase` from now on. Returns what `end` needs; -1 while nothing is counted."""
        if not self.running:
            return -1
        self._charge()
        self._stack.append(self.current)
        self.current = phase
        return len(self._stack) - 1

    def end(self, token: int) -> None:
        """Go back to the phase before that `begin`."""
        if token < 0 or not self.running or len(self._stack) <= token:
            return
        self._charge()
        self.current = self._stack[token]
        del self._stack[token:]

    def end_phase(self, phase: str) -> None:
        """Go back from `phase`, if it is the one charged."""
        if self.current is phase and self._stack:
            self.end(len(self._stack) - 1)

    def moved(self, phase: str, since: float) -> None:
        """The time since `since` (in the phase now charged) was really `phase`."""
        if self.running:
            self._charge(max(since, self._mark), synchronise=False)
            self.current, kept = phase, self.current
            self._charge()
            self.current = kept

    def _charge(self, at: Optional[float] = None, *, synchronise: bool = True) -> None:
        if synchronise:
            self._synchronise()
        moment = now() if at is None else at
        self.seconds[self.current] += moment - self._mark
        if self._steps_here < DRAWN_STEPS and len(self._stretches) < MOST_EVENTS:
            self._stretches.append((self.current, self._mark, moment, self.batch))
        self._mark = moment

    def _charge_until(self, at: Optional[float]) -> None:
        """Charge the time until `at`: what was done since, perhaps by the guest itself, belongs to no step."""
        moment = None if at is None else max(at, self._mark)
        self._charge(moment, synchronise=moment is None)

    def so_far(self) -> SoFar:
        """What is charged by now, for `back_to`."""
        self._charge()
        return SoFar(self._began, self._mark, dict(self.seconds))

    def back_to(self, before: SoFar) -> None:
        """What was done since belongs to no step. Nothing is taken back if steps have not counted all the time."""
        if self.running and before.began == self._began:
            self._charge()
            self._step_began += self._mark - before.at
            self.seconds = dict(before.seconds)

    # -- steps -------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Steps count from now on."""
        self._synchronise()
        self.running = True
        self.current = BETWEEN
        self._stack.clear()
        self._mark = self._began = self._step_began = now()
        self._stretches = []
        self._steps_here = 0

    def step_ended(self, at: Optional[float] = None) -> None:
        """A step is complete (since `at`, as in `stop`), and the next begins."""
        self._charge_until(at)
        self.step_seconds.append(self._mark - self._step_began)
        self._step_began = self._mark
        self._steps_here += 1
        if not self.nested:
            self._stack.clear()  # An exception may have kept an optimizer's end from us.
            self.current = BETWEEN

    def stop(self, at: Optional[float] = None) -> None:
        """Steps do not count any more, since `at`."""
        if not self.running:
            return
        self._charge_until(at)
        self.running = False
        self._stack.clear()
        self.current = BETWEEN
        self.segments.append((self._began, self._mark))
        if self._steps_here > self._drawn_steps:
            self._drawn_steps = self._steps_here
            self.drawn = self._stretches
