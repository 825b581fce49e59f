"""A call tree that can hold millions of stacks: frame numbers go in, a small `CallNode` comes out.

Nodes are numbers and their fields are arrays, because one object for each node would take gigabytes for a long
recording. A frame is a function at one of its lines. When the tree is frozen, the lines of a function are merged, and
small nodes are left out.
"""

from __future__ import annotations

import heapq
import math
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from bottleneck_doctor.documents.report import CallNode, SamplingProfile

LEAST_SHARE = 0.003
"""Nodes with a smaller share of the samples are left out of a frozen tree."""

MOST_NODES = 3000
DEEPEST = 150
"""Deeper nodes are left out of a frozen tree, because programs that read nested JSON limit its depth."""

_SPAN = 1 << 32
NO_FRAME = -1


@dataclass(frozen=True)
class Frame:
    """A function at one of its lines; line 0 where it is not known. `function` is one number for all its lines."""

    name: str
    path: str
    line: int
    function: int


class Frames:
    """Every frame once, by number."""

    def __init__(self) -> None:
        self._frames: list[Frame] = []
        self._numbers: dict[tuple[str, str, int], int] = {}
        self._functions: dict[tuple[str, str], int] = {}

    def number(self, name: str, path: str, line: int) -> int:
        key = name, path, line
        found = self._numbers.get(key)
        if found is None:
            function = self._functions.setdefault((name, path), len(self._functions))
            found = self._numbers[key] = len(self._frames)
            self._frames.append(Frame(name, path, line, function))
        return found

    def __getitem__(self, number: int) -> Frame:
        return self._frames[number]

    def __len__(self) -> int:
        return len(self._frames)

    def __iter__(self) -> Iterator[Frame]:
        return iter(self._frames)


class CallTree:
    """Grows by `add`. A parent's number is always smaller than its children's."""

    def __init__(self) -> None:
        self.frames = array("i")
        self.parents = array("i")
        self.counts = array("q")
        """Samples that ended in the node itself."""
        self._children: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self.frames)

    def root(self) -> int:
        """A new root, which stands for no frame."""
        return self._new(NO_FRAME, -1)

    def _new(self, frame: int, parent: int) -> int:
        self.frames.append(frame)
        self.parents.append(parent)
        self.counts.append(0)
        return len(self.frames) - 1

    def add(self, root: int, stack: Iterable[int], count: int) -> None:
        """Count a stack below `root`, the outermost frame first."""
        children, node = self._children, root
        for frame in stack:
            key = node * _SPAN + frame
            child = children.get(key)
            if child is None:
                child = children[key] = self._new(frame, node)
            node = child
        self.counts[node] += count

    def totals(self) -> array[int]:
        """Samples in each node or below it."""
        totals = self.counts[:]
        parents = self.parents
        for node in range(len(totals) - 1, -1, -1):
            parent = parents[node]
            if parent >= 0:
                totals[parent] += totals[node]
        return totals

    def inherited(self, roots: Iterable[int], own: Sequence[bool] | None = None) -> array[int]:
        """For each node below `roots` the root, or with `own` (by frame) the innermost frame so marked, itself
        included; -1 if there is none."""
        found = array("i", [-1]) * len(self.frames)
        frames, parents = self.frames, self.parents
        for root in roots:
            found[root] = root if own is None else NO_FRAME
        for node, parent in enumerate(parents):
            if parent >= 0:
                frame = frames[node]
                found[node] = frame if own is not None and own[frame] else found[parent]
        return found

    def stack(self, node: int) -> list[int]:
        """The frames from the root to `node`, the outermost first."""
        stack = []
        while self.parents[node] >= 0:
            stack.append(self.frames[node])
            node = self.parents[node]
        return stack[::-1]


@dataclass
class _Group:
    """Nodes of one function under one group: what becomes one `CallNode`."""

    nodes: list[int]
    count: int
    depth: int
    parent: int
    children: list[CallNode] = field(default_factory=list)


class Freezer:
    """Turns parts of a finished tree into `CallNode`s. Holds what all parts share: totals and links to children."""

    def __init__(self, tree: CallTree, frames: Frames, own: Sequence[bool]) -> None:
        self._tree = tree
        self._frames = frames
        self._own = own
        self.totals = tree.totals()
        self._first = array("i", [-1]) * len(tree)
        self._next = array("i", [-1]) * len(tree)
        for node, parent in enumerate(tree.parents):
            if parent >= 0:
                self._next[node] = self._first[parent]
                self._first[parent] = node

    def total(self, roots: Iterable[int]) -> int:
        return sum(self.totals[root] for root in roots)

    def freeze(
        self, roots: Sequence[int], name: str, *, least_share: float = LEAST_SHARE, most: int = MOST_NODES
    ) -> CallNode:
        """Everything below `roots` as one tree whose root is called `name`.

        The lines of a function are put together under the one with the most samples. Of the nodes that are large
        enough, the `most` largest are kept; a node's count holds what was left out below it.
        """
        groups = [_Group(list(roots), self.total(roots), 0, -1)]
        least = max(1, math.ceil(groups[0].count * least_share))
        # The largest first: a parent is at least as large as its children, and is taken before they are known.
        waiting = [(-groups[0].count, 0)]
        kept: list[int] = []
        while waiting and len(kept) < most:
            index = heapq.heappop(waiting)[1]
            kept.append(index)
            if groups[index].depth >= DEEPEST:
                continue
            for nodes in self._children(groups[index].nodes).values():
                count = self.total(nodes)
                if count >= least:
                    heapq.heappush(waiting, (-count, len(groups)))
                    groups.append(_Group(nodes, count, groups[index].depth + 1, index))
        for index in reversed(kept[1:]):
            groups[groups[index].parent].children.append(self._node(groups[index]))
        top = groups[0]
        return CallNode(name=name, path="", line=0, count=top.count, children=_largest_first(top.children))

    def _children(self, nodes: Iterable[int]) -> dict[int, list[int]]:
        by_function: dict[int, list[int]] = {}
        for node in nodes:
            child = self._first[node]
            while child >= 0:
                by_function.setdefault(self._frames[self._tree.frames[child]].function, []).append(child)
                child = self._next[child]
        return by_function

    def _node(self, group: _Group) -> CallNode:
        lines: Counter[int] = Counter()
        for node in group.nodes:
            lines[self._tree.frames[node]] += self.totals[node]
        number = min(lines, key=lambda frame: (-lines[frame], self._frames[frame].line))
        frame = self._frames[number]
        return CallNode(
            name=frame.name,
            path=frame.path,
            line=frame.line,
            count=group.count,
            own=self._own[number],
            children=_largest_first(group.children),
        )


def _largest_first(children: list[CallNode]) -> list[CallNode]:
    return sorted(children, key=lambda child: (-child.count, child.name, child.path))


def most_within(profile: SamplingProfile, functions: Collection[tuple[str, str]]) -> float:
    """The largest part of the training process's time, 0 to 1, that may have been spent in these functions and what
    they call, by the samples. A function is given by how the path of its file ends, and its qualified name, of which
    Python 3.10 tells the last part only.

    The samples in them are as if drawn from a Poisson distribution, whose mean is at most so large (97.5 % sure).
    """
    tree = profile.trees.get("main")
    if tree is None or not tree.count:
        return 1.0
    count, waiting = 0, [tree]
    while waiting:
        node = waiting.pop()
        path = node.path.replace("\\", "/")
        if any(f".{name}".endswith(f".{node.name}") and path.endswith(file) for file, name in functions):
            count += node.count
        else:
            waiting += node.children
    return min(1.0, (1 + math.sqrt(count + 1)) ** 2 / tree.count)
