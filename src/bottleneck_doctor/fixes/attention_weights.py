"""`attention-weights`: attention that does not return its weights where nobody reads them."""

from __future__ import annotations

from bottleneck_doctor.fixes._fix import Fix, NotApplicable, Offer, told_refusal
from bottleneck_doctor.knobs import attention_weights
from bottleneck_doctor.runtime.wire.messages import Found


def propose(found: Found) -> Offer | NotApplicable:
    unseen = "the model has no `nn.MultiheadAttention` that could be changed"
    return told_refusal(found, attention_weights.NAME, unseen) or Offer(({attention_weights.NAME: False},))


FIX = Fix(
    id="attention-weights",
    title="Leave out attention weights that nobody reads",
    why=(
        "`nn.MultiheadAttention` returns its attention weights by default. For that it computes and keeps a number for "
        "each pair of positions. Without them, torch computes attention in one kernel that keeps none of these, which "
        "pays most with long sequences and on GPUs. On a CPU with dropout, it may be slower."
    ),
    source="https://docs.pytorch.org/docs/stable/generated/torch.nn.MultiheadAttention.html",
    risk="numerics",
    how="Pass `need_weights=False` where the attention layer is called.",
    target="compute",
    propose=propose,
    order=45,
    acts_on=("forward", "backward"),
)
