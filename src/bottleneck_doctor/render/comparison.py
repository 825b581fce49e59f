"""A comparison as text for a terminal or a file, and as one page without scripts."""

from __future__ import annotations

import io
import math

from rich.table import Table
from rich.text import Text

from bottleneck_doctor.compare import Comparison, Ratio, Row
from bottleneck_doctor.render.console import text_console
from bottleneck_doctor.render.page import page
from bottleneck_doctor.wording import words

CAUTION = "The reports were made at different times. No interval covers what changed on the machine in between."
PLAIN_WIDTH = 110


def text(comparison: Comparison, *, width: int | None, color: bool) -> str:
    """Sentences, table and differences, ending in a newline. `width`: columns of the terminal, None where none is."""
    console = text_console(max(width or PLAIN_WIDTH, 60), color=color)
    for sentence in comparison.sentences:
        console.print(Text(words.visible(sentence), style="bold" if color else ""))
    console.print()
    console.print(_figures(comparison, color))
    for title, differences in (("Machines and libraries differ", comparison.environment),
                               ("What was trained differs", comparison.training)):  # fmt: skip
        if differences:
            console.print()
            console.print(Text(f"{title}:", style="yellow" if color else ""))
            for each in differences:
                console.print(Text(f"  {each.key}: {words.visible(' | '.join(each.values))}"), soft_wrap=True)
    console.print()
    console.print(Text(CAUTION, style="dim" if color else ""))
    assert isinstance(console.file, io.StringIO)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines()) + "\n"


def html(comparison: Comparison) -> str:
    """A page of its own, self-contained, without scripts."""
    return page(
        "compare.html.j2",
        comparison=comparison,
        caution=CAUTION,
        rows=[
            {
                "title": row.title,
                "cells": [value_text(row, value) for value in row.values],
                "ratios": [change_text(row, ratio) for ratio in row.ratios],
                "better": [_better(row, ratio) for ratio in row.ratios],
            }
            for row in comparison.rows
        ],
    )


def value_text(row: Row, value: float | None) -> str:
    """A figure with its unit."""
    if value is None or not math.isfinite(value):
        return words.DASH
    if row.unit == "seconds":
        return words.duration_text(value)
    if row.unit == "share":
        return words.share_text(value)
    return words.bytes_text(value) if row.unit == "bytes" else words.amount_text(value)


def change_text(row: Row, ratio: Ratio | None) -> str:
    """A ratio with its interval, where it has one. Shares have points and not ratios, which the values show."""
    if ratio is None or row.unit == "share":
        return ""
    if ratio.low is None or ratio.high is None:
        return words.ratio_text(ratio.estimate)
    return f"{words.ratio_text(ratio.estimate)} ({ratio.low:.2f}{words.DASH}{ratio.high:.2f})"


def _better(row: Row, ratio: Ratio | None) -> bool | None:
    """Whether a ratio is clearly for the better, or the worse; None where its interval does not say."""
    if ratio is None or ratio.low is None or ratio.high is None or ratio.low <= 1 <= ratio.high:
        return None
    return (ratio.estimate > 1) is row.more_is_better


def _figures(comparison: Comparison, color: bool) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim" if color else "")
    table.add_column("training as written", overflow="fold")
    table.add_column(words.visible(comparison.names[0]), justify="right", overflow="fold")
    for name in comparison.names[1:]:
        table.add_column(words.visible(name), justify="right", overflow="fold")
        table.add_column("to the first", justify="right", overflow="fold")
    for row in comparison.rows:
        cells = [Text(row.title), Text(value_text(row, row.values[0]))]
        for value, ratio in zip(row.values[1:], row.ratios, strict=True):
            better = _better(row, ratio)
            style = "" if better is None or not color else "green" if better else "red"
            cells += [Text(value_text(row, value)), Text(change_text(row, ratio), style=style)]
        table.add_row(*cells)
    return table
