"""Fixes that act on a part of the training which takes too little time for them to pay, before they are measured. Pure.

Each function returns the reason, as the end of a sentence, or "" if the fix may pay.
"""

from __future__ import annotations

from collections.abc import Mapping

from bottleneck_doctor.documents.report import SamplingProfile
from bottleneck_doctor.examine.evidence import Candidate
from bottleneck_doctor.examine.ladder import WORTH_TRYING
from bottleneck_doctor.explain.phased import DISTURBED
from bottleneck_doctor.profiling.tree import most_within
from bottleneck_doctor.wording import words


def of_phases(candidate: Candidate, shares: Mapping[str, float]) -> str:
    """`shares`: parts of the time of the training as written, by phase.

    They come from one window with timers, whose steps took less than `DISTURBED` times as long as usual. If all of that
    lay in other phases, the true share would be so many times as large.
    """
    share = share_of(candidate, shares)
    if share is None or _pays(DISTURBED * share):
        return ""
    return f"{words.parts_text(candidate.fix.acts_on)} only {words.share_text(share)} of the time"


def share_of(candidate: Candidate, shares: Mapping[str, float]) -> float | None:
    """The part of the time that the fix acts on; None if it may act on all of it. `shares`: as for `of_phases`."""
    return sum(shares[part] for part in candidate.fix.acts_on) if candidate.fix.acts_on else None


def of_samples(candidate: Candidate, sampling: SamplingProfile) -> str:
    """`sampling`: where the training as written was, each time that it was looked at."""
    if not candidate.within:
        return ""
    most = most_within(sampling, candidate.within)
    named = words.listed([f"`{name}`" for _, name in candidate.within])
    return "" if _pays(most) else f"{named} took at most {words.share_text(most)} of the time"


def _pays(share: float) -> bool:
    """Whether training would be faster by what is worth trying, if this part of its time were saved."""
    return 1 / max(1e-9, 1 - share) >= WORTH_TRYING
