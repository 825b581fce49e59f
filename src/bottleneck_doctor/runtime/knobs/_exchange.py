"""What exchanges gradients between ranks: DistributedDataParallel, and the part of it that can be made anew.

A model of this kind hands its options to a reducer, which hooks itself into the backward pass. A reducer with other
options can take its place between two steps, as when a pickled model is loaded. The old one then unhooks itself. Each
rank has to do so before the same step, which is where windows begin and end.
"""

from __future__ import annotations

from typing import Any, Dict, Optional

from torch.nn.parallel import DistributedDataParallel

from ..loop.steps import Steps
from . import GuestContext, Knob, Refused

NONE = "no DistributedDataParallel exchanges gradients in this loop"


def exchanging(steps: Steps) -> Any:
    """The one model of the loop whose gradients are exchanged, and whose forward pass runs as written; None if there
    is none or more than one."""
    models = [root for root in steps.roots if isinstance(root, DistributedDataParallel)]
    if len(models) != 1 or getattr(models[0], "_compiled_call_impl", None) is not None:
        return None
    return models[0]


def told_by(model: Any) -> Dict[str, Any]:
    """What the model's reducer tells of itself and of a step of late; empty before the first one."""
    told: Dict[str, Any] = model._get_ddp_logging_data()
    return told


class ReducerOption(Knob):
    """An option of the reducer: an argument of DistributedDataParallel, and an attribute of the same name."""

    def __init__(self) -> None:
        self._model: Any = None
        self._own: Any = None

    @classmethod
    def obstacle(cls, steps: Steps, loader: Any = None) -> Optional[str]:
        model = exchanging(steps)
        if model is None:
            return NONE
        if getattr(model, "static_graph", False):
            return "the model was made with `static_graph=True`, and what it has seen of its first step would be lost"
        if getattr(model, "_use_python_reducer", False) or getattr(model, "mixed_precision", None) is not None:
            return "the model exchanges gradients in a way of its own"
        if getattr(model, "_delay_all_reduce_params", None) or told_by(model).get("comm_hook"):
            return "a communication hook of the program's exchanges gradients"
        if getattr(getattr(model, "_join_config", None), "enable", False):
            return "ranks may run out of batches at different times (`join`)"
        return ""

    def apply(self, value: Any, context: GuestContext) -> None:
        model = exchanging(context.steps)
        if model is None:
            raise Refused(NONE)
        self._own = getattr(model, self.name)
        if self._own != value:
            self._model = model
            self._make(value)

    def revert(self, context: GuestContext) -> None:
        if self._model is not None:
            self._make(self._own)
            self._model = None

    def effect(self, value: Any, context: GuestContext) -> Optional[bool]:
        """The reducer is asked, not the model, whose attribute says what it should be."""
        model = exchanging(context.steps)
        told = None if model is None else told_by(model).get(self.name)
        return None if told is None else bool(told) == bool(value)

    def _make(self, value: Any) -> None:
        """Give the model a reducer whose option has this value."""
        model = self._model
        setattr(model, self.name, value)
        parameters, sparse = model._build_params_for_reducer()
        names = model._build_debug_param_to_name_mapping(parameters)
        model._ddp_init_helper(parameters, sparse, names, model.static_graph)
