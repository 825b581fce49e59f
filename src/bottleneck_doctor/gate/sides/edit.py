"""What is tried: patches, another version of the script, arguments and variables in; one `Edit` out, looked at before
anything starts. Nothing is written here, and nothing of the user's is changed anywhere."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import traceback
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from bottleneck_doctor.documents.redaction import Discretion
from bottleneck_doctor.documents.report import Setting
from bottleneck_doctor.errors import DoctorError, Exit, reason_of
from bottleneck_doctor.gate.cause.hunks import Differences, between
from bottleneck_doctor.gate.sides import revision
from bottleneck_doctor.patches.applying import apply_patch
from bottleneck_doctor.patches.unified import unified
from bottleneck_doctor.runtime.wire.notebooks import SOURCES, program_of
from bottleneck_doctor.session.start import Start

_COMPILES = """
import json, sys, traceback
try:
    compile(sys.stdin.buffer.read(), sys.argv[1], "exec", dont_inherit=True)
except (SyntaxError, ValueError) as error:
    said = "".join(traceback.format_exception_only(type(error), error))
    line = error.lineno if isinstance(error, SyntaxError) else None
    print(json.dumps([getattr(error, "msg", str(error)), line, said]))
"""
_SECONDS = 60.0
_OWN = sys.executable


@dataclass(frozen=True, kw_only=True)
class Edit:
    """One edit of a program, whose project lies at `root`."""

    root: Path
    files: Mapping[str, bytes | None] = field(default_factory=dict)
    """By path from the root with `/` and no link on the way, the content of each that differs; None: it is removed."""
    before: Mapping[str, bytes | None] = field(default_factory=dict)
    """The same files as written; None: it is new."""
    arguments: tuple[str, ...] | None = None
    """The program's, in place of those that it was given; None: the same."""
    variables: Mapping[str, str] = field(default_factory=dict)
    setting: Setting = field(default_factory=dict)
    """What doctor switches in the edited program, for what can't be written."""
    name: str = ""
    """As the user calls it; empty: by what it consists of."""
    parts: tuple[str, ...] = ()
    """The names of the files that it was made from."""

    def called(self, discretion: Discretion) -> str:
        """Its name, or what it consists of; what is secret is masked."""
        words = [] if self.arguments is None else [shlex.join(discretion.words(self.arguments)) or "without arguments"]
        variables = [f"{name}={value}" for name, value in self.told_variables(discretion).items()]
        return self.name or ", ".join([*self.parts, *words, *variables])

    def told_variables(self, discretion: Discretion) -> dict[str, str]:
        """Its variables, with values that are secret masked."""
        words = discretion.words(f"{name}={value}" for name, value in self.variables.items())
        return {name: value for name, _, value in (word.partition("=") for word in words)}

    def edited(self, start: Start) -> Start:
        """What is started, with the edit's arguments."""
        return start if self.arguments is None else replace(start, arguments=self.arguments)

    def changes_nothing(self, start: Start) -> bool:
        """Whether the edited program is the program as written."""
        same = all(os.environ.get(name) == value for name, value in self.variables.items())
        return not self.files and not self.setting and same and self.edited(start) == start

    def whole(self) -> dict[str, bytes | None]:
        """The edited files by their whole paths."""
        return {str(self.root / path): content for path, content in self.files.items()}

    def diff(self) -> str:
        """What the files differ in, as a patch."""
        made = b""
        for path in sorted(self.files):
            before, after = self.before.get(path), self.files[path]
            lines = unified(path, before or b"", after or b"").splitlines(keepends=True)
            if lines and before is None:
                lines[0] = b"--- /dev/null\n"
            if lines and after is None:
                lines[1] = b"+++ /dev/null\n"
            made += b"".join(lines)
        return made.decode("utf-8", "replace")

    def differences(self) -> Differences:
        """The same, line by line."""
        return Differences(
            {
                path: between(path, self.before.get(path) or b"", content)
                for path, content in self.files.items()
                if content is not None
            }
        )


def project_of(start: Start, cwd: Path) -> Path:
    """The root of the project that is started: of the repository that the script lies in, else the working folder, or
    the script's own where it lies elsewhere."""
    script = None if start.script is None else Path(os.path.realpath(cwd / start.script))
    folder = cwd.resolve() if script is None else script.parent
    root = revision.root_of(folder)
    if root is not None or script is None:
        return root or folder
    # Nobody has the whole machine, or all that they own, as a project.
    wide = cwd.resolve() in (Path("/"), Path.home().resolve())
    return cwd.resolve() if script.is_relative_to(cwd.resolve()) and not wide else folder


