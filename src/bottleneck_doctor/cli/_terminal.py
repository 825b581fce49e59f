"""Prints to stdout, and goes on if its reader has gone."""

from __future__ import annotations

import os
import shutil
import sys

import click

from bottleneck_doctor.errors import stdout_failed


def say(text: str) -> None:
    """Print `text`. If its reader has gone (`| head`), the rest is dropped, and the exit code stays the same.

    Raises `DoctorError` `output-failed` if stdout can't be written, as on a full disk."""
    try:
        click.echo(text)
    except BrokenPipeError:
        silence_stdout()
    except OSError as error:
        silence_stdout()
        raise stdout_failed(error) from error


def silence_stdout() -> None:
    """Discard further output: the interpreter flushes stdout when it exits, and would print an error."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    except (OSError, ValueError):
        pass


def stdout_width() -> int | None:
    """Columns of the terminal; None if stdout is no terminal."""
    return shutil.get_terminal_size().columns if _is_terminal() else None


def stdout_has_color() -> bool:
    """Whether colour is wanted: on a terminal that has it, unless NO_COLOR says otherwise (https://no-color.org)."""
    return _is_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _is_terminal() -> bool:
    try:
        return sys.stdout.isatty()
    except (AttributeError, ValueError):
        return False
