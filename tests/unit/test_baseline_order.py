"""The order of a stored baseline, and of a check against one, on a machine that is made up: one process at a time."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from tests.unit.made_up_check import Checked, Held, Recorded, Trainings
from tests.unit.made_up_machine import FOUND_AFTER, Training
from tests.unit.stored_samples import stored

from bottleneck_doctor.documents.check import HOST_MEMORY
from bottleneck_doctor.errors import DoctorError
from bottleneck_doctor.gate.baseline import against
from bottleneck_doctor.gate.baseline.recording import PROCESSES
from bottleneck_doctor.gate.decide import LEAST_PAIRS
from bottleneck_doctor.gate.paired import MOST_BROKEN_PAIRS
from bottleneck_doctor.gate.plan import LEAST_ROUNDS, MOST_ROUNDS
from bottleneck_doctor.gate.request import DEFAULT_BUDGET
from bottleneck_doctor.measure.starter import SECONDS_BETWEEN_STARTS

SLOWER = Training(step=0.020)
CRASHES = Training(steps=200, code=1)
"""In its third window."""
CRASHES_EARLY = Training(steps=100, code=1)
"""In its second."""
NO_LOOP = Training(steps=FOUND_AFTER - 3, code=1)
SLOW_START = Training(start=1000.0)
RESTLESS = [Training(step=0.010 * (1 + offset)) for offset in (0.05, -0.04, 0.08, 0.01, 0.06, 0.03)]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The working folder, in no repository."""
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.chdir(tmp_path)


def error_of(ran: Recorded | Checked | Held) -> DoctorError:
    assert ran.error is not None
    return ran.error


def count(ran: Held) -> int:
    """Processes that counted."""
    return len(ran.check.processes)


# -- one process -------------------------------------------------------------------------------------------------------

ONE = ("start head", "loop head", "window head", "window head", "window head", "phases head", "end head")


def test_one_process_after_another() -> None:
    for ran in (Recorded(Training(), processes=3), Held(Training(), processes=3)):
        assert ran.names == [*ONE * 3]
        starts = [session.started for session in ran.machine.sessions]
        assert all(later - earlier >= SECONDS_BETWEEN_STARTS - 1e-9 for earlier, later in pairwise(starts))


def test_starts_are_a_second_apart_however_short_a_process_is() -> None:
    """Programs that name folders by the second must not collide."""
    short = Training(start=0.1, step=0.001, steps=FOUND_AFTER, code=1)
    ran = Recorded(short, processes=3)
    starts = [session.started for session in ran.machine.sessions]
    assert len(starts) == MOST_BROKEN_PAIRS
    assert all(later - earlier >= SECONDS_BETWEEN_STARTS - 1e-9 for earlier, later in pairwise(starts))


def test_a_cold_process_warms_up_before_anything_counts() -> None:
    ran = Recorded(Training(cold=4.0, warming=4.0), processes=2)
    warming = ("burn-in head",) * 3
    assert ran.names == [*(*ONE[:2], *warming, *ONE[2:]) * 2]
    for draw in ran.draws:
        assert draw.steps == pytest.approx([0.010] * 3, rel=0.002)


def test_memory_is_read_after_each_window() -> None:
    seen = Recorded(Training(), processes=2).with_looks()
    windows = [place for place, name in enumerate(seen) if name == "window head"]
    assert len(windows) >= 2 * LEAST_ROUNDS
    assert {seen[place + 1] for place in windows} == {"memory head"}
    assert [seen[place - 1] for place, name in enumerate(seen) if name == "phases head"] == ["workers head"] * 2


def test_memory_is_that_of_the_process() -> None:
    drawn = Recorded([Training(), Training(memory=3 << 29)], processes=2).draws
    assert [draw.figures[HOST_MEMORY] for draw in drawn] == [1 << 30, 3 << 29]


