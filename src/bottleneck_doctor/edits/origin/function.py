"""A function of the user's: what its callers give for a parameter, and what it returns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import libcst as cst

from bottleneck_doctor.edits.origin.definition import Absent, Definition, Expression, Key
from bottleneck_doctor.edits.origin.follower import Defined, Follower, Parameter


def of_call(at: Expression, call: cst.Call, follower: Follower) -> Definition | None:
    """What a function of the user's returns, where it has one `return`."""
    if not isinstance(call.func, (cst.Name, cst.Attribute)):
        return None
    made = follower.define(at.at(call.func))
    if not isinstance(made, Defined) or not isinstance(made.node, cst.FunctionDef) or made.node.decorators:
        return None
    return returned(made, follower)


def returned(made: Defined, follower: Follower) -> Definition | None:
    """What a function returns: the same by every `return`, or it is not known."""
    values = [
        each.value
        for each in made.tree.nodes(cst.Return, within=made.node)
        if made.tree.function(each) is made.node and each.value is not None
    ]
    found = [follower.define(Expression(made.path, made.tree, each)) for each in values]
    return found[0] if found and all(each == found[0] for each in found) else None


@dataclass(frozen=True)
class Named(Definition):
    """The `**kwargs` of a function: what callers give by names that it has no parameters for."""

    parameter: Parameter

    def member(self, key: Key, follower: Follower) -> Definition | None:
        calls = follower.callers(self.parameter.path, called_as(self.parameter, follower))
        return _agreed(_named(call, key, follower) for call in calls)


def of_parameter(parameter: Parameter, follower: Follower) -> Definition | None:
    """What every caller gives, or leaves at its default; None where they give different things."""
    if parameter.param is parameter.function.params.star_kwarg:
        return Named(parameter)
    # Where nobody is seen to call it, somebody does all the same, and may give something else than the default.
    calls = follower.callers(parameter.path, called_as(parameter, follower))
    return _agreed(_given(call, parameter, follower) for call in calls)


def _agreed(found: Iterable[Definition | None]) -> Definition | None:
    """What all of them are; None where one is not known, they differ, or there are none."""
    known: Definition | None = None
    for each in found:
        if each is None or known not in (None, each):
            return None
        known = each
    return known


def _named(call: Expression, key: Key, follower: Follower) -> Definition | None:
    """What a call gives by a name."""
    assert isinstance(call.node, cst.Call)
    if any(each.star for each in call.node.args):
        return None
    given = next((each.value for each in call.node.args if _keyword(each) == key), None)
    return Absent() if given is None else follower.define(call.at(given))


def _given(call: Expression, parameter: Parameter, follower: Follower) -> Definition | None:
    """What a call gives for a parameter, or leaves at its default."""
    assert isinstance(call.node, cst.Call)
    given = argument(call.node, parameter)
    if given is None:
        return None
    here = parameter.default if given is _OMITTED else call.at(given)
    return None if here is None else follower.define(here)


def called_as(parameter: Parameter, follower: Follower) -> str:
    """The name by which the function is called: that of its class, where it makes one."""
    if parameter.function.name.value == "__init__":
        owner = follower.class_of(parameter.path, parameter.tree, parameter.function)
        if owner is not None:
            return owner.name
    return parameter.function.name.value


_OMITTED = cst.Name("omitted")


def argument(call: cst.Call, parameter: Parameter) -> cst.BaseExpression | None:
    """What a call gives for a parameter, `_OMITTED` where it gives nothing; None where that can't be seen."""
    if any(each.star for each in call.args):
        return None
    named = next((each.value for each in call.args if _keyword(each) == parameter.name), None)
    if named is not None:
        return named
    names = [each.name.value for each in (*parameter.function.params.posonly_params, *parameter.function.params.params)]
    if names[:1] in (["self"], ["cls"]):
        names = names[1:]
    if parameter.name not in names:
        return _OMITTED
    positional = [each.value for each in call.args if each.keyword is None]
    place = names.index(parameter.name)
    return positional[place] if place < len(positional) else _OMITTED


def _keyword(argument: cst.Arg) -> str | None:
    return argument.keyword.value if argument.keyword is not None else None
