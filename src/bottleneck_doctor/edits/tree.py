"""The user's source as a tree that keeps every comment and blank, and where in the text each part of it stands. Pure.

Whoever imports this imports libcst, which takes a quarter of a second: nobody does who makes no edit.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any, TypeVar, Union, overload

import libcst as cst
from libcst.metadata import (
    CodeRange,
    ExpressionContext,
    ExpressionContextProvider,
    MetadataWrapper,
    PositionProvider,
    Scope,
    ScopeProvider,
)

A = TypeVar("A", bound=cst.CSTNode)
B = TypeVar("B", bound=cst.CSTNode)
C = TypeVar("C", bound=cst.CSTNode)
Put = Union[cst.CSTNode, cst.FlattenSentinel[cst.CSTNode], cst.RemovalSentinel]
Edit = Callable[[cst.CSTNode], Put]
"""What comes in the place of a node: it gets the node with the edits inside of it made."""
Edits = Mapping[cst.CSTNode, Edit]

Statement = Union[cst.SimpleStatementLine, cst.BaseCompoundStatement]
"""What has lines of its own: one with a block, or a line of small ones."""
STATEMENTS = (cst.SimpleStatementLine, cst.BaseCompoundStatement)
LOOPS = (cst.For, cst.While)
SCOPES = (cst.FunctionDef, cst.ClassDef)
_KEPT = 64
"""Trees that are kept, of files and of what edits make of them. Those of one program are read again and again: where
they did not fit, the edits of a program of 18 files took three times as long."""


class SourceTree:
    """One file's source and its tree. `source` may begin with a byte order mark; `module.code` is what follows it."""

    def __init__(self, source: str, module: cst.Module) -> None:
        self.source = source
        self.module = module
        self._wrapper = MetadataWrapper(module, unsafe_skip_copy=True)
        self._positions: Mapping[cst.CSTNode, CodeRange] = self._wrapper.resolve(PositionProvider)
        walk = _Walk()
        module.visit(walk)
        self._parents, self._in_order = walk.parents, walk.nodes

    @classmethod
    def parse(cls, source: str) -> SourceTree | None:
        """None where `source` is no program, or is one that the tree does not keep to the letter."""
        return _parsed(source)

    # -- what stands where ---------------------------------------------------------------------------------------------

    def lines(self, node: cst.CSTNode) -> tuple[int, int]:
        """The first and the last line of a node, counted from 1."""
        place = self._positions[node]
        return place.start.line, place.end.line

    def place(self, node: cst.CSTNode) -> tuple[int, int]:
        """Line (from 1) and column (from 0) at which a node begins."""
        start = self._positions[node].start
        return start.line, start.column

    def end(self, node: cst.CSTNode) -> tuple[int, int]:
        """Line and column behind a node."""
        end = self._positions[node].end
        return end.line, end.column

    def text_of_line(self, line: int) -> str:
        return self._lines[line - 1]

    @cached_property
    def _lines(self) -> list[str]:
        # Not splitlines: it also breaks at form feeds and separators, which Python does not.
        return re.split(r"\r?\n", self.source.removeprefix("\ufeff"))

    def covers(self, node: cst.CSTNode, line: int) -> bool:
        first, last = self.lines(node)
        return first <= line <= last

    def calls_on(self, line: int) -> list[cst.Call]:
        """The calls that a line is a part of, the outer ones first."""
        return [each for each in self.nodes(cst.Call) if self.covers(each, line)]

    def called_from(self, line: int) -> list[cst.Call]:
        """The calls in which a frame has this line, the outer ones first: those that begin there, or whose method is
        named there. All that the line is a part of where there are none."""
        there = self.calls_on(line)
        return [each for each in there if line in (self.lines(each)[0], self._named_at(each))] or there

    def _named_at(self, call: cst.Call) -> int:
        """The line of the name of what is called, as `.fit` of a chain of calls has one of its own."""
        return self.lines(call.func.attr if isinstance(call.func, cst.Attribute) else call)[0]

    @overload
    def nodes(self, kind: type[A], within: cst.CSTNode | None = None) -> list[A]: ...
    @overload
    def nodes(self, kind: tuple[type[A], type[B]], within: cst.CSTNode | None = None) -> list[A | B]: ...
    @overload
    def nodes(self, kind: tuple[type[A], type[B], type[C]], within: cst.CSTNode | None = None) -> list[A | B | C]: ...

    def nodes(self, kind: Any, within: cst.CSTNode | None = None) -> list[Any]:
        """All nodes of a kind, or those in `within` (itself included), in the order of the text, outer ones first."""
        if within is None:
            return [node for node in self._in_order if isinstance(node, kind)]
        walk = _Walk()
        within.visit(walk)
        return [node for node in walk.nodes if isinstance(node, kind)]

    def holds(self, outer: cst.CSTNode, inner: cst.CSTNode) -> bool:
        """Whether `inner` is `outer` or a part of it."""
        return inner is outer or any(each is outer for each in self.around(inner))

    def around(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """What a node is a part of, the innermost first."""
        while (parent := self._parents.get(node)) is not None:
            yield parent
            node = parent

    def statement(self, node: cst.CSTNode) -> Statement | None:
        """The innermost statement with lines of its own that a node is in."""
        return next((each for each in (node, *self.around(node)) if isinstance(each, STATEMENTS)), None)

    def block(self, parent: cst.CSTNode) -> list[Statement]:
        """The statements that are executed in a row in a module or an indented block."""
        body = parent.body if isinstance(parent, (cst.Module, cst.IndentedBlock)) else ()
        return [each for each in body if isinstance(each, STATEMENTS)]

    def innermost(self, line: int) -> Statement | None:
        """The innermost statement on a line."""
        there = [each for each in self._in_order if isinstance(each, STATEMENTS) and self.covers(each, line)]
        return there[-1] if there else None

    def function(self, node: cst.CSTNode) -> cst.FunctionDef | None:
        """The innermost function around a node."""
        return next((each for each in self.around(node) if isinstance(each, cst.FunctionDef)), None)

    def loop(self, node: cst.CSTNode) -> cst.For | cst.While | None:
        """The innermost loop around a node, in the same function or class."""
        found = next((each for each in self.around(node) if isinstance(each, (*LOOPS, *SCOPES))), None)
        return found if isinstance(found, LOOPS) else None

    def scope(self, node: cst.CSTNode) -> Scope | None:
        """Where the names in a node are looked up."""
        return self._scopes.get(node)

    def is_loaded(self, node: cst.CSTNode) -> bool:
        """Whether an expression is evaluated where it stands, rather than assigned to or deleted."""
        return self._contexts.get(node) in (None, ExpressionContext.LOAD)

    @cached_property
    def _contexts(self) -> Mapping[cst.CSTNode, ExpressionContext | None]:
        return self._wrapper.resolve(ExpressionContextProvider)

    @cached_property
    def _scopes(self) -> Mapping[cst.CSTNode, Scope | None]:
        try:
            return self._wrapper.resolve(ScopeProvider)
        except RecursionError:
            return {}

    # -- what it says --------------------------------------------------------------------------------------------------

    @cached_property
    def quote(self) -> str:
        """The quotes that this file has more of."""
        return "'" if self.source.count("'") > self.source.count('"') else '"'

    def says(self, name: str) -> bool:
        """Whether a name stands anywhere in the file, behind a dot or not."""
        return any(node.value == name for node in self.nodes(cst.Name))

    @cached_property
    def first_statement(self) -> Statement | None:
        """The first statement behind the docstring and imports from `__future__`; None where there is none."""
        return next((each for each in self.module.body if not is_docstring(each) and not _is_future(each)), None)

    @cached_property
    def torch_name(self) -> str | None:
        """What the whole file calls `torch`; None where it imports it under no name, or only inside a function."""
        for node in self.nodes(cst.Import):
            if any(isinstance(each, SCOPES) for each in self.around(node)):
                continue
            for alias in node.names:
                name = dotted(alias.name)
                if name == "torch":
                    return alias.evaluated_alias or "torch"
                if alias.asname is None and name.startswith("torch."):
                    return "torch"
        return None

    def literal(self, value: object) -> cst.BaseExpression:
        """A bool, int, float, str or None as this file writes it."""
        return cst.parse_expression(written(value, self.quote))

    # -- edits ---------------------------------------------------------------------------------------------------------

    def with_value(self, node: cst.BaseExpression, value: object) -> str | None:
        """The source with a literal in the place of an expression, in the same parentheses; None where that is no
        program any more. Most edits are this one, and it needs no new tree."""
        offsets = [self._offset(self.place(node)), self._offset(self.end(node))]
        after = self.source[: offsets[0]] + written(value, self.quote) + self.source[offsets[1] :]
        return after if is_program(after) else None

    def _offset(self, place: tuple[int, int]) -> int:
        line, column = place
        return self._starts[line - 1] + column

    @cached_property
    def _starts(self) -> list[int]:
        """Where the lines begin."""
        mark = len(self.source) - len(self.source.removeprefix("\ufeff"))
        return [mark, *(match.end() for match in re.finditer("\n", self.source))]

    def edited(self, edits: Edits, above: Mapping[Any, Sequence[str]] | None = None) -> str | None:
        """The source with these edits made and nothing else changed; None where that is no program any more.

        `above`: lines that are put above statements, below the comments that stand there.
        """
        lines = {
            node: [cst.parse_statement(each, config=self.module.config_for_parsing) for each in code]
            for node, code in (above or {}).items()
        }
        try:
            module = self.module.visit(_Editing(edits, lines))
        except RecursionError:
            return None
        assert isinstance(module, cst.Module)
        after = ("\ufeff" if self.source.startswith("\ufeff") else "") + module.code
        return after if is_program(after) else None


class _Walk(cst.CSTVisitor):
    """All nodes in the order of the text, outer ones first, and what each is a part of."""

    def __init__(self) -> None:
        super().__init__()
        self.nodes: list[cst.CSTNode] = []
        self.parents: dict[cst.CSTNode, cst.CSTNode] = {}
        self._around: list[cst.CSTNode] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        self.nodes.append(node)
        if self._around:
            self.parents[node] = self._around[-1]
        self._around.append(node)
        return True

    def on_leave(self, original_node: cst.CSTNode) -> None:
        self._around.pop()


class _Editing(cst.CSTTransformer):
    def __init__(self, edits: Edits, above: Mapping[cst.CSTNode, Sequence[Statement]]) -> None:
        super().__init__()
        self._edits = edits
        self._above = above

    def on_leave(self, original_node: cst.CSTNode, updated_node: cst.CSTNode) -> Put:  # type: ignore[override]
        edit = self._edits.get(original_node)
        made: Put = updated_node if edit is None else edit(updated_node)
        lines = self._above.get(original_node)
        if not lines or isinstance(made, cst.RemovalSentinel):
            return made
        first, *others = [made] if isinstance(made, cst.CSTNode) else list(made)
        assert isinstance(first, STATEMENTS)
        top = lines[0].with_changes(leading_lines=first.leading_lines)
        return cst.FlattenSentinel([top, *lines[1:], first.with_changes(leading_lines=()), *others])


def put(new: cst.CSTNode) -> Edit:
    """The edit that puts something else in a node's place, in the same parentheses."""

    def place(node: cst.CSTNode) -> Put:
        if isinstance(node, cst.BaseExpression) and isinstance(new, cst.BaseExpression) and node.lpar and not new.lpar:
            return new.with_changes(lpar=node.lpar, rpar=node.rpar)
        return new

    return place


def written(value: object, quote: str) -> str:
    """A literal as Python has it."""
    if isinstance(value, str):
        return quote + value.replace("\\", "\\\\").replace(quote, "\\" + quote) + quote
    return repr(value)


def dotted(node: cst.CSTNode) -> str:
    """`torch.utils.data` as it is written; "" for what is no name."""
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute):
        before = dotted(node.value)
        return f"{before}.{node.attr.value}" if before else ""
    return ""


