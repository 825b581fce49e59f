"""A folder of ours that is shaped like the user's project: what a side runs in that does not run in place.

Whatever it holds of its own (a revision's files, edited ones), the rest leads to the user's: what lies beside the
project, and where its code is imported from.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from bottleneck_doctor.documents.report import Warning
from bottleneck_doctor.gate.sides import imports
from bottleneck_doctor.protection import scratch

NOT_LINKED = frozenset(
    (
        ".git",
        ".venv",
        "venv",
        "env",
        "node_modules",
        "__pycache__",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
        ".tox",
    )
)
NOT_LINKED |= {".nox", ".eggs", "build", "dist", ".idea", ".vscode", ".ipynb_checkpoints", ".hypothesis"}
NOT_LINKED_ENDS = (".egg-info", ".pyc", ".pyo")
"""Names of environments, caches and outcomes of builds: what belongs to one revision or to nobody."""

CODE_ENDS = (".py", ".so", ".pyd")
MOST_LOOKED_AT = 1000
"""Entries of an untracked folder that are looked at in search of code."""
MOST_SIBLINGS = 1000
"""Files and folders beside the project that are linked beside its like."""


class Project(Protocol):
    """Where the user's files lie. `cwd`: the working folder, which need not lie in it."""

    @property
    def root(self) -> Path: ...

    @property
    def cwd(self) -> Path: ...


@dataclass
class Tree:
    """One side on disk. `environment`: what its processes get beside their own. `import_folders`: where it is imported
    from beside the working folder."""

    root: Path
    cwd: Path
    environment: dict[str, str] = field(default_factory=dict)
    import_folders: list[Path] = field(default_factory=list)
    warnings: list[Warning] = field(default_factory=list)


def link_siblings(project: Path, root: Path) -> None:
    """Link what lies beside a project beside its like: `../datasets` is the same on both sides."""
    with contextlib.suppress(OSError):
        for name in sorted(os.listdir(project.parent))[:MOST_SIBLINGS]:
            link = root.parent / name
            if not name.startswith(scratch.PREFIX) and not os.path.lexists(link):
                link.symlink_to(project.parent / name)


def is_environment(folder: Path) -> bool:
    """Whether packages are installed here, whatever its name."""
    return os.path.exists(folder / "pyvenv.cfg") or os.path.isdir(folder / "conda-meta")


def in_environment(path: Path, root: Path) -> bool:
    """Whether a file below `root` is part of an environment there, and so of no revision."""
    inner = path.relative_to(root)
    # The root itself may be one, and its files are the revision's all the same.
    folders = [root / part for part in inner.parents if part != Path()]
    return bool(NOT_LINKED & set(inner.parts)) or any(map(is_environment, folders))


def holds_code(target: Path) -> bool:
    """Whether a file is code, or a folder holds some; of a large one only the beginning is looked at."""
    if target.name.endswith(CODE_ENDS):
        return True
    looked = 0
    for _, folders, files in os.walk(target):
        folders[:] = [folder for folder in folders if folder not in NOT_LINKED]
        if any(file.endswith(CODE_ENDS) for file in files):
            return True
        looked += len(folders) + len(files)
        if looked > MOST_LOOKED_AT:
            return False
    return False


def map_imports(project: Project, tree: Tree, folder: Path, python: str, given: str, *, otherwise: str) -> list[Path]:
    """Map what is imported from the project. Returns the places of the tree behind which the project's would be found,
    were nothing there.

    `folder`: one of ours for links. `given`: the PYTHONPATH that the user set. `otherwise`: what may happen where
    something can't be mapped, for a warning.
    """
    seen = imports.ask(python, project.cwd)
    found = imports.mapped(seen, given, project.root, tree.root, project.cwd, otherwise=otherwise)
    entries = list(found.entries)
    if found.packages:
        links = folder / "imports"
        links.mkdir()
        for name, place in found.packages.items():
            # A module of one file is mapped by its name without the ending, or with it.
            file = Path(place) if place.endswith(".py") else Path(place + ".py")
            if Path(place).is_dir():
                (links / name).symlink_to(place)
            elif file.is_file():
                (links / f"{name}.py").symlink_to(file)
        entries.append(str(links))
    tree.warnings += found.warnings
    tree.import_folders = [tree.cwd / entry for entry in entries]
    if entries:
        tree.environment["PYTHONPATH"] = os.pathsep.join(entries)
    tree.environment["PWD"] = str(tree.cwd)
    return found.expected


def note_unfound(tree: Tree, expected: Iterable[Path]) -> None:
    """Say where the base imports the head's code for want of its own."""
    missing = [str(place.relative_to(tree.root)) for place in expected if not imports.is_there(place)]
    if missing:
        tree.warnings.append(
            Warning(
                slug="editable-unmapped",
                sentence=f"The base does not have {named(missing)}, from which code is imported. What the base imports "
                "by that name is the head's code.",
            )
        )


def named(names: list[str]) -> str:
    """Some names for a sentence: the first ones, and how many more there are."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
