"""The user's own `with torch.autocast(...)` around the forward pass, switched on where it is off. Another `with` around
it would change nothing: the inner one decides."""

from __future__ import annotations

import libcst as cst

from bottleneck_doctor.edits.diff import ChangeText, as_change
from bottleneck_doctor.edits.drafts import Drafts, Told
from bottleneck_doctor.edits.loader_call import set_in
from bottleneck_doctor.edits.loader_target import Target
from bottleneck_doctor.edits.origin.definition import Expression
from bottleneck_doctor.edits.origin.follower import Follower, whole_name
from bottleneck_doctor.edits.origin.running import Running
from bottleneck_doctor.edits.tree import SCOPES, SourceTree, constant, dotted, last_name

ON = "enabled"
OF_DEVICE = {"torch.cuda.amp.autocast": "cuda", "torch.cpu.amp.autocast": "cpu"}
USUAL = {"cpu": "bfloat16", "cuda": "float16"}
"""The type where the call names none. That of torch; another default may be set by `torch.set_autocast_dtype`."""


def set_region(
    drafts: Drafts, file: str, line: int, device: str, dtype: str, running: Running | None = None
) -> list[Told] | None:
    """Switch on the autocast that `line`, a line of the forward pass, lies in; None where it lies in none.

    `line` is that of the file as it is; `device` a device type such as `cpu`, `dtype` `bfloat16` or `float16`. Where
    the edit can't be made safely, the note says what to do.
    """
    text = drafts.text(file)
    tree = None if text is None else SourceTree.parse(text)
    call = None if tree is None else _around(tree, drafts.line(file, line), device)
    if tree is None or call is None:
        return None
    here = tree.lines(call)[0]
    by_hand = Told(
        file, here, f"This autocast is off where the model is called: switch it on, with `dtype=torch.{dtype}`."
    )
    switch = _named(call, ON)
    if switch is None or _dtype(call, device) != dtype:
        return [by_hand]
    # One value switches the scaler of the loss as well, without which float16 loses small gradients.
    if dtype == "float16" and (constant(switch) is not None or not tree.says("GradScaler")):
        return [by_hand]

    def found(follower: Follower) -> Target | None:
        tree = follower.tree(file)
        call = None if tree is None else _around(tree, drafts.line(file, line), device)
        return None if tree is None or call is None else Target(Expression(file, tree, call), call)

    return set_in(drafts, found, lambda: Follower(drafts, running), {ON: True}, {}) or [by_hand]


def moved_region(source: str, line: int, dtype: str) -> ChangeText | None:
    """An autocast of CUDA's that `line`, a line of the forward pass, lies in, made one of the CPU, where the first does
    nothing; None where the line lies in none, or something else switches it."""
    tree = SourceTree.parse(source)
    call = None if tree is None else _around(tree, line, "cuda", surely=True)
    if tree is None or call is None or tree.torch_name is None or dtype != "bfloat16":
        return None
    of_cuda = whole_name(tree, dotted(call.func)) in OF_DEVICE
    others = call.args if of_cuda or call.args[0].keyword is not None else call.args[1:]
    if any(each.keyword is None or each.keyword.value not in ("dtype", "device_type") for each in others):
        return None
    made = f"{tree.torch_name}.autocast({tree.quote}cpu{tree.quote}, dtype={tree.torch_name}.{dtype})"
    edited = tree.edited({call: lambda _: cst.parse_expression(made)})
    note = "The autocast that stood here is one of CUDA, and does nothing on a CPU. On a GPU, put it back."
    return None if edited is None else as_change(tree.source, edited, tree.lines(call)[0], note)


def _around(tree: SourceTree, line: int, device: str, *, surely: bool = False) -> cst.Call | None:
    """The call of the innermost autocast of this device that a line of a function lies in. `surely`: only one that says
    of which device it is."""
    inner = tree.innermost(line)
    for each in () if inner is None else (inner, *tree.around(inner)):
        if isinstance(each, SCOPES):
            return None
        for item in each.items if isinstance(each, cst.With) else ():
            call = item.item
            if isinstance(call, cst.Call) and last_name(call.func) == "autocast":
                of = _device(tree, call)
                if of == device or (of is None and not surely):
                    return call
    return None


def _device(tree: SourceTree, call: cst.Call) -> str | None:
    """Of which device an autocast is; None where it does not say."""
    of = OF_DEVICE.get(whole_name(tree, dotted(call.func)))
    if of is not None:
        return of
    first = call.args[0].value if call.args and call.args[0].keyword is None else _named(call, "device_type")
    known = None if first is None else constant(first)
    return None if known is None else str(known[0])


def _dtype(call: cst.Call, device: str) -> str:
    """The type that it computes in; "" where it is not told."""
    given = _named(call, "dtype")
    if given is not None:
        return last_name(given)
    # A second argument by its place is the type, except in `torch.cuda.amp.autocast(enabled)`.
    places = [each for each in call.args if each.keyword is None]
    return USUAL.get(device, "") if len(places) < 2 else last_name(places[1].value)


def _named(call: cst.Call, name: str) -> cst.BaseExpression | None:
    return next((each.value for each in call.args if each.keyword is not None and each.keyword.value == name), None)
