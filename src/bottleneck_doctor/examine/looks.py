"""A look at what is known so far, between two processes: is it enough to end the examination?

Pure: the selection and its windows come in, as the judge takes them, and the answer goes out. The judge itself is asked
(`judge.judge`), at a stricter level than it has at the end: whoever looks several times and ends where the figures
please gives luck as many chances (docs/statistics.md, *Ending early*).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from bottleneck_doctor import knobs
from bottleneck_doctor.documents.report import Setting, Speedup
from bottleneck_doctor.examine import judge
from bottleneck_doctor.examine.beside import Beside
from bottleneck_doctor.examine.evidence import TIME_OVER, Estimates, JudgeEvidence
from bottleneck_doctor.examine.judge import Judgement
from bottleneck_doctor.examine.selection import Selection
from bottleneck_doctor.examine.settling import Settling
from bottleneck_doctor.statistics import speedups
from bottleneck_doctor.wording import words

FIRST = speedups.MINIMUM_SESSIONS
"""Processes after which the first look is taken: with fewer nothing is claimed."""
SURE_OF_ESTIMATE = 0.9
"""Part of the estimated speed that the lower end of an interval has to promise, for it to be narrow enough."""
SURE_OF_GAIN = 0.5
"""And part of the estimated gain, which for small gains is more."""
WORTH_WAITING = 1.05
"""How many times as fast as the best a setting has to look for an examination to go on for it. What is nearer to it may
take as many processes again to be told apart, and is hardly worth that."""
MOST_LUCK = 1.25
"""How many times as fast as it looks in one or two processes a setting is taken to be at the most, where its interval
says nothing: identical processes of nets bound by memory were seen to differ by 12 to 17 %."""


def evidence_of(
    selection: Selection,
    beside: Beside | None,
    *,
    other_load: float | None = None,
    cut: str = TIME_OVER,
    significance: float = speedups.SIGNIFICANCE,
    settling: Settling | None = None,
) -> JudgeEvidence:
    """What was gathered, for the judge. The last four as in `JudgeEvidence`."""
    return JudgeEvidence(
        found=selection.found,
        windows=selection.measured.windows,
        candidates=selection.outcomes(),
        rungs=selection.rungs,
        chosen_after=max(1, selection.chosen_after),
        epoch_batches=selection.measured.epoch_batches,
        best_workers=selection.best_workers(),
        beside=beside.observations if beside is not None else (),
        other_load=other_load,
        cut=cut,
        significance=significance,
        settling=settling,
    )


def offered(judged: Judgement) -> tuple[Setting, Speedup] | None:
    """The setting that the verdict offers, with what it is worth; None where nothing is claimed."""
    if judged.verdict.together and judged.combination is not None:
        return judged.combination.setting, judged.combination.speedup
    claimed = (fix for fix in judged.fixes if fix.id == judged.verdict.fix and fix.status == "faster")
    return next(((fix.setting, fix.speedup) for fix in claimed if fix.speedup is not None), None)


def is_enough(evidence: JudgeEvidence, coming: Collection[str]) -> bool:
    """Whether another process would change nothing that a user acts on. Needs a counted window as written.

    Something is claimed, its interval is narrow enough, and nothing that is still measured may beat it; or all is
    decided, and nothing helps. `coming`: the keys of the settings that the next process would measure. Settings that a
    process has to be started with are left out: pairs of their own decide on them, whatever is known here.
    """
    strict = replace(evidence, significance=speedups.INTERIM_SIGNIFICANCE)
    judged = judge.judge(strict)
    best = offered(judged)
    if best is None:
        switched = [fix for fix in judged.fixes if not knobs.of_layer(fix.setting, "session")]
        return all(fix.status not in ("faster", "cannot_tell") for fix in switched)
    _, worth = best
    estimates = Estimates(strict).promised
    return _is_narrow(worth) and not any(_may_beat(estimates.get(key), worth) for key in coming)


def _is_narrow(worth: Speedup) -> bool:
    """Whether it is known well enough what the gain is."""
    low = words.lower_end(worth)
    gain = max(worth.estimate - 1, 0.0)
    return low >= SURE_OF_ESTIMATE * worth.estimate and low >= 1 + SURE_OF_GAIN * gain


def _may_beat(seen: speedups.SpeedupEstimate | None, best: Speedup) -> bool:
    """Whether a setting that is still measured may turn out faster than the best. One that has had the processes which
    a claim needs has to look so, by enough to wait for."""
    if seen is None:
        return True
    if seen.sessions < FIRST:
        return min(seen.high, MOST_LUCK * seen.estimate) > best.estimate
    return seen.estimate > WORTH_WAITING * best.estimate
