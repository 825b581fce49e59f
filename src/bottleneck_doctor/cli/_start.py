"""What `doctor run`, `check`, `try` and `baseline` start, and how they talk: shared options, and back as `Asked`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from bottleneck_doctor.errors import DoctorError

if TYPE_CHECKING:
    from bottleneck_doctor.config import Config
    from bottleneck_doctor.session.interpreter import Chosen
    from bottleneck_doctor.session.start import Start

Command = TypeVar("Command", bound=Callable[..., Any])

_START = (
    click.option("-m", "--module", metavar="MODULE", help="Run a module, as `python -m MODULE` does."),
    click.option(
        "--launch", metavar="COMMAND", help="Start the script with a launcher, such as 'torchrun --nproc-per-node 2'."
    ),
    click.option(
        "--listen",
        metavar="HOST:PORT",
        help="The address at which ranks on other hosts reach this machine; PORT 0 is any free port.",
    ),
    click.option(
        "--exec",
        "line",
        metavar="COMMAND",
        help="Run this command instead of a script, such as 'trl sft --config c.yaml'.",
    ),
    click.option(
        "--python",
        metavar="PATH",
        help="The interpreter that runs the script (default: doctor's own if it has torch, else the first one found "
        "that has it).",
    ),
    click.option("--in-place", is_flag=True, help="Let the script change files as it would without doctor."),
)
_ORDER = (click.option("--seed", metavar="N", type=int, help="The seed for the random order of measurements."),)
_TALK = (
    click.option("-v", "--verbose", is_flag=True, help="Show the script's own output."),
    click.option("-q", "--quiet", is_flag=True, help="Show no progress, only the result."),
    click.argument("words", metavar="SCRIPT [-- ARGS]...", nargs=-1, type=click.UNPROCESSED),
)


def start_options(command: Command) -> Command:
    """Add the options that say what is started, and in which order it is measured. The command gets them as parameters
    of the same names, for `start`."""
    return with_options((*_START, *_ORDER), command)


def plain_start_options(command: Command) -> Command:
    """The same options for a command that measures one side only, so without a seed."""
    return with_options(_START, command)


def talk_options(command: Command) -> Command:
    """Add `-v`, `-q`, and the script with its arguments as `words`."""
    return with_options(_TALK, command)


def refuse_quiet_and_verbose(*, quiet: bool, verbose: bool) -> None:
    """Raise `click.UsageError` if both were given."""
    if quiet and verbose:
        raise click.UsageError("--quiet and --verbose can't be used together.")


def with_options(options: tuple[Callable[[Command], Command], ...], command: Command) -> Command:
    """Add these options, which `--help` shows in this order."""
    for option in reversed(options):
        command = option(command)
    return command


@dataclass(frozen=True)
class Asked:
    """What is to be started, and all words of the command line that say so, which may hold secrets."""

    start: Start
    told: list[str]
    note: str = ""
    """What the user should know before anything starts, of the interpreter and of a notebook; "" if nothing."""


def start(
    command: str,
    *,
    module: str | None,
    launch: str | None,
    listen: str | None,
    line: str | None,
    python: str | None,
    in_place: bool,
    words: tuple[str, ...],
    show_source: bool = True,
) -> Asked:
    """What the options say, checked before anything starts. `command`: the name of doctor's command, for messages.

    Raises `click.UsageError` and the `DoctorError`s of `_entrypoint`.
    """
    from bottleneck_doctor.cli._entrypoint import (
        check_command,
        check_interpreter,
        check_launcher,
        check_script,
        notebook_note,
        split_words,
    )
    from bottleneck_doctor.session.start import Start

    if line is not None and (module is not None or words or python is not None):
        raise click.UsageError(
            "--exec gives the whole command, so SCRIPT, -m MODULE and --python can't be used with it."
        )
    from bottleneck_doctor.cli import _typed
    from bottleneck_doctor.session import interpreter

    told = list(words)
    typed = None if module or line or python else _typed.read(words, launched=launch is not None)
    if typed is not None:
        module, python, launch, words = typed.module, typed.python, launch or typed.launch, typed.words
    variables, line_words = ({}, typed.command if typed else ()) if line is None else check_command(line)
    script, arguments = (None, ()) if line_words else split_words(command, module, words)
    named = None if python is None else check_interpreter(python)
    address = _address(listen)
    left_out = ""
    if script is not None:
        compiles_here = named is None and interpreter.own_torch() is not None
        check_script(script, compiles_here=compiles_here, show_source=show_source)
        left_out = notebook_note(script)
    chosen = _chosen(named, script, line_words, launch)
    launcher = () if launch is None else check_launcher(launch, chosen.python)
    commands = [("--exec", line), ("--launch", launch)]
    return Asked(
        Start(
            script=script,
            module=module,
            arguments=arguments,
            words=line_words,
            environment=variables,
            launcher=launcher,
            listen=address,
            python=chosen.python,
            in_place=in_place,
        ),
        [*(word for option, text in commands if text is not None for word in (option, text)), *told],
        "; ".join(note for note in (chosen.note, left_out) if note),
    )


def _chosen(named: str | None, script: Path | None, line_words: tuple[str, ...], launch: str | None) -> Chosen:
    """The interpreter that runs the script: the one given with --python, else the one that is found. A command given
    with --exec runs as it is; for it, this is only the interpreter that is asked about its environment.

    Raises `DoctorError` `torch-missing` and `torch-too-old`.
    """
    from bottleneck_doctor.config import upward
    from bottleneck_doctor.runtime.wire.notebooks import is_notebook
    from bottleneck_doctor.session import interpreter
    from bottleneck_doctor.session.kernels import kernel_of
    from bottleneck_doctor.session.launch import command_of
    from bottleneck_doctor.session.start import interpreter_of

    if named is not None:
        torch = interpreter.torch_of(named)
        if torch is not None:
            interpreter.check_torch(named, torch)
        # One without torch may start another that has it.
        return interpreter.Chosen(named)
    folders = [each for folder in _folders(script) for each in upward(folder)]
    if not line_words:
        kernel = kernel_of(script, os.environ) if script is not None and is_notebook(script.name) else None
        return interpreter.chosen(folders, None if launch is None else command_of(launch), kernel)
    if interpreter_of(line_words) is None and interpreter.own_torch() is None:
        with contextlib.suppress(DoctorError):
            return interpreter.Chosen(interpreter.chosen(folders).python)
    return interpreter.Chosen()


def start_in_project(command: str, *, launch: str | None, line: str | None, **options: Any) -> tuple[Asked, Config]:
    """What `start` does, with the project's configuration, which may name the launcher.

    Raises what `start` does, and the `DoctorError`s of `config`.
    """
    asked = start(command, launch=launch, line=line, **options)

    from bottleneck_doctor import config
    from bottleneck_doctor.gate.limits import UNITS

    found = config.load(_folders(asked.start.script), UNITS)
    if launch is None and not asked.start.words and not asked.start.launcher and found.launch is not None:
        asked = start(command, launch=found.launch, line=line, **options)
    return asked, found


def _folders(script: Path | None) -> list[Path]:
    """Where the project's configuration is looked for: the script's folder, then the current one."""
    return [*([] if script is None else [script.absolute().parent]), Path.cwd()]


def _address(text: str | None) -> tuple[str, int] | None:
    from bottleneck_doctor.session.launch import listen_address

    try:
        return None if text is None else listen_address(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="'--listen'") from None
