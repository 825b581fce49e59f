"""Writes the patches of a report into the folder of its artifacts, from the files as they are now."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bottleneck_doctor.documents.redaction import Discretion
    from bottleneck_doctor.documents.report import Result, SourceFile


def write_patches(result: Result, folder: Path, discretion: Discretion) -> list[str]:
    """Write `fix.patch` and `fixes/ID.patch` into `folder`; what could not be made is returned, a sentence each."""
    from bottleneck_doctor.render.patches import patches

    made = patches(result, _content, lambda text: discretion.text(text) == text)
    for name, patch in made.files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(patch)
    return made.problems


def _content(source: SourceFile) -> bytes | None:
    try:
        return Path(source.file).read_bytes()
    except OSError:
        return None
