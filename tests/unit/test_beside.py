"""Settings that a process has to be started with, on a machine that is made up: when pairs are taken, in which order,
and what is said of them."""

from __future__ import annotations

import os
from typing import Any

import pytest
from tests.unit.made_up_machine import Examined, Machine, MadeUpSession, Training

from bottleneck_doctor.documents import labels
from bottleneck_doctor.documents.report import FixOutcome
from bottleneck_doctor.examine.pair_costs import PAIRS, ROUNDS
from bottleneck_doctor.examine.time_wanted import LONGEST
from bottleneck_doctor.fixes import preloaded_allocator
from bottleneck_doctor.knobs import allocator
from bottleneck_doctor.measure.side_pairs import LEAST_ROUNDS
from bottleneck_doctor.render import terminal
from bottleneck_doctor.runtime.wire.messages import Grant

KEEPS = labels.key_of({allocator.NAME: allocator.KEEPS})
VARIABLE = next(iter(allocator.KEEPING))


@pytest.fixture(autouse=True)
def no_other_allocators(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allocator, "installed", lambda name: None)
    for name in (*allocator.KEEPING, "LD_PRELOAD"):
        monkeypatch.delenv(name, raising=False)


def examined(kept: Training, *, kernel: float = 0.3, budget: float | None = None, **given: Any) -> Examined:
    """A training that the kernel works for, and what it is where it keeps its memory."""
    machine = Machine(wait=0.02, kernel=kernel, started_with={VARIABLE: kept}, **given)
    return Examined(machine, budget=budget, only=frozenset({"allocator"}))


def outcome(made: Examined) -> FixOutcome:
    return next(each for each in made.result.fixes if each.id == "allocator")


