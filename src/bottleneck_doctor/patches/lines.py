"""Files as lines of text, and back, without losing a byte.

Bytes that are no UTF-8 pass through as lone surrogates, so a file of any encoding can be patched. Lines end at line
feeds alone, as they do for `git` and `patch`: not at form feeds, and not at a carriage return by itself.
"""

from __future__ import annotations

import io
from collections.abc import Iterable


def lines_of(content: bytes) -> list[str]:
    """The lines of a file, with their ends. The last one has none where the file has none there."""
    return list(io.StringIO(content.decode("utf-8", "surrogateescape"), newline="\n"))


def bytes_of(lines: Iterable[str]) -> bytes:
    """The file with these lines."""
    return "".join(lines).encode("utf-8", "surrogateescape")


def bare(line: str) -> str:
    """A line without its end."""
    return line[:-2] if line.endswith("\r\n") else line.removesuffix("\n")


def end_of(line: str) -> str:
    """What ends a line: `\\n`, `\\r\\n`, or nothing."""
    return line[len(bare(line)) :]
