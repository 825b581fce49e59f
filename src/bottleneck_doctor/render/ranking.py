"""The order in which outcomes are told, and the few figures that several outputs need.

A `Result` goes in. Fixes come out best first by the lower end of their interval, because a ranking by estimates would
put luck first (docs/report.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from bottleneck_doctor.render import words
from bottleneck_doctor.result import (
    Change,
    Combination,
    Finding,
    FixOutcome,
    Result,
    Setting,
    Speedup,
    Status,
    WorkerPoint,
    Workers,
)

FOLDED: tuple[Status, ...] = ("no_difference", "slower", "cannot_tell", "not_applicable", "failed")
"""Outcomes told after the faster ones, in this order."""


def ranked(result: Result) -> list[FixOutcome]:
    """The fixes that are faster, best first."""
    return with_status(result, "faster")


def with_status(result: Result, status: Status) -> list[FixOutcome]:
    """The fixes of one status: best first where they were measured, else as the catalogue has them."""
    chosen = [fix for fix in result.fixes if fix.status == status]
    return sorted(chosen, key=lambda fix: -words.lower_end(fix.speedup))


def lead_fix(result: Result) -> FixOutcome | None:
    """The fix that the verdict speaks of; else the best one."""
    faster = ranked(result)
    for fix in result.fixes:
        if fix.id == result.verdict.fix and fix.status == "faster":
            return fix
    return faster[0] if faster else None


@dataclass(frozen=True)
class Promise:
    """What the verdict promises: the figure that its sentence names, and every edit that this takes."""

    speedup: Speedup | None
    changes: list[Change]


def promise(result: Result) -> Promise | None:
    """None where nothing is faster."""
    if result.verdict.together and result.combination is not None:
        return Promise(result.combination.speedup, result.combination.changes)
    lead = lead_fix(result)
    return None if lead is None else Promise(lead.speedup, [] if lead.change is None else [lead.change])


def combined_speedup(combination: Combination) -> Speedup:
    """The confirmed figure of a combination where there is one."""
    return combination.confirmed or combination.speedup


@dataclass(frozen=True)
class Best:
    """The fastest setting that was measured: what it is called and what it is worth."""

    name: str
    speedup: Speedup


def best_measured(result: Result) -> Best | None:
    """The combination or the single fix with the higher lower end; None where nothing is faster."""
    found = [Best(fix.title, fix.speedup) for fix in ranked(result)[:1] if fix.speedup is not None]
    if result.combination is not None and len(result.combination.ladder) > 1:
        found.append(Best(f"{len(result.combination.ladder)} fixes together", combined_speedup(result.combination)))
    found = [best for best in found if math.isfinite(best.speedup.estimate) and best.speedup.estimate > 1]
    return max(found, key=lambda best: words.lower_end(best.speedup), default=None)


def settings_by_worth(result: Result) -> list[Setting]:
    """The settings that made training faster, the best measured one first."""
    settings = [fix.setting for fix in ranked(result)]
    best, together = best_measured(result), result.combination
    if together is None or not together.setting:
        return settings
    first = best is not None and best.speedup is combined_speedup(together)
    return [together.setting, *settings] if first else [*settings[:1], together.setting, *settings[1:]]


def ceiling(result: Result) -> tuple[str, Speedup] | None:
    """The ceiling that bounds training as written: data free. Other ceilings bound other things."""
    found = result.ceilings.get("synthetic")
    return None if found is None or not math.isfinite(found.estimate) or found.estimate <= 0 else ("synthetic", found)


def best_workers(workers: Workers) -> WorkerPoint | None:
    """The fastest point of the curve by the lower end of its interval."""
    points = [point for point in workers.curve if _drawable(point)]
    return max(points, key=lambda point: (words.lower_end(point.speedup), point.speedup.estimate), default=None)


def knee(workers: Workers) -> WorkerPoint | None:
    """The fewest workers that reach 95 % of the best speed: more of them buy little."""
    best = best_workers(workers)
    if best is None:
        return None
    enough = [p for p in workers.curve if _drawable(p) and p.samples_per_second >= 0.95 * best.samples_per_second]
    return min(enough, key=lambda point: point.num_workers, default=None)


def _drawable(point: WorkerPoint) -> bool:
    return math.isfinite(point.samples_per_second) and point.samples_per_second >= 0


def reasons(result: Result) -> list[Finding]:
    """The findings that say more than the verdict does, the one that it speaks of first."""
    opening = result.verdict.sentence.partition(". ")[0].rstrip(".")
    said = [each for each in result.findings if each.sentence and not each.sentence.startswith(opening)]
    return sorted(said, key=lambda each: each.id != result.verdict.finding)


def not_measured(result: Result) -> list[str]:
    """What this report has no evidence for, in the reader's words."""
    missing: list[tuple[bool, str]] = [
        (result.baseline is None, "The speed of the training as written"),
        ("synthetic" not in result.ceilings, "How fast training would be if data were free"),
        (result.noise is None or result.noise.aa_ratio is None, "The control: the baseline against itself"),
        (result.workers is None, "Speed against number of workers"),
        (result.combination is None and len(ranked(result)) > 1, "Fixes together"),
        (result.phases is None, "Where the time of one step goes: forward, backward, optimizer"),
        (result.utilization is None, "CPU, memory, disk and GPU over time"),
        (result.profiles is None, "Which functions and lines take the time"),
    ]
    return [what for absent, what in missing if absent]
