"""What is said of the memory that a fix needs beside the training as written."""

from __future__ import annotations

from collections.abc import Sequence

from bottleneck_doctor.documents.report import PeakMemory, Result
from bottleneck_doctor.wording import ranking, words

NOTABLE_SHARE = 0.1
NOTABLE_BYTES = 256 << 20
"""Ours: a fix that needs less than this on top of the training as written, or than a tenth of it, mostly fits."""
_WHERE = {"host": "", "device": " on the device"}


def needs(memory: Sequence[PeakMemory] | None) -> str:
    """`1.2 GiB, 800 MiB as written; on the device no more than as written`; "" where nothing is known."""
    return "; ".join(_needs(each) for each in memory or [])


def promise(result: Result) -> str:
    """A sentence if what is promised needs much more memory, and nothing better is known of it; "" otherwise."""
    promised = ranking.promise(result)
    if promised is None or (result.confirmation is not None and result.confirmation.memory):
        return ""
    return much(promised.memory)


def much(memory: Sequence[PeakMemory] | None) -> str:
    """A sentence if a fix needs much more memory; "" otherwise."""
    for each in memory or []:
        more = each.changed - each.written
        if more >= max(NOTABLE_BYTES, NOTABLE_SHARE * each.written):
            return (
                f"It needs {words.bytes_text(more)} more memory{_WHERE[each.where]}: "
                f"{words.bytes_text(each.changed)}, {words.bytes_text(each.written)} as written."
            )
    return ""


def _needs(memory: PeakMemory) -> str:
    where = f"{_WHERE[memory.where].strip()} " if _WHERE[memory.where] else ""
    written, changed = words.bytes_text(memory.written), words.bytes_text(memory.changed)
    if written == changed:
        return f"{where}no more than as written ({written})"
    return f"{where}{changed}, {written} as written"
