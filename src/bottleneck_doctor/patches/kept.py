"""What a report keeps of a file that its changes edit, and what that tells of the file as it is now. Pure."""

from __future__ import annotations

import hashlib
from difflib import SequenceMatcher

from bottleneck_doctor.documents.report import SourceFile
from bottleneck_doctor.patches.lines import bare, bytes_of, lines_of
from bottleneck_doctor.runtime.wire.notebooks import program_of

DIGITS = 4
"""Of a line's digest: enough to see that it differs, too few to find out by guessing what a secret in it is."""


def kept(file: str, path: str, content: bytes) -> SourceFile:
    """What is kept of a file: of a notebook, the program in it. `path`: from the project's root, "" where it lies
    elsewhere."""
    text = program_of(file, content)
    return SourceFile(file=file, path=path, sha256=digest(text), line_digests=_line_digests(text))


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def is_as_kept(source: SourceFile, content: bytes) -> bool:
    """Whether a file is byte for byte the one that the changes were made from; of a notebook, its code."""
    return digest(program_of(source.file, content)) == source.sha256


def changed_lines(source: SourceFile, content: bytes) -> list[tuple[int, int]]:
    """Which lines of a file differ from those that were kept: first and last, counted from 1 as they are now. Where
    lines are gone, the last is one less than the first, which is the line that stands in their place. Empty where only
    line ends differ."""
    old, new = _split(source.line_digests), _split(_line_digests(program_of(source.file, content)))
    opcodes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return [(begin + 1, end) for kind, _, _, begin, end in opcodes if kind != "equal"]


def _line_digests(content: bytes) -> str:
    return "".join(digest(bytes_of([bare(line)]))[:DIGITS] for line in lines_of(content))


def _split(digests: str) -> list[str]:
    return [digests[at : at + DIGITS] for at in range(0, len(digests), DIGITS)]
