"""How a change is made without an editor: the command, the patch beside the report, and what is left by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bottleneck_doctor.documents.report import Change, Result
from bottleneck_doctor.patches.plan import plan
from bottleneck_doctor.system.output import ARTIFACTS_NAME
from bottleneck_doctor.wording import patch_words, words


@dataclass(frozen=True)
class Applying:
    """`command` makes the changes, in the folder of the report; `patch` is where they lie as a patch. `rest`: sentences
    on what of them is not made."""

    command: str
    patch: str
    places: int
    rest: list[str]


def applying(result: Result, changes: Sequence[Change], patch: str, fixes: Sequence[str] = ()) -> Applying | None:
    """None where no file can be edited: there is nothing but what the change's note says."""
    planned = plan(changes, result.sources)
    if not planned.files:
        return None
    rest = patch_words.left_out(planned, result)
    if any(change.note for change in changes):
        rest.append("Read the notes of the change, too.")
    return Applying(
        command=words.command_text(patch_words.apply_command("", fixes)),
        patch=f"{ARTIFACTS_NAME}/{patch}",
        places=sum(len(file.edits) for file in planned.files),
        rest=rest,
    )