def names_of(node: cst.Import | cst.ImportFrom) -> Sequence[cst.ImportAlias]:
    """What an import names; nothing where it imports all there is."""
    return () if isinstance(node.names, cst.ImportStar) else node.names


def last_name(node: cst.CSTNode) -> str:
    """`DataLoader` of `torch.utils.data.DataLoader[int]`; "" for what has no name."""
    if isinstance(node, cst.Subscript):
        node = node.value
    if isinstance(node, cst.Attribute):
        return node.attr.value
    return node.value if isinstance(node, cst.Name) else ""


def code(node: cst.CSTNode) -> str:
    """A node as it is written, with lines of its own ending in "\n"."""
    return cst.Module([]).code_for_node(node)


def said(node: cst.CSTNode) -> str:
    """An expression on one line, for sentences."""
    return ast.unparse(ast.parse(f"({code(node)}\n)", mode="eval"))


def has_comment(node: cst.CSTNode) -> bool:
    """Whether a comment stands in a node, its own parentheses left out."""
    bare = node.with_changes(lpar=(), rpar=()) if isinstance(node, cst.BaseExpression) else node
    finder = _Comments()
    bare.visit(finder)
    return finder.found


class _Comments(cst.CSTVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.found = False

    def visit_Comment(self, node: cst.Comment) -> None:
        self.found = True


def constant(node: cst.CSTNode) -> tuple[object] | None:
    """The value of a literal that is a bool, int, float, str or None; None where it is anything else."""
    try:
        value = ast.literal_eval(cst.Module([]).code_for_node(node).strip())
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return None
    return (value,) if value is None or isinstance(value, (bool, int, float, str)) else None


def is_program(source: str) -> bool:
    """Whether Python reads it."""
    try:
        ast.parse(source.removeprefix("\ufeff"))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


@lru_cache(maxsize=_KEPT)
def _parsed(source: str) -> SourceTree | None:
    body = source.removeprefix("\ufeff")
    # A lone carriage return ends a line for Python, but not for editors and diffs. What nests too deep for Python's
    # own parser would take the whole process with it in libcst's.
    if re.search(r"\r(?!\n)", body) or not is_program(body):
        return None
    try:
        module = cst.parse_module(body)
        return SourceTree(source, module) if module.code == body else None
    except Exception:  # Whatever it was at when the program turned out to be too deep for it.
        return None


def small(statement: cst.CSTNode) -> cst.BaseSmallStatement | None:
    """What stands on a line of its own; None where there are several things, or it has a block."""
    alone = isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1
    return statement.body[0] if isinstance(statement, cst.SimpleStatementLine) and alone else None


def method_call(statement: cst.CSTNode) -> tuple[cst.Call, cst.Attribute] | None:
    """The call, and what it calls, of a line that is nothing but `something.method(...)`."""
    inner = small(statement)
    call = inner.value if isinstance(inner, cst.Expr) else None
    if isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute) and not call.lpar:
        return call, call.func
    return None


def is_docstring(statement: cst.CSTNode) -> bool:
    inner = small(statement)
    return isinstance(inner, cst.Expr) and isinstance(inner.value, (cst.SimpleString, cst.ConcatenatedString))


def _is_future(statement: cst.CSTNode) -> bool:
    inner = small(statement)
    return isinstance(inner, cst.ImportFrom) and inner.module is not None and dotted(inner.module) == "__future__"
