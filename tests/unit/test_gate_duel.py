"""Pairs of processes of which one does not last: whose fault that is, and what may be said of such a pair."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.diagnosable import FOUND
from tests.unit.gate_samples import pair as gate_pair
from tests.unit.gate_samples import window

from bottleneck_doctor.documents.report import Window
from bottleneck_doctor.gate.check import Request, _Checking
from bottleneck_doctor.gate.duel import Broken, Contender, Corner, LivePair
from bottleneck_doctor.gate.metrics import PairSample
from bottleneck_doctor.measure.budget import Budget
from bottleneck_doctor.measure.prober import CAME_TO_ITS_END, SessionOver
from bottleneck_doctor.protection.keeper import Keeper
from bottleneck_doctor.session.session import Command, Session
from bottleneck_doctor.session.start import Start
from bottleneck_doctor.system.progress import SilentProgress

CRASH = SessionOver("the script failed: no such file", crashed=True, tail="no such file")
END = SessionOver(CAME_TO_ITS_END)


class Trains:
    """Stands where a prober stands: each window has twelve steps, and after `lasts` of them the process is gone."""

    def __init__(self, lasts: int, over: SessionOver) -> None:
        self.epochs = False
        self.epoch_seconds = 0.0
        self.block = 0
        self.device_bytes = self.device_reserved_bytes = None
        self.granted = 0
        self.granted = 0
        self._lasts = lasts
        self._over = over

    def expected_step(self, setting: object) -> float:
        return 0.1

    def measure(self, session: object, each: object, *, seconds: float | None = None) -> Window:
        if self.granted == self._lasts:
            raise self._over
        self.granted += 1
        return window(self.block, 0.1)

    def explain(self, session: object, each: object, *options: object) -> tuple[Window, dict[str, Any]]:
        return replace(self.measure(session, each), status="failed"), {}


@pytest.fixture
def corners() -> Iterator[tuple[Corner, Corner]]:
    made = [
        Corner(
            Contender(name=name, said=f"the {name}", argv=(), cwd=Path(), roots=(), environment={}, keeper=Keeper()),
            Session(Command((), Path()), 1),
            found=FOUND,
        )
        for name in ("base", "head")
    ]
    yield made[0], made[1]
    for each in made:
        each.session.stop()


def pair(corners: tuple[Corner, Corner], base: tuple[int, SessionOver], head: tuple[int, SessionOver]) -> LivePair:
    live = LivePair(1, *corners, Budget(300.0, strict=True), random.Random(1), 10.0)
    for corner, (lasts, over) in zip(corners, (base, head), strict=True):
        corner.prober = Trains(lasts, over)  # type: ignore[assignment]
    return live


def test_a_side_that_fails_alone_is_told_by_the_other_that_trains_on(corners: tuple[Corner, Corner]) -> None:
    live = pair(corners, base=(1000, END), head=(3, CRASH))
    sample = live.measure()
    assert len(sample.rounds()) == 3
    assert live.broken is not None
    assert live.broken.corner is corners[1]
    assert live.broken.alone
    trained: Any = corners[0].prober
    assert trained.granted > 5, "it went beyond the step at which the head failed"
    assert len(corners[0].windows) <= 4, "and that does not count"


@pytest.mark.parametrize("base", [(4, CRASH), (5, END)])
def test_a_failure_that_the_other_side_did_not_outlive_is_nobody_s(
    corners: tuple[Corner, Corner], base: tuple[int, SessionOver]
) -> None:
    live = pair(corners, base=base, head=(3, CRASH))
    live.measure()
    assert live.broken is not None
    assert not live.broken.alone


def test_what_only_one_side_could_still_show_is_no_difference(corners: tuple[Corner, Corner]) -> None:
    """The faster side comes to its end first: its memory can't be read any more, and is not gone for that."""
    live = pair(corners, base=(1000, END), head=(3, END))
    corners[0].own_bytes = 1 << 30
    sample = live.measure()
    assert live.broken is not None
    assert sample.base.peak_bytes is None
    assert sample.head.peak_bytes is None
    assert sample.base.phases is None


def test_what_both_have_shown_before_still_counts(corners: tuple[Corner, Corner]) -> None:
    live = pair(corners, base=(1000, END), head=(3, END))
    for corner in corners:
        corner.own_bytes = 1 << 30
    sample = live.measure()
    assert sample.base.peak_bytes == sample.head.peak_bytes == 1 << 30


def test_a_pair_without_windows_is_lost(corners: tuple[Corner, Corner]) -> None:
    with pytest.raises(Broken):
        pair(corners, base=(1000, END), head=(1, END)).measure()


def test_a_check_fails_where_one_side_fails_alone_in_every_pair(corners: tuple[Corner, Corner]) -> None:
    checking = _Checking(Request(start=Start(script=Path("train.py")), base_ref="main"), SilentProgress())
    sample = pair(corners, base=(1000, END), head=(1000, END)).measure()
    head, base = (Broken(corner, CRASH) for corner in reversed(corners))

    def blamed(*cut_short: Broken | None) -> Broken | None:
        checking.pairs = [sample for _ in cut_short]
        checking.cut_short = list(cut_short)
        return checking._fails_alone()

    assert isinstance(sample, PairSample)
    assert blamed(head, head) is head
    assert blamed(base) is base
    assert blamed(head, base) is None
    assert blamed(head, None) is None
    assert blamed(Broken(corners[1], END)) is None
    assert blamed(Broken(corners[1], CRASH, alone=False)) is None


def test_a_regression_that_is_told_when_no_process_stands_is_explained_by_its_phases() -> None:
    checking = _Checking(Request(start=Start(script=Path("train.py")), base_ref="main"), SilentProgress())
    phases = ({"forward": 0.010, "backward": 0.010}, {"forward": 0.016, "backward": 0.010})
    noise = (1.0, 1.002, 0.998, 1.001, 0.999)
    checking.pairs = [gate_pair(number, 0.020, 0.026 * each, phases=phases) for number, each in enumerate(noise, 1)]
    checking._look(last=True)
    checking._explain(None)
    assert [each.name for each in checking.culprits] == ["forward"]
    assert [each.slug for each in checking.warnings] == ["culprits-missing"]
