"""The few pieces of which every drawing is made: figures go in, markup comes out.

No drawing carries a `style=` attribute or a handler, so that the report's content security policy can forbid both;
colours come from classes in the stylesheet. A drawing has a `<title>` that says in words what it shows, or is hidden
from screen readers where the text beside it says the same. Bars hold no text and stretch to any width; charts with
text come in a wide and a narrow form, of which the stylesheet shows one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup

from bottleneck_doctor.render import words


def number(value: float) -> str:
    """A coordinate, rounded to a tenth."""
    return f"{value:.1f}".rstrip("0").rstrip(".")


def tag(name: str, content: str | Markup = "", **attributes: float | str) -> Markup:
    """One element; `class_` and `stroke_width` become `class` and `stroke-width`, numbers are rounded to a tenth."""
    written = Markup("").join(
        Markup(' {}="{}"').format(
            key.rstrip("_").replace("_", "-"), number(value) if isinstance(value, float) else value
        )
        for key, value in attributes.items()
    )
    return Markup("<{}{}>{}</{}>").format(Markup(name), written, content, Markup(name))


def drawing(name: str, title: str, shapes: Sequence[Markup], *, width: float, height: float, stretch: bool) -> Markup:
    """The whole of a drawing. An empty `title` hides it from screen readers: for bars beside the figure they show."""
    return Markup('<svg class="{}" {} viewBox="0 0 {} {}"{} focusable="false">{}{}</svg>').format(
        name,
        Markup('role="img"') if title else Markup('aria-hidden="true"'),
        number(width),
        number(height),
        Markup(' preserveAspectRatio="none"') if stretch else "",
        tag("title", words.visible(title)) if title else "",
        Markup("").join(shapes),
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
