"""Words for what is not yet sure: how likely a fix is to help, what it looked like, and what would settle it. Pure."""

from __future__ import annotations

import math

from bottleneck_doctor.documents.report import FixOutcome, Settle
from bottleneck_doctor.statistics.speedups import MINIMUM_SESSIONS
from bottleneck_doctor.wording import durations, words
from bottleneck_doctor.wording.ranking import HARDLY, LIKELY

OPEN = "Cannot tell"
"""How the part of a verdict begins that says what is open."""


def band(chance: float | None) -> str:
    """`Likely`, `May help` or `Unlikely`; `Not measured` where there is no chance."""
    if chance is None or not math.isfinite(chance):
        return "Not measured"
    return "Likely" if chance >= LIKELY else "Unlikely" if chance < HARDLY else "May help"


def percent_text(chance: float) -> str:
    """`97 %`, and never 0 or 100: it is a chance."""
    percent = round(100 * chance)
    return "over 99 %" if percent >= 100 else "under 1 %" if percent < 1 else f"{percent} %"


def chance_text(fix: FixOutcome) -> str:
    """`Likely (97 %)`; of a report without chances, `Not yet sure`."""
    if fix.chance is None:
        return band(None) if fix.speedup is None else "Not yet sure"
    return f"{band(fix.chance)} ({percent_text(fix.chance)})"


def looked_text(fix: FixOutcome) -> str:
    """What it seems to be worth: `looked 1.85× in 1 process, so at least 1.3×`, `about 1.54× in 3 processes`; "" where
    it was not measured."""
    if fix.speedup is None:
        return ""
    verb = "looked" if fix.speedup.sessions < MINIMUM_SESSIONS else "about"
    least = f", so at least {words.bound_text(fix.at_least)}" if fix.at_least is not None else ""
    return f"{verb} {words.estimate_text(fix.speedup)} in {words.count_text(fix.speedup.sessions, 'process')}{least}"


def is_likely_text(chance: float | None) -> str:
    """A sentence for the verdict; "" where the chance is no news or not known."""
    if chance is None or chance < HARDLY:
        return ""
    return f"It {'is likely to' if chance >= LIKELY else 'may'} help ({percent_text(chance)})."


def settle_time_text(settle: Settle) -> str:
    """`about 5 minutes, with `--only workers``"""
    options = " ".join(f"--only {fix}" for fix in settle.fixes)
    return f"about {durations.spoken_duration(settle.seconds)}, with `{options}`"


def settle_text(command: str, seconds: float, *, rest: bool = False) -> str:
    """`To make sure, run `doctor run --budget 5m --only workers train.py` (about 5 minutes).` `rest`: it measures what
    was not measured yet, and decides nothing that was."""
    purpose = "To measure the rest" if rest else "To make sure"
    return f"{purpose}, run `{command}` (about {durations.spoken_duration(seconds)})."
