"""Writes `report.html` and `report.json`; nothing else does.

`prepare` is called before any work, so that a folder that can't be written is found in the first second and not after
ten minutes. Only files of an earlier run of doctor are overwritten. Files appear whole or not at all.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from bottleneck_doctor.errors import DoctorError, Exit, reason_of
from bottleneck_doctor.system.atomic import check_replaceable, write_whole

if TYPE_CHECKING:
    from bottleneck_doctor.documents.report import Result

HTML_NAME = "report.html"
JSON_NAME = "report.json"
ARTIFACTS_NAME = "report-artifacts"
"""A folder of raw profiles and traces beside the report, for other tools to open."""

UNDO_NAME = "undo.json"
"""A file in that folder: what takes the edits of `doctor apply` back. It outlives the next run."""

_ARTIFACTS_MARK = ".bottleneck-doctor"

_TOOL = "bottleneck-doctor"
_MARK = re.compile(
    rb"<meta\b(?=[^>]*\bname=[\"']?generator\b)[^>]*\bcontent=[\"']?bottleneck-doctor\b"
    rb"|<title>[^<]* \xe2\x80\x93 bottleneck-doctor</title>",
    re.IGNORECASE,
)
"""How a page shows that doctor wrote it: a generator tag, or the end of its title."""

_HTML_HEAD = 64 * 1024
"""Bytes of an HTML file that are searched for that; doctor's own pages have it in the first kilobyte."""


def prepare(directory: Path, names: tuple[str, ...] = (HTML_NAME, JSON_NAME, ARTIFACTS_NAME)) -> None:
    """Make `directory` and check that `names` can be written into it.

    Raises `DoctorError` `output-unwritable` if the folder can't be made or written, and `output-not-ours` if one of the
    files exists and doctor did not write it.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name in names:
            check_replaceable(directory / name)
        taken = [path for path in (directory / name for name in names) if _is_there(path)]
    except OSError as error:
        raise DoctorError(
            "output-unwritable",
            f"The report can't be written into {directory}: {reason_of(error)}.",
            "With -o DIR, give a folder in which you may write.",
        ) from error
    for path in taken:
        if not _is_ours(path):
            raise DoctorError(
                "output-not-ours",
                f"{path} exists and was not written by doctor, so it is left alone.",
                "Move it away, or give another folder with -o DIR.",
            )


def write(directory: Path, result: Result, html: str, artifacts: Path | None = None) -> None:
    """Write `report.json` and `report.html`, both or neither, and the files in the folder `artifacts` beside them.

    Artifacts of an earlier run are replaced, or removed if this run has none. Raises `DoctorError` `output-failed`.
    """
    from bottleneck_doctor.documents.report import to_json

    _write(directory, {JSON_NAME: to_json(result), HTML_NAME: html.encode()})
    try:
        _write_artifacts(directory, artifacts)
    except OSError as error:
        raise _failed(directory, error) from error


def _write_artifacts(directory: Path, artifacts: Path | None) -> None:
    target = directory / ARTIFACTS_NAME
    was_there = target.exists() and _is_ours(target)
    undo = target / UNDO_NAME if was_there and (target / UNDO_NAME).is_file() else None
    if not undo and (artifacts is None or not any(artifacts.iterdir())):
        if was_there:
            shutil.rmtree(target)
        return
    temporary = directory / f".{ARTIFACTS_NAME}-{secrets.token_hex(4)}"
    try:
        _make_artifacts_folder(temporary)
        if artifacts is not None:
            _copy_into(artifacts, temporary)
        if undo:
            shutil.copy(undo, temporary)
        if was_there:
            shutil.rmtree(target)
        os.replace(temporary, target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _make_artifacts_folder(folder: Path) -> None:
    folder.mkdir()
    (folder / _ARTIFACTS_MARK).write_text("Written by doctor; replaced by its next run.\n", encoding="utf-8")


def _copy_into(folder: Path, target: Path) -> None:
    """Not `copytree`: it would take over that a temporary folder is private. These are as readable as the report."""
    for made in folder.iterdir():
        if made.is_dir():
            (target / made.name).mkdir()
            _copy_into(made, target / made.name)
        else:
            shutil.copy(made, target)


def write_undo(directory: Path, content: bytes | None) -> None:
    """Keep `undo.json` beside a report; None removes it. Raises `DoctorError` `output-not-ours`, `output-failed`."""
    folder = directory / ARTIFACTS_NAME
    try:
        if content is None:
            (folder / UNDO_NAME).unlink(missing_ok=True)
            return
        if not _is_there(folder):
            _make_artifacts_folder(folder)
        elif not _is_ours(folder):
            raise DoctorError(
                "output-not-ours",
                f"{folder} was not written by doctor, so what takes the change back can't be kept there.",
                "Move it away.",
            )
        write_whole({folder / UNDO_NAME: content})
    except OSError as error:
        raise DoctorError(
            "output-failed",
            f"What takes the change back could not be written into {folder}: {reason_of(error)}.",
            "Free some space, or make the folder writable. No file was changed.",
        ) from error


def read_undo(directory: Path) -> bytes | None:
    """The `undo.json` beside a report; None where there is none. Raises `OSError` where it can't be read."""
    path = directory / ARTIFACTS_NAME / UNDO_NAME
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None


def write_json(directory: Path, result: Result) -> None:
    """Write `report.json` alone, because the page could not be drawn."""
    from bottleneck_doctor.documents.report import to_json

    _write(directory, {JSON_NAME: to_json(result)})


def write_html(directory: Path, html: str) -> None:
    """Write `report.html` alone: a report drawn again."""
    _write(directory, {HTML_NAME: html.encode()})


def write_page(path: Path, html: str) -> None:
    """Write a page of another name, which `prepare` has checked."""
    _write(path.parent, {path.name: html.encode()})


def _write(directory: Path, files: Mapping[str, bytes]) -> None:
    try:
        write_whole({directory / name: content for name, content in files.items()})
    except OSError as error:
        raise _failed(directory, error) from error


def _failed(directory: Path, error: OSError) -> DoctorError:
    return DoctorError(
        "output-failed",
        f"The report could not be written into {directory}: {reason_of(error)}.",
        "Free some space or give another folder with -o DIR, and run the command again.",
        Exit.USAGE,
    )


def _is_there(path: Path) -> bool:
    """Whether anything has that name. Raises `OSError` if the name is impossible, for example too long."""
    try:
        path.lstat()
    except FileNotFoundError:
        return False
    return True


def _is_ours(path: Path) -> bool:
    try:
        if path.name == ARTIFACTS_NAME:
            return not path.is_symlink() and (path / _ARTIFACTS_MARK).is_file()
        if not path.is_file():
            return False
        if path.suffix == ".json":
            document = json.loads(path.read_bytes())
            tool = document.get("tool") if isinstance(document, dict) else None
            return isinstance(tool, dict) and tool.get("name") == _TOOL
        with path.open("rb") as stream:
            return _MARK.search(stream.read(_HTML_HEAD)) is not None
    except (OSError, ValueError, RecursionError):
        return False
