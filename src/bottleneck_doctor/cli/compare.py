"""`doctor compare`: reports side by side, each compared with the first."""

from __future__ import annotations

from pathlib import Path

import click

from bottleneck_doctor.cli._placement import Command
from bottleneck_doctor.errors import DoctorError, Exit


@click.command("compare", cls=Command)
@click.argument("documents", metavar="A.JSON B.JSON...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--html", "page", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False), help="Write a web page as well."
)
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
def command(documents: tuple[Path, ...], page: Path | None, as_json: bool) -> Exit:
    """Compare reports of `doctor run` with the first one.

    Shows speed, phases and memory side by side, and the differences between the machines, the libraries and the
    trainings. Give each report.json that `doctor run` wrote, or the folder that holds it.
    """
    from bottleneck_doctor.cli._document import read_result
    from bottleneck_doctor.cli._terminal import say, stdout_has_color, stdout_width
    from bottleneck_doctor.compare import Named, compare
    from bottleneck_doctor.system import output as outputs

    if len(documents) < 2:
        raise DoctorError(
            "usage", "Only one report was given.", "Give two or more, as in doctor compare A.json B.json."
        )
    if page is not None:
        outputs.prepare(page.parent, (page.name,))
    results = [read_result(each) for each in documents]
    found = compare([Named(name, result) for name, result in zip(_names(documents), results, strict=True)])

    from bottleneck_doctor.render import comparison

    if page is not None:
        outputs.write_page(page, comparison.html(found))
    if as_json:
        import msgspec

        say(msgspec.json.format(msgspec.json.encode(found), indent=1).decode())
    else:
        say(comparison.text(found, width=stdout_width(), color=stdout_has_color()).rstrip("\n"))
    return Exit.DONE


def _names(documents: tuple[Path, ...]) -> list[str]:
    """The shortest ends of the paths that differ from each other; equal paths are numbered."""
    parts = [each.parts for each in documents]
    for length in range(1, max(map(len, parts)) + 1):
        names = ["/".join(each[-length:]) for each in parts]
        if len(set(names)) == len(names):
            return names
    return [f"{number}. {each}" for number, each in enumerate(documents, 1)]
