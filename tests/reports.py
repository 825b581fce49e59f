"""Results that tests draw: recorded ones (`golden/record.py`) and made-up ones (`golden/build.py`).

Made up are a training on GPUs, one whose every text is an attack, one where nothing could be claimed, and a `pets` into
which tests put figures of their own; of that one there is no golden page.
"""

from __future__ import annotations

from pathlib import Path

from bottleneck_doctor.documents.report import Result, from_json

GOLDEN = Path(__file__).parent / "golden"
INVENTED = GOLDEN / "invented"
RECORDED_NAMES = ("pets", "nothing-faster", "bare-loop", "interrupted", "no-baseline")
INVENTED_NAMES = ("gpu", "hostile", "undecided")
DRAWN = dict.fromkeys(RECORDED_NAMES, GOLDEN) | dict.fromkeys(INVENTED_NAMES, INVENTED)
"""The folder of each result of which there is a golden page."""


def recorded(name: str) -> Result:
    return _read(GOLDEN / f"{name}.json")


def invented(name: str) -> Result:
    return _read(INVENTED / f"{name}.json")


def drawn(name: str) -> Result:
    """A result of which there is a golden page."""
    return _read(DRAWN[name] / f"{name}.json")


def _read(path: Path) -> Result:
    return from_json(path.read_bytes(), source=path.name)
