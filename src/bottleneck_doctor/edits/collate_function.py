"""The edit that gives a DataLoader a collate function: source text and a line in, `ChangeText` or nothing out. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import libcst as cst

from bottleneck_doctor.edits import arguments
from bottleneck_doctor.edits.diff import ChangeText, as_change
from bottleneck_doctor.edits.loader_target import POSITIONS, loader_calls
from bottleneck_doctor.edits.tree import SCOPES, Edit, SourceTree, code, dotted, is_program, names_of, put

DEFAULT = "torch.utils.data.default_collate"
COLLATE = "collate_fn"
_LINES = re.compile(r"(?<=\n)")


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
        top = next((each for each in (call, *tree.around(call)) if each in tree.module.body), None)
        if top is None:
            return None
        all_edits: dict[cst.CSTNode, Edit] = dict(edits or {})
        if self.given is not None:
            all_edits[self.given] = put(cst.Name(name))
        else:
            all_edits[call] = lambda made: _with_collate(tree, made, call, name)
        edited = tree.edited(all_edits)
        if edited is None:
            return None
        split = _LINES.split(edited)
        place = tree.place(top)[0] - 1 + _moved(tree, edits or {}, top)
        while place and split[place - 1].startswith(("@", "#")):
            place -= 1
        end = tree.module.default_newline
        whole = "".join([*split[:place], *(each + end for each in lines), *split[place:]])
        return as_change(tree.source, whole, tree.lines(call)[0], "") if is_program(whole) else None


def of_the_module(tree: SourceTree) -> set[str]:
    """Names of functions, classes and imports of the module itself."""
    made = {each.name.value for each in tree.module.body if isinstance(each, SCOPES)}
    plain = [each for line in tree.module.body if isinstance(line, cst.SimpleStatementLine) for each in line.body]
    for each in plain:
        if isinstance(each, cst.ImportFrom):
            made |= {alias.evaluated_alias or alias.evaluated_name for alias in names_of(each)}
        elif isinstance(each, cst.Import):
            made |= {(alias.evaluated_alias or alias.evaluated_name).split(".")[0] for alias in each.names}
    return made


def _collate(tree: SourceTree, given: cst.BaseExpression | None) -> str | None:
    """What makes a batch as it is now, as it can be written at the top of the module; None where that is not seen."""
    if given is None:
        plain = [alias for node in tree.nodes(cst.Import) for alias in node.names if alias.asname is None]
        return DEFAULT if any(alias.evaluated_name.split(".")[0] == "torch" for alias in plain) else None
    text = dotted(given)
    return text if text and text.split(".")[0] in of_the_module(tree) else None


def _with_collate(tree: SourceTree, made: cst.CSTNode, call: cst.Call, name: str) -> cst.CSTNode:
    assert isinstance(made, cst.Call)
    return arguments.with_more(tree, made, {COLLATE: cst.Name(name)}, place=call)


def _moved(tree: SourceTree, edits: Mapping[cst.CSTNode, Edit], top: cst.CSTNode) -> int:
    """By how many lines edits that lie above a statement move it."""
    above = {node: edit for node, edit in edits.items() if tree.lines(node)[1] < tree.lines(top)[0]}
    edited = tree.edited(above) if above else None
    return 0 if edited is None else edited.count("\n") - tree.source.count("\n")
