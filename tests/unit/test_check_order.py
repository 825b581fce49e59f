"""The order of a check, on a machine that is made up: who starts and trains when, who is blamed, when it is over."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.made_up_check import Checked, Trainings
from tests.unit.made_up_machine import FOUND_AFTER, Training
from tests.unit.test_gate_revision import commit, git

from bottleneck_doctor.documents.check import HOST_MEMORY, STEP_TIME
from bottleneck_doctor.gate import decide
from bottleneck_doctor.gate.limits import DEFAULTS, MetricLimit
from bottleneck_doctor.gate.paired import MOST_BROKEN_PAIRS
from bottleneck_doctor.gate.plan import LEAST_ROUNDS, MOST_ROUNDS
from bottleneck_doctor.gate.request import DEFAULT_BUDGET
from bottleneck_doctor.measure.starter import SECONDS_BETWEEN_STARTS
from bottleneck_doctor.wording.check_words import lent_text

SLOWER = Training(step=0.014)
CRASHES = Training(steps=200, code=1)
"""In its third round."""
CRASHES_EARLY = Training(steps=100, code=1)
"""In its second."""
NO_LOOP = Training(steps=FOUND_AFTER - 3, code=1)
SLOW_START = Training(start=1000.0)


@pytest.fixture(scope="module", autouse=True)
def repository(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The working folder: a repository of two commits, in which no check leaves anything."""
    folder = tmp_path_factory.mktemp("repository")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
        patch.delenv("PYTHONPATH", raising=False)
        git(folder, "init", "--quiet", "--initial-branch", "main")
        commit(folder, train_py="1\n")
        # The head's functions lie in line 7, and the loop, in line 12, is as it was.
        commit(folder, train_py="1\n" + 7 * "2\n")
        patch.chdir(folder)
        yield folder
    assert len(git(folder, "worktree", "list").splitlines()) == 1
    assert git(folder, "status", "--porcelain") == ""


def lucky(*offsets: float) -> list[Training]:
    """Processes whose steps take so much longer than ten milliseconds, as a share."""
    return [Training(step=0.010 * (1 + offset)) for offset in offsets]


RESTLESS = (0.0, 0.1, 0.02, -0.07, 0.03, -0.02, 0.05, -0.1, 0.08, -0.04) * 3


def pairs_of(checked: Checked) -> int:
    return len(checked.check.pairs)


# -- a pair ------------------------------------------------------------------------------------------------------------


def test_both_stand_at_their_loops_before_either_trains() -> None:
    Checked().expects(
        *("start head", "start base", "loop head", "loop base"),
        *("window head", "window base", "window base", "window head", "window head", "window base"),
        *("phases base", "phases head", "end base", "end head"),
        *("start base", "start head", "loop base", "loop head"),
    )


def test_phases_are_told_once_where_none_can_be_judged() -> None:
    """Later pairs are for the step's time: each would spend a window of both sides on what nobody judges."""
    checked = Checked(head=lucky(*RESTLESS), pairs=4)
    told = [[name for name in checked.in_pair(number) if name.startswith("phases")] for number in range(1, 5)]
    assert told == [["phases base", "phases head"], [], [], []]
    forward = next(metric for metric in checked.check.metrics if metric.id == "phase_forward")
    assert forward.verdict == "cannot_tell"
    assert forward.base == pytest.approx(0.0012, rel=0.01)
    limits = {**DEFAULTS, "phase_forward": MetricLimit(0.15, "error")}
    checked = Checked(head=lucky(*RESTLESS), pairs=4, limits=limits)
    assert [name for name in checked.names if name.startswith("phases")] == ["phases base", "phases head"] * 4


def test_another_loss_between_revisions_is_a_warning() -> None:
    """It may be what was wanted."""
    base, head = (
        Training(loss=lambda _, step: 1 + 0.1 * (step % 7)),
        Training(loss=lambda _, step: 2 + 0.1 * (step % 7)),
    )
    checked = Checked(base=base, head=head)
    assert checked.check.status == "passed"
    assert checked.warnings == {"loss-moved"}


