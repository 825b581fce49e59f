"""Bars: speeds, speedups with their intervals, and shares of a whole; figures go in, SVG comes out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from markupsafe import Markup

from bottleneck_doctor.documents.report import Speedup
from bottleneck_doctor.render import svg
from bottleneck_doctor.wording import words

BAR_WIDTH = 1000.0
BAR_HEIGHT = 20.0


def _vertical(x: float, class_: str, top: float = 0.0, bottom: float = BAR_HEIGHT) -> Markup:
    return svg.vertical(x, class_, top, bottom)


def _whisker(low: float, high: float, class_: str = "whisker") -> list[Markup]:
    middle = BAR_HEIGHT / 2
    return [
        svg.tag("line", x1=low, x2=high, y1=middle, y2=middle, class_=class_),
        _vertical(low, class_, 5, 15),
        _vertical(high, class_, 5, 15),
    ]


def speed_bar(now: float, best: Speedup | None, ceiling: float | None, unit: str) -> Markup:
    """The verdict's bar: the speed now, best measured and ceiling, from zero.

    `ceiling`: ratio to now, of faster loading; a best that computes faster as well may pass it. `unit`: of `now`.
    """
    ratios = [1.0, best.estimate if best else 1.0, ceiling or 1.0]
    if best is not None and words.has_interval(best):
        ratios.append(best.high)
    across = BAR_WIDTH / max(ratios)
    said = [f"now {words.amount_text(now)} {unit}"]
    shapes: list[Markup] = []
    if ceiling is not None:
        shapes.append(svg.rectangle(0, ceiling * across, "ceiling"))
        said.append(f"ceiling of faster loading {words.amount_text(now * ceiling)}")
    if best is not None:
        shapes.append(svg.rectangle(0, best.estimate * across, "best"))
        said.insert(1, f"best measured {words.amount_text(now * best.estimate)}")
    shapes.append(svg.rectangle(0, across, "now"))
    if best is not None and words.has_interval(best):
        shapes += _whisker(best.low * across, best.high * across)
    if ceiling is not None and best is not None and ceiling < best.estimate:
        shapes.append(_vertical(ceiling * across, "ceiling-mark"))
    return svg.drawing(
        "bar speed-bar", "Speed: " + ", ".join(said), shapes, width=BAR_WIDTH, height=BAR_HEIGHT, stretch=True
    )


def bar_scale(speedups: Sequence[Speedup | None]) -> float:
    """The right end, as a ratio, that holds all these bars and their intervals."""
    ends = [1.25]
    for speedup in speedups:
        if speedup is not None and math.isfinite(speedup.estimate):
            ends.append(speedup.high if words.has_interval(speedup) else speedup.estimate)
    return max(ends) * 1.02


def speedup_bar(speedup: Speedup, scale: float, name: str) -> Markup:
    """One speedup from zero: the baseline's part, the gain (or loss) beside it, and its interval as a whisker."""
    across = BAR_WIDTH / scale
    estimate = speedup.estimate if math.isfinite(speedup.estimate) and speedup.estimate > 0 else 0.0
    shapes = [svg.rectangle(0, min(estimate, 1.0) * across, "now")]
    if estimate > 1:
        shapes.append(svg.rectangle(across, estimate * across, "best"))
    shapes.append(_vertical(across, "unit"))
    if words.has_interval(speedup):
        shapes += _whisker(speedup.low * across, min(speedup.high, scale) * across)
    title = f"{name}: {words.speedup_text(speedup)}"
    return svg.drawing("bar", title, shapes, width=BAR_WIDTH, height=BAR_HEIGHT, stretch=True)


def interval_mark(speedup: Speedup, reach: float, equivalence: float, name: str) -> Markup:
    """An interval around 1 on a scale from `1 - reach` to `1 + reach`, with the band that counts as no difference."""

    def across(ratio: float) -> float:
        return BAR_WIDTH * min(max((ratio - 1 + reach) / (2 * reach), 0.0), 1.0)

    shapes = [svg.rectangle(across(1 - equivalence), across(1 + equivalence), "band", 0, BAR_HEIGHT)]
    shapes.append(_vertical(across(1.0), "unit"))
    if words.has_interval(speedup):
        shapes += _whisker(across(speedup.low), across(speedup.high), "whisker strong")
    if math.isfinite(speedup.estimate):
        shapes.append(_vertical(across(speedup.estimate), "estimate", 3, 17))
    title = f"{name}: {words.speedup_text(speedup)}"
    return svg.drawing("bar mark", title, shapes, width=BAR_WIDTH, height=BAR_HEIGHT, stretch=True)


def interval_reach(speedups: Sequence[Speedup | None]) -> float:
    """Half the width of a scale around 1 that holds these intervals, at least 5 % and at most all the way to 0."""
    ends = [0.05]
    for speedup in speedups:
        if speedup is not None and words.has_interval(speedup):
            ends += [abs(1 - speedup.low), abs(speedup.high - 1)]
        elif speedup is not None and math.isfinite(speedup.estimate):
            ends.append(abs(speedup.estimate - 1))
    return min(max(ends) * 1.08, 1.0)


def phase_bar(shares: Mapping[str, float], name: str) -> Markup:
    """Shares of a step, by phase, as one stacked bar."""
    told = [(words.PHASE_WORDS.get(key, key), value) for key, value in shares.items() if value]
    said = ", ".join(f"{phase} {words.share_text(value)}" for phase, value in told)
    return stacked_bar({f"phase-{key.replace('_', '-')}": value for key, value in shares.items()}, f"{name}: {said}")


def stacked_bar(parts: Mapping[str, float], title: str, whole: float | None = None) -> Markup:
    """Parts of a whole, by class, one after the other. `whole`: what the full width stands for, their sum if None."""
    values = {class_: value for class_, value in parts.items() if math.isfinite(value) and value > 0}
    across = BAR_WIDTH / (max(whole or 0.0, sum(values.values())) or 1.0)
    at, shapes = 0.0, []
    for class_, value in values.items():
        shapes.append(svg.rectangle(at, at + value * across, f"phase {class_}", 0, BAR_HEIGHT))
        at += value * across
    return svg.drawing("bar phase-bar", title, shapes, width=BAR_WIDTH, height=BAR_HEIGHT, stretch=True)


def share_bar(share: float, kind: str = "") -> Markup:
    """A share of its cell's width, for a table whose figure says the same. Empty where there is no share."""
    if not math.isfinite(share):
        return Markup("")
    length = BAR_WIDTH * min(max(share, 0.0), 1.0)
    shapes = [svg.rectangle(0, BAR_WIDTH, "ground", 0, BAR_HEIGHT), svg.rectangle(0, length, "part", 0, BAR_HEIGHT)]
    return svg.drawing(f"bar share {kind}".rstrip(), "", shapes, width=BAR_WIDTH, height=BAR_HEIGHT, stretch=True)
