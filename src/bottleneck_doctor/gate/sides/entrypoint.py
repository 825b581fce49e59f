"""How the entrypoint is started on the base: always from the base's tree, however the user named it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from bottleneck_doctor.gate.sides import imports, worktree
from bottleneck_doctor.gate.sides.revision import Revisions
from bottleneck_doctor.session.start import Start


def on_base(start: Start, revisions: Revisions, tree: worktree.Tree) -> tuple[str, ...] | None:
    """The entrypoint as it is started on the base; None if the base does not have it."""
    root = revisions.root
    if start.words:
        return _command_on_base(start, revisions, tree)
    arguments = [_word_on_base(word, revisions, tree) for word in start.arguments]
    if start.module is not None:
        folders = [tree.cwd, *tree.import_folders]
        heads = [root / each.relative_to(tree.root) for each in folders if each.is_relative_to(tree.root)]
        if imports.exists(start.module, heads) and not imports.exists(start.module, folders):
            return None
        tree.cwd.mkdir(parents=True, exist_ok=True)
        return ("-m", start.module, *arguments)
    assert start.script is not None
    whole = _in_repository(start.script, revisions)
    if whole is None:
        # A script outside of the repository, which trains with the code of each side.
        outside = os.path.normpath(revisions.cwd / start.script)
        return (outside, *arguments)
    there = tree.root / whole.relative_to(root)
    if not there.is_file():
        return None
    if there.is_symlink() and not whole.is_symlink():
        # Git does not track it, so it is linked. Python would look for its neighbours where the link leads, so copy it.
        there.unlink()
        shutil.copy2(whole, there)
    tree.cwd.mkdir(parents=True, exist_ok=True)
    return (str(there) if start.script.is_absolute() else str(start.script), *arguments)


def _command_on_base(start: Start, revisions: Revisions, tree: worktree.Tree) -> tuple[str, ...] | None:
    """A command: the base's own copy if it lies in the repository and in no environment there, otherwise unchanged."""
    root = revisions.root
    places = [_in_repository(Path(word), revisions) for word in start.words if word.endswith(".py")]
    # Both the program and the script that it is given may be new on the head.
    scripts = [place for place in places if place is not None and place.is_file()]
    for whole in (_in_repository(Path(start.words[0]), revisions), *scripts[:1]):
        if whole is None or (tree.root / whole.relative_to(root)).is_file():
            continue
        if not worktree.in_environment(whole, root):
            return None
    tree.cwd.mkdir(parents=True, exist_ok=True)
    return tuple(_word_on_base(word, revisions, tree) for word in start.words)


def _word_on_base(word: str, revisions: Revisions, tree: worktree.Tree) -> str:
    """A word of the command line as the base gets it: an absolute path into the repository leads into the base's tree
    instead, also behind an option's `=`."""
    option, equals, value = word.rpartition("=")
    whole = _in_repository(Path(value), revisions) if os.path.isabs(value) else None
    if whole is None:
        return word
    there = tree.root / whole.relative_to(revisions.root)
    return f"{option}{equals}{there}" if os.path.lexists(there) else word


def _in_repository(path: Path, revisions: Revisions) -> Path | None:
    """The absolute path of something in the head's repository, links followed; None for everything else."""
    root = revisions.root
    whole = Path(os.path.normpath(revisions.cwd / path))
    if not whole.is_relative_to(root):
        whole = Path(os.path.realpath(whole.parent)) / whole.name
    return whole if whole.is_relative_to(root) else None
