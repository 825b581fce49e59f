"""`doctor baseline`: store how fast a training runs on this machine, so that later checks can compare with it."""

from __future__ import annotations

from pathlib import Path

import click

from bottleneck_doctor.cli._placement import StartingCommand
from bottleneck_doctor.cli._start import plain_start_options, refuse_quiet_and_verbose, start_in_project, talk_options


@click.command(
    "baseline",
    cls=StartingCommand,
    # Words after SCRIPT belong to the script, as after `python script.py`; `_placement` looks for doctor's among them.
    context_settings={"allow_interspersed_args": False},
    options_metavar="[OPTIONS]",
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(path_type=Path),
    default=Path("baseline.json"),
    help="The file to write (default: baseline.json). If it holds a baseline, the new measurements are added to it.",
)
@click.option("--new", "anew", is_flag=True, help="Replace the baseline that the file holds, instead of adding to it.")
@click.option("--sessions", metavar="N", type=click.IntRange(min=1), help="How often to start the script (default: 8).")
@click.option(
    "--budget", metavar="TIME", help="Start the script as often as fits into this time, such as 5m (at most 30 times)."
)
@click.option(
    "--steady/--no-steady",
    default=None,
    help="Reduce the noise that glibc's memory allocator adds (default: --steady).",
)
@plain_start_options
@talk_options
def command(
    output: Path,
    anew: bool,
    sessions: int | None,
    budget: str | None,
    module: str | None,
    launch: str | None,
    listen: str | None,
    line: str | None,
    steady: bool | None,
    python: str | None,
    in_place: bool,
    verbose: bool,
    quiet: bool,
    words: tuple[str, ...],
) -> int:
    """Store how fast a training runs on this machine.

    Starts SCRIPT with ARGS several times, and writes the measurements and a description of this machine to a file for
    `doctor check --baseline`. Run it again at other times with the same file, because the speed of a machine varies.
    The more times the file holds, and the better they agree, the smaller the changes that a check can detect. Put
    doctor's options before SCRIPT, or between SCRIPT and `--`; ARGS go to the script.
    """
    from bottleneck_doctor.cli._entrypoint import time_option

    seconds = time_option("--budget", budget)
    refuse_quiet_and_verbose(quiet=quiet, verbose=verbose)
    if sessions is not None and seconds is not None:
        raise click.UsageError(
            "--sessions and --budget can't be used together: one sets the number of starts, the other the time."
        )

    given, config = start_in_project(
        "baseline",
        module=module,
        launch=launch,
        listen=listen,
        line=line,
        python=python,
        in_place=in_place,
        words=words,
    )

    from bottleneck_doctor.cli._secrets import gathered
    from bottleneck_doctor.cli._terminal import say, stdout_width
    from bottleneck_doctor.documents import stored_baseline
    from bottleneck_doctor.gate.baseline.recording import RecordingRequest, record
    from bottleneck_doctor.gate.baseline.single import Training
    from bottleneck_doctor.gate.limits import configured
    from bottleneck_doctor.render import baseline as text
    from bottleneck_doctor.render.check.outputs import check_writable, write_file
    from bottleneck_doctor.system.progress import choose_progress

    # With --new, the old baseline is not read.
    check_writable(output, stored_baseline.MARK if anew else stored_baseline.FAMILY_MARK, "-o")
    there = output.exists() and output.stat().st_size > 0
    before = stored_baseline.read(output) if there and not anew else None
    usual = next(way for way in (steady, config.steady, True if before is None else before.steady) if way is not None)
    request = RecordingRequest(
        training=Training(
            start=given.start,
            steady=usual if before is None else stored_baseline.way(before, usual, str(output)),
            verbose=verbose,
            discretion=gathered(given.told),
        ),
        file=str(output),
        before=before,
        processes=sessions,
        budget=seconds,
    )
    progress = choose_progress(quiet=quiet, verbose=verbose)
    try:
        if given.note:
            progress.note(given.note)
        outcome = record(request, progress)
    finally:
        progress.close()
    write_file(output, stored_baseline.to_json(outcome.baseline))
    summary = text.render(
        outcome.baseline,
        outcome.warnings,
        file=str(output),
        check=request.check(),
        limits=configured(config, None),
        width=stdout_width(),
    )
    say(summary.rstrip("\n"))
    return 0
