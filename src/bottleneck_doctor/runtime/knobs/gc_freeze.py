"""`gc_freeze`: takes all existing objects out of the garbage collector's sight (`gc.freeze`), and lets the collector
run only after this many new objects (the value). The effect is checked by the collector's own state.

This is what a user would write before the loop: collect, freeze, and set a threshold that steps rarely reach. The
collector stays on, so cyclic garbage is collected at the threshold, and the memory that it holds until then is bounded.

The number of frozen objects doesn't say that somebody froze them: Python 3.12 puts immortal objects beside them, at its
start and whenever it collects. So a list of our own tells it, which the collector no longer shows once it is frozen.
"""

from __future__ import annotations

import gc
from typing import Any, Dict, List, Optional, Tuple

from ..loop.steps import Steps
from ..process.originals import now
from . import GuestContext, Knob, Refused
from ._memory import MemoryLimit

NAME = "gc_freeze"

_collect = gc.collect


class Collections:
    """How long the collector ran since training began, until the loop is found. `witness`: a list that is as old as the
    script."""

    def __init__(self) -> None:
        self.witness: List[Any] = []
        self.count = 0
        self.seconds = 0.0
        self._began: Optional[float] = None

    def told(self, moment: str) -> None:
        if moment == "start":
            self._began = now()
        elif self._began is not None:
            self.seconds += now() - self._began
            self.count += 1
            self._began = None


class _Stopwatch:
    """Is one of the collector's callbacks."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps

    def __call__(self, moment: str, info: Dict[str, int]) -> None:
        if self._steps.started is not None:
            _watched(self._steps).told(moment)


class GcFreeze(Knob):
    name = NAME

    def __init__(self) -> None:
        self._before: Optional[Tuple[int, int, int]] = None
        self._wanted = 0
        self._newer: List[Any] = []
        """A list that is made once everything is frozen."""
        self._memory: Optional[MemoryLimit] = None

    # -- before the loop is found ------------------------------------------------------------------------------------

    @classmethod
    def watch(cls, steps: Steps) -> None:
        _watched(steps)
        gc.callbacks.append(_Stopwatch(steps))

    @classmethod
    def facts(cls, steps: Steps, device: str, loader: Any = None) -> Any:
        gc.callbacks[:] = [each for each in gc.callbacks if not isinstance(each, _Stopwatch)]
        if steps.started is None:
            return None
        ran = _watched(steps)
        return {
            "share": ran.seconds / max(1e-9, now() - steps.started),
            "collections": ran.count,
            "on": _is_on(),
            "frozen": _is_frozen(ran.witness),
        }

    # -- in a window -------------------------------------------------------------------------------------------------

    def apply(self, value: Any, context: GuestContext) -> None:
        if not _is_on():
            raise Refused("the script has switched the garbage collector off")
        if _is_frozen(_watched(context.steps).witness):
            raise Refused("the script has called gc.freeze() itself")
        self._memory = MemoryLimit(context.device)
        _collect()
        gc.freeze()
        self._newer = []
        self._before = gc.get_threshold()
        self._wanted = max(int(value), self._before[0])
        gc.set_threshold(self._wanted)

    def before_step(self, context: GuestContext) -> None:
        if self._before is None or self._memory is None:
            return
        self.gave_up = self._memory.short()
        if self.gave_up:
            self.revert(context)
            _collect()

    def revert(self, context: GuestContext) -> None:
        before, self._before = self._before, None
        if before is None:
            return
        if gc.get_threshold()[0] == self._wanted:  # Unless the script has set its own meanwhile.
            gc.set_threshold(*before)
        if not _is_frozen(self._newer):  # Or has frozen more.
            gc.unfreeze()

    def effect(self, value: Any, context: GuestContext) -> Optional[bool]:
        frozen = _is_frozen(_watched(context.steps).witness)
        return frozen and _is_on() and gc.get_threshold()[0] == self._wanted


def _watched(steps: Steps) -> Collections:
    found: Optional[Collections] = steps.noted.get(NAME)
    if found is None:
        found = steps.noted[NAME] = Collections()
    return found


def _is_frozen(witness: List[Any]) -> bool:
    return gc.get_freeze_count() > 0 and not any(each is witness for each in gc.get_objects())


def _is_on() -> bool:
    return gc.isenabled() and gc.get_threshold()[0] > 0


KNOB = GcFreeze
