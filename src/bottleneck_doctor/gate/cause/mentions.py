"""The names that occur in the changed lines of a diff: the head's sources and the hunks in, names with their changed
line out.

Pure. What takes longer is often in a library, whose code nobody changed: a transform that was added to a chain, a layer
in a model, or an argument of either. The changed line is then the one that names it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from bottleneck_doctor.gate.cause.hunks import Differences
from bottleneck_doctor.runtime.wire.notebooks import SOURCES

LOADER_WORDS = frozenset(
    {
        "num_workers",
        "workers",
        "prefetch_factor",
        "persistent_workers",
        "pin_memory",
        "batch_sampler",
        "multiprocessing",
    }
)
"""Names of arguments, keys and options that say how batches are loaded, wherever the loader is made."""
LOADER = "DataLoader"
"""The name that such a word stands for."""

Sources = Callable[[str], str]
"""A file's path, as both revisions have it, in; its text on the head out, empty if there is none."""


@dataclass(frozen=True)
class Mention:
    """A changed line of the head and a name in it; of a dotted name, the last part.

    `through`: the variable that the changed line sets, if the name is a call elsewhere that gets it as an argument;
    empty if the line itself has the name. `defined`: whether the line defines the name; a method's name then has its
    class's before it.
    """

    name: str
    path: str
    line: int
    through: str = ""
    defined: bool = False


def mentions(sources: Sources, differences: Differences) -> list[Mention]:
    """Every name in a changed line, in the order of files and lines; each once a line."""
    found: dict[Mention, None] = {}
    for path in sorted(differences.hunks):
        tree = parsed(sources(path)) if path.endswith(SOURCES) else None
        if tree is not None:
            found |= dict.fromkeys(sorted(_File(path, tree, differences).found(), key=lambda each: each.line))
    return list(found)


def is_read(sources: Sources, differences: Differences) -> bool:
    """Whether all changes could be read. Only then does a missing name mean that it was not changed."""
    changed = [path for path, hunks in differences.hunks.items() if path.endswith(SOURCES) and hunks]
    return differences.known and all(parsed(sources(path)) is not None for path in changed)


def for_lines(source: str) -> set[int]:
    """Lines at the head of a `for` loop. Profiles count the time of fetching the next item there."""
    tree = parsed(source)
    if tree is None:
        return set()
    loops = (node for node in ast.walk(tree) if isinstance(node, (ast.For, ast.AsyncFor)))
    return {line for loop in loops for line in range(loop.lineno, _end(loop.iter) + 1)}


def function_lines(source: str, line: int) -> range:
    """The lines of the innermost function around a line; empty at module level."""
    tree = parsed(source)
    around = (
        []
        if tree is None
        else [
            each
            for each in ast.walk(tree)
            if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)) and each.lineno <= line <= _end(each)
        ]
    )
    inner = max(around, key=lambda each: each.lineno, default=None)
    return range(0) if inner is None else range(inner.lineno, _end(inner) + 1)


def bases(source: str) -> Mapping[str, set[str]]:
    """The classes of a file, and the names of each one's base classes."""
    tree = parsed(source)
    if tree is None:
        return {}
    classes = (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    return {each.name: {name for base in each.bases if (name := tail(base))} for each in classes}


def qualified(source: str, line: int, name: str) -> str:
    """A function's name with its class's before it, as Python reports it from 3.11 on. `line`: one inside the
    function."""
    tree = parsed(source)
    if tree is None or "." in name:
        return name
    inside = [
        each
        for each in ast.walk(tree)
        if isinstance(each, ast.ClassDef) and each.lineno <= line <= _end(each) and _holds(each, name, line)
    ]
    return f"{max(inside, key=lambda each: each.lineno).name}.{name}" if inside else name


def _holds(owner: ast.ClassDef, name: str, line: int) -> bool:
    return any(
        isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))
        and each.name == name
        and each.lineno <= line <= _end(each)
        for each in owner.body
    )


