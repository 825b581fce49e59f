"""Names of files as patches write them: quoted as git does, with a prefix or without."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

_ESCAPES = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92}
_LETTERS = {code: letter for letter, code in _ESCAPES.items()}
_ESCAPED = re.compile(rb'\\([abtnvfr"\\]|[0-7]{3})')
_PREFIXED = re.compile(r"[abciow12]/")
"""`a/` and `b/`, what `diff.mnemonicPrefix` writes instead, and `git diff --no-index`."""


def quoted(name: str) -> str:
    """A name as git writes it: in quotation marks, with escapes, where it holds anything but printable ASCII."""
    codes = name.encode("utf-8", "surrogateescape")
    if all(0x20 <= code < 0x7F and code not in b'"\\' for code in codes):
        return name
    shown = "".join(
        f"\\{_LETTERS[code]}" if code in _LETTERS else chr(code) if 0x20 <= code < 0x7F else f"\\{code:03o}"
        for code in codes
    )
    return f'"{shown}"'


def unquoted(name: str) -> str:
    """The name that was written like this."""
    if len(name) < 2 or not (name[0] == name[-1] == '"'):
        return name

    def code(found: re.Match[bytes]) -> bytes:
        escape = found[1].decode("ascii")
        return bytes([_ESCAPES[escape] if escape in _ESCAPES else int(escape, 8) & 0xFF])

    content = name[1:-1].encode("utf-8", "surrogateescape")
    return _ESCAPED.sub(code, content).decode("utf-8", "surrogateescape")


def prefixed(name: str) -> bool:
    """Whether a name begins with a folder that only stands for the old or the new side: `a/train.py`."""
    return _PREFIXED.match(name) is not None


def outside(name: str) -> bool:
    """Whether a name leads out of the folder that it is relative to, or into what git keeps there."""
    path = PurePosixPath(name)
    return path.is_absolute() or ".." in path.parts or ".git" in path.parts


def stripped(name: str, folders: int) -> str | None:
    """A name without its first `folders` folders and without `.`; None where nothing is left of it."""
    parts = PurePosixPath(name).parts[folders:]
    return str(PurePosixPath(*parts)) if parts else None
