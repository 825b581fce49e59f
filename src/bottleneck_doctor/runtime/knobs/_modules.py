"""What knobs need to know about the user's modules, and how they change the inputs of these."""

from __future__ import annotations

import math
import re
import sys
from typing import Any, Callable, Dict, List

import torch

from ..loop.model_methods import model_methods
from ..loop.steps import Steps
from ..process.compiled import is_compiled_in_place
from ..process.patches import Patches

_VERSION = re.compile(r"\d+/\d+(?=: )")
"""What torch calls a compiled version of a function, before the reason why it does not fit."""
_DEPTH = 4
"""How deep nested lists are looked into."""


def is_compiled(module: Any) -> bool:
    """Whether this module is compiled, in place or as a wrapper."""
    return type(module).__name__ == "OptimizedModule" or is_compiled_in_place(module)


def any_is_compiled(steps: Steps) -> bool:
    """Whether a module of the models that train is compiled."""
    return any(is_compiled(module) for root in steps.roots for module in root.modules())


def patch_methods(patches: Patches, steps: Steps, replacement: Callable[[Any], Any]) -> None:
    """Put replacements in the place of methods that the loop calls in place of its model. A compiled model is left
    whole: what it calls is a part of its graph."""
    if not any(map(is_compiled, steps.roots)):
        for kind, name in model_methods(steps):
            patches.put(kind, name, replacement)


def recompiled() -> List[Dict[str, Any]]:
    """The functions that torch had to compile again in this process: `name`, `file`, `line`, how many `times`, and the
    last `reason` in torch's words. The one that was compiled most often comes first."""
    utils = sys.modules.get("torch._dynamo.utils")
    found: List[Dict[str, Any]] = []
    for code, noted in list((getattr(utils, "guard_failures", None) or {}).items()):
        reasons = [str(each) for each in noted]
        if not reasons:
            continue
        # Each time, torch notes a reason for every version that there is: one the first time, two the second.
        versions = [match and match[0] for match in map(_VERSION.match, reasons)]
        times = versions.count(versions[0]) if versions[0] else int((math.sqrt(8 * len(reasons) + 1) - 1) / 2)
        name = getattr(code, "co_qualname", code.co_name)
        last = _VERSION.sub("", reasons[-1], count=1).lstrip(": ").split("\n")[0]
        place = {"name": name, "file": code.co_filename, "line": code.co_firstlineno}
        found.append({**place, "times": times, "reason": last[:500]})
    return sorted(found, key=lambda each: -each["times"])


def most_versions() -> int:
    """How many versions of a function torch compiles before it gives the function up."""
    config = sys.modules.get("torch._dynamo.config")
    # Before torch 2.6 it has the other name only.
    return int(getattr(config, "recompile_limit", getattr(config, "cache_size_limit", 8)))


def mapped(value: Any, change: Callable[[torch.Tensor], torch.Tensor], depth: int = 0) -> Any:
    """`value` with every tensor in it changed; its lists, tuples and dicts are copied."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if type(value) in (list, tuple) and depth < _DEPTH:
        return type(value)(mapped(each, change, depth + 1) for each in value)
    if type(value) is dict and depth < _DEPTH:
        return {name: mapped(each, change, depth + 1) for name, each in value.items()}
    return value
