"""What is measured of programs with slow steps and slow starts, on a machine that is made up: the budget is the default
one, and it holds few windows and few starts."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.made_up_machine import FOUND_AFTER, FOUND_AGAIN_AFTER, Examined, Machine

from bottleneck_doctor.documents.report import Window
from bottleneck_doctor.examine import time_wanted
from bottleneck_doctor.examine.examination import DEFAULT_BUDGET
from bottleneck_doctor.measure import pairing
from bottleneck_doctor.measure.schedule import LEAST_SESSIONS
from bottleneck_doctor.render import html

AMP = "autocast=bfloat16"
FED: dict[str, Any] = {"workers": 2, "load": 0.01}
"""Two workers that have next to nothing to do."""
BARE: dict[str, Any] = {"loader": False, "wait": 0.0}
EXPLAINING = ("phases", "sampled", "trace", "lines")


def examined(step: float, start: float, made: dict[str, Any], **asked: Any) -> Examined:
    speeds = {AMP: 1.3, **asked.pop("speeds", {})}
    machine = Machine(step=step, start=start, speeds=speeds, **made, **asked)
    # One setting that computes faster is enough to see who comes first.
    return Examined(machine, skip=frozenset({"threads"}))


def sessions(ran: Examined) -> dict[str, int]:
    """Processes in which each setting was measured."""
    usable = [window for window in ran.result.windows if pairing.usable(window)]
    return {label: len({each.session for each in usable if each.label == label}) for label in labels(usable)}


def labels(windows: list[Window]) -> set[str]:
    return {window.label for window in windows}


def fits(step: float, start: float, window_steps: int) -> bool:
    """Whether three processes, each with a setting between two windows as written, fit the default budget. The first
    start is on nobody's bill."""
    windows = LEAST_SESSIONS * 3 * window_steps * step
    return (LEAST_SESSIONS - 1) * (start + FOUND_AFTER * step) + windows < DEFAULT_BUDGET


@pytest.mark.parametrize("made", [FED, BARE])
@pytest.mark.parametrize(("step", "start", "window_steps"), [(2.5, 20.0, 3), (0.8, 60.0, 6), (6.0, 5.0, 3)])
def test_the_likeliest_is_measured_in_as_many_processes_as_a_claim_needs(
    made: dict[str, Any], step: float, start: float, window_steps: int
) -> None:
    """Also where the default budget doesn't hold that, and more time is taken: with steps of 6 s it takes 2 × 53 s of
    starts and 9 windows of 18 s."""
    first = ("phases", "sampled") if step < 1.0 else ("phases",)
    ran = examined(step, start, made).expects(*first, "baseline", AMP, "baseline")
    assert fits(step, start, window_steps) is (step < 6.0)
    assert sessions(ran)[AMP] >= LEAST_SESSIONS
    assert ran.result.verdict.fix == "amp-bf16"


def test_steps_of_eight_seconds_are_decided_in_ten_minutes() -> None:
    """As a public program has them: the time is enough only because later processes find their loop sooner."""
    ran = examined(8.1, 12.0, FED)
    assert sessions(ran)[AMP] >= LEAST_SESSIONS
    assert ran.result.verdict.fix == "amp-bf16"
    assert ran.result.method.seconds <= time_wanted.LONGEST


def test_processes_after_the_first_find_the_loop_that_it_had_in_fewer_steps() -> None:
    ran = examined(2.5, 20.0, FED)
    first, *later = (session.setup_seconds for session in ran.result.method.sessions)
    assert len(later) >= 2
    assert first == pytest.approx(20.0 + 2.5 * FOUND_AFTER, rel=0.05)
    assert later == pytest.approx([20.0 + 2.5 * FOUND_AGAIN_AFTER] * len(later), rel=0.05)


def test_short_steps_are_looked_at_anew_in_each_process() -> None:
    """They are over before the process is warm, and say how it goes."""
    ran = examined(0.8, 20.0, FED)
    setups = [session.setup_seconds for session in ran.result.method.sessions]
    assert setups == pytest.approx([20.0 + 0.8 * FOUND_AFTER] * len(setups), rel=0.05)


@pytest.mark.parametrize("made", [FED, BARE])
def test_long_level_steps_are_led_in_by_one_and_timed_by_two(made: dict[str, Any]) -> None:
    ran = examined(2.5, 20.0, made)
    timed = [window for window in ran.result.windows if pairing.usable(window)]
    assert {(window.lead_in_steps, window.steps) for window in timed if window.label == "baseline"} == {(1, 2)}
    # What bfloat16 compiles or caches in its first step of each process stays out of what is timed.
    first = {window.session: window for window in reversed(timed) if window.label == AMP}
    assert {window.lead_in_steps for window in first.values()} == {2}


