"""Follows names, attributes and calls of the user's to what they stand for, from file to file. Pure: files are read by
the `Project` that is given in.

What is assigned in two places, or changed after it was made, is followed no further: which value wins is not known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import libcst as cst
from libcst.metadata import Assignment, BaseAssignment, ImportAssignment

from bottleneck_doctor.edits.origin.definition import Absent, Definition, Expression, Key, Origin
from bottleneck_doctor.edits.origin.running import Running
from bottleneck_doctor.edits.project import Project
from bottleneck_doctor.edits.tree import SCOPES, SourceTree, code, constant, dotted, names_of

MOST_STEPS = 60
"""Names that are followed for one value; a program that hands a value on so often does it in a circle."""
PASSED_ON = frozenset({"int", "bool", "float", "str"})
"""What gives on what it gets."""


@dataclass(frozen=True)
class ModuleFile(Definition):
    """A module of the user's."""

    path: str

    def member(self, key: Key, follower: Follower) -> Definition | None:
        found = follower.in_module(self.path, str(key))
        inner = follower.project.module(f".{key}", self.path) if found is None else None
        return found if inner is None else ModuleFile(inner)


@dataclass(frozen=True)
class Defined(Definition):
    """A function or a class of the user's."""

    path: str
    tree: SourceTree
    node: cst.FunctionDef | cst.ClassDef

    @property
    def name(self) -> str:
        return self.node.name.value

    @property
    def bases(self) -> Sequence[cst.Arg]:
        """What a class inherits from."""
        return self.node.bases if isinstance(self.node, cst.ClassDef) else ()

    def member(self, key: Key, follower: Follower) -> Definition | None:
        from bottleneck_doctor.edits.origin import instance

        return instance.class_member(self, str(key), follower) if isinstance(self.node, cst.ClassDef) else None


@dataclass(frozen=True)
class Parameter(Definition):
    """A parameter of a function of the user's, which may be anything that callers give it."""

    path: str
    tree: SourceTree
    function: cst.FunctionDef
    param: cst.Param

    @property
    def name(self) -> str:
        return self.param.name.value

    @property
    def default(self) -> Expression | None:
        return None if self.param.default is None else Expression(self.path, self.tree, self.param.default)


