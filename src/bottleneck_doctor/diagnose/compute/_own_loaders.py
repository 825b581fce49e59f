"""Batches that the training process makes in something that is no DataLoader of torch's, as stack samples show it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._met import Met
from bottleneck_doctor.diagnose._places import kind_in, stacks
from bottleneck_doctor.documents.report import CallNode

MOST = 0.5
"""Making batches takes this part of the work between the passes or more: then that is what this work is. Ours."""
NEARLY = 0.9
"""A function that holds this part of another's samples or more is where they go by."""
ITERATES = ("__next__", "__iter__")
"""What Python calls where a loop asks for its next batch."""


class Making(Met):
    """The outermost function beyond the loop's own library that makes batches."""

    did = "made the next batch, without a DataLoader of torch's"


def making(evidence: Evidence) -> Making | None:
    """What makes batches in the training process, other than torch's DataLoader; None where nothing does so for most
    of the work between the passes."""
    tree = evidence.sampling.trees.get("main") if evidence.sampling is not None else None
    if tree is None:
        return None
    kinds: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for frames, count in stacks(tree):
        kind = kind_in(evidence, frames)
        for frame in frames:
            kinds[id(frame)][kind] += count
    whole = kinds[id(tree)]["between"]
    loop, top = _outermost(tree, kinds)
    if top is None or kinds[id(top)]["between"] < MOST * whole or top.name.rpartition(".")[2] not in ITERATES:
        return None
    node, into = top, _heaviest(top)
    while _package(node) == _package(loop) and into is not None and into.count >= NEARLY * node.count:
        node, into = into, _heaviest(into)
    return Making(node.name, node.path, kinds[id(top)]["between"] / whole)


def _heaviest(node: CallNode) -> CallNode | None:
    return max(node.children, key=lambda child: child.count, default=None)


def _outermost(tree: CallNode, kinds: Mapping[int, Counter[str]]) -> tuple[CallNode, CallNode | None]:
    """Of the functions below which no pass was seen, but in whose callers one was, that with the most samples; and its
    caller, which holds the loop."""
    found: list[tuple[int, CallNode, CallNode]] = []
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        for child in node.children:
            seen = kinds[id(child)]
            if seen["between"] >= NEARLY * child.count:
                found.append((child.count, node, child))
            elif seen["between"]:
                waiting.append(child)
    if not found:
        return tree, None
    _, loop, top = max(found, key=lambda each: each[0])
    return loop, top


def _package(node: CallNode) -> str:
    """The library that a function is of, by its path; the path itself where it is of none."""
    path = node.path.replace("\\", "/")
    _, marker, rest = path.rpartition("-packages/")
    return rest.partition("/")[0] if marker else path
