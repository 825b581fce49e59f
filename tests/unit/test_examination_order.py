"""The order of an examination, on a machine that is made up: what comes first, what is left out, when all is over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.unit.made_up_machine import Examined, Machine

from bottleneck_doctor.documents.report import FixOutcome, Profiles, Window
from bottleneck_doctor.errors import Exit
from bottleneck_doctor.examine import judge
from bottleneck_doctor.examine.evidence import JudgeEvidence
from bottleneck_doctor.examine.examination import DEFAULT_BUDGET
from bottleneck_doctor.examine.time_wanted import LONGEST
from bottleneck_doctor.explain.explainer import ALLOWANCE, Explainer
from bottleneck_doctor.fixes import catalogue
from bottleneck_doctor.measure import quiet
from bottleneck_doctor.render.html import render
from bottleneck_doctor.session import autopsy
from bottleneck_doctor.session.failure import Frame, Stack

KEPT = 1.03
"""Part of a budget in which all has to be over."""


def profiles_of(examined: Examined) -> Profiles:
    assert examined.result.profiles is not None
    return examined.result.profiles


def test_the_reason_comes_before_any_figure() -> None:
    examined = Examined(Machine(step=0.01)).expects("phases", "sampled", "baseline", "replay", "loader_only")
    assert examined.error is None
    assert examined.result.baseline is not None
    # The rest of the explanation comes behind everything that counts in its process.
    first = [each.name for each in examined.machine.happened if each.session == 1]
    assert first[-1] == "trace"
    assert first.index("trace") > max(place for place, name in enumerate(first) if name == "baseline")
    assert examined.names[-1] == "lines" or "lines" in examined.names
    assert examined.names.count("sampled") == 1


def test_a_fix_asked_for_alone_gets_its_reason_from_windows_of_the_training_as_written() -> None:
    """Until the loop is found, the collector hardly runs; between epochs, it takes twice what their steps take."""
    machine = Machine(step=0.01, wait=0.1, epoch=50, collecting=1.0)
    examined = Examined(machine, only=frozenset({"gc-freeze"}))
    (frozen,) = [each for each in examined.result.fixes if each.id == "gc-freeze"]
    assert frozen.status == "faster"
    assert frozen.speedup is not None
    assert frozen.speedup.estimate == pytest.approx(3.0, rel=0.02)


def test_what_was_looked_at_first_is_looked_at_once_more_behind_the_measurements() -> None:
    """Pauses between epochs are seen by then, and what a step takes without timers."""
    names = [each.name for each in Examined(Machine()).machine.happened if each.session == 1]
    assert names[0] == "phases"
    assert "phases" in names[names.index("baseline") :]


def test_only_the_first_process_looks_for_what_nobody_will_try() -> None:
    examined = Examined(Machine(step=0.01))
    first, *later = examined.machine.tried
    assert first is None
    assert later
    for number, tried in enumerate(later, 2):
        assert tried is not None
        taken = {name for each in examined.result.windows if each.session == number for name in each.setting}
        assert taken - {"replay", "allocator"} <= tried, "nothing is looked for where a process starts with a setting"


@pytest.mark.parametrize(("step", "start"), [(0.01, 2.0), (1.0, 15.0), (3.0, 20.0), (7.0, 40.0)])
@pytest.mark.parametrize("workers", [0, 4])
def test_slow_steps_leave_a_reason_and_a_baseline_at_the_default_budget(
    step: float, start: float, workers: int
) -> None:
    examined = Examined(Machine(step=step, start=start, workers=workers)).expects("phases")
    assert ("sampled" in examined.names) == (step < 1.0 or (workers == 0 and step == 1.0)), (
        "one window does where each takes long"
    )
    assert examined.error is None
    result = examined.result
    assert result.baseline is not None
    assert result.findings
    assert result.profiles is not None
    assert result.profiles.sampling is not None
    assert "data" in result.verdict.sentence


@pytest.mark.parametrize(("step", "start", "budget"), [(2.0, 10.0, 60.0), (3.0, 10.0, 60.0), (7.0, 40.0, 180.0)])
def test_slow_steps_leave_a_reason_under_a_small_budget(step: float, start: float, budget: float) -> None:
    examined = Examined(Machine(step=step, start=start), budget=budget).expects("phases")
    assert examined.result.findings
    assert examined.machine.now <= KEPT * budget


def test_burn_in_is_no_longer_than_it_has_to_be() -> None:
    """Steps of seconds have warmed up where the loop was found; short ones that are not level warm up first."""
    slow = Examined(Machine(step=3.0, start=20.0))
    timed = [each for each in slow.machine.happened if each.name == "baseline" and each.session == 1]
    first = slow.machine.happened[0]
    assert timed[0].began - first.began < 0.2 * (DEFAULT_BUDGET + ALLOWANCE)


@pytest.mark.parametrize(("step", "epoch", "whole"), [(0.1, 8, True), (0.9, 8, True), (1.1, 8, False), (3.0, 8, False)])
def test_short_epochs_are_timed_whole_where_they_fit(step: float, epoch: int, whole: bool) -> None:
    """What is measured of long steps is better than nothing, where whole epochs would not end in time."""
    examined = Examined(Machine(step=step, start=10.0, epoch=epoch), budget=75.0).expects("phases")
    assert examined.result.baseline is not None
    timed = [window for window in examined.result.windows if window.label == "baseline"]
    assert all(bool(window.whole_epochs) == whole for window in timed)


def test_where_nothing_can_be_tried_the_time_goes_to_explaining() -> None:
    """Steps of a third of a second: the allowance of a minute's budget holds neither trace nor lines."""
    skipped = frozenset(fix.id for fix in catalogue())
    examined = Examined(Machine(step=0.34, start=7.0), budget=60.0, skip=skipped)
    assert {"trace", "lines"} <= set(examined.names)
    assert examined.machine.now <= KEPT * 60.0
    assert "explanation-cut" not in [each.slug for each in profiles_of(examined).missing]


