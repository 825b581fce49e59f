"""`restarted-workers`: new workers in each epoch, where the user keeps them. It shows what keeping them is worth."""

from __future__ import annotations

from bottleneck_doctor.fixes._fix import Fix, NotApplicable, Offer, is_endless
from bottleneck_doctor.runtime.wire.messages import Found


def propose(found: Found) -> Offer | NotApplicable:
    if not found.has_loader:
        return NotApplicable("no torch DataLoader feeds this loop")
    if not (found.persistent_workers and found.num_workers):
        return NotApplicable("no worker lives on from one epoch to the next")
    if is_endless(found):
        return NotApplicable("this loader's epochs have no known end, so there is nothing to restart")
    return Offer(({"persistent_workers": False},))


FIX = Fix(
    id="restarted-workers",
    title="Start workers anew in each epoch",
    why=(
        "Workers that live on keep their memory between epochs. If epochs are long, starting new ones costs next to "
        "nothing."
    ),
    source="https://pytorch.org/docs/stable/data.html#torch.utils.data.DataLoader",
    risk="identical",
    how="Leave `persistent_workers=True` out.",
    target="data",
    propose=propose,
    order=54,
    undoes=("persistent-workers",),
)
