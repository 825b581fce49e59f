"""Where the code spends it: deepest functions beside the user's own lines, flame graphs, and line listings."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable
from dataclasses import dataclass

from markupsafe import Markup

from bottleneck_doctor.documents.report import HotFunction, LineCost, LineListing, Result, SamplingProfile
from bottleneck_doctor.render import bars, thinning
from bottleneck_doctor.render.flame import flame
from bottleneck_doctor.render.sections import links
from bottleneck_doctor.wording import words

MOST_FUNCTIONS = 15
MOST_LISTINGS = 8
MOST_LINES = 400
ALL_LINES = 1200
FEWEST_LINES = 40
"""Lines of one listing and of all together; the last ones of many get the fewest. A module may have thousands."""

SHORT = 24
"""A listing of at most this many lines is shown whole."""

AROUND = 6
"""Lines shown on either side of the hot ones of a long listing."""

FLAME_BYTES = 90_000
FLAME_LEAST = (0.002, 0.005, 0.01, 0.02, 0.05)
"""Shares below which frames are left out of a flame graph, until it takes at most `FLAME_BYTES`."""

HEAT = (0.02, 0.1, 0.25, 0.5)
"""Shares of a function's time from which a line is warmer by one."""

ROLE_WORDS = {"main": "Main process", "workers": "Workers"}


@dataclass(frozen=True)
class Hot:
    """One deepest function. `place` and `own_place` are short; the full paths are in report.json."""

    function: HotFunction
    place: str
    own_place: str
    bar: Markup


@dataclass(frozen=True)
class Role:
    """One kind of process: its deepest functions and its flame graph."""

    key: str
    name: str
    samples: int
    functions: list[Hot]
    left_out: int
    flame: Markup


@dataclass(frozen=True)
class Line:
    """One line of a listing: its text without the indentation that all lines share; `heat` from 0 (cold) to 4."""

    cost: LineCost
    text: str
    heat: int


@dataclass(frozen=True)
class Part:
    """Consecutive lines; folded ones are named by what they are to the shown ones."""

    lines: list[Line]
    folded: str


@dataclass(frozen=True)
class Listing:
    listing: LineListing
    place: str
    parts: list[Part]
    cut: int


@dataclass(frozen=True)
class Code:
    sampling: SamplingProfile | None
    roles: list[Role]
    line_steps: int
    listings: list[Listing]
    more_listings: list[Listing]


def code(result: Result) -> Code | None:
    """None where neither profile is there."""
    if result.profiles is None:
        return None
    sampling, lines = result.profiles.sampling, result.profiles.lines
    cwd = result.entrypoint.cwd
    listings = _listings(lines.listings if lines else [], cwd)
    roles = [role for key in ROLE_WORDS if (role := _role(sampling, key, cwd))] if sampling else []
    if not roles and not listings:
        return None
    return Code(sampling, roles, lines.steps if lines else 0, listings[:2], listings[2:])


def _role(sampling: SamplingProfile, key: str, cwd: str) -> Role | None:
    functions = [each for each in sampling.functions if each.role == key]
    tree = sampling.trees.get(key)
    if not functions and tree is None:
        return None
    name = ROLE_WORDS[key]
    drawn = _fitting(lambda least: flame(thinning.pruned(tree, least), label=name.lower())) if tree else ""
    return Role(
        key=key,
        name=name,
        samples=sampling.samples.get(key, tree.count if tree else 0),
        functions=[_hot(each, cwd) for each in functions[:MOST_FUNCTIONS]],
        left_out=max(len(functions) - MOST_FUNCTIONS, 0),
        flame=Markup(drawn),
    )


def _fitting(draw: Callable[[float], str]) -> str:
    """The flame graph with as many of the small frames as fit the page."""
    drawn = ""
    for least in FLAME_LEAST:
        drawn = draw(least)
        if len(drawn.encode()) <= FLAME_BYTES:
            return drawn
    return ""


def _hot(each: HotFunction, cwd: str) -> Hot:
    own = words.site_text(links.short(each.own_path, cwd), each.own_line) if each.own_path else ""
    place = words.site_text(links.short(each.path, cwd), each.line) if each.path else ""
    return Hot(each, place, own, bars.share_bar(each.share))


def _listings(listings: list[LineListing], cwd: str) -> list[Listing]:
    drawn, room = [], ALL_LINES
    for each in listings[:MOST_LISTINGS]:
        drawn.append(_listing(each, cwd, max(min(MOST_LINES, room), FEWEST_LINES)))
        room -= len(each.lines)
    return drawn


def _listing(listing: LineListing, cwd: str, most: int) -> Listing:
    lines = listing.lines if len(listing.lines) <= most else _around_hottest(listing.lines, most)
    texts = textwrap.dedent("\n".join(line.text.replace("\n", " ") for line in lines)).split("\n")
    drawn = [Line(line, text, _heat(line)) for line, text in zip(lines, texts, strict=False)]
    place = words.place_text(links.short(listing.path, cwd), listing.first_line)
    return Listing(listing, place, _parts(drawn), len(listing.lines) - len(lines))


def _around_hottest(lines: list[LineCost], most: int) -> list[LineCost]:
    hottest = max(range(len(lines)), key=lambda at: lines[at].share or 0.0)
    start = min(max(hottest - most // 2, 0), len(lines) - most)
    return lines[start : start + most]


def _heat(line: LineCost) -> int:
    share = line.share or 0.0
    return sum(share >= limit for limit in HEAT) if math.isfinite(share) else 0


def _parts(lines: list[Line]) -> list[Part]:
    """A short function whole; of a long one what lies around its hot lines, the rest folded before and after it."""
    if len(lines) <= SHORT:
        return [Part(lines, "")]
    hottest = max(range(len(lines)), key=lambda at: lines[at].cost.share or 0.0)
    start, end = max(hottest - AROUND, 0), min(hottest + AROUND + 1, len(lines))
    while end < len(lines) and end - start < SHORT and any(line.heat > 1 for line in lines[end : end + AROUND]):
        end += 1
    while start > 0 and end - start < SHORT and any(line.heat > 1 for line in lines[max(start - AROUND, 0) : start]):
        start -= 1
    before, after = len(lines[:start]), len(lines[end:])
    parts = [
        Part(lines[:start], f"{words.count_text(before, 'line')} before"),
        Part(lines[start:end], ""),
        Part(lines[end:], f"{words.count_text(after, 'line')} after"),
    ]
    return [part for part in parts if part.lines]
