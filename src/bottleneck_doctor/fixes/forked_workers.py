"""`forked-workers`: fork the workers, where they are spawned, or forked by multiprocessing's server."""

from __future__ import annotations

from bottleneck_doctor.fixes._fix import Fix, NotApplicable, Offer, is_endless, knob_obstacle
from bottleneck_doctor.knobs import num_workers
from bottleneck_doctor.knobs.multiprocessing_context import FORK, NAME
from bottleneck_doctor.runtime.wire.messages import Found

MOST_WORKERS = 8
"""Of those that are tried where no others can be started. Ours."""


def propose(found: Found) -> Offer | NotApplicable:
    if not found.has_loader:
        return NotApplicable("no torch DataLoader feeds this loop")
    if found.start_method in ("", FORK):
        return NotApplicable("already on: workers are forked here")
    obstacle = knob_obstacle(found, NAME)
    if obstacle is not None:
        return obstacle
    if found.open_handle:
        return NotApplicable(f"the dataset holds {found.open_handle}, whose position forked workers would share")
    if found.num_workers == 0 and found.workers_unsafe:
        # What other workers need, the program does not have.
        count = min(found.usable_cpus, MOST_WORKERS)
        return Offer(({**num_workers.setting_of(count), NAME: FORK},))
    if found.num_workers and found.persistent_workers and not found.made_anew:
        return NotApplicable("its workers live on from one epoch to the next, so they are started only once")
    if is_endless(found):
        return NotApplicable("this loader's epochs have no known end, so its workers are started only once")
    return Offer(({NAME: FORK},), with_workers=True)


FIX = Fix(
    id="forked-workers",
    title="Fork the workers",
    why=(
        "A worker that is spawned imports the whole program before its first batch, in every epoch. A forked one is a "
        "copy of the process, and starts at once."
    ),
    source="https://docs.python.org/3/library/multiprocessing.html#contexts-and-start-methods",
    risk="identical",
    how=(
        'Pass `multiprocessing_context="fork"` to the DataLoader. Leave it where the dataset computes on the GPU, or '
        "holds a client with threads or connections of its own."
    ),
    target="data",
    propose=propose,
    order=22,
)
