"""What knobs need to know about the optimizers of a loop: whether their classes are torch's own, which implementation a
group uses, and why it can't use another. Nothing is changed here."""

from __future__ import annotations

import inspect
from functools import lru_cache
from typing import Any, Callable, Dict, List

import torch

from ..loop.steps import Steps

FUSED = (torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD, torch.optim.Adagrad)
"""Classes that may have a fused implementation, by device and release."""
KNOWN = (
    *FUSED,
    torch.optim.Adadelta,
    torch.optim.Adamax,
    torch.optim.ASGD,
    torch.optim.NAdam,
    torch.optim.RAdam,
    torch.optim.RMSprop,
    torch.optim.Rprop,
)
"""Classes whose step goes through the groups one by one, and uses nothing else of the optimizer that a knob might
change. They call a closure once, before the first group."""
_PLAIN = (torch.Tensor, torch.nn.Parameter)

NO_OPTIMIZER = "no step of a torch optimizer was seen"


def obstacle(steps: Steps, refusal: Callable[[Any], str]) -> str:
    """Why none of the loop's optimizers can be changed, according to `refusal` for each; "" if one can."""
    reasons = [refusal(each) for each in steps.optimizers]
    return "" if "" in reasons else (reasons or [NO_OPTIMIZER])[0]


def unknown(optimizer: Any) -> str:
    """Why it is unknown how this optimizer steps; "" if its class is torch's own and unchanged."""
    kind = type(optimizer)
    if kind not in KNOWN:
        return f"the optimizer is a `{kind.__name__}`, whose step doctor does not know"
    step = inspect.unwrap(kind.step)
    if not str(getattr(step, "__module__", "")).startswith("torch.optim") or not hasattr(kind, "_init_group"):
        return f"the step of `{kind.__name__}` was replaced"
    return ""


def has_tensors(group: Dict[str, Any]) -> bool:
    """Whether a hyperparameter is a tensor, which each implementation treats in its own way."""
    values = [value for name, value in group.items() if name != "params"]
    values += [each for value in values if isinstance(value, (list, tuple)) for each in value]
    return any(isinstance(value, torch.Tensor) for value in values)


def is_foreach(group: Dict[str, Any]) -> bool:
    """Whether the group is stepped with operations on lists of tensors, as written or by torch's default."""
    if group.get("fused") is None and group.get("foreach") is None:
        from torch.optim.optimizer import _default_to_fused_or_foreach

        return bool(_default_to_fused_or_foreach(group["params"], bool(group.get("differentiable")))[1])
    return bool(group.get("foreach"))


def all_plain(parameters: List[Any]) -> bool:
    """Whether these are plain tensors, and their gradients, if any, are dense."""
    return all(type(each) in _PLAIN and (each.grad is None or each.grad.layout is torch.strided) for each in parameters)


def all_fusible(kind: type, parameters: List[Any]) -> bool:
    """Whether this torch has a fused step of this class for every one of the parameters."""
    return all_plain(parameters) and all(
        has_fused(kind, device, dtype) for device, dtype in {(each.device.type, each.dtype) for each in parameters}
    )


@lru_cache(maxsize=None)
def has_fused(kind: Any, device: str, dtype: torch.dtype) -> bool:
    """Whether this torch can step a parameter in this way, which is tried on a new one: the classes got their fused
    implementations in different releases, and for each device in another."""
    if kind not in FUSED or not dtype.is_floating_point:
        return False
    try:
        parameter = torch.zeros(1, device=device, dtype=dtype)
        parameter.grad = torch.zeros_like(parameter)
        made: Any = kind([parameter], lr=0.1, fused=True)
        with torch.no_grad():
            inspect.unwrap(kind.step)(made)  # The hooks on all optimizers are not told.
    except Exception:
        return False
    return True
