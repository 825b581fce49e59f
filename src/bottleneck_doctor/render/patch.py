"""A patch on the terminal: bytes in, text out, coloured as `git diff` colours it. Control characters of the user's own
lines are shown as such, so that they can't drive the terminal."""

from __future__ import annotations

from rich.text import Text

from bottleneck_doctor.patches.lines import bare, lines_of
from bottleneck_doctor.render.console import text_console
from bottleneck_doctor.wording import words

WIDTH = 80
"""Columns. No line is wrapped: the terminal does that."""
STYLES = {"--- ": "bold", "+++ ": "bold", "@@": "cyan", "-": "red", "+": "green"}


def text(patch: bytes, *, color: bool) -> str:
    """The patch as text, ending in a newline."""
    lines = [words.visible(bare(line)) for line in lines_of(patch)]
    if not color:
        # As it is, tabs and all: this may be on its way into a file.
        return "".join(f"{line}\n" for line in lines)
    console = text_console(WIDTH, color=True)
    with console.capture() as shown:
        for line in lines:
            console.print(Text(line, style=_style(line)), soft_wrap=True)
    return shown.get()


def _style(line: str) -> str:
    return next((style for mark, style in STYLES.items() if line.startswith(mark)), "")
