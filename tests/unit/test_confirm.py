"""The promise held against the program with the change made: what agrees, when it is tried, and what a report says."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import NormalDist
from typing import Any

import pytest
from tests.reports import invented
from tests.unit.made_up_check import EditMachine, Trainings
from tests.unit.made_up_machine import FOUND_AFTER, FOUND_AGAIN_AFTER, Examined, Machine, Noting, Training
from tests.unit.test_ranks import found as looped

from bottleneck_doctor.confirm import agreement, room
from bottleneck_doctor.confirm.confirming import Wanted, confirm, confirmations, told
from bottleneck_doctor.confirm.instead import instead
from bottleneck_doctor.confirm.way import Way, not_in_effect, way
from bottleneck_doctor.documents.report import (
    Change,
    ChangedWords,
    Combination,
    Confirmation,
    Confirmed,
    FixOutcome,
    LadderStep,
    Preparation,
    Rank,
    Result,
    Risk,
    Setting,
    Speedup,
    Verdict,
)
from bottleneck_doctor.edits.diff import as_change
from bottleneck_doctor.examine.pair_costs import PAIRS
from bottleneck_doctor.examine.request import ExaminationRequest
from bottleneck_doctor.examine.sources import sources
from bottleneck_doctor.knobs import Loading
from bottleneck_doctor.measure import schedule
from bottleneck_doctor.measure.costs import Costs
from bottleneck_doctor.measure.supply import Supply
from bottleneck_doctor.render import html, terminal
from bottleneck_doctor.runtime.wire.messages import Found
from bottleneck_doctor.session.start import Start
from bottleneck_doctor.wording import promise_words, ranking, words

WRITTEN = "loader = DataLoader(rows)\n"
CHANGED = "loader = DataLoader(rows, num_workers=2)\n"
WORKERS: Setting = {"num_workers": 2}
BF16: Setting = {"autocast": "bfloat16"}
ALLOCATOR: Setting = {"allocator": "glibc-keeps"}
GIB = 1 << 30


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The working folder, which nothing may change."""
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(WRITTEN)
    yield tmp_path
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]


def speedup(estimate: float, low: float, high: float, sessions: int = 3) -> Speedup:
    return Speedup(estimate=estimate, low=low, high=high, pairs=4 * sessions, sessions=sessions)


def promised(
    figure: Speedup | None = None, setting: Setting | None = None, changes: list[Change] | None = None
) -> Result:
    """A report that promises two workers, by an edit of `train.py`."""
    figure, setting = figure or speedup(1.6, 1.5, 1.7, 4), WORKERS if setting is None else setting
    if changes is None:
        text = as_change(WRITTEN, CHANGED, 1, "")
        changes = [Change(file=str(Path.cwd() / "train.py"), line=1, diff=text.diff)]
    whole = invented("pets")
    assert whole.baseline is not None
    fix = FixOutcome(
        id="workers",
        title="Load in workers",
        why="",
        setting=setting,
        status="faster",
        risk="identical",
        reason="",
        speedup=figure,
        change=changes[0],
        more_changes=changes[1:],
    )
    claim = promise_words.claim(setting, figure, whole.baseline.device)
    return replace(
        whole,
        entrypoint=replace(whole.entrypoint, cwd=str(Path.cwd())),
        verdict=Verdict(sentence=f"Training waits for data. {claim} Compare the loss.", fix="workers"),
        fixes=[fix],
        combination=None,
        sources=sources([fix], None, Path.cwd()),
    )


# -- what agrees -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("measured", "outcome"),
    [
        (speedup(1.55, 1.4, 1.7), "agrees"),
        (speedup(1.2, 1.1, 1.3), "differs"),
        (speedup(2.2, 2.0, 2.4), "differs"),
        (speedup(1.4, 0.9, 2.2), "unclear"),
        (speedup(1.0, 0.95, 1.05), "not_faster"),
        (speedup(0.8, 0.5, 0.95), "not_faster"),
    ],
)
def test_what_the_changed_program_says(measured: Speedup, outcome: Confirmed) -> None:
    assert agreement.outcome(speedup(1.6, 1.5, 1.7), measured) == outcome


@pytest.mark.parametrize(
    ("sessions", "why"),
    [(2, "2 pairs are too few to"), (4, "Its processes differ too much to")],
)
def test_why_a_changed_program_says_nothing_is_told(sessions: int, why: str) -> None:
    measured = replace(speedup(1.7, 0.16, 18.9), sessions=sessions)
    assert agreement.outcome(speedup(1.66, 1.51, 1.84), measured) == "unclear"
    assert f"{why} confirm that or to deny it." in promise_words.unclear(speedup(1.66, 1.51, 1.84), measured, "edit")


def test_two_measurements_of_the_same_differ_in_one_of_twenty() -> None:
    generator, normal = random.Random(1), NormalDist().inv_cdf(0.975)
    count = 4000
    apart = 0
    for _ in range(count):
        pair = []
        for error in (0.03, 0.06):
            at = math.log(1.5) + generator.gauss(0, error)
            estimate, low, high = (math.exp(at + each * normal * error) for each in (0, -1, 1))
            pair.append(speedup(estimate, low, high))
        apart += agreement.apart(*pair)
    assert 0.04 < apart / count < 0.06


def test_figures_without_bounds_are_apart() -> None:
    assert agreement.apart(speedup(1.5, 1.4, 1.6), speedup(math.inf, 1.0, math.inf))


# -- how, and whether --------------------------------------------------------------------------------------------------


def chosen(result: Result, *arguments: str) -> Way | str:
    promise = ranking.promise(result)
    assert promise is not None
    return way(result, promise, arguments)


