"""Intervals hold the truth as often as they say, false claims are rare and true ones are found.

A small version of `benchmarks/intervals.py`, over simulated examinations with known truth. Seeds are fixed. Every
noise meets every number of sessions and of settings, each pair of the two in a third of the noises.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from statistics import fmean
from typing import Any

import pytest
from tests.benchmark import load

simulation = load("intervals")


def small_grid() -> Iterator[Any]:
    for i, noise in enumerate(simulation.NOISES):
        for j, sessions in enumerate(simulation.SESSIONS):
            yield replace(noise, sessions=sessions, settings=simulation.SETTINGS[(i + j) % 3])


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    rows = [simulation.coverage(scenario, 400, seed) for seed, scenario in enumerate(small_grid())]
    print("\n" + simulation.coverage_table(rows))
    assert 0.94 <= fmean(row.mean for row in rows) <= 0.97
    for sessions in simulation.SESSIONS:
        assert 0.94 <= fmean(row.mean for row in rows if row.scenario.sessions == sessions) <= 0.97
    # A row of 400 examinations that share their luck is itself known to about 1 %.
    assert min(row.mean for row in rows) >= 0.92
    # Not only on average: the setting that fares worst of all in a row, by its spread or by chance.
    assert min(row.worst for row in rows) >= 0.88


@pytest.mark.parametrize("sessions", [3, 4, 6])
@pytest.mark.parametrize("noise", ["windows 6 %", "own 6 %", "shared 6 %, own 6 %", "unlike, shared 6 %, own 3 %"])
def test_false_claims_are_rare_where_nothing_differs(noise: str, sessions: int) -> None:
    scenario = next(each for each in simulation.NOISES if each.name == noise)
    claims = simulation.false_claims(replace(scenario, sessions=sessions, settings=10), 250, sessions)
    print(f"\n{noise}, {sessions} sessions: faster {claims.faster:.1%}, faster or slower {claims.different:.1%}")
    assert claims.faster <= 0.05
    assert claims.different <= 0.06  # 5 % and the error of 250 examinations


def test_a_large_speedup_is_found() -> None:
    # A session's luck of 5 %, half of it shared; windows that repeat to 4 %.
    luck = 0.05 / math.sqrt(2)
    scenario = simulation.Scenario("power", 0.04, luck, luck, sessions=4, settings=8)
    assert simulation.power(scenario, math.log(1.5), 200, 3) >= 0.9
