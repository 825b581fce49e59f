"""`channels-last`: the channels of a pixel side by side in memory, as the fastest convolutions take them."""

from __future__ import annotations

from bottleneck_doctor.fixes._fix import Fix, NotApplicable, Offer
from bottleneck_doctor.knobs import channels_last
from bottleneck_doctor.runtime.wire.messages import Found


def propose(found: Found) -> Offer | NotApplicable:
    if not found.has_root_module:
        return NotApplicable("no module with parameters to train was seen to be called")
    facts = found.facts.get(channels_last.NAME)
    if facts is None:
        return NotApplicable("how the model's weights lie in memory could not be seen")
    if not facts["weights"]:
        return NotApplicable("the model has no 2-D convolutions")
    if not facts["contiguous"] and facts["channels_last"]:
        return NotApplicable("already on: the weights of the convolutions lie in channels_last")
    if facts["obstacle"]:
        return NotApplicable(facts["obstacle"])
    if not found.device.startswith(("cpu", "cuda")):
        return NotApplicable("it is known of CPUs and of CUDA devices only")
    return Offer(({channels_last.NAME: True},))


FIX = Fix(
    id="channels-last",
    title="Lay pictures out with channels last",
    why=(
        "The fastest convolutions read the channels of a pixel side by side, so with another layout tensors are put in "
        "order before and behind them, or a slower one is taken."
    ),
    source="https://docs.pytorch.org/tutorials/intermediate/memory_format_tutorial.html",
    risk="numerics",
    how=(
        "Write `model = model.to(memory_format=torch.channels_last)` where the model is made, and the same for the "
        "pictures before each forward pass. Where the model flattens by `view`, write `flatten` or `reshape`."
    ),
    target="compute",
    propose=propose,
    order=47,
)
