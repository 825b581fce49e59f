"""`input-bound`: steps wait for their batches, and nothing more is known about why."""

from __future__ import annotations

from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._met import met_in_loading
from bottleneck_doctor.diagnose._rule import GENERAL, MATTERS, TB_PLUGIN, Rule, Statement, milliseconds, waits


def judge(evidence: Evidence) -> Statement | None:
    wait = evidence.wait or 0.0
    if wait < MATTERS:
        return None
    each = f", {milliseconds(wait * evidence.step_ms)} a step" if evidence.step_ms else ""
    says = f"Training {waits(evidence)}{each}."
    if evidence.found.num_workers == 0:
        says += " The training process makes its batches itself, between the steps."
    met = met_in_loading(evidence)
    if met is not None:
        says += met.sentence("making batches")
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
    advice="Look at how a batch is made: fetching samples, transforming them, and handing the batch to the training "
    "process.",
    fixes=(
        "workers",
        "forked-workers",
        "prefetch-factor",
        "intra-op-threads",
        "batched-fetch",
        "cached-samples",
        "cached-inputs",
        "batched-transforms",
        "reduced-decoding",
    ),
    contradicts=("compute-bound",),
)