def test_workers_of_a_pair_go_on_from_window_to_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both sides load in the same way: sixteen workers that start anew take longer than a window does."""
    granted: list[Grant] = []
    plain = MadeUpSession.grant

    def grant(self: MadeUpSession, given: Grant) -> None:
        granted.append(given)
        plain(self, given)

    monkeypatch.setattr(MadeUpSession, "grant", grant)
    examined(Training(step=0.008, wait=0.02, workers=2), workers=2)
    assert len(granted) > 2 * PAIRS * ROUNDS
    assert all(each.keeps_workers for each in granted)


def test_what_a_process_is_started_with_is_measured_in_pairs_that_train_in_turn() -> None:
    made = examined(Training(step=0.008, wait=0.02))
    found = outcome(made)
    assert found.status == "faster"
    assert found.speedup is not None
    assert found.speedup.estimate == pytest.approx(1.25, abs=0.01)
    assert (found.speedup.pairs, found.speedup.sessions) == (PAIRS, PAIRS)
    assert found.change is None or VARIABLE in found.change.note
    assert "`MALLOC_…=…` makes training" in made.result.verdict.sentence
    said = terminal.render(made.result, report_path=None, width=100, color=False)
    assert VARIABLE in said, "where no change can be written, too"
    beside = [each for each in made.result.windows if each.label in (KEEPS, labels.BESIDE)]
    assert len(beside) == 2 * PAIRS * ROUNDS
    assert {each.label: each.setting for each in beside} == {
        KEEPS: {allocator.NAME: allocator.KEEPS},
        labels.BESIDE: {},
    }
    in_order = [each.label for each in sorted(beside, key=lambda each: each.started)]
    rounds = [set(in_order[at : at + 2]) for at in range(0, len(in_order), 2)]
    assert all(len(each) == 2 for each in rounds), "each round holds a window of both"


def test_what_makes_no_difference_is_not_called_faster() -> None:
    found = outcome(examined(Training(wait=0.02)))
    assert found.status == "no_difference"


@pytest.mark.parametrize("kernel", [0.0, 0.015])
def test_what_the_kernel_hardly_works_for_is_not_tried(kernel: float) -> None:
    made = examined(Training(step=0.005), kernel=kernel)
    assert outcome(made).status == "not_applicable"
    assert "the kernel takes only" in outcome(made).reason
    assert KEEPS not in {each.label for each in made.result.windows}


def test_a_process_that_fails_with_a_setting_is_the_settings_fault() -> None:
    found = outcome(examined(Training(steps=4, code=1)))
    assert found.status == "failed"
    assert found.reason


def test_there_is_no_time_for_pairs_in_a_small_budget() -> None:
    made = examined(Training(step=0.008), budget=25.0, start=4.0)
    assert outcome(made).status == "cannot_tell"
    assert "time was over" in outcome(made).reason
    assert made.machine.now <= 25.0


SLOW: dict[str, Any] = {"step": 0.9, "wait": 0.02, "start": 16.0, "loader": False}


def among_others(speeds: dict[str, float], budget: float | None = None) -> Examined:
    """Steps of a second and starts of many, as of a whole graph on two cores, among other settings."""
    started = {VARIABLE: Training(**{**SLOW, "step": 0.7})}
    return Examined(Machine(**SLOW, kernel=0.3, started_with=started, speeds=speeds), budget=budget)


@pytest.mark.parametrize("speeds", [{}, {"intra_op_threads=1": 1.05}])
def test_where_nothing_leads_by_much_pairs_get_time_that_nobody_set(speeds: dict[str, float]) -> None:
    made = among_others(speeds)
    assert outcome(made).status == "faster"
    assert pairs_of(made, KEEPS) == PAIRS
    assert made.machine.now < LONGEST
    assert [text for text, _ in made.machine.noted if text.startswith("Nothing leads by much so far. To measure ")]


@pytest.mark.parametrize(
    ("kernel", "speeds", "first"),
    [(0.3, {}, True), (0.15, {}, False), (0.3, {"num_workers=2": 1.3}, False)],
    ids=["the kernel takes much", "the kernel takes little", "something leads"],
)
def test_pairs_that_promise_most_come_before_other_processes(
    kernel: float, speeds: dict[str, float], first: bool
) -> None:
    started = {VARIABLE: Training(step=0.008, wait=0.2)}
    made = Examined(Machine(wait=0.2, kernel=kernel, started_with=started, speeds=speeds))
    in_pairs = [each.started for each in made.result.windows if each.label == KEEPS]
    others = [each.started for each in made.result.windows if each.label == labels.BASELINE and each.session > 1]
    assert len(in_pairs) == PAIRS * ROUNDS
    assert others
    assert (max(in_pairs) < min(others)) is first


def test_neither_where_something_leads_by_much_nor_where_the_user_set_the_time() -> None:
    for made in (among_others({"intra_op_threads=1": 1.6}), among_others({}, budget=250.0)):
        assert pairs_of(made, KEEPS) == 0
        assert outcome(made).status == "cannot_tell"


# -- where time or memory is short -------------------------------------------------------------------------------------

GIB = 1 << 30
JEMALLOC = labels.key_of({allocator.NAME: "jemalloc"})


@pytest.fixture
def jemalloc(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another allocator lies here."""
    monkeypatch.setattr(allocator, "installed", lambda name: "/lib/lib.so" if name == "jemalloc" else None)


def pairs_of(made: Examined, key: str) -> int:
    """Pairs in which a setting was measured."""
    return len({each.session for each in made.result.windows if each.label == key})


def with_both(kept: Training, preloaded: Training, **given: Any) -> Examined:
    started = {"LD_PRELOAD": preloaded, VARIABLE: kept}
    machine = Machine(wait=0.02, kernel=0.3, started_with=started, **given)
    return Examined(machine, only=frozenset({"allocator", "preloaded-allocator"}))


@pytest.mark.usefixtures("jemalloc")
@pytest.mark.parametrize(("free", "at_once"), [(3 * GIB, 3), (2 * GIB, 2)])
def test_as_many_processes_stand_side_by_side_as_memory_has_room_for(free: int, at_once: int) -> None:
    """Each holds a gibibyte, and the one that is there by then is gone before they start."""
    made = with_both(Training(step=0.009, wait=0.02), Training(step=0.008, wait=0.02), free=free)
    starts = [what for what, _ in made.machine.order if what in ("start", "end")]
    standing, most = 0, 0
    for what in starts:
        standing += 1 if what == "start" else -1
        most = max(most, standing)
    assert most == at_once


@pytest.mark.usefixtures("jemalloc")
def test_where_one_fits_at_a_time_what_loses_makes_room_for_the_next() -> None:
    made = with_both(Training(step=0.02, wait=0.02), Training(step=0.008, wait=0.02), free=2 * GIB)
    assert (pairs_of(made, KEEPS), pairs_of(made, JEMALLOC)) == (1, PAIRS)
    found = next(each for each in made.result.fixes if each.id == "preloaded-allocator")
    assert (found.setting, found.status) == ({allocator.NAME: "jemalloc"}, "faster")


