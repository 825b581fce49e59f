"""Dicts, and what is made of one and read by attributes: `dict(...)`, `SimpleNamespace(...)`, `EasyDict({...})`."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from bottleneck_doctor.edits.origin.definition import Absent, Definition, Expression, Key
from bottleneck_doctor.edits.origin.follower import Follower
from bottleneck_doctor.edits.tree import constant, dotted, last_name

MAKERS = frozenset(
    {"dict", "SimpleNamespace", "Namespace", "EasyDict", "edict", "AttrDict", "Box", "Munch", "ConfigDict", "DotDict"}
)
"""Names of what holds what it is made with."""
ONLY_GIVES_ON = frozenset(
    {"OmegaConf.create", "copy.deepcopy", "deepcopy", "copy.copy", "vars", "OmegaConf.to_container"}
)


@dataclass(frozen=True)
class Entries(Definition):
    """The display of a dict."""

    at: Expression
    node: cst.Dict

    def member(self, key: Key, follower: Follower) -> Definition | None:
        found: Definition | None = Absent()
        for element in self.node.elements:
            if isinstance(element, cst.StarredDictElement):
                whole = follower.define(self.at.at(element.value))
                part = None if whole is None else whole.member(key, follower)
                found = found if isinstance(part, Absent) else part
            elif isinstance(element, cst.DictElement) and constant(element.key) == (key,):
                found = follower.define(self.at.at(element.value))
        return found

    def own(self, key: str) -> cst.DictElement | None:
        """The entry that is written out here."""
        entries = [each for each in self.node.elements if isinstance(each, cst.DictElement)]
        return next((each for each in entries if constant(each.key) == (key,)), None)


@dataclass(frozen=True)
class Made(Definition):
    """What a call makes of names and values, and of a dict where it gets one."""

    at: Expression
    call: cst.Call

    def member(self, key: Key, follower: Follower) -> Definition | None:
        inner: Definition | None = Absent()
        for each in self.call.args:
            if each.keyword is not None:
                if each.keyword.value == key:
                    return follower.define(self.at.at(each.value))
            else:
                whole = follower.define(self.at.at(each.value))
                inner = None if whole is None else whole.member(key, follower)
        return inner


def of_call(at: Expression, call: cst.Call, follower: Follower) -> Definition | None:
    name = dotted(call.func)
    if name in ONLY_GIVES_ON and call.args and not call.args[0].star:
        return follower.define(at.at(call.args[0].value))
    if name in MAKERS or last_name(call.func) in MAKERS - {"dict"}:
        return Made(at, call)
    return None
