"""Where a check's outcome is written: options in, files out.

An output is one line in `OUTPUTS` and one file in `render/`. All targets are looked at before anything is measured, so
that a typing error costs a second and not five minutes, and all are written before the exit code is known to anybody.
Files appear whole or not at all; only what an earlier check wrote is overwritten.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from bottleneck_doctor.errors import DoctorError, Exit, reason_of, stdout_failed
from bottleneck_doctor.system.atomic import check_replaceable, write_whole

if TYPE_CHECKING:  # It brings what reads documents, and `doctor --help` should answer at once.
    from bottleneck_doctor.documents.check import Check

STDOUT = "-"
"""What stands for standard output in place of a file."""

_HEAD = 64 * 1024
"""Bytes of a file that are searched for our mark."""


@dataclass(frozen=True)
class Output:
    """One way to write a check. `render`: the check and the repository's root in, text out.

    `mark`: what is found at the beginning of a file that an earlier check wrote.
    """

    name: str
    help: str
    render: Callable[[Check, Path], str]
    mark: re.Pattern[bytes]

    @property
    def option(self) -> str:
        """The option as it is typed."""
        return f"--{self.name}"


def _json(check: Check, root: Path) -> str:
    from bottleneck_doctor.documents.check_json import to_json

    return to_json(check).decode()


def _markdown(check: Check, root: Path) -> str:
    from bottleneck_doctor.render.check import markdown
    from bottleneck_doctor.render.check.places import from_root

    return markdown.render(from_root(check, root))


def _junit(check: Check, root: Path) -> str:
    from bottleneck_doctor.render.check import junit
    from bottleneck_doctor.render.check.places import from_root

    return junit.render(from_root(check, root))


def _gitlab(check: Check, root: Path) -> str:
    from bottleneck_doctor.render.check import gitlab
    from bottleneck_doctor.render.check.places import from_root, script_path
    from bottleneck_doctor.wording.check_words import script

    return gitlab.render(from_root(check, root), script_path(check, root, script(check)))


def _html(check: Check, root: Path) -> str:
    from bottleneck_doctor.render.check import page
    from bottleneck_doctor.render.check.places import from_root

    return page.render(from_root(check, root))


OUTPUTS = (
    Output(
        "json",
        "Write the whole result as JSON, for other programs.",
        _json,
        # A report and a stored baseline begin alike, and have no base.
        re.compile(rb'"tool":\s*\{\s*"name":\s*"bottleneck-doctor"(?s:.*?)"base":\s*\{\s*"name":'),
    ),
    Output(
        "markdown",
        "Write Markdown, for a comment on a pull request.",
        _markdown,
        re.compile(rb"<!-- bottleneck-doctor (check|try) -->"),
    ),
    Output(
        "junit",
        "Write JUnit XML, with one test case per metric.",
        _junit,
        re.compile(rb'<testsuites name="bottleneck-doctor"'),
    ),
    Output(
        "html",
        "Write a web page that needs no JavaScript.",
        _html,
        re.compile(rb'<meta name="generator" content="bottleneck-doctor (?s:.*?)<body class="check-page">'),
    ),
    Output(
        "gitlab",
        "Write a Code Quality report for GitLab.",
        _gitlab,
        re.compile(rb'\A\s*\[\s*\]\s*\Z|"check_name":\s*"bottleneck-doctor/'),
    ),
)


@dataclass(frozen=True)
class Wanted:
    """What is to be written: files by the output's name, where `Path("-")` is stdout.

    `github`: annotations too. `summary`: the file that GitHub shows as the step's summary, None where there is none.
    """

    files: Mapping[str, Path] = field(default_factory=dict)
    github: bool = False
    summary: Path | None = None

    @property
    def takes_stdout(self) -> bool:
        """Whether stdout is one of the targets, so that nothing else may be printed there."""
        return any(str(path) == STDOUT for path in self.files.values())


def wanted(files: Mapping[str, Path | None], github: bool | None, environment: Mapping[str, str]) -> Wanted:
    """What the options ask for. `github` None: as the environment says (GITHUB_ACTIONS).

    Raises `DoctorError` as `prepare` does.
    """
    on = environment.get("GITHUB_ACTIONS") == "true" if github is None else github
    named = environment.get("GITHUB_STEP_SUMMARY", "")
    summary = Path(named) if on and named else None
    if summary is not None and github is None and not _can_write(summary):
        # Nobody asked for it, so a container that does not see the file is no reason to stop.
        summary = None
    made = Wanted({name: path for name, path in files.items() if path is not None}, on, summary)
    prepare(made)
    return made


def prepare(asked: Wanted) -> None:
    """Check that everything can be written, and make the folders.

    Raises `DoctorError` `output-unwritable`, `output-not-ours`, or `usage` where two outputs have one target.
    """
    seen: dict[str, str] = {}
    for output in OUTPUTS:
        path = asked.files.get(output.name)
        if path is None:
            continue
        target = STDOUT if str(path) == STDOUT else os.path.realpath(path)
        if target in seen and not _is_device(path):
            name = "standard output" if target == STDOUT else str(path)
            raise DoctorError(
                "usage",
                f"{seen[target]} and {output.option} can't both write to {name}.",
                "Give each its own file. Only one of them can be `-`.",
            )
        seen[target] = output.option
        if target != STDOUT:
            _prepare(path, output)
    if asked.summary is not None and not _can_write(asked.summary):
        raise _unwritable(
            asked.summary,
            "GITHUB_STEP_SUMMARY names it, but it is missing or read-only",
            "Correct GITHUB_STEP_SUMMARY, or use --no-github, which does not need the file.",
        )


def _prepare(path: Path, output: Output) -> None:
    if os.path.isdir(path):
        raise _unwritable(path, "it is a folder", f"Give a file: {output.option} {path / f'check-{output.name}'}.")
    check_writable(path, output.mark, output.option)


def check_writable(path: Path, mark: re.Pattern[bytes], option: str) -> None:
    """Check that a file can be written, and make its folder. `mark`: what is found in one of ours; others are left
    alone.

    Raises `DoctorError` `output-unwritable` or `output-not-ours`. `option` names the file.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if _is_device(path):
            return
        check_replaceable(path)
        ours = not path.exists() or _is_ours(path, mark)
    except OSError as error:
        raise _unwritable(path, reason_of(error), f"With {option}, give a file that you may write.") from error
    if not ours:
        raise DoctorError(
            "output-not-ours",
            f"{path} exists and was not written by doctor, so it is left alone.",
            f"Move it away, or give another file with {option}.",
        )


