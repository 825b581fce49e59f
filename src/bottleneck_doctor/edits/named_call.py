"""The edit of calls that are known by the name of what they call, or by where they were seen: source text in, the edit
out. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import libcst as cst

from bottleneck_doctor.edits.diff import ChangeText
from bottleneck_doctor.edits.drafts import Drafts, OneFile, Told
from bottleneck_doctor.edits.loader_call import as_text, set_in, set_taken
from bottleneck_doctor.edits.loader_target import Target
from bottleneck_doctor.edits.origin.definition import Expression
from bottleneck_doctor.edits.origin.follower import Follower
from bottleneck_doctor.edits.origin.running import Running
from bottleneck_doctor.edits.tree import SourceTree, last_name
from bottleneck_doctor.knobs import Argument, Made
from bottleneck_doctor.runtime.wire.messages import Site, Taker

_HANDING_ON = {"hydra": "instantiate"}
"""Libraries with a function that makes an object of the class which its settings name, and hands that class the
arguments it is called with."""
_OF_OPTIMIZERS = frozenset({"params", "lr", "betas", "eps", "weight_decay", "momentum", "nesterov", "amsgrad"})
"""Arguments by which a call is known to make one, whatever it calls."""


def named_change(source: str, edit: Argument) -> ChangeText | None:
    """Give every call of that name its arguments; None where `source` has no such call. Where no argument does it, or
    none can be put in safely, the note says what to do at the first of them."""
    drafts = Drafts(OneFile(source))
    return as_text(drafts, set_named(drafts, OneFile.path, edit))


def set_named(drafts: Drafts, file: str, edit: Argument, running: Running | None = None) -> list[Told]:
    """Write the edits of `named_change` into `drafts`, in whichever files they lie; nothing is told where the file has
    no such call."""
    tree = _tree(drafts, file)
    calls = [] if tree is None else _calls(tree, edit)
    if tree is None or not calls:
        return []
    told = _set(drafts, file, edit, running, lambda tree: _calls(tree, edit))
    return told or [Told(file, tree.lines(calls[0])[0], _sentence(edit))]


def set_seen(drafts: Drafts, edit: Argument, seen: Made, running: Running | None = None) -> list[Told]:
    """The same for the calls that were seen to make it, whatever they call; nothing is told where their lines alone
    can't tell which those are. If only some of them can be edited, the others are to be edited by hand."""
    told: list[Told] = []
    left: list[Told] = []
    for called, site in seen.calls:
        line = drafts.line(site.file, site.line)
        here = _set(drafts, site.file, edit, running, partial(_made_on, line=line, name=called))
        told += here
        left += [] if here else [_by_hand(drafts, edit, site, f"Its class is `{called}`.")]
    for library, site in seen.through:
        line, name = drafts.line(site.file, site.line), _HANDING_ON.get(library, "")
        here = _set(drafts, site.file, edit, running, partial(_named_on, line=line, name=name))
        here = here or _through(drafts, edit, seen.takers, site, running)
        told += here
        left += [] if here else [_by_hand(drafts, edit, site, f"Here, {library} makes it.")]
    return [*told, *left] if told else []


def _through(
    drafts: Drafts, edit: Argument, takers: Sequence[Taker], site: Site, running: Running | None
) -> list[Told]:
    """Give the call that takes the arguments of what a library makes; nothing is told where none does, or not all."""
    if not edit.given or not all(name in each.names for each in takers for name, _ in edit.given):
        return []
    return set_taken(drafts, site, takers, running, dict(edit.given), edit.without)


def where_made(drafts: Drafts, edit: Argument, seen: Made) -> list[Told]:
    """What to do by hand at the first line that was seen to make it, or to call the library that does."""
    by = [(site, f"Its class is `{called}`.") for called, site in seen.calls]
    by += [(site, f"Here, {library} makes it.") for library, site in seen.through]
    return [_by_hand(drafts, edit, *each) for each in by[:1]]


def _by_hand(drafts: Drafts, edit: Argument, site: Site, why: str) -> Told:
    return Told(site.file, drafts.line(site.file, site.line), f"{_sentence(edit)} {why}", unfinished=True)


def _sentence(edit: Argument) -> str:
    return f"{edit.otherwise[:1].upper()}{edit.otherwise[1:]}."


def _tree(drafts: Drafts, file: str) -> SourceTree | None:
    text = drafts.text(file)
    return None if text is None else SourceTree.parse(text)


def _set(
    drafts: Drafts, file: str, edit: Argument, running: Running | None, find: Callable[[SourceTree], Sequence[cst.Call]]
) -> list[Told]:
    """Give the calls that `find` finds their arguments; nothing is told where no argument does it. No edit of arguments
    makes another such call, or takes one out."""
    tree = _tree(drafts, file)
    told: list[Told] = []
    for number in range(len(find(tree))) if tree is not None and edit.given else ():

        def target(follower: Follower, number: int = number) -> Target | None:
            tree = follower.tree(file)
            # An argument may have moved the next call of its line to another one.
            there = [] if tree is None else find(tree)[number : number + 1]
            return None if tree is None or not there else Target(Expression(file, tree, there[0]), there[0])

        told += set_in(drafts, target, lambda: Follower(drafts, running), dict(edit.given), edit.without)
    return told


def _calls(tree: SourceTree, edit: Argument) -> list[cst.Call]:
    """The calls of these names, in the order of the text."""
    return [call for call in _named(tree.nodes(cst.Call), edit.calls) if _is_of(call.func, edit.of)]


def _named(calls: Sequence[cst.Call], names: Sequence[str]) -> list[cst.Call]:
    """Those that call something of one of these names."""
    return [each for each in calls if not isinstance(each.func, cst.Subscript) and last_name(each.func) in names]


def _is_of(called: cst.BaseExpression, modules: tuple[str, ...]) -> bool:
    """Whether what is called is an attribute of one of the modules, by its name, or of nothing."""
    if not modules or not isinstance(called, cst.Attribute):
        return True
    return last_name(called.value) in modules


def _named_on(tree: SourceTree, line: int, name: str) -> list[cst.Call]:
    return _named(tree.called_from(line), (name,))


def _made_on(tree: SourceTree, line: int, name: str) -> list[cst.Call]:
    """Those that call a class of this name or, where there are none, the one that has arguments of an optimizer."""
    alike = [call for call in tree.called_from(line) if _makes_an_optimizer(call)]
    return _named_on(tree, line, name) or (alike if len(alike) == 1 else [])


def _makes_an_optimizer(call: cst.Call) -> bool:
    return any(each.star == "**" or (each.keyword and each.keyword.value in _OF_OPTIMIZERS) for each in call.args)
