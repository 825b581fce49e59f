"""report.html: a `Result` in, one self-contained page out.

The page is complete without scripts and reaches for nothing outside itself: its content security policy allows one
stylesheet and one script, both by hash. Templates escape everything; only the drawings, the stylesheet and the script
enter as markup. Sections without evidence are left out and named at the end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from bottleneck_doctor.documents.report import Confirmation, Result, Speedup, Window
from bottleneck_doctor.render import bars, patches, thinning
from bottleneck_doctor.render.embedded import embedded_data
from bottleneck_doctor.render.engine import templates_folder
from bottleneck_doctor.render.markup import environment
from bottleneck_doctor.render.page import content_security_policy
from bottleneck_doctor.render.sections import (
    applying,
    code,
    device,
    findings,
    fixes,
    gaps,
    loading,
    machine,
    step,
    workers,
)
from bottleneck_doctor.runtime.wire.notebooks import SOURCES
from bottleneck_doctor.wording import memory_words, ranking, rates, run_words, words

PAGE_LIMIT = 1_000_000
"""Bytes of a page: it is sent by mail and opened from disk."""

WINDOW_ROWS = 400
"""Raw windows shown; all of them are in report.json."""

IN_HEADLINE = 2
"""Sentences of the verdict that are its headline: why, and what is promised. The rest stands below."""

OPEN_CARDS = 8
"""Faster fixes shown as open cards; the rest are folded, so that a long list doesn't hide what follows."""


@dataclass(frozen=True)
class Page:
    """Everything on the page that is more than a field of the result."""

    script_name: str
    headline: str
    """What the verdict says first: why, and what is promised."""
    beyond_headline: str
    promise: ranking.Promise | None
    applying: applying.Applying | None
    speed_bar: Markup
    best: ranking.Best | None
    ceiling: tuple[str, Speedup] | None
    ceilings: dict[str, Speedup]
    rate: rates.Rate
    whole_run: str
    confirmations: list[Confirmation]
    memory: str
    why: findings.Why | None
    cards: list[fixes.Card]
    more_cards: list[fixes.Card]
    open_cards: list[fixes.OpenCard]
    groups: list[fixes.Group]
    rungs: list[fixes.Rung]
    step: step.Step | None
    loading: list[loading.Way]
    curve: workers.Curve | None
    machine: machine.Use | None
    code: code.Code | None
    device: device.Device | None
    windows: list[Window]
    unknown: gaps.Gaps
    artifacts: list[gaps.Artifact]


def render(result: Result) -> str:
    """The whole page as text, to be written as UTF-8.

    Every section bounds what it shows. Should all of them together be too much for `PAGE_LIMIT` even so, evidence is
    thinned in the order of `thinning.STEPS`.
    """
    page = ""
    for candidate in thinning.candidates(result):
        page = _rendered(candidate)
        if len(page.encode()) <= PAGE_LIMIT:
            break
    return page


def _rendered(result: Result) -> str:
    style = _asset("report.css")
    script = _asset("report.js")
    page = (
        environment(result.entrypoint.cwd, ranking.device(result), result.sources)
        .get_template("report.html.j2")
        .render(
            result=result,
            page=_page(result),
            style=Markup(style),
            script=Markup(script),
            policy=content_security_policy(style, script),
            data=Markup(embedded_data(result)),
        )
    )
    return page.encode("utf-8", "replace").decode("utf-8")


def _asset(name: str) -> str:
    text = (templates_folder() / name).read_text(encoding="utf-8")
    if "</" in text:
        raise ValueError(f"{name} holds `</`, which would end its element")
    return text


def _page(result: Result) -> Page:
    cards = fixes.cards(result)
    promise = ranking.promise(result)
    best, ceiling = ranking.best_measured(result), ranking.ceiling(result)
    said = words.sentences(result.verdict.sentence)
    return Page(
        script_name=_script_name(result.entrypoint.argv),
        promise=promise,
        applying=None if promise is None else applying.applying(result, promise.changes, patches.HEADLINE),
        speed_bar=_speed_bar(result, best, ceiling),
        best=best,
        ceiling=ceiling,
        ceilings=ranking.ceilings(result),
        rate=rates.rate(result.baseline),
        headline=" ".join(said[:IN_HEADLINE]),
        beyond_headline=" ".join(said[IN_HEADLINE:]),
        whole_run=run_words.sentence(result),
        confirmations=ranking.confirmations(result),
        memory=memory_words.promise(result),
        why=findings.why(result),
        cards=cards[:OPEN_CARDS],
        more_cards=cards[OPEN_CARDS:],
        open_cards=fixes.open_cards(result),
        groups=fixes.groups(result),
        rungs=fixes.rungs(result),
        step=step.step(result),
        loading=loading.loading(result),
        curve=workers.curve(result),
        machine=machine.use(result),
        code=code.code(result),
        device=device.device(result),
        windows=result.windows[:WINDOW_ROWS],
        unknown=gaps.gaps(result),
        artifacts=gaps.artifacts(result),
    )


def _script_name(argv: list[str]) -> str:
    scripts = [word for word in argv if word.endswith(SOURCES)]
    return Path(scripts[0]).name if scripts else words.clipped(" ".join(argv), 60)


def _speed_bar(result: Result, best: ranking.Best | None, ceiling: tuple[str, Speedup] | None) -> Markup:
    if result.baseline is None or not math.isfinite(result.baseline.samples_per_second) or not (best or ceiling):
        return Markup("")
    rate = rates.rate(result.baseline)
    return bars.speed_bar(
        rate.of(result.baseline.samples_per_second),
        best.speedup if best else None,
        ceiling[1].estimate if ceiling else None,
        rate.long,
    )
