"""`ordered-batches`: batches in the order in which they were asked for, where the user takes them as they are ready. It
shows what the latter is worth."""

from __future__ import annotations

from bottleneck_doctor.fixes._fix import Fix, NotApplicable, Offer
from bottleneck_doctor.knobs import in_order
from bottleneck_doctor.runtime.wire.messages import Found


def propose(found: Found) -> Offer | NotApplicable:
    if not found.has_loader:
        return NotApplicable("no torch DataLoader feeds this loop")
    if not found.num_workers or not in_order.is_off(found):
        return NotApplicable("batches come in the order in which they were asked for")
    return Offer(({in_order.NAME: True},))


FIX = Fix(
    id="ordered-batches",
    title="Take batches in their order",
    why=(
        "Batches that come as soon as they are ready come in another order in each run. If they take equally long to "
        "make, nothing is gained by that."
    ),
    source="https://pytorch.org/docs/stable/data.html#torch.utils.data.DataLoader",
    risk="order",
    how="Leave `in_order=False` out.",
    target="data",
    propose=propose,
    order=55,
    undoes=("out-of-order",),
)
