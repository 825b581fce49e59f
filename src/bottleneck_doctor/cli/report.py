"""`doctor report`: draws a `report.json` again, also one of an earlier release."""

from __future__ import annotations

from pathlib import Path

import click

from bottleneck_doctor.cli._placement import Command
from bottleneck_doctor.errors import Exit


@click.command("report", cls=Command)
@click.argument("document", metavar="REPORT.JSON", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Where report.html goes (default: beside REPORT.JSON).",
)
def command(document: Path, output: Path | None) -> Exit:
    """Write report.html again from a report.json.

    Give the report.json that `doctor run` wrote, or the folder that holds it.
    """
    from bottleneck_doctor.cli._document import document_at, read_result
    from bottleneck_doctor.cli._terminal import say
    from bottleneck_doctor.render import html
    from bottleneck_doctor.system import output as outputs

    document = document_at(document)
    directory = document.parent if output is None else output
    result = read_result(document)
    outputs.prepare(directory, (outputs.HTML_NAME,))
    outputs.write_html(directory, html.render(result))
    say(str(directory / outputs.HTML_NAME))
    return Exit.DONE
