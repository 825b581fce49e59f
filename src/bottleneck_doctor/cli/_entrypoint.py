"""Checks of what the user asked to run, before anything starts: paths and names in, `DoctorError` or nothing out."""

from __future__ import annotations

import difflib
import os
import re
import shlex
import shutil
import sys
import traceback
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path

import click

from bottleneck_doctor.cli._typed import command_named
from bottleneck_doctor.errors import DoctorError, Exit
from bottleneck_doctor.runtime.wire import notebooks
from bottleneck_doctor.session.launch import launcher_words, located
from bottleneck_doctor.wording.durations import parse_duration

_VARIABLE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_LARGEST_SCRIPT = 16 * 1024 * 1024
"""Bytes. Nobody writes more by hand, and a checkpoint that was given by mistake should not be read in full."""
_MOST_TOLD = 3
"""Lines of a notebook that are left out, and are named."""
_LARGEST_NOTEBOOK = 256 * 1024 * 1024
"""Bytes. Most of a notebook are its outputs."""


def split_words(command: str, module: str | None, words: tuple[str, ...]) -> tuple[Path | None, tuple[str, ...]]:
    """Return the script and its arguments. A `--` directly after the script is dropped; later ones stay."""
    if module is not None:
        return None, words
    if not words:
        raise click.UsageError(f"No script was given. Write doctor {command} [OPTIONS] SCRIPT [-- ARGS], or -m MODULE.")
    rest = words[1:]
    return Path(words[0]), rest[1:] if rest[:1] == ("--",) else rest


def time_option(option: str, text: str | None) -> float | None:
    """The value of an option that is a length of time, in seconds. Raises `click.BadParameter`."""
    try:
        return None if text is None else parse_duration(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint=f"'{option}'") from None


def check_script(script: Path, *, compiles_here: bool, show_source: bool = True) -> None:
    """Raise `DoctorError` if `script` can't be a Python program.

    `compiles_here`: whether this interpreter will run it; if not, its syntax is not checked here.
    `show_source`: whether the error may show the line of the script that it is about.
    """
    try:
        script.stat()
    except (FileNotFoundError, NotADirectoryError):
        pass
    except (OSError, ValueError) as error:
        raise _unreadable(script, error) from error
    if script.is_dir():
        entry = script / "__main__.py"
        hint = f"Give the file: {entry}." if entry.exists() else "Give the script inside it, or -m MODULE."
        raise DoctorError("script-is-directory", f"{script} is a folder, not a script.", hint)
    if not script.exists():
        near = _near_files(script)
        hint = f"Did you mean {' or '.join(near)}?" if near else f"Check the path; it is relative to {os.getcwd()}."
        if not near and command_named(script) is not None:
            hint = f'{script} is a command: give it, with its arguments, as --exec "{script} ...".'
        raise DoctorError("script-missing", f"There is no script {script}.", hint)
    if notebooks.is_notebook(script.name) and script.is_file():
        _check_notebook(script, compiles_here=compiles_here)
        return
    if not script.is_file() or script.stat().st_size > _LARGEST_SCRIPT:
        raise _not_python(script)
    try:
        source = script.read_bytes()
    except OSError as error:
        raise _unreadable(script, error) from error
    if not compiles_here:
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(source, str(script), "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        if script.suffix != ".py":
            raise _not_python(script) from error
        line = f" in line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        raise DoctorError(
            "script-syntax",
            f"{script} has a syntax error{line}, so Python can't run it.",
            f"Correct it; `python -m py_compile {shlex.quote(str(script))}` shows whether the syntax is right then.",
            Exit.ENTRYPOINT_FAILED,
            detail="".join(traceback.format_exception_only(error)) if show_source else str(error),
        ) from error
    except (RecursionError, MemoryError):
        # Python will report this itself when it runs the script.
        pass


def _check_notebook(script: Path, *, compiles_here: bool) -> None:
    """Raise `DoctorError` if the code of a notebook can't be run as a program."""
    try:
        if script.stat().st_size > _LARGEST_NOTEBOOK:
            raise DoctorError(
                "notebook-unusable",
                f"{script} has more than {_LARGEST_NOTEBOOK // 2**20} MiB.",
                "Clear its outputs, and save it.",
            )
        made = notebooks.program(script.read_bytes())
        if compiles_here:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                compile(made.text, str(script), "exec", dont_inherit=True)
    except notebooks.NotAProgram as error:
        line = f", line {error.line}" if error.line else ""
        where = (
            f"Cell {error.cell}{line} of {script} can't be run by Python" if error.cell else f"{script} can't be run"
        )
        cells = " Cells with code are counted, from 1." if error.cell else ""
        raise DoctorError(
            "notebook-unusable",
            f"{where}: {error}.",
            f"Change that, or write what trains into a script, and give that.{cells}",
        ) from error
    except SyntaxError as error:
        # Only what is allowed in one place of a program is wrong here: each cell was read by itself.
        cell, at = notebooks.cell_of(error.lineno or 0)
        raise DoctorError(
            "notebook-unusable",
            f"Cell {cell}, line {at} of {script} can't be run behind the cells before it: {error.msg}.",
            "Move it to the first cell. Cells with code are counted, from 1.",
        ) from error
    except OSError as error:
        raise _unreadable(script, error) from error
    except (ValueError, RecursionError, MemoryError):
        # Python will report this itself when it runs the cells.
        pass


