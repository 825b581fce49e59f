"""`out-of-order`: take batches as they are ready, where they take unequally long to make."""

from __future__ import annotations

from statistics import median

from bottleneck_doctor.fixes._fix import Fix, NotApplicable, Offer, knob_obstacle, workers_obstacle
from bottleneck_doctor.knobs import in_order
from bottleneck_doctor.runtime.wire.messages import Found

FEWEST_BATCHES = 5
"""It takes this many batches to see whether they take equally long. Ours."""
UNEVEN = 2.0
"""One batch in ten has to take this many times the median. Ours: simulated, order then costs 2 % with two workers and
4 % with four; 13 and 30 % where that batch takes five times as long."""


def propose(found: Found) -> Offer | NotApplicable:
    obstacle = workers_obstacle(found) or knob_obstacle(found, in_order.NAME)
    if obstacle is not None:
        return obstacle
    if _even(found):
        return NotApplicable(
            "the batches that were seen take about equally long to make, so none waits long for another"
        )
    return Offer(({in_order.NAME: False},), with_workers=True)


def _even(found: Found) -> bool:
    """Whether batches are seen to take equally long: only where this process makes them, one after the other."""
    waits = found.wait_seconds[1:]  # The first waits for the epoch to begin, too.
    if found.num_workers or len(waits) < FEWEST_BATCHES:
        return False
    return sorted(waits)[int(0.9 * len(waits))] < UNEVEN * median(waits)


FIX = Fix(
    id="out-of-order",
    title="Take batches as soon as they are ready",
    why=(
        "Workers finish batches in another order than they began them if some take longer. Kept in order, finished "
        "batches wait for the slow one, and so does training."
    ),
    source="https://pytorch.org/docs/stable/data.html#torch.utils.data.DataLoader",
    risk="order",
    how=(
        "Pass `in_order=False` to the DataLoader (torch 2.6). Leave it where the order of batches has a meaning, or "
        "where runs with the same seed have to be alike."
    ),
    target="data",
    propose=propose,
    order=35,
)
