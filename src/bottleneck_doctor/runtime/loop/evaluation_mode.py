"""When a program puts its model into evaluation mode (`model.eval()`) in the midst of training, and back.

Between the two it evaluates, shows samples, or collects what it trains on next; no loader need be asked for anything.
`Module.train`, which both calls end in, is watched for as long as the process lives: it is hardly ever called. Programs
that change the mode within every step, to compute labels for instance, are told by its number of backward passes. Where
one of those times lasts for many times as long as they usually do, the program has tested its model besides.
"""

from __future__ import annotations

import threading
from collections import deque
from statistics import median
from typing import Any, Callable, Deque

import torch

from ..process.originals import now
from ..process.patches import Patches
from .steps import Steps

RARE = 4
"""So many backward passes at least lie between two times, or the change of mode is a part of the steps."""
MANY_TIMES = 20
"""A part of a step that lasts so many times as long as usual, and `LONG` seconds, is something else besides. What other
programs do to a process takes less."""
LONG = 0.1
_LATEST = 32
_FEWEST = 8
"""Times of evaluation within steps by which it is known how long they usually last."""


class EvaluationMode:
    """`began` is called before the model changes to evaluation mode, `ended` after it has changed back. `within` is
    called in their place, with True and then with False, where that is a part of the steps. `between`: whether an epoch
    is over and the next has not begun, so that nothing can be a part of a step. `besides` is called, before `within` is
    with False, with the seconds that such a time has lasted if those are too many for it."""

    def __init__(
        self,
        steps: Steps,
        began: Callable[[], None],
        ended: Callable[[], None],
        within: Callable[[bool], None],
        between: Callable[[], bool] = lambda: False,
        besides: Callable[[float], None] = lambda seconds: None,
    ) -> None:
        self._steps = steps
        self._between = between
        self._began = began
        self._ended = ended
        self._within = within
        self._besides = besides
        self._since = 0.0
        """When the model came into evaluation mode within a step."""
        self._usual: Deque[float] = deque(maxlen=_LATEST)
        self._model: Any = None
        """The one in evaluation mode; None while it trains."""
        self._in_step: Any = None
        """The same, where that is a part of the steps."""
        self._backwards = steps.own_backwards
        """How many there were when it last began to train."""
        self._thread = threading.get_ident()
        self._patches = Patches()

    def watch(self) -> None:
        self._patches.put(torch.nn.Module, "train", self._watching)

    def give_up(self) -> None:
        """The program trains in evaluation mode: it says nothing there."""
        self._patches.take_off()
        self._model = self._in_step = None

    def _watching(self, original: Any) -> Any:
        models = {id(root) for root in self._steps.roots}  # Which `Steps` holds.

        def train(module: Any, mode: bool = True) -> Any:
            # Every module of the model comes by here, and some trainers say in each step that they train.
            changes = id(module) in models and module.training is not bool(mode)
            if not changes or threading.get_ident() != self._thread:
                return original(module, mode)
            if not mode:
                self._leaves(module)
            made = original(module, mode)
            if mode:
                self._returns(module)
            return made

        return train

    def _leaves(self, model: Any) -> None:
        if self._model is not None or self._in_step is not None:
            return
        before, self._backwards = self._backwards, self._steps.own_backwards
        if self._backwards - before >= RARE or self._between():
            self._model = model
            self._began()
        else:
            self._in_step, self._since = model, now()
            self._within(True)

    def _returns(self, model: Any) -> None:
        before, self._backwards = self._backwards, self._steps.own_backwards
        if model is self._model:
            self._model = None
            self._ended()
        elif model is self._in_step:
            self._in_step = None
            if before == self._backwards:  # It has not trained meanwhile.
                self._heed(now() - self._since)
            self._within(False)

    def _heed(self, lasted: float) -> None:
        """Tell what was longer than evaluations within steps usually are."""
        usual = median(self._usual) if len(self._usual) >= _FEWEST else lasted
        if lasted > max(LONG, MANY_TIMES * usual):
            self._besides(lasted)
        else:
            self._usual.append(lasted)
