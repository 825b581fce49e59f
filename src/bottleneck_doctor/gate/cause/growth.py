"""Where a step takes longer, call by call: the call trees of both revisions in, one tree with the seconds of both out.
Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from bottleneck_doctor.documents.check import GrowthNode, GrowthTree
from bottleneck_doctor.documents.report import CallNode

LEAST_SHARE = 0.005
"""Calls that take a smaller part of a step on both sides are left out, and counted in their callers."""
MOST_NODES = 600
"""At most this many calls of each side and role are kept."""

Placed = Callable[[str], str]
"""A file's path on its own side in; its path as both revisions have it out."""


@dataclass(frozen=True)
class Grown:
    """The calls of one side in one role. `grain`: seconds a step that one sample stands for."""

    tree: CallNode
    grain: float
    placed: Placed


def merged(role: Literal["main", "workers"], base: Grown, head: Grown) -> GrowthTree:
    """Both sides in one tree. Functions with the same callers count as the same, even if their lines have moved."""
    step = max(base.tree.count * base.grain, head.tree.count * head.grain)
    return GrowthTree(
        role=role,
        base_samples=base.tree.count,
        head_samples=head.tree.count,
        root=_node([base.tree], [head.tree], base, head, LEAST_SHARE * step),
    )


def _node(before: Sequence[CallNode], after: Sequence[CallNode], base: Grown, head: Grown, least: float) -> GrowthNode:
    """One function of both sides, and what it calls. A list may be empty, or hold several nodes of the same
    function."""
    called: dict[tuple[str, str], tuple[list[CallNode], list[CallNode]]] = {}
    for index, (nodes, side) in enumerate(((before, base), (after, head))):
        for node in nodes:
            for child in node.children:
                key = (child.name, side.placed(child.path) if child.path else "")
                called.setdefault(key, ([], []))[index].append(child)
    children = [
        _node(old, new, base, head, least)
        for old, new in called.values()
        if max(_count(old) * base.grain, _count(new) * head.grain) >= least
    ]
    # Names and lines are those of the head if it has the function.
    shown = max(after or before, key=lambda node: node.count)
    side = head if after else base
    return GrowthNode(
        name=shown.name,
        path=side.placed(shown.path) if shown.path else "",
        line=shown.line,
        base=_count(before) * base.grain,
        head=_count(after) * head.grain,
        own=any(node.own for node in (*before, *after)),
        children=sorted(children, key=lambda each: (-max(each.base, each.head), each.name, each.path)),
    )


def _count(nodes: Sequence[CallNode]) -> int:
    return sum(node.count for node in nodes)
