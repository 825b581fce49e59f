"""What exchanges gradients between ranks: DistributedDataParallel, and the part of it that can be made anew.

A model of this kind hands its options to a reducer, which hooks itself into the backward pass. A reducer with other
options can take its place between two steps, as when a pickled model is loaded. The old one then unhooks itself. Each
rank has to do so before the same step, which is where windows begin and end.
"""

from __future__ import annotations

import warnings
from typing import Any, Dict, Optional

from torch.nn.parallel import DistributedDataParallel

from ..loop.steps import Steps
from ..process.compiled import is_compiled_in_place
from . import GuestContext, Knob, Refused

NONE = "no DistributedDataParallel exchanges gradients in this loop"


def exchanging(steps: Steps) -> Any:
    """The one model of the loop whose gradients are exchanged, and whose forward pass runs as written; None if there
    is none or more than one."""
    models = [root for root in steps.roots if isinstance(root, DistributedDataParallel)]
    if len(models) != 1 or is_compiled_in_place(models[0]):
        return None
    return models[0]


def told_by(model: Any) -> Dict[str, Any]:
    """What the model's reducer tells of itself and of a step of late; empty before the first one."""
    told: Dict[str, Any] = model._get_ddp_logging_data()
    return told


UNUSED = "unused_parameter_size"


def note_unused(steps: Steps) -> None:
    """Keep what steps were seen to leave unused: torch notes the bytes of unused parameters for the first ten steps and
    for some later ones, and the order in which all gradients were ready."""
    model = exchanging(steps)
    told = {} if model is None else told_by(model)
    if UNUSED in told:
        seen = told[UNUSED], told.get("prev_iteration_grad_ready_order_indices", "")
        steps.noted.setdefault(UNUSED, set()).add(seen)


def unused_bytes(steps: Steps) -> Optional[int]:
    """The most bytes of parameters that a step was seen to leave unused; None where that was not seen."""
    note_unused(steps)
    return max((count for count, _ in steps.noted.get(UNUSED, ())), default=None)


def uses_always_the_same(steps: Steps) -> bool:
    """Whether all steps that were seen used the same parameters, in the same order."""
    note_unused(steps)
    return len(steps.noted.get(UNUSED, ())) == 1


class ReducerOption(Knob):
    """An option of the reducer: an argument of DistributedDataParallel. As a rule, the model keeps it as an attribute
    of the same name."""

    def __init__(self) -> None:
        self._model: Any = None
        self._own: Any = None

    def kept(self, model: Any) -> Any:
        """What the model keeps of the option."""
        return getattr(model, self.name)

    def wanted(self, model: Any, value: Any) -> Any:
        """What it would keep under this value."""
        return value

    def keep(self, model: Any, kept: Any) -> None:
        """Let the model keep this of the option."""
        setattr(model, self.name, kept)

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
        self._own = self.kept(model)
        wanted = self.wanted(model, value)
        if self._own != wanted:
            self._model = model
            self._make(wanted)

    def revert(self, context: GuestContext) -> None:
        if self._model is not None:
            self._make(self._own)
            self._model = None

    def effect(self, value: Any, context: GuestContext) -> Optional[bool]:
        """The reducer is asked, not the model, whose attribute says what it should be."""
        model = exchanging(context.steps)
        told = None if model is None else told_by(model).get(self.name)
        return None if told is None else bool(told) == bool(value)

    def _make(self, kept: Any) -> None:
        """Give the model a reducer with what it keeps of the option from now on."""
        model = self._model
        self.keep(model, kept)
        parameters, sparse = model._build_params_for_reducer()
        names = model._build_debug_param_to_name_mapping(parameters)
        model._ddp_init_helper(parameters, sparse, names, model.static_graph)
        if model.static_graph:
            model.static_graph = False  # Else torch would think that the new reducer knows.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # That it looks for unused parameters, too, is as written.
                model._set_static_graph()


class SearchOption(ReducerOption):
    """One that depends on what steps leave unused."""

    @classmethod
    def batch_seen(cls, steps: Steps, loader: Any, batch: Any) -> None:
        note_unused(steps)
