"""Functions that take longer, by the call trees of both revisions. Pure.

These are the functions that a changed line names, and library functions without such a line that say more than the
user's line above them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from bottleneck_doctor.documents.check import GrowthNode, GrowthTree
from bottleneck_doctor.gate.cause.mentions import LOADER, Mention, Sources, bases, qualified

NEW = 0.1
"""If a function took at most this part of its time on the base, it counts as newly called."""
AROUND = 0.97
"""What takes at least this part of a step on both sides is around the loop."""
SAYS_ALL = 0.8
"""If what a caller calls explains this part of its growth, the caller itself adds no information."""
MOSTLY = 0.5
"""Part of a growth that explains most of it."""
_EVERYBODYS = frozenset({"forward", "backward", "step", "__init__", "__call__", "__getitem__", "__iter__", "__next__"})
"""So many classes have these methods that the name alone does not identify one."""
_FETCHES = ("torch/utils/data/dataloader.py", "__next__")
"""Where the main process asks for the next batch. The loop is above it."""
_LOADING = "torch/utils/data/"
_WRAPPERS = frozenset({"_call_impl", "_wrapped_call_impl", "__call__", "wrapper", "__next__", "__iter__"})
"""Names that stand between a call and what is called."""

Function = tuple[str, str]
"""File as both revisions call it, and qualified name."""
Matters = Callable[[float, float], bool]
"""Whether a growth from one time to another (seconds) is worth reporting."""


@dataclass
class Called:
    """One function over all its calls, or a group of functions: seconds a step on both sides, and the callers.

    `name`, `path`: those of the function that grew most.
    """

    name: str
    path: str
    base: float = 0.0
    head: float = 0.0
    own: bool = False
    callers: set[Function] = field(default_factory=set)
    """All functions above it."""
    lead: Function | None = None
    """The user's innermost function above the call that grew most; None if there is none."""
    around: bool = False
    """Whether it is around the training loop."""
    general: bool = False
    """Whether its caller says nothing specific: the line of the loop, or a library that holds the loop."""
    loads: bool = False
    """Whether it is called to make batches, in the main process or in a worker."""
    whole: tuple[float, float] = (0.0, 0.0)
    """`base` and `head` including everything that is called, if those leave something out."""
    most: float = float("-inf")
    """The growth of the call that grew most."""

    @property
    def function(self) -> Function:
        return self.path, self.name

    @property
    def grew(self) -> float:
        return self.head - self.base

    @property
    def is_new(self) -> bool:
        return self.whole[0] <= NEW * self.whole[1]


@dataclass(frozen=True)
class Named:
    """What grew, and the changed line that names it."""

    called: Called
    mention: Mention


