"""Hydra: the config that `@hydra.main(config_path=..., config_name=...)` gives to a function."""

from __future__ import annotations

import os
from dataclasses import dataclass

import libcst as cst
import yaml

from bottleneck_doctor.edits.origin.definition import Absent, Command, Definition, Key, Origin
from bottleneck_doctor.edits.origin.document import MISSING, Document, node_at
from bottleneck_doctor.edits.origin.follower import Follower, Parameter
from bottleneck_doctor.edits.tree import constant, dotted


@dataclass(frozen=True)
class Composed(Definition):
    """A part of what Hydra composes: the primary config's own keys, and those of the files in its list of defaults."""

    folder: str
    name: str
    keys: tuple[Key, ...] = ()

    @property
    def path(self) -> str:
        name = self.name if self.name.endswith((".yaml", ".yml")) else f"{self.name}.yaml"
        return os.path.join(self.folder, name)

    def member(self, key: Key, follower: Follower) -> Definition | None:
        inner = Composed(self.folder, self.name, (*self.keys, key))
        node = node_at(follower.project.text(self.path), inner.keys)
        if node is None:
            return None
        return Absent() if node is MISSING and inner._in_groups(follower) is False else inner

    def origin(self, follower: Follower) -> Origin | None:
        """The key in the primary config, where no other file has it too; else nothing but the command line."""
        own = Document(self.path, self.keys, overridden=True).origin(follower)
        elsewhere = self._in_groups(follower)
        if own is not None and elsewhere is False:
            return own
        name = ".".join(map(str, self.keys))
        given = follower.command_line.override(name)
        if elsewhere is None and given is None:
            return None
        command = Command(given or "", lambda value: f"{name}={_said(value)}")
        return Origin(self.path, 1, f"`{name}`", lambda value: None, command=command)

    def _in_groups(self, follower: Follower) -> bool | None:
        """Whether a file of the list of defaults has the key; None where that can't be seen."""
        answer: bool | None = False
        for group, option in self._defaults(follower):
            if option is None:
                answer = None
                continue
            parts = [each for each in group.split("/") if each]
            inner = list(self.keys)[len(parts) :] if list(self.keys)[: len(parts)] == parts else None
            if inner is None:
                continue
            text = follower.project.text(os.path.join(self.folder, *parts, f"{option}.yaml"))
            node = node_at(text, inner)
            if node is None:
                answer = None
            elif node is not MISSING:
                return True
        return answer

    def _defaults(self, follower: Follower) -> list[tuple[str, str | None]]:
        """The groups of the list of defaults with what is chosen of each, which the command line may choose anew."""
        listed = node_at(follower.project.text(self.path), ("defaults",))
        found: list[tuple[str, str | None]] = []
        for each in listed.value if isinstance(listed, yaml.SequenceNode) else ():
            if isinstance(each, yaml.ScalarNode):
                if each.value != "_self_":
                    found.append(("", each.value))
            elif isinstance(each, yaml.MappingNode):
                for group, option in each.value:
                    name = str(group.value).removeprefix("override ").removeprefix("optional ").lstrip("/")
                    if "@" in name or not isinstance(option, yaml.ScalarNode):
                        found.append((name, None))
                        continue
                    chosen = follower.command_line.override(name)
                    found.append((name, chosen.partition("=")[2] if chosen else str(option.value)))
        return found


def of_parameter(parameter: Parameter, follower: Follower) -> Definition | None:
    first = [*parameter.function.params.posonly_params, *parameter.function.params.params][:1]
    if first != [parameter.param]:
        return None
    for decorator in parameter.function.decorators:
        call = decorator.decorator
        if isinstance(call, cst.Call) and dotted(call.func) == "hydra.main":
            given = {each.keyword.value: constant(each.value) for each in call.args if each.keyword is not None}
            folder, name = given.get("config_path"), given.get("config_name")
            chosen = follower.command_line.option(("--config-name", "-cn"))
            config = chosen.value if chosen is not None else None if name is None else name[0]
            if folder is None or not isinstance(folder[0], str) or not isinstance(config, str):
                return None
            return Composed(os.path.normpath(os.path.join(os.path.dirname(parameter.path), folder[0])), config)
    return None


def _said(value: object) -> str:
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)
