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
_COPIES = {
    "tuple": ("sample = list(self.inputs[index])", "return tuple(sample)"),
    "list": ("sample = list(self.inputs[index])", "return sample"),
    "dict": ("sample = dict(self.inputs[index])", "return sample"),
}
"""By the kind of sample: how one is begun, and how it is returned."""


def kept_inputs_change(source: str, line: int, held: HeldTransforms | None) -> ChangeText | None:
    """Let the loader made on `line` (any line of the call) have a dataset that keeps what the transforms of its own
    get. None where the call is not written so that this is certain."""
    tree = SourceTree.parse(source)
    calls = [] if tree is None else loader_calls(tree, line)
    if tree is None or held is None or held.kind not in ("", *_COPIES) or len(calls) != 1 or tree.says(NAME):
        return None
    call = calls[0]
    given = dataset_of(call)
    if given is None or in_loop(tree, call) or _of_the_caller(tree, call, given) or asks_dataset(tree):
        return None
    wrapped = cst.Call(cst.Name(NAME), [cst.Arg(given)])
    return defined_above(tree, call, _definition(tree, held), {given: put(wrapped)})


def _of_the_caller(tree: SourceTree, call: cst.Call, given: cst.BaseExpression) -> bool:
    """Whether a function is given the dataset: it may make loaders of others, too, that hold their transforms
    elsewhere."""
    function = tree.function(call)
    if function is None:
        return False
    names = {each.value for each in tree.nodes(cst.Name, within=given)} - {"self"}
    return any(each.name.value in names for each in tree.nodes(cst.Param, within=function.params))


def _getting(held: HeldTransforms) -> Sequence[str]:
    """How a sample is made of what is kept."""
    kept = "sample" if held.kind else "self.inputs[index]"
    given = ", ".join(f"{name}={kept}{place}" for name, place in held.places) or f"{kept}{held.place}"
    made = f"self.transform({given})"
    if not held.kind:
        return [f"return {made}" + "".join(f'["{name}"]' for name, _ in held.places)]
    begun, returned = _COPIES[held.kind]
    if not held.places:
        return [begun, f"sample{held.place} = {made}", returned]
    return [begun, f"made = {made}", *(f'sample{place} = made["{name}"]' for name, place in held.places), returned]


def _definition(tree: SourceTree, held: HeldTransforms) -> list[str]:
    indent = tree.module.default_indent
    transform = f"dataset{held.owner}.{held.name}"
    return [
        f"class {NAME}:",
        f'{indent}"""A dataset that keeps in memory what its transforms get. They are done anew each time."""',
        "",
        f"{indent}def __init__(self, dataset):",
        f"{indent * 2}self.transform = {transform}",
        f"{indent * 2}{transform} = lambda {'**values: values' if held.places else 'value: value'}",
        f"{indent * 2}self.inputs = [dataset[index] for index in range(len(dataset))]",
        f"{indent * 2}{transform} = self.transform",
        "",
        f"{indent}def __len__(self):",
        f"{indent * 2}return len(self.inputs)",
        "",
        f"{indent}def __getitem__(self, index):",
        *(f"{indent * 2}{each}" for each in _getting(held)),
        "",
        "",
    ]
