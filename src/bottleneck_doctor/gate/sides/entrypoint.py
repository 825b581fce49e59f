"""How the entrypoint is started on the base: always from the base's tree, however the user named it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from bottleneck_doctor.gate.sides import imports
from bottleneck_doctor.gate.sides.tree import Project, Tree, in_environment
from bottleneck_doctor.runtime.wire.notebooks import SOURCES
from bottleneck_doctor.session.start import Start


def in_tree(start: Start, project: Project, tree: Tree) -> tuple[str, ...] | None:
    """The entrypoint as it is started in a tree; None where it is not there."""
    root = project.root
    if start.words:
        return _command_in_tree(start, project, tree)
    arguments = [_word_in_tree(word, project, tree) for word in start.arguments]
    if start.module is not None:
        folders = [tree.cwd, *tree.import_folders]
        heads = [root / each.relative_to(tree.root) for each in folders if each.is_relative_to(tree.root)]
        if imports.exists(start.module, heads) and not imports.exists(start.module, folders):
            return None
        tree.cwd.mkdir(parents=True, exist_ok=True)
        return ("-m", start.module, *arguments)
    assert start.script is not None
    whole = _in_project(start.script, project)
    if whole is None:
        # A script of its own, which trains with the code of both.
        outside = os.path.normpath(project.cwd / start.script)
        return (outside, *arguments)
    there = tree.root / whole.relative_to(root)
    if not there.is_file():
        return None
    if there.is_symlink() and not whole.is_symlink():
        # Git does not track it, so it is linked. Python would look for its neighbours where the link leads, so copy it.
        there.unlink()
        shutil.copy2(whole, there)
    tree.cwd.mkdir(parents=True, exist_ok=True)
    # Outside of the tree the working folder is the user's own, from where no relative path leads into it.
    whole_path = start.script.is_absolute() or not tree.cwd.is_relative_to(tree.root)
    return (str(there) if whole_path else str(start.script), *arguments)


def _command_in_tree(start: Start, project: Project, tree: Tree) -> tuple[str, ...] | None:
    """A command as it is: the tree's own, where it lies in the project and is no environment's."""
    root = project.root
    places = [_in_project(Path(word), project) for word in start.words if word.endswith(SOURCES)]
    # The program, and the script that it is given, which may be as new.
    scripts = [place for place in places if place is not None and place.is_file()]
    for whole in (_in_project(Path(start.words[0]), project), *scripts[:1]):
        if whole is None or (tree.root / whole.relative_to(root)).is_file():
            continue
        if not in_environment(whole, root):
            return None
    tree.cwd.mkdir(parents=True, exist_ok=True)
    return tuple(_word_in_tree(word, project, tree) for word in start.words)


def _word_in_tree(word: str, project: Project, tree: Tree) -> str:
    """A word of the command line as it is given there: the whole path of what lies in the project is that of the tree,
    also behind an option's `=`."""
    option, equals, value = word.rpartition("=")
    whole = _in_project(Path(value), project) if os.path.isabs(value) else None
    if whole is None:
        return word
    there = tree.root / whole.relative_to(project.root)
    return f"{option}{equals}{there}" if os.path.lexists(there) else word


def _in_project(path: Path, project: Project) -> Path | None:
    """The whole path of something in the project, which a link may lead to; None for all else."""
    root = project.root
    whole = Path(os.path.normpath(project.cwd / path))
    if not whole.is_relative_to(root):
        whole = Path(os.path.realpath(whole.parent)) / whole.name
    return whole if whole.is_relative_to(root) else None
