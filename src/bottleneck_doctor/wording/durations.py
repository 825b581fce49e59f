"""Lengths of time as people type them: `90`, `90s`, `5m`, `1.5h`, `1h30m`; text in, seconds out and back."""

from __future__ import annotations

import math
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


def typed_duration(seconds: float) -> str:
    """Return `seconds` as people type them, without loss: `5m`, `1h`, `90s`, `2.5s`."""
    for unit in ("h", "m"):
        count = seconds / _UNITS[unit]
        if count >= 1 and count == int(count):
            return f"{int(count)}{unit}"
    return f"{seconds:g}s"


def spoken_duration(seconds: float) -> str:
    """Return `seconds` in words: `90 seconds`, `5 minutes`, `1 hour 20 minutes`."""
    if seconds < 120 and seconds % 60:
        return _counted(round(seconds), "second")
    hours, minutes = divmod(round(seconds / 60), 60)
    parts = [_counted(number, unit) for number, unit in ((hours, "hour"), (minutes, "minute")) if number]
    return " ".join(parts) or _counted(round(seconds), "second")


def round_up(seconds: float) -> float:
    """Return the next length of time that one would ask for: whole minutes, and steps that grow with it."""
    steps = ((600.0, 60.0), (3600.0, 300.0), (math.inf, 1800.0))
    step = next(step for most, step in steps if seconds <= most)
    return math.ceil(seconds / step) * step


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
