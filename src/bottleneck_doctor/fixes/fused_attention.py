"""`fused-attention`: attention in one function of torch's, in place of two products with a softmax between them."""

from __future__ import annotations

from bottleneck_doctor.fixes._fix import Fix, NotApplicable, Offer, told_refusal
from bottleneck_doctor.knobs import checkpointing, fused_attention
from bottleneck_doctor.runtime.wire.messages import Found


def propose(found: Found) -> Offer | NotApplicable:
    unseen = "no function of the program's own was found to write attention out"
    refused = told_refusal(found, fused_attention.NAME, unseen)
    if refused is not None:
        return refused
    if checkpointing.NAME in found.facts:
        return NotApplicable("activation checkpointing computes its blocks twice, which has to happen in the same way")
    return Offer(({fused_attention.NAME: True},))


FIX = Fix(
    id="fused-attention",
    title="Compute attention in one function",
    why=(
        "Written out as two products with a softmax between them, attention writes a number for each pair of positions "
        "to memory, several times, and reads it again. torch's own function computes all of it in pieces that stay in "
        "the processor's caches."
    ),
    source="https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html",
    risk="numerics",
    how=(
        "Call `torch.nn.functional.scaled_dot_product_attention(q, k, v)`, with `attn_mask=` or `is_causal=True`, "
        "`dropout_p=` and `scale=` as your attention has them. Nothing can read the attention weights then."
    ),
    target="compute",
    propose=propose,
    order=44,
    acts_on=("forward", "backward"),
)