def test_no_ceiling_is_measured_where_none_waits() -> None:
    ran = examined(2.5, 20.0, FED)
    result = ran.result
    assert not {"replay", "loader_only"} & set(ran.names)
    assert result.ceilings == {}
    assert result.without_ceilings == "there was no need, since waiting for data takes under 0.1 % of the time"
    refused = {fix.id: fix.reason for fix in result.fixes if fix.status == "not_applicable"}
    for fix in ("workers", "no-workers", "intra-op-threads", "persistent-workers", "prefetch-factor"):
        assert refused[fix] == (
            "too little to gain: waiting for data takes under 0.1 % of the time, as the first look at the phases of a "
            "step showed"
        )
    page = html.render(result)
    assert "was not measured: there was no need, since waiting for data takes under 0.1 % of the time." in page
    assert "How fast training would be if every batch were ready at once</li>" not in page


def test_where_workers_crowd_the_cpus_what_frees_them_is_tried() -> None:
    """Batches take a fifth of what a step computes, on the two CPUs that it computes with."""
    ran = examined(2.5, 5.0, {"workers": 2, "load": 0.5}, speeds={"replay=True": 1.2})
    reasons = {fix.id: fix.reason for fix in ran.result.fixes}
    assert ran.result.without_ceilings == ""
    assert reasons["workers"].startswith("too little to gain: ")
    for fix in ("no-workers", "intra-op-threads"):
        assert not reasons[fix].startswith("too little to gain: ")


@pytest.mark.parametrize(("load", "workers"), [(1.0, 0), (6.0, 2)])
def test_where_steps_wait_nothing_is_left_out(load: float, workers: int) -> None:
    ran = examined(2.5, 5.0, {"workers": workers, "load": load})
    assert ran.result.without_ceilings == ""
    assert not any(fix.reason.startswith("too little to gain: waiting") for fix in ran.result.fixes)


def test_a_loop_that_only_waits_has_nothing_to_compute_faster() -> None:
    ran = examined(0.001, 5.0, {"workers": 0, "load": 0.5})
    amp = next(fix for fix in ran.result.fixes if fix.id == "amp-bf16")
    assert amp.reason.startswith("too little to gain: computing takes 0.2 % of the time, as the first look")
    assert AMP not in ran.names


def test_where_steps_wait_the_number_of_workers_that_keeps_up_comes_first() -> None:
    """A batch takes as long as the step that it is for."""
    speeds = {f"num_workers={count}": 1.0 for count in (1, 2, 4)}
    ran = examined(2.0, 30.0, {"workers": 0, "load": 2.0}, speeds=speeds)
    first = next(name for name in ran.names if name not in (*EXPLAINING, "baseline", "burn-in"))
    assert first == "num_workers=1"
    assert sessions(ran)[first] >= 2
    workers = next(fix for fix in ran.result.fixes if fix.id == "workers")
    assert workers.speedup is not None
    assert workers.speedup.estimate == pytest.approx(2.0, rel=0.02)


def test_what_clearly_loses_in_its_first_pair_leaves_its_time_to_the_next() -> None:
    ran = examined(2.5, 10.0, {"workers": 2, "load": 0.5}, speeds={AMP: 0.8, "num_workers=0": 1.6, "replay=True": 1.2})
    assert [name for name in ran.names if name not in (*EXPLAINING, "baseline")][:2] == [AMP, "num_workers=0"]
    measured = sessions(ran)
    assert measured[AMP] == 1
    assert measured["num_workers=0"] == LEAST_SESSIONS
    assert ran.result.verdict.fix == "no-workers"


SHORT_EPOCHS: dict[str, Any] = {"workers": 8, "load": 3.0, "epoch": 6, "pause": 12.0}
"""Six batches an epoch and eight workers on two CPUs, as a public program has them."""


@pytest.mark.parametrize("speed", [0.8, 1.0, 1.05])
def test_where_nothing_leads_the_first_process_tries_all_there_is_to_try(speed: float) -> None:
    """Another one would take a start of a minute and a half, and have nothing worth an edit to confirm."""
    ran = examined(5.3, 52.0, SHORT_EPOCHS, speeds={AMP: speed})
    tried = {name for name in ran.names if name not in (*EXPLAINING, "baseline")}
    assert tried == {AMP, "num_workers=0", "intra_op_threads=1,num_workers=8"}
    assert len(ran.result.method.sessions) == 1
    assert "Nothing that was tried is likely to help" in ran.result.verdict.sentence
    assert ran.result.method.seconds < time_wanted.LONGEST
    assert any("can be tried: about 6 minutes in all" in said for said, _ in ran.machine.noted)


def test_what_leads_is_confirmed_before_the_rest_is_tried() -> None:
    ran = examined(5.3, 52.0, SHORT_EPOCHS, speeds={AMP: 1.0, "num_workers=0": 4.0})
    assert sessions(ran)["num_workers=0"] >= 2
    assert ran.result.verdict.fix == "no-workers"
    assert ran.result.method.seconds <= time_wanted.LONGEST