def parsed(source: str) -> ast.Module | None:
    """The source as a tree; None if it is empty, or not Python that this version can parse."""
    try:
        return ast.parse(source) if source.strip() else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def tail(node: ast.expr) -> str:
    """The last part of a dotted name; empty for anything else."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


class _File:
    """One changed file."""

    def __init__(self, path: str, tree: ast.Module, differences: Differences) -> None:
        self._path = path
        self._tree = tree
        self._differences = differences

    def found(self) -> Iterator[Mention]:
        sets: dict[str, int] = {}
        """Names that changed lines set, and the line."""
        for node in ast.walk(self._tree):
            for name, line in self._named(node):
                yield Mention(name, self._path, line)
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                header = self._changed_header(node)
                if header is not None:
                    yield Mention(self._owner(node) + node.name, self._path, header, defined=True)
            for name, line in self._set(node):
                sets.setdefault(name, line)
        for name, called in self._arguments():
            if name in sets:
                yield Mention(called, self._path, sets[name], through=name)

    def _changed(self, first: int, last: int) -> int | None:
        lines = range(first, last + 1)
        return next((line for line in lines if self._differences.changed(self._path, line)), None)

    def _named(self, node: ast.AST) -> Iterator[tuple[str, int]]:
        """Names at a node in changed lines, and calls that span a changed line, because one of their arguments
        changed."""
        if isinstance(node, ast.Call):
            line = self._changed(node.lineno, _end(node))
            if line is not None and (name := tail(node.func)):
                yield name, line
        elif isinstance(node, (ast.Name, ast.Attribute)):
            line = self._changed(_end(node), _end(node))
            if line is not None and isinstance(node.ctx, ast.Load):
                yield tail(node), line
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                line = self._changed(node.lineno, _end(node))
                if line is not None:
                    yield (alias.asname or alias.name).rpartition(".")[2], line
        elif isinstance(node, ast.keyword) and node.arg in LOADER_WORDS:
            line = self._changed(node.value.lineno, _end(node.value))
            if line is not None:
                yield LOADER, line
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            line = self._changed(node.lineno, node.lineno)
            if line is not None and option(node.value) in LOADER_WORDS:
                yield LOADER, line

    def _changed_header(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> int | None:
        """The changed line of the decorators, name and arguments; the name's line if a line was removed there."""
        first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
        last = max(node.lineno, node.body[0].lineno - 1)
        line = self._changed(first, last)
        if line is None and any(
            hunk.new_lines == 0 and first - 1 <= hunk.new < last for hunk in self._differences.hunks.get(self._path, ())
        ):
            return node.lineno
        return line

    def _owner(self, node: ast.stmt) -> str:
        classes = (each for each in ast.walk(self._tree) if isinstance(each, ast.ClassDef) and node in each.body)
        return "".join(f"{each.name}." for each in classes)

    def _set(self, node: ast.AST) -> Iterator[tuple[str, int]]:
        """What a changed line sets: variables, attributes, and options of the command line."""
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign)):
            targets = [node.target]
        elif isinstance(node, ast.Call) and tail(node.func) == "add_argument":
            line = self._changed(node.lineno, _end(node))
            names = [each.value for each in node.args if isinstance(each, ast.Constant)]
            for name in names if line is not None else ():
                if isinstance(name, str) and line is not None:
                    yield option(name), line
        for target in targets:
            assert isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign))
            line = self._changed(node.lineno, _end(node))
            if line is not None and (name := tail(target)):
                yield name, line

    def _arguments(self) -> Iterator[tuple[str, str]]:
        """Names that are arguments, each with the name that is called with them."""
        for node in ast.walk(self._tree):
            if not isinstance(node, ast.Call) or not (called := tail(node.func)):
                continue
            for argument in [*node.args, *(each.value for each in node.keywords)]:
                for part in ast.walk(argument):
                    if isinstance(part, (ast.Name, ast.Attribute)) and (name := tail(part)):
                        yield name, called


def option(text: str) -> str:
    """The attribute that holds a command-line option: `num_workers` for `--num-workers`."""
    return text.lstrip("-").replace("-", "_")


def _end(node: ast.expr | ast.stmt) -> int:
    return node.end_lineno or node.lineno
