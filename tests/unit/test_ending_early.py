"""How long an examination takes: it ends once it is sure, and goes on where that pays, on a machine that is made up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.made_up_machine import Examined, Machine, Training

from bottleneck_doctor.documents import labels
from bottleneck_doctor.documents.report import FixOutcome
from bottleneck_doctor.errors import Exit
from bottleneck_doctor.examine import deciding, looks, telling, time_wanted
from bottleneck_doctor.examine.examination import DEFAULT_BUDGET
from bottleneck_doctor.examine.time_wanted import LONGEST
from bottleneck_doctor.explain.explainer import ALLOWANCE
from bottleneck_doctor.measure import pairing
from bottleneck_doctor.statistics import speedups

KEPT = 1.03
"""Part of a budget in which all has to be over."""
WORKERS: Mapping[str, float] = {"num_workers=1": 1.8, "num_workers=2": 2.5, "num_workers=4": 2.4}
BFLOAT: Mapping[str, float] = {"autocast=bfloat16": 1.5}
TOGETHER = {**WORKERS, "autocast=bfloat16": 1.3, "autocast=bfloat16,num_workers=2": 3.2}


def quick(**changes: Any) -> Machine:
    """One on which the default budget holds as many processes as there may be."""
    return Machine(**{"step": 0.1, "start": 4.0, "speeds": WORKERS, **changes})


def fix(examined: Examined, name: str) -> FixOutcome:
    return next(each for each in examined.result.fixes if each.id == name)


def processes(examined: Examined) -> int:
    """Those in which something was compared."""
    return len({window.session for window in examined.result.windows if window.setting and window.mode == "timed"})


def notes(examined: Examined, word: str) -> list[str]:
    return [text for text, _ in examined.machine.noted if word in text]


# -- sure ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [None, 600.0])
def test_it_ends_once_it_is_sure(budget: float | None) -> None:
    examined = Examined(quick(), budget=budget)
    assert "makes training 2.50× faster" in examined.result.verdict.sentence
    assert processes(examined) == 3
    after = examined.result.method.sure_after_seconds
    assert after is not None
    ((text, moment),) = [each for each in examined.machine.noted if each[0].startswith("Sure after ")]
    assert text == telling.sure(after)
    assert moment == pytest.approx(after, abs=1.0)
    ((text, moment),) = [each for each in examined.machine.noted if each[0].startswith("Known after ")]
    assert "num_workers=2 makes training 2.5× faster (95 % 2." in text
    assert text.endswith("; Ctrl-C ends that, with a report")
    known = examined.result.method.claimed_after_seconds
    assert known is not None
    assert moment == pytest.approx(known, abs=1.0)
    second = [each for each in examined.machine.happened if each.session == 2 and each.name == "num_workers=2"]
    assert known < second[0].ended + 10.0, "it is told in the midst of the second process"
    assert known < after
    # All that is left is what explains: nothing that counts is measured any more.
    counted = [each for each in examined.machine.happened if each.name not in ("phases", "sampled", "trace", "lines")]
    assert max(each.ended for each in counted) <= after
    assert "lines" in examined.names
    assert examined.machine.now < 0.65 * (budget or DEFAULT_BUDGET + ALLOWANCE)


def test_nothing_to_explain_is_no_reason_to_go_on() -> None:
    examined = Examined(quick(), explain=False)
    assert examined.result.method.sure_after_seconds == pytest.approx(examined.machine.now, abs=1.0)


def test_it_does_not_end_for_what_luck_may_have_made() -> None:
    """Processes differ by a fifth: even 2.5 times as fast is not known well enough after seven of them."""
    examined = Examined(quick(luck=0.2, noise=0.02))
    assert processes(examined) >= 7
    assert examined.result.method.sure_after_seconds is None
    assert notes(examined, "Sure") == []


def test_a_combination_that_may_win_is_waited_for() -> None:
    """It is measured from the second process on."""
    examined = Examined(quick(speeds=TOGETHER))
    assert examined.result.verdict.together
    assert "3.2× faster" in examined.result.verdict.sentence
    assert processes(examined) == 3
    assert notes(examined, "Sure")


def test_what_brings_nothing_beside_the_rest_is_left_out_of_the_combination() -> None:
    """One thread helps by itself, and not beside workers: it was chosen before anybody knew that."""
    speeds = {
        **TOGETHER,
        "intra_op_threads=1": 1.4,
        "intra_op_threads=1,num_workers=2": 2.4,
        "autocast=bfloat16,intra_op_threads=1,num_workers=2": 3.1,
    }
    examined = Examined(quick(speeds=speeds))
    combination = examined.result.combination
    assert examined.result.verdict.together
    assert combination is not None
    assert combination.setting == {"num_workers": 2, "autocast": "bfloat16"}
    assert combination.speedup.sessions >= 3
    assert [rung.fix for rung in combination.ladder] == ["workers", "amp-bf16"]


def test_that_nothing_helps_is_known_too() -> None:
    examined = Examined(quick(speeds={}, luck=0.001, noise=0.001))
    assert "Nothing we tried is faster" in examined.result.verdict.sentence
    assert processes(examined) < 8
    assert notes(examined, "Sure")
    assert "lines" in examined.names


@pytest.mark.parametrize("asked", [{"sessions": 6}, {"fresh_runs": True}])
def test_who_asks_for_processes_gets_them(asked: dict[str, Any]) -> None:
    examined = Examined(quick(step=0.02, start=2.0), budget=600.0, explain=False, **asked)
    assert notes(examined, "Sure") == []
    assert processes(examined) == asked.get("sessions", 4)


def test_intervals_are_those_of_a_look() -> None:
    """Wider than those of an end that nothing but the time brought: luck had a chance at each look."""
    result = Examined(quick(luck=0.01, noise=0.005)).result
    assert result.method.sure_after_seconds is not None
    made = pairing.observations(pairing.pairs(result.windows, None))
    shown = {labels.key_of(each.setting): each.speedup for each in result.fixes if each.speedup is not None}
    for significance, same in ((speedups.INTERIM_SIGNIFICANCE, True), (speedups.SIGNIFICANCE, False)):
        plain = speedups.estimate_all(made, 1 - significance)["num_workers=2"]
        speedup = shown["num_workers=2"]
        assert ((plain.low, plain.high) == pytest.approx((speedup.low, speedup.high))) is same


def test_pairs_for_which_time_was_set_apart_are_taken_before_it_is_sure() -> None:
    steady = Training(step=0.1 / 1.3, start=12.0)
    machine = quick(start=12.0, kernel=0.3, started_with={"MALLOC_TRIM_THRESHOLD_": steady}, speeds=BFLOAT, wait=0.3)
    examined = Examined(machine, budget=200.0, explain=False)
    allocated = fix(examined, "allocator")
    assert allocated.status == "faster", allocated.reason
    after = examined.result.method.sure_after_seconds
    assert after is not None
    assert after >= max(each.ended for each in machine.happened)
    assert notes(examined, "Sure after") == [telling.sure(after)]


@pytest.mark.parametrize("late", [2.0, 6.0])
def test_interrupted_while_it_explains_it_tells_what_it_is_sure_of(late: float) -> None:
    after = Examined(quick()).result.method.sure_after_seconds
    assert after is not None
    examined = Examined(quick(interrupted_at=after + late))
    assert examined.outcome is not None
    assert examined.outcome.exit_code == Exit.INTERRUPTED
    assert "makes training 2.50× faster" in examined.result.verdict.sentence
    assert "interrupted" in {warning.slug for warning in examined.result.warnings}


# -- going on ------------------------------------------------------------------------------------------------------


def slow(**changes: Any) -> Machine:
    """One on which the default budget holds two processes, one of them the first."""
    return Machine(**{"step": 1.0, "start": 40.0, "speeds": BFLOAT, **changes})


FEW = frozenset({"threads"})
"""Left out, so that few settings are tried."""


def test_where_a_claim_takes_longer_it_says_so_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = slow(wait=0.1, start=75.0)
    examined = Examined(machine, skip=FEW)
    default, total = sorted(examined.totals)
    assert default == pytest.approx(83.0 + DEFAULT_BUDGET + ALLOWANCE)
    (said,) = notes(examined, "in all")
    minutes = round(total / 60)
    assert said == (
        'torch.autocast("cpu", dtype=torch.bfloat16) looks 1.50× as fast so far. '
        f"A step takes 1.0 s and starting the script 1 min 19 s: about {minutes} minutes in all. "
        "Ctrl-C ends the examination, with a report of what is known by then"
    )
    assert machine.now <= KEPT * total
    assert fix(examined, "amp-bf16").status == "faster"
    # Once, and for all: what was said before is that of before.
    shown = [total for _, _, total in machine.said if total is not None]
    assert shown == sorted(shown)
    monkeypatch.setattr(time_wanted, "LONGEST", 0.0)
    small = slow(wait=0.1, start=75.0, speeds=dict.fromkeys(BFLOAT, 1.12))
    assert fix(Examined(small, skip=FEW), "amp-bf16").status == "cannot_tell", "the default does not suffice"


def test_where_the_default_suffices_it_stays() -> None:
    examined = Examined(quick())
    assert len(examined.totals) == 1
    assert notes(examined, "in all") == []


@pytest.mark.parametrize("budget", [200.0, 280.0])
def test_a_budget_that_the_user_set_stays(budget: float) -> None:
    examined = Examined(slow(), budget=budget)
    assert examined.totals == {budget}
    assert notes(examined, "in all") == []
    assert examined.machine.now <= KEPT * budget


def test_that_nothing_helps_takes_three_processes_too() -> None:
    examined = Examined(slow(speeds={}, wait=0.3), skip=FEW)
    assert len(examined.totals) == 2
    measured = [fix(examined, name).speedup for name in ("workers", "amp-bf16")]
    assert all(each is not None and each.sessions >= 3 for each in measured)


def test_what_is_likely_to_help_gets_the_few_processes_that_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes and windows differ more than the first process had shown."""
    noisy: dict[str, Any] = {"step": 2.0, "start": 14.0, "wait": 0.02, "luck": 0.07, "noise": 0.11}
    noisy["speeds"] = {"autocast=bfloat16": 1.5, "intra_op_threads=1": 0.6}
    examined = Examined(Machine(**noisy))
    (said,) = notes(examined, "Not sure yet")
    assert said.startswith('Not sure yet: torch.autocast("cpu", dtype=torch.bfloat16) was measured at 1.55×. ')
    assert "To be sure takes 1 more process: about 8 minutes in all. Ctrl-C ends" in said
    assert fix(examined, "amp-bf16").status == "faster"
    assert examined.machine.now <= max(examined.totals) <= LONGEST
    for asked in ({"budget": 430.0}, {"sessions": 5}, {"fresh_runs": True}):
        assert notes(Examined(Machine(**noisy), **asked), "Not sure yet") == []
    monkeypatch.setattr(deciding, "LIKELY", 1.1)
    assert fix(Examined(Machine(**noisy)), "amp-bf16").status == "cannot_tell"
    monkeypatch.undo()
    unlikely = Machine(**{**noisy, "luck": 0.2, "speeds": {"autocast=bfloat16": 1.2, "intra_op_threads=1": 0.6}})
    assert notes(Examined(unlikely), "Not sure yet") == []


