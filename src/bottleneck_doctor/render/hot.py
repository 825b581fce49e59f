"""The table of deepest functions as text: `HotFunction` rows go in, lines for a terminal or a file come out.

In a terminal it is a table that fits its width; elsewhere plain columns with whole paths, which other tools can cut.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence

from rich.table import Table
from rich.text import Text

from bottleneck_doctor.documents.report import HotFunction
from bottleneck_doctor.render.console import text_console
from bottleneck_doctor.render.flame import ROLE_WORDS, short_path
from bottleneck_doctor.wording import words


def render(
    functions: Sequence[HotFunction],
    samples: Mapping[str, int],
    *,
    led_by: str,
    width: int | None,
    color: bool,
    cwd: str = "",
) -> str:
    """The table of each role, ending in a newline. `width`: columns of the terminal, None where there is none."""
    roles = [role for role in ROLE_WORDS if samples.get(role)]
    tables = [[row for row in functions if row.role == role] for role in roles]
    if width is None:
        return "\n".join(_plain(role, samples[role], rows, led_by) for role, rows in zip(roles, tables, strict=True))
    console = text_console(max(width, 60), color=color)
    for role, rows in zip(roles, tables, strict=True):
        console.print()
        console.print(Text(_heading(role, samples[role]), style="bold" if color else ""))
        console.print(_table(rows, led_by, cwd, color))
    assert isinstance(console.file, io.StringIO)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines()) + "\n"


def _heading(role: str, count: int) -> str:
    return f"{ROLE_WORDS[role]}, {words.count_text(count, 'sample')}"


def _table(rows: Sequence[HotFunction], led_by: str, cwd: str, color: bool) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim" if color else "")
    table.add_column("share", justify="right", no_wrap=True)
    table.add_column("samples", justify="right", no_wrap=True)
    table.add_column("deepest function", ratio=1, overflow="fold")
    table.add_column(led_by, ratio=1, overflow="fold")
    for row in rows:
        own = row.own_name == row.name and row.own_path == row.path
        table.add_row(
            words.share_text(row.share),
            str(row.count),
            _function(row.name, row.path, row.line, cwd, color, bright=own),
            Text("itself", style="dim" if color else "")
            if own
            else _function(row.own_name, row.own_path, row.own_line, cwd, color, bright=True),
        )
    return table


def _function(name: str, path: str, line: int, cwd: str, color: bool, *, bright: bool) -> Text:
    if not name:
        return Text(words.DASH)
    styles = ("cyan" if bright else "", "dim") if color else ("", "")
    place = words.site_text(short_path(path, cwd), line)
    return Text.assemble((words.visible(name), styles[0]), "\n", (words.visible(place), styles[1]))


def _plain(role: str, count: int, rows: Sequence[HotFunction], led_by: str) -> str:
    lines = [("share", "samples", "deepest function", "", led_by, "")]
    lines += [
        (
            words.share_text(row.share),
            str(row.count),
            words.visible(row.name),
            words.visible(words.site_text(row.path, row.line)),
            words.visible(row.own_name) or "-",
            words.visible(words.site_text(row.own_path, row.own_line)) or "-",
        )
        for row in rows
    ]
    widths = [max(len(line[column]) for line in lines) for column in range(5)]
    shown = [
        "  ".join(
            [
                text.rjust(size) if at < 2 else text.ljust(size)
                for at, (text, size) in enumerate(zip(line[:5], widths, strict=True))
            ]
            + [line[5]]
        ).rstrip()
        for line in lines
    ]
    return "\n".join([_heading(role, count), *shown]) + "\n"
