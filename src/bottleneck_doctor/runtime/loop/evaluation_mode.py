"""When a program puts its model into evaluation mode (`model.eval()`) in the midst of training, and back.

Between the two it evaluates, shows samples, or collects what it trains on next; no loader need be asked for anything.
`Module.train`, which both calls end in, is watched for as long as the process lives: it is hardly ever called. Programs
that change the mode within every step, to compute labels for instance, are told by its number of backward passes.
"""

from __future__ import annotations

import threading
from typing import Any, Callable

import torch

from ..process.patches import Patches
from .steps import Steps

RARE = 4
"""So many backward passes at least lie between two times, or the change of mode is a part of the steps."""


class EvaluationMode:
    """`began` is called before the model changes to evaluation mode, `ended` after it has changed back. `within` is
    called in their place, with True and then with False, where that is a part of the steps. `between`: whether an epoch
    is over and the next has not begun, so that nothing can be a part of a step."""

    def __init__(
        self,
        steps: Steps,
        began: Callable[[], None],
        ended: Callable[[], None],
        within: Callable[[bool], None],
        between: Callable[[], bool] = lambda: False,
    ) -> None:
        self._steps = steps
        self._between = between
        self._began = began
        self._ended = ended
        self._within = within
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
            self._in_step = model
            self._within(True)

    def _returns(self, model: Any) -> None:
        self._backwards = self._steps.own_backwards
        if model is self._model:
            self._model = None
            self._ended()
        elif model is self._in_step:
            self._in_step = None
            self._within(False)
