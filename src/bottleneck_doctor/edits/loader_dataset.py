"""The dataset of a loader, and whether another one can be put in its place: questions of edits that do so. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst

from bottleneck_doctor.edits import arguments
from bottleneck_doctor.edits.dataset_attributes import bases_around
from bottleneck_doctor.edits.loader_target import TRAINERS, loader_calls, made_as
from bottleneck_doctor.edits.origin.definition import Expression
from bottleneck_doctor.edits.origin.follower import Follower
from bottleneck_doctor.edits.tree import LOOPS, SCOPES, Edit, SourceTree, Statement, code, constant, last_name, written
from bottleneck_doctor.runtime.wire.messages import Taker

_NAMES = ("dataset", "train_dataset", "rows", "train_rows")
"""Names for a dataset that is made inside of the call, and has to be named twice."""
_OF_TRAINERS = "train_dataset"
_APART = (cst.Lambda, cst.CompFor, cst.ListComp, cst.SetComp, cst.DictComp, cst.GeneratorExp, cst.IfExp)
"""In these, a line above the statement would run at another time than the call, or without its names."""


def dataset_calls(tree: SourceTree, line: int) -> list[cst.Call]:
    """The calls on `line` that are given the dataset of a loader: those that make one or, where there are none, that of
    a trainer, which makes one of it."""
    return loader_calls(tree, line) or trainer_calls(tree, line)


def trainer_calls(tree: SourceTree, line: int) -> list[cst.Call]:
    """The calls on `line` that make a trainer of transformers', or of a class of the user's that is made of one."""
    own = [node for node in tree.nodes(cst.ClassDef) if any(last_name(each.value) in TRAINERS for each in node.bases)]
    names = {*TRAINERS, *(each.name.value for each in own)}
    trainers = [call for call in tree.calls_on(line) if last_name(call.func) in names]
    return [call for call in trainers if _trained_on(call) is not None]


def _trained_on(call: cst.Call) -> cst.BaseExpression | None:
    """What a trainer is given to train on; None where that is not seen."""
    named = [each.value for each in call.args if each.keyword is not None and each.keyword.value == _OF_TRAINERS]
    return named[0] if named else None


def dataset_argument(
    path: str, line: int, takers: Sequence[Taker], follower: Follower
) -> tuple[Expression, cst.Call, Taker] | None:
    """The call of a library that was seen to be given the dataset of the loader which it makes on `line`, where that is
    written, and what takes it; None where there is none, or the call does not have it."""
    tree = follower.tree(path)
    there = [] if tree is None else tree.called_from(line)
    if tree is None or not there:
        return None
    for taker in takers:
        if taker.made:
            made = made_as(taker.made, Expression(path, tree, there[0]), there[0], follower)
        else:
            named = [each for each in there if last_name(each.func) == taker.called]
            made = (Expression(path, tree, named[0]), named[0]) if len(named) == 1 else None
        if made is not None and argument_of(made[1], taker) is not None:
            return (*made, taker)
    return None


def argument_of(call: cst.Call, taker: Taker) -> cst.BaseExpression | None:
    """The dataset that a call gives what takes it, by name or by place; None where that is not seen."""
    called, place = taker.names["dataset"], taker.places.get("dataset")
    named = [each.value for each in call.args if each.keyword is not None and each.keyword.value == called]
    before = [each for each in call.args if each.keyword is None and each.star != "**"]
    if named or place is None or place >= len(before) or any(each.star for each in before[: place + 1]):
        return named[0] if named else None
    return before[place].value


def is_given_if(given: cst.BaseExpression) -> cst.BaseExpression | None:
    """The dataset of `dataset if training else None`, as many give their trainer; None for anything else."""
    nothing = isinstance(given, cst.IfExp) and constant(given.orelse) == (None,)
    return given.body if isinstance(given, cst.IfExp) and nothing else None


def dataset_of(call: cst.Call) -> cst.BaseExpression | None:
    """What is given as the dataset; None where that is not seen."""
    if _trained_on(call) is not None:
        return _trained_on(call)
    for each in call.args:
        if each.keyword is not None and each.keyword.value == "dataset":
            return each.value
    first = call.args[0] if call.args else None
    return first.value if first is not None and first.keyword is None and not first.star else None


@dataclass(frozen=True)
class Unpacked:
    """A `**options` of a call that has the dataset: nothing else in the call can. `options`: what is unpacked."""

    call: cst.Call
    argument: cst.Arg
    options: cst.BaseExpression

    def dataset(self, tree: SourceTree) -> str:
        return f"{code(self.options)}[{written('dataset', tree.quote)}]"

    def gives(self, tree: SourceTree, dataset: cst.BaseExpression) -> dict[cst.CSTNode, Edit]:
        """The edit that puts another dataset behind what is unpacked, so that it wins."""
        value, more = self.argument.value, {"dataset": dataset}
        if isinstance(value, cst.Dict):
            display = arguments.with_more(tree, value, more)
        else:
            display = arguments.with_behind(tree, value, more, self.call)
        return {self.argument: lambda argument: argument.with_changes(value=display)}


def unpacked_dataset(tree: SourceTree, call: cst.Call) -> Unpacked | None:
    """Where a call of torch's DataLoader has its dataset from, if that is one `**options` only; None otherwise."""
    starred = [each for each in call.args if each.star == "**"]
    if len(starred) != 1 or any(each.keyword is None and each.star != "**" for each in call.args):
        return None
    if dataset_of(call) is not None or not _makes_torchs(tree, call):
        return None
    only = starred[0]
    options = only.value
    if isinstance(options, cst.Dict) and options.elements:
        # As an edit of the loader's other arguments has left it.
        first, *others = options.elements
        if not isinstance(first, cst.StarredDictElement) or any(arguments.name_of(each) is None for each in others):
            return None
        if any(arguments.name_of(each) == "dataset" for each in others):
            return None
        options = first.value
    is_name = isinstance(options, (cst.Name, cst.Attribute)) and "(" not in code(options)
    return Unpacked(call, only, options) if is_name else None


