"""The costs of pairs of processes, for settings that a process has to be started with. Pure."""

from __future__ import annotations

from bottleneck_doctor.measure import schedule
from bottleneck_doctor.measure.costs import Costs

PAIRS = schedule.LEAST_SESSIONS
"""Number of pairs: as many as a claim needs."""
ROUNDS = 3
"""Windows of each process in a pair. Processes differ more than windows do, so windows are few and short."""
BURN_IN_WINDOWS = 1
"""About how many full windows warming a process up takes; warm-up windows are half as long."""
TOGETHER = 1.4
"""About how many times as long several processes take to start at the same time, compared with one alone."""


def warming_windows(known: Costs) -> int:
    """How many windows of such a loop warm a process up: none if steps were alike as soon as the loop was found, or are
    so long that these warmed it up."""
    return 0 if known.regular or known.has_long_steps else BURN_IN_WINDOWS


def one_pair(
    settings: int,
    setup_seconds: float,
    window_seconds: float,
    *,
    rounds: int = ROUNDS,
    warming: int = BURN_IN_WINDOWS,
) -> float:
    """Seconds that a pair takes with `settings` processes beside the training as written. Each process warms up for
    `warming` windows, and `rounds` windows are timed."""
    return TOGETHER * setup_seconds + (1 + settings) * (warming + rounds) * window_seconds


def all_pairs(settings: int, setup_seconds: float, window_seconds: float) -> float:
    """Seconds that all pairs take, with `settings` settings measured beside the training as written."""
    return PAIRS * one_pair(settings, setup_seconds, window_seconds)
