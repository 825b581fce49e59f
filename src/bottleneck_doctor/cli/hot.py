"""`doctor hot`: the functions that a py-spy recording caught running, with the line of the user's that called them."""

from __future__ import annotations

import os
from pathlib import Path

import click

from bottleneck_doctor.cli._placement import Command
from bottleneck_doctor.errors import Exit


@click.command("hot", cls=Command)
@click.argument("files", metavar="RAW...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--top", metavar="N", type=click.IntRange(min=1), default=20, help="How many rows a table has (default: 20)."
)
@click.option(
    "--library-name",
    "library",
    metavar="NAME",
    help="Show the calling line of this package, such as torch, instead of your own.",
)
@click.option("--merge/--no-merge", default=True, help="Show one row per function (the default), or one per line.")
@click.option("--json", "as_json", is_flag=True, help="Print all rows as JSON.")
def command(files: tuple[Path, ...], top: int, library: str | None, merge: bool, as_json: bool) -> Exit:
    """List where a py-spy recording spent its time.

    The list shows the functions that were running when a sample was taken, and your line that called them. RAW
    is a file that `py-spy record --format raw` wrote, on this machine or another. Several files, such as one per
    machine, are read as one recording. Loader workers are listed separately from the main process. Record with
    `--subprocesses`, `--threads`, `--idle` and `--full-filenames` to see more.
    """
    from bottleneck_doctor.cli._terminal import say, stdout_has_color, stdout_width
    from bottleneck_doctor.profiling.sampling import open_recording

    recording = open_recording(files)
    functions = recording.functions(library=library, merge=merge, most=None if as_json else top)
    if as_json:
        import msgspec

        document = {"samples": recording.samples(), "notes": recording.notes(), "functions": functions}
        say(msgspec.json.format(msgspec.json.encode(document), indent=1).decode())
        return Exit.DONE

    from bottleneck_doctor.render import hot

    led_by = f"line of {library} that called it" if library else "your line that called it"
    text = hot.render(
        functions, recording.samples(), led_by=led_by, width=stdout_width(), color=stdout_has_color(), cwd=os.getcwd()
    )
    say(text.strip("\n"))
    for note in recording.notes():
        click.echo(f"doctor: {note}", err=True)
    return Exit.DONE