def test_to_be_sure_of_nothing_is_not_worth_more_than_trying_it_all_once() -> None:
    examined = Examined(slow(speeds={}, step=3.0, start=90.0))
    assert processes(examined) == 1
    (said,) = notes(examined, "minutes")
    assert ", and 1 more setting can be tried: about 6 minutes in all" in said
    assert len(examined.totals) == 2
    assert max(examined.totals) < LONGEST


def test_what_no_ten_minutes_would_settle_is_said() -> None:
    examined = Examined(slow(step=9.0, start=150.0, speeds=WORKERS))
    tried, said = notes(examined, "minutes")
    assert "can be tried: about 10 minutes in all" in tried
    assert said.startswith(
        "num_workers=2 looks 2.50× as fast so far. A step takes 9.0 s and starting the script 3 min 06 s: "
    )
    minutes = int(said.rpartition("--budget ")[2].removesuffix("m"))
    assert f"a sure result would take about {minutes} minutes. For that, give --budget {minutes}m" in said
    longer = Examined(slow(step=9.0, start=150.0, speeds=WORKERS), budget=60.0 * minutes)
    assert fix(longer, "workers").status == "faster", "it was enough"


def test_a_large_gain_is_worth_the_time_of_a_second_process() -> None:
    """Three processes would take more than ten minutes."""
    examined = Examined(slow(step=7.0, start=90.0, speeds=WORKERS))
    assert max(examined.totals) <= time_wanted.LONGEST
    assert len(examined.totals) == 2
    workers = fix(examined, "workers")
    assert workers.status == "faster"
    assert workers.speedup is not None
    assert workers.speedup.sessions == 2


