"""What a check compares, wherever its sides come from: two that can be started, and what is known of both.

A source of sides is a context manager that gives a `Compared` for as long as the files of both sides lie on disk.
`of_revisions` is one, `of_edit` another.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from bottleneck_doctor.documents.check import Side
from bottleneck_doctor.documents.report import Warning
from bottleneck_doctor.gate.cause.hunks import Differences
from bottleneck_doctor.measure.starter import Side as Started
from bottleneck_doctor.protection.guarding import Guarding
from bottleneck_doctor.protection.protector import Protector, protecting
from bottleneck_doctor.protection.sandbox import Edits
from bottleneck_doctor.session.start import Start

Address = tuple[str, int]


@dataclass(frozen=True, kw_only=True)
class Compared:
    """Two sides. `base` and `head` are what the document says of them; `root`: of the project, from which lines are
    named; `cwd`: the user's working folder."""

    base: Side
    head: Side
    root: Path
    cwd: Path
    sides: tuple[Started, Started] | None
    """The base and the head as they are started; None where the base does not have the program."""
    roots: Mapping[str, tuple[Path, ...]]
    """Of each side's files, and of those that it shares with the other one, by the side's name."""
    differences: Callable[[], Differences]
    """What the head changed."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """Files of the head that lie otherwise on disk, by path from the root."""
    commits: list[str] = field(default_factory=list)
    """From the base to the head, newest first, one line each."""
    warnings: list[Warning] = field(default_factory=list)
    """What has to be known of what is compared. What could not be put back is added when the context is left."""


class Protect(Protocol):
    """Makes what keeps files as they were: of a side's working folder and entrypoint. `edits`: files that it alone sees
    changed, perhaps none; raises `NotHere` where it can't have files of its own."""

    def __call__(self, cwd: Path, words: Sequence[str], edits: Edits | None = None) -> Protector: ...


@contextlib.contextmanager
def protectors(start: Start, warnings: list[Warning]) -> Iterator[Protect]:
    """Each side gets protection of its own, so that neither finds what the other wrote.

    What could not be put back is added to `warnings`.
    """
    # Both stand at once, and where there is no sandbox they may write the same file.
    guarding = Guarding()
    with contextlib.ExitStack() as stack:

        def made(cwd: Path, words: Sequence[str], edits: Edits | None = None) -> Protector:
            protector = Protector() if start.in_place else protecting(cwd, words, edits, guarding)
            stack.callback(_closed, protector, warnings)
            return protector

        yield made


def _closed(protector: Protector, warnings: list[Warning]) -> None:
    protector.close()
    if protector.lost and all(warning.slug != "files-not-restored" for warning in warnings):
        lost = ", ".join(sorted(set(protector.lost))[:3])
        told = f"{lost} could not be put back as before the check."
        warnings.append(Warning(slug="files-not-restored", sentence=told))


def addresses(start: Start) -> tuple[Address | None, Address | None]:
    """Where ranks on other hosts reach the supervisors of the base and of the head: one port, and the next."""
    if start.listen is None or not start.listen[1]:
        return start.listen, start.listen
    return start.listen, (start.listen[0], start.listen[1] + 1)
