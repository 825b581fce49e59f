"""`doctor flame`: a py-spy recording as a flame graph, on one page without scripts."""

from __future__ import annotations

import os
from pathlib import Path

import click

from bottleneck_doctor.cli._placement import Command
from bottleneck_doctor.errors import DoctorError, Exit

_ROWS = 30


@click.command("flame", cls=Command)
@click.argument("files", metavar="RAW...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("flame.html"),
    help="The page to write (default: flame.html).",
)
@click.option(
    "--library-name",
    "library",
    metavar="NAME",
    help="Show the calling line of this package, such as torch, instead of your own.",
)
def command(files: tuple[Path, ...], output: Path, library: str | None) -> Exit:
    """Draw a py-spy recording as a flame graph.

    RAW is a file that `py-spy record --format raw` wrote, on this machine or another. Several files, such as one per
    machine, are read as one recording. Loader workers are drawn separately from the main process.
    """
    from bottleneck_doctor.cli._terminal import say
    from bottleneck_doctor.profiling.sampling import open_recording
    from bottleneck_doctor.system import output as outputs

    try:
        outputs.prepare(output.parent, (output.name,))
    except DoctorError as error:
        raise DoctorError(error.slug, error.sentence, "Give another file with -o FILE.") from error
    recording = open_recording(files)

    from bottleneck_doctor.render import flame_page

    name = files[0].name if len(files) == 1 else f"{files[0].name} and {len(files) - 1} more"
    page = flame_page.render(
        name=name,
        trees=recording.trees(),
        functions=recording.functions(library=library, most=_ROWS),
        notes=recording.notes(),
        cwd=os.getcwd(),
        led_by=f"line of {library} that called it" if library else "your line that called it",
    )
    outputs.write_page(output, page)
    say(str(output))
    return Exit.DONE