class Follower:
    def __init__(self, project: Project, running: Running | None = None) -> None:
        self.project = project
        self.running = Running() if running is None else running
        self.command_line = self.running.command_line
        self._steps = 0
        self._trees: dict[str, SourceTree | None] = {}

    def anew(self) -> Follower:
        """The same, for texts that are other ones by now."""
        return Follower(self.project, self.running)

    def origin(self, at: Expression) -> Origin | None:
        """Where the value of an expression is written; None where it is not followed to one place."""
        self._steps = 0
        found = self.define(at)
        return None if found is None else found.origin(self)

    def defined(self, at: Expression) -> Definition | None:
        """What an expression stands for, as the first step of the way."""
        self._steps = 0
        return self.define(at)

    def part(self, at: Expression, key: Key) -> Definition | None:
        """What an attribute or a key of an expression stands for, as the first step of the way."""
        self._steps = 0
        return self._part(at, at.node, key)

    def member(self, whole: Definition, key: Key) -> Definition | None:
        """A part of what is known already, as the first step of the way."""
        self._steps = 0
        return whole.member(key, self)

    def tree(self, path: str) -> SourceTree | None:
        if path not in self._trees:
            text = self.project.text(path)
            self._trees[path] = None if text is None else SourceTree.parse(text)
        return self._trees[path]

    def define(self, at: Expression) -> Definition | None:
        """What an expression stands for; None where that is not known."""
        from bottleneck_doctor.edits.origin import kinds

        self._steps += 1
        if self._steps > MOST_STEPS:
            return None
        node = at.node
        if isinstance(node, cst.Name):
            return self._name(at, node)
        if isinstance(node, cst.Attribute):
            return self._part(at, node.value, node.attr.value)
        if isinstance(node, cst.Subscript):
            key = _subscript(node)
            return None if key is None else self._part(at, node.value, key)
        if isinstance(node, cst.Call):
            asked = _asked_for(node)
            if asked is not None:
                base, key, default = asked
                return self._part(at, base, key, default)
            if dotted(node.func) in PASSED_ON and len(node.args) == 1:
                return self.define(at.at(node.args[0].value))
            return next((made for kind in kinds.CALLS if (made := kind(at, node, self)) is not None), at)
        return kinds.Entries(at, node) if isinstance(node, cst.Dict) else at

    def in_module(self, path: str, name: str) -> Definition | None:
        """What a name of a module stands for."""
        self._steps += 1
        tree = self.tree(path)
        if tree is None or self._steps > MOST_STEPS:
            return None
        scope = tree.scope(tree.module)
        bound = [] if scope is None else list(scope[name])
        if bound:
            return self._bound(path, tree, name, bound)
        return self._starred(path, tree, name)

    def callers(self, path: str, name: str) -> list[Expression]:
        """The calls of a function or class of the file `path`, in the files that are known to run."""
        found = []
        for file in dict.fromkeys((path, *self.running.files)):
            tree = self.tree(file)
            for call in [] if tree is None else tree.nodes(cst.Call):
                if tree is None or not self._is_of(file, tree, call.func, path, name):
                    continue
                if not self._is_left_out(file, tree, call):
                    found.append(Expression(file, tree, call))
        return found

    def _is_left_out(self, file: str, tree: SourceTree, node: cst.CSTNode) -> bool:
        """Whether it is only run where the file is started itself, which it is not."""
        if self.running.script in (None, file):
            return False
        return any(isinstance(each, cst.If) and "__main__" in code(each.test) for each in tree.around(node))

    def _is_of(self, file: str, tree: SourceTree, func: cst.BaseExpression, path: str, name: str) -> bool:
        if isinstance(func, cst.Name):
            scope = tree.scope(func)
            bound = [] if scope is None else list(scope[func.value])
            if file == path and func.value == name:
                return all(isinstance(each, Assignment) and not isinstance(each.node, cst.Name) for each in bound)
            imported = [each for each in bound if isinstance(each, ImportAssignment)]
            return any(self._imported(file, each, func.value) == (path, name) for each in imported)
        if isinstance(func, cst.Attribute) and func.attr.value == name and isinstance(func.value, cst.Name):
            return self.define(Expression(file, tree, func.value)) == ModuleFile(path)
        return False

    def assigned(self, at: Expression) -> list[Expression]:
        """All that is assigned to a name, each by itself."""
        scope = at.tree.scope(at.node)
        if not isinstance(at.node, cst.Name) or scope is None:
            return []
        targets = [each.node for each in scope[at.node.value] if isinstance(each, Assignment)]
        assigns = [next(at.tree.around(next(at.tree.around(each)))) for each in targets if isinstance(each, cst.Name)]
        return [at.at(each.value) for each in assigns if isinstance(each, cst.Assign)]

    def class_of(self, path: str, tree: SourceTree, node: cst.CSTNode) -> Defined | None:
        """The class that a function is a method of."""
        around = next((each for each in tree.around(node) if isinstance(each, SCOPES)), None)
        return Defined(path, tree, around) if isinstance(around, cst.ClassDef) else None

    # -- parts ---------------------------------------------------------------------------------------------------------

    def _part(
        self, at: Expression, base: cst.BaseExpression, key: Key, default: cst.BaseExpression | None = None
    ) -> Definition | None:
        """An attribute or a key of what `base` stands for."""
        whole = self.define(at.at(base))
        found = None if whole is None else whole.member(key, self)
        stores = [] if dotted(base).split(".")[0] == "self" else list(_stores(at.tree, code(base), key))
        if not stores:
            return self.define(at.at(default)) if isinstance(found, Absent) and default is not None else found
        (value, statement), *others = stores
        made = at.tree.statement(at.node)
        if not isinstance(found, (Absent, type(None))) or others or value is None or statement is None or made is None:
            return None
        # In a block that may not be reached, it may not be what counts.
        if not any(each is _block_of(at.tree, statement) for each in (at.tree.module, *at.tree.around(made))):
            return None
        return self.define(at.at(value))

    # -- names ---------------------------------------------------------------------------------------------------------

    def _name(self, at: Expression, node: cst.Name) -> Definition | None:
        if node.value in ("None", "True", "False", "__file__"):
            return at
        scope = at.tree.scope(node)
        if scope is None:
            return None
        bound = list(scope[node.value])
        if not bound:
            return self._starred(at.path, at.tree, node.value)
        last = _last_before(at.tree, node, bound) if len(bound) > 1 else None
        return self._bound(at.path, at.tree, node.value, bound if last is None else [last])

    def _bound(self, path: str, tree: SourceTree, name: str, bound: Sequence[BaseAssignment]) -> Definition | None:
        """What a name stands for that is bound in these places: the same in all of them, or it is not known."""
        found = [self._bound_by(path, tree, name, each) for each in bound]
        return found[0] if found and all(each == found[0] for each in found) else None

    def _bound_by(self, path: str, tree: SourceTree, name: str, only: BaseAssignment) -> Definition | None:
        if isinstance(only, ImportAssignment):
            found = self._imported(path, only, name)
            if found is None:
                return None
            file, inner = found
            return self.in_module(file, inner) if inner else ModuleFile(file)
        if not isinstance(only, Assignment):
            return None
        if isinstance(only.node, (cst.FunctionDef, cst.ClassDef)):
            return Defined(path, tree, only.node)
        if isinstance(only.node, cst.Param):
            function = next(each for each in tree.around(only.node) if isinstance(each, (cst.FunctionDef, cst.Lambda)))
            if isinstance(function, cst.Lambda):
                return None
            return self.parameter(Parameter(path, tree, function, only.node))
        return self._assigned(path, tree, only.node) if isinstance(only.node, cst.Name) else None

    def parameter(self, parameter: Parameter) -> Definition | None:
        """What callers give for a parameter."""
        from bottleneck_doctor.edits.origin import kinds

        self._steps += 1
        if self._steps > MOST_STEPS:
            return None
        return next((made for kind in kinds.PARAMETERS if (made := kind(parameter, self)) is not None), None)

    def _assigned(self, path: str, tree: SourceTree, target: cst.Name) -> Definition | None:
        """What is assigned to a name, or to a place among several."""
        places: list[int] = []
        inner: cst.CSTNode = target
        for node in tree.around(target):
            if isinstance(node, (cst.Tuple, cst.List)):
                places.insert(0, next(number for number, each in enumerate(node.elements) if each is inner))
            elif isinstance(node, (cst.Assign, cst.AnnAssign, cst.NamedExpr)):
                if node.value is None:
                    return None
                found = self.define(Expression(path, tree, node.value))
                for place in places:
                    found = None if found is None else found.member(place, self)
                return found
            elif isinstance(node, cst.WithItem):
                return None if places else self.define(Expression(path, tree, node.item))
            elif not isinstance(node, (cst.AssignTarget, cst.Element, cst.AsName)):
                return None
            inner = node
        return None

    def _imported(self, path: str, made: ImportAssignment, name: str) -> tuple[str, str] | None:
        """The file that an imported name comes from, and its name there, "" where it is the module itself."""
        node = made.node
        assert isinstance(node, (cst.Import, cst.ImportFrom))
        for alias in names_of(node):
            inner = alias.evaluated_name
            if isinstance(node, cst.Import):
                whole = inner if alias.asname is not None else inner.partition(".")[0]
                file = self.project.module(whole, path)
                if file is not None and name == (alias.evaluated_alias or whole):
                    return file, ""
            elif name == (alias.evaluated_alias or inner):
                file = self.project.module(module_of(node), path)
                if file is not None and self._has(file, inner):
                    return file, inner
                package = module_of(node)
                submodule = self.project.module(f"{package}{'' if package.endswith('.') else '.'}{inner}", path)
                return None if submodule is None else (submodule, "")
        return None

    def _has(self, file: str, name: str) -> bool:
        """Whether a module knows a name, its own or one that it imports."""
        tree = self.tree(file)
        scope = None if tree is None else tree.scope(tree.module)
        return tree is not None and bool((scope is not None and scope[name]) or _starred_modules(tree))

    def _starred(self, path: str, tree: SourceTree, name: str) -> Definition | None:
        """A name that comes from a module of which all is imported."""
        for module in _starred_modules(tree):
            file = self.project.module(module, path)
            found = None if file is None else self.in_module(file, name)
            if found is not None:
                return found
        return None


