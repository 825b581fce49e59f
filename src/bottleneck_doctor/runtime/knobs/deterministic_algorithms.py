"""`deterministic_algorithms`: whether operations give exactly the same result in every run, or fail if they can't. The
effect is checked by torch's own state while the model computes."""

from __future__ import annotations

import sys
from typing import Any, Tuple

import torch

from ..loop.steps import Steps
from ._set_by import told, watch_function
from ._switch import Switch


class DeterministicAlgorithms(Switch):
    name = "deterministic_algorithms"

    def __init__(self) -> None:
        super().__init__()
        self._theirs: Tuple[int, Any] = (0, None)
        """torch's state, and that of its compiler if the program uses it."""

    @classmethod
    def is_on(cls) -> bool:
        return torch.are_deterministic_algorithms_enabled()

    @classmethod
    def watch(cls, steps: Steps) -> None:
        watch_function(steps, cls.name, torch.use_deterministic_algorithms)

    @classmethod
    def facts(cls, steps: Steps, device: str, loader: Any = None) -> Any:
        return {"set_by": told(steps, cls.name)}

    def turn(self, on: bool) -> None:
        # Not by `torch.use_deterministic_algorithms`, which may import the compiler.
        torch.set_deterministic_debug_mode("error" if on else "default")
        self._set_compiler(on)

    def remember(self) -> None:
        self._theirs = (torch.get_deterministic_debug_mode(), self._compiler())

    def turn_back(self) -> None:
        mode, compiler = self._theirs
        torch.set_deterministic_debug_mode(mode)
        self._set_compiler(compiler)

    @staticmethod
    def _compiler() -> Any:
        return getattr(sys.modules.get("torch._inductor.config"), "deterministic", None)

    def _set_compiler(self, on: Any) -> None:
        if on is not None and self._theirs[1] is not None:
            sys.modules["torch._inductor.config"].deterministic = on  # type: ignore[attr-defined]


KNOB = DeterministicAlgorithms
