"""`amp-bf16`: forward pass and loss in bfloat16."""

from __future__ import annotations

from bottleneck_doctor.fixes._autocast import AUTOCAST_PARTS, propose_autocast
from bottleneck_doctor.fixes._fix import Fix, NotApplicable, Offer
from bottleneck_doctor.runtime.wire.messages import Found


def propose(found: Found) -> Offer | NotApplicable:
    return propose_autocast(found, "bfloat16")


FIX = Fix(
    id="amp-bf16",
    title="Compute in bfloat16 (automatic mixed precision)",
    why="Matrix products and convolutions in bfloat16 move half the bytes, and use faster units if there are any.",
    source="https://pytorch.org/docs/stable/amp.html",
    risk="numerics",
    how="Put the forward pass and the loss under `with torch.autocast(device, dtype=torch.bfloat16):`.",
    target="compute",
    propose=propose,
    order=48,
    device_order=38,
    acts_on=AUTOCAST_PARTS,
)