def test_phases_of_a_first_pair_that_broke_are_told_in_the_next() -> None:
    checked = Checked(head=[CRASHES, Training()])
    told = [[name for name in checked.in_pair(number) if name.startswith("phases")] for number in range(1, 4)]
    assert told == [[], ["phases base", "phases head"], []]


def test_a_regression_tells_the_phases_of_the_pair_that_it_is_explained_by() -> None:
    checked = Checked(head=SLOWER)
    last = checked.in_pair(pairs_of(checked))
    explained = last[last.index("phases base") :]
    assert explained[:3] == ["phases base", "phases head", "sampled base"]
    assert not [name for name in checked.in_pair(2) if name.startswith("phases")]
    assert {each.kind for each in checked.check.culprits} >= {"phase"}


def test_starts_are_a_second_apart() -> None:
    """Programs that name folders by the second must not collide, of one pair or of two."""
    starts = [session.started for session in Checked().machine.sessions]
    assert len(starts) == 6
    assert all(later - earlier >= SECONDS_BETWEEN_STARTS - 1e-9 for earlier, later in pairwise(starts))


def test_chance_says_who_is_first_and_then_it_is_the_other_way_round() -> None:
    checked = Checked(pairs=10, head=Training(start=4.5))
    orders = [tuple(checked.in_pair(number)[:2]) for number in range(1, 11)]
    assert set(orders[::2]) == {("start base", "start head"), ("start head", "start base")}
    assert all(later == earlier[::-1] for earlier, later in zip(orders[::2], orders[1::2], strict=True))
    firsts = set()
    for number in range(1, 11):
        rounds = checked.windows(number)
        assert len(rounds) >= 4
        assert set(rounds) == {"base head", "head base"}
        for first, second in zip(rounds[::2], rounds[1::2], strict=False):
            assert first != second
        firsts |= {(place, each) for place, each in enumerate(rounds[::2])}
    assert firsts >= {(0, "base head"), (0, "head base"), (1, "base head"), (1, "head base")}


def test_the_seed_is_the_chance() -> None:
    assert Checked(seed=3, pairs=4).names == Checked(seed=3, pairs=4).names
    assert Checked(seed=3, pairs=4).names != Checked(seed=4, pairs=4).names


@pytest.mark.parametrize(
    ("start", "budget", "rounds"), [(0.5, 300.0, 3), (9.0, 300.0, (7, MOST_ROUNDS)), (9.0, 100.0, LEAST_ROUNDS)]
)
def test_a_start_that_takes_long_is_worth_more_rounds_where_there_is_time(
    start: float, budget: float, rounds: int | tuple[int, int]
) -> None:
    low, high = rounds if isinstance(rounds, tuple) else (rounds, rounds)
    slow = Training(start=start)
    assert low <= len(Checked(slow, slow, budget=budget, pairs=1).windows()) <= high


@pytest.mark.parametrize(("base", "whole"), [(8, True), (100_000, False)])
def test_both_time_whole_epochs_or_neither_does(base: int, whole: bool) -> None:
    checked = Checked(Training(epoch=base), Training(epoch=8), pairs=1)
    for session in checked.machine.sessions:
        timed = [grant for grant in session.grants if grant.mode == "timed"]
        assert len(timed) >= LEAST_ROUNDS
        assert all(bool(grant.epochs) == whole for grant in timed)


