"""`checkpointing`: keep activations in memory where there is room, instead of computing them twice."""

from __future__ import annotations

from bottleneck_doctor.fixes._fix import Fix, NotApplicable, Offer
from bottleneck_doctor.knobs import checkpointing
from bottleneck_doctor.runtime.wire.messages import Found


def propose(found: Found) -> Offer | NotApplicable:
    if checkpointing.NAME not in found.facts:
        return NotApplicable("no activation checkpointing was seen in the steps")
    return Offer(({checkpointing.NAME: False},))


FIX = Fix(
    id="checkpointing",
    title="Keep activations instead of computing them twice",
    why=(
        "With activation checkpointing, the backward pass computes much of the forward pass again, to save memory. "
        "Without it, a step does less, if the activations fit into memory."
    ),
    source="https://docs.pytorch.org/docs/stable/checkpoint.html",
    risk="identical",
    how=(
        "Call the function that `torch.utils.checkpoint.checkpoint` wraps directly. In transformers, leave out "
        "`gradient_checkpointing=True` and `gradient_checkpointing_enable()`; TRL's arguments have it on by default, "
        "so give them `gradient_checkpointing=False`. If memory is short, checkpoint fewer blocks."
    ),
    target="compute",
    propose=propose,
    order=43,
    acts_on=("backward",),
)
