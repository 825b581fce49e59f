"""Who is blamed for a session that ended, and what is tried no more; a session that says what it is told to."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.test_selection import FOUND

from bottleneck_doctor.documents.labels import BASELINE
from bottleneck_doctor.examine.selection import Selection
from bottleneck_doctor.measure import prober, waiting
from bottleneck_doctor.measure.budget import Budget, OutOfTime
from bottleneck_doctor.measure.costs import Costs
from bottleneck_doctor.measure.measurements import Measurements
from bottleneck_doctor.measure.prober import Prober
from bottleneck_doctor.measure.schedule import LoopShape, Probe, WindowSize, probe
from bottleneck_doctor.measure.windows import BURN_IN
from bottleneck_doctor.runtime.wire.messages import Found, Grant, Hello, WindowDone
from bottleneck_doctor.session.ending import Hung, SessionOver, TooSlow
from bottleneck_doctor.session.ranks import RankGroup
from bottleneck_doctor.session.session import Exited

AS_WRITTEN = probe(BASELINE, {})
ONE, TWO = probe("num_workers=1", {"num_workers": 1}), probe("num_workers=2", {"num_workers": 2})
NONE = probe("num_workers=0", {"num_workers": 0})
BFLOAT = probe('autocast="bfloat16"', {"autocast": "bfloat16"})
KILLED = "RuntimeError: DataLoader worker (pid 7) is killed by signal: Killed."


class Told:
    """A session that answers every grant as it was told; None is silence."""

    number = 1
    hello: Hello | None = None

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.away: list[bool] = []
        self.rank_group = RankGroup()
        self.window = 0

    def is_away(self) -> bool:
        return self.away.pop(0) if self.away else False

    def has_last_step(self) -> bool:
        return False

    def progress(self) -> dict[int, int]:
        return {}

    def tail(self) -> str:
        return "Epoch 1"

    def grant(self, grant: Any) -> None:
        self.window = grant.window

    def event(self, timeout: float) -> Any:
        answer = self.answers.pop(0) if self.answers else None
        return replace(answer, window=self.window) if isinstance(answer, WindowDone) else answer


@pytest.fixture(autouse=True)
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prober, "HANG_SECONDS", 0.01)
    monkeypatch.setattr(prober, "HANG_FACTOR", 0.0)


def make(
    found: Found = FOUND, left: float = 100.0, now: Callable[[], float] = time.monotonic
) -> tuple[Selection, Prober]:
    selection = Selection(Measurements(found), frozenset(), frozenset())
    shape = LoopShape(
        period=1, epoch_batches=400, num_workers=found.num_workers, prefetch_factor=2, served=True, usable_cpus=2
    )
    return selection, Prober(selection.measured, Costs(shape, 0.1, 1.0), Budget(left, strict=True, now=now))


def ends(made: Prober, each: Probe, *answers: Any) -> None:
    """A window with which its session ends."""
    with pytest.raises(SessionOver):
        made.measure(Told(*answers), each)  # type: ignore[arg-type]  # it has what a prober asks for


OK = WindowDone(window=0, status="ok", steps=10, samples=40.0, seconds=1.0)


def test_one_hang_with_workers_speaks_for_every_number() -> None:
    selection, made = make()
    made.measure(Told(OK), AS_WRITTEN)  # type: ignore[arg-type]
    ends(made, ONE, None)
    assert not selection.alive(ONE)
    assert not selection.alive(TWO)
    assert selection.alive(BFLOAT)
    assert selection.measured.windows[-1].status == "failed"
    assert "forkserver" in selection.measured.windows[-1].reason


def test_worker_that_died_is_the_settings_fault_at_once_and_other_ends_are_tried_again() -> None:
    selection, made = make()
    ends(made, TWO, Exited(1, f"Traceback\n{KILLED}"))
    assert not selection.alive(TWO)
    assert selection.alive(ONE), "fewer may fit"
    ends(made, ONE, Exited(1, "ValueError: my own, at the end of training"))
    assert selection.alive(ONE)
    ends(made, ONE, Exited(1, "ValueError: my own, at the end of training"))
    assert not selection.alive(ONE)


OWN = Exited(1, "Traceback\nAttributeError: module 'numpy' has no attribute 'trapz'")


def test_an_error_that_ends_windows_of_unlike_settings_is_the_script_s_own() -> None:
    """It evaluates at the end of each epoch, which fails, whatever is measured then."""
    selection, made = make()
    ends(made, BFLOAT, OWN)
    ends(made, BFLOAT, OWN)
    assert not selection.alive(BFLOAT), "so far, nothing else was seen to end like this"
    ends(made, ONE, OWN)
    assert selection.alive(BFLOAT)
    assert selection.alive(ONE)
    assert selection.measured.windows[-1].label == BFLOAT.key, "the window of nobody's fault is not told"
    for _ in range(2):
        ends(made, ONE, OWN)
    assert selection.alive(ONE)
    ends(made, ONE, OWN)
    assert not selection.alive(ONE), "each costs a start"


def test_an_error_that_ended_the_training_as_written_is_nobody_s_fault() -> None:
    selection, made = make()
    made.measure(Told(OK), AS_WRITTEN)  # type: ignore[arg-type]
    ends(made, AS_WRITTEN, OWN)
    ends(made, BFLOAT, OWN)
    ends(made, BFLOAT, OWN)
    assert selection.alive(BFLOAT)


def test_settings_that_have_a_knob_in_common_may_fail_by_it() -> None:
    selection, made = make()
    for _ in range(2):
        ends(made, ONE, OWN)
        ends(made, TWO, OWN)
    assert not selection.alive(ONE)
    assert not selection.alive(TWO)


def test_failed_window_is_told_in_words_that_help() -> None:
    selection, made = make()
    failed = WindowDone(window=0, status="failed", reason="OSError: [Errno 24] Too many open files")
    made.measure(Told(failed), TWO)  # type: ignore[arg-type]
    workers = next(candidate for candidate in selection.outcomes() if candidate.fix.id == "workers")
    assert "`ulimit -n`" in workers.failures[TWO.key]
    assert selection.measured.windows[-1].reason == failed.reason, "the window keeps what was said"


def test_hang_as_written_after_loading_here_is_loading_heres() -> None:
    selection, made = make(replace(FOUND, num_workers=2, prefetch_factor=2))
    session = Told(OK, OK, None)
    made.measure(session, AS_WRITTEN)  # type: ignore[arg-type]
    made.measure(session, NONE)  # type: ignore[arg-type]
    with pytest.raises(SessionOver):
        made.measure(session, AS_WRITTEN)  # type: ignore[arg-type]
    assert not selection.alive(NONE)
    assert selection.alive(BFLOAT)


def test_ranks_that_came_apart_blame_no_setting() -> None:
    selection, made = make()
    session = Told(None)
    for rank, length in ((0, 12), (1, 10)):
        hello = Hello(token="", pid=rank, python="", torch="", rank=rank, world=2)
        session.rank_group.found(hello, replace(FOUND, epoch_batches=length), 0.0)
    session.rank_group.settle(0.0)
    session.rank_group.granted(Grant(1, {}, "timed", 0, 1))
    with pytest.raises(SessionOver, match="12 in rank 0, 10 in rank 1") as over:
        made.measure(session, TWO)  # type: ignore[arg-type]
    assert over.value.apart
    assert selection.alive(TWO)


SHORT = WindowDone(window=0, status="ok", steps=10, samples=40.0, seconds=0.1)
LONG = WindowDone(window=0, status="ok", steps=80, samples=320.0, seconds=1.2)


def test_window_that_was_too_short_for_its_queue_is_taken_again_and_only_the_second_counts() -> None:
    """Steps of 0.1 s are known as written. With workers, one of them took 0.01 s, so that 0.1 s of a second was timed:
    the batches that lay ready before are a large part of that."""
    selection, made = make()
    window = made.measure(Told(SHORT, LONG), TWO)  # type: ignore[arg-type]
    assert [(each.steps, each.status) for each in selection.measured.windows] == [(10, "discarded"), (80, "ok")]
    assert window is selection.measured.windows[-1]
    assert "too short" in selection.measured.windows[0].reason
    assert made.costs.step(TWO) == pytest.approx(0.015)


@pytest.mark.parametrize("second", [None, WindowDone(window=0, status="failed", reason="RuntimeError: no")])
def test_first_window_counts_where_the_second_does_not_come(second: WindowDone | None) -> None:
    selection, made = make()
    if second is None:
        ends(made, TWO, SHORT, Exited(1, "ValueError: mine"))
    else:
        made.measure(Told(SHORT, second), TWO)  # type: ignore[arg-type]
    assert selection.measured.windows[0].status == "ok"


@pytest.mark.parametrize(
    ("each", "answer", "left"),
    [
        (BFLOAT, SHORT, 100.0),
        (TWO, replace(SHORT, seconds=0.5), 100.0),
        (TWO, replace(SHORT, seconds=0.39), 1.2),
    ],
    ids=["no workers", "long enough", "no time"],
)
def test_window_is_not_taken_again_where_nothing_lay_ready_or_no_time_is_left(
    each: Probe, answer: WindowDone, left: float
) -> None:
    selection, made = make(left=left)
    made.measure(Told(answer), each)  # type: ignore[arg-type]
    assert [window.status for window in selection.measured.windows] == ["ok"]


def test_time_that_is_over_is_no_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prober, "HANG_SECONDS", 30.0)
    selection, made = make(left=-100.0)
    with pytest.raises(OutOfTime):
        made.measure(Told(None), TWO)  # type: ignore[arg-type]
    assert selection.alive(TWO)


def test_memory_of_a_device_is_the_most_of_all_windows() -> None:
    _, made = make()
    sizes = [(5, 8), (9, 16), (None, None), (7, 32)]
    answers = [replace(OK, device_bytes=peak, device_reserved_bytes=held) for peak, held in sizes]
    session = Told(*answers)
    for _ in answers:
        made.measure(session, AS_WRITTEN)  # type: ignore[arg-type]
    assert (made.device_bytes, made.device_reserved_bytes) == (9, 32)


def test_a_type_needs_an_epoch_to_settle_once_a_process() -> None:
    _, made = make(replace(FOUND, epoch_batches=10))
    made.costs.shape = replace(made.costs.shape, epoch_batches=10)
    made.costs.epochs = True
    lead_ins: list[int] = []

    class Noting(Told):
        def grant(self, grant: Any) -> None:
            super().grant(grant)
            lead_ins.append(grant.lead_in)

    session = Noting(OK, OK, OK)
    both = probe("both", {"autocast": "bfloat16", "num_workers": 2})
    for each in (BFLOAT, both):
        made.measure(session, each)  # type: ignore[arg-type]
    later = Noting(OK)
    later.number = 2
    made.measure(later, both)  # type: ignore[arg-type]
    assert lead_ins == [1, 0, 1]


def test_until_there_is_a_baseline_it_may_take_what_was_set_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prober, "HANG_SECONDS", 1000.0)
    waited: list[float] = []

    def await_event(session: Told, patience: float, now: Any) -> Any:
        waited.append(patience)
        return session.event(patience)

    monkeypatch.setattr(waiting, "await_event", await_event)
    _, made = make(left=3.0)
    made.spare = 20.0
    session: Any = Told(OK, OK, OK, OK)
    for each in (probe(BURN_IN, {}), AS_WRITTEN, AS_WRITTEN, TWO):
        made.measure(session, each)
    assert waited == pytest.approx([23.0, 23.0, 3.0, 3.0], abs=1.0)
    assert made.has_baseline()


def test_an_evaluation_is_no_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    class Away(Told):
        """Says nothing for as long as it is away."""

        def event(self, timeout: float) -> Any:
            return None if self.away else super().event(timeout)

    selection, made = make()
    session: Told = Away(OK)
    session.away = [True, True, False, True, False]
    made.measure(session, TWO)  # type: ignore[arg-type]
    assert [window.status for window in selection.measured.windows] == ["ok"]
    assert session.away == []
    assert selection.alive(TWO)
    # Its end is seen meanwhile.

    class Ending(Told):
        def event(self, timeout: float) -> Any:
            return Exited(0, "") if len(self.away) < 98 else None

    session = Ending()
    session.away = [True] * 100
    with pytest.raises(SessionOver, match="came to its end"):
        made.measure(session, TWO)  # type: ignore[arg-type]
    assert session.away, "nobody waits for the return of what is gone"
    assert selection.alive(TWO)
    # One that takes for ever costs the process, and is nobody's fault.
    monkeypatch.setattr(waiting, "AWAY_SECONDS", 0.1)
    session = Told()
    session.away = [True] * 100
    with pytest.raises(SessionOver, match="something other than training") as over:
        made.measure(session, TWO)  # type: ignore[arg-type]
    assert not over.value.crashed
    assert selection.alive(TWO)
    # Nor is it waited for beyond the time.
    monkeypatch.setattr(waiting, "AWAY_SECONDS", 100.0)
    _, made = make(left=-100.0)
    session = Told()
    session.away = [True] * 100
    with pytest.raises(OutOfTime):
        made.measure(session, TWO)  # type: ignore[arg-type]


class Stepping:
    """A session that says nothing, and makes a step every `every` seconds of its own clock until `last`."""

    def __init__(self, every: float, *, last: float = 1e9, away: tuple[float, float] = (0.0, 0.0)) -> None:
        self.time = 0.0
        self.every, self.last, self.away = every, last, away
        self.ends = False
        self.answer: Any = None
        self.answers_at = 1e9

    def now(self) -> float:
        return self.time

    def progress(self) -> dict[int, int]:
        return {0: int(min(self.time, self.last) / self.every)}

    def is_away(self) -> bool:
        return self.away[0] <= self.time < self.away[1]

    def has_last_step(self) -> bool:
        return self.ends and self.time >= self.last

    def event(self, timeout: float) -> Any:
        self.time = min(self.time + timeout, max(self.time, self.answers_at))
        return self.answer if self.time >= self.answers_at else None


def waits(session: Stepping, limit: float, *, until: float = 1000.0, patience: float = 1e9) -> Any:
    return waiting.awaited(session, limit, until, patience, session.now)  # type: ignore[arg-type]


def test_slow_steps_are_no_hang() -> None:
    """However many times longer than expected their window takes, as long as each of them is made."""
    slow = Stepping(6.5)
    slow.answer, slow.answers_at = OK, 240.0
    assert waits(slow, 30.0) is OK
    assert slow.time == 240.0
    # They are waited for until the time is over, and not beyond.
    slow = Stepping(6.5)
    assert waits(slow, 30.0, until=100.0) is None
    assert slow.time == pytest.approx(100.0)
    # A setting gets a part of it only.
    slow = Stepping(6.5)
    assert isinstance(waits(slow, 30.0, patience=60.0), TooSlow)
    assert 60.0 < slow.time < 68.0


def test_no_step_at_all_is_a_hang_as_soon_as_ever() -> None:
    still = Stepping(6.5, last=0.0)
    assert waits(still, 30.0) == Hung(30.0)
    assert still.time == pytest.approx(30.0)
    # From the last step on, where there were some.
    later = Stepping(6.5, last=20.0)
    assert waits(later, 30.0) == Hung(30.0)
    assert 49.0 < later.time < 52.0
    # Where nobody sees steps, as of ranks on other hosts, the whole window counts.
    unseen = Stepping(6.5)
    unseen.progress = dict  # type: ignore[method-assign]
    assert waits(unseen, 30.0) == Hung(30.0)
    assert unseen.time == pytest.approx(30.0)


def test_an_evaluation_between_steps_is_neither_a_hang_nor_slow() -> None:
    class Evaluating(Stepping):
        def progress(self) -> dict[int, int]:
            away = max(0.0, min(self.time, self.away[1]) - self.away[0])
            return {0: int((self.time - away) / self.every)}

    session = Evaluating(2.0, away=(10.0, 90.0))
    session.answer, session.answers_at = OK, 130.0
    assert waits(session, 30.0, patience=60.0) is OK


def test_what_comes_after_the_last_step_is_not_waited_for() -> None:
    """As long as a new process takes to its loop, since training may go on; not for the whole of a long test."""
    tests = Stepping(2.0, last=20.0, away=(20.0, 200.0))
    tests.answer, tests.answers_at = Exited(0, ""), 200.0
    tests.ends = True
    with pytest.raises(SessionOver, match="came to its end: it had made all of its steps"):
        waiting.awaited(tests, 30.0, 1000.0, 1e9, tests.now, last=8.0)  # type: ignore[arg-type]
    assert 27.0 < tests.time < 31.0
    # Who trains on before that is measured on, and where no end is known, nothing is taken for it.
    for ends, back in ((True, 26.0), (False, 90.0)):
        pauses = Stepping(2.0, last=20.0, away=(20.0, back))
        pauses.ends = ends
        pauses.answer, pauses.answers_at = OK, back
        assert waiting.awaited(pauses, 30.0, 1000.0, 1e9, pauses.now, last=8.0) is OK  # type: ignore[arg-type]


def test_a_pause_is_waited_for_no_longer_than_a_new_process_takes() -> None:
    for back, left in ((26.0, False), (90.0, True)):
        pauses = Stepping(2.0, last=20.0, away=(20.0, back))
        pauses.answer, pauses.answers_at = OK, back
        if left:
            with pytest.raises(SessionOver, match="other than training for long") as over:
                waiting.awaited(pauses, 30.0, 1000.0, 1e9, pauses.now, pause=8.0)  # type: ignore[arg-type]
            assert 28.0 <= pauses.time < 31.0
            assert over.value.still == pytest.approx(pauses.time - 20.0, abs=2.0)
        else:
            assert waiting.awaited(pauses, 30.0, 1000.0, 1e9, pauses.now, pause=8.0) is OK  # type: ignore[arg-type]
    # A slow step is no pause.
    slow = Stepping(25.0)
    slow.answer, slow.answers_at = OK, 60.0
    assert waiting.awaited(slow, 30.0, 1000.0, 1e9, slow.now, pause=8.0) is OK  # type: ignore[arg-type]


class Taking(Told):
    """A session whose windows take so many seconds each."""

    def __init__(self, clock: list[float], seconds: float, *answers: Any) -> None:
        super().__init__(*answers)
        self.clock, self.seconds = clock, seconds

    def grant(self, grant: Any) -> None:
        super().grant(grant)
        self.clock[0] += self.seconds


@pytest.mark.parametrize(
    ("leaves", "epochs", "answers", "seconds"),
    [
        (True, 0, [OK], 25.0 + 9.0 + 7.0),
        (True, 0, [OK, OK], 25.0 + 9.0 + 7.0),  # What the first window takes is what a new process costs.
        (True, 0, [replace(OK, status="failed"), OK], 25.0 + 9.0 + 14.0),
        (False, 0, [OK], math.inf),
        (True, 2, [OK], math.inf),  # The window holds pauses.
        (True, 0, [], math.inf),  # The next process would come no further.
    ],
)
def test_a_pause_is_left_where_a_new_process_shows_something_sooner(
    leaves: bool, epochs: int, answers: list[WindowDone], seconds: float
) -> None:
    clock = [0.0]
    selection, made = make(now=lambda: clock[0])
    selection.measured.found = replace(selection.measured.found, setup_seconds=25.0, step_seconds=[2.0, 3.0, 4.0])
    made.leaves_pauses = leaves
    session: Any = Taking(clock, 7.0, *answers)
    for _ in answers:
        made.measure(session, AS_WRITTEN)
    size = WindowSize(lead_in=2, steps=0 if epochs else 8, epochs=epochs)
    assert made._longest_pause(session, size) == seconds


def test_a_lead_in_may_take_three_times_as_long_as_planned() -> None:
    _, made = make()
    granted: list[Grant] = []

    class Noting(Told):
        def grant(self, grant: Any) -> None:
            super().grant(grant)
            granted.append(grant)

    made.measure(Noting(OK), TWO)  # type: ignore[arg-type]
    assert granted[0].most_lead_in_seconds >= 3.0 * granted[0].lead_in * 0.1
    assert granted[0].most_lead_in_seconds >= granted[0].most_seconds > 0
    made.costs.shape = replace(made.costs.shape, epoch_batches=10)
    made.costs.epochs = True
    made.measure(Noting(OK), AS_WRITTEN)  # type: ignore[arg-type]
    assert granted[1].epochs
    assert granted[1].most_lead_in_seconds == 0.0, "an epoch is led in with from its start to its end"


def test_an_epoch_is_as_long_as_windows_show() -> None:
    selection, made = make()
    made.measure(Told(OK), AS_WRITTEN)  # type: ignore[arg-type]
    assert (made.epoch_seen, selection.measured.epoch_batches) == (None, FOUND.epoch_length)
    made.measure(Told(replace(OK, epoch_batches=6)), ONE)  # type: ignore[arg-type]
    assert (made.epoch_seen, selection.measured.epoch_batches, made.costs.shape.epoch_batches) == (6, 6, 6)
    assert not made.costs.epochs, "a window as written was counted that is no whole epoch"


def test_windows_are_whole_epochs_if_epochs_turn_out_to_be_short_before_one_is_counted() -> None:
    selection, made = make()
    made.explain(Told(replace(OK, epoch_batches=6)), probe("sampled", {}, mode="sampled"), 1.0, {})  # type: ignore[arg-type]
    assert made.costs.epochs
    assert selection.measured.epoch_batches == 6


def test_what_a_process_saw_between_epochs_is_kept_as_any_window_tells_it() -> None:
    selection, made = make()
    session: Any = Told(
        replace(OK, pauses={"epoch_pause": {"seen": 1}}), replace(OK, pauses={"epoch_pause": {"seen": 2}}), OK
    )
    for _ in range(3):
        made.measure(session, AS_WRITTEN)
    assert selection.measured.pauses == {1: {"epoch_pause": {"seen": 2}}}
