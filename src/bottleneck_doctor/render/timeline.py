"""Some consecutive steps as lanes: the main process, and under it each worker's batches. A `Timeline` in, SVG out."""

from __future__ import annotations

import math
import re

from markupsafe import Markup

from bottleneck_doctor.documents.report import Event, Timeline
from bottleneck_doctor.render import svg
from bottleneck_doctor.wording import words

WIDTH = 860.0
LEFT = 76.0
RIGHT = 12.0
MAIN_HEIGHT = 28.0
LANE_HEIGHT = 18.0
GAP = 6.0
TOP = 6.0
AXIS = 24.0

MOST_LANES = 17
MOST_EVENTS = 500
"""Beyond these a lane is a smear; what is left out is counted in the title."""

THINNEST = 0.4
"""Units of the drawing below which a stretch can't be seen and is left out."""


def timeline(each: Timeline, name: str) -> Markup:
    """The drawing, or nothing where there is no event to draw."""
    events = [event for event in each.events if _drawable(event)]
    if not events or not math.isfinite(each.seconds) or each.seconds <= 0:
        return Markup("")
    lanes = sorted({event.lane for event in events}, key=_lane_order)
    shown = lanes[:MOST_LANES]
    tops, at = {}, TOP
    for lane in shown:
        tops[lane] = at
        at += (MAIN_HEIGHT if lane == "main" else LANE_HEIGHT) + GAP
    height = at + AXIS
    # Half a step more or less than the axis promises must not leave the drawing.
    seconds = max(each.seconds, max(event.start + event.seconds for event in events))
    across = (WIDTH - LEFT - RIGHT) / seconds

    shapes = []
    for tick in _ticks(seconds):
        x = LEFT + tick * across
        shapes.append(svg.vertical(x, "grid", TOP, at))
        anchor = "end" if x > WIDTH - 40 else "start" if tick == 0 else "middle"
        shapes.append(svg.tag("text", words.duration_text(tick), x=x, y=at + 14, class_=f"tick {anchor}"))
    for lane in shown:
        tall = MAIN_HEIGHT if lane == "main" else LANE_HEIGHT
        label = words.clipped(words.visible(lane), 12)
        shapes.append(svg.tag("text", label, x=LEFT - 10, y=tops[lane] + tall / 2 + 4, class_="tick end"))
        shapes.append(svg.rectangle(LEFT, WIDTH - RIGHT, "lane", tops[lane], tall))
    drawn = 0
    for event in sorted(events, key=lambda event: event.start):
        width = event.seconds * across
        if event.lane not in tops or width < THINNEST or drawn >= MOST_EVENTS:
            continue
        drawn += 1
        shapes.append(_stretch(event, LEFT + event.start * across, width, tops[event.lane]))
    left_out = len(lanes) - len(shown)
    said = f"{name}: {words.duration_text(each.seconds)} of training in {words.count_text(len(lanes), 'lane')}"
    said += f", of which {left_out} are not drawn" if left_out else ""
    return svg.drawing("chart timeline", said, shapes, width=WIDTH, height=height, stretch=False)


def _stretch(event: Event, x: float, width: float, top: float) -> Markup:
    """One event: its colour by kind, its name on hover, its batch's number where there is room."""
    tall = MAIN_HEIGHT if event.lane == "main" else LANE_HEIGHT
    kind = re.sub(r"[^a-z]+", "-", event.kind.lower())[:24]
    said = words.PHASE_WORDS.get(event.kind, words.LOADING_WORDS.get(event.kind, words.clipped(event.kind, 60)))
    if event.batch is not None:
        said += f", batch {event.batch}"
    title = svg.tag("title", words.visible(f"{said}: {words.duration_text(event.seconds)}"))
    family = "phase" if event.lane == "main" else "load"
    shapes = [svg.tag("rect", title, x=x, y=top, width=max(width, 0.6), height=tall, class_=f"stretch {family}-{kind}")]
    if event.kind == "fetch" and event.batch is not None and width > 8 + 7 * len(str(event.batch)):
        shapes.append(svg.tag("text", str(event.batch), x=x + 5, y=top + tall - 5, class_="batch"))
    return Markup("").join(shapes)


def _drawable(event: Event) -> bool:
    return math.isfinite(event.start) and math.isfinite(event.seconds) and event.start >= 0 and event.seconds > 0


def _lane_order(lane: str) -> tuple[bool, int, str]:
    digits = re.search(r"\d+", lane)
    return lane != "main", int(digits[0][:9]) if digits else 0, lane


def _ticks(seconds: float) -> list[float]:
    return [tick for tick in svg.round_ticks(seconds, 6) if tick <= seconds]
