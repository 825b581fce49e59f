"""Which of the faster settings the verdict names: the best one, without any change that adds nothing. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from bottleneck_doctor.documents.labels import key_of
from bottleneck_doctor.documents.report import FixOutcome, LadderStep, Risk, Setting, Speedup
from bottleneck_doctor.examine.evidence import Estimates, JudgeEvidence
from bottleneck_doctor.statistics import speedups
from bottleneck_doctor.wording import words

Adds = Callable[[Setting, Setting], bool]
"""Whether the first setting is surely faster than the second, which changes only a part of the same knobs."""


@dataclass(frozen=True)
class Claim:
    """A setting that may be claimed to be faster than the training as written. `fix`: the fix that it belongs to; None
    for several fixes together. `alone`: False if chance explains it among so many that were tried, but not by itself:
    then it may only take the place of a claim that contains it."""

    setting: Setting
    figure: Speedup
    risk: Risk
    fix: str | None = None
    alone: bool = True


def named(claims: Sequence[Claim], adds: Adds) -> Claim | None:
    """The claim that the verdict names; None if there is none.

    It is the claim whose interval has the highest lower end, unless a claim that changes less is as good. Windows of
    the same processes have to show that it is not: each further change is work for the user and may have its own cost,
    so none is recommended because of a random difference. A part that may not be claimed by itself is asked about too.
    It is only asked because what contains it is faster, so it is not one of many that were tried.
    """
    leading = max((each for each in claims if each.alone), key=_lower_end, default=None)
    while leading is not None:
        enough = [
            each for each in claims if _is_part(each.setting, leading) and not adds(leading.setting, each.setting)
        ]
        if not enough:
            return leading
        leading = max(enough, key=_lower_end)
    return None


def _lower_end(claim: Claim) -> float:
    return words.lower_end(claim.figure)


def _is_part(setting: Setting, whole: Claim) -> bool:
    """Whether `whole` changes every knob that `setting` changes, to whatever value, and more."""
    return setting.keys() < whole.setting.keys()


def may_do(leading: Claim, outcomes: Sequence[FixOutcome], adds: Adds) -> FixOutcome | None:
    """The best of the undecided fixes that are a part of what is named, if the rest is not sure to add anything."""
    parts = [
        each
        for each in outcomes
        if each.status == "cannot_tell"
        and each.speedup is not None
        and words.has_interval(each.speedup)
        and each.speedup.estimate > 1 + speedups.EQUIVALENCE
        and _is_part(each.setting, leading)
        and not adds(leading.setting, each.setting)
    ]
    return max(parts, key=lambda each: words.lower_end(each.speedup), default=None)


# -- what may be claimed ----------------------------------------------------------------------------------------------


def claims(
    evidence: JudgeEvidence,
    outcomes: Sequence[FixOutcome],
    surely: Sequence[LadderStep],
    ladder: Sequence[LadderStep],
    estimates: Estimates,
) -> list[Claim]:
    """Everything that may be claimed to be faster, by itself or as a part. `surely`: the rungs that may by
    themselves."""

    def by_itself(setting: Setting) -> bool:
        estimate = estimates.promised[key_of(setting)]
        found = speedups.verdict(
            estimate, adjusted_p=estimate.p_value, floor=estimates.floor, significance=evidence.significance
        )
        return found == "faster"

    made = [
        Claim(outcome.setting, outcome.speedup, outcome.risk, outcome.id, alone=outcome.status == "faster")
        for outcome in outcomes
        if outcome.speedup is not None
        and (outcome.status == "faster" or (outcome.status == "cannot_tell" and by_itself(outcome.setting)))
    ]
    made += [
        Claim(rung.setting, rung.speedup, gravest(evidence, up_to(ladder, rung.setting)), alone=rung in surely)
        for rung in ladder[1:]
        if rung in surely or by_itself(rung.setting)
    ]
    return made


def as_claimed(outcome: FixOutcome) -> FixOutcome:
    """The outcome of an undecided fix that the verdict names in place of a setting that contains it."""
    return replace(outcome, status="faster", reason="", more_blocks=None, settle=None)


def up_to(ladder: Sequence[LadderStep], setting: Setting) -> list[str]:
    """The fixes that make up a setting of the ladder."""
    return [rung.fix for rung in ladder if rung.setting.items() <= setting.items()]


def gravest(evidence: JudgeEvidence, fixes: Sequence[str]) -> Risk:
    """The gravest risk of several fixes."""
    order: tuple[Risk, ...] = ("identical", "order", "numerics", "semantics")
    risks = [candidate.risk for candidate in evidence.candidates if candidate.fix.id in fixes]
    return max(risks, key=order.index, default="identical")
