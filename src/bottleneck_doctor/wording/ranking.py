"""The order in which outcomes are told, and the few figures that several outputs need.

A `Result` goes in. Fixes come out best first by the lower end of their interval, because a ranking by estimates would
put luck first (docs/report.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from bottleneck_doctor.documents.report import (
    Change,
    Confirmation,
    Confirmed,
    Finding,
    FixOutcome,
    PeakMemory,
    Preparation,
    Result,
    Setting,
    Speedup,
    Status,
    WorkerPoint,
    Workers,
)
from bottleneck_doctor.knobs import num_workers, of_layer, only_loads
from bottleneck_doctor.statistics.speedups import SESSIONS_OF_A_LARGE_CLAIM
from bottleneck_doctor.wording import words

LIKELY = 0.8
"""Chance from which on a fix is said to be likely to help."""
HARDLY = 0.2
"""Chance below which it is said to hardly help, and is not worth more time."""
TOO_NOISY = 0.2
"""Noise floor from which on it, and not how little was measured, is what keeps everything undecided."""

FOLDED: tuple[Status, ...] = ("no_difference", "slower", "cannot_tell", "not_applicable", "failed")
"""Outcomes told after the faster ones, in this order."""


def ranked(result: Result) -> list[FixOutcome]:
    """The fixes that are faster, best first."""
    return with_status(result, "faster")


def with_status(result: Result, status: Status) -> list[FixOutcome]:
    """The fixes of one status: best first where they were measured, else as the catalogue has them. What is still open
    goes by its chance."""
    chosen = [fix for fix in result.fixes if fix.status == status]
    if status == "cannot_tell":
        return by_chance(chosen)
    return sorted(chosen, key=lambda fix: -words.lower_end(fix.speedup))


def by_chance(fixes: Iterable[FixOutcome]) -> list[FixOutcome]:
    """Fixes that are still open, those first that have the best chance to help; of about equal chances the one that
    seems to bring more. What was never measured comes last, as the catalogue has it. In a report without chances the
    lower end decides, as elsewhere."""

    def place(fix: FixOutcome) -> tuple[bool, float, float]:
        if fix.chance is None or fix.speedup is None or not math.isfinite(fix.speedup.estimate):
            return fix.speedup is None, 0.0, -words.lower_end(fix.speedup)
        return False, -round(fix.chance, 1), -fix.speedup.estimate

    return sorted(fixes, key=place)


def likeliest(fixes: Iterable[FixOutcome]) -> FixOutcome | None:
    """The fix with the best chance to help. Unlike `by_chance`, it tells nearly equal chances apart."""
    return max((fix for fix in fixes if fix.chance is not None), key=lambda fix: fix.chance or 0.0, default=None)


def open_fixes(result: Result) -> list[FixOutcome]:
    """What may help, best chance first, where nothing is known to be faster; none where something is, or in a report
    of an older release, which has no chances."""
    if promise(result) is not None:
        return []
    return [fix for fix in with_status(result, "cannot_tell") if (fix.chance or 0.0) >= HARDLY]


def too_noisy(result: Result) -> bool:
    """Whether noise, and not how little was measured, is what keeps everything undecided."""
    return result.noise is not None and result.noise.floor > TOO_NOISY


def lead_fix(result: Result) -> FixOutcome | None:
    """The fix that the verdict speaks of; else the best one."""
    faster = ranked(result)
    for fix in result.fixes:
        if fix.id == result.verdict.fix and fix.status == "faster":
            return fix
    return faster[0] if faster else None


CONFIRMED: tuple[Confirmed, ...] = ("agrees", "differs")
"""Outcomes of a confirmation in which the program with the change made is faster."""
REFUSED: tuple[Confirmed, ...] = ("not_faster", "failed", "other_loss")
"""Those after which nobody promises what was promised."""


@dataclass(frozen=True)
class Promise:
    """What the verdict promises: the figure that its sentence names, and every edit that this takes. The figure is that
    of the program with the edits made, where it was measured."""

    speedup: Speedup | None
    changes: list[Change]
    setting: Setting
    preparation: Preparation | None = None
    """What it takes once, before training begins."""
    memory: list[PeakMemory] | None = None
    """What it needs beside the training as written, as far as windows tell."""


def promise(result: Result) -> Promise | None:
    """None where nothing is faster, or where the program with the edits made is not."""
    confirmation = result.confirmation
    if confirmation is not None and confirmation.outcome in REFUSED:
        return None
    found = _promise(result)
    if found is None or confirmation is None or confirmation.outcome not in CONFIRMED:
        return found
    return replace(found, speedup=confirmation.speedup)


def _promise(result: Result) -> Promise | None:
    """As windows have it."""
    if result.verdict.together and result.combination is not None:
        whole = result.combination
        return Promise(whole.speedup, whole.changes, whole.setting, whole.preparation, whole.peak_memory)
    lead = lead_fix(result)
    if lead is None:
        return None
    return Promise(lead.speedup, changes_of(lead), lead.setting, lead.preparation, lead.peak_memory)


def together(result: Result) -> list[FixOutcome]:
    """The fixes that are promised together, in the order in which they were added, each with what it sets there; none
    where one fix is promised, or nothing."""
    whole = result.combination
    if whole is None or not result.verdict.together or promise(result) is None:
        return []
    by_id = {fix.id: fix for fix in result.fixes}
    below: Setting = {}
    found = []
    for rung in whole.ladder:
        if rung.fix in by_id and rung.setting.items() <= whole.setting.items():
            added = {name: value for name, value in rung.setting.items() if name not in below or below[name] != value}
            found.append(replace(by_id[rung.fix], setting=added))
            below = rung.setting
    return found


def confirmations(result: Result) -> list[Confirmation]:
    """That of what is promised, and those of what was promised before."""
    now = [] if result.confirmation is None else [result.confirmation]
    return [*now, *(each.confirmation for each in result.refused)]


def refusal(result: Result, fix: FixOutcome) -> Confirmation | None:
    """What the program with a change made says of a fix that contains what it refused; None if it refused none such."""
    refused = [(each.setting, each.confirmation) for each in result.refused]
    promised, confirmation = _promise(result), result.confirmation
    if promised is not None and confirmation is not None and confirmation.outcome in REFUSED:
        refused.append((promised.setting, confirmation))
    return next((why for setting, why in refused if setting and fix.setting.items() >= setting.items()), None)


def changes_of(fix: FixOutcome) -> list[Change]:
    """Every edit that a fix takes; none where no line for it is known."""
    return [] if fix.change is None else [fix.change, *fix.more_changes]


@dataclass(frozen=True)
class Best:
    """The fastest setting that was measured: what it is called and what it is worth."""

    name: str
    speedup: Speedup


def best_measured(result: Result) -> Best | None:
    """What the verdict promises, so that the bar below it says the same; None where nothing is faster."""
    promised = promise(result)
    if promised is None or promised.speedup is None:
        return None
    lead = lead_fix(result)
    name = lead.title if lead is not None else ""
    if result.verdict.together and result.combination is not None:
        made_up_of = [rung for rung in result.combination.ladder if rung.setting.items() <= promised.setting.items()]
        name = words.count_text(len(made_up_of), "fix") + " together"
    worth = promised.speedup
    return Best(name, worth) if math.isfinite(worth.estimate) and worth.estimate > 1 else None


def settings_by_worth(result: Result) -> list[Setting]:
    """The settings that made training faster, the one that the verdict promises first."""
    settings = [fix.setting for fix in ranked(result)]
    together = result.combination
    if together is None or not together.setting:
        return settings
    first = result.verdict.together
    return [together.setting, *settings] if first else [*settings[:1], together.setting, *settings[1:]]


def best_words(result: Result, setting: Setting) -> str:
    """What the column "Best" stands for, in a sentence; "" for the baseline."""
    if not setting:
        return ""
    named = words.setting_code(setting, device(result))
    claimed = [fix.setting for fix in ranked(result)]
    if claimed and result.combination is not None and certain(result.combination.speedup):
        claimed.append(result.combination.setting)
    if setting in claimed:
        return f"Best is {named}."
    return f"Best is {named}, which is not known to be faster than the training as written."


SURE_SESSIONS = SESSIONS_OF_A_LARGE_CLAIM
"""Processes that a claim rests on at least."""


def certain(speedup: Speedup) -> bool:
    """Whether a gain was measured in as many processes as a claim needs, with an interval above 1."""
    return speedup.sessions >= SURE_SESSIONS and words.lower_end(speedup) > 1


def bounded(name: str, setting: Setting, workers: int | None = None) -> bool:
    """Whether the ceiling called `name` bounds this setting: training can't be faster than it there.

    `synthetic`, with data for free, bounds what changes loading alone; autocast may rightly pass it. The others, with
    computing for free, bound what loads as they do: as written, or with this number of `workers`.
    """
    if name == "synthetic":
        return only_loads(setting)
    loads = of_layer(setting, "loader")
    if name == "loader_only":
        return not loads
    return name == "loader_only_best_workers" and workers is not None and num_workers.alone(loads) == workers


def raised(ceiling: Speedup, measured: Iterable[Speedup]) -> Speedup:
    """A ceiling, no lower than what was measured under it: than 1, the training as written, at least.

    It comes from a window or two, and noise can take it below what it bounds.
    """
    least = max([1.0, *(each.estimate for each in measured if math.isfinite(each.estimate))])
    if not math.isfinite(ceiling.estimate) or ceiling.estimate >= least:
        return ceiling
    return replace(ceiling, estimate=least, high=max(ceiling.high, least))


def ceilings(result: Result) -> dict[str, Speedup]:
    """The ceilings, none below what this report shows as measured: a document of an older release may hold such."""
    shown: list[tuple[Setting, Speedup | None]] = []
    for fix in result.fixes:
        shown += [(fix.setting, fix.speedup), (fix.setting, fix.confirmed)]
    together = result.combination
    if together is not None:
        shown += [(together.setting, together.speedup), (together.setting, together.confirmed)]
        shown += [(step.setting, step.speedup) for step in together.ladder]
    points = result.workers.curve if result.workers is not None else []
    shown += [({} if each.is_baseline else num_workers.setting_of(each.num_workers), each.speedup) for each in points]
    return {
        name: raised(each, [worth for setting, worth in shown if worth is not None and bounded(name, setting)])
        for name, each in result.ceilings.items()
        if math.isfinite(each.estimate) and each.estimate > 0
    }


def ceiling(result: Result) -> tuple[str, Speedup] | None:
    """The ceiling of faster loading: data free. Other ceilings bound other things. None where what windows differ by
    explains it: nobody knows then whether faster loading would bring anything."""
    found = ceilings(result).get("synthetic")
    if found is None or (words.has_interval(found) and found.low <= 1 < found.estimate):
        return None
    return "synthetic", found


def best_workers(workers: Workers) -> WorkerPoint | None:
    """The fastest point of the curve by the lower end of its interval; as written where none is above it."""
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


def device(result: Result) -> str:
    """What the training computes on; "" where nothing was measured."""
    return result.baseline.device if result.baseline is not None else ""


def on_cpu(result: Result) -> bool:
    """Whether the training is known to compute on the CPU."""
    return device(result).startswith("cpu")


def reasons(result: Result) -> list[Finding]:
    """The findings that say more than the verdict does, the one that it speaks of first."""
    opening = result.verdict.sentence.partition(". ")[0].rstrip(".")
    said = [each for each in result.findings if each.sentence and not each.sentence.startswith(opening)]
    return sorted(said, key=lambda each: each.id != result.verdict.finding)


def at_most(result: Result, finding: Finding) -> float | None:
    """How many times as fast training would be if what a finding names took no time. None where that is not known, or
    where something was measured that brings more, and so spares other time as well."""
    best = best_measured(result)
    if finding.at_most is None or not math.isfinite(finding.at_most):
        return None
    return None if best is not None and best.speedup.estimate > finding.at_most else finding.at_most


def advised(result: Result, finding: Finding) -> bool:
    """Whether what a finding advises belongs beside the verdict: nothing is promised, or the promise does nothing about
    what the finding names, which is worth more."""
    promised = promise(result)
    if promised is None or not finding.advice:
        return bool(finding.advice)
    answers = [fix.setting for fix in result.fixes if fix.id in finding.fixes and fix.setting]
    acts = any(setting.items() <= promised.setting.items() for setting in answers)
    return not acts and at_most(result, finding) is not None


def not_measured(result: Result) -> list[str]:
    """What this report has no evidence for, in the reader's words."""
    missing: list[tuple[bool, str]] = [
        (result.baseline is None, "The speed of the training as written"),
        (
            "synthetic" not in result.ceilings and not result.without_ceilings,
            f"How fast training would be {words.AT_ONCE}",
        ),
        (
            result.noise is None or result.noise.aa_ratio is None,
            "The control: the training as written, measured against itself",
        ),
        (result.workers is None, "Speed against number of workers"),
        (result.combination is None and len(ranked(result)) > 1, "Fixes together"),
        (result.phases is None, "Where the time of one step goes: forward, backward, optimizer"),
        (result.utilization is None, "CPU, memory, disk and GPU over time"),
        (result.profiles is None, "Which functions and lines take the time"),
    ]
    return [what for absent, what in missing if absent]