def write_all(check: Check, asked: Wanted, root: Path, *, stdout: TextIO, stderr: TextIO) -> None:
    """Write everything that is wanted. `root`: the repository's, from which lines are named; absolute.

    What can be made is made and written, whatever fails beside it; then the first failure is raised: `DoctorError`
    `output-failed`, or what a renderer raised. A reader of stdout that has gone is no failure.
    """
    failures: list[Exception] = []
    texts: dict[str, str] = {}
    for output in OUTPUTS:
        if output.name in asked.files:
            try:
                texts[output.name] = output.render(check, root)
            except Exception as error:
                failures.append(error)
    for name, text in texts.items():
        path = asked.files[name]
        try:
            if str(path) == STDOUT:
                _say(stdout, text)
            else:
                write_file(path, text.encode("utf-8", "replace"))
        except DoctorError as error:
            failures.append(error)
    if asked.github:
        try:
            _write_github(check, asked, root, stderr if asked.takes_stdout else stdout)
        except Exception as error:
            failures.append(error)
    if failures:
        raise failures[0]


def _write_github(check: Check, asked: Wanted, root: Path, stream: TextIO) -> None:
    from bottleneck_doctor.render.check import github
    from bottleneck_doctor.render.check.places import from_root

    placed = from_root(check, root)
    if asked.summary is not None:
        try:
            # Other commands of the step may have written some of it, and the limit is for all of them.
            taken = asked.summary.stat().st_size if asked.summary.exists() else 0
            with asked.summary.open("ab") as file:
                file.write(github.summary(placed, github.SUMMARY_BYTES - taken).encode("utf-8", "replace"))
        except OSError as error:
            raise _failed(asked.summary, error) from error
    # GitHub reads commands from either stream.
    _say(stream, github.commands(placed))


def _say(stream: TextIO, text: str) -> None:
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        pass
    except OSError as error:
        raise stdout_failed(error) from error


def write_file(path: Path, content: bytes) -> None:
    """Write a file, whole or not at all. Raises `DoctorError` `output-failed`."""
    try:
        if _is_device(path):
            path.write_bytes(content)
            return
        write_whole({path: content})
    except OSError as error:
        raise _failed(path, error) from error


def _is_device(path: Path) -> bool:
    """Whether the path is something to write into rather than to replace: a pipe, `/dev/stderr`."""
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


def _is_ours(path: Path, mark: re.Pattern[bytes]) -> bool:
    with path.open("rb") as stream:
        head = stream.read(_HEAD)
    return not head.strip() or mark.search(head) is not None


def _can_write(path: Path) -> bool:
    return os.access(path if os.path.exists(path) else path.parent, os.W_OK)


def _unwritable(path: Path, reason: str, next_step: str) -> DoctorError:
    return DoctorError("output-unwritable", f"{path} can't be written: {reason}.", next_step)


def _failed(path: Path, error: OSError) -> DoctorError:
    return DoctorError(
        "output-failed",
        f"{path} could not be written: {reason_of(error)}.",
        "Free some space or give another file, and run the command again.",
        Exit.USAGE,
    )