def test_there_are_no_pairs_where_memory_has_no_room_for_two() -> None:
    made = examined(Training(step=0.008), free=GIB)
    assert outcome(made).status == "cannot_tell"
    assert KEEPS not in {each.label for each in made.result.windows}


def test_slow_programs_have_pairs_of_fewer_rounds() -> None:
    """A start takes 22 s, and a window 5 s: three pairs of three windows would take longer than there is."""
    made = examined(Training(step=1.2, start=9.0, wait=0.0), step=1.6, start=9.0, loader=False)
    assert (pairs_of(made, KEEPS), outcome(made).status) == (PAIRS, "faster")
    rounds = [each for each in made.result.windows if each.label == KEEPS]
    assert len(rounds) == PAIRS * LEAST_ROUNDS


def test_what_is_set_already_is_not_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "LD_PRELOAD", "/usr/lib/libjemalloc.so.2")
    assert outcome(examined(Training(step=0.008))).reason == "already on: `jemalloc` is set"
    assert "LD_PRELOAD" in preloaded_allocator.FIX.how


def test_pairs_that_were_begun_are_finished_though_starts_take_longer_than_reserved() -> None:
    """With the setting, the process starts ten times as slowly as the one as written."""
    slow = Training(step=0.008, wait=0.02, start=20.0)
    made = examined(slow)
    found = outcome(made)
    assert found.status == "faster"
    assert found.speedup is not None
    assert found.speedup.sessions == PAIRS
    # A time that the user set is kept.
    short = examined(slow, budget=80.0)
    assert short.machine.now <= 80.0
    undecided = outcome(short)
    assert undecided.speedup is None or undecided.speedup.sessions < PAIRS


def test_the_end_is_moved_for_the_pairs_that_are_lacking() -> None:
    """Other settings have taken most of the time."""
    speeds = {"intra_op_threads=1": 1.02, "autocast=bfloat16": 1.01}
    slow = Training(step=0.093, wait=0.02, start=40.0)
    machine = Machine(
        step=0.1, start=12.0, wait=0.02, kernel=0.3, started_with={VARIABLE: slow}, speeds=speeds, luck=0.05, noise=0.05
    )
    made = Examined(machine)
    found = outcome(made)
    assert found.speedup is not None
    assert found.speedup.sessions == PAIRS
    before, last = sorted(made.totals)[-2:]
    assert before < machine.now <= last, "nothing but the third pair took so long"


def test_pairs_that_take_longer_than_reserved_leave_the_rest_to_what_looks_faster() -> None:
    """Windows differ so much that nothing leads for sure, so pairs come first; but their starts take far longer."""
    slow = Training(step=0.097, start=100.0, loader=False)
    machine = Machine(
        step=0.1,
        start=12.0,
        loader=False,
        kernel=0.3,
        started_with={VARIABLE: slow},
        speeds={"autocast=bfloat16": 1.28},
        noise=0.15,
    )
    made = Examined(machine)
    in_pairs = [each.started for each in made.result.windows if each.label == KEEPS]
    later = [each for each in made.result.windows if each.label == "autocast=bfloat16" and each.session > 1]
    assert 0 < pairs_of(made, KEEPS) < PAIRS
    assert later
    assert min(each.started for each in later) > max(in_pairs)
    assert machine.now <= LONGEST


def test_what_pairs_have_kept_from_other_processes_gets_the_time_that_is_left() -> None:
    """They took longer than expected, and what looks faster was measured in one process by then."""
    kept = Training(step=1.26, start=120.0, loader=False)
    given: dict[str, Any] = {"kernel": 0.3, "noise": 0.15, "speeds": {"autocast=bfloat16": 1.2}}
    made = Examined(Machine(step=1.3, start=40.0, loader=False, started_with={VARIABLE: kept}, **given))
    (said,) = [text for text, _ in made.machine.noted if text.startswith("Not sure yet: ")]
    assert "was measured at 1.17×. There is time for 1 more process: about 9 minutes in all" in said
    assert not [text for text, _ in made.machine.noted if "give --budget" in text], "nobody has to give what is taken"
    led = next(each for each in made.result.fixes if each.id == "amp-bf16")
    assert led.speedup is not None
    assert led.speedup.sessions >= 3
    assert made.machine.now <= LONGEST
