"""What Python wrote of an error: which of its lines names it."""

from __future__ import annotations

_BEFORE_FRAMES = "Traceback (most recent call last):"
_HEADS = (_BEFORE_FRAMES, f"Original {_BEFORE_FRAMES}")
"""What stands above the frames: of an error, and of one that torch passes on from a worker."""
_IGNORED = "Exception ignored in"
"""Errors in what Python does while it ends follow the one that it ends for."""


def naming_line(text: str) -> str:
    """The line with an error's type and the beginning of its message, behind the frames of the last traceback of a
    text; "" where it holds none. A message may have many lines, and the last may only say where to read on."""
    lines = text.splitlines()
    begins = [
        number
        for number, line in enumerate(lines)
        if line.strip() in _HEADS and not any(each.startswith(_IGNORED) for each in lines[max(0, number - 1) : number])
    ]
    behind = lines[begins[-1] + 1 :] if begins else []
    indent = _indent(lines[begins[-1]]) if begins else 0
    for number, line in enumerate(behind):
        if line.strip() and _indent(line) <= indent:
            return _with_message(line.strip(), behind[number + 1 :])
    return ""


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _with_message(line: str, behind: list[str]) -> str:
    """The line, with the next one that says anything where it ends before its message begins."""
    if not line.endswith(":"):
        return line
    return " ".join([line, *[each.strip() for each in behind if each.strip()][:1]])
