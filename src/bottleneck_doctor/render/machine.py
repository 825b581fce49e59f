"""The machine over time: small multiples on one time axis, windows shaded. Series in, SVG out.

A value that the system did not give is a gap in the line, and so is a time in which nothing was sampled: a line drawn
across it would claim what nobody saw.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from markupsafe import Markup

from bottleneck_doctor.documents.report import Span
from bottleneck_doctor.render import svg
from bottleneck_doctor.wording import words

PLOT = 52.0
TITLE = 20.0
LEGEND = 16.0
GAP = 18.0
TOP = 8.0
AXIS = 40.0
MOST_POINTS = 420
MOST_SPANS = 600
LINE_KINDS = 8
"""Looks of lines that the stylesheet has; a ninth line looks like the first."""

BASELINE_LABELS = ("baseline", "aa")
"""The training as written, and the control that measures it a second time."""

Values = Sequence[float | None]


@dataclass(frozen=True)
class Line:
    name: str
    values: Values


@dataclass(frozen=True)
class Panel:
    """One quantity: its lines share an axis from 0 to `least` at least. `unit` writes a value of it."""

    title: str
    lines: list[Line]
    unit: Callable[[float], str]
    least: float = 0.0
    binary: bool = False


def chart(panels: Sequence[Panel], times: Sequence[float], spans: Sequence[Span], *, narrow: bool) -> Markup:
    """All panels, one above the other."""
    stretches = _stretches(times, MOST_POINTS // 2 if narrow else MOST_POINTS)
    if not stretches or not panels:
        return Markup("")
    width, left, right = (360.0, 70.0, 6.0) if narrow else (860.0, 70.0, 12.0)
    # Relative, too: where a damaged report holds a time of 1e300, a billionth of a second is nothing beside it.
    first, last = times[0], max(times[-1], times[0] + max(1e-9, 1e-9 * abs(times[0])))

    def x(seconds: float) -> float:
        return left + (width - left - right) * (min(max(seconds, first), last) - first) / (last - first)

    frames, at = [], TOP
    for panel in panels:
        rows = _legend_rows([line.name for line in panel.lines], width - left - right) if len(panel.lines) > 1 else []
        top = at + TITLE + len(rows) * LEGEND
        frames.append((panel, at, top, rows))
        at = top + PLOT + GAP
    bottom = at - GAP
    shapes = _sessions(spans, x, bottom, width)
    for panel, above, top, rows in frames:
        shapes += _shades(spans[:MOST_SPANS], x, top)
        runs = [_runs(line.values, times, stretches) for line in panel.lines]
        shapes += _panel(panel, runs, above, top, rows, (left, width - right), x)
    for tick in svg.round_ticks(last - first, 3 if narrow else 6):
        if tick <= last - first:
            anchor = "start" if tick == 0 else "end" if x(first + tick) > width - 40 else "middle"
            shapes.append(
                svg.tag("text", words.duration_text(tick), x=x(first + tick), y=bottom + 34, class_=f"tick {anchor}")
            )
    said = "The machine over time: " + ", ".join(panel.title for panel in panels)
    name = "chart narrow machine-chart" if narrow else "chart wide machine-chart"
    return svg.drawing(name, said, shapes, width=width, height=bottom + AXIS, stretch=False)


def _panel(
    panel: Panel,
    lines: list[list[list[tuple[float, float]]]],
    above: float,
    top: float,
    rows: list[list[tuple[float, int, str]]],
    ends: tuple[float, float],
    x: Callable[[float], float],
) -> list[Markup]:
    left, right = ends
    highest = max([panel.least, *(value for runs in lines for run in runs for _, value in run)])
    step = _binary_unit(highest) if panel.binary else 1.0
    ticks = [tick * step for tick in svg.round_ticks(highest / step, 4)]
    shapes = [svg.tag("text", panel.title, x=left, y=above + 13, class_="panel-title")]
    for index, row in enumerate(rows):
        for offset, kind, name in row:
            y = above + TITLE + index * LEGEND + 7
            shapes.append(
                svg.tag("line", x1=left + offset, x2=left + offset + 14, y1=y, y2=y, class_=f"series series-{kind}")
            )
            shapes.append(svg.tag("text", name, x=left + offset + 19, y=y + 4, class_="note"))

    def y_of(value: float) -> float:
        return top + PLOT * (1 - min(max(value, 0.0), ticks[-1]) / ticks[-1])

    for tick in (0.0, ticks[-1]):
        shapes.append(svg.tag("line", x1=left, x2=right, y1=y_of(tick), y2=y_of(tick), class_="grid"))
        shapes.append(svg.tag("text", panel.unit(tick), x=left - 8, y=y_of(tick) + 4, class_="tick end"))
    for kind, runs in enumerate(lines):
        for run in runs:
            path = " ".join(f"{svg.number(x(at))},{svg.number(y_of(value))}" for at, value in run)
            if len(run) == 1:
                # A line of one point has no length: its round end is what is seen.
                path = f"{path} {path}"
            shapes.append(svg.tag("polyline", points=path, class_=f"series series-{kind % LINE_KINDS}"))
    return shapes


def _binary_unit(value: float) -> float:
    return float(1024 ** max(0, min(4, int(math.log2(value) // 10)))) if value >= 1 else 1.0


def _legend_rows(names: Sequence[str], room: float) -> list[list[tuple[float, int, str]]]:
    """Names with their places, in as many rows as they need. Widths are estimates: the text's font is the reader's."""
    rows: list[list[tuple[float, int, str]]] = [[]]
    at = 0.0
    for kind, name in enumerate(names):
        shown = words.clipped(words.visible(name), 28)
        width = 19 + 6.8 * len(shown) + 16
        if at and at + width > room:
            rows.append([])
            at = 0.0
        rows[-1].append((at, kind % LINE_KINDS, shown))
        at += width
    return rows


def _shades(spans: Sequence[Span], x: Callable[[float], float], top: float) -> list[Markup]:
    """All windows of a panel: one shape for those as written, one for the others."""
    paths: dict[str, list[str]] = {}
    for span in spans:
        if span.end > span.start:
            left = x(span.start)
            width = max(x(span.end) - left, 0.5)
            path = f"M{svg.number(left)} {svg.number(top)}h{svg.number(width)}v{svg.number(PLOT)}h-{svg.number(width)}z"
            paths.setdefault("written" if is_baseline(span.label) else "other", []).append(path)
    return [svg.tag("path", d="".join(parts), class_=f"window {kind}") for kind, parts in paths.items()]


def is_baseline(label: str) -> bool:
    """Whether a window of this label ran the training as written, be it under a profiler: `sampled: baseline`."""
    return label.rpartition(": ")[2] in BASELINE_LABELS


def _sessions(spans: Sequence[Span], x: Callable[[float], float], bottom: float, width: float) -> list[Markup]:
    """Where each session's first window begins, on the axis; names that would touch are left out."""
    starts: dict[int, float] = {}
    for span in spans:
        starts[span.session] = min(starts.get(span.session, math.inf), span.start)
    shapes: list[Markup] = []
    taken = -math.inf
    for session, start in sorted(starts.items(), key=lambda item: item[1]):
        at = x(start)
        shapes.append(svg.vertical(at, "session", bottom, bottom + 6))
        if at - taken > 66 and at < width - 58:
            shapes.append(svg.tag("text", f"session {session}", x=at, y=bottom + 18, class_="note"))
            taken = at
    return shapes


