"""What is kept of the files that changes edit, so that `doctor apply` can tell whether they are still the same."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bottleneck_doctor.documents.report import Change, Combination, FixOutcome, SourceFile, Sources
from bottleneck_doctor.patches.kept import kept
from bottleneck_doctor.patches.plan import after, plan
from bottleneck_doctor.system.project import path_in, project_of


def sources(fixes: Sequence[FixOutcome], together: Combination | None, folder: Path) -> Sources | None:
    """What is kept of the files that the changes of `fixes` and of `together` edit, read now; None where none does.

    `folder`: where the examination was started. A file that a change of it does not fit is not kept: it was written
    again meanwhile, or its lines end in a way that editors count otherwise.
    """
    changes = [] if together is None else list(together.changes)
    for fix in fixes:
        changes += [each for each in (fix.change, *fix.more_changes) if each is not None]
    changes = [change for change in changes if change.diff]
    files = list(dict.fromkeys(change.file for change in changes))
    if not files:
        return None
    project = project_of([folder / file for file in files], folder)
    found = [_kept(file, project, folder, [change for change in changes if change.file == file]) for file in files]
    return Sources(project=str(project), files=[each for each in found if each is not None])


def _kept(file: str, project: Path, folder: Path, changes: Sequence[Change]) -> SourceFile | None:
    try:
        content = (folder / file).read_bytes()
        path = path_in(project, folder / file)
    except OSError:
        return None
    source = kept(file, path, content)
    if not path:
        return source
    alone = [plan([change], Sources(project=str(project), files=[source])) for change in changes]
    fits = all(after(each.files[0], content) is not None for each in alone if each.files)
    return source if fits else None
