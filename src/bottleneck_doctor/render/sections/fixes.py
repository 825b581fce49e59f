"""The fixes: cards of the faster ones, folded groups of the rest, and the ladder of fixes together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from markupsafe import Markup

from bottleneck_doctor.documents.report import Confirmation, FixOutcome, LadderStep, Result, Setting, Speedup, Status
from bottleneck_doctor.render import bars, patches
from bottleneck_doctor.render.sections import links
from bottleneck_doctor.render.sections.applying import Applying, applying
from bottleneck_doctor.wording import doubt, ranking, words

HARDLY_TITLE = "Unlikely to help"
UNMEASURED_TITLE = "Not measured yet"


@dataclass(frozen=True)
class Card:
    """One faster fix as it is drawn."""

    anchor: str
    rank: int
    fix: FixOutcome
    bar: Markup
    reasons: list[links.Link]
    applying: Applying | None
    refusal: Confirmation | None
    """What the program with the change made says against it."""


@dataclass(frozen=True)
class OpenCard:
    """One fix that may help as it is drawn: how likely it is, and what it looked like."""

    anchor: str
    fix: FixOutcome
    band: str
    percent: str
    looked: str
    mark: Markup
    applying: Applying | None


@dataclass(frozen=True)
class Row:
    """One fix that is not faster, with its interval where it was measured."""

    anchor: str
    fix: FixOutcome
    mark: Markup


@dataclass(frozen=True)
class Group:
    """The fixes of one status, folded."""

    status: Status
    title: str
    rows: list[Row]
    measured: bool
    is_open: bool


@dataclass(frozen=True)
class Rung:
    """One row of the combination ladder. `setting`: what it adds, its code in backticks. `adds`: what that is worth on
    top of the row before; "" where it was not measured so."""

    name: str
    anchor: str | None
    setting: str
    speedup: Speedup
    bar: Markup
    confirmed: bool = False
    adds: str = ""


def cards(result: Result) -> list[Card]:
    """The faster fixes, best first."""
    anchors = links.fix_anchors(result)
    fixes = ranking.ranked(result)
    scale = bars.bar_scale([fix.speedup for fix in fixes])
    anchor_of = {id(fix): anchors[index] for index, fix in enumerate(result.fixes)}
    return [
        Card(
            anchor=anchor_of[id(fix)],
            rank=rank,
            fix=fix,
            bar=bars.speedup_bar(fix.speedup, scale, fix.title) if fix.speedup else Markup(""),
            reasons=links.reasons(result, fix),
            applying=_applying(result, fix),
            refusal=ranking.refusal(result, fix),
        )
        for rank, fix in enumerate(fixes, start=1)
    ]


def open_cards(result: Result) -> list[OpenCard]:
    """What may help where nothing is known to, best chance first."""
    anchors = links.fix_anchors(result)
    anchor_of = {id(fix): anchors[index] for index, fix in enumerate(result.fixes)}
    fixes = ranking.open_fixes(result)
    intervals = [fix.speedup for fix in fixes if fix.speedup is not None and words.has_interval(fix.speedup)]
    reach = bars.interval_reach(intervals)
    return [
        OpenCard(
            anchor=anchor_of[id(fix)],
            fix=fix,
            band=doubt.band(fix.chance),
            percent=doubt.percent_text(fix.chance or 0.0),
            looked=doubt.looked_text(fix),
            mark=bars.interval_mark(fix.speedup, reach, result.method.equivalence, fix.title)
            if fix.speedup in intervals and fix.speedup is not None
            else Markup(""),
            applying=_applying(result, fix),
        )
        for fix in fixes
    ]


def _applying(result: Result, fix: FixOutcome) -> Applying | None:
    return applying(result, ranking.changes_of(fix), patches.name_of(fix.id), [fix.id])


def groups(result: Result) -> list[Group]:
    """The others, by what became of them."""
    anchors = links.fix_anchors(result)
    anchor_of = {id(fix): anchors[index] for index, fix in enumerate(result.fixes)}
    found = []
    for status, title, fixes in _kinds(result):
        reach = bars.interval_reach([fix.speedup for fix in fixes])
        rows = [
            Row(
                anchor=anchor_of[id(fix)],
                fix=fix,
                mark=bars.interval_mark(fix.speedup, reach, result.method.equivalence, fix.title)
                if fix.speedup
                else Markup(""),
            )
            for fix in fixes
        ]
        if rows:
            measured = any(fix.speedup is not None for fix in fixes)
            # Where nothing is faster, what is still open is the news.
            is_open = status == "cannot_tell" and title == words.STATUS_WORDS[status] and not ranking.ranked(result)
            found.append(Group(status, title, rows, measured, is_open))
    return found


def _kinds(result: Result) -> Iterator[tuple[Status, str, list[FixOutcome]]]:
    """The fixes that are on no card, by status, each kind with its title. Where some stand open on cards, the rest of
    what is not decided is told apart: what was measured and hardly helps, and what was not."""
    carded = {id(fix) for fix in ranking.open_fixes(result)}
    for status in ranking.FOLDED:
        fixes = [fix for fix in ranking.with_status(result, status) if id(fix) not in carded]
        if status == "cannot_tell" and carded:
            yield status, HARDLY_TITLE, [fix for fix in fixes if fix.speedup is not None]
            yield status, UNMEASURED_TITLE, [fix for fix in fixes if fix.speedup is None]
        else:
            yield status, words.STATUS_WORDS[status], fixes


def rungs(result: Result) -> list[Rung]:
    """One fix after the other, and the whole stack once more."""
    anchors = links.fix_anchors(result)
    combination = result.combination
    if combination is None or not combination.ladder:
        return []
    titles = {fix.id: (fix.title, anchors[index]) for index, fix in enumerate(result.fixes)}
    steps: list[LadderStep] = combination.ladder
    scale = bars.bar_scale([step.speedup for step in steps] + [combination.confirmed])
    one = Speedup(estimate=1.0, low=1.0, high=1.0, pairs=0, sessions=0)
    made = [Rung("As written", None, "", one, bars.speedup_bar(one, scale, "As written"))]
    before: Setting = {}
    device = ranking.device(result)
    for step in steps:
        title, anchor = titles.get(step.fix, (step.fix, None))
        added = {name: value for name, value in step.setting.items() if before.get(name) != value}
        setting, before = words.setting_code(added, device) if added else "", step.setting
        bar = bars.speedup_bar(step.speedup, scale, title)
        made.append(Rung(f"+ {title}", anchor, setting, step.speedup, bar, adds=_adds(step)))
    if combination.confirmed is not None:
        bar = bars.speedup_bar(combination.confirmed, scale, "Measured again in fresh sessions")
        setting = words.setting_code(combination.setting, device)
        made.append(Rung("Measured again in fresh sessions", None, setting, combination.confirmed, bar, confirmed=True))
    return made


def _adds(step: LadderStep) -> str:
    """What a rung brings on top of the one before, and whether that is sure."""
    if step.added is None or not words.has_interval(step.added):
        return ""
    told = f"adds {words.speedup_text(step.added)}"
    return told if ranking.certain(step.added) else f"{told}, which may be chance"
