"""Which of the faster settings the verdict names: the best one, without any change that adds nothing. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bottleneck_doctor.documents.report import Risk, Setting, Speedup
from bottleneck_doctor.wording import words


@dataclass(frozen=True)
class Claim:
    """A setting that may be claimed to be faster than the training as written. `fix`: the fix that it belongs to; None
    for several fixes together."""

    setting: Setting
    figure: Speedup
    risk: Risk
    fix: str | None = None


def named(claims: Sequence[Claim], adds: Callable[[Setting, Setting], bool]) -> Claim | None:
    """The claim that the verdict names; None if there is none.

    It is the claim whose interval has the highest lower end, unless a claim that changes less is as good. `adds`:
    whether the first setting is surely faster than the second, which changes only a part of the same knobs. Windows of
    the same processes have to show that: each further change is work for the user and may have its own cost, so none is
    recommended because of a random difference.
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
    """Whether `whole` changes every knob that `claim` changes, to whatever value, and more."""
    return claim.setting.keys() < whole.setting.keys()
