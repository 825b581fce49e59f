"""`flush-denormal`: numbers next to 0 taken as 0, where a processor computes slowly with them."""

from __future__ import annotations

from bottleneck_doctor.fixes._fix import Fix, NotApplicable, Offer, told_refusal
from bottleneck_doctor.knobs import flush_denormal
from bottleneck_doctor.runtime.wire.messages import Found


def propose(found: Found) -> Offer | NotApplicable:
    refused = told_refusal(found, flush_denormal.NAME, "whether the model computes with such numbers could not be seen")
    return refused or Offer(({flush_denormal.NAME: True},))


FIX = Fix(
    id="flush-denormal",
    title="Take numbers next to 0 as 0",
    why=(
        "float32 holds numbers below 1.2e-38 with fewer digits than others (denormal). Many processors are a hundred "
        "times as slow with them, and they turn up by themselves: in gradients that vanish over long sequences, in "
        "weights that decay, in an optimizer's averages of gradients that have stopped."
    ),
    source="https://docs.pytorch.org/docs/stable/generated/torch.set_flush_denormal.html",
    risk="numerics",
    how=(
        "Call `torch.set_flush_denormal(True)` at the top of the script: only threads that torch starts after that "
        "have it, too."
    ),
    target="compute",
    propose=propose,
    order=45,
    acts_on=("forward", "backward", "optimizer", "between", "zero_grad"),
)
