"""The few pieces of which every drawing is made: figures go in, markup comes out.

No drawing carries a `style=` attribute or a handler, so that the report's content security policy can forbid both;
colours come from classes in the stylesheet. Where that is refused too, as by Jenkins, attributes give plain ones
(`PLAIN`), over which every rule of a stylesheet wins. A drawing has a `<title>` that says in words what it shows, or is
hidden from screen readers where the text beside it says the same. Bars hold no text and stretch to any width; charts
with text come in a wide and a narrow form, of which the stylesheet shows one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from markupsafe import Markup

from bottleneck_doctor.wording import words

_ACCENT, _STRONG, _MIDDLE, _LIGHT, _AMBER, _BLUE = "#14997f", "#66737f", "#97a3ad", "#c3ccd3", "#c47a1a", "#4a7cc4"
PLAIN: Mapping[str, str] = {
    "now": _STRONG, "best": _ACCENT, "ceiling": _LIGHT, "band": _LIGHT, "ground": _LIGHT, "part": _STRONG,
    "estimate": _ACCENT, "grid": _LIGHT, "cpus": _MIDDLE, "ceiling-line": _MIDDLE, "session": _MIDDLE, "lane": "none",
    "phase-data-wait": _ACCENT, "phase-host-to-device": _AMBER, "phase-forward": _STRONG, "phase-backward": _MIDDLE,
    "phase-optimizer": _BLUE, "phase-zero-grad": "#8a6fb0", "phase-between": _LIGHT, "phase-communication": "#b0506b",
    "load-fetch": _LIGHT, "load-collate": _MIDDLE, "load-hand-over": _ACCENT,
    "pause-evaluation": _STRONG, "pause-saving": _MIDDLE, "pause-first-batch": _ACCENT, "pause-collecting": _BLUE,
    "pause-rest": _LIGHT,
    "batch": "#14181c", "written": _LIGHT, "other": "#bfe0d8", "curve": _STRONG, "point": _STRONG, "chosen": _ACCENT,
    "baseline": "none", "series-0": _STRONG, "series-1": _ACCENT, "series-2": _AMBER,
    "series-3": _BLUE, "series-4": _MIDDLE, "series-5": _ACCENT, "series-6": _AMBER, "series-7": _BLUE,
}  # fmt: skip
"""Colours by class where no stylesheet is let in: to be told apart on light and on dark paper. What is not named here,
and all text, has the colour of the page's own text."""

_ANCHORS = {"end": "end", "middle": "middle"}


def number(value: float) -> str:
    """A coordinate, rounded to a tenth."""
    return f"{value:.1f}".rstrip("0").rstrip(".")


def tag(name: str, content: str | Markup = "", **attributes: float | str) -> Markup:
    """One element; `class_` and `stroke_width` become `class` and `stroke-width`, numbers are rounded to a tenth."""
    attributes = {**attributes, **_plain(name, str(attributes.get("class_", "")).split())}
    written = Markup("").join(
        Markup(' {}="{}"').format(
            key.rstrip("_").replace("_", "-"), number(value) if isinstance(value, float) else value
        )
        for key, value in attributes.items()
    )
    return Markup("<{}{}>{}</{}>").format(Markup(name), written, content, Markup(name))


def _plain(name: str, classes: Sequence[str]) -> dict[str, str]:
    """The attributes that stand in for the stylesheet."""
    colour = next((PLAIN[each] for each in reversed(classes) if each in PLAIN), None)
    if name in ("line", "polyline"):
        made = {"stroke": colour or "currentColor"}
        return {"fill": "none", **made} if name == "polyline" else made
    made = {} if colour is None else {"fill": colour}
    if colour == "none" and name == "circle":
        made["stroke"] = _STRONG
    anchor = next((_ANCHORS[each] for each in classes if each in _ANCHORS), None)
    return made if name != "text" or anchor is None else {**made, "text-anchor": anchor}


def drawing(name: str, title: str, shapes: Sequence[Markup], *, width: float, height: float, stretch: bool) -> Markup:
    """The whole of a drawing. An empty `title` hides it from screen readers: for bars beside the figure they show."""
    wide, high = ("100%", number(height)) if stretch else (number(width), number(height))
    return Markup(
        '<svg class="{}" {} width="{}" height="{}" fill="currentColor" font-size="13" viewBox="0 0 {} {}"{} '
        'focusable="false">{}{}</svg>'
    ).format(
        name,
        Markup('role="img"') if title else Markup('aria-hidden="true"'),
        wide,
        high,
        number(width),
        number(height),
        Markup(' preserveAspectRatio="none"') if stretch else "",
        tag("title", words.visible(title)) if title else "",
        Markup("").join(shapes),
    )


def swatch(class_: str) -> Markup:
    """A small square in the colour of that class, for a legend: hidden from screen readers, beside its name."""
    square = tag("rect", width="100%", height="100%", class_=class_)
    return Markup('<svg class="swatch" aria-hidden="true" width="12" height="12" focusable="false">{}</svg> ').format(
        square
    )


def rectangle(start: float, end: float, class_: str, top: float = 4.0, height: float = 12.0) -> Markup:
    """A rectangle from `start` to `end`."""
    return tag("rect", x=start, y=top, width=max(end - start, 0.0), height=height, class_=class_)


def vertical(x: float, class_: str, top: float, bottom: float) -> Markup:
    """A vertical line."""
    return tag("line", x1=x, x2=x, y1=top, y2=bottom, class_=class_)


def round_ticks(top: float, count: int = 4) -> list[float]:
    """Round values from 0 that cover `top`, about `count` steps."""
    if top <= 0 or not math.isfinite(top):
        return [0.0, 1.0]
    magnitude = 10 ** math.floor(math.log10(top / count))
    step = next(magnitude * factor for factor in (1, 2, 2.5, 5, 10) if magnitude * factor * count >= top * 0.999)
    return [step * index for index in range(math.ceil(top / step - 0.001) + 1)]
