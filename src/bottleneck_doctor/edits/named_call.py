"""The edit of calls that are known by the name of what they call: source text in, the edit out. Pure."""

from __future__ import annotations

import libcst as cst

from bottleneck_doctor.edits.diff import ChangeText
from bottleneck_doctor.edits.drafts import Drafts, OneFile, Told
from bottleneck_doctor.edits.loader_call import as_text, set_in
from bottleneck_doctor.edits.loader_target import Target
from bottleneck_doctor.edits.origin.definition import Expression
from bottleneck_doctor.edits.origin.follower import Follower
from bottleneck_doctor.edits.origin.running import Running
from bottleneck_doctor.edits.tree import SourceTree, last_name
from bottleneck_doctor.knobs import Argument


def named_change(source: str, edit: Argument) -> ChangeText | None:
    """Give every call of that name its arguments; None where `source` has no such call. Where no argument does it, or
    none can be put in safely, the note says what to do at the first of them."""
    drafts = Drafts(OneFile(source))
    return as_text(drafts, set_named(drafts, OneFile.path, edit))


def set_named(drafts: Drafts, file: str, edit: Argument, running: Running | None = None) -> list[Told]:
    """Write the edits of `named_change` into `drafts`, in whichever files they lie; nothing is told where the file has
    no such call."""
    text = drafts.text(file)
    tree = None if text is None else SourceTree.parse(text)
    calls = [] if tree is None else _calls(tree, edit)
    if tree is None or not calls:
        return []
    sentence = f"{edit.otherwise[:1].upper()}{edit.otherwise[1:]}."
    told: list[Told] = []
    for number in range(len(calls)) if edit.given else ():

        def found(follower: Follower, number: int = number) -> Target | None:
            tree = follower.tree(file)
            # No edit of arguments makes another call of that name, or takes one out.
            there = [] if tree is None else _calls(tree, edit)
            return None if tree is None else Target(Expression(file, tree, there[number]), there[number])

        told += set_in(drafts, found, lambda: Follower(drafts, running), dict(edit.given), edit.without)
    first = tree.lines(calls[0])[0]
    return told or [Told(file, first, sentence)]


def _calls(tree: SourceTree, edit: Argument) -> list[cst.Call]:
    """The calls of these names, in the order of the text."""
    calls = [call for call in tree.nodes(cst.Call) if not isinstance(call.func, cst.Subscript)]
    return [call for call in calls if last_name(call.func) in edit.calls and _is_of(call.func, edit.of)]


def _is_of(called: cst.BaseExpression, modules: tuple[str, ...]) -> bool:
    """Whether what is called is an attribute of one of the modules, by its name, or of nothing."""
    if not modules or not isinstance(called, cst.Attribute):
        return True
    return last_name(called.value) in modules
