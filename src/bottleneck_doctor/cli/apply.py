"""`doctor apply`: makes the change that a report promises, and takes it back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bottleneck_doctor.cli._placement import Command
from bottleneck_doctor.errors import Exit

if TYPE_CHECKING:
    from bottleneck_doctor.apply.edits import NamedEdit
    from bottleneck_doctor.documents.report import Result


@click.command("apply", cls=Command)
@click.argument("document", metavar="[REPORT]", required=False, default=".", type=click.Path(path_type=Path))
@click.option(
    "--fix",
    "fixes",
    metavar="ID",
    multiple=True,
    help="Make the change of this fix, not the one that the report promises; may be repeated.",
)
@click.option("--check", is_flag=True, help="Change nothing; exit 1 if there is something to change.")
@click.option("--undo", is_flag=True, help="Put the files back as they were before the last `doctor apply`.")
def command(document: Path, fixes: tuple[str, ...], check: bool, undo: bool) -> Exit:
    """Edit your files as a report says.

    REPORT is a report.json or the folder that holds one (default: the current folder). Shows the diff, and edits all
    files or none; `--undo` takes it back. Files that changed since the report are left alone.
    """
    from bottleneck_doctor.cli._document import document_at, read_result

    if undo and (fixes or check):
        raise click.UsageError("--undo takes back the last change as a whole; give it without --fix and --check.")
    document = document_at(document)
    if undo:
        return _take_back(document.parent)
    return _apply(read_result(document), document.parent, fixes, check)


def _apply(result: Result, directory: Path, ids: Sequence[str], check: bool) -> Exit:
    from bottleneck_doctor.apply.choice import again, choose
    from bottleneck_doctor.apply.editing import make
    from bottleneck_doctor.apply.files import look_at
    from bottleneck_doctor.cli._terminal import say, stdout_has_color
    from bottleneck_doctor.render import patch
    from bottleneck_doctor.wording import patch_words, words

    choice = choose(result, ids)
    found = look_at(choice, result, directory)
    text = b"".join(each.patch() for each in found.edits)
    if text:
        say(patch.text(text, color=stdout_has_color()).rstrip("\n"))
        say("")
    done = words.listed([words.visible(name) for name in found.done])
    if done:
        say(f"{done} {'has' if len(found.done) == 1 else 'have'} this change already.")
    names = words.listed([words.visible(each.name) for each in found.edits])
    if found.edits and not check:
        make(directory, choice.fixes, found.edits)
        say(f"Changed {names}.{_reload(found.edits)}")
    elif found.edits:
        say(f"This would change {names}.")
    for sentence in [*patch_words.left_out(choice.plan, result), *patch_words.notes(choice.changes, result)]:
        say(f"Note: {words.visible(sentence)}")
    if check:
        return Exit.WOULD_CHANGE if found.edits else Exit.DONE
    if found.edits:
        say(f"Take it back:  {words.command_text([*patch_words.apply_command(str(directory)), '--undo'])}")
        say(f"Measure again: {again(result, choice.changes)}")
    return Exit.DONE


def _reload(edits: Sequence[NamedEdit]) -> str:
    """What to do about notebooks, which an editor holds open and saves by itself."""
    from bottleneck_doctor.runtime.wire.notebooks import is_notebook
    from bottleneck_doctor.wording import words

    names = words.listed([words.visible(each.name) for each in edits if is_notebook(each.name)])
    return f" If {names} is open, reload it from disk: saving it would undo that." if names else ""


def _take_back(directory: Path) -> Exit:
    from bottleneck_doctor.apply import editing, undoing
    from bottleneck_doctor.cli._terminal import say, stdout_has_color
    from bottleneck_doctor.render import patch
    from bottleneck_doctor.wording import words

    taken = undoing.take_back(directory)
    text = b"".join(each.patch() for each in taken.edits)
    if text:
        say(patch.text(text, color=stdout_has_color()).rstrip("\n"))
        say("")
    editing.take_back(directory, taken)
    names = words.listed([words.visible(name) for name in (each.name for each in taken.edits)])
    say(
        f"Put {names} back.{_reload(taken.edits)}"
        if names
        else "The files are as they were before; there was nothing to put back."
    )
    return Exit.DONE
