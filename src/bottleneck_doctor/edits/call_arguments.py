"""What has to be done for a call to get arguments: in the call itself, or where it takes their values from. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import libcst as cst

from bottleneck_doctor.edits import arguments, own_options
from bottleneck_doctor.edits.drafts import Drafts
from bottleneck_doctor.edits.elsewhere import Elsewhere, reaches
from bottleneck_doctor.edits.loader_target import POSITIONS, Target
from bottleneck_doctor.edits.origin.definition import Absent, Expression
from bottleneck_doctor.edits.origin.follower import Follower
from bottleneck_doctor.edits.origin.mapping import Entries
from bottleneck_doctor.edits.tree import Edit, code, constant, has_comment, put, said, written
from bottleneck_doctor.wording import words

HERE = "Set {wanted} in this call."


class Refused(Exception):
    """Why an argument can't be set safely; `{wanted}` stands for all that was to be set."""


@dataclass
class Plan:
    """What is to be done. Keys of `replaced` and `unpacked` are places among the call's arguments."""

    replaced: dict[int, object] = field(default_factory=dict)
    unpacked: dict[int, dict[str, object]] = field(default_factory=dict)
    """Values that win over those of a dict that is unpacked."""
    added: dict[str, object] = field(default_factory=dict)
    within: dict[str, object] = field(default_factory=dict)
    """Entries of the dict that the call has as one argument."""
    left_out: dict[str, object] = field(default_factory=dict)
    """Entries that it is not to have, with what is as good as none."""
    gone: list[tuple[Expression, str]] = field(default_factory=list)
    """Arguments and entries that are taken out, each with the call or the dict that has it."""
    elsewhere: dict[str, Elsewhere] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def planned(target: Target, follower: Follower, wanted: Mapping[str, object], without: Mapping[str, object]) -> Plan:
    """How the call comes to say `wanted`, and nothing of `without`, whose values are as good as nothing. Raises
    `Refused`."""
    plan = Plan()
    for name, value in wanted.items():
        _set(target, follower, plan, name, value)
    for name, nothing in without.items():
        _take_out(target, follower, plan, name, nothing)
    for place, values in plan.unpacked.items():
        unpacked, names = said(target.call.args[place].value), words.listed(list(values))
        plan.notes.append(f"`**{unpacked}` may hold {names}: what is written behind it wins.")
    return plan


def written_into(drafts: Drafts, target: Target, plan: Plan) -> bool | None:
    """Write what the plan does in the call, and take out what it takes out. Returns whether that changes anything, and
    None, with nothing written, where it makes no program."""
    edits: dict[str, dict[cst.CSTNode, Edit]] = {}
    trees = {target.at.path: target.at.tree}
    if plan.replaced or plan.unpacked or plan.added or plan.within:
        edits[target.at.path] = {target.call: lambda call: _with_arguments(target, plan, call)}
    for at, name in plan.gone:
        trees[at.path] = at.tree
        here = edits.setdefault(at.path, {})
        here[at.node] = _also_without(name, here.get(at.node))
    texts = {path: trees[path].edited(each) for path, each in edits.items()}
    if None in texts.values():
        return None
    for path, text in texts.items():
        assert text is not None
        drafts.write(path, text)
    return bool(texts)


