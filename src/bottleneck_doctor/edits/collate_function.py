"""The edit that gives a DataLoader a collate function: source text and a line in, `ChangeText` or nothing out. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import libcst as cst

from bottleneck_doctor.edits import arguments
from bottleneck_doctor.edits.diff import ChangeText
from bottleneck_doctor.edits.loader_target import POSITIONS, loader_calls
from bottleneck_doctor.edits.module_level import defined_above, of_the_module
from bottleneck_doctor.edits.tree import Edit, SourceTree, code, dotted, put

DEFAULT = "utils.data.default_collate"
"""What torch makes batches by, as it is called in `torch`."""
COLLATE = "collate_fn"


@dataclass(frozen=True)
class Collating:
    """A call that makes a loader. `collate`: what makes its batches now, as it can be written at the top of the
    module; `given`: where that is written in the call, if it is."""

    tree: SourceTree
    call: cst.Call
    collate: str
    given: cst.BaseExpression | None

    @classmethod
    def at(cls, source: str, line: int) -> Collating | None:
        """The call on `line` (any line of it). None where it is not written so that all of this is certain."""
        tree = SourceTree.parse(source)
        calls = [] if tree is None else loader_calls(tree, line)
        if tree is None or len(calls) != 1:
            return None
        call = calls[0]
        if any(each.star for each in call.args) or sum(each.keyword is None for each in call.args) > POSITIONS.index(
            COLLATE
        ):
            return None
        given = next((each.value for each in call.args if arguments.name_of(each) == COLLATE), None)
        collate = _collate(tree, None if given is None or code(given) == "None" else given)
        return None if collate is None else cls(tree, call, collate, given)

    def change(
        self, name: str, lines: Sequence[str], edits: Mapping[cst.CSTNode, Edit] | None = None
    ) -> ChangeText | None:
        """The loader with the collate function of this name, which `lines` define. They stand at the top of the module,
        where workers that are spawned find them. `edits`: what else is edited."""
        tree, call = self.tree, self.call
        all_edits: dict[cst.CSTNode, Edit] = dict(edits or {})
        if self.given is not None:
            all_edits[self.given] = put(cst.Name(name))
        else:
            all_edits[call] = lambda made: _with_collate(tree, made, call, name)
        return defined_above(tree, call, lines, all_edits)


def _collate(tree: SourceTree, given: cst.BaseExpression | None) -> str | None:
    """What makes a batch as it is now, as it can be written at the top of the module; None where that is not seen."""
    if given is None:
        return f"{tree.torch_name}.{DEFAULT}" if tree.torch_name else None
    text = dotted(given)
    return text if text and text.split(".")[0] in of_the_module(tree) else None


def _with_collate(tree: SourceTree, made: cst.CSTNode, call: cst.Call, name: str) -> cst.CSTNode:
    assert isinstance(made, cst.Call)
    return arguments.with_more(tree, made, {COLLATE: cst.Name(name)}, place=call)
