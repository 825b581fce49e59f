"""Which settings spoil the training: the losses of their windows, held against those of windows as written. Pure.

A setting that changes rounding is no fix if the training learns nothing under it, however fast it is. A window starts
from the weights that the window before it left, so the losses of both are about the same, unless the setting changes
them. Confirming compares whole programs and sees small differences (`gate/losses.py`); this sees large ones, in every
examination. It only looks for losses that are higher, since training lowers them:

- a loss counts as higher if it is `MUCH` times as high as in the window as written before it, and in the one after it,
  and the difference is over `MOST_ERRORS` standard errors, by how the losses scatter from step to step;
- losses that are no numbers count if the window as written before them had none;
- a setting spoils the training if that is so in `LEAST_WINDOWS` of its windows, and in half of them or more.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from bottleneck_doctor.documents.labels import key_of
from bottleneck_doctor.documents.report import FixOutcome, Setting, Window, WindowLoss
from bottleneck_doctor.examine.evidence import Candidate
from bottleneck_doctor.measure.measurements import Measurements
from bottleneck_doctor.measure.schedule import probe
from bottleneck_doctor.wording import words

MUCH = 1.5
"""Ours: rounding to bfloat16 changes the loss of a network that can learn in it by a few percent."""
MOST_ERRORS = 5.0
LEAST_WINDOWS = 2
"""A claim takes two processes, so what is claimed has as many."""
MOSTLY = 0.5


class Spoilt:
    """What was seen of all settings. Only settings with a part that changes rounding are held against their losses: of
    others that do the same computation, only luck could say that they spoil it."""

    def __init__(self, windows: Sequence[Window], candidates: Sequence[Candidate]) -> None:
        self._rounding: list[Setting] = [
            {**candidate.base, **setting}
            for candidate in candidates
            if candidate.risk == "numerics"
            for setting in candidate.settings
        ]
        self._reasons = _reasons(windows)

    def why(self, setting: Setting) -> str:
        """Why nobody should train with this setting, as the end of a sentence; "" where nothing speaks against it."""
        parts = [part for part in self._rounding if part.items() <= setting.items()]
        keys = [key_of(setting), *map(key_of, parts)] if parts else []
        return next((self._reasons[key] for key in keys if key in self._reasons), "")

    def told(self, outcome: FixOutcome) -> FixOutcome:
        """The outcome of a fix, as failed if its setting spoils the training."""
        if outcome.speedup is None or not (why := self.why(outcome.setting)):
            return outcome
        return replace(
            outcome,
            status="failed",
            reason=_told(words.estimate_text(outcome.speedup), why),
            speedup=None,
            steady=None,
            added=None,
            confirmed=None,
            change=None,
            more_changes=[],
            more_blocks=None,
        )


def left(
    measured: Measurements, candidates: Sequence[Candidate], rungs: Sequence[tuple[str, Setting]]
) -> list[tuple[str, Setting]]:
    """The rungs that spoil nothing. Settings that do are taken from their candidates, which have failed by them, and
    are measured no more: no speed makes them fixes."""
    spoilt, speeds = Spoilt(measured.windows, candidates), measured.speeds()
    for candidate in candidates:
        for setting in list(candidate.settings):
            whole = {**candidate.base, **setting}
            key, why = key_of(whole), spoilt.why(whole)
            if why:
                candidate.settings.remove(setting)
                candidate.failures[key] = _told(words.ratio_text(speeds[key]) if key in speeds else "", why)
                measured.rule_out(probe(key, whole), why)
    kept = [(fix, setting) for fix, setting in rungs if not spoilt.why(setting)]
    return kept if len(kept) > 1 else []


def _told(speed: str, why: str) -> str:
    return f"training was {speed} as fast, but {why}" if speed else why


def _reasons(windows: Sequence[Window]) -> dict[str, str]:
    """Why settings spoil the training, by key."""
    seen: defaultdict[str, list[float]] = defaultdict(list)
    for session in {window.session for window in windows}:
        own = [window for window in windows if window.session == session and window.loss is not None]
        for at, window in enumerate(own):
            before = next((each.loss for each in reversed(own[:at]) if not each.setting), None)
            after = next((each.loss for each in own[at + 1 :] if not each.setting), None)
            if window.setting and window.loss is not None and before is not None:
                raised = _raised(window.loss, before, after)
                seen[window.label] += [] if raised is None else [raised]
    reasons = {}
    for key, raised_by in seen.items():
        higher = [each for each in raised_by if each > 1]
        if len(higher) >= LEAST_WINDOWS and len(higher) >= MOSTLY * len(raised_by):
            reasons[key] = _reason(higher, len(raised_by))
    return reasons


def _raised(loss: WindowLoss, before: WindowLoss, after: WindowLoss | None) -> float | None:
    """How many times as high a window's losses are as beside it: infinite if they are no numbers, 1 if they are not
    surely higher; None if nobody can tell."""
    if before.not_finite or before.mean is None:
        return None
    if loss.not_finite or loss.mean is None:
        return math.inf
    # The higher of both: a loss that rises by itself, as from one task to the next, is nobody's fault.
    beside = [each for each in (before, after) if each is not None and each.mean is not None and not each.not_finite]
    higher = max(beside, key=lambda each: each.mean or 0.0)
    if not higher.mean or higher.mean < 0 or min(loss.steps, higher.steps) < 3:
        return None
    error = math.hypot(_error(loss), _error(higher))
    sure = loss.mean > MUCH * higher.mean and loss.mean - higher.mean > MOST_ERRORS * error
    return loss.mean / higher.mean if sure else 1.0


def _error(loss: WindowLoss) -> float:
    return (loss.scatter or 0.0) / math.sqrt(loss.steps)


def _reason(raised: Sequence[float], windows: int) -> str:
    typical = median(raised)
    of_them = f"in {len(raised)} of its {windows} windows"
    if not math.isfinite(typical):
        return f"{of_them} the loss was no number any more, and in the windows before them it was"
    return f"{of_them} the loss was {words.ratio_text(typical, 1)} as high as in the windows beside them"
