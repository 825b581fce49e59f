"""`sharing-strategy`: workers hand tensors over by name, where a batch has many of them."""

from __future__ import annotations

from bottleneck_doctor.fixes._fix import Fix, NotApplicable, Offer, knob_obstacle, workers_obstacle
from bottleneck_doctor.knobs import sharing_strategy
from bottleneck_doctor.runtime.wire.messages import Found
from bottleneck_doctor.wording import words

MANY = 8
"""Tensors of a batch from which on it may matter. Each takes the training process 0.2 ms by file on a machine of ours,
and 0.07 ms by name."""


def propose(found: Found) -> Offer | NotApplicable:
    obstacle = workers_obstacle(found) or knob_obstacle(found, sharing_strategy.NAME)
    if obstacle is not None:
        return obstacle
    if found.own.get(sharing_strategy.NAME) == sharing_strategy.BY_NAME:
        return NotApplicable("already on: tensors are shared by name")
    if found.start_method not in ("", "fork"):
        return NotApplicable("workers are not forked here, so they would not know of it")
    tensors = sharing_strategy.tensors(found)
    if tensors is None:
        return NotApplicable("which tensors a batch has could not be seen")
    if tensors < MANY:
        counted = words.count_text(tensors, "tensor") if tensors else "no tensors"
        return NotApplicable(f"a batch has {counted}, and it pays where there are many")
    return Offer(({sharing_strategy.NAME: sharing_strategy.BY_NAME},), with_workers=True)


FIX = Fix(
    id="sharing-strategy",
    title="Hand tensors over by name",
    why=(
        "For each tensor of a batch, a worker offers an open file, and the training process asks for it over a new "
        "connection. By name, it opens the tensor's memory itself. That pays where a batch has many tensors."
    ),
    source="https://docs.pytorch.org/docs/stable/multiprocessing.html#sharing-strategies",
    risk="identical",
    how=(
        'Call `torch.multiprocessing.set_sharing_strategy("file_system")` before training begins. It also needs fewer '
        "open files. If all processes are killed at once, shared memory may be left behind in /dev/shm."
    ),
    target="data",
    propose=propose,
    order=21,
)
