"""How long the whole run takes: figures from what the program says and what was measured, and what is said of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.reports import invented
from tests.unit.diagnosable import FOUND, healthy, window

from bottleneck_doctor.diagnose import diagnose, whole_run
from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.documents.report import EpochPause, Interruption, Result, WholeRun, from_json, to_json
from bottleneck_doctor.render import html, terminal
from bottleneck_doctor.wording import ranking, run_words, words

PAUSE = EpochPause(seen=3, seconds=2.5, evaluation=1.5, saving=0.3, first_batch=0.5, rest=0.2, first_batches_seen=3)


def long_run(**told: Any) -> Evidence:
    """Steps of 100 ms in epochs of 100, with a start of 4 s and 0.1 s to begin an epoch."""
    return healthy(found=replace(FOUND, **told), epoch_pause=PAUSE)


def test_epochs_with_their_starts_and_what_lies_between() -> None:
    run = whole_run(long_run(run_epochs=20))
    assert run is not None
    assert (run.epochs, run.steps, run.start) == (20, 2000, 4.0)
    assert run.training == pytest.approx(2000 * 0.1 + 20 * 0.1)
    assert run.between == pytest.approx(20 * 2.0)


def test_windows_of_whole_epochs_hold_the_starts_of_epochs() -> None:
    evidence = replace(long_run(run_epochs=20), windows=[window(each, whole_epochs=2) for each in range(3)])
    run = whole_run(evidence)
    assert run is not None
    assert run.training == pytest.approx(2000 * 0.1)


def test_what_is_collected_between_epochs_gets_faster_as_the_promise_says() -> None:
    evidence = long_run(run_epochs=20)
    assert evidence.baseline is not None
    evidence = replace(evidence, baseline=replace(evidence.baseline, collecting_seconds=0.15))
    run = whole_run(evidence)
    assert run is not None
    assert run.training == pytest.approx(2000 * 0.1 + 20 * (0.1 + 0.15))
    assert run.between == pytest.approx(20 * (2.0 - 0.15))


def test_a_program_that_counts_steps() -> None:
    run = whole_run(long_run(run_steps=1050, run_may_end_sooner=True))
    assert run is not None
    assert (run.epochs, run.steps, run.may_end_sooner) == (None, 1050, True)
    assert run.between == pytest.approx(10 * 2.0)


def test_what_was_seen_once_is_not_counted_between_epochs() -> None:
    run = whole_run(replace(long_run(run_epochs=20), epoch_pause=replace(PAUSE, seen=1)))
    assert run is not None
    assert run.between is None


def test_steps_without_epochs_may_pause_at_any_step() -> None:
    run = whole_run(replace(long_run(run_steps=60), epoch_pause=None))
    assert run is not None
    assert run.between is None


@pytest.mark.parametrize(
    "evidence",
    [
        long_run(),
        replace(long_run(run_epochs=20), baseline=None),
        replace(long_run(run_epochs=0)),
        replace(long_run(run_epochs=3), baseline=replace(healthy().baseline, epoch_batches=None)),  # type: ignore[type-var]
    ],
)
def test_what_the_program_does_not_say_is_not_made_up(evidence: Evidence) -> None:
    assert whole_run(evidence) is None


def test_a_slow_start_weighs_less_where_the_run_is_long() -> None:
    def weight(epochs: int | None) -> float | None:
        evidence = replace(long_run(run_epochs=epochs), setup_seconds=[25.0, 25.0], steps=None)
        evidence = replace(evidence, found=replace(evidence.found, setup_seconds=25.0))
        return next((each.weight for each in diagnose(evidence).findings if each.id == "slow-start"), None)

    short, long = weight(2), weight(100)
    assert short is not None
    assert long is not None
    assert weight(None) == short
    assert long < 0.2 * short
    assert weight(1000) is None


def test_a_slow_start_weighs_little_where_epochs_take_a_second() -> None:
    """Nobody makes only ten of them. Before, it came ahead of a third of the time."""
    evidence = healthy(setup_seconds=[11.0, 11.0], found=replace(FOUND, setup_seconds=11.0), steps=None)
    assert evidence.baseline is not None
    short = replace(evidence, baseline=replace(evidence.baseline, epoch_batches=12))
    assert short.epoch_seconds == pytest.approx(1.2)
    (finding,) = (each for each in diagnose(short).findings if each.id == "slow-start")
    assert finding.weight == pytest.approx(11.0 / 71.0)


# -- words -------------------------------------------------------------------------------------------------------------

RUN = WholeRun(epochs=20, steps=62_500, start=10.0, training=20_000.0, between=2_000.0, may_end_sooner=False)


def with_run(run: WholeRun | None, name: str = "pets") -> Result:
    return replace(invented(name), whole_run=run)


def test_both_figures_are_said_with_what_is_promised() -> None:
    result = with_run(RUN)
    promised = ranking.promise(result)
    assert promised is not None
    assert promised.speedup is not None
    after = run_words.seconds(RUN, promised.speedup.estimate)
    assert after == pytest.approx(2010 + 20_000 / promised.speedup.estimate)
    said = run_words.sentence(result)
    assert said.startswith("The whole run, 20 epochs, takes about 6 h 7 min as written, and about ")
    assert said.endswith(" with the change.")


def test_where_nothing_is_promised_only_the_run_as_written_is_told() -> None:
    assert (
        run_words.sentence(with_run(RUN, "undecided")) == "The whole run, 20 epochs, takes about 6 h 7 min as written."
    )


def test_what_is_not_certain_is_said() -> None:
    said = run_words.sentence(with_run(replace(RUN, epochs=None, between=None, may_end_sooner=True), "undecided"))
    assert said == (
        f"The whole run, 62{words.NARROW_SPACE}500 steps, takes about 5 h 34 min as written, if it does not end "
        f"sooner. {run_words.PAUSES}"
    )
    epochs = run_words.sentence(with_run(replace(RUN, between=None), "undecided"))
    assert epochs.endswith(f"as written. {run_words.BETWEEN_EPOCHS}")


def test_reports_without_it_say_nothing() -> None:
    assert run_words.sentence(with_run(None)) == ""
    assert "whole run" not in html.render(with_run(None))


def test_it_is_kept_and_shown() -> None:
    result = from_json(to_json(with_run(RUN)), source="here")
    assert result.whole_run == RUN
    assert run_words.sentence(result) in html.render(result)
    shown = terminal.render(result, report_path=None, width=200, color=False)
    assert run_words.sentence(result) in shown


# -- beside pauses -----------------------------------------------------------------------------------------------------


def beside(seconds: float, name: str = "pets", within: Interruption | None = None, **changes: Any) -> str:
    """What is said where evaluations of so many seconds follow epochs of ten seconds."""
    result = invented(name)
    baseline = invented("pets").baseline
    assert baseline is not None
    pause = EpochPause(
        seen=3, seconds=seconds, evaluation=seconds, saving=0.0, first_batch=0.0, rest=0.0, first_batches_seen=3
    )
    epochs = replace(baseline, epoch_batches=100, step_ms=100.0)
    paused = replace(result, interruption=within, epoch_pause=replace(pause, **changes))
    return run_words.sentence(replace(paused, whole_run=None, baseline=epochs))


def test_a_promise_is_told_with_what_it_is_worth_beside_long_pauses() -> None:
    promised = ranking.promise(invented("pets"))
    assert promised is not None
    assert promised.speedup is not None
    whole = 50 / (40 + 10 / promised.speedup.estimate)
    said = beside(40.0).replace(words.NARROW_SPACE, " ").replace("\u00a0", " ")
    assert said == (
        "80 % of the time goes by between epochs, which was not measured. If that takes as long as before, training as "
        f"a whole is about {whole:.2f}× as fast."
    )


def test_evaluations_within_epochs_are_beside_a_promise_too() -> None:
    within = Interruption(seen=4, seconds=1.0, every=10.0)
    said = beside(0.0, within=within)
    assert "of the time goes by in evaluations, which was not measured." in said
    said = beside(10.0, within=within)
    assert "of the time goes by between epochs and in evaluations" in said
    assert beside(0.0, within=replace(within, seen=1)) == ""


def test_evaluations_within_epochs_are_a_part_of_the_whole_run() -> None:
    run = whole_run(replace(long_run(run_epochs=20), interruption=Interruption(seen=4, seconds=2.0, every=50.0)))
    assert run is not None
    assert run.evaluations == pytest.approx(20 * 2 * 2.0)
    assert run_words.seconds(run, 2.0) == pytest.approx(run.start + run.training / 2 + 40.0 + 80.0)
    said = run_words.sentence(with_run(run, "undecided"))
    assert said.endswith("Of that, evaluations within epochs take 1 min 20 s.")
    steps = replace(run, epochs=None, between=None)
    assert run_words.sentence(with_run(steps, "undecided")).endswith(run_words.OTHER_PAUSES)


def test_nothing_is_said_of_short_pauses_or_of_what_was_seen_once_or_where_nothing_is_promised() -> None:
    assert beside(1.0) == ""
    assert beside(40.0, seen=1) == ""
    assert beside(40.0, name="undecided") == ""
