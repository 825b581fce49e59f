"""The edit that puts a function in the place of one of torch's: source text in, `ChangeText` or nothing out. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from bottleneck_doctor.edits.call import statements_added
from bottleneck_doctor.edits.diff import ChangeText
from bottleneck_doctor.edits.module_level import of_the_module
from bottleneck_doctor.edits.tree import SourceTree


def own_function_change(source: str, name: str, statements: Sequence[str]) -> ChangeText | None:
    """Write statements below the imports, of which the first defines a function called `name`. Returns None where
    `source` is no program, or has something of that name."""
    tree = SourceTree.parse(source)
    if tree is None or name in of_the_module(tree):
        return None
    return statements_added(tree, statements, apart=2)