def test_more_time_is_asked_for_where_it_holds_a_claim_but_not_all_processes_that_the_user_wants() -> None:
    examined = Examined(slow(), sessions=8)
    assert max(examined.totals) <= time_wanted.LONGEST
    assert len(examined.totals) == 2
    assert "and you asked for 8 processes" in notes(examined, "in all")[0]


def test_a_small_gain_takes_more_processes() -> None:
    large, small = (
        Examined(Machine(step=0.3, start=35.0, luck=0.01, wait=0.3, speeds={"autocast=bfloat16": speed}))
        for speed in (2.0, 1.12)
    )
    assert max(small.totals) > max(large.totals)
    assert "a sure result needs " in notes(small, "in all")[0]
    assert fix(small, "amp-bf16").status == "faster"


@pytest.mark.parametrize("at", [130.0, 180.0, 240.0, 400.0])
def test_interrupted_while_it_goes_on_it_tells_what_is_known(at: float) -> None:
    examined = Examined(slow(step=2.7, start=15.0, speeds=WORKERS, interrupted_at=at))
    assert examined.outcome is not None
    assert examined.outcome.exit_code == Exit.INTERRUPTED
    assert examined.result.baseline is not None
    assert examined.result.findings
    assert "interrupted" in {warning.slug for warning in examined.result.warnings}
    assert examined.machine.now <= at + 1.0


