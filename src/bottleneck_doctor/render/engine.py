"""The template engine of all pages: where the templates are, and what happens to every value on its way into them.

Everything is escaped; what the user wrote is shown without hidden characters and cut to a readable length first.
"""

from __future__ import annotations

import re
from pathlib import Path

import jinja2
from markupsafe import Markup, escape

import bottleneck_doctor
from bottleneck_doctor.wording import words

TEXT_LIMIT = 4_000
"""Characters of one text from the user's side: an error may carry a whole build log."""


def templates_folder() -> Path:
    """Where the templates are: inside the installed package, else at the root of the checkout."""
    package = Path(bottleneck_doctor.__file__).resolve().parent
    packed = package / "templates"
    return packed if packed.is_dir() else package.parents[1] / "templates"


def engine() -> jinja2.Environment:
    """The engine with the filters and functions that every page uses. Templates ask for nothing that isn't there."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(templates_folder()),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    made.filters.update(code=with_code, share=_share)
    made.globals.update(place=words.place_text, site_text=words.site_text)
    return made


def _shown(value: object) -> object:
    """Last step before escaping: no hidden characters, no endless texts. Markup is ours and stays."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return words.clipped(words.visible(value), TEXT_LIMIT)
    return value


def _share(share: float) -> str:
    return unbroken(words.share_text(share))


def unbroken(text: str) -> str:
    """`95 %` stays on one line. Not for code, where a no-break space is a syntax error once copied."""
    return re.sub(r"(?<=\d) (?=%)", "\u00a0", text)


def with_code(sentence: str) -> Markup:
    """A sentence with its `backticked` parts as code."""
    shown = words.clipped(words.visible(sentence), TEXT_LIMIT)
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if is_code else escape(unbroken(part))
        for is_code, part in words.code_parts(shown)
    )
