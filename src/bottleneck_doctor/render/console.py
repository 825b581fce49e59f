"""The console of rich that texts are drawn on: the same for every output, and blind to the environment."""

from __future__ import annotations

import io

from rich.console import Console


def text_console(width: int, *, color: bool) -> Console:
    """A console of so many columns that writes into memory."""
    return Console(
        file=io.StringIO(),
        width=width,
        force_terminal=color,
        color_system="standard" if color else None,
        no_color=not color,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
        _environ={},
    )
