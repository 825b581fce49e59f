"""What was edited, kept beside the report, and put back from there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path

from bottleneck_doctor import __version__
from bottleneck_doctor.apply.edits import NamedEdit
from bottleneck_doctor.documents.report import Tool
from bottleneck_doctor.documents.undo import Application, EditedFile, Undo, from_json, to_json
from bottleneck_doctor.errors import DoctorError, reason_of
from bottleneck_doctor.patches.applying import apply_patch
from bottleneck_doctor.patches.kept import digest
from bottleneck_doctor.system import output
from bottleneck_doctor.system.editing import FileEdit

CONTEXT = 1
"""Lines kept around what changed: as few as in the report, for they are the user's own."""


@dataclass(frozen=True)
class TakenBack:
    """The latest application, and what takes it back. `edits`: none for files that are as they were already. `left`:
    what is kept of applications before it."""

    application: Application
    edits: list[NamedEdit]
    left: Undo


def kept(directory: Path) -> Undo:
    """What is kept beside the report in `directory`. Raises `DoctorError` `undo-unreadable`."""
    name = f"{directory / output.ARTIFACTS_NAME / output.UNDO_NAME}"
    try:
        data = output.read_undo(directory)
    except OSError as error:
        raise DoctorError(
            "undo-unreadable", f"{name} can't be read: {reason_of(error)}.", "Make it readable."
        ) from error
    tool = Tool(name="bottleneck-doctor", version=__version__)
    return Undo(tool=tool) if data is None else from_json(data, source=name)


def with_application(undo: Undo, fixes: Sequence[str], edits: Sequence[NamedEdit]) -> Undo:
    """What is kept once these edits are made."""
    files = [
        EditedFile(
            file=str(each.edit.path.absolute()),
            name=each.name,
            before=digest(each.edit.before),
            after=digest(each.edit.after),
            patch=each.reverse_patch(CONTEXT).decode("utf-8", "surrogateescape"),
        )
        for each in edits
    ]
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    made = Application(created=now, fixes=list(fixes), files=files)
    return replace(undo, applications=[*undo.applications, made])


def made_by(directory: Path, digests: Sequence[str]) -> Application | None:
    """The application that made files what they are, by their digests; None where none did."""
    try:
        undo = kept(directory)
    except DoctorError:
        return None
    made = [each for each in undo.applications if {file.after for file in each.files} & set(digests)]
    return made[-1] if made else None


def take_back(directory: Path) -> TakenBack:
    """What takes the latest application back.

    Raises `DoctorError` `nothing-to-undo`, and `files-changed` where a file is neither what was made of it nor what it
    was before.
    """
    undo = kept(directory)
    if not undo.applications:
        raise DoctorError(
            "nothing-to-undo",
            f"Nothing that `doctor apply` changed is kept in {directory / output.ARTIFACTS_NAME}.",
            "Give the folder of the report whose change you applied.",
        )
    last = undo.applications[-1]
    edits = []
    for file in last.files:
        path = Path(file.file)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            raise _changed(file, "is gone") from None
        except OSError as error:
            raise DoctorError(
                "file-unwritable", f"{path} can't be read: {reason_of(error)}.", "Make it readable and writable."
            ) from error
        if digest(content) == file.before:
            continue
        if digest(content) != file.after:
            raise _changed(file, "has changed since `doctor apply` edited it")
        edits.append(NamedEdit(file.name, FileEdit(path, content, _was(file, content))))
    return TakenBack(last, edits, replace(undo, applications=undo.applications[:-1]))


def _was(file: EditedFile, content: bytes) -> bytes:
    patch = file.patch.encode("utf-8", "surrogateescape")
    was = apply_patch(patch, lambda path: content if path == file.name else None, source="The kept patch")
    made = was.get(file.name)
    if made is None or digest(made) != file.before:
        raise DoctorError(
            "undo-unreadable",
            f"What is kept for {file.name} does not lead back to what it was.",
            "Change the file back by hand.",
        )
    return made


def _changed(file: EditedFile, how: str) -> DoctorError:
    return DoctorError(
        "files-changed",
        f"{file.file} {how}, so no file was put back.",
        "Undo your own edits first, or change it back by hand: this is what that takes.",
        detail=file.patch,
    )


def keep(directory: Path, undo: Undo) -> None:
    """Write what is kept. Raises as `output.write_undo`."""
    output.write_undo(directory, to_json(undo) if undo.applications else None)