def _stretches(times: Sequence[float], most: int) -> list[list[range]]:
    """Samples, several to a point, so that there are `most` points at most; a new stretch after each hole in time.

    A hole is five times as long as samples usually are apart.
    """
    if not times or not all(math.isfinite(time) for time in times):
        return []
    apart = [later - earlier for earlier, later in pairwise(times)]
    hole = 5 * median(apart) if apart else math.inf
    breaks = [at for at, seconds in enumerate(apart, start=1) if seconds > hole]
    stride = max(1, math.ceil(len(times) / most))
    return [
        [range(at, min(at + stride, end)) for at in range(start, end, stride)]
        for start, end in pairwise([0, *breaks, len(times)])
    ]


def _runs(values: Values, times: Sequence[float], stretches: list[list[range]]) -> list[list[tuple[float, float]]]:
    """The points of one line as `(time, mean)`, a run for each part of it without a gap."""
    runs: list[list[tuple[float, float]]] = []
    for stretch in stretches:
        runs.append([])
        for samples in stretch:
            known = [value for at in samples if at < len(values) and (value := values[at]) is not None]
            known = [value for value in known if math.isfinite(value)]
            if known:
                middle = (times[samples[0]] + times[samples[-1]]) / 2
                runs[-1].append((middle, sum(known) / len(known)))
            elif runs[-1]:
                runs.append([])
    return [run for run in runs if run]