def test_the_first_process_may_use_the_time_that_can_be_asked_for() -> None:
    """The other processes that a claim needs don't fit into what there is by default, so it is not kept for them."""
    slowly = {"num_workers=1": 0.3, "num_workers=2": 0.3, "autocast=bfloat16": 1.5}
    examined = Examined(slow(step=2.0, start=10.0, speeds=slowly))
    (said,) = notes(examined, "in all")
    assert said.startswith('torch.autocast("cpu", dtype=torch.bfloat16) looks 1.50× as fast so far. A step takes 2.0 s')
    assert max(examined.totals) < LONGEST
    assert fix(examined, "amp-bf16").status == "faster"


def test_what_waits_for_its_first_window_may_pay() -> None:
    """Settings under which steps take long use up the time before the one that helps has its turn."""
    slowly = {"num_workers=1": 0.15, "num_workers=2": 0.15, "autocast=bfloat16": 1.5}
    examined = Examined(slow(step=2.0, start=10.0, speeds=slowly))
    (said,) = notes(examined, "in all")
    assert said.startswith("A step takes 2.0 s")
    assert max(examined.totals) == LONGEST
    assert fix(examined, "amp-bf16").status == "faster"


def test_what_was_asked_for_is_what_it_goes_on_for() -> None:
    examined = Examined(slow(), sessions=5)
    assert "and you asked for 5 processes: about " in notes(examined, "in all")[0]
    assert processes(examined) == 5