def test_a_start_that_takes_long_is_worth_more_windows_where_there_is_time() -> None:
    def windows(start: float, budget: float) -> int:
        ran = Recorded(Training(start=start), budget=budget)
        return ran.names[: ran.names.index("end head")].count("window head")

    assert windows(1.0, 300.0) == 3
    assert 6 <= windows(9.0, 300.0) <= MOST_ROUNDS
    assert windows(9.0, 90.0) == LEAST_ROUNDS


@pytest.mark.parametrize(("first", "whole"), [(0.04, True), (0.06, False)])
def test_the_first_process_says_for_all_whether_windows_are_whole_epochs(first: float, whole: bool) -> None:
    """What a window holds must be the same in all that are compared."""
    ran = Recorded([Training(step=first, epoch=40), Training(step=0.1 - first, epoch=40)], processes=2)
    assert [draw.whole_epochs for draw in ran.draws] == [whole, whole]
    for session in ran.machine.sessions:
        timed = [grant for grant in session.grants if grant.mode == "timed"]
        assert len(timed) >= LEAST_ROUNDS
        assert all(bool(grant.epochs) == whole for grant in timed)


def test_a_check_has_the_windows_of_the_baseline() -> None:
    baseline = stored(step=0.010)
    assert not baseline.draws[0].whole_epochs
    ran = Held(Training(epoch=40), baseline)
    assert all(not grant.epochs for session in ran.machine.sessions for grant in session.grants)


# -- how many ----------------------------------------------------------------------------------------------------------


def test_a_baseline_has_as_many_as_are_asked_for() -> None:
    assert len(Recorded(Training()).draws) == PROCESSES
    assert len(Recorded(Training(start=90.0), processes=5).draws) == 5


def test_a_budget_holds_as_many_as_fit() -> None:
    ran = Recorded(Training(), budget=60.0)
    one = ran.machine.now / len(ran.draws)
    assert 60.0 - one - 0.1 <= ran.machine.now <= 60.0
    assert len(ran.draws) > PROCESSES


@pytest.mark.parametrize(("head", "status"), [(Training(), "passed"), (SLOWER, "regressed")])
def test_a_clear_answer_after_few_processes_ends_it(head: Training, status: str) -> None:
    ran = Held(head)
    assert count(ran) == LEAST_PAIRS
    assert len(ran.machine.sessions) == LEAST_PAIRS
    assert ran.check.status == status


def test_of_few_times_it_is_looked_only_at_the_end() -> None:
    """A look early costs more sureness there than it saves time."""
    baseline = stored(times=against.LOOKED_AT_TWICE - 1, step=0.010)
    assert count(Held(SLOWER, baseline)) == 5


def test_it_goes_on_while_nothing_is_clear() -> None:
    ran = Held(RESTLESS)
    assert LEAST_PAIRS < count(ran) == 5, "as many as one of the stored times has"
    assert ran.check.status == "cannot_tell"


@pytest.mark.parametrize("head", [Training(), SLOWER])
def test_a_number_that_was_asked_for_is_kept(head: Trainings) -> None:
    assert count(Held(head, processes=4)) == 4


def test_a_budget_that_is_over_leaves_what_there_is() -> None:
    fits = Held(RESTLESS, budget=16.0)
    assert count(fits) == 3
    assert fits.machine.now <= 16.0
    middle = Held([*RESTLESS[:2], SLOW_START], budget=40.0)
    assert count(middle) == 2
    assert middle.names[-2:] == ["start head", "end head"]
    assert middle.machine.now <= 41.0


def test_no_process_at_all_is_an_error() -> None:
    for ran in (Recorded(SLOW_START, budget=40.0), Held(SLOW_START, budget=40.0)):
        assert error_of(ran).slug == "out-of-time"
        assert ran.names == ["start head", "end head"]
        assert ran.machine.now <= 41.0


def test_without_a_budget_processes_take_what_they_take() -> None:
    ran = Held(Training(start=150.0), processes=3)
    assert count(ran) == 3
    assert ran.machine.now > DEFAULT_BUDGET


