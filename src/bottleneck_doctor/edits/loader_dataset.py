"""The dataset of a loader, and whether another one can be put in its place: questions of edits that do so. Pure."""

from __future__ import annotations

import libcst as cst

from bottleneck_doctor.edits.tree import LOOPS, SCOPES, SourceTree


def dataset_of(call: cst.Call) -> cst.BaseExpression | None:
    """What is given as the dataset; None where that is not seen."""
    for each in call.args:
        if each.keyword is not None and each.keyword.value == "dataset":
            return each.value
    first = call.args[0] if call.args else None
    return first.value if first is not None and first.keyword is None and not first.star else None


def in_loop(tree: SourceTree, call: cst.Call) -> bool:
    """Whether the call is made again and again, and with it what is put in the dataset's place."""
    for each in tree.around(call):
        if isinstance(each, LOOPS):
            return True
        if isinstance(each, SCOPES):
            return False
    return False


def asks_dataset(tree: SourceTree) -> bool:
    """Whether something is asked of a loader's dataset by its name, as in `loader.dataset.classes`, that the new one
    does not have."""
    owners = [each.value for each in tree.nodes(cst.Attribute)]
    return any(isinstance(each, cst.Attribute) and each.attr.value == "dataset" for each in owners)
