"""Edits made on the disk: all or none, with what takes them back written before the first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bottleneck_doctor.apply import undoing
from bottleneck_doctor.apply.edits import NamedEdit
from bottleneck_doctor.errors import DoctorError, reason_of
from bottleneck_doctor.system.editing import ChangedMeanwhile, check_editable, edit_all


def make(directory: Path, fixes: Sequence[str], edits: Sequence[NamedEdit]) -> None:
    """Make `edits`, and keep beside the report in `directory` what takes them back.

    Raises `DoctorError` `file-unwritable`, `files-changed`, `output-failed`, `output-not-ours` and `undo-unreadable`;
    then no file is changed.
    """
    check(edits)
    was = undoing.kept(directory)
    undoing.keep(directory, undoing.with_application(was, fixes, edits))
    try:
        _edit(edits)
    except BaseException:
        undoing.keep(directory, was)
        raise


def take_back(directory: Path, taken: undoing.TakenBack) -> None:
    """Put files back as they were. Raises `DoctorError` `file-unwritable` and `files-changed`; then none is changed."""
    check(taken.edits)
    _edit(taken.edits)
    undoing.keep(directory, taken.left)


def check(edits: Sequence[NamedEdit]) -> None:
    """Raise `DoctorError` `file-unwritable` where a file may not be edited."""
    for each in edits:
        try:
            check_editable(each.edit.path)
        except OSError as error:
            raise _unwritable(each.edit.path, error) from error


def _unwritable(path: Path, error: OSError) -> DoctorError:
    return DoctorError(
        "file-unwritable",
        f"{path} can't be edited: {reason_of(error)}. No file was changed.",
        "Make the file and its folder writable, or make the change by hand.",
    )


def _edit(edits: Sequence[NamedEdit]) -> None:
    try:
        edit_all([each.edit for each in edits])
    except ChangedMeanwhile as error:
        raise DoctorError(
            "files-changed", f"{error.path} is being changed just now. No file was changed.", "Try again."
        ) from error
    except OSError as error:
        raise _unwritable(edits[0].edit.path, error) from error
