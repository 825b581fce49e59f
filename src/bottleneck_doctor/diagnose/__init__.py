"""From evidence to findings: what slows this training down, why, and in which of the user's lines.

An `Evidence` goes in, a `Diagnosis` comes out. Pure. The folders here are themes. A finding is one file in one of them,
which has the finding's id as its name and defines `RULE`. Nothing lists these files: to add a finding, add its file,
its section in docs/findings.md and its case in the tests. A rule that fails, or whose evidence is missing, is listed as
not judged and affects no other rule. Ids are never used again for something else.

Code that several themes need is here; code that one theme needs is in its folder. Themes don't import one another.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType

from bottleneck_doctor.diagnose._evidence import Evidence, missing
from bottleneck_doctor.diagnose._headline import Headline, headline
from bottleneck_doctor.diagnose._order import Said, settle
from bottleneck_doctor.diagnose._rule import Rule, Statement, Unjudged
from bottleneck_doctor.diagnose._run import whole_run
from bottleneck_doctor.documents.report import Finding, FixOutcome, NotJudged

RETIRED_IDS: frozenset[str] = frozenset()
"""Ids of removed findings, so that they are never used for something else."""

NEARLY_ALL = 0.98
"""Of a larger share, nobody says what would be left of the time. Ours: an error of 1 % of the time doubles that."""


@dataclass(frozen=True)
class Diagnosis:
    """Findings, the cause first, and the rules that could not be applied. `clauses`, by id, is for `headline`.

    `of_data`: ids of the findings that say that training waits for its data. `computing`: the part of the time that the
    passes and the optimizer take; None where that is not known.
    """

    findings: list[Finding]
    not_judged: list[NotJudged]
    clauses: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    of_data: frozenset[str] = frozenset()
    computing: float | None = None


@lru_cache
def rules() -> tuple[Rule, ...]:
    """Every rule of every theme, by id."""
    found = (importlib.import_module(name).RULE for theme in themes() for name in _modules(theme))
    return tuple(sorted(found, key=lambda rule: rule.id))


def themes() -> tuple[str, ...]:
    """The folders in which rules are, by name."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__) if module.ispkg))


def _modules(theme: str) -> list[str]:
    """The modules of a theme that hold a rule: those that are not for its own use."""
    package = importlib.import_module(f"{__name__}.{theme}")
    return [f"{package.__name__}.{each.name}" for each in pkgutil.iter_modules(package.__path__) if each.name[0] != "_"]


def diagnose(evidence: Evidence, catalogue: Sequence[Rule] | None = None) -> Diagnosis:
    """Everything that the rules say about this evidence. `catalogue`: other rules than the package's own, for tests."""
    said: list[tuple[Rule, Statement]] = []
    not_judged: list[NotJudged] = []
    for rule in rules() if catalogue is None else catalogue:
        outcome = _applied(rule, evidence)
        if isinstance(outcome, Unjudged):
            not_judged.append(NotJudged(id=rule.id, reason=outcome.reason))
        elif outcome is not None:
            said.append((rule, outcome))
    settled = settle(said)
    findings = [
        Finding(
            id=each.rule.id,
            title=each.rule.title,
            sentence=each.statement.sentence,
            evidence=each.statement.figures,
            fixes=_answers(each.rule, evidence.fixes),
            weight=each.weight,
            share=each.share,
            at_most=_at_most(each, evidence),
            site=each.statement.site,
            advice=each.statement.advice or each.rule.advice,
        )
        for each in settled
    ]
    told = {each.rule.id: each.statement.clause for each in settled if each.rule.told and each.statement.clause}
    of_data = frozenset(each.rule.id for each in settled if each.topic == "data")
    return Diagnosis(findings, not_judged, MappingProxyType(told), of_data, _computing(evidence))


def _at_most(said: Said, evidence: Evidence) -> float | None:
    """How many times as fast training would be without the time that was measured.

    On a device, shares of a step come from windows that wait for the device after each phase, so this would be too low.
    Where nearly all of the time is meant, the rest is known too badly.
    """
    if not said.rule.removable or said.share is None or said.share > NEARLY_ALL:
        return None
    return None if evidence.on_device and said.topic != "epoch" else 1.0 / (1.0 - said.share)


def _computing(evidence: Evidence) -> float | None:
    shares = evidence.shares
    if shares is None:
        return None
    return (shares.forward + shares.backward + shares.optimizer + shares.zero_grad) * evidence.in_steps


def _applied(rule: Rule, evidence: Evidence) -> Statement | Unjudged | None:
    for need in rule.needs:
        reason = missing(need, evidence)
        if reason:
            return Unjudged(reason)
    try:
        return rule.judge(evidence)
    except Exception as error:  # One rule's bug must cost one rule, not the report.
        return Unjudged(f"a bug of doctor's own in this rule: {type(error).__name__}: {error}")


def _answers(rule: Rule, outcomes: Sequence[FixOutcome]) -> list[str]:
    """Fixes for the finding, without those that were measured not to help, or that can't be made here."""
    status = {outcome.id: outcome.status for outcome in outcomes}
    open_ones = [fix for fix in rule.fixes if status.get(fix, "cannot_tell") in ("faster", "cannot_tell")]
    return sorted(open_ones, key=lambda fix: status.get(fix) != "faster")


__all__ = [
    "RETIRED_IDS",
    "Diagnosis",
    "Evidence",
    "Headline",
    "Rule",
    "Statement",
    "Unjudged",
    "diagnose",
    "headline",
    "rules",
    "themes",
    "whole_run",
]
