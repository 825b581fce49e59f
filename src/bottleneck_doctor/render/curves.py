"""The curve of speed against number of workers: figures go in, SVG comes out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup

from bottleneck_doctor.render import svg
from bottleneck_doctor.wording import words

LABELS = ("best", "enough")
"""Labels of the worker curve, the weightiest first."""


@dataclass(frozen=True)
class CurvePoint:
    """One point of the worker curve: its speed, with the ends of its interval where it has one.

    `sure`: measured in as many processes as a claim needs.
    """

    workers: int
    speed: float
    low: float | None
    high: float | None
    is_baseline: bool
    label: str = ""
    sure: bool = True


@dataclass(frozen=True)
class Level:
    """A horizontal line: a ceiling, in the unit of the points."""

    label: str
    speed: float


def worker_curve(
    points: Sequence[CurvePoint], levels: Sequence[Level], usable_cpus: int, *, narrow: bool, unit: str
) -> Markup:
    """Speed against number of workers, with error bars, ceilings as lines, and the labelled points marked.

    Points that are not sure are drawn dashed and hollow. `unit`: of every speed, `samples a second`.
    """
    width, height = (360.0, 300.0) if narrow else (860.0, 360.0)
    left, right, top, bottom = 46.0, 16.0, 26.0, 46.0
    points = sorted(points, key=lambda point: point.workers)
    highest = max([p.high or p.speed for p in points] + [level.speed for level in levels] + [0.0])
    ticks = svg.round_ticks(highest * 1.04)
    numbers = [point.workers for point in points]
    many, few = max(numbers, default=1), min(numbers, default=0)
    gaps = [after - before for before, after in pairwise(numbers) if after > before]
    inner = width - left - right - 24
    # A linear axis shows the knee as it is; where small numbers would touch, each doubling takes the same room.
    linear = not gaps or min(gaps) / max(many - few, 1) * inner >= 24

    def x(workers: float) -> float:
        if many == few:
            return left + 12 + inner / 2
        if linear:
            return left + 12 + inner * (workers - few) / (many - few)
        low, high = math.log2(few + 1), math.log2(many + 1)
        return left + 12 + inner * (math.log2(workers + 1) - low) / (high - low)

    def y(speed: float) -> float:
        return height - bottom - (height - top - bottom) * speed / ticks[-1]

    shapes = []
    for tick in ticks:
        shapes.append(svg.tag("line", x1=left, x2=width - right, y1=y(tick), y2=y(tick), class_="grid"))
        label = words.amount_text(tick) if tick and tick != round(tick) else f"{tick:.0f}"
        shapes.append(svg.tag("text", label, x=left - 8, y=y(tick) + 4, class_="tick end"))
    if few <= usable_cpus <= many and len(points) > 1:
        shapes.append(svg.vertical(x(usable_cpus), "cpus", top - 6, height - bottom))
        label = words.count_text(usable_cpus, "usable CPU")
        # Above the plot, clear of the axis' name on the left.
        at = min(max(x(usable_cpus), 165.0), width - 50)
        shapes.append(svg.tag("text", label, x=at, y=12, class_="note middle"))
    used: list[float] = []
    for level in sorted(levels, key=lambda level: -level.speed):
        shapes.append(
            svg.tag("line", x1=left, x2=width - right, y1=y(level.speed), y2=y(level.speed), class_="ceiling-line")
        )
        # The curve rises from the left: a low line has room for its label on the right, a high one on the left.
        right_side = bool(points) and level.speed < 0.75 * points[-1].speed
        text_y = y(level.speed) + (16 if right_side and y(level.speed) + 20 < height - bottom else -6)
        while any(abs(text_y - other) < 14 for other in used):
            text_y += 14
        used.append(text_y)
        label = f"{level.label}: {words.amount_text(level.speed)}"
        at, anchor = (width - right - 4, " end") if right_side else (left + 4, "")
        shapes.append(svg.tag("text", label, x=at, y=text_y, class_="note" + anchor))
    for number in dict.fromkeys(numbers):
        shapes.append(svg.tag("text", str(number), x=x(number), y=height - bottom + 20, class_="tick middle"))
    axis = "worker processes (num_workers)"
    shapes.append(svg.tag("text", axis, x=(left + width - right) / 2, y=height - 6, class_="axis middle"))
    shapes.append(svg.tag("text", unit, x=4, y=12, class_="axis"))
    path = " ".join(f"{svg.number(x(point.workers))},{svg.number(y(point.speed))}" for point in points)
    shapes.append(svg.tag("polyline", points=path, class_="curve"))
    written: list[float] = []
    for point in sorted(points, key=lambda point: LABELS.index(point.label) if point.label in LABELS else len(LABELS)):
        at = x(point.workers)
        if point.low is not None and point.high is not None:
            shapes.append(svg.vertical(at, "error", y(point.high), y(point.low)))
            for end in (point.low, point.high):
                shapes.append(svg.tag("line", x1=at - 4, x2=at + 4, y1=y(end), y2=y(end), class_="error"))
        kind = "point chosen" if point.label else "point baseline" if point.is_baseline else "point"
        kind += "" if point.sure else " unsure"
        shapes.append(svg.tag("circle", cx=at, cy=y(point.speed), r=6.0 if point.label else 4.5, class_=kind))
        label = point.label or ("as written" if point.is_baseline else "")
        # Of two labels that would touch, the first given one is written; the sentence above the chart has both.
        if label and all(abs(at - other) > 52 for other in written):
            written.append(at)
            anchor = "end" if at > width - 110 else "start" if at < left + 60 else "middle"
            # Below the point: above it the error bar and the ceilings are in the way.
            lowest = point.low if point.low is not None else point.speed
            below = y(lowest) + 20
            text_y = below if below < height - bottom - 6 else y(point.high or point.speed) - 10
            kind = "mark-label" if point.label else "note"
            shapes.append(svg.tag("text", label, x=at, y=text_y, class_=f"{kind} {anchor}"))
    said = "; ".join(
        f"{words.count_text(point.workers, 'worker')}: {words.amount_text(point.speed)} {unit}"
        + ("" if point.sure else ", not certain")
        for point in points
    )
    name = "chart narrow" if narrow else "chart wide"
    return svg.drawing(
        name, f"Speed against number of workers. {said}", shapes, width=width, height=height, stretch=False
    )
