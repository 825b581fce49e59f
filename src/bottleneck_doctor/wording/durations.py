"""Lengths of time as people type them: `90`, `90s`, `5m`, `1.5h`, `1h30m`; text in, seconds out and back."""

from __future__ import annotations

import re

_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0}
_NUMBER = r"(\d+(?:\.\d*)?|\.\d+)"
_SHAPE = re.compile(rf"(?:{_NUMBER}\s*h)?\s*(?:{_NUMBER}\s*m(?:in)?)?\s*(?:{_NUMBER}\s*s?)?", re.IGNORECASE)


def parse_duration(text: str) -> float:
    """Return `text` in seconds; a bare number is seconds. Raises `ValueError`, with a sentence, on anything else."""
    match = _SHAPE.fullmatch(text.strip())
    parts = [] if match is None else list(zip(match.groups(), _UNITS.values(), strict=True))
    seconds = sum(float(number) * unit for number, unit in parts if number is not None)
    if all(number is None for number, _ in parts):
        raise ValueError(f"{text!r} is not a length of time; write 90s, 5m, 1h or 1h30m.")
    if not 0 < seconds < float("inf"):
        raise ValueError(f"{text!r} must be longer than 0 s.")
    return seconds


def format_duration(seconds: float) -> str:
    """Return `seconds` as people say it: `8 s`, `1 min 30 s`, `2 h 5 min`."""
    whole = max(0, round(seconds))
    hours, rest = divmod(whole, 3600)
    minutes, left = divmod(rest, 60)
    if hours:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    if minutes:
        return f"{minutes} min {left} s" if left else f"{minutes} min"
    return f"{left} s"
