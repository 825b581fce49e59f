"""`quick_dropout`: dropout on the CPU that draws 16 random bits for each value. The effect is checked by the number of
calls that drew so. As `attention`, it also takes the place of torch's attention where that drops: then torch computes
it in single steps on a CPU, and drops as everywhere.

torch draws 64 bits for each value on one core, one after another, and compares them with the probability. Where 16 are
drawn, a probability is off by 1/131072 at most.
"""

from __future__ import annotations

from typing import Any, Optional

import torch

from ..loop.steps import Steps
from ..process.patches import Patches
from . import GuestContext, Knob
from ._modules import is_compiled

NAME = "quick_dropout"
FEWEST = 4096
"""With fewer values, torch's own is as quick."""
LEVELS = 65536
"""Numbers that 16 bits can hold; half of them are below 0."""
_functional: Any = torch.nn.functional
_CALLED = "dropout"
ATTENTION = "attention"
_ATTENDS = "scaled_dot_product_attention"


class QuickDropout(Knob):
    name = NAME

    def __init__(self) -> None:
        self._drawn = 0
        self._patches = Patches()

    @classmethod
    def facts(cls, steps: Steps, device: str, loader: Any = None) -> Any:
        modules = [module for root in steps.roots for module in root.modules()]
        if not device.startswith("cpu"):
            return {"obstacle": "the model trains on a device that draws its random numbers at once"}
        if any(map(is_compiled, modules)):
            return {"obstacle": "the model is compiled, and its dropout with it"}
        if getattr(_functional.dropout, "__module__", "") != _functional.__name__:
            return {"obstacle": "already on: the program has a dropout of its own in the place of torch's"}
        if not any(map(_drops, modules)):
            return {"obstacle": "no dropout was found in the model"}
        return {"obstacle": "", "attention": any(map(_attends, modules))}

    def apply(self, value: Any, context: GuestContext) -> None:
        if value:
            self._patches.put(_functional, _CALLED, self._drawing)
        if value == ATTENTION:
            self._patches.put(_functional, _ATTENDS, _in_steps)

    def revert(self, context: GuestContext) -> None:
        self._patches.take_off()

    def effect(self, value: Any, context: GuestContext) -> Optional[bool]:
        return self._drawn > 0 if value else None

    def _drawing(self, original: Any) -> Any:
        def dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
            if not training or not _can_draw(input, p):
                return original(input, p, training, inplace)
            self._drawn += 1
            mask = kept(input, p)
            return input.mul_(mask) if inplace else input * mask

        return dropout


KNOB = QuickDropout


def kept(values: Any, p: float) -> Any:
    """What the values are multiplied by: 0 with probability `p`, and what makes up for that elsewhere."""
    count = values.numel()
    bits = torch.empty(count // 4 + 1, dtype=torch.int64).random_(-(2**63), None).view(torch.int16)
    keep = bits[:count].view(values.shape) >= min(round(p * LEVELS), LEVELS - 1) - LEVELS // 2
    return keep.to(values.dtype).div_(1.0 - p)


def _in_steps(original: Any) -> Any:
    def attention(
        query: Any,
        key: Any,
        value: Any,
        attn_mask: Any = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: Optional[float] = None,
        **more: Any,
    ) -> Any:
        if more or not 0.0 < dropout_p < 1.0 or not _can_draw(query, dropout_p):
            return original(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, **more)
        scores = query @ key.transpose(-2, -1) * (query.size(-1) ** -0.5 if scale is None else scale)
        least = torch.finfo(scores.dtype).min
        if is_causal:
            attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
        # A row of which everything is masked is to be finite.
        if attn_mask is not None and attn_mask.dtype is torch.bool:
            scores = scores.masked_fill(~attn_mask, least)
        elif attn_mask is not None:
            scores = (scores + attn_mask.to(scores.dtype)).clamp_min(least)
        return _functional.dropout(scores.softmax(-1), dropout_p) @ value

    return attention


def _attends(module: Any) -> bool:
    """Whether a module may call torch's attention: it is torch's own, says so by the settings of transformers, or calls
    it in its own forward pass."""
    if isinstance(module, torch.nn.MultiheadAttention):
        return True
    code = getattr(type(module).forward, "__code__", None)
    called = code is not None and _ATTENDS in code.co_names
    return called or getattr(getattr(module, "config", None), "_attn_implementation", "") == "sdpa"


def _drops(module: Any) -> bool:
    """Whether a module is a dropout that drops, or calls the function in its own forward pass."""
    if isinstance(module, torch.nn.Dropout):
        return 0.0 < module.p < 1.0
    forward = type(module).forward
    code, known = getattr(forward, "__code__", None), getattr(forward, "__globals__", {})
    if code is None or _CALLED not in code.co_names or type(module).__module__.startswith("torch."):
        return False
    # `self.dropout` is a module of its own.
    return callable(known.get(_CALLED)) or any(
        name == "functional" or known.get(name) is _functional for name in code.co_names
    )


def _can_draw(values: Any, p: Any) -> bool:
    return (
        type(values) in (torch.Tensor, torch.nn.Parameter)
        and 0.0 < p < 1.0
        and values.device.type == "cpu"
        and values.layout is torch.strided
        and not values.is_nested
        and values.is_floating_point()
        and values.numel() >= FEWEST
        and not torch.compiler.is_compiling()
    )
