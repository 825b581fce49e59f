"""`channels-last`: the channels of a pixel side by side in memory, as the fastest convolutions take them."""

from __future__ import annotations

from bottleneck_doctor.fixes._fix import Fix, NotApplicable, Offer
from bottleneck_doctor.knobs import channels_last
from bottleneck_doctor.runtime.wire.messages import Found


def propose(found: Found) -> Offer | NotApplicable:
    if not found.has_root_module:
        return NotApplicable("no call of a module with trainable parameters was seen")
    facts = found.facts.get(channels_last.NAME)
    if facts is None:
        return NotApplicable("the memory layout of the model's weights could not be seen")
    if not facts["weights"]:
        return NotApplicable("the model has no 2-D convolutions")
    if not facts["contiguous"] and facts["channels_last"]:
        return NotApplicable("already on: the weights of the convolutions are in channels_last")
    if facts["obstacle"]:
        return NotApplicable(facts["obstacle"])
    if not found.device.startswith(("cpu", "cuda")):
        return NotApplicable("it is known to work on CPUs and CUDA devices only")
    return Offer(({channels_last.NAME: True},))


FIX = Fix(
    id="channels-last",
    title="Use the channels-last memory format",
    why=(
        "The fastest convolutions need the channels of a pixel next to each other in memory. With another layout, "
        "tensors are converted before and after them, or a slower convolution is used."
    ),
    source="https://docs.pytorch.org/tutorials/intermediate/memory_format_tutorial.html",
    risk="numerics",
    how=(
        "Write `model = model.to(memory_format=torch.channels_last)` where the model is made, and the same for the "
        "pictures before each forward pass. Where the model flattens with `view`, write `flatten` or `reshape`."
    ),
    target="compute",
    propose=propose,
    order=47,
)
