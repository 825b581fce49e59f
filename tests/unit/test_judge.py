"""What may be said of windows whose true speedups are known."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bottleneck_doctor.documents.labels import BASELINE, LOADER_ONLY, REPLAY, key_of
from bottleneck_doctor.documents.report import FixOutcome, Setting, Window
from bottleneck_doctor.examine import judge
from bottleneck_doctor.examine import outcome as outcome_module
from bottleneck_doctor.examine.evidence import LARGEST_RATIO, Candidate, Estimates, JudgeEvidence
from bottleneck_doctor.examine.judge import Judgement
from bottleneck_doctor.fixes import catalogue
from bottleneck_doctor.runtime.wire.messages import Found, Site
from bottleneck_doctor.statistics import speedups
from bottleneck_doctor.wording import promise_words, ranking, words

BY_ID = {fix.id: fix for fix in catalogue()}
STEP = 0.02
"""Seconds a step of the baseline; four samples each."""

FOUND = Found(
    rung="optimizer step",
    period=1,
    periodic=True,
    step_seconds=[STEP] * 8,
    wait_seconds=[STEP / 2] * 8,
    samples_per_step=4.0,
    device="cpu",
    usable_cpus=2,
    threads=1,
    has_loader=True,
    batch_size=4,
    epoch_batches=400,
    has_root_module=True,
)

WORKERS_1: Setting = {"num_workers": 1}
WORKERS_2: Setting = {"num_workers": 2}
WORKERS_4: Setting = {"num_workers": 4}
BF16: Setting = {"autocast": "bfloat16"}
PERSISTENT: Setting = {"persistent_workers": True}


class Experiment:
    """Windows of a machine whose settings have known speedups: sessions with luck of their own, and noise."""

    def __init__(
        self,
        speeds: Mapping[str, tuple[Setting, float]],
        *,
        sessions: int = 4,
        blocks: int = 2,
        noise: float = 0.002,
        luck: float = 0.002,
        wait: float = 0.5,
        only_in: Mapping[str, Sequence[int]] | None = None,
    ) -> None:
        generator = random.Random(7)
        self.windows: list[Window] = []
        at = 0.0
        for session in range(1, sessions + 1):
            process = generator.gauss(0, 0.1)
            own = {key: generator.gauss(0, luck) for key in speeds}
            for block in range(blocks):
                order: list[str] = []
                for key in speeds:
                    if session in (only_in or {}).get(key, range(1, sessions + 1)):
                        order += [BASELINE, key]
                for key in [*order, BASELINE]:
                    setting, speed = speeds.get(key, ({}, 1.0))
                    shown = speed * 2.718281828 ** (process + own.get(key, 0.0) + generator.gauss(0, noise))
                    mode = "loader_only" if key.startswith(LOADER_ONLY) else "timed"
                    self.windows.append(_window(session, block, key, setting, mode, STEP / shown, at, wait))
                    at += 10.0


def _window(
    session: int, block: int, key: str, setting: Setting, mode: str, step: float, at: float, wait: float
) -> Window:
    return Window(
        session=session,
        rank=0,
        block=block,
        setting=setting,
        mode=mode,
        steps=50,
        samples=200.0,
        seconds=50 * step,
        lead_in_steps=4,
        lead_in_seconds=0.1,
        wait_seconds=50 * step * wait,
        turn_seconds=None,
        whole_epochs=0,
        queue_change=0,
        ready_share=None,
        effect={},
        started=at,
        label=key,
    )


def timed(speeds: Sequence[tuple[Setting, float]]) -> dict[str, tuple[Setting, float]]:
    return {key_of(setting): (setting, speed) for setting, speed in speeds}


def judged(
    windows: Sequence[Window], candidates: Sequence[Candidate], found: Found = FOUND, **others: Any
) -> Judgement:
    values: dict[str, Any] = {"rungs": [], "chosen_after": 1, "epoch_batches": None}
    return judge.judge(JudgeEvidence(found=found, windows=windows, candidates=candidates, **{**values, **others}))


def outcome(judgement: Judgement, identifier: str) -> FixOutcome:
    return next(each for each in judgement.fixes if each.id == identifier)


def as_written(windows: Sequence[Window]) -> list[Window]:
    """Those of the training as written alone."""
    return [window for window in windows if window.label == BASELINE]


def workers(*settings: Setting) -> Candidate:
    return Candidate(BY_ID["workers"], settings=list(settings))


def amp(**others: Any) -> Candidate:
    return Candidate(BY_ID["amp-bf16"], settings=[BF16], **others)


# -- verdicts ------------------------------------------------------------------------------------------------------


def test_the_risk_of_what_was_offered_is_told_and_not_that_of_the_fix_in_general() -> None:
    experiment = Experiment(timed([(BF16, 2.0)]))
    for candidate, risk in ((amp(), "numerics"), (amp(offered_risk="identical"), "identical")):
        judgement = judged(experiment.windows, [candidate])
        assert outcome(judgement, "amp-bf16").risk == risk
        assert ("compare the loss curves" in judgement.verdict.sentence) == (risk == "numerics")
        untried = judged(as_written(experiment.windows), [candidate])
        assert outcome(untried, "amp-bf16").risk == risk


@pytest.mark.parametrize(
    ("speed", "status"), [(2.0, "faster"), (1.1, "faster"), (1.0, "no_difference"), (0.9, "slower"), (0.5, "slower")]
)
def test_known_speedup_gets_its_verdict(speed: float, status: str) -> None:
    experiment = Experiment(timed([(BF16, speed)]))
    bf16 = outcome(judged(experiment.windows, [amp()]), "amp-bf16")
    assert bf16.status == status
    assert bf16.speedup is not None
    assert bf16.speedup.low < speed * 1.005
    assert bf16.speedup.high > speed * 0.995
    assert (bf16.speedup.sessions, bf16.speedup.pairs) == (4, 8)
    assert bf16.steady == bf16.speedup
    assert bf16.reason == ""


def test_order_of_processes_cancels() -> None:
    """Processes differ by a tenth here; the ratio inside each does not."""
    bf16 = outcome(judged(Experiment(timed([(BF16, 1.5)]), noise=0, luck=0).windows, [amp()]), "amp-bf16")
    assert bf16.speedup is not None
    assert bf16.speedup.estimate == pytest.approx(1.5, rel=1e-6)


def test_gain_within_the_noise_cannot_be_told() -> None:
    bf16 = outcome(judged(Experiment(timed([(BF16, 1.03)]), luck=0.05).windows, [amp()]), "amp-bf16")
    assert bf16.status == "cannot_tell"
    assert "it may be slower or faster: the interval reaches from 0." in bf16.reason
    assert bf16.more_blocks is None or bf16.more_blocks > 0


def test_two_processes_allow_a_claim_of_what_is_large() -> None:
    judgement = judged(Experiment(timed([(BF16, 2.0)]), sessions=2).windows, [amp()])
    assert outcome(judgement, "amp-bf16").status == "faster"
    assert "make" in judgement.verdict.sentence
    assert judgement.verdict.fix == "amp-bf16"


def test_one_process_says_how_much_a_gain_is_at_least() -> None:
    judgement = judged(Experiment(timed([(BF16, 2.0)]), sessions=1).windows, [amp()])
    bf16 = outcome(judgement, "amp-bf16")
    assert bf16.status == "cannot_tell"
    assert bf16.at_least is not None
    assert 1.3 < bf16.at_least < 2.0
    assert re.search(r"makes training at least 1\.\d× faster: it was 2\.\d+×", judgement.verdict.sentence)
    assert judgement.verdict.fix is None
    started = judged(Experiment(timed([(BF16, 1.1)]), sessions=1).windows, [amp()])
    assert outcome(started, "amp-bf16").at_least is None


@pytest.mark.parametrize("sessions", [1, 2])
def test_few_processes_allow_no_claim_of_what_is_small(sessions: int) -> None:
    judgement = judged(Experiment(timed([(BF16, 1.08)]), sessions=sessions).windows, [amp()])
    bf16 = outcome(judgement, "amp-bf16")
    assert bf16.status == "cannot_tell"
    assert f"{sessions} process" in bf16.reason
    assert bf16.more_blocks
    assert ("Cannot tell" if sessions > 1 else "Nothing that was tried is likely to help") in judgement.verdict.sentence
    assert judgement.verdict.fix is None


def test_many_fixes_tried_need_stronger_evidence() -> None:
    """A gain that stands alone need not stand among twenty: Holm's correction."""
    experiment = Experiment(timed([(BF16, 1.06)]), sessions=3, luck=0.012, noise=0.003)
    alone = outcome(judged(experiment.windows, [amp()]), "amp-bf16")
    assert alone.status == "faster"
    settings: list[Setting] = [{"prefetch_factor": number} for number in range(40)]
    many = Experiment(timed([(BF16, 1.06), *((setting, 1.0) for setting in settings)]), sessions=3, luck=0.012)
    fixes = [Candidate(replace(BY_ID["prefetch-factor"], id=f"f{i}"), settings=[s]) for i, s in enumerate(settings)]
    judgement = judged(many.windows, [amp(), *fixes])
    claimed = [each.id for each in judgement.fixes if each.status in ("faster", "slower")]
    assert not set(claimed) - {"amp-bf16"}
    p_value = (
        Estimates(
            JudgeEvidence(
                found=FOUND, windows=many.windows, candidates=[], rungs=[], chosen_after=1, epoch_batches=None
            )
        )
        .promised[key_of(BF16)]
        .p_value
    )
    adjusted = speedups.holm([p_value, *([0.5] * 40)])[0]
    assert adjusted == pytest.approx(min(1.0, 41 * p_value))


