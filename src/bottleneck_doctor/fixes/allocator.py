"""`allocator`: memory that is kept from step to step, instead of given back to the kernel and asked for again."""

from __future__ import annotations

from bottleneck_doctor.fixes._fix import Fix, NotApplicable, Offer, host_memory_obstacle
from bottleneck_doctor.knobs import allocator, kept_memory
from bottleneck_doctor.runtime.wire.messages import Found


def propose(found: Found) -> Offer | NotApplicable:
    already = host_memory_obstacle(found)
    if already is not None:
        return already
    refused = kept_memory.obstacle(found)
    if refused:
        return NotApplicable(refused)
    # Where nobody knows whether it can be switched, a process is started with it.
    setting = kept_memory.SETTING if refused == "" else allocator.kept({})
    return Offer((setting,), of_kernel=True)


FIX = Fix(
    id="allocator",
    title="Keep memory from step to step",
    why=(
        "At every step, the memory of large tensors on the CPU goes back to the kernel and is asked for again, and the "
        "kernel clears each page of it first."
    ),
    source="https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
    risk="identical",
    how=(
        "Set `MALLOC_MMAP_THRESHOLD_`, `MALLOC_TRIM_THRESHOLD_` and `MALLOC_TOP_PAD_` before Python starts. The "
        "process then keeps as much memory as it ever needed."
    ),
    target="compute",
    propose=propose,
    order=25,
)
