"""What knobs need to know about the user's modules, and how they change the inputs of these."""

from __future__ import annotations

import sys
from typing import Any, Callable

import torch

_DEPTH = 4
"""How deep nested lists are looked into."""


def is_compiled(module: Any) -> bool:
    """Whether this module is compiled, in place or as a wrapper."""
    return type(module).__name__ == "OptimizedModule" or getattr(module, "_compiled_call_impl", None) is not None


def compiled_graphs() -> int:
    """How many graphs torch has compiled in this process so far."""
    utils = sys.modules.get("torch._dynamo.utils")
    return 0 if utils is None else int(utils.counters["stats"]["unique_graphs"])


def mapped(value: Any, change: Callable[[torch.Tensor], torch.Tensor], depth: int = 0) -> Any:
    """`value` with every tensor in it changed; its lists, tuples and dicts are copied."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if type(value) in (list, tuple) and depth < _DEPTH:
        return type(value)(mapped(each, change, depth + 1) for each in value)
    if type(value) is dict and depth < _DEPTH:
        return {name: mapped(each, change, depth + 1) for name, each in value.items()}
    return value
