"""What `doctor run`, `check` and `baseline` start, and how they talk meanwhile: shared options, and back as `Asked`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from bottleneck_doctor.config import Config
    from bottleneck_doctor.session.start import Start

Command = TypeVar("Command", bound=Callable[..., Any])

_START = (
    click.option("-m", "--module", metavar="MODULE", help="Run a module, as `python -m MODULE` does."),
    click.option(
        "--launch", metavar="COMMAND", help="Put a launcher before the script: 'torchrun --nproc-per-node 2'."
    ),
    click.option(
        "--listen", metavar="HOST:PORT", help="Where ranks on other hosts reach this machine; PORT 0 for any."
    ),
    click.option(
        "--exec", "line", metavar="COMMAND", help="Run a command as it is, such as 'trl sft --config c.yaml'."
    ),
    click.option(
        "--python", metavar="PATH", help="The interpreter that runs the script (default: the one that runs doctor)."
    ),
    click.option("--in-place", is_flag=True, help="Let the script change files as it would without doctor."),
)
_ORDER = (click.option("--seed", metavar="N", type=int, help="Seed of the random order of windows."),)
_TALK = (
    click.option("-v", "--verbose", is_flag=True, help="Show the script's own output."),
    click.option("-q", "--quiet", is_flag=True, help="No progress, only the outcome."),
    click.argument("words", metavar="SCRIPT [-- ARGS]...", nargs=-1, type=click.UNPROCESSED),
)


def start_options(command: Command) -> Command:
    """Add the options that say what is started, and in which order it is measured. The command takes them as parameters
    of their names, for `start`."""
    return _with((*_START, *_ORDER), command)


def plain_start_options(command: Command) -> Command:
    """The same where nothing is measured in turn."""
    return _with(_START, command)


def talk_options(command: Command) -> Command:
    """Add `-v`, `-q`, and the script with its arguments as `words`."""
    return _with(_TALK, command)


def _with(options: tuple[Callable[[Command], Command], ...], command: Command) -> Command:
    for option in reversed(options):
        command = option(command)
    return command


@dataclass(frozen=True)
class Asked:
    """What is to be started, and all words in which the user said so, which may hold secrets."""

    start: Start
    told: list[str]


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
    """What the options say, looked at before anything starts. `command`: ours, for messages.

    Raises `click.UsageError` and the `DoctorError`s of `_entrypoint`.
    """
    from bottleneck_doctor.cli._entrypoint import (
        check_command,
        check_interpreter,
        check_launcher,
        check_script,
        split_words,
    )
    from bottleneck_doctor.session.start import Start

    if line is not None and (module is not None or words or python is not None):
        raise click.UsageError("--exec is the whole command: give no SCRIPT, -m MODULE or --python beside it.")
    variables, line_words = ({}, ()) if line is None else check_command(line)
    script, arguments = (None, ()) if line is not None else split_words(command, module, words)
    interpreter = None if python is None else check_interpreter(python)
    address = _address(listen)
    launcher = () if launch is None else check_launcher(launch, interpreter)
    if script is not None:
        check_script(script, compiles_here=interpreter is None, show_source=show_source)
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
            python=interpreter,
            in_place=in_place,
        ),
        [*(word for option, text in commands if text is not None for word in (option, text)), *words],
    )


def start_in_project(command: str, *, launch: str | None, line: str | None, **options: Any) -> tuple[Asked, Config]:
    """What `start` does, and the project's file, which is looked for beside the script and may name the launcher.

    Raises what `start` does, and the `DoctorError`s of `config`.
    """
    asked = start(command, launch=launch, line=line, **options)

    from bottleneck_doctor import config
    from bottleneck_doctor.gate.limits import UNITS

    script = asked.start.script
    folders = [Path.cwd()] if script is None else [script.absolute().parent, Path.cwd()]
    found = config.load(folders, UNITS)
    if launch is None and line is None and found.launch is not None:
        asked = start(command, launch=found.launch, line=line, **options)
    return asked, found


def _address(text: str | None) -> tuple[str, int] | None:
    from bottleneck_doctor.session.launch import listen_address

    try:
        return None if text is None else listen_address(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="'--listen'") from None
