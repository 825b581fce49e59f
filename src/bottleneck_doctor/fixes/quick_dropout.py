"""`quick-dropout`: dropout on the CPU that draws fewer random bits."""

from __future__ import annotations

from bottleneck_doctor.fixes._fix import Fix, Function, NotApplicable, Offer, told_refusal
from bottleneck_doctor.knobs import quick_dropout
from bottleneck_doctor.runtime.wire.messages import Found

DROPOUT: Function = ("torch/nn/functional.py", "dropout")


def propose(found: Found) -> Offer | NotApplicable:
    refused = told_refusal(found, quick_dropout.NAME, "whether the model has dropout could not be seen")
    if refused is not None:
        return refused
    if quick_dropout.of_attention(found):
        return Offer(({quick_dropout.NAME: quick_dropout.ATTENTION},))
    return Offer(({quick_dropout.NAME: True},), within=(DROPOUT,))


FIX = Fix(
    id="quick-dropout",
    title="Draw fewer random bits for dropout",
    why=(
        "On a CPU, torch draws 64 random bits for each value that dropout may drop, on one core and one after another. "
        "In a transformer that can be a quarter of the time. 16 bits are enough: they make a probability wrong by "
        "less than 0.001 %."
    ),
    source="https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.dropout.html",
    risk="identical",
    how=(
        "Put a function in the place of `torch.nn.functional.dropout` that draws 16 bits for each value. It drops "
        "other values than before, as with another seed. Where the model calls `scaled_dot_product_attention`, another "
        "function takes its place, too: with dropout, torch computes it in single steps on a CPU."
    ),
    target="compute",
    propose=propose,
    order=46,
    acts_on=("forward",),
)
