"""The command line: arguments in, an exit code out.

Each command is in the file of its name and is found there. To import one takes click and nothing heavier, so that
`doctor --help` answers at once. Only this module prints errors to stderr: the user never sees a traceback of doctor's.
"""

from __future__ import annotations

import difflib
import importlib
import keyword
import pkgutil
import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from bottleneck_doctor import __version__
from bottleneck_doctor.cli._placement import StartingCommand
from bottleneck_doctor.cli._terminal import silence_stdout
from bottleneck_doctor.errors import DoctorError, Exit


class CommandGroup(click.Group):
    """Commands by file name; files that begin with an underscore are not commands. One at the end parts a command from
    a word of Python's own: `try_`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        names = (module.name for module in pkgutil.iter_modules(__path__))
        return sorted(name.removesuffix("_") for name in names if not name.startswith("_"))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        module = f"{cmd_name}_" if keyword.iskeyword(cmd_name) else cmd_name
        command: click.Command = importlib.import_module(f"{__name__}.{module}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in self.list_commands(ctx) and not name.startswith("-"):
            self._refuse(ctx, name)
        return super().resolve_command(ctx, args)

    def _refuse(self, ctx: click.Context, name: str) -> NoReturn:
        from bottleneck_doctor.runtime.wire.notebooks import SOURCES

        if name.endswith(SOURCES):
            raise click.UsageError(f"{name!r} is a script, not a command; write `doctor run {name}`.", ctx)
        near = difflib.get_close_matches(name, self.list_commands(ctx), n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"the commands are {', '.join(self.list_commands(ctx))}."
        raise click.UsageError(f"There is no command {name!r}; {hint}", ctx)


@click.command(
    cls=CommandGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    no_args_is_help=False,
    epilog="Example: doctor run train.py -- --epochs 3",
)
@click.version_option(__version__, prog_name="bottleneck-doctor", message="%(prog)s %(version)s")
def doctor() -> None:
    """Measure what makes a PyTorch training faster, and say why it is slow."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `doctor` with `arguments` (default: the process's own) and return the exit code."""
    for stream in (sys.stdout, sys.stderr):
        # The user's file names and errors may hold characters that this terminal can't show: print them escaped.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        code = _invoke(words)
    except DoctorError as error:
        code = _show(error, words)
    _flush()
    return code


def _invoke(arguments: list[str]) -> int:
    try:
        with doctor.make_context("doctor", arguments) as context:
            code = doctor.invoke(context)
        return Exit.DONE if code is None else int(code)
    except DoctorError:
        raise
    except click.exceptions.Exit as ending:
        return ending.exit_code
    except click.UsageError as error:
        path = "doctor" if error.ctx is None else error.ctx.command_path
        hint = f"Run `{path} --help`."
        if isinstance(error, click.NoSuchOption) and error.ctx and isinstance(error.ctx.command, StartingCommand):
            hint = f"Run `{path} --help`. Options of your script go after the script, behind a `--`."
        raise DoctorError("usage", _sentence(error.format_message()), hint) from None
    except click.ClickException as error:
        raise DoctorError("usage", _sentence(error.format_message()), "Run `doctor --help`.") from None
    except (KeyboardInterrupt, click.Abort):
        _say_on_stderr("doctor: interrupted")
        return Exit.INTERRUPTED
    except BrokenPipeError:
        # The program that read our output has closed it, as `| head` does, so nothing more can be printed.
        silence_stdout()
        return Exit.DONE
    except Exception as error:
        from bottleneck_doctor.cli._crash import record_crash

        raise record_crash(error, arguments) from error


def _show(error: DoctorError, arguments: Sequence[str]) -> int:
    from bottleneck_doctor.cli._secrets import gathered

    arrow = "→"
    try:
        arrow.encode(sys.stderr.encoding or "ascii")
    except (UnicodeError, LookupError, AttributeError):
        arrow = "->"
    text = f"doctor: {error.sentence} [{error.slug}]\n  {arrow} {error.next_step}"
    if error.detail:
        text += f"\n\n{error.detail.rstrip()}"
    _say_on_stderr(gathered(arguments).text(text))
    return int(error.exit_code)


def _say_on_stderr(text: str) -> None:
    try:
        click.echo(text, err=True)
    except (OSError, ValueError):
        pass


def _flush() -> None:
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        silence_stdout()


def _sentence(message: str) -> str:
    message = message.strip()
    return message if message.endswith((".", "?", "!", "?)")) else f"{message}."