# -- burn-in -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cold", ["base", "head"])
def test_a_cold_process_warms_up_before_anything_counts(cold: str) -> None:
    sides = {"base": Training(), "head": Training(), cold: Training(cold=4.0, warming=4.0)}
    checked = Checked(sides["base"], sides["head"])
    for number in (1, 2, 3):
        names = checked.in_pair(number)
        assert {name for name in names if name.startswith("burn-in")} == {f"burn-in {cold}"}
        last = max(place for place, name in enumerate(names) if name.startswith("burn-in"))
        assert last < min(place for place, name in enumerate(names) if name.startswith("window"))
    assert checked.check.status == "passed"
    for pair in checked.check.pairs:
        assert (pair.base_step_seconds, pair.head_step_seconds) == pytest.approx((0.010, 0.010), rel=0.002)


def test_warming_up_has_an_end() -> None:
    """A process that never becomes level is measured after some windows all the same."""
    checked = Checked(Training(cold=9.0, warming=15.0), pairs=1)
    assert checked.names.count("burn-in base") == 3
    assert checked.names.count("burn-in head") == 0
    assert len(checked.windows()) >= LEAST_ROUNDS


# -- memory ------------------------------------------------------------------------------------------------------------


def test_memory_is_read_after_each_window() -> None:
    """Of a process that has ended nothing can be read any more."""
    seen = Checked(pairs=2).with_looks()
    windows = [place for place, name in enumerate(seen) if name.startswith("window")]
    assert len(windows) >= 2 * 2 * LEAST_ROUNDS
    for place in windows:
        assert seen[place + 1] == f"memory {seen[place].split()[1]}"
    for side in ("base", "head"):
        assert seen.count(f"workers {side}") == 2
        assert seen[seen.index(f"phases {side}") - 1] == f"workers {side}"


def test_workers_are_looked_at_in_every_pair() -> None:
    """They come and go with windows: a short one is for them, that is not counted."""
    loaded = Training(workers=2)
    checked = Checked(loaded, loaded, pairs=3)
    seen = checked.with_looks()
    for side in ("base", "head"):
        places = [place for place, name in enumerate(seen) if name == f"workers {side}"]
        assert [seen[place + 1] for place in places] == [f"phases {side}"] + [f"burn-in {side}"] * 2
    assert all(pair.windows == checked.check.pairs[0].windows for pair in checked.check.pairs)


def test_memory_that_grew_is_said() -> None:
    checked = Checked(head=Training(memory=3 << 29))
    memory = next(metric for metric in checked.check.metrics if metric.id == HOST_MEMORY)
    assert (memory.base, memory.head) == (1 << 30, 3 << 29)
    assert memory.verdict == "regression"
    assert checked.check.status == "passed", "it only warns"


# -- until the answer is clear -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("head", "status"), [(Training(), "passed"), (Training(step=0.007), "passed"), (SLOWER, "regressed")]
)
def test_a_clear_answer_after_few_pairs_ends_it(head: Training, status: str) -> None:
    checked = Checked(head=head)
    assert pairs_of(checked) == decide.LEAST_PAIRS
    assert len(checked.machine.sessions) == 2 * decide.LEAST_PAIRS
    assert checked.check.status == status
    assert checked.machine.now < 0.2 * DEFAULT_BUDGET


def test_it_goes_on_while_nothing_is_clear_and_ends_at_a_look() -> None:
    checked = Checked(head=lucky(*RESTLESS))
    assert pairs_of(checked) in [number for number, _, _ in decide.INTERIM_LOOKS[1:]]
    assert checked.check.status == "passed"


@pytest.mark.parametrize("head", [Training(), SLOWER, lucky(*RESTLESS)])
def test_a_number_of_pairs_that_was_asked_for_is_kept(head: Trainings) -> None:
    assert pairs_of(Checked(head=head, pairs=4)) == 4


def test_it_is_given_up_where_no_pair_would_tell() -> None:
    checked = Checked(head=lucky(*(5 * offset for offset in RESTLESS)))
    assert checked.check.status == "cannot_tell"
    assert "can't be judged here" in checked.check.sentence
    assert pairs_of(checked) < decide.most_looked_at()
    assert checked.machine.now < 0.7 * DEFAULT_BUDGET


