"""Interim looks between two processes: is what is known enough to end the examination?

Pure: the selection and its windows come in, and the answer goes out. The judge itself is asked (`judge.judge`), at a
stricter level than at the end. Each look at which measuring may end is another chance for a false claim, and the
stricter level makes up for that (docs/statistics.md, *Ending early*).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from bottleneck_doctor import knobs
from bottleneck_doctor.documents.labels import key_of
from bottleneck_doctor.documents.report import Setting, Speedup
from bottleneck_doctor.examine import judge
from bottleneck_doctor.examine.beside import Beside
from bottleneck_doctor.examine.doubt import Doubt
from bottleneck_doctor.examine.evidence import TIME_OVER, Estimates, JudgeEvidence
from bottleneck_doctor.examine.judge import Judgement
from bottleneck_doctor.examine.likeliest import LARGE
from bottleneck_doctor.examine.selection import WORTH_IT, Selection
from bottleneck_doctor.examine.settling import Settling
from bottleneck_doctor.measure import pauses
from bottleneck_doctor.statistics import speedups
from bottleneck_doctor.wording import words

FIRST = speedups.SESSIONS_OF_A_LARGE_CLAIM
"""Processes before the first look: with fewer, nothing is claimed."""
PATIENT = 5
"""Processes in which a quiet machine decides everything that a noisy one may never decide."""
MOSTLY_BETWEEN = 0.5
"""Where more than this part of the time goes by between epochs, as few processes as a claim takes are enough for that:
whatever steps gain there, the training as a whole gains little."""
SURE_OF_ESTIMATE = 0.9
"""An interval is narrow enough if its lower end is at least this part of the estimated speed,"""
SURE_OF_LARGE_ESTIMATE = 0.85
"""(this part if the speed is `VERY_LARGE` or more: nobody acts otherwise for 2.2 times than for 2.5)"""
VERY_LARGE = 1.5
SURE_IF_CONFIRMED = 0.8
"""(this part if the speed is `TWICE` that of the training as written or more, and the program with the change made is
measured next, whose figure takes the place of this one)"""
TWICE = 2.0
SURE_OF_GAIN = 0.5
"""and at least this part of the estimated gain. For small gains, the second condition is the stricter one."""
SURE_OF_TIME = 0.02
"""Instead of the first condition, the time of a step that is left may be known this well, as a part of the time as
written. So a gain of a hundred times need not be told from one of fifty."""
HARDLY_LEFT = 0.05
"""If the best setting leaves no more than this part of the time as written, nothing else is waited for."""
WORTH_WAITING = 1.05
"""The examination goes on for a setting that looks faster than the best one by this factor, and by more than would save
`SURE_OF_TIME`. To tell smaller differences apart may take as many processes again, and is hardly worth that. Beside a
large gain, the factor is `WORTH_IT`: an examination of the changed program can tell what less than that is worth."""
MOST_LUCK = 1.25
"""If a setting was measured in only one or two processes, its interval says little. Then its true speed is taken to be
at most this many times its estimate: identical processes of networks bound by memory differed by 12 to 17 %."""


def evidence_of(
    selection: Selection,
    beside: Beside | None,
    *,
    other_load: float | None = None,
    least_other_load: float | None = None,
    cut: str = TIME_OVER,
    significance: float = speedups.SIGNIFICANCE,
    settling: Settling | None = None,
    entrypoint: Sequence[str] = (),
) -> JudgeEvidence:
    """What was gathered, for the judge. The last four arguments are those of `JudgeEvidence`."""
    return JudgeEvidence(
        found=selection.found,
        windows=selection.measured.windows,
        candidates=selection.outcomes(),
        rungs=selection.ladder.claimable(selection.measured),
        chosen_after=max(1, selection.chosen_after),
        epoch_batches=selection.measured.epoch_batches,
        best_workers=selection.best_workers(),
        beside=beside.observations if beside is not None else (),
        other_load=other_load,
        least_other_load=least_other_load,
        cut=cut,
        significance=significance,
        settling=settling,
        entrypoint=entrypoint,
    )


def offered(judged: Judgement) -> tuple[Setting, Speedup] | None:
    """The setting that the verdict names, as windows measured it, with its speedup; None if nothing is claimed."""
    return None if judged.claimed is None else (judged.claimed.setting, judged.claimed.figure)


class Look:
    """What is known by now. Needs a counted window as written."""

    def __init__(self, evidence: JudgeEvidence) -> None:
        self._evidence = replace(evidence, significance=speedups.INTERIM_SIGNIFICANCE, edits=False)
        self._judged = judge.judge(self._evidence)
        self._best = offered(self._judged)

    @property
    def large(self) -> tuple[Setting, Speedup] | None:
        """The setting that is claimed, with its speedup, if the gain is large and most of it is sure, whatever may beat
        it. The program with that change made says more of it than another process would."""
        best = self._best
        return best if best is not None and best[1].estimate >= LARGE and _is_mostly_sure(best[1]) else None

    def is_enough(self, coming: Mapping[str, Setting], *, confirms: bool = False) -> bool:
        """Whether another process would change nothing that a user acts on.

        That is so in two cases. Either something is claimed, its interval is narrow enough, and nothing that is still
        measured may beat it. Or everything is decided, and nothing helps; from `PATIENT` processes on, it is enough
        that what is not decided has hardly a chance to make the training as a whole much faster. `coming`: the settings
        that the next process would measure, by key. Settings that a process has to be started with don't count here:
        pairs of processes decide about them. `confirms`: whether the program with the claimed change made is measured
        next.
        """
        if self._best is None:
            switched = [fix for fix in self._judged.fixes if not knobs.of_layer(fix.setting, "session")]
            still_open = [fix for fix in switched if fix.status in ("faster", "cannot_tell")]
            mostly_between = pauses.share(self._evidence.windows) > MOSTLY_BETWEEN
            patience = speedups.MINIMUM_SESSIONS if mostly_between else PATIENT
            if len({window.session for window in self._evidence.windows}) < patience:
                return not still_open
            doubt = Doubt(self._evidence, Estimates(self._evidence))
            return not any(fix.status == "faster" or doubt.worth_waiting(fix) for fix in still_open)
        named, worth = self._best
        estimates = Estimates(self._evidence)
        beaten = any(_may_beat(estimates, setting, named, worth) for setting in coming.values())
        return _is_narrow(worth, confirms=confirms) and not beaten


def _is_narrow(worth: Speedup, *, confirms: bool) -> bool:
    """Whether the gain is known well enough."""
    low = words.lower_end(worth)
    if low <= 0:
        return False
    share = SURE_OF_LARGE_ESTIMATE if worth.estimate >= VERY_LARGE else SURE_OF_ESTIMATE
    share = SURE_IF_CONFIRMED if confirms and worth.estimate >= TWICE else share
    narrow = low >= share * worth.estimate or 1 / low - 1 / worth.estimate <= SURE_OF_TIME
    return narrow and _is_mostly_sure(worth)


def _is_mostly_sure(worth: Speedup) -> bool:
    return words.lower_end(worth) >= 1 + SURE_OF_GAIN * max(worth.estimate - 1, 0.0)


def _may_beat(estimates: Estimates, setting: Setting, named: Setting, best: Speedup) -> bool:
    """Whether a setting that is still measured may turn out faster than the best one, which is `named`, by so much that
    it matters. If it already has the processes that a claim needs, it has to look faster by as much as is worth waiting
    for. So does one that changes more than the best one, beside that one in the same processes: what these did to one
    of them, they did to the other.
    """
    if 1 / best.estimate <= HARDLY_LEFT or setting == named:
        return False
    least = WORTH_IT if best.estimate >= LARGE else WORTH_WAITING
    seen = estimates.promised.get(key_of(setting))
    if seen is None:
        expected = _expected(estimates, setting, named)
        return expected is None or (expected > least and _saves(expected * best.estimate, best))
    added = estimates.over(setting, named) if named.items() < setting.items() else None
    if added is not None:
        return added.estimate > least and _saves(added.estimate * best.estimate, best)
    if seen.sessions < speedups.MINIMUM_SESSIONS:
        speed = min(seen.high, MOST_LUCK * seen.estimate)
        return speed > best.estimate and _saves(speed, best)
    return seen.estimate > least * best.estimate and _saves(seen.estimate, best)


def _expected(estimates: Estimates, setting: Setting, named: Setting) -> float | None:
    """How many times as fast as what is named a setting is expected to be that was not measured: as many as each of its
    parts adds to what is named, by windows of the same processes. None if a part was not measured there, or if the
    setting is no more than what is named with parts added."""
    if not named.items() <= setting.items():
        return None
    added = [estimates.over({**named, name: value}, named) for name, value in setting.items() if name not in named]
    known = [each.estimate for each in added if each is not None]
    return math.prod(known) if added and len(known) == len(added) else None


def _saves(speed: float, best: Speedup) -> bool:
    """Whether a speed saves more than `SURE_OF_TIME` beside the best one."""
    return 1 / best.estimate - 1 / speed > SURE_OF_TIME
