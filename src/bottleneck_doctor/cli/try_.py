"""`doctor try`: what an edit is worth, measured beside the program as written. None of the user's files is changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bottleneck_doctor.cli._check_outputs import output_options
from bottleneck_doctor.cli._pairs import exit_code, first, pairs_options, percent, shown, time_given
from bottleneck_doctor.cli._placement import StartingCommand
from bottleneck_doctor.cli._start import refuse_quiet_and_verbose, start_in_project, start_options, talk_options

if TYPE_CHECKING:
    from bottleneck_doctor.gate.sides.edit import Edit
    from bottleneck_doctor.session.start import Start

MOST_AT_ONCE = 8
"""Edits of a race: each is a process that stands in memory beside the others."""


@click.command(
    "try",
    cls=StartingCommand,
    short_help="Measure what an edit is worth, without making it.",
    # What follows SCRIPT is the script's, as after `python script.py`, but for what `_placement` finds there.
    context_settings={"allow_interspersed_args": False},
    options_metavar="[OPTIONS]",
)
@start_options
@click.option(
    "--patch",
    "patches",
    metavar="FILE",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A patch of the project, as `git diff` writes it. May be repeated.",
)
@click.option(
    "--edit",
    "edited",
    metavar="FILE",
    multiple=True,
    type=click.Path(path_type=Path),
    help="An edited SCRIPT to run in its place.",
)
@click.option(
    "--args",
    "arguments",
    metavar="ARGS",
    multiple=True,
    help="Arguments in place of the script's own, such as '--workers 8'.",
)
@click.option(
    "--env", "variables", metavar="NAME=VALUE", multiple=True, help="An environment variable to set. May be repeated."
)
@click.option(
    "--each", is_flag=True, help="Compare what these options name as edits of their own, in one race (default: as one)."
)
@click.option("--name", metavar="NAME", default="", help="What to call the edit (default: what it consists of).")
@click.option(
    "--threshold", metavar="PERCENT", help="The smallest difference of a step's time that counts (default: 2%)."
)
@pairs_options
@output_options
@talk_options
def command(
    patches: tuple[Path, ...],
    edited: tuple[Path, ...],
    arguments: tuple[str, ...],
    variables: tuple[str, ...],
    each: bool,
    name: str,
    module: str | None,
    launch: str | None,
    listen: str | None,
    line: str | None,
    threshold: str | None,
    budget: str | None,
    pairs: int | None,
    inconclusive: str | None,
    steady: bool | None,
    seed: int | None,
    python: str | None,
    in_place: bool,
    verbose: bool,
    quiet: bool,
    words: tuple[str, ...],
    **outputs: Any,
) -> int:
    """Measure what an edit of a training is worth, without making it.

    Runs SCRIPT with ARGS as it is and with the edit, in pairs of processes whose steps are timed in turn, until it is
    known how many times as fast the edited one is. All of --patch, --edit, --args and --env together are one edit; with
    --each, every one of them is an edit of its own, and all are compared at once. None of your files is changed, and no
    git is needed. Put doctor's options before SCRIPT, or between SCRIPT and `--`; ARGS
    go to the script.
    """
    from bottleneck_doctor.cli._entrypoint import time_option

    seconds = time_option("--budget", budget)
    refuse_quiet_and_verbose(quiet=quiet, verbose=verbose)
    asked_for = _AskedFor(patches, edited, arguments, variables)
    asked_for.check(each=each, name=name, listen=listen)
    _refuse_without_script(edited, arguments, module, line)
    given, config = start_in_project(
        "try", module=module, launch=launch, listen=listen, line=line, python=python, in_place=in_place, words=words
    )

    from bottleneck_doctor.cli._check_outputs import asked
    from bottleneck_doctor.cli._secrets import gathered
    from bottleneck_doctor.gate import tried
    from bottleneck_doctor.gate.check import check
    from bottleneck_doctor.gate.limits import configured_for_edit
    from bottleneck_doctor.gate.race import race
    from bottleneck_doctor.gate.request import TryRequest
    from bottleneck_doctor.gate.sides.edit import check_parses

    edits = [part.planned(given.start, name) for part in (asked_for.parts() if each else [asked_for])]
    for edit in edits:
        check_parses(edit, given.start)
    limits = configured_for_edit(config, None if threshold is None else percent(threshold), tried.THRESHOLD)
    told = [word for edit in edits for word in edit.arguments or ()]
    request = TryRequest(
        start=given.start,
        budget=time_given(seconds, pairs, config.budget),
        gives_up=seconds is None,
        pairs=pairs,
        limits=limits,
        steady=first(steady, config.steady, TryRequest.usually_steady),
        seed=seed,
        verbose=verbose,
        discretion=gathered([*variables, *told, *given.told]),
        edit=edits[0],
        options=(*(["--each"] if each else []), *asked_for.words(), *(["--name", name] if name else [])),
    )
    measure: Callable[..., Any] = partial(check, request)
    if len(edits) > 1:
        measure = partial(race, [replace(request, edit=edit) for edit in edits])
    found = shown(measure, asked(outputs), note=given.note, quiet=quiet, verbose=verbose)
    return exit_code(found, fail=first(inconclusive, config.inconclusive, "pass") == "fail")


@dataclass(frozen=True)
class _AskedFor:
    """What the options name. All of it is one edit, or each part of it."""

    patches: tuple[Path, ...] = ()
    edited: tuple[Path, ...] = ()
    arguments: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()

    def check(self, *, each: bool, name: str, listen: str | None) -> None:
        """Raise `click.UsageError` where it is nothing, or can't be tried so."""
        if not self.parts():
            raise click.UsageError("There is nothing to try: give --patch, --edit, --args or --env.")
        if not each:
            for option, given in (("--edit", self.edited), ("--args", self.arguments)):
                if len(given) > 1:
                    raise click.UsageError(f"{option} is given {len(given)} times: give --each to compare them.")
            return
        if name:
            raise click.UsageError("--name calls one edit something, so it can't be used with --each.")
        if listen is not None:
            raise click.UsageError("--each can't be used with --listen: each edit would need a port of its own.")
        if len(self.parts()) < 2:
            raise click.UsageError("--each compares edits, and there is only one: leave it out, or name another edit.")
        if len(self.parts()) > MOST_AT_ONCE:
            raise click.UsageError(
                f"--each starts all edits at once, and {len(self.parts())} are too many: {MOST_AT_ONCE} at most."
            )

    def parts(self) -> list[_AskedFor]:
        """Each as an edit of its own."""
        return [
            *(_AskedFor(patches=(path,)) for path in self.patches),
            *(_AskedFor(edited=(path,)) for path in self.edited),
            *(_AskedFor(arguments=(text,)) for text in self.arguments),
            *(_AskedFor(variables=(text,)) for text in self.variables),
        ]

    def words(self) -> list[str]:
        """The words that say what is tried, for the command that does it again."""
        words = [word for path in self.patches for word in ("--patch", str(path))]
        words += [word for path in self.edited for word in ("--edit", str(path))]
        words += [f"--args={text}" for text in self.arguments]
        return words + [word for variable in self.variables for word in ("--env", variable)]

    def planned(self, start: Start, name: str) -> Edit:
        """All of it as one edit. Raises what `sides.edit.planned` does."""
        from bottleneck_doctor.cli._edit import check_arguments, check_variables, read
        from bottleneck_doctor.gate.sides.edit import planned

        script = next(((str(path), read(path)) for path in self.edited), None)
        return planned(
            start,
            Path.cwd(),
            patches=[(str(path), read(path)) for path in self.patches],
            script=script,
            arguments=next((check_arguments(text) for text in self.arguments), None),
            variables=check_variables(self.variables),
            name=name,
        )


def _refuse_without_script(
    edited: tuple[Path, ...], arguments: tuple[str, ...], module: str | None, line: str | None
) -> None:
    """Raise `click.UsageError` where what an option replaces is not there."""
    if edited and (module is not None or line is not None):
        other = "-m MODULE" if line is None else "--exec"
        raise click.UsageError(f"--edit runs a file in place of SCRIPT, so {other} can't be used with it; use --patch.")
    if arguments and line is not None:
        raise click.UsageError("--args can't be used with --exec: which of its words are arguments can't be known.")
