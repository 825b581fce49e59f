"""`preloaded-allocator`: another library that gives the process its memory, where one is installed."""

from __future__ import annotations

import os
import sys

from bottleneck_doctor.fixes._fix import Fix, NotApplicable, Offer
from bottleneck_doctor.knobs import allocator
from bottleneck_doctor.runtime.wire.messages import Found


def propose(found: Found) -> Offer | NotApplicable:
    if not found.device.startswith("cpu"):
        return NotApplicable("the model computes on a device, and torch keeps the device's memory by itself")
    if not sys.platform.startswith("linux"):
        return NotApplicable("it works on Linux only")
    chosen = allocator.chosen(os.environ)
    if chosen:
        return NotApplicable(f"already on: `{chosen}` is set")
    others = [name for name in allocator.LIBRARIES if allocator.installed(name) is not None]
    if not others:
        return NotApplicable("neither jemalloc nor tcmalloc is installed here")
    return Offer(tuple({allocator.NAME: value} for value in others), of_kernel=True)


FIX = Fix(
    id="preloaded-allocator",
    title="Let another library give the memory",
    why=(
        "At every step, the memory of large tensors on the CPU goes back to the kernel and is asked for again. "
        "jemalloc and tcmalloc keep it, and share it out among threads with less waiting."
    ),
    source="https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
    risk="identical",
    how="Set `LD_PRELOAD` to the path of `libjemalloc.so` or `libtcmalloc_minimal.so` before Python starts.",
    target="compute",
    propose=propose,
    order=26,
)
