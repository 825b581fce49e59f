"""`batched_grad_copy`: whether DistributedDataParallel copies all gradients of a bucket at once. The reducer does not
tell, so the effect is checked by the model that makes it."""

from __future__ import annotations

from typing import Any, Optional

from ..loop.steps import Steps
from . import GuestContext
from ._exchange import ReducerOption, exchanging

NAME = "batched_grad_copy"


class BatchedGradCopy(ReducerOption):
    name = NAME

    @classmethod
    def obstacle(cls, steps: Steps, loader: Any = None) -> Optional[str]:
        model = exchanging(steps)
        if model is not None and not hasattr(model, NAME):
            return "this release of torch copies gradients one by one"
        if model is not None and model.batched_grad_copy:
            return "already on: the gradients of a bucket are copied at once"
        return super().obstacle(steps, loader)

    def effect(self, value: Any, context: GuestContext) -> Optional[bool]:
        model = exchanging(context.steps)
        return None if model is None else bool(model.batched_grad_copy) == bool(value)


KNOB = BatchedGradCopy