def test_an_edit_is_made_and_variables_are_set() -> None:
    made = chosen(promised())
    assert isinstance(made, Way)
    assert [file.source.path for file in made.files] == ["train.py"]
    assert not made.variables
    started = chosen(promised(setting=ALLOCATOR, changes=[Change(file="train.py", line=0, diff="", note="Put it …")]))
    assert isinstance(started, Way)
    assert not started.files
    assert "MALLOC_TRIM_THRESHOLD_" in started.variables


def test_what_windows_switch_and_users_set_by_a_variable_is_confirmed_by_the_variable() -> None:
    alone: Setting = {"single_threaded": "openblas"}
    said = Change(file="train.py", line=0, diff="", note="Put it …")
    assert chosen(promised(setting=alone, changes=[said])) == Way(variables={"OPENBLAS_NUM_THREADS": "1"})
    both = chosen(promised(setting=WORKERS | alone))
    assert isinstance(both, Way)
    assert (len(both.files), both.variables, both.setting) == (1, {"OPENBLAS_NUM_THREADS": "1"}, {})
    switched = chosen(promised(setting=WORKERS | alone, changes=[by_hand()]))
    assert isinstance(switched, Way)
    assert (switched.variables, switched.setting) == ({"OPENBLAS_NUM_THREADS": "1"}, WORKERS)


def test_words_of_the_command_line_are_changed_where_these_give_the_value() -> None:
    note = "Your command line gives num_workers its value: write `--workers 2` there in place of `--workers 1`."
    said = Change(
        file=str(Path.cwd() / "train.py"), line=1, diff="", note=note, words=[changed("--workers 1", "--workers 2")]
    )
    made = chosen(promised(changes=[said]), "data", "--workers", "1", "--amp")
    assert made == Way(arguments=("data", "--workers", "2", "--amp"))
    assert isinstance(made, Way)
    assert made.by == "edit"
    # Beside an edit of a file, too.
    edited = promised().fixes[0].change
    assert edited is not None
    both = chosen(promised(changes=[edited, said]), "--workers", "1")
    assert isinstance(both, Way)
    assert (len(both.files), both.arguments) == (1, ("--workers", "2"))
    # What does not stand there was not what the report was written for.
    assert isinstance(other := chosen(promised(changes=[said]), "--workers", "3"), Way)
    assert other.setting == WORKERS


def changed(before: str, after: str) -> ChangedWords:
    return ChangedWords(before=before, after=after)


def by_hand() -> Change:
    return Change(file=str(Path.cwd() / "train.py"), line=1, diff="", note="Give `--workers 2`.")


def test_what_keeps_a_part_of_the_samples_is_not_switched_for_a_whole_training() -> None:
    kept: Setting = {"cached_inputs": True}
    told = chosen(promised(setting=kept, changes=[by_hand()]))
    assert isinstance(told, str)
    assert "keeps a part of the samples only" in told


def test_what_is_left_to_the_user_is_switched_instead() -> None:
    why = "Not all of it is an edit that doctor can make (train.py, line 1)."
    assert chosen(promised(changes=[by_hand()])) == Way(setting=WORKERS, why=why)
    edited = promised().fixes[0].change
    assert edited is not None
    # Half of an edit beside a switch for the other half would be a third program.
    assert chosen(promised(changes=[edited, by_hand()])) == Way(setting=WORKERS, why=why)
    assert chosen(promised(changes=[replace(edited, unfinished=True)])) == Way(setting=WORKERS, why=why)
    both = chosen(promised(setting=WORKERS | ALLOCATOR, changes=[by_hand()]))
    assert isinstance(both, Way)
    assert both.setting == WORKERS
    assert "MALLOC_TRIM_THRESHOLD_" in both.variables
    hidden = promised()
    hidden = replace(hidden, method=replace(hidden.method, source=False))
    without = chosen(hidden)
    assert isinstance(without, Way)
    assert without.why.startswith("With --no-source")
    assert without.by == "setting"


def test_an_edit_that_does_not_bring_the_setting_is_seen() -> None:
    found = looped(num_workers=1)
    assert not_in_effect({"num_workers": 1}, found) == ""
    assert not_in_effect({"num_workers": 2, "merged_groups": True}, found) == "`num_workers=2`"


def test_there_has_to_be_time() -> None:
    result = promised()
    wanted = room.seconds_wanted(result)
    assert 10 < wanted < 200
    at = replace(result, method=replace(result.method, seconds=100.0))
    assert room.no_time(at, room.seconds_left(at, 100 + wanted + 10, asked=False)) == ""
    assert "more" in room.no_time(at, room.seconds_left(at, 100 + wanted - 10, asked=False))
    assert room.no_time(at, room.seconds_left(at, 1.0, asked=True)) == ""
    late = replace(result, method=replace(result.method, seconds=room.MOST_SECONDS))
    assert "more" in room.no_time(late, room.seconds_left(late, None, asked=False))


def of_quick_steps(result: Result) -> Result:
    assert result.baseline is not None
    return replace(result, baseline=replace(result.baseline, step_ms=20.0))


def test_a_long_examination_is_confirmed_by_as_few_pairs_as_a_claim_needs() -> None:
    result = of_quick_steps(promised())
    wanted = room.seconds_wanted(result)

    def left(seconds: float) -> float:
        at = replace(result, method=replace(result.method, seconds=seconds))
        found = room.seconds_left(at, None, asked=False)
        assert found is not None
        assert (room.no_time(at, found) == "") == (found >= wanted)
        return found

    assert left(100.0) == room.USUAL_SECONDS - 100 - room.ENDING
    assert 2 * wanted < left(room.USUAL_SECONDS) < 3 * wanted
    assert wanted < left(room.MOST_SECONDS - room.ENDING - 1.1 * wanted) < 1.15 * wanted
    assert left(room.MOST_SECONDS - wanted) < wanted