@pytest.mark.parametrize(("raised", "status"), [(1.0, "faster"), (10.0, "failed")])
def test_a_setting_that_raises_the_loss_is_measured_and_not_offered(raised: float, status: str) -> None:
    key = "autocast=bfloat16"
    machine = Machine(
        wait=0.02, speeds={key: 2.0}, loss=lambda process, step: 1 + 0.1 * (step % 3), raised={key: raised}
    )
    examined = Examined(machine)
    amp = next(fix for fix in examined.result.fixes if fix.id == "amp-bf16")
    assert amp.status == status
    assert ("autocast" in examined.result.verdict.sentence) == (status == "faster")
    assert all(window.loss is not None for window in examined.result.windows if window.label == "baseline")


def test_a_mistake_of_our_own_while_explaining_costs_nothing_that_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def mistaken(*_: Any, **__: Any) -> None:
        raise AttributeError("no such thing")

    monkeypatch.setattr(Explainer, "explain", mistaken)
    examined = Examined(Machine())
    assert examined.outcome is not None
    assert isinstance(examined.outcome.bug, AttributeError), "it is told all the same"
    assert examined.outcome.exit_code == Exit.BUG
    assert examined.result.baseline is not None
    assert examined.result.findings


def test_a_mistake_of_our_own_in_the_judge_leaves_the_windows_and_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    judged = judge.judge

    def mistaken(evidence: JudgeEvidence) -> judge.Judgement:
        if evidence.edits:
            raise KeyError("at the very end")
        return judged(evidence)

    monkeypatch.setattr(judge, "judge", mistaken)
    examined = Examined(Machine())
    assert examined.outcome is not None
    assert isinstance(examined.outcome.bug, KeyError)
    assert examined.outcome.exit_code == Exit.BUG
    assert [window for window in examined.result.windows if window.setting]
    assert examined.result.findings
    assert "bug of its own" in examined.result.verdict.sentence
    assert "bug of its own" in render(examined.result)


# -- parts of a step that are too small --------------------------------------------------------------------------------

FUSED = "fused_optimizer=True"


def outcome_of(examined: Examined, fix: str) -> FixOutcome:
    return next(each for each in examined.result.fixes if each.id == fix)


def test_a_fix_is_not_tried_where_the_part_that_it_acts_on_is_too_small() -> None:
    """The optimizer's 1.3 % are known before a window is spent on it."""
    examined = Examined(Machine(wait=0.01, optimizer=0.013, able=("fused_optimizer",), speeds={FUSED: 1.01}))
    assert FUSED not in examined.names
    outcome = outcome_of(examined, "fused-optimizer")
    assert outcome.status == "not_applicable"
    assert outcome.reason == "too little to gain: the optimizer takes only 1.3 % of the time"
    assert "amp-bf16" in [each.id for each in examined.result.fixes if each.speedup is not None], "the passes are not"


@pytest.mark.parametrize("share", [0.014, 0.4])
def test_it_is_tried_where_the_part_may_be_large_enough(share: float) -> None:
    """A share that was seen once may be off: 1.4 % as seen may be 2.1 %."""
    speed = 1 / (1 - share / 2)
    examined = Examined(Machine(wait=0.01, optimizer=share, able=("fused_optimizer",), speeds={FUSED: speed}))
    assert FUSED in examined.names


