"""`no-compile`: what is compiled run operation by operation, where compiling costs more than it saves."""

from __future__ import annotations

from bottleneck_doctor.fixes._fix import Fix, NotApplicable, Offer, knob_obstacle
from bottleneck_doctor.knobs import uncompiled
from bottleneck_doctor.runtime.wire.messages import Found


def propose(found: Found) -> Offer | NotApplicable:
    return knob_obstacle(found, uncompiled.NAME) or Offer(({uncompiled.NAME: True},))


FIX = Fix(
    id="no-compile",
    title="Leave torch.compile out",
    why=(
        "Compiled code checks before each call that it may be used, and is compiled again where a shape is new. If "
        "operations are large already, or shapes vary, that costs more than it saves."
    ),
    source="https://docs.pytorch.org/docs/stable/torch.compiler_faq.html",
    risk="numerics",
    how=(
        "Leave out `torch.compile`, or start the training with `TORCH_COMPILE_DISABLE=1`. In transformers' "
        "`TrainingArguments`, leave out `torch_compile`; in accelerate, `dynamo_backend`."
    ),
    target="compute",
    propose=propose,
    order=61,
    acts_on=("forward", "between", "backward", "optimizer"),
    undoes=("compile",),
)