@settings(max_examples=40, deadline=None)
@given(
    step=st.floats(0.005, 10.0),
    start=st.floats(0.5, 90.0),
    late=st.floats(0.7, 2.0),
    speed=st.sampled_from([0.6, 1.0, 1.1, 1.5, 3.0]),
    luck=st.floats(0.0, 0.1),
    explain=st.booleans(),
)
def test_whatever_it_takes_changes_at_most_twice_and_is_kept(
    step: float, start: float, late: float, speed: float, luck: float, explain: bool
) -> None:
    machine = Machine(step=step, start=start, late=late, luck=luck, noise=luck / 2, speeds={"autocast=bfloat16": speed})
    examined = Examined(machine, explain=explain)
    default, total = min(examined.totals), max(examined.totals)
    # Once to be sure or to try more, and once more where the time was too short by a little (`deciding`).
    assert len(examined.totals) <= 3
    documented = start + 8 * step + DEFAULT_BUDGET + (ALLOWANCE if explain else 0.0)
    # Where that is known before anything is measured, the first figure that is shown is the longer one.
    assert default == pytest.approx(documented) or default == LONGEST
    assert total <= max(LONGEST, default)
    assert machine.now <= KEPT * total + machine.stopping
    assert len(notes(examined, "in all")) == len(examined.totals) - (default == pytest.approx(documented))
    assert examined.error is None or total == default


# -- short lives -----------------------------------------------------------------------------------------------------


def short_lived(**changes: Any) -> Machine:
    """A script that trains for about nine seconds, by steps of some milliseconds."""
    known = {"step": 0.0018, "start": 3.0, "steps": 5000, "loader": False, "speeds": {"intra_op_threads=1": 1.25}}
    return Machine(**{**known, "able": ("channels_last", "fused_optimizer"), "luck": 0.01, "noise": 0.02, **changes})


def test_a_script_that_soon_comes_to_its_end_is_decided() -> None:
    examined = Examined(short_lived())
    assert "`torch.set_num_threads(1)` makes training 1.2" in examined.result.verdict.sentence
    assert all(each.speedup.sessions >= 3 for each in examined.result.fixes if each.speedup is not None)
    windows = [each for each in examined.result.windows if each.mode == "timed" and each.setting]
    by_session: dict[int, set[str]] = {}
    for each in windows:
        by_session.setdefault(each.session, set()).add(each.label)
    assert max(map(len, by_session.values())) == len({each.label for each in windows}), "a process holds all settings"
    assert all(each.seconds < 1.5 for each in windows)


def test_windows_stay_as_long_as_they_are_where_a_life_holds_them() -> None:
    """The script ends, but not before everything was measured once."""
    examined = Examined(short_lived(steps=60_000))
    assert max(each.seconds for each in examined.result.windows if each.mode == "timed" and each.status == "ok") > 1.5


def test_a_script_of_a_few_steps_is_compared_one_setting_at_a_time() -> None:
    """Twenty steps, of which seven go into finding the loop: a process holds one setting between two baselines."""
    speeds = {"intra_op_threads=1": 1.5, "fused_optimizer=True": 1.4}
    examined = Examined(
        short_lived(step=0.28, start=6.0, steps=20, speeds=speeds, noise=0.01, able=("fused_optimizer",))
    )
    assert examined.result.verdict.fix == "threads"
    windows = [each for each in examined.result.windows if each.session > 2 and each.mode == "timed"]
    assert {each.steps for each in windows} == {2}, "a faster setting has no more steps: the script has so many"
    measured = [each.id for each in examined.result.fixes if each.speedup is not None]
    assert measured == ["fused-optimizer", "amp-bf16", "threads"], "each had its turn before one was chosen"


MANY = ("fused_optimizer", "merged_groups", "zero_grad_none", "no_sync", "contiguous_format", "uncompiled")
"""Knobs that apply, so that there is more to try than what a short life holds."""


@pytest.mark.parametrize("steps", [30, 46, 60, 100])
@pytest.mark.parametrize("speed", [1.21, 1.6])
def test_a_fix_is_claimed_where_lives_hold_a_few_of_many_settings(steps: int, speed: float) -> None:
    """Half a second a step and ten for a start: it had ended after three to four minutes, most settings tried once."""
    speeds = {"autocast=bfloat16": speed, "intra_op_threads=1": 0.6}
    machine = Machine(step=0.5, start=9.0, wait=0.0, steps=steps, speeds=speeds, able=MANY, noise=0.01, luck=0.01)
    examined = Examined(machine)
    assert examined.result.verdict.fix == "amp-bf16"
    assert "makes training" in examined.result.verdict.sentence
    assert machine.now < 450.0
    tried = {each.label for each in examined.result.windows if each.setting and each.mode == "timed"}
    assert len(tried) > 6


