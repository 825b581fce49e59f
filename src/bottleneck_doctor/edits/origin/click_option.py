"""click, typer and fire: a parameter of the function that they call is an option of the program."""

from __future__ import annotations

import libcst as cst

from bottleneck_doctor.edits.origin.definition import Definition, Expression
from bottleneck_doctor.edits.origin.follower import Follower, Parameter
from bottleneck_doctor.edits.origin.options import Option, default_argument, replaced_by, spelled
from bottleneck_doctor.edits.tree import constant, dotted, last_name


def of_parameter(parameter: Parameter, follower: Follower) -> Definition | None:
    for decorator in parameter.function.decorators:
        call = decorator.decorator
        if isinstance(call, cst.Call) and last_name(call.func) == "option":
            names = spelled(call)
            if _stored_as(names) == parameter.name:
                return _option(parameter, call, tuple(each for each in names if each.startswith("-")))
    if _is_typer(parameter):
        return _typer(parameter)
    return _fire(parameter) if _is_run_by(parameter, ("fire.Fire", "Fire")) else None


def _option(parameter: Parameter, call: cst.Call, words: tuple[str, ...]) -> Option | None:
    """click's own, where it takes one value, or is a switch."""
    named = {each.keyword.value: each.value for each in call.args if each.keyword is not None}
    if "multiple" in named or "nargs" in named or "callback" in named:
        return None
    at = Expression(parameter.path, parameter.tree, call)
    pairs = [each.partition("/") for each in words]
    is_flag = any(sign for _, sign, _ in pairs) or constant(named.get("is_flag", cst.Name("False"))) == (True,)
    return Option(
        path=parameter.path,
        line=at.line,
        names=tuple(on.strip() for on, _, _ in pairs),
        default=at.at(named["default"]) if "default" in named else None,
        with_default=default_argument(at),
        off_names=tuple(off.strip() for _, _, off in pairs if off),
        takes="switch" if is_flag else "value",
        otherwise=(False,) if is_flag else (None,),
    )


def _typer(parameter: Parameter) -> Option | None:
    """typer's: the parameter's default, or that of the `typer.Option(...)` which stands there."""
    default = parameter.default
    if default is None:
        return None
    call = default.node if isinstance(default.node, cst.Call) and last_name(default.node.func) == "Option" else None
    words: tuple[str, ...] = ()
    if call is not None:
        if not call.args or call.args[0].star or call.args[0].keyword is not None:
            return None
        value = call.args[0].value
        words = tuple(each for each in spelled(call)[1 if constant(value) == spelled(call)[:1] else 0 :])
        default = default.at(value)
    return _plain(parameter, default, words)


def _fire(parameter: Parameter) -> Option | None:
    return None if parameter.default is None else _plain(parameter, parameter.default, (f"--{parameter.name}",))


def _plain(parameter: Parameter, default: Expression, words: tuple[str, ...]) -> Option:
    name = parameter.name.replace("_", "-")
    pairs = [each.partition("/") for each in words or (f"--{name}",)]
    is_flag = isinstance(value := constant(default.node), tuple) and isinstance(value[0], bool)
    off = tuple(each for _, _, each in pairs if each) or ((f"--no-{name}",) if is_flag and not words else ())
    return Option(
        path=parameter.path,
        line=default.line,
        names=tuple(on for on, _, _ in pairs),
        default=default,
        with_default=replaced_by(default),
        off_names=off,
        takes="switch" if is_flag else "value",
    )


def _is_typer(parameter: Parameter) -> bool:
    decorated = any(
        isinstance(each.decorator, cst.Call) and last_name(each.decorator.func) in ("command", "callback")
        for each in parameter.function.decorators
    )
    imports = any(dotted(alias.name) == "typer" for node in parameter.tree.nodes(cst.Import) for alias in node.names)
    return imports and (decorated or _is_run_by(parameter, ("typer.run",)))


def _is_run_by(parameter: Parameter, runners: tuple[str, ...]) -> bool:
    """Whether the file hands the function to one of these."""
    return any(
        dotted(call.func) in runners and (not call.args or dotted(call.args[0].value) == parameter.function.name.value)
        for call in parameter.tree.nodes(cst.Call)
    )


def _stored_as(words: tuple[str, ...]) -> str:
    """The parameter that an option becomes, as click has it."""
    plain = [each for each in words if not each.startswith("-")]
    if plain:
        return plain[0]
    first = max(words, key=lambda word: len(word) - len(word.lstrip("-")), default="")
    return first.partition("/")[0].strip().lstrip("-").replace("-", "_").lower()
