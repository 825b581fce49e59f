"""What `doctor flame` writes: call trees and tables of a recording in, one self-contained page without scripts out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bottleneck_doctor.documents.report import CallNode, HotFunction
from bottleneck_doctor.render.flame import ROLE_WORDS, flame, short_path
from bottleneck_doctor.render.page import page
from bottleneck_doctor.wording import words


def render(
    *,
    name: str,
    trees: Mapping[str, CallNode],
    functions: Sequence[HotFunction],
    notes: Sequence[str],
    led_by: str,
    cwd: str = "",
) -> str:
    """A page of its own, self-contained: a flame graph and the deepest functions for each role."""
    parts = [
        {
            "role": role,
            "title": ROLE_WORDS.get(role, role),
            "samples": words.count_text(tree.count, "sample"),
            "drawing": flame(tree, label=ROLE_WORDS.get(role, role).lower()),
            "functions": [each for each in functions if each.role == role],
        }
        for role, tree in trees.items()
    ]
    return page(
        "flame.html.j2", name=name, parts=parts, notes=notes, led_by=led_by, short=lambda path: short_path(path, cwd)
    )
