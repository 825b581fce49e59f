"""A check as a page: a `Check` in, one self-contained page without scripts out.

It reads without its stylesheet too, which Jenkins refuses: what a reader needs is in words, and in their order.
"""

from __future__ import annotations

from bottleneck_doctor.documents.check import Check, Metric
from bottleneck_doctor.render.check import flame_growth
from bottleneck_doctor.render.check.loss_curve import loss_curve
from bottleneck_doctor.render.flame import ROLE_WORDS
from bottleneck_doctor.render.markup import diff_lines
from bottleneck_doctor.render.page import page
from bottleneck_doctor.wording import check_words, race_words, words
from bottleneck_doctor.wording.check_words import one_line

ROWS = 200
"""Rows of a table and entries of a list."""


def render(check: Check) -> str:
    """The whole page as text, to be written as UTF-8."""
    metrics = [each for each in check.metrics if check_words.is_shown(each)]
    return page(
        "check.html.j2",
        check=check,
        sentence=one_line(check.sentence),
        script=one_line(check_words.script(check), 120),
        status=check_words.status_text(check),
        sides=check_words.side_words(check),
        command=one_line(words.command_text(check.entrypoint.argv)),
        again=one_line(words.command_text(check.command)),
        base=one_line(check_words.side_text(check.base)),
        head=one_line(check_words.side_text(check.head)),
        effort=check_words.effort_text(check),
        created=words.date_text(check.created),
        rows=[_row(check, each) for each in metrics[:ROWS]],
        race_head=race_words.HEAD,
        race_title=race_words.TITLE,
        race_note=race_words.NOTE,
        raced=[
            {"cells": row.cells, "sentence": one_line(row.sentence), "bad": row.bad} for row in race_words.rows(check)
        ],
        said=[one_line(each.sentence) for each in metrics[:ROWS] if each.verdict not in ("unchanged", "new")],
        losses="" if check.losses is None else one_line(check.losses.sentence),
        loss_curve="" if check.losses is None else loss_curve(check.losses.curve, check_words.side_words(check)),
        culprits=[
            {
                "kind": each.kind,
                "name": one_line(each.name, 200),
                "where": "" if each.site is None else one_line(check_words.site_text(each.site)),
                "base": words.duration_text(each.base),
                "head": words.duration_text(each.head),
                "sentence": one_line(each.sentence),
                "changed": each.changed_here,
            }
            for each in check.culprits[:ROWS]
        ],
        drawings=[
            {
                # A step has the time of every worker in it, though they work beside one another.
                "title": ROLE_WORDS.get(each.role, each.role) + (", together" if each.role == "workers" else ""),
                "step": f"{words.duration_text(each.root.base)} → {words.duration_text(each.root.head)}",
                "drawing": flame_growth.flame(
                    each, label=ROLE_WORDS.get(each.role, each.role).lower(), sides=check_words.side_words(check)
                ),
            }
            for each in check.growth
        ],
        promise=check_words.promise_text(check),
        tried=[one_line(each) for each in check_words.tried_texts(check)],
        changes=[] if check.edit is None else _changes(check.edit.diff)[:ROWS],
        commits=[one_line(each, 200) for each in check.commits[:ROWS]],
        time=check_words.time_text(check),
        stored=one_line(check_words.stored_text(check)),
        lent=one_line(check_words.lent_text(check)),
        processes=[
            {"number": each.number, "step": words.duration_text(each.step_seconds), "windows": each.windows}
            for each in check.processes[:ROWS]
        ],
        pairs=[
            {
                "number": each.number,
                "base": words.duration_text(each.base_step_seconds),
                "head": words.duration_text(each.head_step_seconds),
                "windows": each.windows,
            }
            for each in check.pairs[:ROWS]
        ],
    )


def _changes(diff: str) -> list[dict[str, object]]:
    """A patch, file by file."""
    files: list[tuple[str, list[str]]] = []
    lines = diff.split("\n")
    for number, line in enumerate(lines):
        if line.startswith("--- ") and "".join(lines[number + 1 : number + 2]).startswith("+++ "):
            names = [words.visible(each[4:].rstrip("\t")) for each in lines[number : number + 2]]
            name = names[0] if names[1] == "/dev/null" else names[1]
            files.append((name.partition("/")[2], []))
        elif files and not (line.startswith("+++ ") and not files[-1][1]):
            files[-1][1].append(line)
    return [{"file": one_line(name), "lines": diff_lines("\n".join(hunks))} for name, hunks in files]


def _row(check: Check, metric: Metric) -> dict[str, object]:
    return {
        "title": one_line(metric.title),
        "base": check_words.value_text(metric, metric.base),
        "head": check_words.value_text(metric, metric.head),
        "change": check_words.change_text(metric),
        "threshold": check_words.amount_text(metric.unit, metric.threshold),
        "smallest": check_words.amount_text(metric.unit, metric.smallest),
        "verdict": check_words.verdict_text(check, metric)
        + (" (warning)" if check_words.is_finding(metric) and not check_words.fails(metric) else ""),
        "fails": check_words.fails(metric),
    }
