"""The edit that keeps in memory what the transforms of a DataLoader's dataset get: source text and a line in,
`ChangeText` or nothing out. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from bottleneck_doctor.edits.diff import ChangeText
from bottleneck_doctor.edits.loader_dataset import asks_dataset, dataset_of, in_loop
from bottleneck_doctor.edits.loader_target import loader_calls
from bottleneck_doctor.edits.module_level import defined_above
from bottleneck_doctor.edits.tree import SourceTree, put
from bottleneck_doctor.knobs import HeldTransforms

NAME = "KeptInputs"
_DONE = "sample{place} = self.transform(sample{place})"
_GETTING = {
    "": ("return self.transform(self.inputs[index])",),
    "tuple": ("sample = list(self.inputs[index])", _DONE, "return tuple(sample)"),
    "list": ("sample = list(self.inputs[index])", _DONE, "return sample"),
    "dict": ("sample = dict(self.inputs[index])", _DONE, "return sample"),
}
"""How a sample is made of what is kept, by the kind of sample."""


def kept_inputs_change(source: str, line: int, held: HeldTransforms | None) -> ChangeText | None:
    """Let the loader made on `line` (any line of the call) have a dataset that keeps what the transforms of its own
    get. None where the call is not written so that this is certain."""
    tree = SourceTree.parse(source)
    calls = [] if tree is None else loader_calls(tree, line)
    getting = None if held is None else _GETTING.get(held.kind)
    if tree is None or held is None or getting is None or len(calls) != 1 or tree.says(NAME):
        return None
    call = calls[0]
    given = dataset_of(call)
    if given is None or in_loop(tree, call) or _of_the_caller(tree, call, given) or asks_dataset(tree):
        return None
    wrapped = cst.Call(cst.Name(NAME), [cst.Arg(given)])
    return defined_above(tree, call, _definition(tree, held, getting), {given: put(wrapped)})


def _of_the_caller(tree: SourceTree, call: cst.Call, given: cst.BaseExpression) -> bool:
    """Whether a function is given the dataset: it may make loaders of others, too, that hold their transforms
    elsewhere."""
    function = tree.function(call)
    if function is None:
        return False
    names = {each.value for each in tree.nodes(cst.Name, within=given)} - {"self"}
    return any(each.name.value in names for each in tree.nodes(cst.Param, within=function.params))


def _definition(tree: SourceTree, held: HeldTransforms, getting: Sequence[str]) -> list[str]:
    indent = tree.module.default_indent
    transform = f"dataset{held.owner}.{held.name}"
    return [
        f"class {NAME}:",
        f'{indent}"""A dataset that keeps in memory what its transforms get. They are done anew each time."""',
        "",
        f"{indent}def __init__(self, dataset):",
        f"{indent * 2}self.transform = {transform}",
        f"{indent * 2}{transform} = lambda value: value",
        f"{indent * 2}self.inputs = [dataset[index] for index in range(len(dataset))]",
        f"{indent * 2}{transform} = self.transform",
        "",
        f"{indent}def __len__(self):",
        f"{indent * 2}return len(self.inputs)",
        "",
        f"{indent}def __getitem__(self, index):",
        *(f"{indent * 2}{each.format(place=held.place)}" for each in getting),
        "",
        "",
    ]