def test_what_it_waits_for_data_ends_it_where_the_step_is_too_restless() -> None:
    """Waiting grew from 3 to 4.5 ms for certain; the other 7 ms differ by a third from process to process."""
    heads = [0.007 * (1 + 3 * offset) + 0.0045 for offset in RESTLESS]
    head = [Training(step=step, wait=0.0045 / step) for step in heads]
    checked = Checked(Training(step=0.010, wait=0.3), head)
    (step,) = (metric for metric in checked.check.metrics if metric.id == STEP_TIME)
    assert checked.check.status == "regressed"
    assert step.part is not None
    assert step.part.change == pytest.approx(0.15, abs=0.001)
    assert checked.check.sentence.startswith("A step waits longer for data than on HEAD~1, by 15 % of a step")
    assert "sampled base" in checked.names
    loaded = [replace(each, workers=2) for each in head]
    later = Checked(Training(step=0.010, wait=0.3, workers=2), loaded)
    assert all(metric.part is None for metric in later.check.metrics)
    assert pairs_of(checked) < 0.8 * pairs_of(later)


# -- time --------------------------------------------------------------------------------------------------------------


def test_no_pair_is_begun_that_does_not_fit() -> None:
    checked = Checked(pairs=10, budget=32.0)
    assert pairs_of(checked) == 4
    assert len(checked.machine.sessions) == 8
    assert checked.machine.now <= 32.0
    assert checked.check.seconds == pytest.approx(checked.machine.now)


def test_a_budget_that_is_over_in_the_middle_leaves_the_pairs_before() -> None:
    """The third pair does not come to its loops in time."""
    checked = Checked(head=[*lucky(0.0, 0.1), SLOW_START], budget=60.0)
    assert checked.in_pair(3)[2:] == ["loop base", *checked.in_pair(3)[-2:]]
    assert sorted(checked.in_pair(3)[-2:]) == ["end base", "end head"]
    assert pairs_of(checked) == 2
    assert checked.warnings == {"few-pairs"}
    assert "`--budget 2m`" in checked.check.warnings[0].sentence
    assert checked.machine.now <= 61.0


def test_a_pair_that_was_begun_is_ended_whatever_it_takes() -> None:
    """Else what comes of it would depend on how fast it was."""
    checked = Checked(head=[Training(), Training(), Training(start=10.5)], budget=26.0)
    assert pairs_of(checked) == 3
    assert len(checked.windows(3)) == len(checked.windows(2))
    assert 26.0 < checked.machine.now < 33.0


def test_no_pair_at_all_is_an_error() -> None:
    checked = Checked(base=SLOW_START, budget=60.0)
    assert checked.error is not None
    assert checked.error.slug == "out-of-time"
    assert checked.machine.now <= 61.0


def test_without_a_budget_pairs_that_were_asked_for_take_what_they_take() -> None:
    checked = Checked(Training(start=90.0), Training(start=90.0), pairs=5)
    assert pairs_of(checked) == 5
    assert checked.machine.now > DEFAULT_BUDGET


@settings(max_examples=4, deadline=None)
@given(
    step=st.floats(0.005, 2.0),
    start=st.floats(0.5, 40.0),
    budget=st.floats(30.0, 400.0),
    slower=st.floats(0.7, 2.0),
    epoch=st.sampled_from([3, 40, 100_000]),
)
def test_a_budget_is_kept_but_for_the_pair_that_was_begun(
    step: float, start: float, budget: float, slower: float, epoch: int
) -> None:
    head = [Training(step=step * slower * (1 + each), start=start, epoch=epoch) for each in RESTLESS]
    checked = Checked(Training(step=step, start=start, epoch=epoch), head, budget=budget)
    sessions = checked.machine.sessions
    begun = max(session.started for session in sessions)
    assert begun <= budget
    if checked.error is not None:
        assert checked.error.slug == "out-of-time"
        return
    explained = sum("sampled" in name for name in checked.names)
    lasted = [second.started - first.started for first, second in pairwise(sessions[::2])]
    assert checked.machine.now <= budget + max(lasted, default=float("inf")) + 12.0 * explained


