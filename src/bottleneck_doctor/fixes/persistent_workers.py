"""`persistent-workers`: keep the worker processes from one epoch to the next."""

from __future__ import annotations

from bottleneck_doctor.fixes._fix import Fix, NotApplicable, Offer, is_endless, workers_obstacle
from bottleneck_doctor.runtime.wire.messages import Found


def propose(found: Found) -> Offer | NotApplicable:
    obstacle = workers_obstacle(found)
    if obstacle is not None:
        return obstacle
    if found.persistent_workers and found.num_workers > 0:
        return NotApplicable("already on")
    if found.made_anew:
        return NotApplicable("the script makes a new loader for every epoch, so its workers can't persist")
    if is_endless(found):
        return NotApplicable("this loader's epochs have no known end, so there is nothing to restart")
    return Offer(({"persistent_workers": True},), with_workers=True)


FIX = Fix(
    id="persistent-workers",
    title="Keep workers between epochs",
    why="Unless workers persist, every epoch starts new ones, which can take a large part of a short epoch.",
    source="https://pytorch.org/docs/stable/data.html#torch.utils.data.DataLoader",
    risk="identical",
    how="Pass `persistent_workers=True` to the DataLoader.",
    target="data",
    propose=propose,
    order=20,
)