@pytest.mark.parametrize(
    ("step", "start", "load", "epoch"), [(5.3, 52.0, 10.0, 6), (5.3, 40.0, 14.0, 6), (4.0, 60.0, 14.0, 8)]
)
def test_time_for_a_first_setting_is_asked_for_where_one_window_takes_nearly_all_there_was(
    step: float, start: float, load: float, epoch: int
) -> None:
    """The window as written holds several epochs, after a first look of a minute and a half."""
    ran = examined(step, start, {**SHORT_EPOCHS, "load": load, "epoch": epoch}, speeds={AMP: 1.9})
    assert sessions(ran)[AMP] == 1
    assert "makes training at least 1." in ran.result.verdict.sentence
    assert ran.result.method.seconds <= time_wanted.LONGEST


def test_time_for_the_training_as_written_is_asked_for() -> None:
    ran = examined(5.3, 20.0, {**SHORT_EPOCHS, "load": 14.0, "epoch": 8}, speeds={AMP: 1.9})
    assert ran.names[:2] == ["phases", "baseline"]
    assert ran.result.baseline is not None
    assert ran.result.method.seconds <= time_wanted.LONGEST


def test_what_ten_minutes_can_confirm_in_no_other_process_leaves_them_to_the_rest() -> None:
    """As a public program has it: steps of 15 s, of which a gain of 1.4 takes two more processes to be sure of."""
    ran = examined(15.0, 13.0, {"workers": 1, "load": 0.5}, speeds={AMP: 1.4, "num_workers=0": 3.0})
    assert sessions(ran)[AMP] == 1
    assert sessions(ran)["num_workers=0"] == 1
    assert "makes training at least" in ran.result.verdict.sentence
    assert ran.result.method.seconds <= time_wanted.LONGEST


def test_time_that_the_user_set_is_not_added_to() -> None:
    machine = Machine(step=5.3, start=52.0, speeds={AMP: 1.0}, **SHORT_EPOCHS)
    assert Examined(machine, budget=240.0).result.method.seconds <= 240.0


def test_nothing_is_thrown_away_where_long_steps_are_level_by_the_end_of_the_first_look() -> None:
    """The first steps of all are slow, and it took those of the first look to be done with that."""
    ran = examined(0.6, 20.0, BARE, cold=4.0, warming=1.1)
    assert [window.label for window in ran.result.windows[:4]][2:] == ["baseline", AMP]
    # Where they were not quite done, one window more is enough to see that they are.
    ran = examined(0.6, 20.0, BARE, cold=4.0, warming=2.0)
    assert [window.label for window in ran.result.windows[:5]][2:] == ["burn-in", "baseline", AMP]


def test_steps_that_are_not_alike_are_timed_by_more_than_two() -> None:
    ran = examined(2.5, 5.0, BARE, cold=40.0, warming=2.0)
    timed = [window for window in ran.result.windows if window.label == "baseline"]
    assert {window.steps for window in timed} == {3}


def test_fixes_are_measured_together_before_what_is_slower_than_the_best_of_them() -> None:
    """Several numbers of workers and what builds on them are faster, too, and would take all of the time."""
    counts = {f"num_workers={count}": 1.6 for count in (1, 2, 4)}
    riders = {f"num_workers=2,{rider}": 1.6 for rider in ("persistent_workers=True", "prefetch_factor=4")}
    speeds = {**counts, **riders, "intra_op_threads=1,num_workers=2": 1.6}
    speeds |= {f"autocast=bfloat16,{key}": 2.08 for key in counts}
    ran = examined(1.5, 15.0, {"wait": 0.5}, speeds=speeds)
    assert ran.result.verdict.together
    assert "make training 2.1× faster" in ran.result.verdict.sentence


def test_a_slow_script_that_soon_ends_is_decided_by_what_leads() -> None:
    """As a public program has it: 24 steps of 8 s in three epochs of 8 batches, fed by four workers. A whole epoch as a
    window would take a third of its life, and no process lives long enough to try everything."""
    ran = examined(8.0, 2.0, {"workers": 4, "load": 0.3}, epoch=8, steps=24, speeds={AMP: 1.5})
    assert sessions(ran)[AMP] >= LEAST_SESSIONS
    assert ran.result.verdict.fix == "amp-bf16"
    assert ran.result.method.seconds <= time_wanted.LONGEST


def test_a_whole_epoch_is_a_window_where_its_start_is_waited_for() -> None:
    """Steps of a second each, which wait for what four workers make."""
    ran = examined(1.0, 2.0, {"workers": 4, "load": 8.0}, epoch=8)
    timed = [window for window in ran.result.windows if pairing.usable(window) and window.mode == "timed"]
    assert {window.steps % 8 for window in timed} == {0}


@pytest.mark.parametrize(("steps", "said"), [(0, "steps are counted by batches"), (4, "an optimizer made steps later")])
def test_a_loop_of_batches_alone_may_not_be_the_training(steps: int, said: str) -> None:
    result = Examined(Machine(rung="batches", optimizer_steps=steps)).result
    (warning,) = [each for each in result.warnings if each.slug == "lower-rung"]
    assert said in warning.sentence
