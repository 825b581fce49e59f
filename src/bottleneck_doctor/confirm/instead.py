"""What a report promises instead, once the program with the change made has refused its promise. Pure."""

from __future__ import annotations

from dataclasses import replace

from bottleneck_doctor.documents.report import FixOutcome, Refused, Result, Setting
from bottleneck_doctor.wording import promise_words, ranking, words


def instead(result: Result, setting: Setting) -> Result | None:
    """The result with the next best of the faster fixes as its promise, and the refusal kept; None if its confirmation
    refuses nothing, or nothing else is known to be faster. `setting`: what was refused."""
    confirmation = result.confirmation
    if confirmation is None or confirmation.outcome not in ranking.REFUSED:
        return None
    refused = [*result.refused, Refused(setting=setting, confirmation=confirmation)]
    left = [each for each in ranking.ranked(result) if not any(_shares_the_fault(each, one) for one in refused)]
    if not left:
        return None
    best = left[0]
    verdict = result.verdict
    claim = claimed(best, result)
    told = promise_words.refused(setting, confirmation, ranking.device(result))
    sentence = verdict.sentence.replace(told, f"{claim} {told}") if told in verdict.sentence else f"{claim} {told}"
    return replace(
        result,
        verdict=replace(verdict, sentence=sentence, fix=best.id, together=False),
        confirmation=None,
        refused=refused,
    )


def claimed(fix: FixOutcome, result: Result) -> str:
    """What the verdict says of a fix, with its risk, what it takes, and what it depends on."""
    assert fix.speedup is not None
    claim = promise_words.claim(fix.setting, fix.speedup, ranking.device(result))
    others = words.least_other_load(result.method.sessions)
    return " ".join([claim, *promise_words.terms(fix.setting, fix.preparation, fix.risk, others)])


def _shares_the_fault(fix: FixOutcome, refused: Refused) -> bool:
    """Whether a fix contains what was refused; or, where that trained to another loss, the part that changes losses."""
    if fix.setting.items() >= refused.setting.items():
        return True
    part = fix.setting.keys() & refused.setting.keys()
    return refused.confirmation.outcome == "other_loss" and fix.risk in ("numerics", "semantics") and bool(part)
