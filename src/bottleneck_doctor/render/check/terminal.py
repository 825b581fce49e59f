"""A check on the terminal: the sentence, a line for each metric that matters, what grew, what weakens it. A `Check` in,
text out."""

from __future__ import annotations

import io

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from bottleneck_doctor.documents.check import Check, Metric, Verdict
from bottleneck_doctor.render.console import text_console
from bottleneck_doctor.wording import race_words, words
from bottleneck_doctor.wording.check_words import (
    amount_text,
    change_text,
    effort_text,
    fails,
    is_finding,
    is_shown,
    lent_text,
    loss_fails,
    side_text,
    side_words,
    status_text,
    value_text,
    verdict_text,
)

PLAIN_WIDTH = 120
_STYLES: dict[Verdict, str] = {"regression": "bold red", "gone": "bold red", "improvement": "green"}
_TITLES = {"cannot_tell": "CANNOT TELL", "new": "New"}
"""Of outcomes that stand out, or are shorter here."""
STEADY = "Both sides ran with a steady memory allocator, which makes times vary less (--no-steady switches it off)."


def render(check: Check, *, width: int | None, color: bool) -> str:
    """The outcome, ending in a newline. `width`: columns of the terminal, None where there is none."""
    console = text_console(max(width or PLAIN_WIDTH, 60), color=color)
    style = "bold red" if check.status == "regressed" else "bold"
    console.print()
    title = _TITLES.get(check.status) or status_text(check)
    console.print(Text(words.visible(f"{title}: {check.sentence}"), style=style if color else ""))
    dim = "dim" if color else ""
    sides = f"{side_text(check.head)} against {side_text(check.base)}, {effort_text(check)}."
    console.print(Text(words.visible(sides), style=dim))
    rows = [metric for metric in check.metrics if is_shown(metric)]
    raced = race_words.rows(check)
    if raced:
        console.print()
        console.print(_race(raced, color))
        console.print(Text(race_words.NOTE, style=dim))
    if rows:
        console.print()
        console.print(_table(check, rows, color))
    if check.losses is not None:
        console.print()
        console.print(Text(f"Losses: {check.losses.sentence}", style="bold red" if color and loss_fails(check) else ""))
    if check.culprits:
        console.print()
        console.print(Text("What grew:", style="bold" if color else ""))
        for culprit in check.culprits:
            told = "was changed" in culprit.sentence
            changed = " (changed)" if culprit.changed_here and not told else ""
            console.print(Padding(Text(words.visible(f"- {culprit.sentence.rstrip('.')}{changed}")), (0, 0, 0, 2)))
    if check.warnings:
        console.print()
        console.print(Text(words.count_text(len(check.warnings), "warning") + ":", style="bold" if color else ""))
        for warning in check.warnings:
            console.print(Padding(Text(words.visible(f"- {warning.sentence} [{warning.slug}]")), (0, 0, 0, 2)))
    console.print()
    if (check.pairs or check.processes) and check.steady:
        console.print(Text(STEADY, style=dim))
    if check.lent is not None:
        console.print(Text(lent_text(check), style=dim))
    again = words.command_text(words.visible(word) for word in check.command)
    console.print(Text(f"Again:  {again}"), soft_wrap=True)
    assert isinstance(console.file, io.StringIO)
    return "\n".join(line.rstrip() for line in console.file.getvalue().split("\n"))


def _race(raced: list[race_words.Row], color: bool) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold" if color else "")
    for title in race_words.HEAD:
        table.add_column(title, justify="left" if title in (race_words.HEAD[0], race_words.HEAD[-1]) else "right")
    for row in raced:
        table.add_row(*map(Text, row.cells), style="bold red" if row.bad and color else "")
    return table


def _table(check: Check, rows: list[Metric], color: bool) -> Table:
    sides = side_words(check)
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold" if color else "")
    table.add_column("Metric", no_wrap=True)
    for title in (sides.base_title, sides.head_title, "Change (95 %)", "Limit", "Smallest\ndetectable"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("Verdict")
    for metric in rows:
        verdict = verdict_text(check, metric)
        if is_finding(metric):
            verdict = verdict.upper() if fails(metric) else f"{verdict} (a warning)"
        table.add_row(
            Text(words.clipped(words.visible(metric.title), 40)),
            value_text(metric, metric.base),
            value_text(metric, metric.head),
            change_text(metric),
            amount_text(metric.unit, metric.threshold),
            amount_text(metric.unit, metric.smallest),
            Text(verdict, style=_STYLES.get(metric.verdict, "") if color else ""),
        )
    return table