# -- which setting -------------------------------------------------------------------------------------------------


def test_fewest_workers_that_are_as_good() -> None:
    experiment = Experiment(timed([(WORKERS_1, 1.5), (WORKERS_2, 1.995), (WORKERS_4, 2.0)]))
    judgement = judged(experiment.windows, [workers(WORKERS_1, WORKERS_2, WORKERS_4)])
    assert outcome(judgement, "workers").setting == WORKERS_2
    assert judgement.workers is not None
    curve = judgement.workers.curve
    assert [(point.num_workers, point.is_baseline) for point in curve] == [
        (0, True),
        (1, False),
        (2, False),
        (4, False),
    ]
    assert [point.speedup.estimate for point in curve] == pytest.approx([1.0, 1.5, 1.995, 2.0], rel=0.01)
    assert judgement.workers.usable_cpus == 2


def test_setting_seen_in_few_processes_does_not_stand_for_its_fix() -> None:
    """The first session tries more settings than the later ones confirm."""
    experiment = Experiment(timed([(WORKERS_1, 1.5), (WORKERS_4, 3.0)]), only_in={key_of(WORKERS_4): [1]})
    assert outcome(judged(experiment.windows, [workers(WORKERS_1, WORKERS_4)]), "workers").setting == WORKERS_1