def _makes_torchs(tree: SourceTree, call: cst.Call) -> bool:
    """Whether it is the DataLoader itself that is called, not a class of the user's with parameters of its own."""
    if code(call.func) != "super().__init__":
        return last_name(call.func) == "DataLoader"
    return bases_around(tree, call) == ["DataLoader"]


def in_loop(tree: SourceTree, call: cst.Call) -> bool:
    """Whether the call is made again and again, and with it what is put in the dataset's place."""
    for each in tree.around(call):
        if isinstance(each, LOOPS):
            return True
        if isinstance(each, SCOPES):
            return False
    return False


def may_have_lines_above(tree: SourceTree, call: cst.Call) -> bool:
    """Whether a line above the call's statement runs when the call does, and has the same names."""
    statement = tree.statement(call)
    alone = isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1
    return alone and not any(isinstance(each, _APART) for each in _inside(tree, call))


def free_name(tree: SourceTree, names: Sequence[str]) -> str | None:
    """The first of these names that the file has nowhere."""
    return next((name for name in names if not tree.says(name)), None)


def named_above(tree: SourceTree, call: cst.Call) -> tuple[str, Statement] | None:
    """A name that the dataset of a call can be given by a line above a statement, and that statement; None where there
    may be no such line."""
    named, statement = free_name(tree, _NAMES), tree.statement(call)
    if named is None or statement is None or not may_have_lines_above(tree, call):
        return None
    return named, statement


def _inside(tree: SourceTree, call: cst.Call) -> list[cst.CSTNode]:
    """What the call is a part of, within its statement."""
    statement, inside = tree.statement(call), []
    for each in tree.around(call):
        if each is statement:
            break
        inside.append(each)
    return inside


def moved_out(tree: SourceTree, given: cst.BaseExpression, call: cst.Call) -> str:
    """What makes the dataset, with lines that are indented as if it stood where its statement does."""
    text, (line, column) = code(given), tree.place(given)
    statement = tree.statement(call)
    further = column - (0 if statement is None else tree.place(statement)[1])
    alone = not tree.text_of_line(line)[:column].strip()
    if not alone or '"""' in text or "'''" in text:
        return text
    first, *others = text.split("\n")
    return "\n".join([first, *(each[min(further, len(each) - len(each.lstrip(" "))) :] for each in others)])
