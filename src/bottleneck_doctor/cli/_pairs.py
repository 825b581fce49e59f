"""What `doctor check` and `doctor try` have in common: options that say how long and how sure, the outcome shown and
written, and its exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from bottleneck_doctor.cli._start import with_options
from bottleneck_doctor.errors import Exit

if TYPE_CHECKING:
    from bottleneck_doctor.documents.check import Check
    from bottleneck_doctor.gate.check import CheckOutcome
    from bottleneck_doctor.render.check.outputs import Wanted
    from bottleneck_doctor.system.progress import Progress

Command = TypeVar("Command", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--budget",
        metavar="TIME",
        help="The longest it may take, such as 90s (default: 5m). It ends earlier once the result is sure.",
    ),
    click.option("--pairs", metavar="N", type=click.IntRange(min=3), help="Measure exactly N pairs of processes."),
    click.option(
        "--inconclusive",
        type=click.Choice(["pass", "fail"]),
        help="How to exit if the result is inconclusive: with 0 (pass, the default) or 3 (fail).",
    ),
    click.option(
        "--steady/--no-steady",
        default=None,
        help="Reduce the noise that glibc's memory allocator adds, on both sides (default: check does, try does not).",
    ),
)


def pairs_options(command: Command) -> Command:
    """Add the options that say how long and how sure. The command takes them as parameters of their names."""
    return with_options(_OPTIONS, command)


def shown(
    measure: Callable[[Progress], CheckOutcome], wanted: Wanted, *, note: str, quiet: bool, verbose: bool
) -> Check:
    """Measure, show what came of it, and write what is wanted. `note`: what the user should know before."""
    from bottleneck_doctor.cli._terminal import say, stdout_has_color, stdout_width
    from bottleneck_doctor.render.check import terminal as text
    from bottleneck_doctor.render.check.outputs import write_all
    from bottleneck_doctor.system.progress import choose_progress

    progress = choose_progress(quiet=quiet, verbose=verbose)
    try:
        if note:
            progress.note(note)
        outcome = measure(progress)
    finally:
        progress.close()
    color = stdout_has_color() and not wanted.takes_stdout
    summary = text.render(outcome.check, width=stdout_width(), color=color).rstrip("\n")
    try:
        if wanted.takes_stdout:
            click.echo(summary, err=True)
        else:
            say(summary)
    finally:
        # What took minutes to measure is kept, whatever can't be shown.
        write_all(outcome.check, wanted, outcome.root, stdout=sys.stdout, stderr=sys.stderr)
    return outcome.check


def exit_code(check: Check, *, fail: bool) -> int:
    """`fail`: whether an answer that could not be had is a failure."""
    if check.status == "regressed":
        return Exit.REGRESSION
    return Exit.CANNOT_TELL if check.status == "cannot_tell" and fail else Exit.DONE


def time_given(seconds: float | None, pairs: int | None, configured: float | None) -> float | None:
    """The time of `--budget`, else that of the project. A number of pairs is asked for to have so many, whatever time a
    project allows."""
    return seconds if seconds is not None or pairs is not None else configured


def first(*values: Any) -> Any:
    """The first that is not None: the command line comes before the project's file, and that before the default."""
    return next(value for value in values if value is not None)


def percent(text: str) -> float:
    """`3%` or `0.03` as 0.03. Raises `click.BadParameter`."""
    number, sign, _ = text.strip().partition("%")
    try:
        share = float(number) / (100 if sign else 1)
    except ValueError:
        share = -1.0
    # A bare 5 is more likely five percent than five times.
    if not 0 <= share <= 100 or (share > 1 and not sign):
        raise click.BadParameter(f"{text!r} is not a threshold; write 3% or 0.03.", param_hint="'--threshold'")
    return share
