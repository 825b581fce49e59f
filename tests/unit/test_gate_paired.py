"""Pairs of processes of which one does not last: whose fault that is, and what may be said of such a pair."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.diagnosable import FOUND
from tests.unit.gate_samples import pair as gate_pair
from tests.unit.gate_samples import window

from bottleneck_doctor.documents.report import Surroundings, Window
from bottleneck_doctor.gate import plan
from bottleneck_doctor.gate.check import Checking
from bottleneck_doctor.gate.paired import Pairs
from bottleneck_doctor.gate.request import CheckRequest
from bottleneck_doctor.measure import schedule
from bottleneck_doctor.measure.budget import Budget
from bottleneck_doctor.measure.costs import Costs
from bottleneck_doctor.measure.outside import Outside
from bottleneck_doctor.measure.side_by_side import SideBySide
from bottleneck_doctor.measure.side_pairs import PairSample
from bottleneck_doctor.measure.starter import Broken, Live, Side, Starter
from bottleneck_doctor.protection.protector import Protector
from bottleneck_doctor.session.ending import Ending, SessionOver
from bottleneck_doctor.session.session import Command, Session
from bottleneck_doctor.session.start import Start
from bottleneck_doctor.system.progress import SilentProgress

CRASH = SessionOver(Ending.CRASH, "no such file", tail="no such file")
END = SessionOver(Ending.END)


class Trains:
    """Stands where a prober stands: each window has twelve steps, and after `lasts` of them the process is gone."""

    def __init__(self, lasts: int, over: SessionOver) -> None:
        self.costs = Costs(schedule.shape_of(FOUND), 0.1, plan.WINDOW_SECONDS)
        self.block = 0
        self.device_bytes = self.device_reserved_bytes = None
        self.losses: dict[int, float] = {}
        self.epoch_seen: int | None = None
        self.granted = 0
        self.position = 0
        self._lasts = lasts
        self._over = over

    def size(self, session: object, each: object, seconds: float) -> schedule.WindowSize:
        return schedule.WindowSize(2, 12)

    def measure(
        self, session: object, each: object, *, seconds: float | None = None, size: schedule.WindowSize | None = None
    ) -> Window:
        if self.granted == self._lasts:
            raise self._over
        self.granted += 1
        return window(self.block, 0.1)

    def explain(
        self, session: object, each: object, *options: object, **limits: object
    ) -> tuple[Window, dict[str, Any]]:
        return replace(self.measure(session, each), status="failed"), {}


@pytest.fixture
def lives() -> Iterator[tuple[Live, Live]]:
    base, head = (
        Live(
            Side(name=name, said=f"the {name}", argv=(), cwd=Path(), environment={}, protector=Protector()),
            Session(Command((), Path()), 1),
            found=FOUND,
        )
        for name in ("base", "head")
    )
    yield base, head
    for each in (base, head):
        each.session.stop()


class Beside(Trains):
    """The same beside other programs that want so many of two CPUs in one window after another, and then none."""

    def __init__(self, lasts: int, *wanted: float) -> None:
        super().__init__(lasts, END)
        self._wanted = list(wanted)

    def measure(self, *asked: Any, **options: Any) -> Window:
        wanted = self._wanted.pop(0) if self._wanted else 0.0
        return replace(super().measure(*asked, **options), around=Surroundings(cpus=2.0, others_wanted=wanted))


class Pair:
    """A pair whose processes last for so many windows."""

    def __init__(self, lives: tuple[Live, Live], base: tuple[int, SessionOver], head: tuple[int, SessionOver]) -> None:
        budget = Budget(300.0, strict=True)
        starter = Starter(budget, SilentProgress(), Outside(), setup_seconds=10.0)
        self.both = SideBySide(lives, budget, Outside(), window_seconds=plan.WINDOW_SECONDS)
        self.trains = [Trains(lasts, over) for lasts, over in (base, head)]
        for live, trains in zip(lives, self.trains, strict=True):
            self.both._measured[live.side.name].prober = trains  # type: ignore[assignment]
        self._lives = lives
        self.pairs = Pairs(lives[0].side, lives[1].side, starter, random.Random(1))

    def stand_beside(self, *trains: Trains) -> None:
        """Others stand where probers stand."""
        for live, each in zip(self._lives, trains, strict=True):
            self.both._measured[live.side.name].prober = each  # type: ignore[assignment]

    def planned(self, count: int) -> None:
        """So many rounds are planned, and nothing warms up before."""
        own = self.both.lived_for

        def lived_for(rounds: int, *, least: int) -> int:
            return count if least else own(rounds, least=least)

        self.both.burn_in = lambda: None  # type: ignore[method-assign]
        self.both.lived_for = lived_for  # type: ignore[method-assign]

    @property
    def broken(self) -> Broken:
        assert self.both.broken is not None
        return self.both.broken

    def measure(self) -> PairSample:
        return self.pairs.measure(1, self.both)


def test_a_side_that_fails_alone_is_told_by_the_other_that_trains_on(lives: tuple[Live, Live]) -> None:
    made = Pair(lives, base=(1000, END), head=(3, CRASH))
    sample = made.measure()
    assert len(sample.rounds()) == 3
    assert made.broken.live is lives[1]
    assert made.broken.alone
    assert made.trains[0].granted > 5, "it went beyond the step at which the head failed"
    assert len(made.both.windows(lives[0])) <= 4, "and that does not count"


@pytest.mark.parametrize("base", [(4, CRASH), (5, END)])
def test_a_failure_that_the_other_side_did_not_outlive_is_nobody_s(
    lives: tuple[Live, Live], base: tuple[int, SessionOver]
) -> None:
    made = Pair(lives, base=base, head=(3, CRASH))
    made.measure()
    assert not made.broken.alone


def test_what_only_one_side_could_still_show_is_no_difference(lives: tuple[Live, Live]) -> None:
    """The faster side comes to its end first: its memory can't be read any more, and is not gone for that."""
    made = Pair(lives, base=(1000, END), head=(3, END))
    lives[0].own_bytes = 1 << 30
    sample = made.measure()
    assert sample.base.peak_bytes is None
    assert sample.head.peak_bytes is None
    assert sample.base.phases is None