def test_change_is_offered_where_the_line_is_known(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("loader = DataLoader(data, batch_size=4)\n")
    found = replace(FOUND, loader_site=Site(str(script), 1))
    windows = Experiment(timed([(WORKERS_2, 2.0)])).windows
    change = outcome(judged(windows, [workers(WORKERS_2)], found), "workers").change
    assert change is not None
    assert "+loader = DataLoader(data, batch_size=4, num_workers=2)" in change.diff
    assert outcome(judged(windows, [workers(WORKERS_2)]), "workers").change is None
    slower = Experiment(timed([(WORKERS_2, 0.5)])).windows
    assert outcome(judged(slower, [workers(WORKERS_2)], found), "workers").change is None


# -- fixes that build on others ------------------------------------------------------------------------------------


def dependent(base_speed: float, speed: float) -> FixOutcome:
    experiment = Experiment(timed([(WORKERS_2, base_speed), ({**WORKERS_2, **PERSISTENT}, speed)]))
    candidate = Candidate(BY_ID["persistent-workers"], settings=[PERSISTENT], with_workers=True, base=WORKERS_2)
    return outcome(judged(experiment.windows, [workers(WORKERS_2), candidate]), "persistent-workers")


def test_dependent_fix_is_judged_by_what_it_adds() -> None:
    persistent = dependent(2.0, 2.4)
    assert persistent.status == "faster"
    assert (persistent.over, persistent.setting) == (WORKERS_2, {**WORKERS_2, **PERSISTENT})
    assert persistent.added is not None
    assert persistent.speedup is not None
    assert persistent.added.estimate == pytest.approx(1.2, rel=0.01)
    assert persistent.speedup.estimate == pytest.approx(2.4, rel=0.01)


def test_dependent_fix_that_adds_nothing_is_no_gain() -> None:
    assert dependent(2.0, 2.0).status == "no_difference"


def test_making_up_for_what_its_base_costs_is_no_gain() -> None:
    """Workers halve the speed, persistent ones lose less: better than their base, and still not to be offered."""
    assert dependent(0.5, 0.9).status in ("no_difference", "cannot_tell", "slower")


# -- fixes without figures -----------------------------------------------------------------------------------------


def test_reasons_of_fixes_that_have_no_figure() -> None:
    windows = Experiment(timed([(WORKERS_2, 2.0)])).windows
    failed = amp(failures={key_of(BF16): "RuntimeError: no kernel"})
    assert outcome(judged(windows, [failed]), "amp-bf16").status == "failed"
    assert outcome(judged(windows, [failed]), "amp-bf16").reason == "RuntimeError: no kernel"
    idle = outcome(judged(windows, [amp(idle={key_of(BF16): ("autocast",)})]), "amp-bf16")
    assert idle.status == "failed"
    assert idle.reason == '`torch.autocast("cpu", dtype=torch.bfloat16)` did not take effect, so it was not measured'
    refused = outcome(judged(windows, [Candidate(BY_ID["amp-bf16"], refusal="already on")]), "amp-bf16")
    assert (refused.status, refused.reason, refused.setting) == ("not_applicable", "already on", {})
    late = outcome(judged(windows, [amp()]), "amp-bf16")
    assert (late.status, late.setting) == ("cannot_tell", BF16)
    assert "time was over" in late.reason
    for each in (idle, refused, late):
        assert each.speedup is None
        assert each.change is None


@pytest.mark.parametrize(("speed", "said"), [(0.5, "2.0"), (1.25, "0.8"), (1.0, "1.0")])
def test_what_is_on_already_is_worth_what_taking_it_back_costs(speed: float, said: str) -> None:
    without: Setting = {"no_autocast": True}
    windows = Experiment(timed([(without, speed)])).windows
    back = Candidate(BY_ID["full-precision"], settings=[without])
    refused = [Candidate(BY_ID[each], refusal="already on") for each in ("amp-bf16", "channels-last")]
    judgement = judged(windows, [back, *refused])
    on = outcome(judgement, "amp-bf16")
    assert (on.status, on.speedup) == ("not_applicable", None)
    assert on.worth is not None
    assert f"{on.worth.estimate:.1f}" == said
    assert on.worth.low <= on.worth.estimate <= on.worth.high
    assert words.worth_text(on).startswith(f"It is worth {words.estimate_text(on.worth)} (")
    assert outcome(judgement, "channels-last").worth is None
    # As long as taking it back may help or not, nothing is known of it either.
    few = outcome(judged(Experiment(timed([(without, speed)]), sessions=1).windows, [back, *refused]), "amp-bf16")
    assert few.worth is None
    assert words.worth_text(few) == ""


# -- ceilings, combination, baseline -------------------------------------------------------------------------------


def test_ceilings() -> None:
    speeds = {REPLAY: ({"replay": True}, 3.0), LOADER_ONLY: ({}, 1.2), LOADER_ONLY + "num_workers=4": (WORKERS_4, 4.0)}
    ceilings = judged(Experiment(speeds).windows, []).ceilings  # type: ignore[arg-type]
    estimates = {name: ceiling.estimate for name, ceiling in ceilings.items()}
    assert estimates == pytest.approx({"synthetic": 3.0, "loader_only": 1.2, "loader_only_best_workers": 4.0}, rel=0.01)


@pytest.mark.parametrize(("spread", "told"), [(0.002, True), (0.2, False)])
def test_a_ceiling_of_one_window_is_told_where_it_is_more_than_windows_differ_by(spread: float, told: bool) -> None:
    """A replayed window of four steps beside a slow one as written made a ceiling of 1.23× where no step waits."""
    experiment = Experiment({REPLAY: ({"replay": True}, 1.1)}, sessions=1, blocks=3, noise=spread)
    judgement = judged(experiment.windows, [])
    ceiling = judgement.ceilings["synthetic"]
    assert words.has_interval(ceiling)
    assert ceiling.low < ceiling.estimate < ceiling.high
    assert (ceiling.low > 1) == told


def test_no_ceiling_is_below_what_was_measured_under_it() -> None:
    """Noise takes a ceiling of one window below what it bounds; a setting that computes faster may pass it."""
    both: Setting = {**WORKERS_4, **BF16}
    speeds = {
        REPLAY: ({"replay": True}, 0.93),
        LOADER_ONLY: ({}, 0.9),
        LOADER_ONLY + "num_workers=4": (WORKERS_4, 2.0),
        **timed([(WORKERS_4, 2.5), (BF16, 1.4), (both, 3.2)]),
    }
    judgement = judged(Experiment(speeds).windows, [workers(WORKERS_4), amp()])  # type: ignore[arg-type]
    ceilings = {name: ceiling.estimate for name, ceiling in judgement.ceilings.items()}
    at_four = outcome(judgement, "workers").speedup
    assert at_four is not None
    assert ceilings["synthetic"] >= at_four.estimate
    assert ceilings["synthetic"] == pytest.approx(2.5, rel=0.01), "what computes faster is not bounded by free data"
    assert ceilings["loader_only"] == pytest.approx(1.4, rel=0.01), "loading as written bounds what loads as written"
    assert ceilings["loader_only_best_workers"] == pytest.approx(3.2, rel=0.01)
    for ceiling in judgement.ceilings.values():
        assert ceiling.low <= ceiling.estimate <= ceiling.high


def ladder(*speeds: float) -> Judgement:
    settings: list[Setting] = [WORKERS_2, {**WORKERS_2, **BF16}, {**WORKERS_2, **BF16, "pin_memory": True}]
    experiment = Experiment(timed(list(zip(settings, speeds, strict=False))))
    names = ("workers", "amp-bf16", "pinned-memory")
    return judged(
        experiment.windows, [workers(WORKERS_2), amp()], rungs=list(zip(names, settings, strict=True)), chosen_after=1
    )


def test_ladder_of_the_combination() -> None:
    combination = ladder(2.0, 2.6, 2.9).combination
    assert combination is not None
    assert [rung.fix for rung in combination.ladder] == ["workers", "amp-bf16", "pinned-memory"]
    assert combination.speedup.estimate == pytest.approx(2.9, rel=0.01)
    assert combination.confirmed is not None
    # Only sessions started after the choice confirm it.
    assert (combination.confirmed.sessions, combination.speedup.sessions) == (3, 4)


def test_rung_that_goes_no_higher_is_left_out() -> None:
    combination = ladder(2.0, 2.0, 2.9).combination
    assert combination is not None
    assert [rung.fix for rung in combination.ladder] == ["workers", "pinned-memory"]
    assert ladder(2.0, 1.9, 2.0).combination is None


def test_ladder_that_was_not_climbed_is_no_combination() -> None:
    assert ladder(2.0).combination is None
    assert ladder(2.0, 2.6).combination is not None


def test_rung_is_held_against_the_one_below_it_in_the_same_processes() -> None:
    combination = ladder(2.0, 2.6, 2.9).combination
    assert combination is not None
    first, *others = combination.ladder
    assert first.added is None
    assert [step.added.estimate for step in others if step.added] == pytest.approx([1.3, 2.9 / 2.6], rel=0.01)


def test_fixes_together_speak_where_none_of_them_may_by_itself() -> None:
    """The fix below was measured in one process only; the rung above it, in all."""
    both: Setting = {**WORKERS_2, **BF16}
    experiment = Experiment(timed([(WORKERS_2, 2.0), (both, 2.6)]), only_in={key_of(WORKERS_2): [1]})
    rungs = [("workers", WORKERS_2), ("amp-bf16", both)]
    judgement = judged(experiment.windows, [workers(WORKERS_2)], rungs=rungs)
    assert [each.status for each in judgement.fixes] == ["cannot_tell"]
    assert (judgement.verdict.together, judgement.verdict.fix) == (True, None)
    assert "make training 2.60× faster" in judgement.verdict.sentence


def test_fixes_together_need_no_more_processes_than_the_fix_that_they_build_on() -> None:
    both: Setting = {**WORKERS_2, **BF16}
    experiment = Experiment(timed([(WORKERS_2, 2.0), (both, 2.6)]), only_in={key_of(WORKERS_2): [1, 2]})
    rungs = [("workers", WORKERS_2), ("amp-bf16", both)]
    verdict = judged(experiment.windows, [workers(WORKERS_2)], rungs=rungs).verdict
    assert "make training 2.60× faster" in verdict.sentence


@pytest.mark.parametrize(("more", "together"), [(1.0, False), (1.004, False), (1.1, True)])
def test_no_change_is_asked_for_without_need(more: float, together: bool) -> None:
    """A fix that adds nothing sure to what leads is not named with it, however high its own interval begins."""
    both: Setting = {**WORKERS_2, **BF16}
    experiment = Experiment(timed([(WORKERS_2, 2.0), (BF16, 1.2), (both, 2.0 * more)]), noise=0.01, luck=0.01)
    rungs = [("workers", WORKERS_2), ("amp-bf16", both)]
    verdict = judged(experiment.windows, [workers(WORKERS_2), amp()], rungs=rungs).verdict
    assert verdict.together == together
    assert ("autocast" in verdict.sentence) == together


@pytest.mark.parametrize(("luck", "named"), [(0.09, True), (0.16, False)])
def test_a_part_that_may_do_is_named_or_at_least_mentioned(luck: float, named: bool) -> None:
    """Workers and fewer threads are claimed. Workers alone are as fast, and differ more from process to process."""
    threads: Setting = {**WORKERS_2, "intra_op_threads": 1}
    useless: list[Setting] = [{"flag": number} for number in range(8)]
    speeds = [(WORKERS_2, 1.3), (threads, 1.3), *((setting, 1.0) for setting in useless)]
    wild = [
        replace(window, seconds=window.seconds * (1 + luck * (window.session - 2.5)))
        if window.label == key_of(WORKERS_2)
        else window
        for window in Experiment(timed(speeds), sessions=4).windows
    ]
    tried = [Candidate(BY_ID["gc-freeze"], settings=[setting]) for setting in useless]
    judgement = judged(wild, [workers(WORKERS_2), Candidate(BY_ID["intra-op-threads"], settings=[threads]), *tried])
    sentence = judgement.verdict.sentence
    assert outcome(judgement, "intra-op-threads").status == "faster"
    assert outcome(judgement, "workers").status == ("faster" if named else "cannot_tell")
    if named:
        assert "`num_workers=2` makes training" in sentence
    else:
        assert re.search(r"`num_workers=2` alone measured 1\.\d+× \(.*\), and may be enough", sentence)


def test_the_ladder_is_climbed_as_far_as_each_rung_adds_something_sure() -> None:
    """The third rung adds nothing; the second does."""
    settings: list[Setting] = [WORKERS_2, {**WORKERS_2, **BF16}, {**WORKERS_2, **BF16, "pin_memory": True}]
    experiment = Experiment(timed(list(zip(settings, (2.0, 2.6, 2.63), strict=True))), noise=0.02, luck=0.02)
    rungs = list(zip(("workers", "amp-bf16", "pinned-memory"), settings, strict=True))
    judgement = judged(experiment.windows, [workers(WORKERS_2), amp()], rungs=rungs)
    assert judgement.verdict.together
    assert judgement.combination is not None
    assert judgement.combination.setting == settings[1]
    assert len(judgement.combination.ladder) == 3, "what was measured is shown"
    assert "pin_memory" not in judgement.verdict.sentence


def test_fix_that_holds_another_is_named_only_where_it_adds_to_it() -> None:
    threads: Setting = {**WORKERS_2, "intra_op_threads": 1}
    for worth, leading in ((2.01, "workers"), (2.4, "intra-op-threads")):
        experiment = Experiment(timed([(WORKERS_2, 2.0), (threads, worth)]), noise=0.01, luck=0.01)
        fewer = Candidate(BY_ID["intra-op-threads"], settings=[threads])
        assert judged(experiment.windows, [workers(WORKERS_2), fewer]).verdict.fix == leading


def test_baseline_in_the_users_terms() -> None:
    found = replace(FOUND, num_workers=2, prefetch_factor=4, autocast="bfloat16", pin_memory=True)
    baseline = judged(Experiment(timed([(BF16, 1.0)]), noise=0, wait=0.25).windows, [], found).baseline
    assert baseline is not None
    assert baseline.steps_per_second == pytest.approx(1 / STEP, rel=0.2)
    assert baseline.samples_per_second == pytest.approx(4 * baseline.steps_per_second)
    assert baseline.step_ms == pytest.approx(1000 / baseline.steps_per_second)
    assert (baseline.sessions, baseline.windows) == (4, 16)
    assert baseline.data_wait_share == pytest.approx(0.25)
    assert baseline.settings == {
        "num_workers": 2,
        "persistent_workers": False,
        "pin_memory": True,
        "prefetch_factor": 4,
        "autocast": "bfloat16",
    }


def test_loop_without_a_loader_waits_for_no_data() -> None:
    found = replace(FOUND, has_loader=False, batch_size=None, epoch_batches=None)
    judgement = judged(Experiment(timed([(BF16, 1.0)])).windows, [amp()], found)
    assert judgement.baseline is not None
    assert judgement.baseline.data_wait_share is None
    assert judgement.baseline.batch_size is None
    assert judgement.workers is None
    assert judgement.baseline.settings == {}


def test_confirmation_rests_on_later_processes_only() -> None:
    experiment = Experiment(timed([(BF16, 1.5)]))
    confirmed = outcome(judged(experiment.windows, [amp()], chosen_after=2), "amp-bf16").confirmed
    assert confirmed is not None
    assert confirmed.sessions == 2
    assert outcome(judged(experiment.windows, [amp()], chosen_after=3), "amp-bf16").confirmed is None


# -- the one sentence ----------------------------------------------------------------------------------------------


def test_sentence_names_the_best_fix_with_its_figures() -> None:
    experiment = Experiment(timed([(WORKERS_2, 2.5), (BF16, 1.2)]), wait=0.73)
    verdict = judged(experiment.windows, [workers(WORKERS_2), amp()]).verdict
    assert verdict.fix == "workers"
    assert not verdict.together
    assert verdict.sentence.startswith("Training waits for data 73")
    assert "`num_workers=2` makes training 2.50× faster (95" in verdict.sentence


def test_sentence_names_the_combination_where_that_is_better() -> None:
    together = ladder(2.0, 2.6, 2.9)
    verdict = together.verdict
    assert verdict.fix == "workers"
    assert verdict.together
    both = '`num_workers=2, pin_memory=True` and `torch.autocast("cpu", dtype=torch.bfloat16)`'
    assert f"{both} make training 2.90× faster" in verdict.sentence


def test_a_part_that_brought_nothing_without_the_rest_is_named() -> None:
    judgement = ladder(1.01, 1.5)
    assert judgement.verdict.together
    assert "`num_workers=2` measured 1.01× (95" in judgement.verdict.sentence
    alone = (
        'without the rest, so `torch.autocast("cpu", dtype=torch.bfloat16)` alone may be enough. This changes rounding'
    )
    assert alone in judgement.verdict.sentence
    assert "without the rest" not in ladder(1.2, 1.5).verdict.sentence
    combination = judgement.combination
    assert combination is not None
    assert promise_words.needless(combination, "cpu")
    # What is left would mean nothing without the workers.
    ahead = replace(combination, setting={**WORKERS_2, "prefetch_factor": 4})
    assert promise_words.needless(ahead, "cpu") == ""


def test_sentence_says_so_where_what_it_offers_changes_rounding() -> None:
    together = ladder(2.0, 2.6, 2.9)
    assert together.combination is not None
    assert together.combination.risk == "numerics"
    assert "changes rounding" in together.verdict.sentence
    harmless = judged(Experiment(timed([(WORKERS_2, 2.5)])).windows, [workers(WORKERS_2)]).verdict
    assert "rounding" not in harmless.sentence


def test_cause_takes_the_place_of_the_general_opening() -> None:
    judgement = judged(Experiment(timed([(WORKERS_2, 2.5)]), wait=0.73).windows, [workers(WORKERS_2)])
    sentence = judge.opened_by(judgement, "Training waits for data 73 % of the time, most of it in `Blur`.")
    assert sentence.startswith("Training waits for data 73 % of the time, most of it in `Blur`. `num_workers=2` makes")
    assert sentence.count("Training waits") == 1


def test_sentence_when_nothing_is_faster() -> None:
    for free, share in ((1.03, "97 %"), (1.6, "62 %")):
        speeds = {REPLAY: ({"replay": True}, free), **timed([(BF16, 1.0)])}
        verdict = judged(Experiment(speeds, wait=0.02).windows, [amp()]).verdict  # type: ignore[arg-type]
        assert verdict.sentence.startswith("Nothing we tried is faster.")
        assert (
            f"Training already runs at {share} of the speed that it would have if every batch were ready at once"
            in verdict.sentence
        )
        assert verdict.fix is None
    bare = judged(Experiment(timed([(BF16, 1.0)])).windows, [amp()]).verdict
    assert bare.sentence == "Nothing we tried is faster."


def test_no_share_is_drawn_from_a_ceiling_that_noise_has_below_one() -> None:
    speeds = {REPLAY: ({"replay": True}, 0.93), **timed([(BF16, 1.0)])}
    verdict = judged(Experiment(speeds, wait=0.02).windows, [amp()]).verdict  # type: ignore[arg-type]
    assert "already runs at" not in verdict.sentence
    assert (
        verdict.sentence == "Nothing we tried is faster. Even with every batch ready at once, training was not faster."
    )


def test_where_nothing_could_be_tried_nothing_is_said_to_have_been() -> None:
    windows = Experiment(timed([(BF16, 1.0)])).windows
    refused = Candidate(BY_ID["workers"], refusal="no torch DataLoader feeds this loop")
    verdict = judged(windows, [refused, Candidate(BY_ID["amp-bf16"], failures={"a": "RuntimeError"})]).verdict
    assert (
        verdict.sentence
        == "Nothing could be tried: 1 fix does not apply here or has too little to gain and 1 fix failed."
    )


@pytest.mark.parametrize("sessions", [1, 3])
def test_nothing_that_looks_slower_leads(sessions: int) -> None:
    experiment = Experiment(timed([(BF16, 0.83)]), sessions=sessions, luck=0.15)
    judgement = judged(experiment.windows, [amp()])
    assert outcome(judgement, "amp-bf16").status == "cannot_tell"
    assert "autocast" not in judgement.verdict.sentence
    assert "0.8" not in judgement.verdict.sentence


def test_what_was_not_reached_is_told_apart_from_what_was_measured() -> None:
    experiment = Experiment(timed([(WORKERS_2, 0.5)]))
    verdict = judged(experiment.windows, [workers(WORKERS_2), amp()]).verdict
    assert verdict.sentence.endswith(
        "Nothing that was measured is faster. The time was over before 1 more fix could be measured."
    )
    cut = judged(experiment.windows, [amp()], cut="the examination was interrupted").verdict
    assert cut.sentence.endswith(
        "Cannot tell what would help: the examination was interrupted before it could be measured."
    )


@pytest.mark.parametrize(("load", "blamed"), [(None, False), (0.1, False), (2.0, True)])
def test_others_are_blamed_only_where_they_were_seen(load: float | None, blamed: bool) -> None:
    experiment = Experiment(timed([(BF16, 1.03)]), luck=0.4, noise=1.0, blocks=2)
    judgement = judged(experiment.windows, [amp()], other_load=load)
    assert judgement.floor > ranking.TOO_NOISY
    sentence = judgement.verdict.sentence
    assert "Cannot tell what would help" in sentence
    assert "measurements of the same training differ so much" in sentence
    assert ("busy" in sentence) is blamed
    assert ("other programs kept up to 2.0 cores busy" in sentence) is blamed


@pytest.mark.parametrize("load", [None, 0.1, 1.04])
def test_what_depends_on_the_cores_that_others_leave_is_promised_with_a_word_of_them(load: float | None) -> None:
    """Beside a program that keeps one of two cores busy, two threads wait for one another, and one is faster by far."""
    more = Experiment(timed([(WORKERS_2, 2.0)]))
    said = judged(more.windows, [workers(WORKERS_2)], least_other_load=load).verdict.sentence
    assert "2.00× faster" in said
    assert ("while other programs kept at least 1.0 cores busy" in said) is (load == 1.04)
    lower = Experiment(timed([(BF16, 2.0)]))
    assert "other programs" not in judged(lower.windows, [amp()], least_other_load=load).verdict.sentence


def test_a_warning_writes_its_share_as_every_other_sentence_does() -> None:
    experiment = Experiment(timed([(BF16, 1.03)]), luck=0.4, noise=1.0, blocks=2)
    judgement = judged(experiment.windows, [amp()])
    noisy = next(each for each in outcome_module._weak_evidence(judgement, sure=False) if each.slug == "noisy")
    assert re.search(r"no difference below \d+ % is claimed", noisy.sentence)


@pytest.mark.parametrize("sure", [False, True])
def test_few_processes_are_a_warning_unless_they_were_enough(sure: bool) -> None:
    judgement = judged(Experiment(timed([(BF16, 8.0)]), sessions=2).windows, [amp()])
    slugs = [each.slug for each in outcome_module._weak_evidence(judgement, sure=sure)]
    assert ("few-processes" in slugs) is not sure


def test_threads_are_said_in_torchs_words() -> None:
    setting: Setting = {"num_workers": 2, "intra_op_threads": 1}
    candidate = Candidate(BY_ID["intra-op-threads"], settings=[setting])
    sentence = judged(Experiment(timed([(setting, 2.0)])).windows, [candidate]).verdict.sentence
    assert "`num_workers=2` and `torch.set_num_threads(1)` make training 2.00× faster" in sentence
    assert "intra_op" not in sentence


def test_any_number_of_workers_that_was_measured_is_on_the_curve() -> None:
    many: Setting = {"num_workers": 2048}
    curve = judged(Experiment(timed([(many, 1.5)])).windows, [workers(many)]).workers
    assert curve is not None
    assert [point.num_workers for point in curve.curve] == [0, 2048]


def test_samples_that_nobody_counted_are_no_batch_size() -> None:
    """A batch of an unknown kind counts as one sample, where the loader says that it holds 32."""
    one = [replace(window, samples=float(window.steps)) for window in Experiment(timed([(BF16, 1.0)])).windows]
    for size, expected in ((32, None), (1, 1.0)):
        baseline = judged(one, [amp()], replace(FOUND, batch_size=size)).baseline
        assert baseline is not None
        assert baseline.batch_size == expected


def test_every_figure_is_finite() -> None:
    """JSON has no infinity: one session gives intervals without an end."""
    judgement = judged(Experiment(timed([(BF16, 2.0)]), sessions=1).windows, [amp()])
    figures = [outcome(judgement, "amp-bf16").speedup, *judgement.ceilings.values()]
    for figure in figures:
        assert figure is not None
        assert 0 <= figure.low <= figure.estimate <= figure.high <= LARGEST_RATIO


def test_figure_that_passes_every_bound_stays_within_it() -> None:
    """With data for free a step of 3.6 s took 0.3 ms."""
    ceilings = judged(Experiment({REPLAY: ({"replay": True}, 12_000.0)}).windows, []).ceilings
    assert ceilings["synthetic"].low <= ceilings["synthetic"].estimate <= ceilings["synthetic"].high == LARGEST_RATIO


def test_keys() -> None:
    assert key_of({}) == BASELINE
    assert key_of({"b": 1, "a": "x"}) == key_of({"a": "x", "b": 1}) == "a=x,b=1"
    assert key_of({}, "loader_only") == LOADER_ONLY
    assert key_of(WORKERS_2, "loader_only") != key_of(WORKERS_2)