class Calls:
    """Both revisions' trees as a list of calls, with what is known of each function."""

    def __init__(self, trees: Iterable[GrowthTree], sources: Sources) -> None:
        self._sources = sources
        self._names: dict[tuple[str, str, int], str] = {}
        self._bases: dict[str, Mapping[str, set[str]]] = {}
        self._stacks: list[list[GrowthNode]] = []
        """Every call, the outermost first, without the tree's root."""
        self._loops: set[int] = set()
        """The nodes around the loop, by identity."""
        for tree in trees:
            self._stacks += _stacks(tree.root)
            self._loops |= _around(tree)

    def function(self, node: GrowthNode) -> Function:
        key = (node.path, node.name, node.line)
        if key not in self._names:
            # Python 3.10 does not report the class of a function.
            plain = node.path and "." not in node.name and not node.name.startswith("<")
            self._names[key] = qualified(self._sources(node.path), node.line, node.name) if plain else node.name
        return node.path, self._names[key]

    def named(self, found: Sequence[Mention], own: Sequence[Called], matters: Matters) -> list[Named]:
        """What grew by an amount that matters and has a changed line that names it; only the most specific, largest
        first.

        `own`: the user's other functions that grew. A library's call around one of them is not named for its growth.
        """
        groups: dict[str, list[Mention]] = defaultdict(list)
        for mention in found:
            groups[mention.name].append(mention)
        made = []
        for name, mentions in groups.items():
            called = self._gathered(self._match(name))
            if called is not None and not called.around and matters(called.base, called.head):
                made.append(Named(called, min(mentions, key=lambda each: (bool(each.through), each.line))))
        kept = [
            each
            for each in made
            if not _is_said_inside(each, [other.called for other in made])
            and (each.called.own or not _is_said_inside(each, own))
        ]
        once: dict[Function, Named] = {}
        for each in sorted(kept, key=lambda each: (-each.called.grew, bool(each.mention.through), each.mention.line)):
            once.setdefault(each.called.function, each)
        return list(once.values())

    def unnamed(self, matters: Matters) -> list[Called]:
        """Library functions that grew by themselves, without the user's functions that they call: newly called ones,
        and if their caller says nothing specific, also those that take longer."""
        made: dict[Function, Called] = {}
        for stack in self._tops(lambda node: not node.own and bool(node.path)):
            inner = list(_own_below(stack[-1]))
            self._into(made, stack, sum(each.base for each in inner), sum(each.head for each in inner))
        grown = [each for each in made.values() if matters(each.base, each.head) and not _is_wrapper(each.name)]
        new = [each for each in grown if each.is_new]
        first = [each for each in new if not any(is_above(other, each) for other in new)]
        below = [
            each
            for each in grown
            if each.general
            and each not in first
            and not any(is_above(other, each) or is_above(each, other) for other in first)
        ]
        # Keep the deepest one that still has nearly all of its caller's growth.
        last = [
            each
            for each in below
            if not any(is_above(each, other) and other.grew >= SAYS_ALL * each.grew for other in below)
        ]
        return _largest([*first, *(each for each in last if not any(is_above(other, each) for other in last))])

    def total(self, function: Function) -> Called | None:
        """One function including everything that it calls, by its qualified name or its name in the profile; None if it
        was not seen."""
        path, name = function
        return self._gathered(lambda node: node.path == path and name in (node.name, self.function(node)[1]))

    @staticmethod
    def is_same(one: Function, other: Function) -> bool:
        """Whether both are the same function. The first name is that of the profile, which may lack the class."""
        return one[0] == other[0] and f".{other[1]}".endswith(f".{one[1]}")

    # -- matching ------------------------------------------------------------------------------------------------------

    def _match(self, name: str) -> Callable[[GrowthNode], bool]:
        """Whether a node is what `name` names: a method of the class, or the function."""

        def is_named(node: GrowthNode) -> bool:
            if name == LOADER and node.path.endswith(_FETCHES[0]):
                return True
            qualified_name = self.function(node)[1]
            if "." in name:
                return node.own and f".{qualified_name}".endswith(f".{name}")
            *owners, last = qualified_name.split(".")
            if name in owners or any(owner in self._above_class(node.path, name) for owner in owners):
                return True
            if last != name or (owners and name in _EVERYBODYS):
                return False
            return node.own or (not owners and node.base <= NEW * node.head)

        return is_named

    def _above_class(self, path: str, name: str) -> set[str]:
        """The base classes of `name` in the same file: `_BatchNorm` for `BatchNorm2d`."""
        if path not in self._bases:
            self._bases[path] = bases(self._sources(path)) if path else {}
        known = self._bases[path]
        found: set[str] = set()
        waiting = [name]
        while waiting:
            for base in known.get(waiting.pop(), ()):
                if base in known and base not in found:
                    found.add(base)
                    waiting.append(base)
        return found

    def _tops(self, wanted: Callable[[GrowthNode], bool]) -> Iterator[list[GrowthNode]]:
        """The calls of every wanted function that are not inside another call of the same one."""
        for stack in self._stacks:
            node = stack[-1]
            if wanted(node) and all(self.function(above) != self.function(node) for above in stack[:-1]):
                yield stack

    def _gathered(self, wanted: Callable[[GrowthNode], bool]) -> Called | None:
        """All wanted calls that are not inside one another, under the name of the one that grew most."""
        each: dict[Function, Called] = {}
        whole = Called("", "")
        for stack in self._stacks:
            if wanted(stack[-1]) and not any(wanted(above) for above in stack[:-1]):
                self._into(each, stack)
        if not each:
            return None
        for called in each.values():
            whole.base += called.base
            whole.head += called.head
            whole.own |= called.own
            whole.around |= called.around
            whole.loads |= called.loads
            whole.whole = whole.whole[0] + called.whole[0], whole.whole[1] + called.whole[1]
            whole.callers |= called.callers
        most = max(each.values(), key=lambda called: (called.grew, called.name))
        whole.name, whole.path, whole.lead, whole.general = most.name, most.path, most.lead, most.general
        return whole

    def _into(
        self, made: dict[Function, Called], stack: list[GrowthNode], less_base: float = 0.0, less_head: float = 0.0
    ) -> None:
        node = stack[-1]
        base, head = node.base - less_base, node.head - less_head
        path, name = self.function(node)
        called = made.setdefault((path, name), Called(name, path))
        called.base += base
        called.head += head
        called.whole = called.whole[0] + node.base, called.whole[1] + node.head
        called.own |= node.own
        called.loads |= any(_LOADING in above.path for above in stack)
        called.around |= id(node) in self._loops
        called.callers |= {self.function(above) for above in stack[:-1]}
        if head - base > called.most:
            called.most = head - base
            called.lead = next((self.function(above) for above in reversed(stack[:-1]) if above.own), None)
            called.general = self._is_general(stack)

    def _is_general(self, stack: list[GrowthNode]) -> bool:
        for above in reversed(stack):
            if above.own:
                return False
            if id(above) in self._loops or _LOADING in above.path:
                return True
        return True