def planned(
    start: Start,
    cwd: Path,
    *,
    patches: Sequence[tuple[str, bytes]] = (),
    script: tuple[str, bytes] | None = None,
    arguments: tuple[str, ...] | None = None,
    variables: Mapping[str, str] | None = None,
    name: str = "",
) -> Edit:
    """All that was asked for as one edit: the other version of the script, then the patches in their order.

    `patches`: names and contents. `script`: the name and the content of what stands in the script's place. Raises the
    `DoctorError`s of `apply_patch`, `patch-outside` where a path of the project leads out of it, and `edit-unreadable`.
    """
    root = project_of(start, cwd)
    files: dict[str, bytes | None] = {}
    if script is not None:
        assert start.script is not None
        files[Path(os.path.realpath(cwd / start.script)).relative_to(root).as_posix()] = script[1]
    for source, text in patches:
        files.update(_applied(root, cwd.resolve(), files, text, source))
    _refuse_without_script(start, cwd, root, files)
    # A file that a link of the project leads to is edited where it lies.
    real = {_real(root, path).relative_to(root).as_posix(): content for path, content in files.items()}
    before = {path: _read(root, path) for path in real}
    changed = {path: content for path, content in real.items() if content != before[path]}
    return Edit(
        root=root,
        files=changed,
        before={path: before[path] for path in changed},
        arguments=arguments,
        variables=dict(variables or {}),
        name=name,
        parts=(*(source for source, _ in patches), *(() if script is None else (script[0],))),
    )


def _refuse_without_script(start: Start, cwd: Path, root: Path, files: Mapping[str, bytes | None]) -> None:
    for path, content in files.items():
        if content is None and start.script is not None and _real(root, path) == _real(cwd, str(start.script)):
            raise DoctorError(
                "edit-removes-script",
                f"The edit removes {start.script}, so there is nothing to start with it.",
                "Give an edit that leaves the script where it is.",
            )


def _applied(
    root: Path, cwd: Path, files: Mapping[str, bytes | None], text: bytes, source: str
) -> dict[str, bytes | None]:
    """What files become under a patch whose paths are relative to the project's root, or to the working folder."""

    def read(path: str) -> bytes | None:
        return files[path] if path in files else _read(root, path)

    try:
        made = apply_patch(text, read, source=source)
    except DoctorError as refused:
        inner = cwd.relative_to(root).as_posix() if cwd.is_relative_to(root) else "."
        if refused.slug != "patch-does-not-apply" or inner == ".":
            raise
        try:
            made = apply_patch(text, lambda path: read(f"{inner}/{path}"), source=source)
        except DoctorError:
            raise refused from None
        made = {f"{inner}/{path}": content for path, content in made.items()}
    for path in made:
        if not _real(root, path).is_relative_to(root):
            raise DoctorError(
                "patch-outside",
                f"{source} changes {path}, which leads out of the project by a link.",
                "Make the patch for the file that the link leads to, inside its own project.",
            )
    return made


def _real(root: Path, path: str) -> Path:
    return Path(os.path.realpath(root / path))


def _read(root: Path, path: str) -> bytes | None:
    try:
        return (root / path).read_bytes() if (root / path).is_file() else None
    except OSError as error:
        raise unreadable(str(root / path), error) from error


def unreadable(path: str, error: OSError) -> DoctorError:
    """A file that an edit is made from, or for, can't be read."""
    return DoctorError(
        "edit-unreadable", f"{path} can't be read: {reason_of(error)}.", "Check the path and its permissions."
    )


def check_parses(edit: Edit, start: Start) -> None:
    """Raise `DoctorError` `edit-does-not-parse` where an edited file is no Python for the interpreter that trains, and
    was one before."""
    script = None if start.script is None else Path(os.path.realpath(Path.cwd() / start.script))
    for path, content in edit.files.items():
        if content is None or not (path.endswith(SOURCES) or edit.root / path == script):
            continue
        wrong = _syntax_error(program_of(path, content), path, start.interpreter)
        before = program_of(path, edit.before.get(path) or b"")
        if wrong is None or (before and _syntax_error(before, path, start.interpreter) is not None):
            continue
        message, line, said = wrong
        where = f" in line {line}" if line else ""
        raise DoctorError(
            "edit-does-not-parse",
            f"{path} has a syntax error{where} with the edit: {message}.",
            "Correct the edit. Nothing was started, and none of your files was changed.",
            Exit.ENTRYPOINT_FAILED,
            detail=said,
        )


def _syntax_error(content: bytes, path: str, python: str) -> tuple[str, int | None, str] | None:
    """What Python says of a source, the line, and all of its words; None where it compiles, or nobody can tell."""
    if python != _OWN:
        return _asked(content, path, python)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(content, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        said = "".join(traceback.format_exception_only(error))
        if isinstance(error, SyntaxError):
            return error.msg, error.lineno, said
        return str(error), None, said
    except (RecursionError, MemoryError):
        # Python itself will say so, in its own words, when it runs the file.
        pass
    return None


def _asked(content: bytes, path: str, python: str) -> tuple[str, int | None, str] | None:
    """The same by another interpreter, which may understand another syntax."""
    command = [python, "-I", "-S", "-W", "ignore", "-c", _COMPILES, path]
    try:
        done = subprocess.run(command, input=content, capture_output=True, timeout=_SECONDS, check=True)
        message, line, said = json.loads(done.stdout) if done.stdout.strip() else (None, None, "")
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    return None if message is None else (str(message), line, str(said))
