"""`written-out-attention`: attention as two products with a softmax between them; torch has one function for it."""

from __future__ import annotations

from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._places import listing_at
from bottleneck_doctor.diagnose._rule import CAUSE, MATTERS, Rule, Statement, at
from bottleneck_doctor.documents.report import DeviceProfile, Site
from bottleneck_doctor.knobs import fused_attention
from bottleneck_doctor.wording import words

SOFTMAX = ("aten::_softmax", "aten::_softmax_backward_data")
"""Not that of `cross_entropy`, which is `aten::_log_softmax`."""
ONE_FUNCTION = "scaled_dot_product"
"""torch's own attention is called so, and may call softmax inside."""
DROPOUT = "aten::bernoulli_"
"""What dropout calls on a CPU, where torch's function takes as long with dropout as attention that is written out."""


def judge(evidence: Evidence) -> Statement | None:
    profile, places = evidence.operators, fused_attention.places(evidence.found)
    if profile is None or profile.seconds <= 0 or not places:
        return None
    called = {each.name for each in profile.operators}
    if not called.issuperset(SOFTMAX) or any(ONE_FUNCTION in name for name in called):
        return None
    if DROPOUT in called and not evidence.on_device:
        return None
    share = _softmax_share(profile, on_device=evidence.on_device)
    if share < MATTERS:
        return None
    site = max((Site(file=each.file, line=each.line) for each in places), key=lambda each: _seconds(evidence, each))
    return Statement(
        sentence=(
            f"Attention is computed in single steps{at(site)}. The softmax over its scores alone takes "
            f"{words.share_text(share)} of a step, forward and backward. torch has one function for all of it, which "
            "need not write the scores to memory."
        ),
        figures={"softmax_share": share},
        weight=share * evidence.in_steps,
        clause=f"computes its attention in single steps{at(site)}",
        site=site,
    )


def _softmax_share(profile: DeviceProfile, *, on_device: bool) -> float:
    """The part of a step that softmax takes, where the model computes."""
    taken = [each for each in profile.operators if each.name in SOFTMAX]
    return sum(each.device_ms if on_device else each.cpu_ms for each in taken) / (1000 * profile.seconds)


def _seconds(evidence: Evidence, site: Site) -> float:
    """How long a line took, as far as it was timed."""
    listing = listing_at(evidence, site)
    lines = () if listing is None else listing.lines
    return next((line.seconds or 0.0 for line in lines if line.line == site.line), 0.0)


RULE = Rule(
    id="written-out-attention",
    title="Attention is computed in single steps",
    topic="rest",
    depth=CAUSE,
    needs=("operators",),
    judge=judge,
    source="https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html",
    advice="Put `torch.nn.functional.scaled_dot_product_attention(q, k, v)` in the place of both products and the "
    "softmax, with `attn_mask=`, `dropout_p=` or `is_causal=True` as your attention has them, unless something reads "
    "the attention weights. It divides by the square root of the width by itself.",
    fixes=("fused-attention",),
)
