"""Pairs of processes: which rounds count beside other programs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.unit.gate_samples import ROUNDS, side

from bottleneck_doctor.documents.report import Surroundings
from bottleneck_doctor.measure.side_pairs import PairSample, SideSample

CALM = (0.02, 0.0, 0.05)


def beside(sample: SideSample, wanted: Sequence[float | None], slow: Sequence[float] = (1.0,) * ROUNDS) -> SideSample:
    """One process whose windows were beside programs that wanted so many of two CPUs, and took longer by a factor."""
    windows = [
        replace(window, around=Surroundings(cpus=2.0, others_wanted=load), seconds=window.seconds * times)
        for window, load, times in zip(sample.windows, wanted, slow, strict=True)
    ]
    return replace(sample, windows=windows)


def ratio(base: SideSample, head: SideSample) -> float:
    return math.exp(PairSample(number=1, base=base, head=head).ratio().log)


def collecting(sample: SideSample, seconds: float) -> SideSample:
    """The same process, in whose windows the garbage collector runs for so long between two epochs."""
    windows = [replace(window, turns=2, turns_collecting=2 * seconds) for window in sample.windows]
    return replace(sample, windows=windows)


def test_what_the_collector_takes_between_epochs_counts_where_both_sides_show_it() -> None:
    """Epochs of 100 steps of 0.1 s, with 10 s of collecting after each, or 1 s."""
    base, head = side(0.1), side(0.1)
    assert ratio(collecting(base, 10.0), collecting(head, 1.0)) == pytest.approx(11 / 20)
    assert ratio(collecting(base, 10.0), head) == pytest.approx(1.0)
    assert ratio(base, collecting(head, 1.0)) == pytest.approx(1.0)
    unknown = [collecting(side(0.1, epoch=None), seconds) for seconds in (10.0, 1.0)]
    assert ratio(*unknown) == pytest.approx(1.0)


@pytest.mark.parametrize("place", range(ROUNDS))
@pytest.mark.parametrize("which", [0, 1])
def test_a_round_that_a_passing_neighbour_disturbed_does_not_count(place: int, which: int) -> None:
    loads, slow = list(CALM), [1.0] * ROUNDS
    loads[place], slow[place] = 1.5, 20.0
    sides = [beside(side(0.10), CALM), beside(side(0.08), CALM)]
    sides[which] = beside(side((0.10, 0.08)[which]), loads, slow)
    pair = PairSample(number=1, base=sides[0], head=sides[1])
    assert len(pair.rounds()) == ROUNDS - 1
    assert math.exp(pair.ratio().log) == pytest.approx(0.8)


def test_the_load_alone_decides_and_not_how_slow_a_window_was() -> None:
    stalled = beside(side(0.08), CALM, (1.0, 5.0, 1.0))
    assert ratio(beside(side(0.10), CALM), stalled) > 1.5
    loaded = beside(side(0.08), (0.02, 1.5, 0.05))
    assert len(PairSample(number=1, base=beside(side(0.10), CALM), head=loaded).rounds()) == ROUNDS - 1


@pytest.mark.parametrize(
    "loads", [(1.5, 1.5, 1.5), (1.5, 0.0, 1.5), (None, None, None)], ids=["stays", "comes and goes", "not seen"]
)
def test_what_is_there_most_of_the_time_belongs_to_the_machine(loads: Sequence[float | None]) -> None:
    base, head = beside(side(0.10), loads), beside(side(0.08), loads)
    assert len(PairSample(number=1, base=base, head=head).rounds()) == ROUNDS


@pytest.mark.parametrize(
    ("loads", "usual", "counted"),
    [
        ((1.5, 1.4, 0.05), (), 3),  # Nobody could tell it from a neighbour that stays.
        ((1.5, 1.4, 0.05), (0.05, 0.0, 0.1, 0.0), 3),  # Too few are left.
        ((1.5, 0.0, 0.05), (0.05, 0.0, 0.1, 0.0), 2),
        ((1.5, 1.4, 1.5), (0.6, 0.5, 0.6, 0.5), 3),  # It was there before: on this scale, 1.5 threads are 0.56.
    ],
)
def test_a_burst_is_known_by_the_pairs_before(loads: Sequence[float], usual: Sequence[float], counted: int) -> None:
    pair = PairSample(number=2, base=beside(side(0.10), loads), head=beside(side(0.08), loads), usual=usual)
    assert len(pair.rounds()) == counted


def test_all_rounds_count_where_too_few_would_be_left() -> None:
    base, head = beside(side(0.10), (1.5, 0.0, 0.0)), beside(side(0.08), (0.0, 1.5, 0.0))
    assert len(PairSample(number=1, base=base, head=head).rounds()) == ROUNDS
