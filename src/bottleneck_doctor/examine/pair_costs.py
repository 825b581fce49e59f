"""Pairs of processes, for settings that a process has to be started with: how many, and how long they take. Pure."""

from __future__ import annotations

from bottleneck_doctor.measure import schedule

PAIRS = schedule.LEAST_SESSIONS
"""Pairs of processes: as many as a claim needs."""
ROUNDS = 3
"""Windows of each process in a pair. Processes differ more than windows do, so they are few, and short."""
BURN_IN_WINDOWS = 1
"""Windows that warming a process up takes, about: they are half as long."""
TOGETHER = 1.4
"""How many times as long as one alone several processes take to start at the same time, about."""


def one_pair(
    settings: int,
    setup_seconds: float,
    window_seconds: float,
    *,
    rounds: int = ROUNDS,
    warming: int = BURN_IN_WINDOWS,
) -> float:
    """Seconds that a pair takes, for so many settings at once beside the training as written: each process warms up for
    `warming` windows, and `rounds` are timed."""
    return TOGETHER * setup_seconds + (1 + settings) * (warming + rounds) * window_seconds


def all_pairs(settings: int, setup_seconds: float, window_seconds: float) -> float:
    """Seconds that all pairs take, for so many settings measured beside the training as written."""
    return PAIRS * one_pair(settings, setup_seconds, window_seconds)