def test_nothing_is_sampled() -> None:
    """No process of the baseline is there to be sampled beside the head's: phases that are stored say why."""
    ran = Held(SLOWER)
    assert not [name for name in ran.names if name.startswith(("sampled", "lines"))]
    assert "culprits-missing" in ran.warnings


# -- who fails ---------------------------------------------------------------------------------------------------------


def test_windows_before_a_crash_count_and_another_process_is_started() -> None:
    ran = Recorded([CRASHES, Training()], processes=3)
    assert [len(draw.steps) for draw in ran.draws] == [2, 3, 3]
    assert len(ran.machine.sessions) == 3
    assert ran.warnings == {"script-failed-later"}


def test_a_process_that_crashes_before_two_windows_is_replaced() -> None:
    ran = Recorded([Training(), CRASHES_EARLY, Training()], processes=3)
    assert len(ran.draws) == 3
    assert len(ran.machine.sessions) == 4
    assert ran.warnings == {"script-failed-later"}


def test_it_ends_after_some_lost_processes() -> None:
    ran = Recorded([Training(), CRASHES_EARLY], processes=5)
    assert len(ran.draws) == 1
    assert len(ran.machine.sessions) == 1 + MOST_BROKEN_PAIRS


def test_a_check_says_what_there_is_after_some_lost_processes() -> None:
    for measured in (1, 2):
        ran = Held([*[Training()] * measured, CRASHES_EARLY])
        assert count(ran) == measured
        assert ran.check.status == "cannot_tell"
        assert ran.warnings >= {"script-failed-later", "few-pairs"}
        assert all("--budget" not in each.sentence for each in ran.check.warnings), "there was time"


def test_where_no_process_holds_two_windows_the_crash_is_told() -> None:
    ran = Recorded(CRASHES_EARLY)
    assert error_of(ran).slug == "entrypoint-failed"
    assert "ValueError: of its own" in error_of(ran).sentence
    assert len(ran.machine.sessions) == MOST_BROKEN_PAIRS


def test_a_process_that_breaks_under_our_timers_lacks_its_phases_alone() -> None:
    ran = Held(Training(under=("phases",)))
    assert ran.check.status == "passed"
    assert count(ran) == LEAST_PAIRS
    assert ran.warnings >= {"script-failed-later"}


def test_a_script_that_comes_to_its_end_is_no_weakness() -> None:
    ran = Recorded(Training(steps=200), processes=3)
    assert len(ran.draws) == 3
    assert ran.warnings == set()


@pytest.mark.parametrize(("head", "slug"), [(NO_LOOP, "entrypoint-failed"), (Training(steps=3), "no-training-loop")])
def test_a_loop_that_is_not_found_is_told_at_once(head: Training, slug: str) -> None:
    for ran in (Recorded(head), Held(head)):
        assert error_of(ran).slug == slug
        assert ran.names == ["start head", "gone head", "end head"]


def test_a_start_that_fails_is_named_and_leaves_no_process() -> None:
    for ran in (Recorded([Training(), Training(unstartable=True)]), Held([Training(), Training(unstartable=True)])):
        assert error_of(ran).slug == "entrypoint-unstartable"
        assert ran.names[-2:] == ["start head", "end head"]
        assert len(ran.machine.sessions) == 2


@pytest.mark.parametrize(("at", "before"), [(1.0, ONE[:1]), (2.5, ONE[:2]), (4.7, ONE[:5]), (7.0, (*ONE, ONE[0]))])
def test_interrupted_it_ends_the_process(at: float, before: tuple[str, ...]) -> None:
    for ran in (Recorded(Training(), interrupted_at=at), Held(Training(), interrupted_at=at)):
        assert ran.interrupted
        assert ran.came is None
        assert ran.names == [*before, "end head"]
        assert ran.machine.now < at + 1.0


def test_a_call_of_a_closure_is_not_held_against_a_stored_step_of_the_optimizer() -> None:
    by_calls = Training(rung="closure", loader=False)
    assert error_of(Held(by_calls, stored(step=0.010))).slug == "steps-unlike"
    assert all(draw.of_closure for draw in Recorded(by_calls).draws)
