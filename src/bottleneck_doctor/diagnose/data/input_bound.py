"""`input-bound`: steps wait for their batches, and nothing more is known about why."""

from __future__ import annotations

from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._places import met_in_loading
from bottleneck_doctor.diagnose._rule import GENERAL, MATTERS, TB_PLUGIN, Rule, Statement, waits
from bottleneck_doctor.wording import words


def judge(evidence: Evidence) -> Statement | None:
    wait = evidence.wait or 0.0
    if wait < MATTERS:
        return None
    each = f", {words.duration_text(wait * evidence.step_ms / 1000)} of every step" if evidence.step_ms else ""
    says = f"Training waits for data {words.share_text(wait)} of the time{each}."
    if evidence.found.num_workers == 0:
        says += " The training process makes its batches itself, and does nothing else meanwhile."
    met = met_in_loading(evidence)
    if met is not None:
        says += f" {words.share_text(met.share)} of the samples of its stack that make batches are in {met.text}."
    return Statement(
        sentence=says,
        figures={"data_wait_share": wait},
        weight=wait * evidence.in_steps,
        clause=waits(evidence),
    )


RULE = Rule(
    id="input-bound",
    title="Training waits for data",
    topic="data",
    depth=GENERAL,
    general=True,
    needs=("loader", "wait"),
    judge=judge,
    source=TB_PLUGIN,
    advice="Look at what a batch is made of: the samples, their transforms, and the way to the training process.",
    fixes=("workers", "prefetch-factor", "intra-op-threads"),
    contradicts=("compute-bound",),
)
