"""Where the base imports its own code from: entries of the import path inside the head's repository are mapped to the
base.

An editable install or a `PYTHONPATH` names folders of the head. A process of the base must find the same folders of its
own tree first. The interpreter that trains is asked once for its import path.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bottleneck_doctor.documents.report import Warning
from bottleneck_doctor.system.project import is_installed

_ASKED = """
import json, sys
found = {"path": [p for p in sys.path if p], "prefix": [sys.prefix, sys.base_prefix], "mapping": {}, "editable": {}}
for finder in sys.meta_path:
    mapping = getattr(sys.modules.get(getattr(finder, "__module__", "") or ""), "MAPPING", None)
    if isinstance(mapping, dict):
        found["mapping"].update({str(name): str(place) for name, place in mapping.items()})
try:
    from importlib.metadata import distributions
    for each in distributions():
        said = json.loads(each.read_text("direct_url.json") or "{}")
        if said.get("dir_info", {}).get("editable"):
            found["editable"][each.metadata["Name"]] = said.get("url", "")
except Exception:
    pass
print(json.dumps(found))
"""
_SECONDS = 60.0


@dataclass(frozen=True)
class ImportPath:
    """What an interpreter imports from. `mapping`: packages that an editable install maps to folders by name.

    `editable`: the URL of each project that is installed as editable.
    """

    path: list[str] = field(default_factory=list)
    prefix: list[str] = field(default_factory=list)
    mapping: Mapping[str, str] = field(default_factory=dict)
    editable: Mapping[str, str] = field(default_factory=dict)


def ask(python: str, cwd: Path) -> ImportPath | None:
    """The import path of an interpreter as it starts in `cwd`. None if the interpreter does not report it."""
    try:
        done = subprocess.run(
            [python, "-c", _ASKED], cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=True
        )
        return ImportPath(**json.loads(done.stdout.splitlines()[-1]))
    except (OSError, subprocess.SubprocessError, ValueError, IndexError, TypeError):
        return None


@dataclass(frozen=True)
class Mapped:
    """Entries for the front of the base's `PYTHONPATH`, packages to link by name (name to folder), and warnings.

    `expected`: places of the base that come before the head's. If nothing is there, the head's code is imported."""

    entries: list[str]
    packages: dict[str, str]
    warnings: list[Warning]
    expected: list[Path]


def mapped(seen: ImportPath | None, python_path: str, root: Path, tree: Path, cwd: Path, *, otherwise: str) -> Mapped:
    """The import path of the base, whose tree lies at `tree` as the head's lies at `root`. `cwd`: the head's.
    `otherwise`: what may happen where it can't be mapped, for a warning.

    Only entries in the head's repository are mapped, except those of environments that lie inside it.
    """
    seen = seen or ImportPath()
    given = [entry for entry in python_path.split(os.pathsep) if entry]
    known = {os.path.realpath(cwd / entry) for entry in given}
    entries = [str(_in_tree(cwd / entry, root, tree) or entry) for entry in given]
    expected = []
    for entry in seen.path:
        place = _in_tree(Path(entry), root, tree)
        if place is not None and os.path.realpath(entry) not in known and not _installed(entry, seen.prefix, root):
            entries.append(str(place))
            expected.append(place)
    packages = {}
    for name, folder in seen.mapping.items():
        place = _in_tree(Path(folder), root, tree)
        if place is not None and "." not in name:
            packages[name] = str(place)
            expected.append(place)
    warnings = []
    unmapped = _unmapped(seen, root)
    if unmapped:
        warnings.append(
            Warning(
                slug="editable-unmapped",
                sentence=f"{', '.join(unmapped)}: installed from this repository in a way that doctor can't map, so "
                f"{otherwise}.",
            )
        )
    return Mapped(entries, packages, warnings, expected)


def is_there(place: Path) -> bool:
    """Whether a folder or a module exists; a module may be named without its ending."""
    return place.exists() or place.with_name(place.name + ".py").is_file()


def _in_tree(path: Path, root: Path, tree: Path) -> Path | None:
    whole = Path(os.path.realpath(path))
    return tree / whole.relative_to(root) if whole.is_relative_to(root) else None


def _installed(entry: str, prefixes: Iterable[str], root: Path) -> bool:
    if is_installed(Path(entry)):
        return True
    # The system's Python has the prefix `/usr`, and a repository may lie below it. Only an environment inside the
    # repository counts.
    inner = [place for prefix in prefixes if root in (place := Path(os.path.realpath(prefix))).parents]
    return any(Path(os.path.realpath(entry)).is_relative_to(place) for place in inner)


def _unmapped(seen: ImportPath, root: Path) -> list[str]:
    """Editable projects of the repository whose folder is in no entry of the import path and in no mapping."""
    places = [os.path.realpath(place) for place in (*seen.path, *seen.mapping.values())]
    names = []
    for name, url in sorted(seen.editable.items()):
        home = os.path.realpath(url.removeprefix("file://"))
        in_repository = url.startswith("file://") and Path(home).is_relative_to(root)
        if in_repository and not any(Path(place).is_relative_to(home) for place in places):
            names.append(name)
    return names


def exists(module: str, folders: Iterable[Path]) -> bool:
    """Whether one of the folders holds what `python -m` would run."""
    inner = Path(*module.split("."))
    places = (
        place for folder in folders for place in ((folder / inner).with_suffix(".py"), folder / inner / "__main__.py")
    )
    return any(place.is_file() for place in places)
