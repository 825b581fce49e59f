"""Whether files are what loading waits for: the question that the three rules about files share."""

from __future__ import annotations

from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._loading import limit, reading_share, waited_making
from bottleneck_doctor.diagnose._rule import PART


def reading(evidence: Evidence) -> float | None:
    """The share of making a batch that reading files accounts for; None where something else clearly does.

    A line listing says it outright. Without one it is what neither decoding nor transforms take, where the workers are
    not busy computing.
    """
    parts = waited_making(evidence)
    if parts is None:
        return None
    listed = reading_share(evidence)
    if listed is not None:
        # Opening and decoding are often one line; what decodes does not wait for the file.
        share = max(0.0, min(listed * parts.fetch, parts.fetch - (parts.decode or 0.0)))
        return share if share >= PART else None
    bound = limit(evidence)
    if bound is not None and bound.kind == "cpu":
        return None
    return parts.own if parts.own >= PART else None