# -- who fails ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("side", ["base", "head"])
def test_a_side_that_crashes_in_every_pair_is_blamed_while_the_other_one_trains_on(side: str) -> None:
    other = "head" if side == "base" else "base"
    checked = Checked(**{side: CRASHES})  # type: ignore[arg-type]
    assert checked.error is not None
    assert checked.error.slug == f"{side}-failed"
    assert "the other side trains" in checked.error.sentence
    assert "ValueError: of its own" in checked.error.sentence
    first = checked.in_pair(1)
    after = first[first.index(f"gone {side}") + 1 : -2]
    assert after, "the other one was looked at"
    assert set(after) == {f"window {other}"}


def test_a_crash_of_both_at_the_same_step_is_nobody_s() -> None:
    checked = Checked(CRASHES, CRASHES)
    assert checked.error is None
    assert checked.check.status == "passed"
    assert checked.warnings == {"script-failed-later"}
    assert pairs_of(checked) == decide.LEAST_PAIRS


def test_rounds_before_a_crash_count_and_another_pair_is_begun() -> None:
    checked = Checked(head=[CRASHES, Training()])
    assert pairs_of(checked) == decide.LEAST_PAIRS
    assert len(checked.machine.sessions) == 2 * decide.LEAST_PAIRS
    assert not {name for name in checked.in_pair(1) if name.startswith("phases")}
    assert checked.warnings == {"script-failed-later"}
    (warning,) = checked.check.warnings
    assert "the head" in warning.sentence
    assert checked.check.pairs[0].windows < checked.check.pairs[1].windows


@pytest.mark.parametrize("side", ["base", "head"])
def test_a_pair_is_given_up_where_one_side_crashes_before_two_rounds(side: str) -> None:
    checked = Checked(**{side: [Training(), CRASHES_EARLY, Training()]})  # type: ignore[arg-type]
    assert f"gone {side}" in checked.in_pair(2)
    assert len(checked.machine.sessions) == 2 * decide.LEAST_PAIRS + 2
    assert pairs_of(checked) == decide.LEAST_PAIRS
    assert checked.warnings == {"script-failed-later"}
    assert f"the {side}" in checked.check.warnings[0].sentence


def test_it_ends_after_some_lost_pairs() -> None:
    checked = Checked(head=[Training(), CRASHES_EARLY])
    assert pairs_of(checked) == 1
    assert len(checked.machine.sessions) == 2 * (1 + MOST_BROKEN_PAIRS)
    assert checked.warnings >= {"script-failed-later", "few-pairs"}
    assert all("--budget" not in each.sentence for each in checked.check.warnings), "there was time"


def test_where_no_pair_holds_two_rounds_the_crash_is_told() -> None:
    checked = Checked(head=CRASHES_EARLY)
    assert checked.error is not None
    assert checked.error.slug == "head-failed"
    assert len(checked.machine.sessions) == 2 * MOST_BROKEN_PAIRS


@pytest.mark.parametrize("broken", [("base",), ("head",), ("base", "head")])
def test_a_process_that_breaks_under_our_timers_is_not_the_scripts_fault(broken: tuple[str, ...]) -> None:
    under = Training(under=("phases",))
    checked = Checked(**dict.fromkeys(broken, under))  # type: ignore[arg-type]
    assert checked.error is None
    assert checked.check.status == "passed"
    assert pairs_of(checked) == decide.LEAST_PAIRS
    assert checked.warnings == {"script-failed-later"}
    assert not [metric for metric in checked.check.metrics if metric.id.startswith("phase_")]


def test_a_script_that_comes_to_its_end_is_no_weakness() -> None:
    checked = Checked(Training(steps=500), Training(steps=500))
    assert checked.error is None
    assert checked.check.status == "passed"
    assert checked.warnings == set()


