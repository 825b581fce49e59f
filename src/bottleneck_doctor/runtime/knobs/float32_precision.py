"""`float32_precision`: whether products of float32 matrices may be computed in a shorter type, as after
`torch.set_float32_matmul_precision`. The effect is checked by torch's own state while the model computes.

Since torch 2.9, each backend has a precision of its own besides that one value, and reading the value is an error if
the two contradict each other. So the knob uses the same call as a user would, which keeps both consistent, and restores
each backend's precision afterwards. A program that has set the precision of a backend is left alone.
"""

from __future__ import annotations

from typing import Any, Dict, List, Sequence, Tuple

import torch

from ..loop.steps import Steps
from ._held import Held
from ._set_by import told, watch_function

_read = getattr(torch._C, "_get_fp32_precision_getter", None)
_write = getattr(torch._C, "_set_fp32_precision_setter", None)
"""Precision of one operation of one backend, since torch 2.9: `none` (as the backend's, or everybody's), `ieee`, `tf32`
or `bf16`."""

_PRODUCTS = (("cuda", "matmul"), ("mkldnn", "matmul"))
"""What `torch.set_float32_matmul_precision` sets."""


class Float32Precision(Held):
    name = "float32_precision"

    def __init__(self) -> None:
        super().__init__()
        self._products: List[Tuple[str, str, str]] = []

    @classmethod
    def stands(cls) -> Any:
        if _read is None:
            return torch.get_float32_matmul_precision()
        # Not by the one value, which may not be asked for: a program may have set a backend's own by now.
        device, host = (_read(*product) for product in _PRODUCTS)
        if host == "bf16":
            return "medium"
        return "high" if "tf32" in (device, host) else "highest"

    @classmethod
    def watch(cls, steps: Steps) -> None:
        watch_function(steps, cls.name, torch.set_float32_matmul_precision)

    def put(self, value: Any) -> None:
        torch.set_float32_matmul_precision(value)

    def remember(self) -> None:
        self._before = torch.get_float32_matmul_precision()
        self._products = [(*product, own_precision(*product)) for product in _PRODUCTS if _read is not None]

    def turn_back(self) -> None:
        self.put(self._before)
        for backend, operation, precision in self._products:
            set_precision(backend, operation, precision)

    @classmethod
    def own(cls) -> Any:
        value = cls.stands()
        return value if value != "highest" else None

    @classmethod
    def facts(cls, steps: Steps, device: str, loader: Any = None) -> Dict[str, Any]:
        levels = _levels(device)
        return {
            "levels": levels,
            "matrices": not steps.roots or any(_multiplies(root) for root in steps.roots),
            "double": _double(steps.roots),
            # torch 2.9 warns whoever asks, so it is asked only where it matters.
            "contradictory": bool(levels) and _contradictory(),
            "set_by": told(steps, cls.name),
        }


KNOB = Float32Precision


def own_precision(backend: str, operation: str) -> str:
    """The precision that was set for this operation itself; `none` if it is inherited from its backend or from
    torch."""
    if _read is None:
        return "none"
    precision = str(_read(backend, operation))
    inherited = _read(backend, "all")
    if inherited == "none":
        inherited = _read("generic", "all")
    return "none" if precision == inherited else precision


def set_precision(backend: str, operation: str, precision: str) -> None:
    if _write is not None:
        _write(backend, operation, precision)


def _contradictory() -> bool:
    """Whether the program has set a backend's own precision, and the one value says something else."""
    try:
        torch.get_float32_matmul_precision()
    except RuntimeError:
        return True
    return False


def _levels(device: str) -> List[str]:
    """Precisions below the highest that this device has hardware for, the most precise first."""
    if device.startswith("cuda"):
        tensor_float = torch.version.hip is None and torch.cuda.get_device_capability(torch.device(device)) >= (8, 0)
        return ["high"] if tensor_float else []
    if not device.startswith("cpu") or not torch._C._has_mkldnn or not torch._C._get_mkldnn_enabled():
        return []
    # With other units for bfloat16 alone, oneDNN computes float32 products in float32 whatever it is allowed.
    flags = _cpu_flags()
    levels = ["high"] if "amx_fp16" in flags and _read is not None else []
    if {"amx_tile", "amx_bf16"} <= flags and torch.ops.mkldnn._is_mkldnn_bf16_supported():
        levels.append("medium")
    return levels


def _cpu_flags(path: str = "/proc/cpuinfo") -> "frozenset[str]":
    """Features of the first processor; empty where the system doesn't tell."""
    try:
        with open(path, encoding="ascii", errors="replace") as handle:
            for line in handle:
                name, _, value = line.partition(":")
                if name.strip() in ("flags", "Features"):
                    return frozenset(value.split())
    except OSError:
        pass
    return frozenset()


def _double(roots: Sequence[Any]) -> float:
    """Part of the models' weights, by their number, that are in float64."""
    sizes = [(weight.numel(), weight.dtype) for root in roots for weight in root.parameters()]
    whole = sum(size for size, _ in sizes)
    return sum(size for size, dtype in sizes if dtype is torch.float64) / whole if whole else 0.0


def _multiplies(root: Any) -> bool:
    """Whether one of its layers multiplies float32 matrices; an embedding does not."""
    layers = (each for each in root.modules() if not isinstance(each, (torch.nn.Embedding, torch.nn.EmbeddingBag)))
    weights = (weight for layer in layers for weight in layer.parameters(recurse=False))
    return any(weight.dim() == 2 and weight.dtype is torch.float32 for weight in weights)