def test_what_the_phases_can_not_tell_is_tried() -> None:
    small = Machine(wait=0.01, optimizer=0.001, able=("fused_optimizer",))
    assert FUSED in Examined(replace(small), explain=False).names
    assert FUSED in Examined(replace(small), only=frozenset({"fused-optimizer"})).names
    # Something else ran beside the one window that told them.
    assert FUSED in Examined(replace(small, slow={1: 2.0})).names


# -- whatever ends it --------------------------------------------------------------------------------------------------


def test_out_of_time_before_a_baseline_still_tells_why() -> None:
    """Two windows of a slow step fit, and the baseline does not."""
    examined = Examined(Machine(step=5.0, start=10.0), budget=78.0).expects("phases")
    assert "baseline" not in examined.names
    assert examined.error is not None
    assert examined.error.exit_code == Exit.OUT_OF_TIME
    assert examined.outcome is not None
    assert examined.outcome.exit_code == Exit.OUT_OF_TIME
    result = examined.result
    assert result.baseline is None
    assert result.phases is not None
    assert result.findings[0].id == "input-bound"
    assert "waits for data" in result.verdict.sentence
    assert examined.error.sentence in result.verdict.sentence
    assert examined.machine.now <= KEPT * 78.0


def test_no_time_for_a_window_is_an_error_alone() -> None:
    examined = Examined(Machine(step=5.0, start=10.0), budget=52.0)
    assert examined.names == []
    assert examined.outcome is None
    assert examined.error is not None
    assert examined.error.exit_code == Exit.OUT_OF_TIME


@pytest.mark.parametrize("steps", [16, 20, 26])
def test_a_script_that_dies_after_some_steps_leaves_the_reason(steps: int) -> None:
    """Whoever crashes in a window that explains may owe it to that: another process is asked before it is blamed."""
    examined = Examined(Machine(step=1.0, start=5.0, steps=steps, code=1), budget=180.0)
    assert examined.error is not None or examined.result.baseline is not None
    if "phases" in examined.names:
        assert examined.result.findings
    if examined.result.baseline is None:
        assert examined.error is not None
        assert examined.error.exit_code == Exit.ENTRYPOINT_FAILED
        assert "ValueError: of its own" in examined.error.sentence


def test_a_script_that_dies_as_its_loop_is_found_is_an_error_alone() -> None:
    examined = Examined(Machine(step=1.0, start=5.0, steps=9, code=1), budget=180.0)
    assert examined.outcome is None
    assert examined.error is not None
    assert examined.error.slug == "entrypoint-failed"


@pytest.mark.parametrize(("workers", "slowly"), [(0, 40.0), (4, 25.0)])
def test_steps_that_turn_slow_are_no_hang(workers: int, slowly: float) -> None:
    """The third window, behind one from which it seems that a step takes a tenth of what it took before."""
    slow = {1: 10.0, 2: 1.0, 3: slowly}
    examined = Examined(Machine(step=0.6, start=10.0, workers=workers, slow=slow)).expects("phases", "sampled")
    assert examined.error is None
    assert examined.result.baseline is not None
    assert {record.ended for record in examined.result.method.sessions} <= {"told to end", "the time was over"}


