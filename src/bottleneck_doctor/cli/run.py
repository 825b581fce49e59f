"""`doctor run`: examine a training entrypoint and write the report."""

from __future__ import annotations

from pathlib import Path

import click

from bottleneck_doctor.cli._placement import StartingCommand
from bottleneck_doctor.cli._start import refuse_quiet_and_verbose, start, start_options, talk_options
from bottleneck_doctor.errors import Exit


@click.command(
    "run",
    cls=StartingCommand,
    # Words after SCRIPT belong to the script, as after `python script.py`; `_placement` looks for doctor's among them.
    context_settings={"allow_interspersed_args": False},
    options_metavar="[OPTIONS]",
)
@start_options
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    type=click.Path(path_type=Path),
    default=Path("."),
    help="Where report.html and report.json go (default: the current folder).",
)
@click.option(
    "--budget",
    metavar="TIME",
    help="The longest the examination may take, such as 90s, 5m or 1h (default: about 4 minutes, or up to 10 if a sure "
    "result needs them). It ends earlier once the result is sure.",
)
@click.option("--fresh-runs", is_flag=True, help="Start the script again for every measurement (slower).")
@click.option("--only", metavar="ID", multiple=True, help="Try only this fix; may be repeated (see `doctor fixes`).")
@click.option("--skip", metavar="ID", multiple=True, help="Leave this fix out; may be repeated.")
@click.option("--sessions", metavar="N", type=click.IntRange(min=3), help="How often to start the script, 3 or more.")
@click.option(
    "--confirm/--no-confirm",
    default=None,
    help="Measure the program with the change made, too, beside the one as written (default: if there is time).",
)
@click.option("--no-explain", is_flag=True, help="Measure speedups only: no phases, profiles or findings.")
@click.option(
    "--rate",
    metavar="HZ",
    type=click.IntRange(1, 1000),
    default=None,
    help="How many samples py-spy takes of each process per second (default: 100, or fewer with many workers).",
)
@click.option("--native", is_flag=True, help="Let py-spy sample native code too (slower).")
@click.option("--no-source", is_flag=True, help="Show no lines of your code in the report or in messages.")
@talk_options
def command(
    module: str | None,
    output: Path,
    budget: str | None,
    fresh_runs: bool,
    only: tuple[str, ...],
    skip: tuple[str, ...],
    sessions: int | None,
    confirm: bool | None,
    seed: int | None,
    launch: str | None,
    listen: str | None,
    line: str | None,
    python: str | None,
    no_explain: bool,
    rate: int | None,
    native: bool,
    in_place: bool,
    no_source: bool,
    verbose: bool,
    quiet: bool,
    words: tuple[str, ...],
) -> int:
    """Examine a training script and write the report.

    Runs SCRIPT with ARGS, without changing it, and tries one setting at a time inside its training loop. Writes
    report.html and report.json, with the fixes ranked by measured speedup. Put doctor's options before SCRIPT, or
    between SCRIPT and `--`; ARGS go to the script.
    """
    from bottleneck_doctor.cli._entrypoint import check_fix_ids, time_option

    seconds = time_option("--budget", budget)
    refuse_quiet_and_verbose(quiet=quiet, verbose=verbose)
    given = start(
        "run",
        module=module,
        launch=launch,
        listen=listen,
        line=line,
        python=python,
        in_place=in_place,
        words=words,
        show_source=not no_source,
    )
    if only or skip:
        from bottleneck_doctor.fixes import catalogue

        check_fix_ids([*only, *skip], {fix.id: f"{fix.title} {fix.how}" for fix in catalogue()})
    both = set(only) & set(skip)
    if both:
        raise click.UsageError(f"{', '.join(sorted(both))} is named by both --only and --skip.")

    from bottleneck_doctor.protection import scratch
    from bottleneck_doctor.system import output as outputs

    outputs.prepare(output)

    from bottleneck_doctor.cli._report import confirmed, write_report
    from bottleneck_doctor.cli._secrets import gathered
    from bottleneck_doctor.cli._terminal import say, stdout_has_color, stdout_width
    from bottleneck_doctor.confirm.room import never_unasked, seconds_kept
    from bottleneck_doctor.examine.examination import ExaminationRequest, examine
    from bottleneck_doctor.explain.explainer import ExplainOptions
    from bottleneck_doctor.render import terminal
    from bottleneck_doctor.system.progress import choose_progress

    with scratch.borrowed() as artifacts:
        request = ExaminationRequest(
            start=given.start,
            output=output,
            budget=seconds,
            fresh_runs=fresh_runs,
            only=frozenset(only),
            skip=frozenset(skip),
            sessions=sessions,
            seed=seed,
            verbose=verbose,
            confirm=confirm,
            confirming=seconds_kept if confirm is None and not never_unasked(given.start) else None,
            discretion=gathered(given.told, source=not no_source),
            explain=None if no_explain else ExplainOptions(folder=artifacts, rate=rate, native=native),
        )
        progress = choose_progress(quiet=quiet, verbose=verbose)
        try:
            if given.note:
                progress.note(given.note)
            outcome = examine(request, progress)
            write_report(outcome.result, request, artifacts, progress)
            result, interrupted = confirmed(outcome, request, artifacts, progress)
        finally:
            progress.close()
    path = str(output / outputs.HTML_NAME)
    summary = terminal.render(result, report_path=path, width=stdout_width(), color=stdout_has_color())
    say(summary.rstrip("\n"))
    if outcome.error is not None:
        # The report says where the time goes, but has no speedups, which the command was asked for.
        raise outcome.error
    if outcome.bug is not None:
        raise outcome.bug
    return int(Exit.INTERRUPTED if interrupted else outcome.exit_code)
