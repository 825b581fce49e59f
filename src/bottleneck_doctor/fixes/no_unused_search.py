"""`no-unused-search`: no look at each step for parameters that it did not use, where it uses all of them."""

from __future__ import annotations

from bottleneck_doctor.fixes._fix import Fix, NotApplicable, Offer, knob_obstacle
from bottleneck_doctor.knobs import find_unused_parameters
from bottleneck_doctor.runtime.wire.messages import Found


def propose(found: Found) -> Offer | NotApplicable:
    return knob_obstacle(found, find_unused_parameters.NAME) or Offer(({find_unused_parameters.NAME: False},))


FIX = Fix(
    id="no-unused-search",
    title="Do not look for unused parameters",
    why=(
        "With `find_unused_parameters=True`, DistributedDataParallel goes through the graph of each step before its "
        "backward pass, and ranks tell one another what they used. No step that was seen left a parameter out."
    ),
    source="https://docs.pytorch.org/docs/stable/notes/ddp.html#internal-design",
    risk="identical",
    how=(
        'Leave `find_unused_parameters=True` out. Lightning calls it `strategy="ddp_find_unused_parameters_true"`, '
        "transformers `ddp_find_unused_parameters`, and accelerate takes `DistributedDataParallelKwargs`. If a step "
        "leaves a parameter out all the same, torch ends the program and says so."
    ),
    target="compute",
    propose=propose,
    order=43,
    acts_on=("communication", "forward", "backward"),
)