def say(wanted: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={written(value, chr(34))}" for name, value in wanted.items())


# -- one argument ------------------------------------------------------------------------------------------------------


def _set(target: Target, follower: Follower, plan: Plan, name: str, value: object) -> None:
    called = target.called(name)
    if target.own is not None and name not in target.own.names:
        raise Refused(target.own.otherwise.replace("{name}", name))
    if target.within:
        plan.within[called] = value
        return
    if target.members is not None:
        _in_members(target, follower, plan, name, called, value)
        return
    place = _place(target, called)
    if place is not None:
        _in_place(target, follower, plan, name, place, value)
        return
    for number, argument in enumerate(target.call.args):
        if argument.star == "**" and _in_unpacked(target, follower, plan, name, called, number, value):
            return
    beneath = None if target.beneath is None else _named_in(target.beneath, called)
    origin = None if beneath is None else follower.origin(beneath)
    if origin is not None:
        at = target.at.at(target.call.func)
        if _from(plan, follower, Elsewhere(name, value, at, f"{said(target.call.func)}(...)", origin)):
            return
    # What the call gives wins over what a partial has.
    plan.added[called] = value


def _place(target: Target, called: str) -> int | None:
    """Where the call gives the argument; None where it does not. Raises `Refused` where that can't be seen."""
    args = target.call.args
    for number, each in enumerate(args):
        if each.keyword is not None and each.keyword.value == called:
            return number
    if target.own is not None:
        return None
    order = POSITIONS.index(called) if called in POSITIONS else len(POSITIONS)
    positional = [number for number, each in enumerate(args) if each.keyword is None and each.star != "**"]
    # A partial gives the first of them, and the call those that follow.
    rank = order - (0 if target.beneath is None else _positional(target.beneath) - 1)
    starred = next((at for at, number in enumerate(positional) if args[number].star), None)
    if starred is not None and starred <= rank and order < len(POSITIONS):
        spelled = _escaped(said(args[positional[starred]].value))
        raise Refused(f"`*{spelled}` may hold {called}; set {{wanted}} where it is made.")
    if rank < len(positional) and (rank < 0 or not target.knows_positions):
        raise Refused(HERE)
    return positional[rank] if rank < len(positional) else None


def _positional(at: Expression) -> int:
    assert isinstance(at.node, cst.Call)
    return sum(each.keyword is None for each in at.node.args)


def _in_place(target: Target, follower: Follower, plan: Plan, name: str, place: int, value: object) -> None:
    """The value that the call gives, or what stands for it."""
    present = target.call.args[place].value
    tree = target.at.tree
    now = constant(present)
    if now is not None and _same(now[0], value):
        return
    at = target.at.at(present)
    origin = None if now is not None else follower.origin(at)
    alone = [code(each.value) for each in target.call.args].count(code(present)) == 1
    if now is None and _same(follower.running.own.get(name), value):
        return
    if origin is not None and alone and _from(plan, follower, Elsewhere(name, value, at, said(present), origin)):
        return
    if has_comment(present):
        raise Refused(HERE)
    plan.replaced[place] = value
    if now is None:
        quoted = written(value, tree.quote)
        note = f"`{said(present)}` sets {name} now. If it is an option of your program, set it to {quoted} there."
        option = own_options.of_value(present, follower)
        plan.notes.append(f"{note} {option}".rstrip())


def _in_members(target: Target, follower: Follower, plan: Plan, name: str, called: str, value: object) -> None:
    assert target.members is not None
    part = follower.member(target.members, called)
    origin = None if part is None else part.origin(follower)
    if origin is None or not _from(plan, follower, Elsewhere(name, value, target.at, called, origin)):
        raise Refused(f"Set {called}={written(value, target.at.tree.quote)} where the trainer's arguments are made.")


def _in_unpacked(
    target: Target, follower: Follower, plan: Plan, name: str, called: str, place: int, value: object
) -> bool:
    """Whether a dict that is unpacked has the argument, or may have it: then it is set there, or wins over it."""
    unpacked = target.call.args[place].value
    part = follower.part(target.at.at(unpacked), called)
    if isinstance(part, Absent):
        return False
    origin = None if part is None else part.origin(follower)
    at = target.at.at(unpacked)
    if origin is not None and _from(plan, follower, Elsewhere(name, value, at, f"**{said(unpacked)}", origin)):
        return True
    plan.unpacked.setdefault(place, {})[called] = value
    return True


def _from(plan: Plan, follower: Follower, there: Elsewhere) -> bool:
    """Whether a value can be given where it is written; it is planned there unless it is the right one already."""
    if not follower.running.may_come_from(there.origin, there.name):
        return False
    if not reaches(there.origin, there.value) or any(there.clashes(other) for other in plan.elsewhere.values()):
        return False
    if not there.is_there:
        plan.elsewhere[there.name] = there
    return True


def _named_in(at: Expression, called: str) -> Expression | None:
    assert isinstance(at.node, cst.Call)
    return next((at.at(each.value) for each in at.node.args if arguments.name_of(each) == called), None)


def _take_out(target: Target, follower: Follower, plan: Plan, name: str, nothing: object) -> None:
    """Leave an argument out. Where a dict that is unpacked may have it, `nothing` wins over that."""
    called = target.called(name)
    if target.within:
        plan.left_out[called] = nothing
        return
    if target.members is not None or (target.own is not None and name not in target.own.names):
        return
    holders = [target.at, *([target.beneath] if target.beneath is not None else [])]
    plan.gone += [(holder, called) for holder in holders if _named_in(holder, called) is not None]
    known = follower.running.own
    for place, each in enumerate(target.call.args):
        if each.star != "**":
            continue
        part = follower.part(target.at.at(each.value), called)
        if isinstance(part, Absent):
            continue
        whole = follower.defined(target.at.at(each.value))
        if part is not None and isinstance(whole, Entries) and whole.own(called) is not None:
            plan.gone.append((whole.at, called))
        elif name not in known or known[name] != nothing:
            plan.unpacked.setdefault(place, {})[called] = nothing


def _same(one: object, other: object) -> bool:
    return type(one) is type(other) and one == other


def _escaped(code: str) -> str:
    return code.replace("{", "{{").replace("}", "}}")


# -- in the text -------------------------------------------------------------------------------------------------------


def _with_arguments(target: Target, plan: Plan, call: cst.CSTNode) -> cst.Call:
    assert isinstance(call, cst.Call)
    tree = target.at.tree
    args = list(call.args)
    for place, value in plan.replaced.items():
        new = put(tree.literal(value))(args[place].value)
        args[place] = args[place].with_changes(value=new)
    for place, values in plan.unpacked.items():
        display = arguments.with_behind(tree, args[place].value, values, target.call)
        args[place] = args[place].with_changes(value=display)
    added = dict(plan.added)
    if plan.within:
        holding = [number for number, each in enumerate(args) if arguments.name_of(each) == target.within]
        for number in holding:
            args[number] = args[number].with_changes(value=_with_entries(target, plan, target.call.args[number].value))
        if not holding:
            added[target.within] = _new_entries(target, plan)
    made = arguments.with_more(tree, call.with_changes(args=args), added, place=target.call)
    return cst.ensure_type(made, cst.Call)


def _with_entries(target: Target, plan: Plan, value: cst.BaseExpression) -> cst.BaseExpression:
    """A dict with more entries, or the display that has them behind what stands for a dict."""
    tree = target.at.tree
    if isinstance(value, cst.Dict):
        rest = arguments.without(value, [*plan.within, *plan.left_out])
        return cst.ensure_type(arguments.with_more(tree, rest, plan.within, place=value), cst.Dict)
    if constant(value) == (None,):
        return _new_entries(target, plan)
    # What was seen to hold nothing may have been None, which can't be unpacked.
    given = value if target.holds else cst.parse_expression(f"({code(value)} or {{}})")
    return arguments.with_behind(tree, given, {**plan.left_out, **plan.within}, target.call)


def _new_entries(target: Target, plan: Plan) -> cst.BaseExpression:
    """A dict in place of what the library makes of none, with what that holds."""
    kept = {name: value for name, value in target.holds.items() if name not in plan.left_out}
    return arguments.with_more(target.at.tree, cst.Dict([]), {**kept, **plan.within}, place=target.call)


def _also_without(name: str, before: Edit | None) -> Edit:
    def edit(holder: cst.CSTNode) -> cst.CSTNode:
        made = holder if before is None else before(holder)
        assert isinstance(made, (cst.Call, cst.Dict))
        return arguments.without(made, [name])

    return edit