@pytest.mark.parametrize("explain", [True, False])
def test_a_training_that_hangs_did_not_fail_by_itself(explain: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = Frame("<module>", "/project/train.py", 12, own=True)
    stack = Stack([Frame("acquire", "/lib/threading.py", 5, own=False), theirs])
    monkeypatch.setattr(autopsy, "stacks", lambda pid: [stack])
    examined = Examined(Machine(step=0.05, start=3.0, hangs_from=3 if explain else 1), explain=explain)
    assert examined.error is not None
    assert examined.error.slug == "training-hung"
    assert examined.error.exit_code == Exit.ENTRYPOINT_FAILED
    assert examined.error.sentence == (
        "The training made no step for 30 s under doctor, before doctor changed anything. The script was in "
        "`<module>` (train.py:12)."
    )
    assert examined.error.detail == "Epoch 1\n"
    assert examined.machine.now < 60.0, "it was given up as soon as it was clear"
    if not explain:
        assert examined.outcome is None
        return
    assert "waits for data" in examined.result.verdict.sentence
    assert examined.error.sentence in examined.result.verdict.sentence


def test_a_setting_under_which_steps_are_slow_costs_the_others_a_part_of_the_time() -> None:
    """Windows of whole epochs, which nothing cuts: sixty times as slow, and no hang."""
    speeds = {"autocast=bfloat16": 1 / 60}
    examined = Examined(Machine(step=0.1, start=2.0, epoch=10, speeds=speeds), budget=300.0, explain=False)
    fixes = {fix.id: fix for fix in examined.result.fixes}
    assert fixes["workers"].speedup is not None
    assert fixes["amp-bf16"].status == "failed"
    assert "though steps were made, over ten times as long as expected" in fixes["amp-bf16"].reason
    assert "hung" not in fixes["amp-bf16"].reason
    slow = [record for record in examined.result.method.sessions if "though steps were made" in record.ended]
    assert len(slow) == 1
    assert slow[0].seconds < 0.5 * 300.0


@pytest.mark.parametrize("mode", ["phases", "sampled"])
def test_a_process_that_breaks_under_our_hooks_is_not_the_scripts_fault(mode: str) -> None:
    examined = Examined(Machine(step=0.05, under=(mode,)), budget=90.0)
    assert examined.error is None
    assert examined.result.baseline is not None
    assert "baseline" in examined.names
    profiles = examined.result.profiles
    assert profiles is not None
    assert any(each.slug == "explanation-failed" for each in profiles.missing)
    # What did not break it is had once everything is measured.
    assert (profiles.sampling is not None) == (mode == "phases")
    assert sum(record.ended.startswith("the script failed") for record in examined.result.method.sessions) == 1


def test_a_process_of_long_steps_that_breaks_in_the_first_window_is_measured_without_it() -> None:
    """Its phases are timed and its stacks sampled in one window, so nobody knows which of them broke it."""
    examined = Examined(Machine(step=3.0, start=5.0, under=("phases",)))
    assert examined.error is None
    assert examined.result.baseline is not None
    assert sum(record.ended.startswith("the script failed") for record in examined.result.method.sessions) == 1
    assert "sampled" not in examined.names
    profiles = examined.result.profiles
    assert profiles is not None
    (missing,) = [each for each in profiles.missing if each.slug == "explanation-failed"]
    assert "lacks the phases of a step and the sampling profile" in missing.sentence


@pytest.mark.parametrize("steps", [12, 16, 24])
def test_a_script_that_ends_by_itself_leaves_the_reason(steps: int) -> None:
    """Twelve steps, of which eight went into finding the loop: the next process looks with the shortest windows."""
    examined = Examined(Machine(step=1.0, start=3.0, steps=steps), budget=180.0)
    assert "phases" in examined.names
    assert examined.result.findings
    if examined.result.baseline is None:
        assert examined.error is not None
        assert examined.error.exit_code == Exit.NO_TRAINING


@pytest.mark.parametrize("at", [30.0, 60.0, 100.0])
def test_interrupted_it_tells_what_is_known(at: float) -> None:
    examined = Examined(Machine(step=1.0, start=5.0, interrupted_at=at))
    assert examined.outcome is not None
    assert examined.outcome.exit_code == Exit.INTERRUPTED
    assert examined.result.findings
    assert "interrupted" in {warning.slug for warning in examined.result.warnings}


# -- time --------------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    step=st.floats(0.005, 10.0),
    start=st.floats(0.5, 60.0),
    budget=st.floats(20.0, 400.0),
    late=st.floats(0.5, 4.0),
    workers=st.sampled_from([0, 4]),
    slow=st.floats(0.05, 4.0),
    epoch=st.sampled_from([3, 8, 40, 100_000]),
)
@example(step=2.0, start=10.0, budget=60.0, late=1.0, workers=0, slow=1.0, epoch=8)
@example(step=7.0, start=40.0, budget=180.0, late=4.0, workers=4, slow=0.05, epoch=100_000)
def test_a_budget_is_kept(
    step: float, start: float, budget: float, late: float, workers: int, slow: float, epoch: int
) -> None:
    """However long a step takes once the loop is found, and however slow a setting is."""
    speeds = {f"num_workers={count}": slow for count in (0, 1, 2, 4, 8)}
    machine = Machine(step=step, start=start, late=late, workers=workers, speeds=speeds, epoch=epoch)
    examined = Examined(machine, budget=budget)
    assert machine.now <= KEPT * budget + machine.stopping
    assert examined.totals <= {budget}


