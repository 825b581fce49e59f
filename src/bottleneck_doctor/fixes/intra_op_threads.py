"""`intra-op-threads`: workers, and fewer compute threads so that both find a core."""

from __future__ import annotations

from bottleneck_doctor.fixes._fix import Fix, NotApplicable, Offer, workers_obstacle
from bottleneck_doctor.runtime.wire.messages import Found
from bottleneck_doctor.wording import words


def propose(found: Found) -> Offer | NotApplicable:
    obstacle = workers_obstacle(found)
    if obstacle is not None:
        return obstacle
    if not found.device.startswith("cpu"):
        return NotApplicable("the model computes on a device, so its threads do not compete with the workers")
    threads = max(1, found.usable_cpus // 2)
    if found.threads <= threads:
        return NotApplicable(f"already on: operations use {words.count_text(found.threads, 'thread')}")
    return Offer(({"num_workers": max(found.num_workers, found.usable_cpus), "intra_op_threads": threads},))


FIX = Fix(
    id="intra-op-threads",
    title="Load in workers, and leave cores free for them",
    why="An operation that uses all cores waits for its slowest thread, and a busy worker takes time from one of them.",
    source="https://pytorch.org/docs/stable/notes/cpu_threading_torchscript_inference.html",
    # Sums over another number of threads are added up in another order.
    risk="numerics",
    how="Pass `num_workers=N` to the DataLoader and call `torch.set_num_threads(M)` with N + M near the usable CPUs.",
    target="data",
    propose=propose,
    frees_cpus=True,
    order=15,
)
