"""How much memory a training held: a report in, bytes out."""

from __future__ import annotations

from operator import attrgetter

from bottleneck_doctor.documents.report import Result


def most_bytes(result: Result) -> float | None:
    """The most memory that all processes of the training held in a window; None where nothing was read.

    What processes share counts once. Where no window tells that, it counts for each of them, which may be far more.
    """
    uses = [] if result.utilization is None else result.utilization.windows
    for size in (attrgetter("pss_bytes"), attrgetter("rss_bytes")):
        held = [[size(each) for each in use.processes if each.processes] for use in uses]
        known = [each for each in held if each and None not in each]
        if known:
            return float(max(map(sum, known)))
    return None
