"""The engine with any number of sides, on a machine that is made up: started, measured in turn, ended and recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.unit.made_up_machine import Machine, Noting, Training

from bottleneck_doctor.errors import DoctorError
from bottleneck_doctor.measure.budget import Budget, OutOfTime
from bottleneck_doctor.measure.side_by_side import SideBySide
from bottleneck_doctor.measure.starter import SECONDS_BETWEEN_STARTS, Broken, Live, Side, Starter
from bottleneck_doctor.protection.protector import Protector
from bottleneck_doctor.runtime.wire.expected import Expected
from bottleneck_doctor.session.ending import Ending
from bottleneck_doctor.session.session import Command

CRASHES = Training(steps=200, code=1)
NO_LOOP = Training(steps=3, code=1)


@dataclass(kw_only=True)
class Sides(Machine):
    """A machine on which several sides train, each by its command's name."""

    sides: Mapping[str, Training] = field(default_factory=dict)

    def trained_by(self, command: Command) -> tuple[str, Training]:
        return command.argv[0], self.sides[command.argv[0]]

    def names(self) -> list[str]:
        """What happened, in order."""
        return [f"{what} {session.who}" for what, session in self.order]


def side(name: str) -> Side:
    return Side(name=name, said=f"the {name}", argv=(name,), cwd=Path(), environment={}, protector=Protector())


class Ran:
    """What `work` did with a process of each side."""

    def __init__(
        self, sides: Mapping[str, Training], work: Callable[[Ran, Sequence[Live]], None], *, patience: float = 60.0
    ) -> None:
        self.machine = Sides(sides=sides)
        self.budget = Budget(300.0, strict=True, now=lambda: self.machine.now)
        self.starter = Starter(self.budget, Noting(self.machine), self.machine.outside())
        self.error: BaseException | None = None
        try:
            with self.starter.live([side(name) for name in sides], what="It", patience=lambda: patience) as lives:
                work(self, lives)
        except (Broken, OutOfTime, KeyboardInterrupt, OSError, DoctorError) as error:
            self.error = error
        self.machine.expects_all_ended()

    def side_by_side(self, lives: Sequence[Live]) -> SideBySide:
        return SideBySide(lives, self.budget, self.starter.outside, window_seconds=0.7)

    @property
    def told(self) -> dict[int, str]:
        """How each session ended, by its number."""
        return {record.number: record.ended for record in self.starter.records}


def nothing(ran: Ran, lives: Sequence[Live]) -> None:
    """All stand at their loops, and that is all."""


THREE = {"one": Training(), "two": Training(start=5.0), "three": Training()}


# -- the starter -------------------------------------------------------------------------------------------------------


def test_all_stand_at_their_loops_and_are_ended_in_reverse() -> None:
    ran = Ran(THREE, nothing)
    assert ran.error is None
    assert ran.machine.names() == [
        *("start one", "start two", "start three", "loop one", "loop three", "loop two"),
        *("end three", "end two", "end one"),
    ]
    assert [record.number for record in ran.starter.records] == [3, 2, 1]
    assert set(ran.told.values()) == {"told to end"}
    assert set(ran.starter.last) == {"one", "two", "three"}


def test_what_a_start_takes_is_known_of_each_and_of_all() -> None:
    starter = Ran(THREE, nothing).starter
    assert starter.setups == pytest.approx({1: 2.08 + 0.2, 2: 5.08, 3: 2.08}, abs=0.3)
    assert starter.setup() == min(starter.setups.values())
    assert starter.setup_seconds == pytest.approx(SECONDS_BETWEEN_STARTS + 5.08, abs=0.3)


@pytest.mark.parametrize(("step", "sooner"), [(2.5, True), (0.01, False)])
def test_the_next_start_is_expected_to_take_what_it_takes(step: float, sooner: bool) -> None:
    """Already after the first, which had to see more steps: then the time that an answer takes is planned."""
    ran = Ran({"one": Training(step=step)}, nothing)
    expected = ran.starter.setup()
    with ran.starter.live([side("one")], what="It", patience=lambda: 60.0):
        first, second = ran.starter.setups.values()
    assert expected == pytest.approx(second, abs=0.3)
    assert (expected < 0.7 * first) is sooner


