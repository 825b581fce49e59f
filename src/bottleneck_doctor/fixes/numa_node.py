"""`numa-node`: all threads on the cores of one node, near the memory that they compute on."""

from __future__ import annotations

import os

from bottleneck_doctor.fixes._fix import Fix, NotApplicable, Offer
from bottleneck_doctor.knobs import numa_node
from bottleneck_doctor.runtime.wire.messages import Found


def propose(found: Found) -> Offer | NotApplicable:
    if not found.device.startswith("cpu"):
        return NotApplicable("the model computes on a device")
    chosen = numa_node.chosen(os.environ)
    if chosen:
        return NotApplicable(f"already on: `{chosen}` says where threads stay")
    nodes = numa_node.nodes()
    if len(nodes) < 2:
        return NotApplicable("the cores that it may use have one memory, equally near to all of them")
    largest = max(nodes, key=lambda node: node.cores)
    return Offer(({numa_node.NAME: largest.value(found.threads)},))


FIX = Fix(
    id="numa-node",
    title="Compute on the cores of one node",
    why=(
        "Memory of a large machine is in several nodes, each near to some of the cores. Threads all over the machine "
        "reach for memory of other nodes, and wait longer for it than for their own."
    ),
    source="https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
    risk="numerics",
    how=(
        "Start the training with `OMP_PLACES`, `OMP_PROC_BIND=true` and `OMP_NUM_THREADS` for the cores of one node, "
        "or by `numactl --cpunodebind=0 --membind=0 python train.py`. Another training can have the other node."
    ),
    target="compute",
    propose=propose,
    order=27,
    acts_on=("forward", "backward", "optimizer"),
)
