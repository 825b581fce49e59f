"""The files that a choice edits, as they are now: what is to be done, what is done, and what stands in the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bottleneck_doctor.apply.choice import Choice, again
from bottleneck_doctor.apply.edits import NamedEdit
from bottleneck_doctor.apply.undoing import made_by
from bottleneck_doctor.documents.report import Result
from bottleneck_doctor.errors import DoctorError, reason_of
from bottleneck_doctor.patches.kept import changed_lines, digest, is_as_kept
from bottleneck_doctor.patches.plan import PlannedFile, after, before
from bottleneck_doctor.system.editing import FileEdit
from bottleneck_doctor.system.project import located
from bottleneck_doctor.wording import patch_words, words


@dataclass(frozen=True)
class Files:
    """`edits`: what is to be done. `done`: names of the files that are as they would be."""

    edits: list[NamedEdit] = field(default_factory=list)
    done: list[str] = field(default_factory=list)


def look_at(choice: Choice, result: Result, directory: Path) -> Files:
    """What has to be done to the files of a choice. `directory`: where the report lies.

    A file is looked for where the report saw it, then by its path in the project from the current folder and from
    `directory`: in another clone. Raises `DoctorError` `files-changed` where one is gone or is not the one that the
    report knows, `file-unwritable` where one can't be read, and `fixes-conflict` where the changes would break it
    together.
    """
    found = Files()
    differing: list[str] = []
    digests: list[str] = []
    for file in choice.plan.files:
        path = located(Path(file.source.file), file.source.path, [Path.cwd(), directory])
        name = words.visible(file.source.path)
        if path is None:
            differing.append(f"{name} is gone")
            continue
        content = _read(path)
        if is_as_kept(file.source, content):
            found.edits.append(NamedEdit(file.source.path, FileEdit(path, content, _after(file, content, result))))
        elif before(file, content) is not None:
            found.done.append(file.source.path)
        else:
            digests.append(digest(content))
            differing.append(f"{name} differs ({patch_words.lines_text(changed_lines(file.source, content), name)})")
    if differing:
        raise _changed(differing, digests, choice, result, directory)
    return found


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DoctorError(
            "file-unwritable", f"{path} can't be read: {reason_of(error)}.", "Make it readable and writable."
        ) from error


def _after(file: PlannedFile, content: bytes, result: Result) -> bytes:
    made = after(file, content)
    if made is None:
        raise DoctorError(
            "fixes-conflict",
            f"Together, these changes would leave {file.source.path} no program that Python reads.",
            f"Apply one of them, then examine again: {again(result)}",
        )
    return made


def _changed(
    differing: Sequence[str], digests: Sequence[str], choice: Choice, result: Result, directory: Path
) -> DoctorError:
    by = made_by(directory, digests)
    sentence = f"Since this report was written, files that the change is for have changed: {', '.join(differing)}."
    if by is None:
        return DoctorError("files-changed", sentence, f"Examine again: {again(result)}")
    both = list(dict.fromkeys([*by.fixes, *choice.fixes])) if by.fixes and choice.fixes else []
    whole = words.command_text(patch_words.apply_command(str(directory), both)) if both else ""
    then = f", then make both changes at once: {whole}" if whole else ", then apply this one"
    back = words.command_text([*patch_words.apply_command(str(directory)), "--undo"])
    return DoctorError(
        "files-changed",
        f"{sentence[:-1]}; `doctor apply` did that.",
        f"Take that back with {back}{then}. Or examine again: {again(result)}",
    )
