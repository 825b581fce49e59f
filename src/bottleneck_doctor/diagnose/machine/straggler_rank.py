"""`straggler-rank`: one of several processes makes the others wait."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict
from statistics import fmean, median

from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._rule import CAUSE, MATTERS, Rule, Statement, clamp
from bottleneck_doctor.diagnose._usage import PLAIN_MODES
from bottleneck_doctor.wording import words

WORK = (("host_to_device",), ("forward",), ("backward",), ("optimizer", "zero_grad"), ("between",))
"""Phases in which a rank may be slow; first those in which ranks seldom wait for each other. Nearly all such waiting is
in the backward pass, where gradients are exchanged. It is called communication if it can be told apart from computing
gradients."""
DOING = {
    "host_to_device": "copying to the device",
    "forward": "in the forward pass",
    "backward": "in the backward pass",
    "optimizer": "in the optimizer",
    "between": "between the passes",
}
MIRRORED = 0.5
"""If one rank takes longer, the others must be seen to wait for at least this part of the difference."""


def judge(evidence: Evidence) -> Statement | None:
    # All ranks make the same number of steps. So a slow rank shows in the phase that holds it up, not in its speed.
    waits = _wait_shares(evidence)
    slowest, lost = _furthest(waits)
    if lost >= MATTERS:
        return _statement(evidence, slowest, waits, lost, "waiting for data", "data_wait")
    phases = _phase_shares(evidence)
    told_apart = any(each["communication"] > 0 for each in phases.values())
    waiting = {rank: each["communication" if told_apart else "backward"] for rank, each in phases.items()}
    for names in WORK:
        if names == ("backward",) and not told_apart:
            continue
        shares = {rank: sum(each[name] for name in names) for rank, each in phases.items()}
        slowest, lost = _furthest(shares)
        # If the others do not wait longer by as much, they wait for something else.
        mirrored = -_beyond(slowest, waiting)
        if lost >= MATTERS and mirrored >= MIRRORED * lost:
            return _statement(evidence, slowest, shares, lost, DOING[names[0]], names[0])
    return None


def _statement(
    evidence: Evidence, slowest: int, shares: Mapping[int, float], lost: float, doing: str, phase: str
) -> Statement:
    others = _others(slowest, shares)
    hosts = {rank.rank: rank.host for rank in evidence.ranks}
    where = f" on {words.visible(hosts[slowest])}" if len(set(hosts.values())) > 1 and slowest in hosts else ""
    lost = clamp(lost)
    return Statement(
        sentence=(
            f"Rank {slowest}{where} spends {words.share_text(shares[slowest])} of the time {doing}, the others "
            f"{words.share_text(others)}. All ranks wait for the slowest, so all lose {words.share_text(lost)} of the "
            "time."
        ),
        figures={f"slowest_{phase}_share": shares[slowest], f"others_{phase}_share": others, "rank": float(slowest)},
        weight=lost * evidence.in_steps,
        clause=f"loses {words.share_text(lost)} of the time waiting for rank {slowest}",
        topic="data" if phase == "data_wait" else "host",
    )


def _wait_shares(evidence: Evidence) -> dict[int, float]:
    """Part of the time that each rank waits for data as written, from windows without phase timers."""
    shares: dict[int, list[float]] = defaultdict(list)
    for window in evidence.windows:
        if not window.setting and window.mode in PLAIN_MODES and window.status == "ok":
            for part in window.parts:
                if part.seconds > 0:
                    shares[part.rank].append(part.wait_seconds / part.seconds)
    return {rank: fmean(values) for rank, values in shares.items()}


def _phase_shares(evidence: Evidence) -> dict[int, dict[str, float]]:
    """Phases of a step as written, of each rank."""
    seen: dict[int, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for window in evidence.windows:
        for part in window.parts:
            if part.phases is not None and not window.setting:
                for name, share in asdict(part.phases).items():
                    seen[part.rank][name].append(share)
    return {rank: {name: fmean(values) for name, values in phases.items()} for rank, phases in seen.items()}


def _furthest(shares: Mapping[int, float]) -> tuple[int, float]:
    """The rank with the largest share, and how far it lies above the others."""
    if len(shares) < 2:
        return 0, 0.0
    rank = max(shares, key=lambda each: shares[each])
    return rank, _beyond(rank, shares)


def _beyond(rank: int, shares: Mapping[int, float]) -> float:
    return shares[rank] - _others(rank, shares) if rank in shares and len(shares) > 1 else 0.0


def _others(rank: int, shares: Mapping[int, float]) -> float:
    return median(share for each, share in shares.items() if each != rank)


RULE = Rule(
    id="straggler-rank",
    title="One rank holds up the others",
    topic="data",
    depth=CAUSE,
    needs=("ranks",),
    judge=judge,
    source="https://pytorch.org/docs/stable/notes/ddp.html",
    advice="Look at what is different for this rank: its share of the data, other programs on its cores, logging.",
)