@pytest.mark.parametrize("steps", [20, 30, 40])
@pytest.mark.parametrize("epoch", [10, 100])
def test_a_queue_that_a_life_is_too_short_to_lead_past_is_no_reason_to_compare_nothing(steps: int, epoch: int) -> None:
    """Four workers have up to eight batches ready, which is most of what such a script ever takes."""
    machine = Machine(
        step=0.5, start=9.5, steps=steps, epoch=epoch, workers=4, load=0.8, able=("autocast",),
        speeds={"autocast=bfloat16": 1.5},
    )  # fmt: skip
    result = Examined(machine).result
    assert result.verdict.fix == "amp-bf16", result.verdict.sentence
    worth = next(fix.speedup for fix in result.fixes if fix.id == "amp-bf16")
    assert worth is not None
    assert worth.estimate == pytest.approx(1.5, abs=0.01)


def test_what_a_script_ends_in_does_not_take_all_of_its_processes() -> None:
    """Without workers a step takes 4 s: no process lives long enough, but each begins with what was tried least."""
    machine = Machine(
        step=0.5, start=9.5, steps=24, epoch=12, workers=4, load=3.5, able=("autocast", "fused_optimizer"),
        speeds={"fused_optimizer=True": 1.4},
    )  # fmt: skip
    result = Examined(machine).result
    tried = {window.label for window in result.windows if window.setting and window.mode == "timed"}
    assert len(tried) >= 4


def test_what_workers_bring_is_seen_in_short_lives_too() -> None:
    """Four workers make a batch in 0.7 s, and a step takes 0.5 s; with eight, nothing waits."""
    machine = Machine(step=0.5, start=9.5, steps=60, workers=4, load=2.8, cpus=16.0)
    result = Examined(machine).result
    assert result.verdict.fix == "workers", result.verdict.sentence
    worth = next(fix.speedup for fix in result.fixes if fix.id == "workers")
    assert worth is not None
    assert worth.low <= 1.4 <= worth.high


def test_windows_fit_into_what_is_left_of_a_life() -> None:
    """No window is begun that its process does not end, but in the first one, which shows how long they live."""
    machine = Machine(step=0.5, start=9.0, wait=0.0, steps=46, able=MANY, noise=0.01, luck=0.01)
    windows = Examined(machine).result.windows
    assert {each.session for each in windows if each.status != "ok"} <= {1}
    lived = {each.session: 0 for each in windows if each.mode == "timed" and each.session > 2}
    for each in windows:
        if each.session in lived and each.mode == "timed" and each.setting:
            lived[each.session] += 1
    assert min(lived.values()) >= 2, "each start pays for two settings"


@settings(max_examples=25, deadline=None)
@given(
    step=st.floats(0.02, 3.0),
    start=st.floats(1.0, 40.0),
    steps=st.integers(20, 400),
    speed=st.sampled_from([0.7, 1.0, 1.15, 1.6]),
    budget=st.sampled_from([None, 90.0, 300.0]),
)
def test_time_is_kept_however_short_lives_are(
    step: float, start: float, steps: int, speed: float, budget: float | None
) -> None:
    speeds = {"autocast=bfloat16": speed}
    machine = Machine(
        step=step, start=start, steps=steps, wait=0.0, able=MANY, speeds=speeds, noise=0.01, luck=0.01, says=False
    )
    examined = Examined(machine, budget=budget)
    total = max(examined.totals)
    assert total <= max(LONGEST, min(examined.totals))
    # What a process shows at its end, and a start that was begun, come on top of it.
    assert machine.now <= KEPT * total + machine.stopping + (0.0 if budget is None else start)
    if speed < 1 and examined.error is None:
        assert examined.result.verdict.fix != "amp-bf16"


