"""The result as JSON inside the page: what other programs find there, in a form that stays in its place."""

from __future__ import annotations

import json
import re
from dataclasses import asdict

import msgspec

from bottleneck_doctor.documents.report import Result
from bottleneck_doctor.render import thinning

DATA_LIMIT = 300_000
"""Bytes of the embedded data; beyond it the bulky parts are left to report.json."""


def embedded_data(result: Result) -> str:
    """The result as JSON that can stand inside a script element: no `<`, `>`, `&`, line separators nor
    direction overrides in it.

    Where the page would grow too large, evidence is thinned and then left out in the order of `thinning.STEPS`.
    """
    for candidate in thinning.candidates(result):
        text = _text(candidate)
        if text is not None and len(text.encode()) <= DATA_LIMIT:
            return text
    return "{}"


def _text(result: Result) -> str | None:
    """None where a call tree is deeper than an encoder goes."""
    try:
        try:
            text = msgspec.json.encode(result).decode()
        except (UnicodeEncodeError, msgspec.MsgspecError):
            text = json.dumps(asdict(result), default=str)
    except RecursionError:
        return None
    return re.sub("[<>&\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]", lambda found: f"\\u{ord(found[0]):04x}", text)
