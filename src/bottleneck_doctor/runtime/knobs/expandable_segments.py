"""`expandable_segments`: how torch asks a CUDA device for memory, which it reads when it first does so. A process has
to be started with it; here, only what the allocator has counted is told."""

from __future__ import annotations

import os
from typing import Any, Dict, Optional

import torch

from ..loop.steps import Steps
from . import GuestContext, Knob, Refused

NAME = "expandable_segments"
VARIABLES = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")
"""The second is how it was called before torch 2.9, which warns of it."""


class ExpandableSegments(Knob):
    name = NAME

    @classmethod
    def facts(cls, steps: Steps, device: str, loader: Any = None) -> Optional[Dict[str, Any]]:
        if not device.startswith("cuda"):
            return None
        own = next((name for name in VARIABLES if os.environ.get(name)), "")
        if own:
            return {"obstacle": f"already on: `{own}` says how memory is asked for"}
        retries = int(torch.cuda.memory_stats(device).get("num_alloc_retries", 0))
        obstacle = (
            "" if retries else "the device never ran short of memory, so nothing was given back and asked for again"
        )
        return {"obstacle": obstacle, "retries": retries, "variable": variable()}

    def apply(self, value: Any, context: GuestContext) -> None:
        raise Refused("torch reads it when a process first asks for memory")


def variable(version: str = torch.__version__) -> str:
    """The variable that this version of torch reads without a warning."""
    major, minor = (int(part) for part in version.split(".")[:2])
    return VARIABLES[0] if (major, minor) >= (2, 9) else VARIABLES[1]


KNOB = ExpandableSegments
