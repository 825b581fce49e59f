"""`amp-fp16`: forward pass and loss in float16, with gradient scaling."""

from __future__ import annotations

from bottleneck_doctor.fixes._autocast import AUTOCAST_PARTS, propose_autocast
from bottleneck_doctor.fixes._fix import Fix, NotApplicable, Offer
from bottleneck_doctor.runtime.wire.messages import Found


def propose(found: Found) -> Offer | NotApplicable:
    if not found.device.startswith("cuda"):
        return NotApplicable("float16 has no fast units on a CPU; bfloat16 is tried instead")
    if found.rung not in ("optimizer step", "gradient scaler"):
        return NotApplicable("no optimizer step was seen, so there is no place to scale gradients back")
    return propose_autocast(found, "float16")


FIX = Fix(
    id="amp-fp16",
    title="Compute in float16 with gradient scaling (automatic mixed precision)",
    why="Tensor Cores multiply float16 at many times the float32 rate; scaling keeps small gradients from vanishing.",
    source="https://pytorch.org/docs/stable/amp.html#gradient-scaling",
    risk="numerics",
    how="Like amp-bf16, with `torch.float16` and a `torch.amp.GradScaler` around `backward` and `step`.",
    target="compute",
    propose=propose,
    order=51,
    acts_on=AUTOCAST_PARTS,
)
