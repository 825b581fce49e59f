"""Functions that grew, by the call trees of both revisions. Pure.

Those that a changed line names, and those of libraries that nothing names but that say more than the line of the user's
own above them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from bottleneck_doctor.documents.check import GrowthNode, GrowthTree
from bottleneck_doctor.gate.cause.mentions import LOADER, Mention, Sources, bases, qualified

NEW = 0.1
"""A function that took at most this part of its time on the base is newly called, or as good as."""
AROUND = 0.97
"""What has this part of a step on both sides stands around the loop."""
SAYS_ALL = 0.8
"""Part of a caller's growth that what it calls explains, so that the caller itself says nothing more."""
MOSTLY = 0.5
"""Part of a growth that explains most of it."""
_EVERYBODYS = frozenset({"forward", "backward", "step", "__init__", "__call__", "__getitem__", "__iter__", "__next__"})
"""Methods that so many classes have that their name alone names none."""
_FETCHES = ("torch/utils/data/dataloader.py", "__next__")
"""Where the main process asks for the next batch: what is above it is the loop."""
_LOADING = "torch/utils/data/"
_WRAPPERS = frozenset({"_call_impl", "_wrapped_call_impl", "__call__", "wrapper", "__next__", "__iter__"})
"""Names that stand between a call and what is called."""

Function = tuple[str, str]
"""File as both revisions call it, and qualified name."""
Matters = Callable[[float, float], bool]
"""Whether a growth from seconds to seconds is worth telling."""


@dataclass
class Called:
    """One function wherever it is called, or a group of them: seconds a step on both sides, and who is above it.

    `name`, `path`: of the one that grew most.
    """

    name: str
    path: str
    base: float = 0.0
    head: float = 0.0
    own: bool = False
    callers: set[Function] = field(default_factory=set)
    """Functions above it."""
    lead: Function | None = None
    """The innermost function of the user's own above it, where it grew most; None where none is."""
    around: bool = False
    """Whether it stands around the training loop."""
    general: bool = False
    """Whether what leads there is as good as nothing: the line of the loop, or a library that holds the loop."""
    loads: bool = False
    """Whether it is called to make batches, in the main process or in a worker."""
    whole: tuple[float, float] = (0.0, 0.0)
    """`base` and `head` with all that is called, where those leave something out."""
    most: float = float("-inf")
    """By how much it grew where it grew most."""

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
        """By identity, the nodes that stand around the loop."""
        for tree in trees:
            self._stacks += _stacks(tree.root)
            self._loops |= _around(tree)

    def function(self, node: GrowthNode) -> Function:
        key = (node.path, node.name, node.line)
        if key not in self._names:
            # Python 3.10 knows no class of a function.
            plain = node.path and "." not in node.name and not node.name.startswith("<")
            self._names[key] = qualified(self._sources(node.path), node.line, node.name) if plain else node.name
        return node.path, self._names[key]

    def named(self, found: Sequence[Mention], own: Sequence[Called], matters: Matters) -> list[Named]:
        """What grew by a growth that matters and is named by a changed line; the most specific, largest first.

        `own`: what else grew of the user's own. A library's call is not named for that, though it is around it.
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
        """Functions of libraries that grew by what they do themselves, without what they call of the user's own: newly
        called ones, and where what leads there is general, also those that take longer."""
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
        # The deepest that still has nearly all of the growth of what calls it.
        last = [
            each
            for each in below
            if not any(is_above(each, other) and other.grew >= SAYS_ALL * each.grew for other in below)
        ]
        return _largest([*first, *(each for each in last if not any(is_above(other, each) for other in last))])

    def total(self, function: Function) -> Called | None:
        """One function with all that it calls, by its qualified name or as the profile has it; None where it was not
        seen."""
        path, name = function
        return self._gathered(lambda node: node.path == path and name in (node.name, self.function(node)[1]))

    @staticmethod
    def is_same(one: Function, other: Function) -> bool:
        """Whether both are one function, the first as the profile has it, which may lack the class."""
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
        """Classes of one file that the class `name` of the same file is made from: `_BatchNorm` of `BatchNorm2d`."""
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
    """The nodes that stand around the training loop: batches are fetched below them, or all of a step is there."""
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
    """The outermost calls of the user's own below a library's."""
    for child in node.children:
        if child.own:
            yield child
        else:
            yield from _own_below(child)


def is_above(upper: Called, lower: Called) -> bool:
    """Whether one function is among the callers of another one."""
    return upper is not lower and upper.function in lower.callers


def _is_said_inside(outer: Named, others: Iterable[Called]) -> bool:
    """Whether what is named only calls what explains its growth: others that lie inside it and are no part of it.

    A library's container (a chain of transforms, a loader) does nothing by itself, so it is not named where something
    in it is newly called: what else grew in it is the machine's.
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
