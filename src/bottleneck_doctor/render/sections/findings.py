"""Why: what the evidence says, weightiest first; each with its line, what to do, and the fixes that answer it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from markupsafe import Markup

from bottleneck_doctor.documents.report import Finding, Result
from bottleneck_doctor.render import bars
from bottleneck_doctor.render.sections import links
from bottleneck_doctor.wording import ranking, words

FIRST = 3
"""Findings shown open; more at once would hide what matters."""


@dataclass(frozen=True)
class Item:
    """One finding as it is drawn. `at_most`: how many times as fast training would be without it, "" where that isn't
    known; `spared`: the same as a sentence. `advised`: whether the verdict says what to do about it. `code`: the user's
    own line, where the line profile read it."""

    anchor: str
    finding: Finding
    title: str
    bar: Markup
    share: float | None
    at_most: str
    spared: str
    advised: bool
    code: str
    answers: list[links.Link]


@dataclass(frozen=True)
class Why:
    """`because`: what says in a sentence why, beside the verdict; None where no finding says more than it does."""

    because: Item | None
    first: list[Item]
    rest: list[Item]


def why(result: Result) -> Why | None:
    """The findings, in the order of the result."""
    items = [
        _item(result, anchor, each) for anchor, each in zip(links.finding_anchors(result), result.findings, strict=True)
    ]
    if not items:
        return None
    told = ranking.reasons(result)[:1]
    because = next((item for item in items if told and item.finding is told[0]), None)
    return Why(because, items[:FIRST], items[FIRST:])


def _item(result: Result, anchor: str, finding: Finding) -> Item:
    # A weight is a rank: only a share that was measured is shown as one.
    share = finding.share if finding.share is not None and math.isfinite(finding.share) else None
    most = ranking.at_most(result, finding)
    return Item(
        anchor=anchor,
        finding=finding,
        title=links.title(finding),
        bar=bars.share_bar(share, "weight") if share is not None else Markup(""),
        share=share,
        at_most=words.at_most_text(most),
        spared=words.spared_text(most),
        advised=ranking.advised(result, finding),
        code=links.source_line(result, finding.site) if finding.site else "",
        answers=links.answers(result, finding),
    )
