"""`threads`: another number of compute threads, with or without a loader.

`intra-op-threads` turns the same knob for another reason: it makes room for workers that it adds.
"""

from __future__ import annotations

from bottleneck_doctor.fixes._fix import Fix, NotApplicable, Offer
from bottleneck_doctor.knobs import intra_op_threads
from bottleneck_doctor.runtime.wire.messages import Found


def propose(found: Found) -> Offer | NotApplicable:
    if not found.device.startswith("cpu"):
        return NotApplicable("the model computes on a device, where the number of CPU threads does not matter")
    usable = found.usable_cpus
    counts = sorted({1, max(1, usable // 2), usable} - {found.threads})
    if not counts:
        return NotApplicable("already on: there is one usable CPU, and operations use one thread")
    return Offer(tuple({intra_op_threads.KNOB.name: count} for count in counts))


FIX = Fix(
    id="threads",
    title="Compute with another number of threads",
    why=(
        "An operation waits for the slowest of its threads. Small operations are often faster with one thread. More "
        "threads than usable CPUs, which are the default in a container with a CPU limit, hold one another up."
    ),
    source="https://pytorch.org/docs/stable/notes/cpu_threading_torchscript_inference.html",
    risk="numerics",
    how="Call `torch.set_num_threads(N)` before training begins.",
    target="compute",
    propose=propose,
    order=52,
)
