"""Pages beside the report: a template and its values in, one self-contained page without scripts out.

The policy that all pages stand under, the report among them, is made here.
"""

from __future__ import annotations

import base64
import hashlib

from markupsafe import Markup

from bottleneck_doctor import __version__
from bottleneck_doctor.render.engine import engine, templates_folder


def page(template: str, **values: object) -> str:
    """The page that `template` makes of `values`, with the report's stylesheet."""
    style = (templates_folder() / "report.css").read_text(encoding="utf-8")
    text = (
        engine()
        .get_template(template)
        .render(version=__version__, style=Markup(style), policy=content_security_policy(style), **values)
    )
    return text.encode("utf-8", "replace").decode("utf-8")


def content_security_policy(style: str, script: str = "") -> str:
    """A policy that allows this stylesheet, this script if there is one, and nothing else from here or elsewhere."""
    scripts = f"script-src '{_hash(script)}'; " if script else ""
    return f"default-src 'none'; style-src '{_hash(style)}'; {scripts}base-uri 'none'; form-action 'none'"


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
