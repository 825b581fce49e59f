"""The limits of the house: prints the longest files and classes of `src/`, and fails over the limits.

Run by `make lint`. A name in `STILL_OVER` may not grow past the figure beside it, and leaves the list once it is within
the limit: the list shrinks, and nothing new gets onto it.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "bottleneck_doctor"

FILE_LINES = 500
CLASS_LINES = 300
FLAT_MODULES = 8
"""Modules at the top of the package, beside the rooms; `__init__.py` is not counted."""

STILL_OVER: Mapping[str, int] = {}
"""Files and classes that are too long for now, with their lines."""

SHOWN = 5


@dataclass(frozen=True)
class House:
    """Lines of each file and of each class of a package, and its modules that are in no room."""

    files: Mapping[str, int]
    classes: Mapping[str, int]
    flat: Sequence[str]


def measured(package: Path) -> House:
    """The figures of the package in this folder."""
    files: dict[str, int] = {}
    classes: dict[str, int] = {}
    for path in sorted(package.rglob("*.py")):
        name, text = path.relative_to(package).as_posix(), path.read_text(encoding="utf-8")
        files[name] = len(text.splitlines())
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef):
                first = min((node.lineno, *(each.lineno for each in node.decorator_list)))
                classes[f"{name}:{node.name}"] = (node.end_lineno or node.lineno) - first + 1
    return House(files, classes, [name for name in files if "/" not in name and name != "__init__.py"])


def complaints(house: House, still_over: Mapping[str, int]) -> list[str]:
    """What is over a limit, in words; empty where all is well."""
    found = []
    for lines, limit in ((house.files, FILE_LINES), (house.classes, CLASS_LINES)):
        for name, count in lines.items():
            allowed = max(limit, still_over.get(name, 0))
            if count > allowed:
                found.append(f"{name} has {count} lines; at most {allowed} are allowed.")
            elif name in still_over and count <= limit:
                found.append(f"{name} has {count} lines, within the limit: take it out of STILL_OVER.")
    gone = [name for name in still_over if name not in house.files and name not in house.classes]
    found += [f"{name} is no more: take it out of STILL_OVER." for name in gone]
    if len(house.flat) > FLAT_MODULES:
        found.append(f"{len(house.flat)} modules are in no room; at most {FLAT_MODULES} are allowed.")
    return found


def _print_longest(kind: str, lines: Mapping[str, int], limit: int) -> None:
    longest = sorted(lines, key=lambda name: -lines[name])[:SHOWN]
    over = sum(count > limit for count in lines.values())
    print(f"Longest {kind} ({over} over {limit} lines): {', '.join(f'{name} {lines[name]}' for name in longest)}")


def main() -> int:
    """Print the counts. 1 where something is over its limit."""
    house = measured(PACKAGE)
    _print_longest("files", house.files, FILE_LINES)
    _print_longest("classes", house.classes, CLASS_LINES)
    print(f"Modules in no room ({len(house.flat)} of at most {FLAT_MODULES}): {', '.join(house.flat)}")
    found = complaints(house, STILL_OVER)
    for each in found:
        print(each, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