def _stacks(root: GrowthNode) -> Iterator[list[GrowthNode]]:
    waiting = [[child] for child in root.children]
    while waiting:
        stack = waiting.pop()
        yield stack
        waiting += [[*stack, child] for child in stack[-1].children]


def _around(tree: GrowthTree) -> set[int]:
    """The nodes around the training loop: batches are fetched below them, or they take nearly all of a step."""
    found: set[int] = set()
    root = tree.root
    if tree.role != "main":
        return found
    for stack in _stacks(root):
        node = stack[-1]
        if node.path.endswith(_FETCHES[0]) and node.name.endswith(_FETCHES[1]):
            found |= {id(above) for above in stack[:-1]}
        all_of_it = node.head >= AROUND * root.head and node.base >= AROUND * root.base > 0
        if all_of_it and not any(_LOADING in above.path for above in stack):
            found.add(id(node))
    return found


def _own_below(node: GrowthNode) -> Iterator[GrowthNode]:
    """The outermost calls of the user's functions below a library's call."""
    for child in node.children:
        if child.own:
            yield child
        else:
            yield from _own_below(child)


def is_above(upper: Called, lower: Called) -> bool:
    """Whether one function is among the callers of another one."""
    return upper is not lower and upper.function in lower.callers


def _is_said_inside(outer: Named, others: Iterable[Called]) -> bool:
    """Whether other functions inside it explain the growth of what is named, so that it only calls them.

    A library's container (a chain of transforms, a loader) does nothing by itself. So it is not named if something in
    it is newly called; the rest of its growth comes from the machine.
    """
    inside = [each for each in others if _is_inside(each, outer)]
    if outer.called.own:
        return any(each.grew >= SAYS_ALL * outer.called.grew for each in inside)
    return any(each.is_new for each in inside) or sum(each.grew for each in inside) >= MOSTLY * outer.called.grew


def _is_inside(inner: Called, outer: Named) -> bool:
    if inner.function == outer.called.function or outer.mention.name in inner.name.split("."):
        return False
    callers = {name for _, caller in inner.callers for name in caller.split(".")}
    return is_above(outer.called, inner) or outer.mention.name in callers


def _is_wrapper(name: str) -> bool:
    return "<locals>" in name or name.rpartition(".")[2] in _WRAPPERS


def _largest(found: Iterable[Called]) -> list[Called]:
    return sorted(found, key=lambda each: (-each.grew, each.name))
