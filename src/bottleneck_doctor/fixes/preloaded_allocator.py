"""`preloaded-allocator`: another library that gives the process its memory, where one is installed."""

from __future__ import annotations

from bottleneck_doctor.fixes._fix import Fix, NotApplicable, Offer, host_memory_obstacle
from bottleneck_doctor.knobs import allocator
from bottleneck_doctor.runtime.wire.messages import Found


def propose(found: Found) -> Offer | NotApplicable:
    already = host_memory_obstacle(found)
    if already is not None:
        return already
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
