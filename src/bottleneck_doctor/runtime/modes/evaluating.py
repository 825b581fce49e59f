"""How long the model is in evaluation mode within steps, as in a loop that evaluates after each of them, and whether
it keeps what a backward pass would need there."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Tuple

from ..loop.evaluated import Evaluated
from ..loop.steps import Steps
from ..process.originals import now


class StepEvaluations:
    """Programs that train in that mode evaluate nothing: no backward pass may come in between."""

    def __init__(self, steps: Steps, synchronise: Callable[[], None]) -> None:
        self._steps = steps
        self._synchronise = synchronise
        self._times = 0
        self._seconds = 0.0
        self._began: Optional[Tuple[float, int]] = None
        """When the model came into that mode, and the number of backward passes before."""
        self._evaluated = Evaluated(steps, within_steps=True)

    def begin(self) -> None:
        """The model comes into evaluation mode."""
        self._synchronise()
        self._evaluated.begin()
        self._began = now(), self._steps.own_backwards

    def end(self) -> None:
        """It trains again."""
        began, self._began = self._began, None
        self._evaluated.rest()
        if began is None or began[1] != self._steps.own_backwards:
            return
        self._synchronise()
        self._times += 1
        self._seconds += now() - began[0]

    def forget(self) -> None:
        """What goes on now is no part of a step."""
        self._began = None
        self._evaluated.rest()

    def detail(self) -> Dict[str, Any]:
        """As JSON values. Every pass that was looked at lies behind."""
        self._evaluated.end()
        return {"times": self._times, "seconds": self._seconds, **self._evaluated.totals()}
