"""`written-out-attention`: attention as two products with a softmax between them, where torch has one kernel for it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._rule import CAUSE, MATTERS, Rule, Statement, at
from bottleneck_doctor.documents.report import DeviceProfile, LineListing, Site
from bottleneck_doctor.wording import words

SOFTMAX = re.compile(r"softmax\w*\(|\battend\(")
"""How programs call it: as a function, a method, or a module of theirs. The code is searched one function at a time."""
PRODUCT = re.compile(r"(?<=[\w\])])\s*@\s*(?=[\w(])|\b(matmul|bmm|baddbmm|einsum)\(")
SOFTMAX_OPERATORS = ("aten::_softmax", "aten::_softmax_backward_data")
"""Not the one of `cross_entropy`, which is `aten::_log_softmax`."""
KERNEL = "scaled_dot_product"
"""torch's own attention is called so, and may take the same operators inside."""
DROPOUT = "aten::bernoulli_"
"""What dropout that drops something calls on a CPU, where torch's attention has no kernel with dropout."""


def judge(evidence: Evidence) -> Statement | None:
    profile = evidence.operators
    if profile is None or profile.seconds <= 0 or evidence.lines is None:
        return None
    called = {each.name for each in profile.operators}
    if not called.issuperset(SOFTMAX_OPERATORS) or any(KERNEL in name for name in called):
        return None
    share = _softmax_share(profile, on_device=evidence.on_device)
    places = list(_written_out(evidence.lines.listings, dropping=DROPOUT in called and not evidence.on_device))
    if share < MATTERS or not places:
        return None
    _, site = max(places, key=lambda each: each[0])
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
    taken = [each for each in profile.operators if each.name in SOFTMAX_OPERATORS]
    return sum((each.device_ms or 0.0) if on_device else each.cpu_ms for each in taken) / (1000 * profile.seconds)


def _written_out(listings: list[LineListing], *, dropping: bool) -> Iterator[tuple[float, Site]]:
    """The lines with the softmax of functions that compute attention, and the seconds of each such line.

    `dropping`: leave out those that drop some of what the softmax gives.
    """
    for listing in listings:
        text = "\n".join(line.text for line in listing.lines)
        for found in SOFTMAX.finditer(text):
            after = text[found.end() :]
            products = [match.start() for match in PRODUCT.finditer(text)]
            if len(products) < 2 or products[-1] < found.end() or (dropping and "drop" in after):
                continue
            line = listing.lines[text.count("\n", 0, found.start())]
            yield line.seconds or 0.0, Site(file=listing.path, line=line.line)


RULE = Rule(
    id="written-out-attention",
    title="Attention is computed in single steps",
    topic="rest",
    depth=CAUSE,
    needs=("operators", "profile"),
    judge=judge,
    source="https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html",
    advice="Put `torch.nn.functional.scaled_dot_product_attention(q, k, v)` in the place of both products and the "
    "softmax, with `attn_mask=`, `dropout_p=` or `is_causal=True` as your attention has them, unless something reads "
    "the attention weights. It divides by the square root of the width by itself. In transformers, pass "
    '`attn_implementation="sdpa"`. `doctor try --edit` measures what that brings.',
)
