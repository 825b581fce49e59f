"""Classes of the user's: fields of a dataclass, attributes of a class, and what `__init__` keeps in `self`."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from bottleneck_doctor.edits.origin import class_options, function
from bottleneck_doctor.edits.origin.definition import Absent, Definition, Expression, Key
from bottleneck_doctor.edits.origin.follower import Defined, Follower, Parameter
from bottleneck_doctor.edits.tree import dotted, last_name

MAKES_FIELDS = frozenset({"field", "Field", "attrib", "ib"})
"""What a field's default is wrapped in."""


@dataclass(frozen=True)
class Instance(Definition):
    """What a class of the user's makes. `call`: how it was made, where that is known."""

    owner: Defined
    call: Expression | None = None

    def member(self, key: Key, follower: Follower) -> Definition | None:
        if _method(self.owner, "__init__") is None:
            calls = [self.call] if self.call is not None else follower.callers(self.owner.path, self.owner.name)
            given = [self._given(each, str(key), follower) for each in calls]
            if any(each != Absent() for each in given):
                return given[0] if len(given) == 1 else None
            default = dict(fields(self.owner)).get(str(key))
            if default is not None and not calls:
                at = Expression(self.owner.path, self.owner.tree, default)
                option = class_options.of_class(self.owner, str(key), at, follower)
                if option is not None:
                    return option
        if self.call is None and _is_overridden(self.owner, str(key), follower):
            return None
        return member_of_self(self.owner, str(key), follower)

    def _given(self, call: Expression, key: str, follower: Follower) -> Definition | None:
        """What a call gives for a field; `Absent` where it leaves the default."""
        assert isinstance(call.node, cst.Call)
        names = [name for name, _ in fields(self.owner)]
        starred: Definition | None = Absent()
        for place, each in enumerate(call.node.args):
            if each.star == "**":
                whole = follower.define(call.at(each.value))
                starred = None if whole is None else whole.member(key, follower)
            elif each.star:
                return None
            elif key == (each.keyword.value if each.keyword is not None else "".join(names[place : place + 1])):
                return follower.define(call.at(each.value))
        return starred


def of_call(at: Expression, call: cst.Call, follower: Follower) -> Definition | None:
    if not isinstance(call.func, (cst.Name, cst.Attribute)):
        return None
    made = follower.define(at.at(call.func))
    if isinstance(made, Defined) and isinstance(made.node, cst.ClassDef):
        return Instance(made, at)
    return None


def of_parameter(parameter: Parameter, follower: Follower) -> Definition | None:
    """`self`."""
    function = parameter.function
    first = [*function.params.posonly_params, *function.params.params][:1]
    owner = follower.class_of(parameter.path, parameter.tree, function)
    return Instance(owner) if owner is not None and first == [parameter.param] else None


def of_annotation(parameter: Parameter, follower: Follower) -> Definition | None:
    """What a parameter's annotation says that it is, where that is a class of the user's."""
    annotation = parameter.param.annotation
    if annotation is None:
        return None
    named = follower.define(Expression(parameter.path, parameter.tree, annotation.annotation))
    return Instance(named) if isinstance(named, Defined) and isinstance(named.node, cst.ClassDef) else None


def member_of_self(owner: Defined, key: str, follower: Follower) -> Definition | None:
    """What `self.<key>` is in a class: what its methods keep there, else what the class says."""
    kept = _kept(owner, key)
    if kept:
        only = kept[0]
        if len(kept) > 1 or isinstance(only, cst.AugAssign) or only.value is None:
            return None
        return follower.define(Expression(owner.path, owner.tree, only.value))
    if key == "hparams" and any(
        last_name(each.func) == "save_hyperparameters" for each in owner.tree.nodes(cst.Call, within=owner.node)
    ):
        return HyperParameters(owner)
    return class_member(owner, key, follower)


def _kept(owner: Defined, key: str) -> list[cst.Assign | cst.AnnAssign | cst.AugAssign]:
    """What the methods of a class assign to `self.<key>`."""
    return [
        node
        for node in owner.tree.nodes((cst.Assign, cst.AnnAssign, cst.AugAssign), within=owner.node)
        if any(dotted(target) == f"self.{key}" for target in _targets(node))
    ]