@pytest.mark.parametrize(("names", "own"), [(("one",), False), (("one", "two"), True)])
def test_several_meet_at_ports_of_their_own(names: Sequence[str], own: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PET_RDZV_ENDPOINT", raising=False)
    ran = Ran({name: Training() for name in names}, nothing)
    environments = [session.command.environment for session in ran.machine.sessions]
    assert all(("MASTER_PORT" in each) == own for each in environments)


def test_who_fails_alone_before_its_loop_is_told() -> None:
    ran = Ran({"one": Training(), "two": NO_LOOP}, nothing)
    assert isinstance(ran.error, Broken)
    assert (ran.error.live.side.name, ran.error.alone, ran.error.everywhere) == ("two", True, False)
    assert ran.machine.names().index("loop one") > ran.machine.names().index("start two")
    assert ran.told == {1: "told to end", 2: "the script failed: ValueError: of its own"}
    assert ran.starter.endings == {2: Ending.CRASH}
    assert ran.starter.last == {}


def test_who_fails_like_all_others_is_not_alone() -> None:
    ran = Ran({"one": NO_LOOP, "two": NO_LOOP}, nothing)
    assert isinstance(ran.error, Broken)
    assert not ran.error.alone
    assert ran.error.everywhere


def test_a_loop_that_takes_too_long_is_not_waited_for() -> None:
    ran = Ran({"one": Training(), "two": Training(start=100.0)}, nothing, patience=10.0)
    assert isinstance(ran.error, OutOfTime)
    assert set(ran.told.values()) == {"the time was over"}
    assert ran.machine.now == pytest.approx(SECONDS_BETWEEN_STARTS + 10.0 + 2 * ran.machine.stopping)


def test_interrupted_all_are_ended() -> None:
    def interrupted(ran: Ran, lives: Sequence[Live]) -> None:
        raise KeyboardInterrupt

    ran = Ran(THREE, interrupted)
    assert isinstance(ran.error, KeyboardInterrupt)
    assert set(ran.told.values()) == {"interrupted"}


def test_an_error_of_whoever_measures_is_not_taken_for_a_start_that_fails() -> None:
    def breaks(ran: Ran, lives: Sequence[Live]) -> None:
        raise OSError(28, "No space left on device")

    assert isinstance(Ran(THREE, breaks).error, OSError)
    unstartable = Ran({"one": Training(), "two": Training(unstartable=True)}, nothing).error
    assert isinstance(unstartable, DoctorError)
    assert unstartable.slug == "entrypoint-unstartable"
    assert "for the two" in unstartable.sentence


# -- side by side ------------------------------------------------------------------------------------------------------


def test_windows_of_three_sides_are_granted_in_turn() -> None:
    order = [("one", "two", "three"), ("three", "one", "two")]
    kept: dict[str, list[int]] = {}

    def measured(ran: Ran, lives: Sequence[Live]) -> None:
        some = ran.side_by_side(lives)
        some.rounds(order)
        kept.update({live.side.name: [window.block for window in some.windows(live)] for live in lives})

    ran = Ran(THREE, measured)
    assert ran.error is None
    windows = [name.split()[1] for name in ran.machine.names() if name.startswith("baseline")]
    assert windows == ["one", "two", "three", "three", "one", "two"]
    assert kept == {name: [1, 2] for name in THREE}


def begun_and_held(ran: Ran) -> list[list[tuple[int, int]]]:
    """With which batch the timed part of each window began, and how many it held, by process."""
    sessions = sorted(ran.machine.sessions, key=lambda session: session.number)
    return [list(zip(session.begun, (grant.steps for grant in session.grants), strict=True)) for session in sessions]


def rounds(ran: Ran, lives: Sequence[Live]) -> None:
    ran.side_by_side(lives).rounds([("one", "two"), ("two", "one"), ("one", "two")])


def test_windows_of_a_round_hold_the_same_steps() -> None:
    faster = Ran({"one": Training(step=0.02), "two": Training(step=0.012)}, rounds)
    one, two = begun_and_held(faster)
    assert one == two
    assert {held for _, held in one} == {59}, "as many as the faster side asks for"
    # One that has a queue to fill leads in for longer, and the other one comes up with it.
    fed = Ran({"one": Training(step=0.02, workers=2), "two": Training(step=0.02)}, rounds)
    one, two = begun_and_held(fed)
    assert one == two


OTHER_ROWS = Training(step=0.012, drawn_by="GroupedByLength")


@pytest.mark.parametrize("other", [Training(step=0.02, loader=False), Training(step=0.02, workers=40), OTHER_ROWS])
def test_windows_that_can_not_hold_the_same_begin_elsewhere_in_each_pair(other: Training) -> None:
    begun = set()
    for _ in range(2):
        ran = Ran({"one": Training(step=0.02), "two": other}, rounds)
        one, two = begun_and_held(ran)
        assert one != two
        begun |= {one[0][0], two[0][0]}
    assert len(begun) > 1


def test_all_time_whole_epochs_or_none_does() -> None:
    def measured(ran: Ran, lives: Sequence[Live]) -> None:
        some = ran.side_by_side(lives)
        assert not some.whole_epochs
        assert SideBySide(lives[:1], ran.budget, ran.starter.outside, window_seconds=0.7).whole_epochs

    assert Ran({"one": Training(epoch=8), "two": Training()}, measured).error is None


@pytest.mark.parametrize(("others", "alone"), [(Training(), True), (CRASHES, False)])
def test_who_fails_is_alone_if_all_others_train_on(others: Training, alone: bool) -> None:
    def measured(ran: Ran, lives: Sequence[Live]) -> None:
        some = ran.side_by_side(lives)
        with pytest.raises(Broken) as broken:
            some.rounds([("one", "two", "three")] * 9)
        assert broken.value.live.side.name == "one"
        counted = [len(some.windows(live)) for live in lives]
        assert some.outlived(broken.value.live) is alone
        assert some.broken is broken.value, "the first that is gone is the one that is told"
        assert [len(some.windows(live)) for live in lives] == counted, "what that took does not count"

    assert Ran({"one": CRASHES, "two": Training(), "three": others}, measured).error is None


@pytest.mark.parametrize("says", [True, False])
@pytest.mark.parametrize("epoch", [5, 100_000])
def test_windows_fit_into_a_life_that_the_program_or_an_earlier_process_tells(says: bool, epoch: int) -> None:
    """Ten epochs of five steps, with windows of three epochs and three more to warm up, are over before both sides have
    shown two."""
    short = Training(step=0.3, steps=50, epoch=epoch, cold=3.0, warming=40.0, says=says)
    ended: list[Broken | None] = []
    kept: list[int] = []

    def measured(ran: Ran, lives: Sequence[Live]) -> None:
        some = ran.side_by_side(lives)
        try:
            some.burn_in()
            some.rounds([("one", "two")] * some.lived_for(10, least=1))
            for live in lives:
                some.note_workers(live)
        finally:
            ended.append(some.broken)
            kept.append(min(len(some.windows(live)) for live in lives))

    ran = Ran({"one": short, "two": short}, measured)
    if not says:
        assert isinstance(ran.error, Broken)
        assert ended[-1] is not None
        assert ran.starter.fewest_steps == 50 - 8
        with ran.starter.live([side("one"), side("two")], what="It", patience=lambda: 60.0) as lives:
            measured(ran, lives)
    assert ended[-1] is None
    assert 2 <= kept[-1] < 10


def test_windows_of_a_long_life_are_as_long_as_usual() -> None:
    lasting = Training(step=0.3, steps=5000, says=True)

    def measured(ran: Ran, lives: Sequence[Live]) -> None:
        some = ran.side_by_side(lives)
        assert some.prober(lives[0]).costs.most_steps is None
        assert some.lived_for(10, least=1) == 10

    assert Ran({"one": lasting, "two": lasting}, measured).error is None


@pytest.mark.parametrize(("step", "thrown_away"), [(2.0, False), (0.2, True)])
def test_no_window_is_thrown_away_where_a_window_takes_long(step: float, thrown_away: bool) -> None:
    """Long steps have warmed up what finds its loop by them, and no short window is left to look at workers in."""
    training = Training(step=step, cold=3.0, warming=2.0, workers=2)

    def measured(ran: Ran, lives: Sequence[Live]) -> None:
        some = ran.side_by_side(lives)
        some.burn_in()
        some.rounds([("one", "two"), ("two", "one")])
        for live in lives:
            some.note_workers(live)
            assert live.worker_bytes is not None
        counted = sum(len(some.windows(live)) for live in lives)
        assert counted == 4
        assert (ran.machine.granted > counted) is thrown_away

    assert Ran({"one": training, "two": training}, measured).error is None


@pytest.mark.parametrize(("step", "thrown_away"), [(0.1, 3), (0.2, 2)])
def test_no_process_trains_long_only_to_be_warm(step: float, thrown_away: int) -> None:
    """A third window would not be level either."""
    training = Training(step=step, cold=3.0, warming=6.0)

    def measured(ran: Ran, lives: Sequence[Live]) -> None:
        ran.side_by_side(lives).burn_in()
        assert ran.machine.granted == thrown_away * len(lives)

    assert Ran({"one": training, "two": training}, measured).error is None


def test_a_call_of_a_closure_is_not_held_against_a_step_of_the_optimizer() -> None:
    """The next processes are told what to look for."""
    by_calls = Training(rung="closure", loader=False)
    ran = Ran({"one": by_calls, "two": Training(loader=False)}, nothing)
    assert isinstance(ran.error, Broken)
    assert (ran.error.live.side.name, ran.error.ending, ran.error.alone) == ("two", Ending.UNLIKE, False)
    assert [ran.starter._expected(side(name)) for name in ("one", "two")] == [Expected("closure", 1, [])] * 2
    assert Ran({"one": by_calls, "two": by_calls}, nothing).error is None
