"""`find_unused_parameters`: whether DistributedDataParallel looks for parameters that a step did not use."""

from __future__ import annotations

from bottleneck_doctor.knobs._edits import Argument
from bottleneck_doctor.knobs._spec import KnobSpec

NAME = "find_unused_parameters"
CALLS = ("DistributedDataParallel", "DDP", "DDPStrategy", "DistributedDataParallelKwargs")
"""What takes this argument: torch's class and its usual short name, Lightning's strategy, and accelerate's handler."""
KNOB = KnobSpec(
    name=NAME,
    layer="process",
    edit=Argument(
        said="find_unused_parameters=False",
        otherwise=(
            "leave `find_unused_parameters=True` out where the model is wrapped in `DistributedDataParallel`, or tell "
            "the trainer that wraps it"
        ),
        calls=CALLS,
        given=((NAME, False),),
    ),
    of_trainer=lambda value, found: {"ddp_find_unused_parameters": value},
)
