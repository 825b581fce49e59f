"""Writes the report of an examination with its patches, and again once the promise has been held against the program
with the change made."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bottleneck_doctor.confirm.way import Way
    from bottleneck_doctor.documents.redaction import Discretion
    from bottleneck_doctor.documents.report import Result, SourceFile
    from bottleneck_doctor.examine.request import ExaminationOutcome, ExaminationRequest
    from bottleneck_doctor.system.progress import Progress


def write_report(result: Result, request: ExaminationRequest, artifacts: Path, progress: Progress) -> None:
    """Write `report.html`, `report.json` and what lies beside them, with the patches of `result` among `artifacts`."""
    from bottleneck_doctor.render import html
    from bottleneck_doctor.system import output as outputs

    try:
        page = html.render(result)
        problems = write_patches(result, artifacts, request.discretion)
    except Exception:
        # If the page can't be drawn, the measurements, which took minutes, are still kept.
        outputs.write_json(request.output, result)
        raise
    for problem in problems:
        progress.note(problem)
    outputs.write(request.output, result, page, artifacts)


def confirmed(
    outcome: ExaminationOutcome, request: ExaminationRequest, artifacts: Path, progress: Progress
) -> tuple[Result, bool]:
    """The result, held against the program with the change made where that is wanted, and written again; and whether
    the user interrupted that, which leaves the report as it is."""
    from bottleneck_doctor.confirm.confirming import Wanted, confirmations
    from bottleneck_doctor.errors import Exit
    from bottleneck_doctor.render.patches import HEADLINE
    from bottleneck_doctor.system import output as outputs
    from bottleneck_doctor.wording import words

    result = outcome.result
    if request.confirm is False or outcome.exit_code != Exit.DONE:
        return result, False

    def measuring(way: Way) -> str:
        """The command that measures a change made so. Only what can be edited has a patch."""
        ours = ["try"]
        ours += ["--patch", str(request.output / outputs.ARTIFACTS_NAME / HEADLINE)] if way.files else []
        ours += ["--args", shlex.join(way.arguments)] if way.arguments is not None else []
        if way.by == "setting":
            ours = ["run", "--confirm"]
        elif way.by == "variables":
            ours = ["try", *(word for name, value in way.variables.items() for word in ("--env", f"{name}={value}"))]
        return words.command_text(request.discretion.words(request.start.again(*ours))).replace("`", "'")

    wanted = Wanted(request, asked=request.confirm is True, costs=outcome.costs, loop=outcome.loop, command=measuring)
    try:
        for made in confirmations(result, wanted, progress):
            if made is not result:
                write_report(made, request, artifacts, progress)
            result = made
    except KeyboardInterrupt:
        progress.note("Interrupted: the report holds what was measured before")
        return result, True
    return result, False


def write_patches(result: Result, folder: Path, discretion: Discretion) -> list[str]:
    """Write `fix.patch` and `fixes/ID.patch` into `folder`, and nothing that an earlier result had there; what could
    not be made is returned, a sentence each."""
    from bottleneck_doctor.render.patches import FIXES, HEADLINE, patches

    (folder / HEADLINE).unlink(missing_ok=True)
    shutil.rmtree(folder / FIXES, ignore_errors=True)
    made = patches(result, _content, lambda text: discretion.text(text) == text)
    for name, patch in made.files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(patch)
    return made.problems


def _content(source: SourceFile) -> bytes | None:
    try:
        return Path(source.file).read_bytes()
    except OSError:
        return None
