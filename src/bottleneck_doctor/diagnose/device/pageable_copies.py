"""`pageable-copies`: batches are copied to the device from memory that is not page-locked."""

from __future__ import annotations

from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._places import line_with
from bottleneck_doctor.diagnose._rule import ORIGIN, Rule, Statement, Unjudged, at, times
from bottleneck_doctor.diagnose.device._copies import TO_DEVICE
from bottleneck_doctor.wording import words

LEAST = 0.02
"""Pinning is worth a statement if copies take this share of a step: if they take less, no fix is tried either
(`speedups.EQUIVALENCE`)."""


def judge(evidence: Evidence) -> Statement | Unjudged | None:
    shares, profile = evidence.shares, evidence.operators
    if shares is None or profile is None:
        return None
    if profile.pageable_copies is None:
        return Unjudged("the profile does not tell what kind of memory copies start from")
    if profile.pageable_copies == 0 or shares.host_to_device < LEAST or profile.steps <= 0:
        return None
    each = profile.pageable_copies / profile.steps
    site = line_with(evidence, TO_DEVICE)
    pinned = (
        "though the loader pins its batches" if evidence.found.pin_memory else "and the loader does not pin batches"
    )
    return Statement(
        sentence=(
            f"{times(each)} {'copy' if each == 1 else 'copies'} a step{at(site)} {'starts' if each == 1 else 'start'} "
            f"from pageable memory, {pinned}. Such a copy goes through a buffer of the driver and makes the host wait. "
            f"All copies to the device take {words.share_text(shares.host_to_device)} of a step."
        ),
        figures={"pageable_copies_per_step": each, "host_to_device_share": shares.host_to_device},
        weight=shares.host_to_device * evidence.in_steps,
        clause=f"spends {words.share_text(shares.host_to_device)} of the time copying, at least partly from "
        f"pageable memory{at(site)}",
        site=site,
    )


RULE = Rule(
    id="pageable-copies",
    title="Copies start from pageable memory",
    topic="device",
    depth=ORIGIN,
    needs=("device", "phases", "operators"),
    judge=judge,
    source="https://pytorch.org/docs/stable/notes/cuda.html#use-pinned-memory-buffers",
    advice="Pass `pin_memory=True` to the DataLoader and `non_blocking=True` to `.to(device)`.",
    fixes=("pinned-memory", "non-blocking-copies"),
)
