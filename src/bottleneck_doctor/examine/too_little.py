"""Fixes that act on a part of the training which takes too little time for them to pay, before they are measured. Pure.

Each function returns the reason, as the end of a sentence, or "" if the fix may pay.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from bottleneck_doctor.documents.report import SamplingProfile
from bottleneck_doctor.examine.evidence import TOO_LITTLE, Candidate
from bottleneck_doctor.examine.ladder import WORTH_TRYING
from bottleneck_doctor.explain.phased import DISTURBED
from bottleneck_doctor.measure.measurements import Measurements
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


def of_kernel(candidate: Candidate, bound: float, least: float) -> str:
    """`bound`: as in `KernelTime`. `least`: how many times as fast training has to be for the fix to pay."""
    if not candidate.of_kernel or _pays(bound, least):
        return ""
    return f"the kernel takes only {words.share_text(bound)} of the time"


def leave_out(candidates: Sequence[Candidate], measured: Measurements, why: Callable[[Candidate], str]) -> None:
    """Drop the candidates for which there is a reason, unless a setting of theirs was measured."""
    keys = measured.sessions_by_key().keys()
    for candidate in candidates:
        known = any(candidate.key(setting) in keys for setting in candidate.settings)
        if candidate.settings and not known and (reason := why(candidate)):
            candidate.settings = []
            candidate.refusal = f"{TOO_LITTLE}: {reason}"


def _pays(share: float, least: float = WORTH_TRYING) -> bool:
    """Whether training would be at least so many times as fast if this part of its time were saved."""
    return 1 / max(1e-9, 1 - share) >= least