def _last_before(tree: SourceTree, name: cst.Name, bound: Sequence[BaseAssignment]) -> BaseAssignment | None:
    """Of several assignments in one block, one after the other, that which a name behind them has its value from; None
    where they lie apart."""
    places = [(tree.statement(each.node), each) for each in bound if isinstance(each, Assignment)]
    blocks = {next(tree.around(statement)) for statement, _ in places if isinstance(statement, cst.SimpleStatementLine)}
    around = list(tree.around(name))
    if len(places) < len(bound) or len(blocks) != 1 or not any(block in around for block in blocks):
        return None
    function = tree.function(name)
    if any(statement is None or tree.function(statement) is not function for statement, _ in places):
        return None
    own = tree.statement(name)
    before = [
        (tree.place(statement), number, each)
        for number, (statement, each) in enumerate(places)
        if statement is not None and statement is not own and tree.place(statement) < tree.place(name)
    ]
    return max(before)[2] if before else None


def module_of(node: cst.ImportFrom) -> str:
    """The module that names are imported from, as it is written."""
    return "." * len(node.relative) + ("" if node.module is None else dotted(node.module))


def whole_name(tree: SourceTree, name: str) -> str:
    """A dotted name as it would be without `from … import …` and `import … as …`."""
    first, dot, rest = name.partition(".")
    for node in tree.nodes((cst.Import, cst.ImportFrom)):
        for alias in names_of(node):
            if (alias.evaluated_alias or alias.evaluated_name) == first:
                module = f"{module_of(node)}." if isinstance(node, cst.ImportFrom) else ""
                return f"{module}{alias.evaluated_name}{dot}{rest}"
    return name