# -- a loop that is not found ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("side", ["base", "head"])
@pytest.mark.parametrize("start", [0.5, 20.0])
def test_a_loop_on_one_side_only_blames_the_other_one_at_once(side: str, start: float) -> None:
    """Whoever is slower to show itself is waited for: it is part of what is said whether it trains."""
    other = "head" if side == "base" else "base"
    sides = {side: NO_LOOP, other: Training(start=start)}
    checked = Checked(**sides)  # type: ignore[arg-type]
    assert checked.error is not None
    assert checked.error.slug == f"{side}-failed"
    assert "the other side trains" in checked.error.sentence
    assert f"loop {other}" in checked.names
    assert len(checked.machine.sessions) == 2, "starting again would fail in the same way"
    assert not {name for name in checked.names if name.startswith("window")}


@pytest.mark.parametrize(("base", "named"), [(Training(), "The head (main)"), (Training(steps=3), "Both revisions")])
def test_one_that_ends_without_a_loop_is_named(base: Training, named: str) -> None:
    checked = Checked(base, Training(steps=3))
    assert checked.error is not None
    assert checked.error.slug == "no-training-loop"
    assert checked.error.sentence.startswith(named)


def test_a_crash_on_both_sides_before_the_loop_is_no_revision_s() -> None:
    checked = Checked(NO_LOOP, NO_LOOP)
    assert checked.error is not None
    assert checked.error.slug == "entrypoint-failed"
    assert len(checked.machine.sessions) == 2


def test_a_crash_is_told_although_the_other_one_did_not_show_itself_in_time() -> None:
    checked = Checked(SLOW_START, NO_LOOP, budget=60.0)
    assert checked.error is not None
    assert checked.error.slug == "head-failed"
    assert "ValueError: of its own" in checked.error.sentence
    assert "the other side trains" not in checked.error.sentence
    assert checked.machine.now <= 61.0


# -- a start that fails ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("seed", "first"), [(1, "head"), (5, "base")])
@pytest.mark.parametrize("side", ["base", "head"])
def test_a_start_that_fails_names_its_side_and_leaves_no_process(side: str, seed: int, first: str) -> None:
    checked = Checked(**{side: Training(unstartable=True)}, seed=seed)  # type: ignore[arg-type]
    assert checked.error is not None
    assert checked.error.slug == "entrypoint-unstartable"
    assert f"for the {side}" in checked.error.sentence
    started = [first] if side == first else [first, side]
    checked.expects(*(f"start {each}" for each in started), *(f"end {each}" for each in reversed(started)))


# -- Ctrl-C ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("during", ["loop", "window", "phases", "sampled"])
def test_interrupted_it_ends_both(during: str) -> None:
    whole = Checked(head=SLOWER)
    done = next(place for place, name in enumerate(whole.names) if name.startswith(during))
    guests = "baseline" if during == "window" else during
    began = next((each.began for each in whole.machine.happened if each.name == guests), 1.5)
    checked = Checked(head=SLOWER, interrupted_at=began + 0.02)
    assert checked.interrupted
    assert checked.came is None
    assert checked.names[:done] == whole.names[:done]
    assert sorted(checked.names[done:]) == ["end base", "end head"]
    assert checked.machine.now < began + 1.0


def test_interrupted_between_two_starts_it_ends_the_first() -> None:
    checked = Checked(interrupted_at=0.5)
    assert checked.interrupted
    assert checked.names == ["start head", "end head"]


# -- why ---------------------------------------------------------------------------------------------------------------


