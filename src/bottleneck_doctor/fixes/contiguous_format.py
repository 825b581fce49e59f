"""`contiguous-format`: torch's default layout of pictures, where the user has channels-last and it costs more than it
saves."""

from __future__ import annotations

from bottleneck_doctor.fixes._fix import Fix, NotApplicable, Offer, knob_obstacle
from bottleneck_doctor.knobs import contiguous_format
from bottleneck_doctor.runtime.wire.messages import Found


def propose(found: Found) -> Offer | NotApplicable:
    if not found.has_root_module:
        return NotApplicable("no call of a module with trainable parameters was seen")
    return knob_obstacle(found, contiguous_format.NAME) or Offer(({contiguous_format.NAME: True},))


FIX = Fix(
    id="contiguous-format",
    title="Leave the channels-last memory format out",
    why=(
        "Not every machine has faster convolutions for channels-last, and operations that know the other layout only "
        "convert tensors before and after them."
    ),
    source="https://docs.pytorch.org/tutorials/intermediate/memory_format_tutorial.html",
    risk="numerics",
    how="Leave `memory_format=torch.channels_last` out, of the model and of the pictures.",
    target="compute",
    propose=propose,
    order=57,
    undoes=("channels-last",),
)
