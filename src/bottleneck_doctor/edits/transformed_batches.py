"""The edit that does the last transforms of a DataLoader's samples to its batches: source text and a line in,
`ChangeText` or nothing out. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from bottleneck_doctor.edits.collate_function import Collating
from bottleneck_doctor.edits.diff import ChangeText
from bottleneck_doctor.edits.loader_dataset import dataset_of
from bottleneck_doctor.edits.module_level import of_the_module
from bottleneck_doctor.edits.tree import SCOPES, SourceTree, code, dotted, has_comment, last_name, put
from bottleneck_doctor.knobs import Transformed

NAME = "transformed"
ON_BATCH = "on_batch"
ARGUMENTS = ("transform", "transforms")
"""By these, datasets are given their transforms."""


def transformed_batches_change(source: str, line: int, asked: Transformed) -> ChangeText | None:
    """Take the last transforms out of the chain that the samples of the loader made on `line` go through, and let its
    collate function do them to whole batches. None where the call and the chain are not written so that this is
    certain: nothing else may go through the chain, since it would miss what is taken out."""
    found = Collating.at(source, line)
    if found is None or not asked.places or not asked.transforms or any(map(found.tree.says, (NAME, ON_BATCH))):
        return None
    tree = found.tree
    dataset = dataset_of(found.call)
    chain = None if dataset is None else _chain(tree, dataset)
    if chain is None or has_comment(chain) or len(chain.elements) < len(asked.transforms):
        return None
    kept = chain.elements[: -len(asked.transforms)]
    last = [each.value for each in chain.elements[-len(asked.transforms) :]]
    if [last_name(each.func) if isinstance(each, cst.Call) else "" for each in last] != list(
        map(_name, asked.transforms)
    ):
        return None
    first = last[0]
    assert isinstance(first, cst.Call)
    library = dotted(first.func.value) if isinstance(first.func, cst.Attribute) else ""
    if library.split(".")[0] not in of_the_module(tree) or not all(_can_move(tree, each) for each in last):
        return None
    instead = [] if not asked.instead else [f"{library}.{asked.instead}"]
    on_batch = [code(each) for each in last]
    if _name(asked.transforms[0]) == "ToTensor":
        if asked.instead != "PILToTensor()" or not asked.on_batch[0].startswith("ConvertImageDtype(torch."):
            return None
        on_batch[0] = f"{library}.{asked.on_batch[0]}"
    elements = [*kept, *(cst.Element(cst.parse_expression(each)) for each in instead)]
    if not elements:
        return None
    elements[-1] = elements[-1].with_changes(comma=chain.elements[-1].comma)
    return found.change(
        NAME,
        _function(tree, found.collate, f"{library}.Compose", on_batch, asked.places),
        {chain: put(chain.with_changes(elements=elements))},
    )


def _name(written: str) -> str:
    return written.split("(")[0]


def _given(call: cst.Call) -> cst.BaseExpression | None:
    """The transforms that a dataset is given by their name."""
    return next(
        (each.value for each in call.args if each.keyword is not None and each.keyword.value in ARGUMENTS), None
    )


def _chain(tree: SourceTree, dataset: cst.BaseExpression) -> cst.List | None:
    """The list of transforms that nothing but this dataset goes through; None where that is not certain."""
    made = _made(tree, dataset)
    given = _given(made) if isinstance(made, cst.Call) else None
    compose = None if given is None else _made(tree, given)
    if not isinstance(compose, cst.Call) or last_name(compose.func) != "Compose" or len(compose.args) != 1:
        return None
    listed = compose.args[0].value
    return listed if isinstance(listed, cst.List) and all(isinstance(e, cst.Element) for e in listed.elements) else None


def _made(tree: SourceTree, value: cst.BaseExpression) -> cst.BaseExpression | None:
    """What a name stands for that is assigned once, and is used nowhere but here and in `len(...)`."""
    if not isinstance(value, cst.Name):
        return value
    uses = [each for each in tree.nodes(cst.Name) if each.value == value.value and not _is_label(tree, each)]
    made = None
    for each in uses:
        parent = next(iter(tree.around(each)), None)
        if isinstance(parent, cst.AssignTarget):
            line = next((above for above in tree.around(each) if isinstance(above, cst.Assign)), None)
            if made is not None or line is None or len(line.targets) != 1 or not _same_function(tree, each, value):
                return None
            made = line.value
        elif each is not value and not _is_length(tree, each):
            return None
    return made


def _is_label(tree: SourceTree, name: cst.Name) -> bool:
    """Whether a name is that of an attribute, or of an argument that is given."""
    parent = next(iter(tree.around(name)), None)
    return (isinstance(parent, cst.Attribute) and parent.attr is name) or (
        isinstance(parent, cst.Arg) and parent.keyword is name
    )


def _is_length(tree: SourceTree, name: cst.Name) -> bool:
    around = tree.around(name)
    argument, call = next(around, None), next(around, None)
    return isinstance(argument, cst.Arg) and isinstance(call, cst.Call) and dotted(call.func) == "len"


def _same_function(tree: SourceTree, one: cst.CSTNode, other: cst.CSTNode) -> bool:
    scopes = [next((each for each in tree.around(node) if isinstance(each, SCOPES)), None) for node in (one, other)]
    return scopes[0] is scopes[1]


def _can_move(tree: SourceTree, made: cst.BaseExpression) -> bool:
    """Whether a transform can be made at the top of the module, too: of literals, and of what torch names."""
    if not isinstance(made, cst.Call):
        return False
    return all(not each.star and _is_plain(tree, each.value) for each in made.args)


def _is_plain(tree: SourceTree, value: cst.BaseExpression) -> bool:
    """Whether an expression means the same everywhere: it names nothing but what torch holds."""
    if dotted(value).startswith("torch."):
        return "torch" in of_the_module(tree)
    return not tree.nodes((cst.Name, cst.Call), within=value)


def _function(
    tree: SourceTree, collate: str, compose: str, on_batch: Sequence[str], places: Sequence[str]
) -> list[str]:
    indent = tree.module.default_indent
    whole = places == ("",)
    made = [f"{indent}batch{place} = {ON_BATCH}(batch{place}.contiguous())" for place in places]
    return [
        f"{ON_BATCH} = {compose}([{', '.join(on_batch)}])",
        "",
        "",
        f"def {NAME}(samples):",
        f"{indent}batch = {collate}(samples)",
        *([] if whole else made),
        f"{indent}return {ON_BATCH}(batch.contiguous())" if whole else f"{indent}return batch",
        "",
        "",
    ]