def test_time_that_starts_may_take_makes_no_pair_longer() -> None:
    result = of_quick_steps(promised())

    def a_pair(seconds: float, budget: float | None = None) -> float:
        at = replace(result, method=replace(result.method, seconds=seconds))
        found = room.seconds_left(at, budget, asked=False)
        assert found is not None
        return found / room.pairs_planned(at, budget, found)

    expected = room.seconds_wanted(result) / PAIRS
    assert expected < a_pair(room.USUAL_SECONDS) < 1.3 * expected
    assert expected < a_pair(room.MOST_SECONDS - room.ENDING - 4 * expected) < 1.4 * expected
    assert a_pair(100.0) == (room.USUAL_SECONDS - 100 - room.ENDING) / PAIRS
    assert a_pair(100.0, 400.0) == (300 - room.ENDING) / PAIRS
    assert room.pairs_planned(result, None, None) == PAIRS


def test_there_has_to_be_memory() -> None:
    result = promised()
    assert result.utilization is not None
    held = max(
        sum(each.pss_bytes or each.rss_bytes or 0 for each in use.processes) for use in result.utilization.windows
    )
    assert held > 0
    assert "memory" in room.no_memory(result, lambda: int(2 * held))
    assert room.no_memory(result, lambda: int(3 * held)) == ""
    assert room.no_memory(result, lambda: None) == ""
    # In one more window, nobody knows what its processes share.
    apart = [replace(each, pss_bytes=None, rss_bytes=1e12) for each in result.utilization.windows[0].processes]
    more = [*result.utilization.windows, replace(result.utilization.windows[0], processes=apart)]
    rough = replace(result, utilization=replace(result.utilization, windows=more))
    assert room.no_memory(rough, lambda: int(3 * held)) == ""
    alone = replace(result, utilization=replace(result.utilization, windows=more[-1:]))
    assert "memory" in room.no_memory(alone, lambda: int(3 * held))
    gpu = invented("gpu")
    assert gpu.utilization is not None
    used = next(device for use in gpu.utilization.windows for device in use.devices)
    assert used.memory_bytes
    assert used.memory_total_bytes
    crowded = 2 * room.MEMORY_TO_SPARE * used.memory_bytes > used.memory_total_bytes
    assert bool(room.no_memory(gpu, lambda: 1 << 50)) == crowded


def test_what_is_started_side_by_side_only_if_asked() -> None:
    result, start = promised(), Start(script=Path("train.py"))
    assert room.not_unasked(result, start) == ""
    assert "--in-place" in room.not_unasked(result, replace(start, in_place=True))
    ranks = [Rank(rank=each, local_rank=each, host="") for each in (0, 1)]
    assert "several processes" in room.not_unasked(replace(result, ranks=ranks), start)
    assert "several processes" in room.not_unasked(result, replace(start, listen=("localhost", 0)))


# -- the order, on a machine that is made up ---------------------------------------------------------------------------


def confirmed(
    base: Trainings,
    head: Trainings,
    *,
    result: Result | None = None,
    asked: bool = True,
    interrupted_at: float | None = None,
    budget: float | None = None,
    costs: Costs | None = None,
    loop: Found | None = None,
) -> tuple[Result, EditMachine]:
    machine = EditMachine(sides={"base": base, "head": head}, interrupted_at=interrupted_at)
    start = Start(script=Path("train.py"), in_place=True)
    request = ExaminationRequest(start=start, output=Path(), seed=1, budget=budget)
    wanted = Wanted(request, asked=asked, costs=costs, loop=loop, command=lambda way: f"doctor {way.by}")
    try:
        return confirm(result or promised(), wanted, Noting(machine), machine.outside()), machine
    finally:
        machine.expects_all_ended()


def test_a_gain_that_comes_is_the_headline() -> None:
    made, machine = confirmed(Training(step=0.016), Training(step=0.010, workers=2))
    confirmation = made.confirmation
    assert confirmation is not None
    assert (confirmation.outcome, confirmation.by) == ("agrees", "edit")
    assert confirmation.speedup is not None
    assert confirmation.speedup.estimate == pytest.approx(1.6, rel=0.02)
    assert confirmation.speedup.sessions == 3
    assert len(machine.sessions) == 6
    assert confirmation.seconds > 6
    promise = ranking.promise(made)
    assert promise is not None
    assert promise.speedup == confirmation.speedup
    assert "pairs of processes), measured with the change made. Compare the loss." in made.verdict.sentence
    assert "Switched while the training ran, it had brought 1.60× (1.50–1.70), which agrees." in confirmation.sentence
    # Nobody edits the files of the user: those processes run in a copy, because of --in-place.
    assert all(session.command.cwd.resolve() != Path.cwd() for session in machine.sessions if session.who == "head")


def test_where_no_edit_can_be_made_the_setting_itself_is_measured() -> None:
    training = Training(step=0.016, speeds={"num_workers=2": 1.6})
    made, machine = confirmed(training, training, result=promised(changes=[by_hand()]))
    confirmation = made.confirmation
    assert confirmation is not None
    assert (confirmation.outcome, confirmation.by) == ("agrees", "setting")
    assert confirmation.speedup is not None
    assert confirmation.speedup.estimate == pytest.approx(1.6, rel=0.02)
    assert "pairs of processes), measured with the setting on throughout." in made.verdict.sentence
    assert confirmation.sentence.startswith("With the setting on throughout, the program ran 1.60× as fast (")
    assert "an edit that doctor can make (train.py, line 1). So each changed process" in confirmation.sentence
    for session in machine.sessions:
        assert session.grants
        assert all(grant.setting == (WORKERS if session.who == "head" else {}) for grant in session.grants)