def test_a_regression_is_explained_by_the_processes_that_stand() -> None:
    """No other ones are started for it, and each of a few turns begins with the side that ended the one before."""
    slower = Training(step=0.0102, sampled={"__getitem__": 80, "augment": 4})
    checked = Checked(head=slower, limits=_limits(0.005))
    assert checked.check.status == "regressed"
    last = checked.in_pair(pairs_of(checked))
    assert len(checked.machine.sessions) == 2 * pairs_of(checked)
    turns = last[last.index("phases head") + 1 : -2]
    assert turns == [f"sampled {side}" for side in ("base", "head", "head", "base", "base", "head", "head", "base")]
    assert next(each.name for each in checked.check.culprits if each.kind == "function") == "augment"
    assert checked.check.growth
    assert not [name for name in checked.names[: -len(last)] if name.startswith("sampled")]


def test_what_was_learnt_is_told_where_it_is_given_up() -> None:
    """A function that was changed grew for certain, whatever the step did."""
    seen = {"__getitem__": 80, "augment": 16}
    heads = [Training(step=0.010 * (1.05 + 3 * offset), sampled=seen) for offset in RESTLESS]
    checked = Checked(head=heads)
    assert checked.check.status == "cannot_tell"
    assert "can't be judged here" in checked.check.sentence
    (suspect,) = (each for each in checked.check.suspects if each.kind == "function")
    assert (suspect.name, suspect.changed_here) == ("augment", True)
    assert suspect.low is not None
    assert suspect.high is not None
    assert 0 < suspect.low < suspect.head - suspect.base < suspect.high
    said = checked.check.sentence
    assert "Not sure yet, but of the code that the changes touch, this grew most: `augment`" in said
    assert said.index("Not sure yet") < said.index("Give ")
    assert (checked.check.culprits, checked.check.growth) == ([], [])
    assert "culprits-missing" not in checked.warnings


def test_what_luck_makes_of_samples_is_no_suspect() -> None:
    heads = [Training(step=0.010 * (1.05 + 3 * offset), sampled={"__getitem__": 80, "f": 2}) for offset in RESTLESS]
    checked = Checked(head=heads)
    assert checked.check.status == "cannot_tell"
    assert "sampled base" in checked.names
    assert checked.check.suspects == []
    assert "Not sure yet" not in checked.check.sentence


def test_where_a_step_seems_faster_nobody_is_sampled() -> None:
    checked = Checked(head=[Training(step=0.010 * (0.97 + 3 * offset)) for offset in RESTLESS])
    assert checked.check.status == "cannot_tell"
    assert not [name for name in checked.names if name.startswith("sampled")]


@pytest.mark.parametrize("head", [Training(), Training(step=0.006), lucky(*RESTLESS)])
def test_where_nothing_grew_nobody_is_sampled(head: Trainings) -> None:
    checked = Checked(head=head)
    assert not [name for name in checked.names if name.startswith(("sampled", "lines"))]
    assert checked.check.culprits == []


def test_a_regression_that_is_told_when_no_process_stands_has_its_phases() -> None:
    checked = Checked(head=[*[SLOWER] * 3, SLOW_START], base=lucky(0.0, 0.03, 0.06, 0.0), budget=60.0, pairs=4)
    assert pairs_of(checked) == 3
    assert checked.check.status == "regressed"
    assert checked.warnings == {"culprits-missing"}
    assert {each.kind for each in checked.check.culprits} == {"phase"}
    assert not [name for name in checked.names if name.startswith("sampled")]


def test_a_pair_that_was_cut_short_is_not_sampled() -> None:
    checked = Checked(head=[SLOWER, SLOWER, Training(step=0.0125, steps=190, code=1)])
    assert checked.check.status == "regressed"
    assert checked.warnings == {"culprits-missing", "script-failed-later"}
    assert not [name for name in checked.names if name.startswith("sampled")]


@pytest.mark.parametrize("side", ["base", "head"])
def test_a_process_that_breaks_under_py_spy_costs_the_functions_alone(side: str) -> None:
    sides = {"base": Training(), "head": SLOWER}
    sides[side] = Training(step=sides[side].step, under=("sampled",))
    checked = Checked(sides["base"], sides["head"])
    assert checked.check.status == "regressed"
    assert checked.warnings == {"culprits-missing"}
    assert f"the {side}" in checked.check.warnings[0].sentence
    assert {each.kind for each in checked.check.culprits} == {"phase"}


