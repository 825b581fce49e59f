"""`tensor-cores-idle`: operations that Tensor Cores could do run without them."""

from __future__ import annotations

from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._rule import LARGE, ORIGIN, TB_PLUGIN, Rule, Statement, Unjudged, clamp
from bottleneck_doctor.wording import words

USED = 0.05
"""Tensor Cores count as idle if kernels on them take no more of the kernels' time. `tb_plugin` asks for 0, but a stray
kernel of a library must not hide the rest."""
SAVES = 0.5
"""Part of the eligible kernels' time that counts as saved: Tensor Cores at half precision do at least twice the
work of the other cores (NVIDIA, Train With Mixed Precision)."""


def judge(evidence: Evidence) -> Statement | Unjudged | None:
    profile = evidence.operators
    if profile is None or profile.tensor_core_share is None or profile.tensor_core_eligible_share is None:
        return Unjudged("the profile does not tell which kernels use Tensor Cores")
    if profile.tensor_core_share > USED or evidence.found.autocast:
        return None
    busy = profile.utilization if profile.utilization is not None else 1.0
    weight = clamp(profile.tensor_core_eligible_share * busy * SAVES)
    if weight < LARGE * SAVES:
        return None
    return Statement(
        sentence=(
            "Operations that Tensor Cores could do take "
            f"{words.share_text(profile.tensor_core_eligible_share)} of the kernels' time. Kernels that use Tensor "
            f"Cores take {words.share_text(profile.tensor_core_share)} of it."
        ),
        figures={
            "eligible_share": profile.tensor_core_eligible_share,
            "tensor_core_share": profile.tensor_core_share,
        },
        weight=weight * evidence.in_steps,
        measured=False,
        clause=f"computes {'almost ' if profile.tensor_core_share > 0 else ''}without the device's Tensor Cores",
    )


RULE = Rule(
    id="tensor-cores-idle",
    title="Tensor Cores are idle",
    topic="device",
    depth=ORIGIN,
    needs=("device", "operators"),
    judge=judge,
    source=TB_PLUGIN,
    advice='Train under autocast, or call `torch.set_float32_matmul_precision("high")` to let float32 use them.',
    fixes=("amp-bf16", "amp-fp16", "float32-precision"),
    contradicts=("launch-bound",),
)
