"""The edit of a training loop that has each batch copied to the device while the one before it is computed: source text
and a line in, `ChangeText` or nothing out. Pure.

`for images, labels in loader:` becomes `for images, labels in copied_ahead(loader, device):`, and the function is
defined above. Nothing is edited where the loop leaves a part of its batch on the CPU.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from bottleneck_doctor.edits.diff import ChangeText
from bottleneck_doctor.edits.loader_target import makes_loader
from bottleneck_doctor.edits.module_level import defined_above
from bottleneck_doctor.edits.tree import SourceTree, code, constant, dotted, put

NAME = "copied_ahead"


def copied_ahead_change(source: str, line: int) -> ChangeText | None:
    """Let the loop around `line`, which calls the model, go through batches that are copied ahead. None where it is not
    written so that this is certain."""
    tree = SourceTree.parse(source)
    loop = None if tree is None else _loop(tree, line)
    if tree is None or loop is None or tree.torch_name is None or tree.says(NAME):
        return None
    found = _batches(tree, loop)
    if found is None:
        return None
    loader, names = found
    device = _device(tree, loop, names)
    if device is None:
        return None
    call = cst.Call(cst.Name(NAME), [cst.Arg(loader), cst.Arg(cst.parse_expression(device))])
    return defined_above(tree, loop, _function(tree), {loader: put(call)})


def _loop(tree: SourceTree, line: int) -> cst.For | None:
    """The innermost loop around a line, if it is a plain `for`."""
    statement = tree.innermost(line)
    loop = None if statement is None else tree.loop(statement)
    return loop if isinstance(loop, cst.For) and loop.asynchronous is None else None


def _batches(tree: SourceTree, loop: cst.For) -> tuple[cst.Name, list[str]] | None:
    """The loader that a loop goes through, and the names of what a batch consists of."""
    loader: cst.BaseExpression = loop.iter
    target: cst.BaseExpression = loop.target
    if isinstance(loader, cst.Call):
        counted = dotted(loader.func) == "enumerate" and loader.args and not loader.args[0].star
        if not counted or not isinstance(target, cst.Tuple) or len(target.elements) != 2:
            return None
        if not isinstance(target.elements[1], cst.Element):
            return None
        loader, target = loader.args[0].value, target.elements[1].value
    if not isinstance(loader, cst.Name) or not _is_loader(tree, loader.value):
        return None
    parts = [target] if isinstance(target, cst.Name) else []
    if isinstance(target, (cst.Tuple, cst.List)):
        plain = [each for each in target.elements if isinstance(each, cst.Element)]
        parts = [each.value for each in plain if isinstance(each.value, cst.Name)]
        if len(parts) < len(target.elements):
            return None
    names = [each.value for each in parts if each.value != "_"]
    return (loader, names) if names else None


def _is_loader(tree: SourceTree, name: str) -> bool:
    if "load" in name.lower():
        return True
    made = [each for each in tree.nodes(cst.Assign) if isinstance(each.value, cst.Call)]
    return any(
        code(each.targets[0].target) == name and isinstance(each.value, cst.Call) and makes_loader(tree, each.value)
        for each in made
    )


def _device(tree: SourceTree, loop: cst.For, names: Sequence[str]) -> str | None:
    """Where a loop moves all parts of its batch, as it writes that; None if it leaves one where it is, or moves them to
    what is known only within the loop."""
    moved: dict[str, str] = {}
    for call in tree.nodes(cst.Call, within=loop.body):
        if not isinstance(call.func, cst.Attribute) or not isinstance(call.func.value, cst.Name):
            continue
        device = _moved_to(call, tree)
        if device is not None:
            moved.setdefault(call.func.value.value, device)
    devices = {moved.get(name, "") for name in names}
    device = devices.pop()
    if devices or not device:
        return None
    root = device.split(".")[0]
    made = {each.value for each in tree.nodes(cst.Name, within=loop.target)}
    made |= {code(each.target) for each in tree.nodes(cst.AssignTarget, within=loop.body)}
    return None if root in made else device


def _moved_to(call: cst.Call, tree: SourceTree) -> str | None:
    """The device of `images.to(device)` or `images.cuda()`, as an expression; None for another call."""
    assert isinstance(call.func, cst.Attribute)
    method, first = call.func.attr.value, call.args[0] if call.args else None
    plain = first is not None and first.star == "" and (first.keyword is None or first.keyword.value == "device")
    if method == "cuda":
        return f"{tree.quote}cuda{tree.quote}" if not plain else None
    if method != "to" or first is None or not plain:
        return None
    literal = constant(first.value)
    if literal is not None:
        return code(first.value) if isinstance(literal[0], str) else None
    name = dotted(first.value)
    # `images.to(torch.float16)` moves nothing.
    return name if name and name.split(".")[0] != tree.torch_name else None


def _function(tree: SourceTree) -> list[str]:
    indent, quote, torch = tree.module.default_indent, tree.quote, tree.torch_name
    body = [
        "# Needs `pin_memory=True` in the loader.",
        f"if {torch}.device(device).type != {quote}cuda{quote}:",
        "\tyield from batches",
        "\treturn",
        f"training, copying = {torch}.cuda.current_stream(), {torch}.cuda.Stream(device)",
        "",
        "def copied(part):",
        f"\tif isinstance(part, {torch}.Tensor):",
        "\t\tcopy = part.to(device, non_blocking=True)",
        "\t\tcopy.record_stream(training)",
        "\t\treturn copy",
        "\tif isinstance(part, dict):",
        "\t\treturn {name: copied(each) for name, each in part.items()}",
        "\treturn [copied(each) for each in part] if isinstance(part, (list, tuple)) else part",
        "",
        "ahead = []",
        "for batch in batches:",
        "\ttraining.wait_stream(copying)",
        f"\twith {torch}.cuda.stream(copying):",
        "\t\tahead.append(copied(batch))",
        "\tif len(ahead) > 1:",
        "\t\tyield ahead.pop(0)",
        "training.wait_stream(copying)",
        "yield from ahead",
    ]
    lines = [(indent + each.replace("\t", indent)) if each else "" for each in body]
    return [f"def {NAME}(batches, device):", *lines, "", ""]
