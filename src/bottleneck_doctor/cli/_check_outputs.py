"""Options of `doctor check` that name files to write. They are made from the list of outputs; their values come out as
`Wanted`."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from bottleneck_doctor.render.check.outputs import OUTPUTS, Wanted, wanted

Command = TypeVar("Command", bound=Callable[..., Any])

GITHUB_HELP = "Write annotations and a job summary for GitHub Actions (default: only inside GitHub Actions)."


def output_options(command: Command) -> Command:
    """Add an option for each output, and `--github`: the command takes them as `**outputs`, for `asked`."""
    command = click.option("--github/--no-github", default=None, help=GITHUB_HELP)(command)
    for output in reversed(OUTPUTS):
        kind = click.Path(path_type=Path, allow_dash=True)
        command = click.option(output.option, output.name, metavar="FILE", type=kind, help=output.help)(command)
    return command


def asked(outputs: dict[str, Any]) -> Wanted:
    """What the options ask for, checked as `outputs.prepare` does."""
    files = {output.name: outputs[output.name] for output in OUTPUTS}
    return wanted(files, outputs["github"], os.environ)
