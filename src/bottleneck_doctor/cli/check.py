"""`doctor check`: whether the working tree trains slower than another revision of it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from bottleneck_doctor.cli._check_outputs import asked, output_options
from bottleneck_doctor.errors import Exit


@click.command(
    "check",
    # What follows SCRIPT is the script's, options included, as after `python script.py`.
    context_settings={"allow_interspersed_args": False},
    options_metavar="[OPTIONS]",
)
@click.option("--base-ref", metavar="REF", help="The revision to compare with, such as origin/main.")
@click.option("--merge-base", is_flag=True, help="Compare with where the head left REF, not with REF as it is now.")
@click.option("--base-setup", metavar="CMD", help="A command to run in the base's folder first, such as a build.")
@click.option("-m", "--module", metavar="MODULE", help="Run a module, as `python -m MODULE` does.")
@click.option("--threshold", metavar="PERCENT", help="How much longer a step may take; 5%.")
@click.option("--budget", metavar="TIME", help="How long it may take at most: 90s, 5m; 5m. It ends once it is sure.")
@click.option("--pairs", metavar="N", type=click.IntRange(min=3), help="Start exactly so many pairs of processes.")
@click.option(
    "--inconclusive",
    type=click.Choice(["pass", "fail"]),
    help="Whether an answer that could not be had is exit 0, or 3.",
)
@click.option("--steady/--no-steady", default=None, help="Keep glibc's allocator from adding luck, on both sides; on.")
@click.option("--seed", metavar="N", type=int, help="Seed of the random order of windows.")
@click.option("--python", metavar="PATH", help="The interpreter that runs the script; the one that runs doctor.")
@click.option("--in-place", is_flag=True, help="Let the script change files as it would without doctor.")
@output_options
@click.option("-v", "--verbose", is_flag=True, help="Show the script's own output.")
@click.option("-q", "--quiet", is_flag=True, help="No progress, only the outcome.")
@click.argument("words", metavar="SCRIPT [-- ARGS]...", nargs=-1, type=click.UNPROCESSED)
def command(
    base_ref: str | None,
    merge_base: bool,
    base_setup: str | None,
    module: str | None,
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
    """Compare a training script with itself at another revision, and fail where it became slower.

    Runs SCRIPT with ARGS from the working tree and from REF, in pairs of processes whose steps are timed in turn, until
    it is sure whether a step takes longer than the threshold allows. Everything after SCRIPT goes to the script.
    What a project keeps in [tool.bottleneck-doctor] or doctor.toml holds where no option says otherwise.
    """
    from bottleneck_doctor.cli._entrypoint import check_interpreter, check_script, split_words, time_option

    script, arguments = split_words("check", module, words)
    seconds = time_option("--budget", budget)
    if quiet and verbose:
        raise click.UsageError("--quiet and --verbose exclude each other.")
    interpreter = None if python is None else check_interpreter(python)
    if script is not None:
        check_script(script, compiles_here=interpreter is None)

    from dataclasses import replace

    from bottleneck_doctor import config
    from bottleneck_doctor.cli._terminal import say, stdout_has_color, stdout_width
    from bottleneck_doctor.gate import settings
    from bottleneck_doctor.gate.check import Request, check
    from bottleneck_doctor.gate.limits import STEP_TIME
    from bottleneck_doctor.gate.outputs import write_all
    from bottleneck_doctor.progress import choose_progress
    from bottleneck_doctor.render import check as text

    here = Path.cwd()
    project = config.load([*([] if script is None else [script.parent]), here], settings.UNITS)
    base_ref = base_ref or project.base_ref
    if base_ref is None:
        raise click.UsageError("--base-ref is missing: name the revision to compare with, such as origin/main.")
    limits = settings.limits(project)
    if threshold is not None:
        limits[STEP_TIME] = replace(limits[STEP_TIME], threshold=_percent(threshold))
    wanted = asked(outputs)
    request = Request(
        script=script,
        module=module,
        arguments=arguments,
        base_ref=base_ref,
        merge_base=merge_base,
        base_setup=base_setup or project.base_setup,
        budget=seconds or (project.budget if pairs is None else None),
        pairs=pairs,
        limits=limits,
        steady=steady if steady is not None else project.steady is not False,
        seed=seed,
        python=interpreter,
        verbose=verbose,
        in_place=in_place,
    )
    progress = choose_progress(quiet=quiet, verbose=verbose)
    try:
        outcome = settings.held(check(request, progress), project)
    finally:
        progress.close()
    color = stdout_has_color() and not wanted.takes_stdout
    summary = text.render(outcome, width=stdout_width(), color=color).rstrip("\n")
    if wanted.takes_stdout:
        click.echo(summary, err=True)
    else:
        say(summary)
    write_all(outcome, wanted, config.repository(here) or here, stdout=sys.stdout, stderr=sys.stderr)
    if outcome.status == "regressed":
        return Exit.REGRESSION
    strict = (inconclusive or project.inconclusive) == "fail"
    return Exit.CANNOT_TELL if outcome.status == "cannot_tell" and strict else Exit.DONE


def _percent(text: str) -> float:
    """`3%` or `3` as 0.03. Raises `click.BadParameter`, and for less than any loop repeats to."""
    from bottleneck_doctor.errors import DoctorError
    from bottleneck_doctor.gate.limits import LEAST_THRESHOLD

    try:
        share = float(text.strip().removesuffix("%")) / 100
    except ValueError:
        share = -1.0
    if not 0 <= share < 10:
        raise click.BadParameter(f"{text!r} is not a percentage; write 3%.", param_hint="'--threshold'")
    if share < LEAST_THRESHOLD:
        raise DoctorError(
            "threshold-too-small",
            f"A threshold of {text} can't be judged: no training repeats to that.",
            f"Give {100 * LEAST_THRESHOLD:g}% or more; what can be seen on this machine is said after a check.",
        )
    return share
