"""A check on the terminal: the sentence, a line for each metric that matters, what grew, what weakens it. A `Check` in,
text out."""

from __future__ import annotations

import io
import math

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from bottleneck_doctor.gate import metrics as figures
from bottleneck_doctor.gate.document import Check, Metric, Side, Verdict
from bottleneck_doctor.gate.limits import PHASE
from bottleneck_doctor.render import words
from bottleneck_doctor.render.console import text_console

PLAIN_WIDTH = 110
VERDICT_WORDS: dict[Verdict, str] = {
    "regression": "WORSE",
    "improvement": "better",
    "unchanged": "not worse",
    "cannot_tell": "cannot tell",
    "gone": "GONE",
    "new": "new",
    "not_measured": "not measured",
}
_STYLES: dict[Verdict, str] = {"regression": "bold red", "gone": "bold red", "improvement": "green"}
_TITLES = {"passed": "Passed", "regressed": "Regressed", "cannot_tell": "CANNOT TELL", "new": "New"}
STEADY = "Both sides ran with a steady allocator (--no-steady: as yours is)."


def render(check: Check, *, width: int | None, color: bool) -> str:
    """The outcome, ending in a newline. `width`: columns of the terminal, None where there is none."""
    console = text_console(max(width or PLAIN_WIDTH, 60), color=color)
    style = "bold red" if check.status == "regressed" else "bold"
    console.print()
    console.print(Text(words.visible(f"{_TITLES[check.status]}: {check.sentence}"), style=style if color else ""))
    dim = "dim" if color else ""
    console.print(Text(words.visible(f"{_side(check.head)} against {_side(check.base)}, {_effort(check)}."), style=dim))
    rows = [metric for metric in check.metrics if is_shown(metric)]
    if rows:
        console.print()
        console.print(_table(rows, color))
    if check.culprits:
        console.print()
        console.print(Text("What grew:", style="bold" if color else ""))
        for culprit in check.culprits:
            changed = " (changed)" if culprit.changed_here else ""
            console.print(Padding(Text(words.visible(f"- {culprit.sentence.rstrip('.')}{changed}")), (0, 0, 0, 2)))
    if check.warnings:
        console.print()
        console.print(Text(words.count_text(len(check.warnings), "warning") + ":", style="bold" if color else ""))
        for warning in check.warnings:
            console.print(Padding(Text(words.visible(f"- {warning.sentence} [{warning.slug}]")), (0, 0, 0, 2)))
    console.print()
    if check.pairs and check.steady:
        console.print(Text(STEADY, style=dim))
    again = words.command_text(words.visible(word) for word in check.command)
    console.print(Text(f"Again:  {again}"), soft_wrap=True)
    assert isinstance(console.file, io.StringIO)
    return "\n".join(line.rstrip() for line in console.file.getvalue().split("\n"))


def is_shown(metric: Metric) -> bool:
    """Whether a metric is worth a line: always, but for phases of which there is nothing to say."""
    if metric.id.startswith(PHASE):
        return metric.verdict in ("regression", "improvement", "gone", "new")
    return metric.verdict != "not_measured"


def _side(side: Side) -> str:
    details = [side.commit[:9]] if side.commit else []
    details += ["with uncommitted changes"] if side.dirty else []
    return f"{side.name} ({', '.join(details)})" if details else side.name


def _effort(check: Check) -> str:
    return f"{words.count_text(len(check.pairs), 'pair')} of processes in {words.duration_text(check.seconds)}"


def _table(rows: list[Metric], color: bool) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold" if color else "")
    table.add_column("Metric", overflow="fold", ratio=2)
    for title in ("Base", "Head", "Change", "95 %", "Limit", "Visible from"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("Verdict", no_wrap=True)
    for metric in rows:
        verdict = VERDICT_WORDS[metric.verdict]
        if metric.level == "warn" and metric.verdict in ("regression", "gone"):
            verdict += " (warning only)"
        table.add_row(
            Text(metric.title),
            figures.value(metric.base, metric.unit),
            figures.value(metric.head, metric.unit),
            _signed(metric.change),
            words.DASH if metric.low is None else f"{_signed(metric.low)} to {_signed(metric.high)}",
            figures.amount(metric.threshold, metric.unit),
            words.DASH if metric.smallest is None else figures.amount(metric.smallest, metric.unit),
            Text(verdict, style=_STYLES.get(metric.verdict, "") if color else ""),
        )
    return table


def _signed(change: float | None) -> str:
    if change is None or not math.isfinite(change):
        return words.DASH
    return ("+" if change >= 0 else "\N{MINUS SIGN}") + words.share_text(abs(change))