@settings(max_examples=40, deadline=None)
@given(
    step=st.floats(0.005, 10.0),
    start=st.floats(0.5, 60.0),
    late=st.floats(0.5, 4.0),
    workers=st.sampled_from([0, 4]),
    explain=st.booleans(),
)
def test_without_one_it_takes_what_is_documented(
    step: float, start: float, late: float, workers: int, explain: bool
) -> None:
    """Three minutes beyond the first start, and one to explain. What is shown is that figure; it changes once at most,
    where that is not enough (`test_ending_early`)."""
    machine = Machine(step=step, start=start, late=late, workers=workers)
    examined = Examined(machine, explain=explain)
    setup = start + 8 * step
    documented = setup + DEFAULT_BUDGET + (ALLOWANCE if explain else 0.0)
    default, total = min(examined.totals), max(examined.totals)
    # Where that is known before anything is measured, the first figure that is shown is the longer one.
    assert default == pytest.approx(documented) or default == LONGEST
    assert len(examined.totals) <= 2
    assert machine.now <= KEPT * total + machine.stopping
    assert all(spent <= total for _, spent, total in machine.said if total is not None)


def test_no_total_is_shown_before_it_is_known() -> None:
    machine = Machine(step=1.0, start=30.0)
    Examined(machine)
    text, _, total = next(each for each in machine.said if "first training steps" in each[0])
    assert (text, total) == ("Process 1: waiting for the script's first training steps", None)


def in_bursts(busy: float, every: float, first: float = 30.0) -> Callable[[float], float]:
    """Two threads of others that want a CPU for `busy` of every `every` seconds, from `first` on."""
    return lambda now: 2.0 if now >= first and (now - first) % every < busy else 0.0


def taken_again(examined: Examined) -> list[Window]:
    return [each for each in examined.result.windows if each.reason == quiet.REASON]


def test_a_window_that_was_disturbed_is_taken_again_once_the_neighbour_is_gone() -> None:
    machine = Machine(speeds={"num_workers=2": 2.0}, others=in_bursts(3.0, 25.0))
    examined = Examined(machine)
    again = taken_again(examined)
    assert again
    assert all(each.status == "discarded" for each in again)
    assert examined.result.baseline is not None
    # What counts in its place was taken at once, under the same setting, beside nobody.
    windows = examined.result.windows
    for each in again:
        follows = windows[next(place for place, other in enumerate(windows) if other is each) + 1]
        assert (follows.label, follows.session, follows.block) == (each.label, each.session, each.block)
        assert follows.around is not None
        assert follows.around.others_wanted == 0.0
    assert any("waiting until another program" in text for text, _, _ in machine.said)


def test_a_neighbour_that_stays_is_the_machine_as_it_is() -> None:
    assert not taken_again(Examined(Machine(others=lambda now: 2.0)))
    # One that comes and stays costs a try or two in the process that it comes to, and little time.
    stays = Examined(Machine(others=lambda now: 2.0 if now > 30.0 else 0.0))
    assert 1 <= len(taken_again(stays)) <= quiet.MOST_AGAIN
    waited = [spent for text, spent, _ in stays.machine.said if "waiting until another program" in text]
    assert len(waited) <= 2 * quiet.MOST_AGAIN * quiet.WAIT_SECONDS / quiet.LOOK_SECONDS


def test_a_quiet_machine_waits_for_nobody() -> None:
    examined = Examined(Machine(slow={12: 3.0, 20: 3.0}))
    # That a window was slow is no reason: what decides is the load beside it.
    assert not taken_again(examined)
    assert not any("waiting until another program" in text for text, _, _ in examined.machine.said)


@pytest.mark.parametrize("budget", [60.0, 120.0])
@pytest.mark.parametrize("every", [6.0, 11.0, 20.0])
def test_windows_taken_again_keep_to_the_budget(budget: float, every: float) -> None:
    examined = Examined(Machine(others=in_bursts(3.0, every, first=10.0)), budget=budget)
    assert examined.machine.now <= KEPT * budget
    assert examined.result.baseline is not None
    per_session = Counter(each.session for each in taken_again(examined))
    assert all(count <= quiet.MOST_AGAIN for count in per_session.values())


def test_bursts_hide_no_fix() -> None:
    """Steps take twice as long in bursts, and the figures hold what they are without."""
    speeds = {"num_workers=1": 1.9, "num_workers=2": 2.0, "num_workers=4": 2.0}
    alone = Examined(Machine(speeds=speeds))
    beside = Examined(Machine(speeds=speeds, others=in_bursts(5.0, 19.0)))
    found = [
        max(each.speedup.estimate for each in examined.result.fixes if each.speedup) for examined in (alone, beside)
    ]
    assert found[1] == pytest.approx(found[0], rel=0.03)
