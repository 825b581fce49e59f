"""The edit that makes a call, or sets a value, before training begins: source text and the code in, `ChangeText` or
nothing out. Pure.

Where the file makes such a call already, its argument is changed; else the call goes below the imports.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import libcst as cst

from bottleneck_doctor.edits.diff import ChangeText, as_change
from bottleneck_doctor.edits.drafts import Drafts, Told
from bottleneck_doctor.edits.elsewhere import followed
from bottleneck_doctor.edits.origin.definition import Expression
from bottleneck_doctor.edits.origin.follower import Follower
from bottleneck_doctor.edits.tree import SourceTree, Statement, constant, dotted, is_docstring, last_name, put


def call_change(source: str, code: str) -> ChangeText | None:
    """Make the call `code`, such as `torch.set_num_threads(4)`, once and before training begins.

    `code` calls a function of torch's with one constant. Returns None where `source` is not a program.
    """
    tree = SourceTree.parse(source)
    wanted = cst.parse_expression(code)
    if tree is None or not isinstance(wanted, cst.Call):
        return None
    value = constant(wanted.args[0].value)
    assert value is not None
    made = calls_like(tree, wanted)
    return _changed(tree, made, value[0]) if made else _added(tree, code)


def statement_change(source: str, code: str) -> ChangeText | None:
    """Write the statement `code`, of something of torch's, once and before training begins. Returns None where `source`
    is not a program."""
    tree = SourceTree.parse(source)
    return None if tree is None else _added(tree, code)


def set_call(drafts: Drafts, follower: Follower, file: str, code: str) -> list[Told]:
    """Write the argument of `code` into `drafts` where the one such call of the file takes it from; nothing is told
    where there is none, or it is not followed."""
    wanted, tree = cst.parse_expression(code), follower.tree(file)
    made = [] if tree is None or not isinstance(wanted, cst.Call) else calls_like(tree, wanted)
    if tree is None or len(made) != 1 or len(made[0].args) != 1 or not isinstance(wanted, cst.Call):
        return []
    value = constant(wanted.args[0].value)
    assert value is not None
    name = f"`{last_name(wanted.func)}`"
    return followed(drafts, follower, Expression(file, tree, made[0].args[0].value), name, value[0])


def makes_call(tree: SourceTree | None, code: str) -> bool:
    """Whether a file calls the function that `code` calls."""
    wanted = cst.parse_expression(code)
    return tree is not None and isinstance(wanted, cst.Call) and bool(calls_like(tree, wanted))


def calls_like(tree: SourceTree, wanted: cst.Call) -> list[cst.Call]:
    """The calls of the same function, but those that set a worker up, which say nothing of the process that trains."""
    made = [call for call in tree.nodes(cst.Call) if last_name(call.func) == last_name(wanted.func)]
    return [call for call in made if not _sets_worker_up(tree, call)]


def _changed(tree: SourceTree, made: list[cst.Call], value: object) -> ChangeText | None:
    """The calls that are there, with another argument. One that isn't written out, such as an option of the user's
    program, is not touched."""
    first = tree.lines(made[0])[0]
    given = [call.args[0].value for call in made if call.args and not call.args[0].star]
    literal = tree.literal(value)
    if len(given) < len(made) or None in map(constant, given):
        said = cst.Module([]).code_for_node(literal)
        return ChangeText(line=first, diff="", note=f"Line {first} sets this value now: set it to `{said}` there.")
    edited = tree.edited({each: put(literal) for each in given})
    return None if edited is None else as_change(tree.source, edited, first, "")


def _added(tree: SourceTree, code: str) -> ChangeText | None:
    return statements_added(tree, [code.replace('"', tree.quote)])


def statements_added(tree: SourceTree, codes: Sequence[str], *, apart: int = 0) -> ChangeText | None:
    """Write statements below the imports at the top of the file, and below that of torch, with so many empty lines
    above each."""
    name = tree.torch_name
    said = [re.sub(r"\btorch\.", f"{name or 'torch'}.", code) for code in codes]
    lines = ([] if name else ["import torch"]) + [apart * "\n" + code for code in said]
    new = [cst.parse_statement(each, config=tree.module.config_for_parsing) for each in lines]
    last, body = _last_import(tree), tree.block(tree.module)
    if last is not None:
        edited = tree.edited({last: lambda statement: cst.FlattenSentinel([statement, *new])})
    elif body:
        edited = tree.edited({}, {body[0]: lines})
    else:
        edited = tree.edited({tree.module: lambda module: module.with_changes(body=new)})
    if edited is None:
        return None
    end = "" if edited.endswith("\n") else tree.module.default_newline
    return as_change(tree.source, edited + end, tree.lines(body[0])[0] if body else 1, "")


def _last_import(tree: SourceTree) -> Statement | None:
    """The last of the imports that begin the file (its docstring, where it has none), or of those with torch's."""
    last = before = None
    leading = True
    for statement in tree.block(tree.module):
        inside = statement.body if isinstance(statement, cst.SimpleStatementLine) else ()
        imports = [each for each in inside if isinstance(each, (cst.Import, cst.ImportFrom))]
        leading = leading and (bool(imports) or is_docstring(statement))
        names = [dotted(alias.name) for each in imports if isinstance(each, cst.Import) for alias in each.names]
        # Later strings are no docstring: between imports they stand for the ends of a notebook's cells.
        begins = leading and (bool(imports) or before is None)
        if begins or "torch" in names or (imports and before is last):
            last = statement
        before = statement
    return last


def _sets_worker_up(tree: SourceTree, call: cst.Call) -> bool:
    """Whether a call is in a function that sets a worker up."""
    return any(isinstance(each, cst.FunctionDef) and "worker" in each.name.value for each in tree.around(call))
