"""What a program asks of a loader's dataset by its name, as in `loader.dataset.classes`, and how a class that takes the
dataset's place answers. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import libcst as cst

from bottleneck_doctor.edits.diff import ChangeText
from bottleneck_doctor.edits.module_level import defined_above
from bottleneck_doctor.edits.tree import Edit, SourceTree, last_name

_OPTIONS = frozenset({"args", "opt", "opts", "options", "flags", "FLAGS", "cfg", "conf", "config", "hparams", "params"})
"""What people call the options of a program, which may have one that is called `dataset`."""
_READING = frozenset({"copy", "count", "get", "index", "items", "keys", "numpy", "size", "tolist", "values"})
"""Methods of containers and tensors that change nothing."""
_GIVEN = "    def __init__(self, dataset):"


def asked_of_dataset(tree: SourceTree, own: Collection[str]) -> list[str] | None:
    """The attributes that are asked of a loader's dataset, in the order of the text. None where another dataset can't
    answer for it: something is set or called there, or the attribute is one of the other dataset's `own`."""
    asked = [each for each in tree.nodes(cst.Attribute) if _is_a_loaders(tree, each.value)]
    names = [each.attr.value for each in asked]
    if not all(_is_read(tree, each) for each in asked) or any(each in own or each.startswith("_") for each in names):
        return None
    return list(dict.fromkeys(names))


def in_its_place(
    tree: SourceTree,
    call: cst.Call,
    lines: Sequence[str],
    asked: Collection[str],
    edits: Mapping[cst.CSTNode, Edit],
) -> ChangeText | None:
    """The `edits` that put a class in the place of the dataset that `call` is given, and that class: its `lines`, whose
    `__init__` is given `dataset`, and what answers for what is `asked`. None where what comes out is no program."""
    indent = tree.module.default_indent
    definition = [each.replace("    ", indent) for each in _with_answers(lines, asked)]
    return defined_above(tree, call, definition, edits)


def _with_answers(lines: Sequence[str], names: Collection[str]) -> list[str]:
    """The lines of a class, and of properties by these names. Each asks the dataset when it is asked itself, so a name
    that only another loader's dataset has does no harm."""
    kept = ["        self.dataset = dataset"] if names else []
    begun = lines.index(_GIVEN) + 1
    properties = [
        line
        for name in names
        for line in ("", "    @property", f"    def {name}(self):", f"        return self.dataset.{name}")
    ]
    return [*lines[:begun], *kept, *lines[begun:], *properties, "", ""]


def bases_around(tree: SourceTree, node: cst.CSTNode) -> list[str] | None:
    """What the class inherits from in which a node stands; None where it stands in none."""
    around = next((each for each in tree.around(node) if isinstance(each, cst.ClassDef)), None)
    return None if around is None else [last_name(each.value) for each in around.bases]


def _is_a_loaders(tree: SourceTree, node: cst.BaseExpression) -> bool:
    """Whether this may be the dataset of a loader. What has one may be: options are none, and neither is `self` in a
    class that inherits from no class of loaders."""
    if not isinstance(node, cst.Attribute) or node.attr.value != "dataset" or last_name(node.value) in _OPTIONS:
        return False
    bases = bases_around(tree, node)
    if bases is None or not (isinstance(node.value, cst.Name) and node.value.value == "self"):
        return True
    return any(each.endswith("Loader") for each in bases)


def _is_read(tree: SourceTree, asked: cst.Attribute) -> bool:
    """Whether an attribute, and what is asked of it in turn, is only read."""
    outer: cst.CSTNode = asked
    for parent in tree.around(asked):
        if isinstance(parent, (cst.Attribute, cst.Subscript)) and parent.value is outer:
            outer = parent
        elif isinstance(parent, cst.Call) and parent.func is outer:
            return outer is not asked and last_name(outer) in _READING
        else:
            break
    return tree.is_loaded(outer)