def _is_overridden(owner: Defined, key: str, follower: Follower) -> bool:
    """Whether a class that inherits from this one, and may be what `self` is, says something else."""
    for file in dict.fromkeys((owner.path, *follower.running.files)):
        tree = follower.tree(file)
        for node in [] if tree is None else tree.nodes(cst.ClassDef):
            if tree is not None and any(last_name(each.value) == owner.name for each in node.bases):
                heir = Defined(file, tree, node)
                if _kept(heir, key) or key in [name for name, _ in _body(heir)]:
                    return True
    return False


@dataclass(frozen=True)
class HyperParameters(Definition):
    """Lightning's `self.hparams`, by which the parameters of `__init__` are read again."""

    owner: Defined

    def member(self, key: Key, follower: Follower) -> Definition | None:
        init = _method(self.owner, "__init__")
        if init is None:
            return None
        params = [*init.params.posonly_params, *init.params.params, *init.params.kwonly_params]
        param = next((each for each in params if each.name.value == key), None)
        if param is None:
            return None
        return follower.parameter(Parameter(self.owner.path, self.owner.tree, init, param))


def class_member(owner: Defined, key: str, follower: Follower) -> Definition | None:
    """What the body of a class, or of one that it inherits from, says of a name."""
    assert isinstance(owner.node, cst.ClassDef)
    values = [value for name, value in _body(owner) if name == key]
    if values:
        value = values[-1]
        if value is None or len(values) > 1:
            return None
        made = follower.define(Expression(owner.path, owner.tree, _in_field(value)))
        return Instance(made) if isinstance(made, Defined) and _is_factory(value) else made
    method = _method(owner, key)
    if method is not None:
        made = Defined(owner.path, owner.tree, method)
        is_property = any(last_name(each.decorator).endswith("property") for each in method.decorators)
        return function.returned(made, follower) if is_property else made
    for base in owner.bases:
        above = follower.define(Expression(owner.path, owner.tree, base.value))
        if isinstance(above, Defined) and isinstance(above.node, cst.ClassDef):
            found = class_member(above, key, follower)
            if not isinstance(found, Absent):
                return found
    return Absent()


def _body(owner: Defined) -> list[tuple[str, cst.BaseExpression | None]]:
    """Names that the body of a class gives values, and fields without one, in order."""
    found: list[tuple[str, cst.BaseExpression | None]] = []
    for statement in owner.node.body.body:
        for small in statement.body if isinstance(statement, cst.SimpleStatementLine) else ():
            if isinstance(small, cst.AnnAssign):
                found.append((dotted(small.target), small.value))
            elif isinstance(small, cst.Assign):
                found += [(dotted(each.target), small.value) for each in small.targets]
    return found


def fields(owner: Defined) -> list[tuple[str, cst.BaseExpression | None]]:
    """The fields of a dataclass with their defaults, in order."""
    return [(name, None if value is None else _in_field(value)) for name, value in _body(owner)]


def _in_field(value: cst.BaseExpression) -> cst.BaseExpression:
    """The 2 of `field(default=2)`, the class of `field(default_factory=Loading)`; else what it is itself."""
    if isinstance(value, cst.Call) and last_name(value.func) in MAKES_FIELDS:
        for each in value.args:
            name = each.keyword.value if each.keyword is not None else "default"
            if name in ("default", "default_factory") and not each.star:
                return each.value
    return value


def _is_factory(value: cst.BaseExpression) -> bool:
    return isinstance(value, cst.Call) and any(
        each.keyword is not None and each.keyword.value == "default_factory" for each in value.args
    )


def _targets(node: cst.Assign | cst.AnnAssign | cst.AugAssign) -> list[cst.BaseExpression]:
    return [each.target for each in node.targets] if isinstance(node, cst.Assign) else [node.target]


def _method(owner: Defined, name: str) -> cst.FunctionDef | None:
    body = owner.node.body.body
    return next((each for each in body if isinstance(each, cst.FunctionDef) and each.name.value == name), None)
