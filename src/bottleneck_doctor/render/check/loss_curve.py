"""The losses of one pair of processes, drawn: points in, a drawing with two lines out."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from bottleneck_doctor.documents.check import LossPoint
from bottleneck_doctor.render.svg import drawing, number, swatch, tag
from bottleneck_doctor.wording.check_words import SideWords

WIDTH, HEIGHT = 720.0, 180.0
LEFT, BOTTOM, TOP = 64.0, 28.0, 12.0
BASE, HEAD = "series series-0", "series series-1"
"""The classes of both lines."""
LEGEND = ("now", "best")
"""Those of a square in the same colour."""


def loss_curve(points: Sequence[LossPoint], sides: SideWords) -> Markup:
    """Loss against optimizer steps on both sides, with a legend; nothing where fewer than two points can be drawn."""
    base = [(point.step, point.base) for point in points if point.base is not None]
    head = [(point.step, point.head) for point in points if point.head is not None]
    if len(base) < 2:
        return Markup("")
    values = [value for _, value in (*base, *head)]
    low, high = min(values), max(values)
    first, last = points[0].step, points[-1].step

    def x(step: int) -> float:
        return LEFT + (WIDTH - LEFT - 8) * (step - first) / max(1, last - first)

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * ((value - low) / (high - low) if high > low else 0.5)

    shapes = [
        _line([(x(step), y(value)) for step, value in line], class_)
        for line, class_ in ((base, BASE), (head, HEAD))
        if len(line) > 1
    ]
    ends = ((high, "end"), (low, "end")) if high > low else ((low, "end"),)
    shapes += [tag("text", f"{value:.3g}", x=LEFT - 8, y=y(value) + 4, text_anchor=at) for value, at in ends]
    shapes += [
        tag("text", str(first), x=LEFT, y=HEIGHT - 8, text_anchor="start"),
        tag("text", f"{last} optimizer steps", x=WIDTH - 8, y=HEIGHT - 8, text_anchor="end"),
    ]
    title = f"Loss against optimizer steps, {sides.on_base} and {sides.on_head}"
    drawn = drawing("losses", title, shapes, width=WIDTH, height=HEIGHT, stretch=False)
    legend = Markup('<p class="note">{}{} &nbsp; {}{}</p>').format(
        swatch(LEGEND[0]), sides.base_title, swatch(LEGEND[1]), sides.head_title
    )
    return drawn + legend


def _line(points: Sequence[tuple[float, float]], class_: str) -> Markup:
    written = " ".join(f"{number(x)},{number(y)}" for x, y in points)
    return tag("polyline", points=written, class_=class_)
