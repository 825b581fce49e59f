"""`needless-exchanges`: gradients are exchanged after every backward pass, although several make one update."""

from __future__ import annotations

from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._rule import CAUSE, MATTERS, Rule, Statement, several
from bottleneck_doctor.wording import words

NEARLY_ALL = 0.9
"""Part of the passes that exchange gradients. Ours: of one pass in each window, nobody knows whether it did."""
SEVERAL = 1.9
"""Passes for an update."""


def judge(evidence: Evidence) -> Statement | None:
    seen, shares = evidence.exchanges, evidence.shares
    if seen is None or shares is None or not seen.updates or seen.exchanged < NEARLY_ALL * seen.passes:
        return None
    if seen.passes < SEVERAL * seen.updates:
        return None
    # Of the last pass in each window nobody knows whether it exchanged anything, so it is not among those seen.
    each = round(seen.passes / seen.updates)
    needless = shares.communication * (1 - 1 / each)
    if needless < MATTERS:
        return None
    return Statement(
        sentence=(
            f"An update takes {several(each, 'backward pass')}, and gradients are exchanged after each of them. That "
            f"takes {words.share_text(shares.communication)} of the time, and one exchange an update is enough."
        ),
        figures={
            "passes_per_update": float(each),
            "communication_share": shares.communication,
            "needless_share": needless,
        },
        weight=needless * evidence.in_steps,
        measured=False,
        clause=f"exchanges gradients {each} times for each update",
    )


RULE = Rule(
    id="needless-exchanges",
    title="Gradients are exchanged more often than they are used",
    topic="rest",
    depth=CAUSE,
    needs=("phases",),
    judge=judge,
    fixes=("no-sync",),
    source="https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html"
    "#torch.nn.parallel.DistributedDataParallel.no_sync",
    advice="Put forward and backward of all batches but the last one before an update under `with model.no_sync():`. "
    "Lightning, transformers and accelerate do so by themselves if they are told to accumulate: "
    "`accumulate_grad_batches`, `gradient_accumulation_steps`, `accelerator.accumulate(model)`.",
)