def test_a_setting_that_does_not_bring_it_throughout_is_taken_back() -> None:
    training = Training(step=0.016)
    made, _ = confirmed(training, training, result=promised(changes=[by_hand()]))
    assert made.confirmation is not None
    assert made.confirmation.outcome == "not_faster"
    assert "but with the setting on throughout the program" in made.verdict.sentence
    assert ranking.promise(made) is None


def test_a_program_that_breaks_under_the_setting_is_named_so() -> None:
    short = Training(steps=FOUND_AFTER + 3, code=1)
    made, _ = confirmed(Training(), short, result=promised(changes=[by_hand()]))
    assert made.confirmation is not None
    assert (made.confirmation.outcome, made.confirmation.by) == ("failed", "setting")
    assert "The program under the setting fails" in made.confirmation.sentence
    assert "with the setting on throughout the program fails" in made.verdict.sentence


def test_the_memory_of_both_stands_beside_it() -> None:
    made, _ = confirmed(Training(step=0.016, memory=GIB), Training(step=0.010, workers=2, memory=3 * GIB // 2))
    assert made.confirmation is not None
    (peak,) = made.confirmation.memory
    assert peak.where == "host"
    assert peak.written == pytest.approx(GIB, rel=0.1)
    said = promise_words.memory(made.confirmation)
    assert said == f"Its peak memory is {words.bytes_text(peak.changed)}, {words.bytes_text(peak.written)} as written."
    assert said in html.render(made)
    assert "peak memory" in terminal.render(made, report_path="report.html", width=100, color=False)
    alike = replace(made.confirmation, memory=[replace(peak, changed=peak.written)])
    assert promise_words.memory(alike).endswith(", as much as before.")


def test_that_it_depends_on_other_programs_is_taken_back_with_the_promise() -> None:
    result = promised()
    busy = [replace(each, other_load=load) for each, load in zip(result.method.sessions, (1.2, 0.9), strict=False)]
    said = promise_words.beside_others(result.fixes[0].setting, 0.9)
    assert "at least 0.9 cores busy" in said
    longer = replace(
        result,
        method=replace(result.method, sessions=busy),
        verdict=replace(result.verdict, sentence=f"{result.verdict.sentence} {said}"),
    )
    assert words.least_other_load(busy) == 0.9
    kept, _ = confirmed(Training(), Training(step=0.005), result=longer)
    assert kept.verdict.sentence.endswith(said)
    made, _ = confirmed(Training(), Training(workers=2), result=longer)
    assert "other programs" not in made.verdict.sentence


@pytest.mark.parametrize(("promise", "outcome", "told"), [(1.6, "differs", True), (1.2, "agrees", False)])
def test_other_programs_are_named_where_it_is_not_what_was_promised(promise: float, outcome: str, told: bool) -> None:
    def others(now: float) -> float:
        return 1.0

    result = promised(speedup(promise, promise - 0.05, promise + 0.05))
    sides = Training(step=0.012, others=others), Training(step=0.010, workers=2, others=others)
    made, _ = confirmed(*sides, result=result)
    assert made.confirmation is not None
    assert made.confirmation.outcome == outcome
    assert ("Other programs kept at least" in made.confirmation.sentence) is told


def test_what_is_prepared_first_takes_room_and_is_taken_back_with_the_promise() -> None:
    result = promised()
    preparation = Preparation(samples=60000, seconds=12.0, bytes=190 << 20)
    took = "takes about 12 s when training starts, and about 190 MiB of memory."
    said = f"Preparing all 60{words.NARROW_SPACE}000 samples {took}"
    assert promise_words.preparing(preparation) == said
    longer = replace(
        result,
        fixes=[replace(result.fixes[0], preparation=preparation)],
        verdict=replace(result.verdict, sentence=f"{result.verdict.sentence} {said}"),
    )
    assert room.seconds_wanted(longer) >= room.seconds_wanted(result) + 3 * 12
    assert said in html.render(longer)
    made, _ = confirmed(Training(), Training(workers=2), result=longer)
    assert made.confirmation is not None
    assert made.confirmation.outcome == "not_faster"
    assert "Preparing" not in made.verdict.sentence


def test_another_gain_is_the_headline_beside_what_was_promised() -> None:
    made, _ = confirmed(Training(step=0.013), Training(step=0.010, workers=2))
    assert made.confirmation is not None
    assert made.confirmation.outcome == "differs"
    assert "makes training 1.3" in made.verdict.sentence
    assert "1.60×" in made.confirmation.sentence


def test_where_nothing_comes_nothing_is_promised() -> None:
    made, _ = confirmed(Training(), Training(workers=2))
    assert made.confirmation is not None
    assert made.confirmation.outcome == "not_faster"
    assert "looked 1.60× faster while it was switched, but with the change made the program" in made.verdict.sentence
    assert ranking.promise(made) is None
    page, text = html.render(made), terminal.render(made, report_path="report.html", width=100, color=False)
    assert "Not confirmed" in page
    assert "Change this" not in page
    assert "Not confirmed: With the change made" in text
    assert "Apply:" not in text


def test_a_change_that_breaks_the_program_is_not_promised() -> None:
    made, machine = confirmed(Training(), Training(steps=FOUND_AFTER - 3, code=1))
    assert made.confirmation is not None
    assert made.confirmation.outcome == "failed"
    assert "ValueError: of its own" in made.confirmation.sentence
    assert "with the change made the program fails" in made.verdict.sentence
    assert ranking.promise(made) is None
    assert len(machine.sessions) == 4, "a pair, and a second one to be sure"


def test_a_change_that_failed_once_is_started_once_more() -> None:
    broken, sound = Training(steps=FOUND_AFTER - 3, code=1), Training(step=0.010, workers=2)
    made, _ = confirmed(Training(step=0.016), [broken, sound])
    assert made.confirmation is not None
    assert made.confirmation.outcome == "agrees"


def test_where_both_fail_side_by_side_the_promise_stands() -> None:
    broken = Training(steps=FOUND_AFTER - 3, code=1)
    made, _ = confirmed(broken, broken)
    assert made.confirmation is not None
    assert made.confirmation.outcome == "missing"
    assert ranking.promise(made) == ranking.promise(promised())
    assert made.verdict == promised().verdict


def test_an_edit_without_effect_confirms_nothing() -> None:
    made, _ = confirmed(Training(), Training(workers=0))
    assert made.confirmation is not None
    assert made.confirmation.outcome == "missing"
    assert "The edit alone does not bring `num_workers=2`." in made.confirmation.sentence


@pytest.mark.parametrize(("changes", "by"), [(None, "edit"), ([by_hand()], "setting")])
def test_what_is_not_measured_unasked_is_said_with_what_measures_it(changes: list[Change] | None, by: str) -> None:
    result = promised() if changes is None else promised(changes=changes)
    made, machine = confirmed(Training(), Training(), result=result, asked=False, budget=result.method.seconds + 1)
    assert made.confirmation is not None
    assert made.confirmation.sentence.endswith(f"would write the same files. `doctor {by}` measures it.")
    assert machine.sessions == []


def test_files_that_were_changed_meanwhile_are_left_alone() -> None:
    result = promised()
    Path("train.py").write_text("# mine\n" + WRITTEN)
    made, machine = confirmed(Training(), Training(workers=2), result=result)
    assert made.confirmation is not None
    assert made.confirmation.sentence == (
        "The program with the change made was not measured. train.py was changed meanwhile."
    )
    assert not machine.sessions


def test_unasked_it_needs_room() -> None:
    made, machine = confirmed(Training(), Training(workers=2), asked=False)
    assert made.confirmation is not None
    assert made.confirmation.outcome == "missing"
    assert "--in-place" in made.confirmation.sentence
    assert not machine.sessions


def test_nothing_is_promised_so_nothing_is_tried() -> None:
    result = replace(promised(), fixes=[], verdict=Verdict(sentence="Nothing is faster."))
    made, machine = confirmed(Training(), Training(), result=result)
    assert made is result
    assert not machine.sessions


def test_interrupted_it_ends_both_and_passes_it_on() -> None:
    with pytest.raises(KeyboardInterrupt):
        confirmed(Training(), Training(workers=2), interrupted_at=5.0)


def test_every_outcome_is_drawn() -> None:
    """What the page says of each, and what it stops to promise."""
    result = promised()
    risk = promise_words.RISK_TOLD["numerics"]
    result = replace(result, verdict=replace(result.verdict, sentence=f"{result.verdict.sentence} {risk}"))
    promise = ranking.promise(result)
    assert promise is not None
    assert promise.speedup is not None
    outcomes: list[Confirmed] = ["agrees", "differs", "unclear", "not_faster", "failed", "other_loss", "missing"]
    for outcome in outcomes:
        measured = None if outcome in ("failed", "missing") else speedup(1.3, 1.2, 1.4)
        confirmation = Confirmation(outcome=outcome, sentence="Said.", promised=promise.speedup, speedup=measured)
        made = told(result, promise, confirmation)
        page = html.render(made)
        assert "Said." in page
        stands = outcome not in ("not_faster", "failed", "other_loss")
        assert ("Change this" in page) == stands
        assert (risk in made.verdict.sentence) == stands, "what is not promised has no risk"
        assert ("1.30× faster" in page) == (outcome in ("agrees", "differs"))
        assert (made.verdict == result.verdict) == (outcome in ("unclear", "missing"))


@pytest.mark.parametrize(("measured", "told_of"), [(speedup(1.02, 0.99, 1.05), True), (speedup(1.5, 0.9, 2.5), False)])
def test_a_promise_that_may_be_luck_says_so(measured: Speedup, told_of: bool) -> None:
    """Where the changed program's speedup is known as well as what was promised, and 1 is in its interval."""
    result = promised()
    promise = ranking.promise(result)
    assert promise is not None
    assert promise.speedup is not None
    assert agreement.is_surer(measured, promise.speedup) == told_of
    confirmation = Confirmation(outcome="unclear", sentence="Said.", promised=promise.speedup, speedup=measured)
    sentence = told(result, promise, confirmation).verdict.sentence
    claim = promise_words.claim(promise.setting, promise.speedup, "cpu")
    said = f"{claim} With the change made, the program ran 1.02× as fast (0.99–1.05, 3 pairs of processes), so it may"
    assert (said in sentence) == told_of
    assert sentence == result.verdict.sentence.replace(claim, f"{said} bring nothing." if told_of else claim)


def test_what_is_not_promised_has_no_part_that_may_be_needless() -> None:
    result, both = promised(), {**WORKERS, "autocast": "bfloat16"}
    ladder = [
        LadderStep(fix="workers", setting=WORKERS, speedup=speedup(1.01, 0.9, 1.13)),
        LadderStep(fix="amp-bf16", setting=both, speedup=speedup(1.6, 1.5, 1.7)),
    ]
    whole = Combination(setting=both, speedup=ladder[1].speedup, confirmed=None, ladder=ladder)
    needless = promise_words.needless(whole, "cpu")
    assert "alone may be enough" in needless
    verdict = Verdict(sentence=f"{promise_words.claim(both, whole.speedup, 'cpu')} {needless}", together=True)
    result = replace(result, combination=whole, verdict=verdict)
    promise = ranking.promise(result)
    assert promise is not None
    told_of: list[tuple[Confirmed, bool]] = [("agrees", True), ("not_faster", False)]
    for outcome, stands in told_of:
        confirmation = Confirmation(
            outcome=outcome, sentence="Said.", promised=whole.speedup, speedup=speedup(1.3, 1.2, 1.4)
        )
        assert (needless in told(result, promise, confirmation).verdict.sentence) == stands


@pytest.mark.parametrize(("steps", "said"), [(4000, "Over 4000 steps the losses were alike"), (0, "compare the loss")])
def test_the_user_need_not_compare_what_was_compared(steps: int, said: str) -> None:
    result = promised()
    risk = promise_words.RISK_TOLD["numerics"]
    result = replace(result, verdict=replace(result.verdict, sentence=f"{result.verdict.sentence} {risk}"))
    promise = ranking.promise(result)
    assert promise is not None
    assert promise.speedup is not None
    confirmation = Confirmation(
        outcome="agrees", sentence="Said.", promised=promise.speedup, speedup=speedup(1.3, 1.2, 1.4), alike_steps=steps
    )
    sentence = told(result, promise, confirmation).verdict.sentence
    assert said in sentence
    assert (risk in sentence) == (not steps)


# -- slow steps --------------------------------------------------------------------------------------------------------

STEP = 1.9
"""Seconds that a step takes as written, and `FASTER` times as fast with the change made."""
FASTER = 1.8


def slow(*, regular: bool = True, supply: bool = True) -> tuple[Result, Costs]:
    """An examination of six minutes, and what it knows of windows: two workers keep up with ease."""
    result = promised()
    records = [replace(each, setup_seconds=10.0) for each in result.method.sessions]
    assert result.baseline is not None
    result = replace(
        result,
        baseline=replace(result.baseline, step_ms=1000 * STEP),
        method=replace(result.method, seconds=360.0, sessions=records),
    )
    costs = Costs(schedule.shape_of(looped(num_workers=2, prefetch_factor=2)), STEP, 4.0, brief=True)
    costs.regular = regular
    seen = Supply(wait=0.001, epoch_start=0.0, step=STEP, batch=0.1, workers=2)
    costs.supply = seen if supply else None
    return result, costs


def trains(step: float) -> Training:
    return Training(step=step, start=10.0, workers=2, load=0.1)


@pytest.mark.parametrize("most", [None, 5])
def test_windows_of_a_script_that_soon_ends_hold_what_its_life_holds(most: int | None) -> None:
    """Five epochs of five steps are left once the loop is found: rounds of an epoch each. If the examination does not
    know that, the first pair comes to its end in windows of three, and tells the next."""
    result, _ = slow()
    shape = schedule.LoopShape(period=1, epoch_batches=5, num_workers=8, prefetch_factor=2, served=True)
    costs = Costs(shape, 0.29, 4.0, brief=True)
    costs.most_steps = most
    sides = (0.29, 8), (0.29 / FASTER, 2)
    lives = [Training(step=step, start=8.0, epoch=5, steps=32, workers=workers) for step, workers in sides]
    done, machine = confirmed(*lives, result=result, costs=costs)
    assert done.confirmation is not None
    assert {each.steps for each in machine.happened if most is not None or each.session > len(sides)} == {5}
    assert done.confirmation.speedup is not None, done.confirmation.sentence
    assert done.confirmation.speedup.estimate == pytest.approx(FASTER, rel=0.02)


@pytest.mark.parametrize("regular", [True, False])
def test_slow_steps_are_confirmed_in_the_time_that_was_expected(regular: bool) -> None:
    """With windows as long as those of a check, one pair took longer than that."""
    result, costs = slow(regular=regular)
    done, machine = confirmed(trains(STEP), trains(STEP / FASTER), result=result, costs=costs)
    assert done.confirmation is not None
    assert done.confirmation.speedup is not None, done.confirmation.sentence
    assert done.confirmation.speedup.sessions >= PAIRS
    assert done.confirmation.speedup.estimate == pytest.approx(FASTER, rel=0.02)
    pair = machine.now / done.confirmation.speedup.sessions
    known = room.costs_of(costs, FASTER)
    # Where there is more time, a pair has more rounds.
    assert 0.6 * pair < room.seconds_wanted(result, known) / PAIRS < 1.3 * pair
    assert room.no_time(result, room.seconds_left(result, None, asked=False, known=known), known) == ""
    assert "phases" not in {each.name for each in machine.happened}, "nothing has to be explained"
    long, machine = confirmed(trains(STEP), trains(STEP / FASTER), result=result)
    assert long.confirmation is not None
    assert machine.now / max(1, len(machine.sessions) / 2) > 1.5 * pair


def test_the_first_pair_is_told_the_loop_that_the_examination_has_found() -> None:
    """If steps are long. Finding it takes fewer of them then."""
    looked = Examined(Machine(step=STEP, start=10.0, workers=2, load=0.1), only=frozenset({"no-workers"}))
    assert looked.outcome is not None
    result, costs = slow()
    _, told_so = confirmed(trains(STEP), trains(STEP / FASTER), result=result, costs=costs, loop=looked.outcome.loop)
    _, plain = confirmed(trains(STEP), trains(STEP / FASTER), result=result, costs=costs)
    assert [each.found_after for each in told_so.sessions[:2]] == [FOUND_AGAIN_AFTER] * 2
    assert [each.found_after for each in plain.sessions[:4]] == [FOUND_AFTER] * 2 + [FOUND_AGAIN_AFTER] * 2


def test_what_would_take_too_long_is_not_begun() -> None:
    """Nobody has seen how batches come, so every window has to go past the queue of its workers."""
    result, costs = slow(supply=False)
    costs.shape = replace(costs.shape, num_workers=4)
    known = room.costs_of(costs, FASTER)
    assert "It would take about" in room.no_time(
        result, room.seconds_left(result, None, asked=False, known=known), known
    )


def test_workers_that_keep_up_as_written_may_not_keep_up_with_what_is_faster() -> None:
    _, costs = slow()
    assert costs.supply is not None
    busy = replace(costs.supply, batch=1.5)
    costs.supply = busy
    queue = Loading(2, 2, persistent=False)
    assert busy.settled_after(queue) is not None
    faster = room.costs_of(costs, FASTER).supply
    assert faster is not None
    assert faster.settled_after(queue) is None


# -- what is promised instead ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Faster:
    """A faster fix that edits `train.py`."""

    id: str
    setting: Setting
    estimate: float
    risk: Risk = "identical"

    @property
    def figure(self) -> Speedup:
        return speedup(self.estimate, 0.95 * self.estimate, 1.05 * self.estimate, 4)


def several(*faster: Faster) -> Result:
    """A report that promises the first of them."""
    whole = promised(faster[0].figure, faster[0].setting)
    fixes = [
        replace(whole.fixes[0], id=each.id, title=each.id, setting=each.setting, risk=each.risk, speedup=each.figure)
        for each in faster
    ]
    return replace(whole, fixes=fixes, verdict=replace(whole.verdict, fix=fixes[0].id))


def refused(result: Result, outcome: Confirmed) -> Result:
    """The report once the changed program has refused its promise so."""
    promise = ranking.promise(result)
    assert promise is not None
    assert promise.speedup is not None
    figure = speedup(1.0, 0.97, 1.03) if outcome == "not_faster" else None
    confirmation = Confirmation(
        outcome=outcome, sentence="No.", promised=promise.speedup, speedup=figure, by="edit", seconds=50.0
    )
    return told(result, promise, confirmation)


AMP = Faster("amp-bf16", BF16, 2.0, "numerics")
CHANNELS = Faster("channels-last", {"channels_last": True}, 1.4, "numerics")
LOADING = Faster("workers", WORKERS, 1.5)


@pytest.mark.parametrize("outcome", ["failed", "other_loss", "not_faster"])
def test_the_next_best_is_promised_where_the_best_is_refused(outcome: Confirmed) -> None:
    made = instead(refused(several(AMP, LOADING, CHANNELS), outcome), BF16)
    assert made is not None
    promise = ranking.promise(made)
    assert promise is not None
    assert (promise.setting, promise.speedup) == (WORKERS, LOADING.figure)
    sentence = made.verdict.sentence
    claimed, refusal = "`num_workers=2` makes training 1.50× faster", "looked 2.0× faster while it was switched, but"
    assert sentence.index("Training waits for data.") < sentence.index(claimed) < sentence.index(refusal)
    assert [each.setting for each in made.refused] == [BF16]
    assert made.confirmation is None
    page, text = html.render(made), terminal.render(made, report_path=None, width=100, color=False)
    # Beside the verdict, and in the card of the fix that windows found faster.
    assert page.count("<strong>Not confirmed:</strong> No.") == 2
    assert "Not confirmed: No." in text


def test_nothing_that_shares_the_fault_is_promised_instead() -> None:
    both = Faster("both", {**BF16, **WORKERS}, 1.6)
    assert instead(refused(several(AMP, both), "failed"), BF16) is None
    # What changed the loss together may do so alone.
    together = Faster("together", {**BF16, **CHANNELS.setting}, 2.2, "numerics")
    assert instead(refused(several(together, AMP, CHANNELS), "other_loss"), together.setting) is None
    made = instead(refused(several(together, AMP, CHANNELS), "failed"), together.setting)
    assert made is not None
    assert made.verdict.fix == "amp-bf16"


@pytest.mark.parametrize("outcome", ["agrees", "differs", "unclear", "missing"])
def test_a_promise_that_stands_has_nothing_instead(outcome: Confirmed) -> None:
    assert instead(replace(refused(several(AMP, LOADING), outcome)), BF16) is None


def test_a_refused_combination_leaves_the_best_fix_by_itself() -> None:
    result = several(LOADING, AMP)
    figure = speedup(2.6, 2.4, 2.8, 4)
    whole = Combination(
        setting={**BF16, **WORKERS},
        speedup=figure,
        confirmed=figure,
        ladder=[],
        changes=[],
    )
    result = replace(result, combination=whole, verdict=replace(result.verdict, together=True))
    made = instead(refused(result, "other_loss"), whole.setting)
    assert made is not None
    assert not made.verdict.together
    assert made.verdict.fix == "workers"


def tried_in_turn(result: Result, heads: Sequence[Trainings]) -> list[Result]:
    """What came of each promise, if so are the programs with their changes made."""
    sides: dict[str, Trainings] = {"base": Training(step=0.015), "head": heads[0]}
    machine = EditMachine(sides=sides)
    request = ExaminationRequest(start=Start(script=Path("train.py"), in_place=True), output=Path(), seed=1)
    made = []
    for each in confirmations(result, Wanted(request, asked=True), Noting(machine), machine.outside()):
        made.append(each)
        sides["head"] = heads[min(len(made), len(heads) - 1)]
    machine.expects_all_ended()
    return made


def test_the_next_best_is_measured_with_its_change_made() -> None:
    broken, sound = Training(steps=FOUND_AFTER - 3, code=1), Training(step=0.010, workers=2)
    between, last = tried_in_turn(several(AMP, LOADING), [broken, sound])
    assert (between.verdict.fix, between.confirmation) == ("workers", None)
    assert last.confirmation is not None
    assert last.confirmation.outcome == "agrees"
    assert "measured with the change made" in last.verdict.sentence
    assert "the program fails" in last.verdict.sentence


def test_what_was_refused_took_of_the_time() -> None:
    result = refused(several(AMP, LOADING), "failed")
    made = instead(result, BF16)
    assert made is not None
    assert result.confirmation is not None
    spent = result.confirmation.seconds
    assert spent > 0
    left = [room.seconds_left(each, result.method.seconds + 200.0, asked=False) for each in (result, made)]
    assert left[1] == pytest.approx((left[0] or 0.0) - spent)


def test_it_ends_where_all_is_refused() -> None:
    broken = Training(steps=FOUND_AFTER - 3, code=1)
    *_, last = tried_in_turn(several(AMP, LOADING), [broken])
    assert ranking.promise(last) is None
    assert last.confirmation is not None
    assert [each.setting for each in last.refused] == [BF16]
    assert last.verdict.sentence.count("the program fails") == 2


def test_the_terminal_says_which_words_to_change() -> None:
    note = "Your command line gives num_workers its value: write `--workers 2` there in place of `--workers 1`."
    words = [changed("--workers 1", "--workers 2")]
    said = Change(file=str(Path.cwd() / "train.py"), line=1, diff="", note=note, words=words)
    result = promised(changes=[said])
    result = replace(result, method=replace(result.method, command=["doctor", "run", "t.py", "--", "--workers", "1"]))
    text = terminal.render(result, report_path="report.html", width=400, color=False)
    assert f"Next:   {note} Then measure again: doctor run t.py -- --workers 2" in text
    edited = promised().fixes[0].change
    assert edited is not None
    result = replace(result, fixes=[replace(result.fixes[0], change=said, more_changes=[edited])])
    text = terminal.render(result, report_path="report.html", width=400, color=False)
    assert f"Next:   Change line {edited.line} of train.py. {note} Then measure again" in text


# -- what is open but likely -------------------------------------------------------------------------------------------

TOLD = "Training waits for data. Cannot tell: `num_workers=2` was measured at 1.40×. It is likely to help (86 %)."


def left_open(chance: float | None = 0.86, figure: Speedup | None = None) -> Result:
    """A report that promises nothing, and thinks two workers likely to help."""
    whole = promised(figure or speedup(1.4, 1.05, 1.9, 5))
    (fix,) = whole.fixes
    open_fix = replace(fix, status="cannot_tell", reason="it looks faster, but that may be chance", chance=chance)
    return replace(whole, fixes=[open_fix], verdict=Verdict(sentence=TOLD))


def settled_by(head: Trainings, result: Result | None = None) -> tuple[Result, int]:
    """What is known once the changed program was asked, and how many processes were started for that."""
    machine = EditMachine(sides={"base": Training(step=0.014), "head": head})
    request = ExaminationRequest(start=Start(script=Path("train.py"), in_place=True), output=Path(), seed=1)
    (made,) = confirmations(result or left_open(), Wanted(request, asked=True), Noting(machine), machine.outside())
    machine.expects_all_ended()
    return made, len(machine.sessions)


def test_what_is_likely_is_claimed_once_the_changed_program_is_faster() -> None:
    made, started = settled_by(Training(step=0.010, workers=2))
    assert started >= 6
    (fix,) = made.fixes
    assert (fix.status, fix.reason) == ("faster", "")
    promise = ranking.promise(made)
    assert promise is not None
    assert promise.speedup is not None
    assert promise.speedup.low > 1.12
    sentence = made.verdict.sentence
    assert sentence.startswith("Training waits for data. `num_workers=2` makes training 1.40× faster")
    assert "measured with the change made" in sentence
    assert "Cannot tell" not in sentence
    assert "likely" not in sentence


def test_where_the_changed_program_is_not_faster_its_figure_stands_behind_what_is_open() -> None:
    made, started = settled_by(Training(step=0.014, workers=2))
    assert started >= 6
    assert ranking.promise(made) is None
    assert made.confirmation is None
    assert [fix.status for fix in made.fixes] == ["cannot_tell"]
    assert made.verdict.sentence.startswith(TOLD)
    assert "With the change made, the program ran 1.00× as fast" in made.verdict.sentence


def test_a_gain_that_may_be_chance_is_not_claimed() -> None:
    """With three pairs, it has to exceed 12 %."""
    made, _ = settled_by(Training(step=0.014 / 1.08, workers=2), left_open(figure=speedup(1.12, 0.99, 1.25, 5)))
    promise = ranking.promise(made)
    assert promise is None or (promise.speedup is not None and promise.speedup.sessions >= 5)


@pytest.mark.parametrize(
    "result",
    [
        {"chance": 0.79},
        {"chance": None},
        {"figure": speedup(1.05, 1.01, 1.1, 5)},
        {"figure": speedup(math.inf, 0.0, math.inf, 5)},
    ],
    ids=["unlikely", "no chance", "little", "endless"],
)
def test_what_is_not_likely_or_little_starts_nothing(result: dict[str, Any]) -> None:
    before = left_open(**result)
    made, started = settled_by(Training(step=0.010, workers=2), before)
    assert (made, started) == (before, 0)


def test_what_is_open_for_lack_of_anything_starts_nothing() -> None:
    before = replace(left_open(), verdict=Verdict(sentence="Training waits for data. Nothing helps."))
    assert settled_by(Training(), before) == (before, 0)
