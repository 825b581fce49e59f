"""The edit that decodes pictures at a part of their size where they are opened: source text and lines in, `ChangeText`
or nothing out. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from bottleneck_doctor.edits import arguments
from bottleneck_doctor.edits.diff import ChangeText, as_change
from bottleneck_doctor.edits.loader_dataset import dataset_of
from bottleneck_doctor.edits.loader_target import loader_calls
from bottleneck_doctor.edits.module_level import defined_above
from bottleneck_doctor.edits.tree import Edit, SourceTree, constant, dotted, has_comment, last_name, put
from bottleneck_doctor.knobs import SmallerPictures

NAME = "decoded_smaller"
_WHOLE = {"IMREAD_COLOR": "COLOR", "IMREAD_GRAYSCALE": "GRAYSCALE"}
_NUMBERS = {1: "COLOR", 0: "GRAYSCALE"}
"""What OpenCV's flags decode, by name and by number."""


def reduced_pictures_change(source: str, calls: Sequence[tuple[str, int]], asked: SmallerPictures) -> ChangeText | None:
    """Decode the pictures that `calls` open at a part of their size: the last name of what is called (`open`, `imread`,
    `imdecode`), and its line. None where `source` has no such call there, or more than one, or where its flags are not
    written out."""
    tree = SourceTree.parse(source)
    if tree is None or tree.says(NAME) or not calls:
        return None
    edits: dict[cst.CSTNode, Edit] = {}
    opened: list[cst.Call] = []
    for name, line in dict.fromkeys(calls):
        there = [each for each in tree.calls_on(line) if _calls(each, name)]
        if len(there) != 1 or any(each.star for each in there[0].args):
            return None
        if name == "open":
            opened += there
            edits[there[0]] = _wrapped
        else:
            made = _flagged(tree, there[0], asked.factor)
            if made is None:
                return None
            edits |= made
    if opened:
        indent = tree.module.default_indent
        lines = [each.replace("    ", indent) for each in _definition(asked.side)]
        return defined_above(tree, opened[0], lines, edits)
    edited = tree.edited(edits)
    return None if edited is None else as_change(source, edited, min(line for _, line in calls), "")


def reduced_folder_change(source: str, line: int, side: int) -> ChangeText | None:
    """Let the `ImageFolder` of the loader made on `line` (any line of the call) open its pictures by a function that
    decodes them at a part of their size. None where it is not written so that this is certain."""
    tree = SourceTree.parse(source)
    calls = [] if tree is None else loader_calls(tree, line)
    given = dataset_of(calls[0]) if len(calls) == 1 else None
    if tree is None or given is None or tree.says(NAME):
        return None
    made = _assigned(tree, given) if isinstance(given, cst.Name) else given
    if not isinstance(made, cst.Call) or last_name(made.func) != "ImageFolder" or any(each.star for each in made.args):
        return None
    named = [each.keyword.value for each in made.args if each.keyword is not None]
    if "loader" in named or len(made.args) - len(named) > _BEFORE_LOADER:
        return None
    indent = tree.module.default_indent
    lines = [each.replace("    ", indent) for each in _opening(side)]
    more = {"loader": cst.Name(NAME)}
    return defined_above(
        tree,
        made,
        lines,
        {made: lambda node: arguments.with_more(tree, cst.ensure_type(node, cst.Call), more, place=made)},
    )


_BEFORE_LOADER = 3
"""Arguments of `ImageFolder` in front of its `loader`."""


def _assigned(tree: SourceTree, name: cst.Name) -> cst.BaseExpression | None:
    """What a name stands for that is assigned once in the whole file, in the same function."""
    made = [
        each
        for each in tree.nodes(cst.Assign)
        if any(target.value == name.value for goal in each.targets for target in tree.nodes(cst.Name, within=goal))
    ]
    if len(made) != 1 or len(made[0].targets) != 1 or not isinstance(made[0].targets[0].target, cst.Name):
        return None
    return made[0].value if tree.function(made[0]) is tree.function(name) else None


def _opening(side: int) -> list[str]:
    return [
        f"def {NAME}(path):",
        f'    """Open a picture. JPEG is decoded at a part of its size, with no side shorter than {side} pixels."""',
        "    from PIL import Image",
        "",
        "    with Image.open(path) as image:",
        f"        image.draft(image.mode, ({side}, {side}))",
        '        return image.convert("RGB")',
        "",
        "",
    ]


def _calls(call: cst.Call, name: str) -> bool:
    """Whether a function of a module is called by this name: Pillow's `open` is no other one."""
    library = dotted(call.func.value) if isinstance(call.func, cst.Attribute) else ""
    return last_name(call.func) == name and (library.split(".")[-1] == "Image" if name == "open" else bool(library))


def _wrapped(node: cst.CSTNode) -> cst.CSTNode:
    return cst.Call(cst.Name(NAME), [cst.Arg(cst.ensure_type(node, cst.Call))])


def _definition(side: int) -> list[str]:
    return [
        f"def {NAME}(image):",
        f'    """Let JPEG be decoded at a part of its size, with no side shorter than {side} pixels."""',
        f"    image.draft(image.mode, ({side}, {side}))",
        "    return image",
        "",
        "",
    ]


def _flagged(tree: SourceTree, call: cst.Call, factor: int) -> dict[cst.CSTNode, Edit] | None:
    """The edit that gives a call of OpenCV's the flag for a part of the size; None where its flags can't be seen."""
    positional = [each.value for each in call.args if each.keyword is None]
    named = {each.keyword.value: each.value for each in call.args if each.keyword is not None}
    present = positional[1] if len(positional) > 1 else named.get("flags")
    colours = "COLOR" if present is None else _WHOLE.get(last_name(present)) or _of_number(present)
    if colours is None or len(positional) > 2 or (present is not None and has_comment(present)):
        return None
    assert isinstance(call.func, cst.Attribute)
    flag = cst.parse_expression(f"{dotted(call.func.value)}.IMREAD_REDUCED_{colours}_{factor}")
    if present is not None:
        return {present: put(flag)}
    return {call: lambda node: arguments.with_more(tree, cst.ensure_type(node, cst.Call), {"flags": flag}, place=call)}


def _of_number(flags: cst.BaseExpression) -> str | None:
    value = constant(flags)
    return None if value is None or not isinstance(value[0], int) else _NUMBERS.get(value[0])
