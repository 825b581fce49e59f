"""The door of this room: a setting and the sites that the guest found in, edits of the user's own files out.

What makes edits is imported when one is made: libcst takes a quarter of a second, which no `doctor --help` should wait
for.
"""

from __future__ import annotations

from collections.abc import Sequence

from bottleneck_doctor import knobs
from bottleneck_doctor.documents.report import Change, Setting
from bottleneck_doctor.edits.project import FilesOnDisk, Project
from bottleneck_doctor.knobs import LoaderArgument
from bottleneck_doctor.runtime.wire.messages import Found


def changes_for(
    setting: Setting, found: Found, entrypoint: Sequence[str] = (), project: Project | None = None
) -> list[Change]:
    """The edits that make `setting` the user's own, one for each place; empty where no line of theirs was seen.

    Every diff is of the files as they are. What has no line of its own stands in the note of the first edit.
    `entrypoint`: the script or module that runs, with its arguments; where they give a value, no edit would change it,
    and the note says what to write there. `project`: the files; None: those on disk.
    """
    from bottleneck_doctor.edits import merged

    return merged.changes(setting, found, entrypoint, FilesOnDisk() if project is None else project)


def edited_files(
    setting: Setting, found: Found, entrypoint: Sequence[str] = (), project: Project | None = None
) -> dict[str, tuple[str, str]]:
    """The whole text of each file that `setting` changes, as it is and with all edits made; by absolute path.

    Texts have the line ends and the byte order mark of their files, which are UTF-8. Arguments as in `changes_for`,
    whose notes say what no file can: how to start the program.
    """
    from bottleneck_doctor.edits import merged

    return merged.files(setting, found, entrypoint, FilesOnDisk() if project is None else project)


def loader_arguments(setting: Setting) -> tuple[Setting, dict[str, object]]:
    """Which arguments the DataLoader is to get for `setting`, in the order in which they are added, and those that it
    can't have beside them, each with the value that is as good as none."""
    edits = [(each.edit, each.name) for each in knobs.knobs_of(setting) if isinstance(each.edit, LoaderArgument)]
    edits.sort(key=lambda each: each[0].place)
    without = {other: value for edit, name in edits for other, value in edit.without(setting[name]).items()}
    return {name: setting[name] for _, name in edits}, without


def given_to_loader(setting: Setting, found: Found) -> dict[str, object]:
    """The values that the loader has by now of arguments that `setting` gives it or takes from it, as far as that is
    known."""
    own: dict[str, object] = {}
    for each in knobs.knobs_of(setting):
        if isinstance(each.edit, LoaderArgument):
            own |= {**each.edit.given(found), each.name: each.own(found)}
    return own