def notebook_note(script: Path) -> str:
    """Which lines of a notebook are left out, because only IPython understands them; "" if none is."""
    if not notebooks.is_notebook(script.name):
        return ""
    gone = notebooks.program(script.read_bytes()).left_out
    if not gone:
        return ""
    # A command may hold a password, as one that logs in.
    heads = [(each.text.split(), each.cell) for each in gone[:_MOST_TOLD]]
    shown = ", ".join(f"`{words[0]}{' …' if words[1:] else ''}` (cell {cell})" for words, cell in heads)
    more = f" and {len(gone) - _MOST_TOLD} more" if len(gone) > _MOST_TOLD else ""
    return f"{script} runs without {shown}{more}, which only notebooks understand"


def check_interpreter(name: str) -> str:
    """Return the path of the Python interpreter `name`, looked up as a shell does. Raises `python-missing`."""
    found = shutil.which(os.path.expanduser(name))
    if found is None:
        raise DoctorError(
            "python-missing",
            f"There is no interpreter {name}, or it can't be run.",
            "Give the Python that runs your training, such as venv/bin/python.",
        )
    return os.path.abspath(found)


def check_launcher(text: str, interpreter: str | None) -> tuple[str, ...]:
    """Return the words of `--launch`. Raises `launcher-missing` if there is no such command."""
    try:
        words = launcher_words(text)
    except ValueError as error:
        raise click.BadParameter(f"{text!r} can't be read as a command: {error}.", param_hint="'--launch'") from None
    if located(words, interpreter or sys.executable) is None:
        raise DoctorError(
            "launcher-missing",
            f"There is no launcher {words[0]}, or it can't be run.",
            "Give the command as you would type it before the script: --launch 'torchrun --nproc-per-node 2'.",
        )
    return words


def check_command(line: str) -> tuple[dict[str, str], tuple[str, ...]]:
    """Split a command as a shell does, into the variables set before it and its words. No shell is started.

    Raises `click.BadParameter` if the text is no command, and `DoctorError` `command-missing` if the command doesn't
    exist.
    """
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise click.BadParameter(f"{error} in {line!r}.", param_hint="'--exec'") from None
    if words[:1] == ["env"] and _VARIABLE.fullmatch("".join(words[1:2])):
        del words[0]
    variables: dict[str, str] = {}
    while words and (setting := _VARIABLE.fullmatch(words[0])):
        variables[setting[1]] = setting[2]
        del words[0]
    if not words:
        raise click.BadParameter("a command is missing.", param_hint="'--exec'")
    path = variables.get("PATH", os.environ.get("PATH"))
    found = shutil.which(os.path.expanduser(words[0]), path=path)
    if found is None:
        raise DoctorError(
            "command-missing",
            f"There is no command {words[0]}, or it can't be run.",
            "Give the command as in a shell. If it belongs to a virtual environment, activate that environment first.",
        )
    return variables, (found, *words[1:])


def check_fix_ids(asked: Iterable[str], known: Mapping[str, str]) -> None:
    """Raise `DoctorError` `unknown-fix` for the first of `asked` that is not an id of `known`: ids and descriptions."""
    for identifier in asked:
        if identifier not in known:
            word = identifier.replace("_", "-").lower()
            near = difflib.get_close_matches(word, known, n=3)
            near = near or [name for name, text in known.items() if word in text.lower()]
            hint = f"Did you mean {' or '.join(near)}?" if near else "Run `doctor fixes` to see the list."
            raise DoctorError("unknown-fix", f"There is no fix {identifier!r}.", hint)


def _unreadable(script: Path, error: OSError | ValueError) -> DoctorError:
    reason = getattr(error, "strerror", None) or str(error)
    return DoctorError(
        "script-unreadable", f"{script} can't be read: {reason}.", "Check the path and the file's permissions."
    )


def _not_python(script: Path) -> DoctorError:
    return DoctorError(
        "script-not-python",
        f"{script} is not a Python script.",
        "Give the Python file that trains, or -m MODULE, or a whole command as in --exec 'bash train.sh'.",
    )


def _near_files(script: Path) -> list[str]:
    try:
        names = [
            entry.name for entry in script.parent.iterdir() if entry.suffix in notebooks.SOURCES and entry.is_file()
        ]
    except OSError:
        return []
    near = difflib.get_close_matches(script.name, names, n=2)
    if f"{script.name}.py" in names:
        near = [f"{script.name}.py"]
    return [str(script.parent / name) for name in near]
