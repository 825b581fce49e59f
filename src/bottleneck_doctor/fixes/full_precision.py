"""`full-precision`: the forward pass and the loss in float32, where the user has autocast on."""

from __future__ import annotations

from bottleneck_doctor.fixes._autocast import AUTOCAST_PARTS
from bottleneck_doctor.fixes._fix import Fix, NotApplicable, Offer, knob_obstacle
from bottleneck_doctor.knobs import no_autocast
from bottleneck_doctor.runtime.wire.messages import Found


def propose(found: Found) -> Offer | NotApplicable:
    if not found.autocast:
        return NotApplicable("already on: the forward pass runs without autocast")
    return knob_obstacle(found, no_autocast.NAME) or Offer(({no_autocast.NAME: True},))


FIX = Fix(
    id="full-precision",
    title="Compute in float32, without autocast",
    why=(
        "Autocast pays if matrix products are large and the machine has fast units for the smaller type. In small "
        "models, on CPUs without such units and with bfloat16 on GPUs before Ampere, converting tensors costs more "
        "than it saves."
    ),
    source="https://docs.pytorch.org/tutorials/recipes/recipes/amp_recipe.html",
    risk="numerics",
    how=(
        "Pass `enabled=False` to `torch.autocast`, or leave it out. In transformers' `TrainingArguments`, leave out "
        '`bf16` and `fp16`; in Lightning, `precision="32-true"`; in accelerate, `mixed_precision="no"`.'
    ),
    target="compute",
    propose=propose,
    order=52,
    acts_on=AUTOCAST_PARTS,
    undoes=("amp-bf16", "amp-fp16"),
)
