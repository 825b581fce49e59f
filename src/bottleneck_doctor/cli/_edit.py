"""What `doctor try` is to try: its options in; files, words and variables, or why not, out."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click

from bottleneck_doctor.errors import DoctorError
from bottleneck_doctor.gate.sides.edit import unreadable

_VARIABLE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_LARGEST = 16 * 1024 * 1024
"""Bytes. Nobody writes more by hand; a checkpoint given by mistake is not read in full."""


def read(path: Path) -> bytes:
    """A patch, or another version of the script. Raises `DoctorError` `edit-unreadable`."""
    try:
        if path.stat().st_size > _LARGEST:
            raise DoctorError("edit-unreadable", f"{path} is too large to be an edit.", "Give a patch or a script.")
        return path.read_bytes()
    except OSError as error:
        raise unreadable(str(path), error) from error


def check_arguments(text: str) -> tuple[str, ...]:
    """The words of `--args`, as a shell splits them. Raises `click.BadParameter`."""
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise click.BadParameter(f"{error} in {text!r}.", param_hint="'--args'") from None


def check_variables(texts: tuple[str, ...]) -> dict[str, str]:
    """The variables of `--env` by name; the last one of a name counts. Raises `click.BadParameter`."""
    found = {}
    for text in texts:
        setting = _VARIABLE.fullmatch(text)
        if setting is None:
            raise click.BadParameter(f"{text.partition('=')[0]!r} is not NAME=VALUE.", param_hint="'--env'")
        found[setting[1]] = setting[2]
    return found
