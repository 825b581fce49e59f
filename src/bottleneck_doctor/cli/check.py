"""`doctor check`: whether the working tree trains slower than another revision of it."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from bottleneck_doctor.errors import Exit


@click.command(
    "check",
    # What follows SCRIPT is the script's, options included, as after `python script.py`.
    context_settings={"allow_interspersed_args": False},
    options_metavar="[OPTIONS]",
)
@click.option("--base-ref", metavar="REF", required=True, help="The revision to compare with, such as origin/main.")
@click.option("--merge-base", is_flag=True, help="Compare with where the head left REF, not with REF as it is now.")
@click.option("--base-setup", metavar="CMD", help="A command to run in the base's folder first, such as a build.")
@click.option("-m", "--module", metavar="MODULE", help="Run a module, as `python -m MODULE` does.")
@click.option("--threshold", metavar="PERCENT", help="How much longer a step may take; 5%.")
@click.option("--budget", metavar="TIME", help="How long it may take at most: 90s, 5m; 5m. It ends once it is sure.")
@click.option("--pairs", metavar="N", type=click.IntRange(min=3), help="Start exactly so many pairs of processes.")
@click.option(
    "--inconclusive",
    type=click.Choice(["pass", "fail"]),
    default="pass",
    help="Whether an answer that could not be had is exit 0, or 3.",
)
@click.option("--steady/--no-steady", default=True, help="Keep glibc's allocator from adding luck, on both sides; on.")
@click.option("--seed", metavar="N", type=int, help="Seed of the random order of windows.")
@click.option("--python", metavar="PATH", help="The interpreter that runs the script; the one that runs doctor.")
@click.option("--in-place", is_flag=True, help="Let the script change files as it would without doctor.")
@click.option("--json", "json_file", metavar="FILE", type=click.Path(path_type=Path, allow_dash=True), help="As JSON.")
@click.option("-v", "--verbose", is_flag=True, help="Show the script's own output.")
@click.option("-q", "--quiet", is_flag=True, help="No progress, only the outcome.")
@click.argument("words", metavar="SCRIPT [-- ARGS]...", nargs=-1, type=click.UNPROCESSED)
def command(
    base_ref: str,
    merge_base: bool,
    base_setup: str | None,
    module: str | None,
    threshold: str | None,
    budget: str | None,
    pairs: int | None,
    inconclusive: str,
    steady: bool,
    seed: int | None,
    python: str | None,
    in_place: bool,
    json_file: Path | None,
    verbose: bool,
    quiet: bool,
    words: tuple[str, ...],
) -> int:
    """Compare a training script with itself at another revision, and fail where it became slower.

    Runs SCRIPT with ARGS from the working tree and from REF, in pairs of processes whose steps are timed in turn, until
    it is sure whether a step takes longer than the threshold allows. Everything after SCRIPT goes to the script.
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

    from bottleneck_doctor import output as outputs
    from bottleneck_doctor.cli._terminal import say, stdout_has_color, stdout_width
    from bottleneck_doctor.gate.check import Request, check
    from bottleneck_doctor.gate.limits import DEFAULTS, STEP_TIME
    from bottleneck_doctor.progress import choose_progress
    from bottleneck_doctor.render import check as text

    limits = dict(DEFAULTS)
    if threshold is not None:
        limits[STEP_TIME] = replace(limits[STEP_TIME], threshold=_percent(threshold))
    on_stdout = str(json_file) == "-"
    if json_file is not None and not on_stdout:
        outputs.prepare(json_file.parent, (json_file.name,))
    request = Request(
        script=script,
        module=module,
        arguments=arguments,
        base_ref=base_ref,
        merge_base=merge_base,
        base_setup=base_setup,
        budget=seconds,
        pairs=pairs,
        limits=limits,
        steady=steady,
        seed=seed,
        python=interpreter,
        verbose=verbose,
        in_place=in_place,
    )
    progress = choose_progress(quiet=quiet, verbose=verbose)
    try:
        outcome = check(request, progress)
    finally:
        progress.close()
    if json_file is not None:
        import msgspec

        document = msgspec.json.format(msgspec.json.encode(outcome), indent=1).decode() + "\n"
        if on_stdout:
            say(document.rstrip("\n"))
        else:
            outputs.write_text(json_file, document)
    summary = text.render(outcome, width=stdout_width(), color=stdout_has_color() and not on_stdout).rstrip("\n")
    if on_stdout:
        click.echo(summary, err=True)
    else:
        say(summary)
    sys.stdout.flush()
    if outcome.status == "regressed":
        return Exit.REGRESSION
    return Exit.CANNOT_TELL if outcome.status == "cannot_tell" and inconclusive == "fail" else Exit.DONE


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