def test_what_leads_is_claimed_where_nothing_else_has_time() -> None:
    """Lives of one setting each in a time that the user set: the rest waits."""
    speeds = {"autocast=bfloat16": 1.25}
    machine = Machine(step=0.5, start=9.0, wait=0.0, steps=30, speeds=speeds, able=MANY, noise=0.01, luck=0.01)
    examined = Examined(machine, budget=300.0)
    assert examined.result.verdict.fix == "amp-bf16"
    assert "makes training" in examined.result.verdict.sentence


def test_a_script_of_a_few_short_epochs_has_what_leads_by_far_confirmed_at_once() -> None:
    """Ten epochs of five steps: a window of three epochs, as usual, would leave room for one setting in each process,
    and what was tried first would never be measured again."""
    speeds = {"num_workers=2": 2.2, "num_workers=1": 1.4}
    examined = Examined(Machine(step=0.29, start=8.0, epoch=5, steps=50, workers=8, speeds=speeds))
    assert "`num_workers=2` makes training 2.2" in examined.result.verdict.sentence
    windows = [each for each in examined.result.windows if each.mode == "timed" and each.session > 1]
    assert {each.whole_epochs for each in windows} <= {1, 2}
    first = min(each.session for each in windows if each.label == "num_workers=2")
    assert {first + 1, first + 2} <= {each.session for each in windows if each.label == "num_workers=2"}
    known = examined.result.method.claimed_after_seconds
    assert known is not None
    assert known < 90.0


@pytest.mark.parametrize("says", [True, False])
def test_a_script_that_says_when_it_ends_shows_what_is_worth_trying_in_its_first_process(says: bool) -> None:
    """Windows of ten epochs as usual would leave the first process with one that is thrown away."""
    machine = Machine(step=0.29, start=8.0, epoch=5, steps=50, workers=8, speeds={"num_workers=2": 2.2}, says=says)
    examined = Examined(machine)
    assert "`num_workers=2` makes training 2.2" in examined.result.verdict.sentence
    first = {each.label for each in examined.result.windows if each.session == 1 and each.status == "ok"}
    assert ("replay=True" in first) is says
    known = examined.result.method.claimed_after_seconds
    assert known is not None
    assert known < (65.0 if says else 90.0)


def test_a_script_that_ends_before_anything_could_be_compared_is_not_started_again_and_again() -> None:
    examined = Examined(short_lived(step=0.28, start=6.0, steps=14))
    assert len(examined.result.method.sessions) <= 8
    said = examined.result.verdict.sentence
    assert "the script came to its end before it could be measured" in said


def evaluating(pause: float, **changes: Any) -> Machine:
    """Epochs of a tenth of a second, each with an evaluation behind it; processes differ by much."""
    known = {"step": 0.0025, "start": 4.0, "wait": 0.2, "epoch": 40, "luck": 0.06, "noise": 0.01, "speeds": {}}
    return Machine(**{**known, "pause": pause, **changes})


def test_nobody_waits_for_a_fix_of_steps_where_the_time_goes_by_between_epochs() -> None:
    """Half a second of evaluation beside a tenth of a second of steps: steps of no duration would save a sixth."""
    examined = Examined(evaluating(0.5))
    assert examined.result.verdict.fix is None
    assert speedups.MINIMUM_SESSIONS <= processes(examined) < looks.PATIENT
    assert examined.machine.now < LONGEST / 2
    # The same steps alone may hold a gain that nobody has seen yet.
    assert processes(Examined(evaluating(0.0))) == looks.PATIENT


def test_windows_are_shorter_where_most_of_their_time_is_not_timed() -> None:
    for pause, longest in ((0.5, 0.7), (0.0, 2.0)):
        windows = [each for each in Examined(evaluating(pause)).result.windows if each.mode == "timed"]
        later = [each for each in windows if each.session > 1 and not each.setting]
        assert all(each.whole_epochs > 1 for each in later)
        assert longest / 2 < min(each.seconds for each in later) <= max(each.seconds for each in later) < longest


def test_a_large_gain_is_claimed_beside_long_evaluations_too() -> None:
    examined = Examined(evaluating(0.5, luck=0.02, speeds={"intra_op_threads=1": 2.5}))
    assert "`torch.set_num_threads(1)` makes training 2." in examined.result.verdict.sentence
