"""What is told where nothing can be claimed: chances, what would settle it, and that it does."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.made_up_machine import Examined, Machine
from tests.unit.test_judge import (
    BF16,
    FOUND,
    WORKERS_1,
    WORKERS_2,
    WORKERS_4,
    Experiment,
    amp,
    as_written,
    judged,
    outcome,
    timed,
    workers,
)

from bottleneck_doctor.documents.labels import key_of
from bottleneck_doctor.documents.redaction import discretion
from bottleneck_doctor.documents.report import SessionRecord, Setting, Settle
from bottleneck_doctor.examine import undecided
from bottleneck_doctor.examine.evidence import Candidate
from bottleneck_doctor.examine.examination import ExaminationRequest
from bottleneck_doctor.examine.judge import Judgement
from bottleneck_doctor.examine.settling import Open, Settling, settling
from bottleneck_doctor.explain.explainer import ExplainOptions
from bottleneck_doctor.fixes import catalogue
from bottleneck_doctor.session.start import Start

BY_ID = {fix.id: fix for fix in catalogue()}
REQUEST = ExaminationRequest(
    start=Start(script=Path("train.py")), output=Path("."), explain=ExplainOptions(folder=Path("."))
)
RECORDS = [SessionRecord(number=number, setup_seconds=4.0, seconds=40.0, ended="") for number in (1, 2)]


def doubted(experiment: Experiment, candidates: Sequence[Candidate], **others: Any) -> Judgement:
    """The judgement of an examination of which it is known what it took."""
    known = settling(
        REQUEST.settling, experiment.windows, (), RECORDS, has_loader=True, explains=True, fresh_runs=False
    )
    return judged(experiment.windows, candidates, settling=known, **others)


# -- chances -----------------------------------------------------------------------------------------------------------


def test_every_measured_fix_has_a_chance_and_no_other() -> None:
    experiment = Experiment(timed([(WORKERS_2, 1.6), (BF16, 0.7)]), sessions=1)
    unmeasured = Candidate(BY_ID["no-workers"], settings=[{"num_workers": 0}])
    judgement = doubted(experiment, [workers(WORKERS_2), amp(), unmeasured])
    good, bad, none = (outcome(judgement, name).chance for name in ("workers", "amp-bf16", "no-workers"))
    assert good is not None
    assert bad is not None
    assert none is None
    assert good > 0.9
    assert bad < 0.05


def test_what_adds_nothing_to_what_it_builds_on_has_no_chance() -> None:
    both: Setting = {**WORKERS_2, "prefetch_factor": 4}
    experiment = Experiment(timed([(WORKERS_2, 1.8), (both, 1.8)]), sessions=2)
    rider = Candidate(BY_ID["prefetch-factor"], settings=[{"prefetch_factor": 4}], with_workers=True, base=WORKERS_2)
    judgement = doubted(experiment, [workers(WORKERS_2), rider])
    alone, added = outcome(judgement, "workers"), outcome(judgement, "prefetch-factor")
    assert alone.chance is not None
    assert added.chance is not None
    assert alone.chance > 0.8
    assert added.chance < 0.2
    assert added.settle is not None
    assert added.settle.fixes == ["prefetch-factor", "workers"]


# -- the sentence ------------------------------------------------------------------------------------------------------


def test_the_verdict_names_what_is_likely_and_ends_with_the_next_step() -> None:
    experiment = Experiment(timed([(WORKERS_2, 1.85)]), sessions=1)
    candidates = [workers(WORKERS_2), amp()]
    verdict = doubted(experiment, candidates).verdict
    told = re.fullmatch(
        r"Training waits for data 50 % of the time\. `num_workers=2` makes training at least (1\.\d)× faster: it was "
        r"(1\.\d\d)× as fast in the one process that was measured, and processes differ\. To make sure, run "
        r"`doctor run --budget (\d)m --only workers train\.py` \(about (\d) minutes\)\.",
        verdict.sentence,
    )
    assert told is not None, verdict.sentence
    assert float(told[1]) == pytest.approx(1.4)
    assert float(told[2]) == pytest.approx(1.85, abs=0.03)
    assert verdict.settle is not None
    assert verdict.settle.fixes == ["workers"]
    assert verdict.settle.seconds == 60 * int(told[3]) == 60 * int(told[4])
    assert " ".join(verdict.settle.command) == f"doctor run --budget {told[3]}m --only workers train.py"


def test_what_hardly_helps_is_not_worth_more_time() -> None:
    verdict = doubted(Experiment(timed([(WORKERS_2, 0.7)]), sessions=1), [workers(WORKERS_2)]).verdict
    assert verdict.settle is None
    assert "make sure" not in verdict.sentence


def test_what_was_never_measured_is_the_next_step_where_nothing_else_may_help() -> None:
    experiment = Experiment(timed([(WORKERS_2, 0.7)]), sessions=1)
    verdict = doubted(experiment, [workers(WORKERS_2), amp()]).verdict
    assert verdict.settle is not None
    assert verdict.settle.fixes == ["amp-bf16"]
    assert "To measure the rest, run `doctor run --budget" in verdict.sentence
    both = doubted(Experiment(timed([(WORKERS_2, 1.7)]), sessions=1), [workers(WORKERS_2), amp()]).verdict
    assert both.settle is not None
    assert both.settle.fixes == ["workers"]


def test_too_much_noise_asks_for_quiet_and_not_for_time() -> None:
    experiment = Experiment(timed([(BF16, 1.03)]), luck=0.4, noise=1.0, blocks=2)
    for load, advice in ((2.0, "Stop those programs, then run it again."), (None, "Run it again when the machine is")):
        verdict = doubted(experiment, [amp()], other_load=load).verdict
        assert advice in verdict.sentence
        assert verdict.settle is None


def test_where_more_time_would_not_do_the_reason_says_so() -> None:
    unsure = outcome(doubted(Experiment(timed([(BF16, 1.03)]), luck=0.8), [amp()]), "amp-bf16")
    assert unsure.status == "cannot_tell"
    assert unsure.settle is None
    assert "more time would hardly settle it, because processes differ too much" in unsure.reason
    between = undecided.never(0.21, between=True)
    assert between == (
        "more time would not settle it: the difference seems larger than 2 %, so it may matter, but smaller than the "
        "21 % that this much noise hides"
    )
    assert "too close to 2 %" in undecided.never(0.01, between=True)


def test_no_rounds_are_foretold_that_decide_what_more_time_would_not() -> None:
    unsure = outcome(doubted(Experiment(timed([(BF16, 1.0)]), luck=0.0, sessions=1), [amp()]), "amp-bf16")
    assert undecided.AND_NEVER in unsure.reason
    assert unsure.more_blocks is None


def test_decided_fixes_need_no_settling() -> None:
    judgement = doubted(Experiment(timed([(WORKERS_2, 2.0), (BF16, 1.0)])), [workers(WORKERS_2), amp()])
    assert [fix.settle for fix in judgement.fixes] == [None, None]
    assert judgement.verdict.settle is None
    assert all(fix.chance is not None for fix in judgement.fixes)


# -- what it takes -----------------------------------------------------------------------------------------------------


def a_settling(**changes: Any) -> Settling:
    known = Settling(
        command=REQUEST.settling, setup=10.0, windows={"a": 3.0}, baseline=2.0, beside=1.0, ceilings=False,
        explains=False,
    )  # fmt: skip
    return replace(known, **changes)


def wanted(sessions: int = 3, **others: Any) -> Open:
    return Open(("workers",), ("a",), ("a",), sessions, **others)


def test_seconds_are_those_of_starts_and_windows() -> None:
    block = 3.0 + 2.0 * 2  # The setting, and the baseline before and behind it.
    assert a_settling().seconds([wanted()]) == pytest.approx(3 * (10 + block))
    assert a_settling().seconds([wanted(5, blocks=2)]) == pytest.approx(5 * (10 + 2 * block))
    assert a_settling(ceilings=True).seconds([wanted()]) == pytest.approx(3 * (10 + block) + 4 * 2)
    fresh = a_settling(fresh_runs=True).seconds([wanted()])
    assert fresh == pytest.approx(3 * (block + 3 * 10))
    explained = a_settling(explains=True).seconds([wanted()])
    assert explained >= 3 * (10 + block) + 15


def test_pairs_of_processes_are_paid_by_the_pair() -> None:
    pairs = a_settling().seconds([wanted(beside=True)])
    assert pairs == pytest.approx(10 + 2 + 3 * (1.4 * 10 + 2 * 4 * 1.0))


def test_the_command_names_the_fewer_and_asks_for_many_sessions() -> None:
    known = a_settling()
    every = frozenset({"workers", "amp-bf16"})
    one, _ = known.settle([wanted()], every)
    assert one.command[:2] == ["doctor", "run"]
    assert one.command[2:] == ["--budget", "2m", "--only", "workers", "train.py"]
    other = Open(("amp-bf16",), ("b",), ("b",), 3)
    both, short = known.settle([wanted(), other], every)
    assert "--only" not in both.command
    assert both.fixes == ["workers", "amp-bf16"]
    assert short == "doctor run --budget 2m train.py"
    third = frozenset({*every, "no-workers"})
    assert "--skip no-workers" in " ".join(known.settle([wanted(), other], third)[0].command)
    many, _ = known.settle([wanted(12)], every)
    assert many.command[many.command.index("--sessions") + 1] == "12"
    assert "--sessions" not in one.command


def test_nothing_is_known_of_what_it_takes_without_a_baseline() -> None:
    windows = Experiment(timed([(WORKERS_2, 2.0)])).windows
    others = [window for window in windows if window not in as_written(windows)]
    assert settling(REQUEST.settling, others, (), RECORDS, has_loader=True, explains=True, fresh_runs=False) is None
    known = settling(REQUEST.settling, windows, (), RECORDS, has_loader=True, explains=True, fresh_runs=False)
    assert known is not None
    assert known.setup == 4.0
    assert known.windows[key_of(WORKERS_2)] < known.baseline


# -- the command -------------------------------------------------------------------------------------------------------


def test_a_long_command_is_cut_in_the_sentence_only() -> None:
    start = Start(script=Path("experiments/train.py"), arguments=("--lr", "0.1", "--data", "/data/set"), python="py")
    request = replace(REQUEST, start=start, output=Path("out"), skip=frozenset({"no-workers"}), seed=7)
    command, short = request.settling(frozenset({"workers"}), frozenset(), 300.0, 12)
    assert short == "doctor run --budget 5m --only workers --sessions 12 train.py …"
    assert " ".join(command) == (
        "doctor run --seed 7 --budget 5m -o out --only workers --sessions 12 --python py experiments/train.py -- --lr "
        "0.1 --data /data/set"
    )


def test_a_secret_stands_in_neither() -> None:
    arguments = ("--hf-token", "hf_" + "a" * 30)
    start = Start(script=Path("train.py"), arguments=arguments)
    request = replace(REQUEST, start=start, discretion=discretion(arguments, {}))
    command, short = request.settling(frozenset({"workers"}), frozenset(), 300.0, None)
    assert "hf_a" not in " ".join([*command, short])
    assert "***" in command


def test_modules_and_commands_are_named_as_given() -> None:
    module = replace(REQUEST, start=Start(module="pets.train", arguments=("--epochs", "3") * 12))
    assert module.settling(frozenset(), frozenset(), 120.0, None)[1] == "doctor run --budget 2m -m pets.train …"
    start = Start(words=("/usr/bin/trl", *("sft", "--config", "c.yaml") * 9))
    called = replace(REQUEST, start=start)
    assert called.settling(frozenset(), frozenset(), 120.0, None)[1] == "doctor run --budget 2m --exec trl …"


# -- it does settle it -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "start", "budget"),
    [(0.02, 8.0, 25.0), (0.3, 20.0, 55.0), (1.0, 40.0, 100.0), (2.0, 20.0, 110.0), (5.0, 30.0, 180.0)],
)
def test_the_command_settles_what_was_open(step: float, start: float, budget: float) -> None:
    speeds = {key_of(each): 1.8 for each in (WORKERS_1, WORKERS_2, WORKERS_4)}

    def machine() -> Machine:
        return Machine(step=step, start=start, speeds=speeds)

    first = Examined(machine(), budget=budget).result
    settle = first.verdict.settle
    assert settle is not None, first.verdict.sentence
    assert settle.seconds > 0
    asked = asked_of(settle)
    again = Examined(machine(), **asked).result
    assert again.verdict.settle is None, again.verdict.sentence
    assert {fix.status for fix in again.fixes if fix.id in settle.fixes} <= {"faster", "no_difference", "slower"}
    assert math.isclose(again.method.budget_seconds, settle.seconds)


def asked_of(settle: Settle) -> dict[str, Any]:
    """What its command asks for, as the command line would hand it on."""
    pairs = list(zip(settle.command, settle.command[1:], strict=False))
    given: dict[str, Any] = {"budget": settle.seconds}
    for name in ("only", "skip"):
        given[name] = frozenset(value for option, value in pairs if option == f"--{name}")
    given["sessions"] = next((int(value) for option, value in pairs if option == "--sessions"), None)
    return given


def test_a_loop_without_a_loader_has_chances_too() -> None:
    found = replace(FOUND, has_loader=False, batch_size=None, epoch_batches=None)
    judgement = judged(Experiment(timed([(BF16, 1.6)]), sessions=1).windows, [amp()], found)
    assert outcome(judgement, "amp-bf16").chance is not None
    assert judgement.verdict.settle is None
