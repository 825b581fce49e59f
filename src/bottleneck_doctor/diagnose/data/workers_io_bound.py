"""`workers-io-bound`: the process that makes batches waits for storage, a network or a lock more than it computes."""

from __future__ import annotations

from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._places import fetch_site, hottest_loading
from bottleneck_doctor.diagnose._rule import (
    CAUSE,
    PART,
    SYMPTOM,
    Rule,
    Statement,
    Unjudged,
    at,
    clamp,
    of_workers,
    portion,
    training_waits,
    waits,
)
from bottleneck_doctor.diagnose.data._loading import BLOCKED, IO_BOUND, compute_while_busy, limit, waited_making
from bottleneck_doctor.documents.report import Loading
from bottleneck_doctor.wording import words

UNSEEN = "how much the workers compute was not measured"
UNCLEAR = "without workers, waiting can't be told apart from computing here"


def known_to_compute(loading: Loading) -> bool:
    """Whether the process that makes batches reported that it computes, or is ready to, for half of the time or
    more."""
    return loading.computing is not None and loading.computing + (loading.delayed or 0.0) >= IO_BOUND


def judge(evidence: Evidence) -> Statement | Unjudged | None:
    loading, parts, bound = evidence.as_written, waited_making(evidence), limit(evidence)
    if loading is None or parts is None:
        return None
    if bound is None:
        if loading.num_workers == 0:
            return None if known_to_compute(loading) else Unjudged(UNCLEAR)
        return None if compute_while_busy(evidence) is not None else Unjudged(UNSEEN)
    if bound.kind != "io":
        return None
    hot = hottest_loading(evidence)
    site = hot.site if hot is not None and hot.share >= PART else fetch_site(evidence)
    wait = evidence.wait or 0.0
    figures = {"data_wait_share": wait}
    disk = bound.blocked is not None and bound.blocked >= BLOCKED * (wait if loading.num_workers == 0 else 1.0)
    # Being blocked on a disk is measured. Everything else that a process may wait for looks the same from outside.
    what = "at least partly for a disk" if disk else "for storage, a network, a lock or a sleep"
    meaning = f": making a batch is mostly waiting, {what}"
    if loading.num_workers == 0 and disk:
        idle = clamp((bound.blocked or 0.0) / wait)
        says = f"The training process is blocked on a disk {words.share_text(bound.blocked or 0.0)} of the time"
        meaning = f", {portion(idle)} blocked on a disk"
    elif loading.num_workers == 0:
        idle = clamp(1.0 - (bound.compute or 0.0))
        figures["compute_while_busy"] = bound.compute or 0.0
        says = (
            f"While it makes a batch, the training process computes {words.share_text(bound.compute or 0.0)} of the "
            f"time and otherwise waits {what}"
        )
    else:
        assert bound.compute is not None
        idle = clamp(1.0 - bound.compute)
        figures["compute_while_busy"] = bound.compute
        rest = "waits" if loading.num_workers == 1 else "wait"
        says = (
            f"While making batches, {of_workers(loading.num_workers, 'computes', 'each compute')} "
            f"{words.share_text(clamp(bound.compute))} of the time and otherwise {rest} {what}"
        )
    if bound.blocked is not None:
        figures["blocked_share"] = bound.blocked
    # If transforms or collating take the time, they are what waits, and this finding is only their symptom.
    cause = parts.own >= 0.5
    return Statement(
        sentence=f"{says}{at(site)}. {training_waits(evidence)}",
        figures=figures,
        weight=wait * idle * evidence.in_steps,
        measured=False,
        clause=f"{waits(evidence)}{meaning}{at(site)}",
        site=site,
        depth=CAUSE if cause else SYMPTOM,
    )


RULE = Rule(
    id="workers-io-bound",
    title="Making batches is mostly waiting",
    topic="data",
    needs=("loader", "wait", "loading"),
    judge=judge,
    source="https://www.brendangregg.com/usemethod.html",
    advice="Several processes can wait at the same time: use more workers than cores. Or read fewer and larger pieces, "
    "or copy the data to a local disk.",
    fixes=("workers", "prefetch-factor", "cached-samples", "cached-inputs"),
    yields_to=("memory-data-needs-no-workers",),
    contradicts=("compute-bound", "workers-cpu-bound", "oversubscribed-cores"),
)
