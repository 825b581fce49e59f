"""The losses that backward passes begin with, kept by reference and read when nothing is being timed."""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

import torch

MOST = 1000
"""Losses that are kept until somebody reads them; later ones are passed over."""
LARGEST = 4096
"""Bytes of what a loss is a view of. Keeping a loss would keep all of that in memory."""


class Losses:
    """Keeps losses while `wanted`, which is a matter of a microsecond for each: nothing waits for a device."""

    def __init__(self) -> None:
        self.wanted = False
        self._kept: List[Tuple[int, torch.Tensor, int]] = []

    def note(self, step: int, tensors: Any) -> None:
        """A backward pass begins from `tensors` in this step. It counts if that is one number."""
        loss = tensors[0] if isinstance(tensors, (list, tuple)) and len(tensors) == 1 else tensors
        if len(self._kept) >= MOST or not isinstance(loss, torch.Tensor) or loss.numel() != 1:
            return
        if loss.untyped_storage().nbytes() <= LARGEST:
            self._kept.append((step, loss.detach(), loss._version))

    def read(self) -> List[List[float]]:
        """`[step, loss]` of each step since the last time; the mean, where a step had several backward passes."""
        # What was written into since then has another value now.
        kept = [(step, loss) for step, loss, version in self._kept if loss._version == version]
        self._kept = []
        try:
            # One copy from the device for all of them.
            values = torch.stack([loss.reshape(()).float() for _, loss in kept]).tolist() if kept else []
        except Exception:
            return []  # Losses on several devices, or of a kind of tensor that can't be copied.
        by_step: Dict[int, List[float]] = {}
        for (step, _), value in zip(kept, values):
            by_step.setdefault(step, []).append(value)
        return [[float(step), sum(each) / len(each)] for step, each in by_step.items()]
