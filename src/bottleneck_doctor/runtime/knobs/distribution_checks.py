"""`distribution_checks`: whether distributions of `torch.distributions` check the values that they are given, when they
are made and when they are asked how likely a sample is. The effect is checked by torch's own default while the model
computes.
"""

from __future__ import annotations

from typing import Any, Dict

import torch

from ..loop.steps import Steps
from ..process.patches import Patches
from ._held import Held
from ._modules import any_is_compiled

NAME = "distribution_checks"
_Distribution: Any = torch.distributions.Distribution


class DistributionChecks(Held):
    name = NAME

    @classmethod
    def stands(cls) -> Any:
        return bool(_Distribution._validate_args)

    def put(self, value: Any) -> None:
        _Distribution.set_default_validate_args(value)

    @classmethod
    def watch(cls, steps: Steps) -> None:
        steps.noted[NAME] = _Made(steps)

    @classmethod
    def facts(cls, steps: Steps, device: str, loader: Any = None) -> Dict[str, Any]:
        made = steps.noted.pop(NAME, None)
        if made is None:
            return {}
        made.patches.take_off()
        if not cls.stands():
            # torch switches them off for good when it first compiles something.
            return {"obstacle": "already off: `torch.distributions.Distribution.set_default_validate_args(False)`"}
        if any_is_compiled(steps):
            return {"obstacle": "the model is compiled, and its distributions may be with it"}
        if not made.checked:
            return {"obstacle": "no distribution was made in the steps that were seen, or none that checks its values"}
        return {"obstacle": ""}


KNOB = DistributionChecks


class _Made:
    """`checked`: how many distributions were made in steps that check their values since torch does so by default."""

    def __init__(self, steps: Steps) -> None:
        self.checked = 0
        self.patches = Patches()
        self._steps = steps
        self.patches.put(_Distribution, "__init__", self._counting)

    def _counting(self, original: Any) -> Any:
        def __init__(made: Any, *args: Any, **kwargs: Any) -> None:
            asked = args[2] if len(args) > 2 else kwargs.get("validate_args")
            self.checked += self._steps.started is not None and asked is None and bool(made._validate_args)
            original(made, *args, **kwargs)

        return __init__
