"""Two revisions' calls as one flame graph: a `GrowthTree` goes in, inline SVG comes out.

A frame is as wide as the larger of what it takes on the two sides, so that what is gone is seen beside what is new. Its
text begins with the seconds of a step that it gained or lost, with their sign: colours say the same once more. What may
be the luck of sampling has neither.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import PurePosixPath

from markupsafe import Markup

from bottleneck_doctor.documents.check import GrowthNode, GrowthTree
from bottleneck_doctor.documents.report import CallNode
from bottleneck_doctor.render.flame import Placed, frame, graph, placed
from bottleneck_doctor.wording import words
from bottleneck_doctor.wording.check_words import REVISIONS, SideWords

SIGMAS = 2.5
"""How many times its own luck of sampling a frame must have changed by; as for culprits."""
MUCH, SOME = 0.5, 0.15
"""Parts of the largest change from which a frame is coloured strongly, and less so."""
_TICKS = 1e9
"""Widths are counted in nanoseconds."""
_LONGEST = 1e9
"""Seconds. A damaged document may tell of any length, and no step takes thirty years."""


@dataclass(frozen=True, kw_only=True)
class _Call(CallNode):
    """A call as wide as it is drawn, with its seconds on both sides."""

    base: float = 0.0
    head: float = 0.0


def flame(tree: GrowthTree, *, label: str, sides: SideWords = REVISIONS) -> str:
    """One drawing as markup. `label` says whose it is: "main process"."""
    root = _widened(tree.root)
    frames = placed(root)
    changes = [abs(each.head - each.base) for each in _calls(frames) if changed(each.base, each.head, tree)]
    largest = max(changes, default=0.0)
    step = (
        f"{words.duration_text(tree.root.base)} a step {sides.on_base}, "
        f"{words.duration_text(tree.root.head)} {sides.on_head}"
    )
    return graph(f"What grew, {label}: {step}", frames, lambda each: _drawn(each, tree, largest, sides))


def changed(base: float, head: float, tree: GrowthTree) -> bool:
    """Whether a call's seconds differ by more than the luck of sampling."""
    luck = math.hypot(_luck(base, tree.root.base, tree.base_samples), _luck(head, tree.root.head, tree.head_samples))
    return abs(head - base) > max(SIGMAS * luck, 1e-9)


def _luck(seconds: float, step: float, samples: int) -> float:
    if step <= 0 or samples <= 0:
        return 0.0
    return math.sqrt(step / samples * max(seconds, 0.0) * max(0.0, 1 - seconds / step))


def _widened(node: GrowthNode) -> _Call:
    """The call with a width that holds both sides, and all that it calls."""
    children = [_widened(child) for child in node.children]
    here = max(
        node.base - sum(child.base for child in node.children),
        node.head - sum(child.head for child in node.children),
        0.0,
    )
    return _Call(
        name=node.name,
        path=node.path,
        line=node.line,
        count=round(min(here, _LONGEST) * _TICKS) + sum(child.count for child in children),
        own=node.own,
        children=list(children),
        base=node.base,
        head=node.head,
    )


def _calls(frames: list[Placed]) -> list[_Call]:
    return [each.node for each in frames if isinstance(each.node, _Call)]


def _drawn(each: Placed, tree: GrowthTree, largest: float, sides: SideWords) -> Markup:
    call = each.node
    assert isinstance(call, _Call)
    where = words.place_text(call.path, call.line) if call.path else ""
    by = call.head - call.base
    grew = changed(call.base, call.head, tree)
    said = f"{words.duration_text(call.head)} a step, {words.duration_text(call.base)} {sides.on_base}"
    title = f"{call.name} ({where}): {said}" + (f" ({amount(by)})" if grew else "")
    if each.run:
        last = each.run[-1]
        title = f"{words.count_text(len(each.run), 'call')}, from {call.name} to {last.name} ({where}): {said}"
        name = f"… {words.count_text(len(each.run), 'call')} …"
    elif call.own:
        name = f"{call.name}  {words.site_text(PurePosixPath(call.path).name, call.line)}"
    else:
        name = call.name
    size = 3 if abs(by) >= MUCH * largest else 2 if abs(by) >= SOME * largest else 1
    kind = f"{'grew' if by > 0 else 'shrank'}-{size}" if grew else "same"
    return frame(each, kind, title, f"{amount(by)}  {name}" if grew else name)


def amount(seconds: float) -> str:
    """Seconds gained or lost, with their sign."""
    mark = "+" if seconds > 0 else "\N{MINUS SIGN}"
    return mark + words.duration_text(abs(seconds))
