"""`doctor check`: whether the working tree trains slower than another revision of it, or than a stored baseline."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bottleneck_doctor.cli._check_outputs import output_options
from bottleneck_doctor.cli._pairs import exit_code, first, pairs_options, percent, shown, time_given
from bottleneck_doctor.cli._placement import StartingCommand
from bottleneck_doctor.cli._start import refuse_quiet_and_verbose, start_in_project, start_options, talk_options

if TYPE_CHECKING:
    from bottleneck_doctor.gate.check import CheckOutcome
    from bottleneck_doctor.system.progress import Progress


@click.command(
    "check",
    cls=StartingCommand,
    short_help="Check whether a change made a training slower.",
    # Words after SCRIPT belong to the script, as after `python script.py`; `_placement` looks for doctor's among them.
    context_settings={"allow_interspersed_args": False},
    options_metavar="[OPTIONS]",
)
@start_options
@click.option("--base-ref", metavar="REF", help="The revision to compare with, such as origin/main.")
@click.option(
    "--baseline",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Compare with a file that `doctor baseline` wrote, instead of a revision.",
)
@click.option(
    "--allow-different-machine",
    is_flag=True,
    help="Compare even if the baseline was made on another machine; the result says so.",
)
@click.option(
    "--merge-base",
    is_flag=True,
    help="Compare with the commit at which HEAD branched off from REF, instead of REF itself.",
)
@click.option(
    "--base-setup", metavar="CMD", help="Run this command in the checkout of REF first, for example to build something."
)
@click.option(
    "--earlier",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="A folder with results of earlier checks (--json): they say how much times vary, so fewer pairs are needed.",
)
@click.option("--threshold", metavar="PERCENT", help="How much longer a step may take, such as 3% (default: 5%).")
@pairs_options
@output_options
@talk_options
def command(
    base_ref: str | None,
    baseline: Path | None,
    allow_different_machine: bool,
    merge_base: bool,
    base_setup: str | None,
    earlier: Path | None,
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
    """Compare a training script with another revision of itself, and fail if it became slower.

    Runs SCRIPT with ARGS from the working tree and from REF, in pairs of processes whose steps are timed in turn. Ends
    as soon as it is sure whether a step takes longer than the threshold allows. With --baseline, it runs the working
    tree only, and compares it with measurements that were stored on this machine before. Put doctor's options before
    SCRIPT, or between SCRIPT and `--`; ARGS go to the script.
    """
    from bottleneck_doctor.cli._entrypoint import time_option

    seconds = time_option("--budget", budget)
    refuse_quiet_and_verbose(quiet=quiet, verbose=verbose)
    _refuse_mixed(
        {
            "--base-ref": base_ref,
            "--merge-base": merge_base,
            "--base-setup": base_setup,
            "--seed": seed,
            "--earlier": earlier,
        },
        {"--baseline": baseline, "--allow-different-machine": allow_different_machine},
    )

    given, config = start_in_project(
        "check", module=module, launch=launch, listen=listen, line=line, python=python, in_place=in_place, words=words
    )

    from bottleneck_doctor.cli._check_outputs import asked
    from bottleneck_doctor.cli._secrets import gathered
    from bottleneck_doctor.documents import check_json
    from bottleneck_doctor.gate.check import check
    from bottleneck_doctor.gate.limits import configured
    from bottleneck_doctor.gate.request import CheckRequest

    limits = configured(config, None if threshold is None else percent(threshold))
    budget_seconds = time_given(seconds, pairs, config.budget)
    measure: Callable[[Progress], CheckOutcome]
    if baseline is not None:
        from bottleneck_doctor.documents import stored_baseline
        from bottleneck_doctor.gate.baseline import stored_check
        from bottleneck_doctor.gate.baseline.single import Training

        before = stored_baseline.read(baseline)
        held = stored_check.StoredCheckRequest(
            training=Training(
                start=given.start,
                steady=stored_baseline.way(before, first(steady, config.steady, before.steady), str(baseline)),
                verbose=verbose,
                discretion=gathered(given.told),
            ),
            baseline=before,
            file=str(baseline),
            budget=budget_seconds,
            processes=pairs,
            limits=limits,
            allow_different=allow_different_machine,
        )
        measure = partial(stored_check.check, held)
    else:
        ref = base_ref or config.base_ref
        if ref is None:
            raise click.UsageError(
                "There is nothing to compare with: give --base-ref, such as --base-ref origin/main, or --baseline FILE."
            )
        setup = base_setup or config.base_setup
        request = CheckRequest(
            start=given.start,
            base_ref=ref,
            merge_base=merge_base,
            base_setup=setup,
            budget=budget_seconds,
            pairs=pairs,
            limits=limits,
            steady=first(steady, config.steady, True),
            seed=seed,
            verbose=verbose,
            discretion=gathered([*([] if setup is None else ["--base-setup", setup]), *given.told]),
            earlier=() if earlier is None else check_json.read_folder(earlier),
            earlier_in=None if earlier is None else str(earlier),
        )
        measure = partial(check, request)
    found = shown(measure, asked(outputs), note=given.note, quiet=quiet, verbose=verbose)
    return exit_code(found, fail=first(inconclusive, config.inconclusive, "pass") == "fail")


def _refuse_mixed(of_revisions: Mapping[str, object], of_baselines: Mapping[str, object]) -> None:
    """Raise `click.UsageError` if options of both kinds of base were given, or options of a baseline without one."""
    first = next((name for name, value in of_revisions.items() if value not in (None, False)), None)
    second = next((name for name, value in of_baselines.items() if value not in (None, False)), None)
    if first is not None and second is not None:
        raise click.UsageError(
            f"{first} and {second} can't be used together: a check compares with a revision or with a stored baseline."
        )
    if second is not None and of_baselines["--baseline"] is None:
        raise click.UsageError(f"{second} needs --baseline FILE.")