def _starred_modules(tree: SourceTree) -> list[str]:
    return [module_of(node) for node in tree.nodes(cst.ImportFrom) if isinstance(node.names, cst.ImportStar)]


def _subscript(node: cst.Subscript) -> Key | None:
    """The key of `config["loader"]` or `both[0]`."""
    if len(node.slice) != 1 or not isinstance(node.slice[0].slice, cst.Index):
        return None
    value = constant(node.slice[0].slice.value)
    return value[0] if value is not None and isinstance(value[0], (str, int)) else None


def _asked_for(call: cst.Call) -> tuple[cst.BaseExpression, str, cst.BaseExpression | None] | None:
    """Of `config.get("key", 4)` or `getattr(args, "key", 4)`: what is asked, for what, and what is had otherwise."""
    given = [each.value for each in call.args]
    if any(each.star for each in call.args):
        return None
    if isinstance(call.func, cst.Attribute) and call.func.attr.value == "get" and 1 <= len(given) <= 2:
        given = [call.func.value, *given]
    elif not (dotted(call.func) == "getattr" and 2 <= len(given) <= 3):
        return None
    key = constant(given[1])
    if key is None or not isinstance(key[0], str):
        return None
    return given[0], key[0], given[2] if len(given) == 3 else None


def _block_of(tree: SourceTree, statement: cst.CSTNode) -> cst.CSTNode | None:
    return next(tree.around(statement), None)


def _stores(tree: SourceTree, base: str, key: Key) -> Iterator[tuple[cst.BaseExpression | None, cst.CSTNode | None]]:
    """What is assigned to this part of `base` in the file, and the statement that does it; no value where something
    else may change it."""
    for target in tree.nodes((cst.AssignTarget, cst.AnnAssign, cst.AugAssign)):
        part = target.target
        if isinstance(part, cst.Attribute):
            there = part.attr.value == key
        elif isinstance(part, cst.Subscript):
            there = _subscript(part) == key
        else:
            continue
        if there and code(part.value) == base:
            holder = next(tree.around(target)) if isinstance(target, cst.AssignTarget) else target
            value = holder.value if isinstance(holder, (cst.Assign, cst.AnnAssign)) else None
            yield value, tree.statement(target)
    for call in tree.nodes(cst.Call):
        if _changes(tree, call, base, key):
            yield None, None


def _changes(tree: SourceTree, call: cst.Call, base: str, key: Key) -> bool:
    """Whether a call may change this part: `base.update(...)`, `vars(base).update(...)`, `setattr(base, ...)`."""
    if dotted(call.func) == "setattr" and len(call.args) == 3 and code(call.args[0].value) == base:
        name = constant(call.args[1].value)
        return name is None or name[0] == key
    if not isinstance(call.func, cst.Attribute) or call.func.attr.value not in ("update", "pop", "setdefault"):
        return False
    if code(call.func.value) not in (base, f"vars({base})", f"{base}.__dict__"):
        return False
    if call.func.attr.value != "update":
        name = constant(call.args[0].value) if call.args else None
        return name is None or name[0] == key
    if any(each.star or (each.keyword is None and not isinstance(each.value, cst.Dict)) for each in call.args):
        return True
    keys: list[object] = [each.keyword.value for each in call.args if each.keyword is not None]
    for each in call.args:
        for element in each.value.elements if isinstance(each.value, cst.Dict) else ():
            if not isinstance(element, cst.DictElement) or (name := constant(element.key)) is None:
                return True
            keys.append(name[0])
    return key in keys
