"""`static-graph`: no look at each step for parameters that it did not use, where all steps leave out the same ones."""

from __future__ import annotations

from bottleneck_doctor.fixes._fix import Fix, NotApplicable, Offer, knob_obstacle
from bottleneck_doctor.knobs import static_graph
from bottleneck_doctor.runtime.wire.messages import Found


def propose(found: Found) -> Offer | NotApplicable:
    return knob_obstacle(found, static_graph.NAME) or Offer(({static_graph.NAME: True},))


FIX = Fix(
    id="static-graph",
    title="Look for unused parameters only once",
    why=(
        "With `find_unused_parameters=True`, DistributedDataParallel goes through the graph of each step before its "
        "backward pass. All steps that were seen left out the same parameters, so one look is enough."
    ),
    source="https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html",
    risk="identical",
    how=(
        "Pass `static_graph=True` to `DistributedDataParallel`. Lightning's `DDPStrategy` and accelerate's "
        "`DistributedDataParallelKwargs` take the same argument. Each step has to use the same parameters as the first "
        "one, so don't use it if some part of the model is used only now and then."
    ),
    target="compute",
    propose=propose,
    order=45,
    acts_on=("communication", "forward", "backward"),
)