def test_where_py_spy_sees_nothing_lines_are_timed() -> None:
    checked = Checked(Training(hidden=True), Training(step=0.014, hidden=True))
    assert [name for name in checked.names if name.startswith("lines")] == ["lines base"]
    assert checked.warnings >= {"culprits-missing", "sampling-failed"}


def test_why_comes_on_top_of_the_budget() -> None:
    """The last pair fits, and what is looked for in it then does not."""
    alone = Checked(head=Training(step=0.0105), limits=_limits(0.02), budget=300.0)
    measured = max(session.started for session in alone.machine.sessions)
    tight = Checked(head=Training(step=0.0105), limits=_limits(0.02), budget=measured + 9.0)
    assert pairs_of(tight) == pairs_of(alone)
    assert [name for name in tight.names if name.startswith("sampled")]
    assert tight.machine.now > measured + 9.0


def _limits(step: float) -> dict[str, MetricLimit]:
    return {**DEFAULTS, STEP_TIME: replace(DEFAULTS[STEP_TIME], threshold=step)}


# -- long steps --------------------------------------------------------------------------------------------------------


def slow(step: float, **changes: Any) -> Training:
    """Steps of seconds, fed by two workers that have little to do."""
    return Training(**{"step": step, "start": 12.0, "workers": 2, "load": 0.1, **changes})


def test_long_steps_are_looked_at_first_and_decided_in_the_usual_time() -> None:
    """Five minutes held one pair, with queues to fill that were full after a step."""
    checked = Checked(base=slow(2.0), head=slow(2.6))
    started = [name for name in checked.in_pair(1) if not name.startswith(("start", "loop"))]
    assert sorted(started[:2]) == ["phases base", "phases head"]
    assert not [name for name in checked.in_pair(2) if name.startswith("phases")]
    assert pairs_of(checked) >= decide.LEAST_PAIRS
    assert checked.check.status == "regressed"
    forward = next(metric for metric in checked.check.metrics if metric.id == "phase_forward")
    assert forward.base is not None


def test_long_steps_that_wait_go_past_the_queue() -> None:
    checked = Checked(base=slow(1.2, load=4.0), head=slow(1.2, load=4.0), pairs=1)
    timed = [grant for session in checked.machine.sessions for grant in session.grants if grant.mode == "timed"]
    assert min(grant.lead_in for grant in timed) >= 4


def test_identical_programs_of_long_steps_pass() -> None:
    checked = Checked(base=slow(2.0), head=slow(2.0))
    assert checked.check.status == "passed", checked.check.sentence


# -- with what earlier checks lend -------------------------------------------------------------------------------------


def test_earlier_checks_of_the_same_program_end_one_sooner() -> None:
    head = lucky(0.012, -0.008, 0.006, -0.014, 0.004, 0.011, -0.012, 0.002, -0.006, 0.009)
    first = Checked(head=head)
    assert first.check.lent is None
    second = Checked(head=head, earlier=[first.check] * 3)
    assert second.check.lent is not None
    assert second.check.lent.checks == 3
    assert second.check.status == first.check.status == "passed"
    assert len(second.check.pairs) < len(first.check.pairs)
    assert "judged together with 3 checks of before" in lent_text(second.check)
    steady = Checked(head=head, earlier=[first.check] * 3, steady=False)
    assert steady.check.lent is None


def test_calls_of_a_closure_are_not_compared_with_steps_of_the_optimizer() -> None:
    checked = Checked(head=Training(rung="closure", loader=False), base=Training(loader=False))
    assert checked.error is not None
    assert checked.error.slug == "steps-unlike"
    assert "The base" in checked.error.sentence