def test_what_both_have_shown_before_still_counts(lives: tuple[Live, Live]) -> None:
    made = Pair(lives, base=(1000, END), head=(3, END))
    for live in lives:
        live.own_bytes = 1 << 30
    sample = made.measure()
    assert sample.base.peak_bytes == sample.head.peak_bytes == 1 << 30


def test_epochs_are_as_long_as_both_sides_have_seen_and_not_as_one_has(lives: tuple[Live, Live]) -> None:
    for base, head in ((30, 30), (30, None)):
        made = Pair(lives, base=(1000, END), head=(1000, END))
        made.trains[0].epoch_seen, made.trains[1].epoch_seen = base, head
        sample = made.measure()
        expected = FOUND.epoch_length if head is None else 30
        assert (sample.base.epoch_batches, sample.head.epoch_batches) == (expected, expected)


def test_what_lies_between_epochs_is_a_part_of_what_a_window_takes(lives: tuple[Live, Live]) -> None:
    """Epochs of two steps of 0.2 s, each with 0.4 s behind it: windows of twelve steps take five seconds."""
    found = replace(FOUND, has_loader=True, num_workers=0, epoch_batches=2, step_seconds=[0.2] * 8)
    shown = replace(window(1, 0.2), steps=12, seconds=2.4, whole_epochs=6, started=0.0, ended=5.2, lead_in_seconds=0.0)
    known = Costs(schedule.shape_of(found), 0.2, plan.WINDOW_SECONDS, brief=True)
    known.learnt(schedule.probe("baseline", {}), shown)
    for live in lives:
        live.found = found
    for seen, least in ((None, 2.4), (known, 4.6)):
        told = None if seen is None else dict.fromkeys(("base", "head"), seen)
        both = SideBySide(
            lives, Budget(300.0, strict=True), Outside(), window_seconds=plan.WINDOW_SECONDS, brief=True, known=told
        )
        assert both.whole_epochs
        assert least <= both.cost_seconds() <= 5.2


BURST = (1.5,) * 40
"""Longer than a pair."""


@pytest.mark.parametrize(
    ("wanted", "usual", "rounds", "counted"),
    [
        ((), [0.0] * 6, 3, 3),
        (BURST[:2], [0.0] * 6, 4, 2),
        (BURST[:3], [0.0] * 6, 5, 2),
        (BURST, [0.0] * 6, 3 + plan.MOST_AGAIN, 3 + plan.MOST_AGAIN),
        (BURST[:3], [], 3, 3),  # In the first pair, nobody knows what is usual.
        (BURST, [math.log1p(1.5 / 2)] * 6, 3, 3),  # It stays.
    ],
)
def test_rounds_follow_those_that_a_burst_disturbed(
    wanted: tuple[float, ...], usual: list[float], rounds: int, counted: int, lives: tuple[Live, Live]
) -> None:
    made = Pair(lives, base=(1000, END), head=(1000, END))
    made.stand_beside(Beside(1000, *wanted), Beside(1000, *wanted))
    made.planned(3)
    made.pairs._loads += usual
    sample = made.measure()
    assert len(sample.base.windows) == rounds
    assert len(sample.rounds()) == counted


def test_a_pair_without_windows_is_lost(lives: tuple[Live, Live]) -> None:
    with pytest.raises(Broken):
        Pair(lives, base=(1000, END), head=(1, END)).measure()


def test_a_check_fails_where_one_side_fails_alone_in_every_pair(lives: tuple[Live, Live]) -> None:
    checking = Checking(CheckRequest(start=Start(script=Path("train.py")), base_ref="main"), SilentProgress())
    sample = Pair(lives, base=(1000, END), head=(1000, END)).measure()
    head, base = (Broken(live, CRASH) for live in reversed(lives))

    def blamed(*cut_short: Broken | None) -> Broken | None:
        checking.pairs = [sample for _ in cut_short]
        checking.cut_short = list(cut_short)
        return checking._fails_alone()

    assert isinstance(sample, PairSample)
    assert blamed(head, head) is head
    assert blamed(base) is base
    assert blamed(head, base) is None
    assert blamed(head, None) is None
    assert blamed(Broken(lives[1], END)) is None
    assert blamed(Broken(lives[1], CRASH, alone=False)) is None


def test_a_regression_that_is_told_when_no_process_stands_is_explained_by_its_phases() -> None:
    checking = Checking(CheckRequest(start=Start(script=Path("train.py")), base_ref="main"), SilentProgress())
    phases = ({"forward": 0.010, "backward": 0.010}, {"forward": 0.016, "backward": 0.010})
    noise = (1.0, 1.002, 0.998, 1.001, 0.999)
    checking.pairs = [gate_pair(number, 0.020, 0.026 * each, phases=phases) for number, each in enumerate(noise, 1)]
    checking.look(last=True)
    checking._explain(None)
    assert [each.name for each in checking.culprits] == ["forward"]
    assert [each.slug for each in checking.warnings] == ["culprits-missing"]
