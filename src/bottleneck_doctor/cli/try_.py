"""`doctor try`: what an edit is worth, measured beside the program as written. None of the user's files is changed."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from bottleneck_doctor.cli._check_outputs import output_options
from bottleneck_doctor.cli._pairs import exit_code, first, pairs_options, percent, shown, time_given
from bottleneck_doctor.cli._placement import StartingCommand
from bottleneck_doctor.cli._start import refuse_quiet_and_verbose, start_in_project, start_options, talk_options


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
    "--edit", "edited", metavar="FILE", type=click.Path(path_type=Path), help="An edited SCRIPT to run in its place."
)
@click.option(
    "--args", "arguments", metavar="ARGS", help="Arguments in place of the script's own, such as '--workers 8'."
)
@click.option(
    "--env", "variables", metavar="NAME=VALUE", multiple=True, help="An environment variable to set. May be repeated."
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
    edited: Path | None,
    arguments: str | None,
    variables: tuple[str, ...],
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
    known how many times as fast the edited one is. All of --patch, --edit, --args and --env together are one edit. None
    of your files is changed, and no git is needed. Put doctor's options before SCRIPT, or between SCRIPT and `--`; ARGS
    go to the script.
    """
    from bottleneck_doctor.cli._entrypoint import time_option

    seconds = time_option("--budget", budget)
    refuse_quiet_and_verbose(quiet=quiet, verbose=verbose)
    if not patches and edited is None and arguments is None and not variables:
        raise click.UsageError("There is nothing to try: give --patch, --edit, --args or --env.")
    _refuse_without_script(edited, arguments, module, line)
    given, config = start_in_project(
        "try", module=module, launch=launch, listen=listen, line=line, python=python, in_place=in_place, words=words
    )

    from bottleneck_doctor.cli._check_outputs import asked
    from bottleneck_doctor.cli._edit import check_arguments, check_variables, read
    from bottleneck_doctor.cli._secrets import gathered
    from bottleneck_doctor.gate import tried
    from bottleneck_doctor.gate.check import check
    from bottleneck_doctor.gate.limits import configured_for_edit
    from bottleneck_doctor.gate.request import TryRequest
    from bottleneck_doctor.gate.sides.edit import check_parses, planned

    new_arguments = None if arguments is None else check_arguments(arguments)
    edit = planned(
        given.start,
        Path.cwd(),
        patches=[(str(path), read(path)) for path in patches],
        script=None if edited is None else (str(edited), read(edited)),
        arguments=new_arguments,
        variables=check_variables(variables),
        name=name,
    )
    check_parses(edit, given.start)
    limits = configured_for_edit(config, None if threshold is None else percent(threshold), tried.THRESHOLD)
    options = _options(patches, edited, arguments, variables, name)
    request = TryRequest(
        start=given.start,
        budget=time_given(seconds, pairs, config.budget),
        pairs=pairs,
        limits=limits,
        steady=first(steady, config.steady, True),
        seed=seed,
        verbose=verbose,
        discretion=gathered([*variables, *(new_arguments or ()), *given.told]),
        edit=edit,
        options=options,
    )
    found = shown(partial(check, request), asked(outputs), note=given.note, quiet=quiet, verbose=verbose)
    return exit_code(found, fail=first(inconclusive, config.inconclusive, "pass") == "fail")


def _refuse_without_script(edited: Path | None, arguments: str | None, module: str | None, line: str | None) -> None:
    """Raise `click.UsageError` where what an option replaces is not there."""
    if edited is not None and (module is not None or line is not None):
        other = "-m MODULE" if line is None else "--exec"
        raise click.UsageError(f"--edit runs a file in place of SCRIPT, so {other} can't be used with it; use --patch.")
    if arguments is not None and line is not None:
        raise click.UsageError("--args can't be used with --exec: which of its words are arguments can't be known.")


def _options(
    patches: tuple[Path, ...], edited: Path | None, arguments: str | None, variables: tuple[str, ...], name: str
) -> tuple[str, ...]:
    """The words that say what is tried, for the command that does it again."""
    words = [word for path in patches for word in ("--patch", str(path))]
    words += [] if edited is None else ["--edit", str(edited)]
    words += [] if arguments is None else [f"--args={arguments}"]
    words += [word for variable in variables for word in ("--env", variable)]
    return (*words, *(["--name", name] if name else []))
