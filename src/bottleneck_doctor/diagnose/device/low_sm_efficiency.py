"""`low-sm-efficiency`: kernels run, but many of the device's processors have nothing to do."""

from __future__ import annotations

from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._rule import CAUSE, TB_PLUGIN, Rule, Statement, Unjudged, clamp
from bottleneck_doctor.wording import words

LOW = 0.5
"""If the estimated SM efficiency, relative to the time in which kernels run, is below this, more than half of the
multiprocessors are empty. Ours; `tb_plugin` computes the figure in the same way."""
BUSY = 0.5
"""Kernels must run for this part of the time. If they run less, the reason for that matters more."""


def judge(evidence: Evidence) -> Statement | Unjudged | None:
    profile = evidence.operators
    if profile is None or profile.sm_efficiency is None or profile.utilization is None:
        return Unjudged("the profile gives no SM efficiency")
    if profile.utilization < BUSY or profile.utilization <= 0:
        return None
    relative = clamp(profile.sm_efficiency / profile.utilization)
    if relative >= LOW:
        return None
    figures = {"sm_efficiency": relative, "utilization": profile.utilization}
    occupancy = ""
    if profile.occupancy is not None:
        figures["occupancy"] = profile.occupancy
        occupancy = f" Busy multiprocessors hold {words.share_text(profile.occupancy)} of the warps that fit on them."
    return Statement(
        sentence=(
            f"Kernels run {words.share_text(profile.utilization)} of the time, but keep only an estimated "
            f"{words.share_text(relative)} of the device's multiprocessors busy.{occupancy}"
        ),
        figures=figures,
        weight=profile.utilization * (1.0 - relative) * evidence.in_steps,
        measured=False,
        clause=f"keeps only {words.share_text(relative)} of the device's multiprocessors busy",
    )


RULE = Rule(
    id="low-sm-efficiency",
    title="The device is only partly used",
    topic="device",
    depth=CAUSE,
    needs=("device", "operators"),
    judge=judge,
    source=TB_PLUGIN,
    advice="Give the device more at once: a larger batch, or layers wide enough to fill it.",
)
