"""Which of the settings that are faster the verdict names: the best that asks for nothing without need. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bottleneck_doctor.documents.report import Risk, Setting, Speedup
from bottleneck_doctor.wording import words


@dataclass(frozen=True)
class Claim:
    """A setting that is faster than the training as written, and may be said to be. `fix`: the one that it belongs to;
    None where it is several fixes together."""

    setting: Setting
    figure: Speedup
    risk: Risk
    fix: str | None = None


def named(claims: Sequence[Claim], adds: Callable[[Setting, Setting], bool]) -> Claim | None:
    """The claim that leads; None where there is none.

    That is the one whose interval begins highest, unless one that changes less is as good. `adds`: whether the first
    setting is faster than the second, which changes a part of the same knobs. It has to show in windows of the same
    processes: each further change is work for the user and may cost something, so none is asked for by chance.
    """
    leading = max(claims, key=_lower_end, default=None)
    while leading is not None:
        enough = [each for each in claims if _is_part(each, leading) and not adds(leading.setting, each.setting)]
        if not enough:
            return leading
        leading = max(enough, key=_lower_end)
    return None


def _lower_end(claim: Claim) -> float:
    return words.lower_end(claim.figure)


def _is_part(claim: Claim, whole: Claim) -> bool:
    """Whether the other claim changes every knob that this one changes, to whatever value, and more."""
    return claim.setting.keys() < whole.setting.keys()
