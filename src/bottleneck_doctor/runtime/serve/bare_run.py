"""Windows in a loop without a loader."""

from __future__ import annotations

from typing import Callable, Optional

from ..knobs import GuestContext
from ..loop.root_calls import RootCalls, RootInputs
from ..process.originals import now
from ..wire.messages import Grant
from .window import Run

MOST_MEASURED = 200
"""Steps of a window that has more are short, so measuring what the model is given would cost a part of each; and with
so many, windows have batches of one size on average."""


class BareRun(Run):
    """A window in a loop without a loader: steps are counted at the optimizer, or at backward passes. `calls`: counts
    the calls of the model, where they are what samples are elsewhere. `inputs`: counts what it is given."""

    def __init__(
        self,
        grant: Grant,
        context: GuestContext,
        synchronise: Callable[[], None],
        calls: Optional[RootCalls] = None,
        inputs: Optional[RootInputs] = None,
    ) -> None:
        super().__init__(grant, context, synchronise)
        self._calls = calls
        self._called = 0
        self._inputs = inputs if grant.all_steps <= MOST_MEASURED else None
        self._given = 0
        self._lead_left = self.grant.skipped + self.grant.lead_in
        self._timing = False
        self._began = 0.0
        self._away = 0.0
        """Seconds since `_began` in which the loop did no step."""
        self._left = self.grant.all_steps

    def apply(self) -> None:
        super().apply()
        for counts in (self._calls, self._inputs):
            if counts is not None:
                counts.begin()

    def revert(self) -> None:
        for counts in (self._calls, self._inputs):
            if counts is not None:
                counts.end()
        super().revert()

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
                self.around.begin()
                self.mode.resume()
                self._called = 0 if self._calls is None else self._calls.number
                self._given = 0 if self._inputs is None else self._inputs.number
                self._began = self.clock()
                self.lead_in_seconds = self._began - self.started
            return self.grant.together and self._left <= 0
        self.steps += 1
        self.samples = float(self.steps) if self._calls is None else float(self._calls.number - self._called)
        self.elements = 0 if self._inputs is None else self._inputs.number - self._given
        late = self.late(now() - self._began - self._away)
        if self._left > 0 if self.grant.together else self.steps < self.grant.steps and not late:
            return False
        self.seconds = self.clock() - self._began - self._away
        self.mode.suspend()
        self.around.end()
        return True

    def pause(self, at: float) -> None:
        """The loop does no step from `at` (seconds of `now`) on, in the midst of one."""
        self.loop_left()
        if self._timing:
            self.mode.interrupted(at)
            self.mode.suspend()
            self.around.end()

    def leave_out(self, seconds: float) -> None:
        """So many of the seconds of the current step, since the model came into evaluation mode, belong to no step."""
        if self._timing:
            self._away += seconds
            self.mode.left_out()

    def resume(self, seconds: float) -> None:
        """It goes on with its step, after so many seconds that belong to none."""
        if self._timing:
            self.around.begin()
            self.mode.resume()
            self._away += seconds
