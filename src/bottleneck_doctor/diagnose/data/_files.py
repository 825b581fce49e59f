"""Whether loading waits for files. The three rules about files share this answer."""

from __future__ import annotations

from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._rule import PART, Unjudged
from bottleneck_doctor.diagnose.data._loading import reading_share, waited_making

UNSEEN = Unjudged("no line profile shows how much of fetching a sample is reading its file")


def reading(evidence: Evidence) -> float | Unjudged | None:
    """The share of making a batch that lines which open or read files take; None if it is too small to matter.

    Time that nothing accounts for is not taken for reading: a sleep, a lock and a request look the same from outside.
    """
    parts = waited_making(evidence)
    if parts is None:
        return None
    listed = reading_share(evidence)
    if listed is None:
        return UNSEEN
    # Opening and decoding are often one line. Time spent on decoding is not spent on waiting for the file.
    share = max(0.0, min(listed * parts.fetch, parts.fetch - (parts.decode or 0.0)))
    return share if share >= PART else None
