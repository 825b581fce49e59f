"""Rules about the time outside of steps that have more than one side, and what was seen once."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.diagnosable import (
    BY_ID,
    FOUND,
    STEPS,
    WAITING,
    finding,
    healthy,
    in_workers,
    shares,
    window,
)

from bottleneck_doctor.diagnose import diagnose
from bottleneck_doctor.documents.report import (
    EpochPause,
    Interruption,
    PhaseTable,
    Site,
)


def pause(**given: float) -> EpochPause:
    parts = {"evaluation": 0.0, "saving": 0.0, "first_batch": 0.0, "rest": 0.0, **given}
    seen, first = int(parts.pop("seen", 3)), int(parts.pop("first_batches_seen", 0))
    evaluation, saving, first_batch, rest = (parts[name] for name in ("evaluation", "saving", "first_batch", "rest"))
    return EpochPause(
        seen=seen,
        seconds=sum(parts.values()),
        evaluation=evaluation,
        saving=saving,
        first_batch=first_batch,
        rest=rest,
        first_batches_seen=first,
    )


def test_the_start_of_an_epoch_that_one_window_met_is_no_pause_between_epochs() -> None:
    """Windows of short epochs took 11 s for the warm-up of one process; real pauses were 1 s."""
    once = healthy(epoch_pause=None, windows=[window(0, turn_seconds=11.0), window(1), window(2)])
    made = diagnose(once, [BY_ID["slow-epoch-turn"]])
    assert made.findings == []
    assert [each.id for each in made.not_judged] == ["slow-epoch-turn"]
    often = replace(once, windows=[window(index, turn_seconds=cost) for index, cost in enumerate((11.0, 1.5, 1.4))])
    found = finding("slow-epoch-turn", often)
    assert found is not None
    assert found.evidence["pause_seconds"] == 1.5, "and of several the one in the middle"


def test_garbage_collection_between_epochs_is_named_with_the_call_that_asks_for_it() -> None:
    """A library that collects after each epoch spends most of a short epoch on that, in a process of many objects."""
    place = Site(file="/lib/loop.py", line=493)
    asked = replace(pause(rest=10.0, evaluation=1.0), collecting=9.0, collected_at=place)
    found = finding("slow-epoch-turn", healthy(epoch_pause=asked, windows=[]))
    assert found is not None
    assert "9.0 s collecting garbage at loop.py, line 493" in found.sentence
    assert found.site == place
    assert "gc.freeze()" in found.advice
    assert found.evidence["rest_seconds"] == pytest.approx(1.0)
    by_itself = finding("slow-epoch-turn", healthy(epoch_pause=replace(asked, collected_at=None), windows=[]))
    assert by_itself is not None
    assert "(9.0 s collecting garbage)" in by_itself.sentence
    assert "gc.freeze()" in by_itself.advice


def test_garbage_of_an_evaluation_is_no_other_work() -> None:
    evaluating = replace(pause(rest=1.0, evaluation=10.0), collecting=4.0)
    found = finding("slow-epoch-turn", healthy(epoch_pause=evaluating, windows=[]))
    assert found is not None
    assert "Evaluate less often" in found.advice
    assert found.evidence["collecting_seconds"] == 1.0


def test_one_pause_is_not_taken_for_all_of_them() -> None:
    assert diagnose(healthy(epoch_pause=pause(seen=1, rest=10.0), windows=[]), [BY_ID["slow-epoch-turn"]]).not_judged
    found = finding("slow-epoch-turn", healthy(epoch_pause=pause(seen=2, rest=10.0), windows=[]))
    assert found is not None
    assert found.evidence["pause_seconds"] == 10.0


def test_a_first_batch_that_was_never_timed_is_no_part_of_the_pause() -> None:
    found = finding("slow-epoch-turn", healthy(epoch_pause=pause(rest=5.0, first_batch=11.0), windows=[]))
    assert found is not None
    assert found.evidence["pause_seconds"] == 5.0
    assert "first batch" not in found.sentence


def test_the_first_batch_of_an_epoch_counts_for_what_it_takes_longer_than_others() -> None:
    """Without workers every batch is waited for: the first of an epoch as long as the others, and no longer."""
    slow = replace(STEPS, wait_mean_ms=600.0)
    made_alike = healthy(WAITING, steps=slow, epoch_pause=pause(first_batch=0.61, first_batches_seen=4), windows=[])
    assert made_alike.pause_seconds == pytest.approx(0.01)
    started = healthy(WAITING, steps=slow, epoch_pause=pause(first_batch=5.6, first_batches_seen=4), windows=[])
    assert started.pause_seconds == pytest.approx(5.0)


def test_a_start_of_epochs_that_comes_out_below_nothing_is_nothing() -> None:
    early = healthy(epoch_pause=None, windows=[window(index, turn_seconds=-0.2) for index in range(3)])
    assert early.pause_seconds == 0.0
    assert early.in_steps == 1.0


def test_the_start_of_epochs_that_are_timed_whole_counts_once() -> None:
    """Epochs of 100 steps that take a second, 800 ms of which wait for the first batch: they are no part of a step."""
    first = 0.8 + STEPS.wait_mean_ms / 1000
    start = EpochPause(
        seen=3, seconds=first, evaluation=0.0, saving=0.0, first_batch=first, rest=0.0, first_batches_seen=3
    )
    evidence = healthy(0.85, loop=in_workers(), epoch_pause=start)
    assert evidence.baseline is not None
    evidence = replace(evidence, baseline=replace(evidence.baseline, step_ms=10.0))
    steady = replace(evidence, windows=[window(0)])
    whole = replace(evidence, windows=[window(0, whole_epochs=1)])
    assert (steady.step_ms, steady.epoch_seconds, steady.wait) == (10.0, 1.0, 0.85)
    assert whole.step_ms == pytest.approx(2.0)
    assert whole.epoch_seconds == pytest.approx(0.2)
    assert whole.wait == pytest.approx(0.25), "of 200 ms of steps, 50 wait"
    assert whole.in_steps == pytest.approx(0.2)
    found = finding("slow-epoch-turn", whole)
    assert found is not None
    assert found.weight == pytest.approx(0.8)


def test_an_evaluation_is_told_to_leave_gradients_out_only_if_it_has_them() -> None:
    evaluating = pause(evaluation=10.0)
    for passes, graphs, has in ((8, 8, True), (8, 0, False), (8, 7, False), (1, 1, False), (0, 0, False)):
        found = finding(
            "slow-epoch-turn", healthy(epoch_pause=replace(evaluating, passes=passes, with_graph=graphs), windows=[])
        )
        assert found is not None
        assert ("keeps what a backward pass would need" in found.sentence) is has
        assert ("torch.inference_mode()" in found.advice) is has
        assert "Evaluate less often" in found.advice
    saved = finding(
        "slow-epoch-turn",
        healthy(epoch_pause=replace(pause(saving=9.0, evaluation=1.0), passes=8, with_graph=8), windows=[]),
    )
    assert saved is not None
    assert "inference_mode" not in saved.advice


def test_samples_that_a_model_makes_between_epochs_are_told_from_other_work() -> None:
    for in_mode, told in ((5.6, "computing with the model in evaluation mode"), (1.0, "other work of the loop")):
        seen = replace(pause(rest=6.0, saving=1.0), in_mode=in_mode)
        found = finding("slow-epoch-turn", healthy(epoch_pause=seen, windows=[]))
        assert found is not None
        assert f"6.0 s {told}" in found.sentence
        assert ("fewer" in found.advice) is (in_mode > 3.0)


def test_an_evaluation_within_an_epoch_that_was_seen_once_is_not_taken_for_all() -> None:
    assert finding("frequent-evaluation", healthy(interruption=Interruption(seen=1, seconds=9.0, every=5.0))) is None
    assert healthy(interruption=Interruption(seen=1, seconds=9.0, every=5.0)).in_steps == 1.0


def test_an_evaluation_within_an_epoch_is_told_to_leave_gradients_out_if_it_has_them() -> None:
    often = Interruption(seen=9, seconds=1.0, every=10.0, passes=4, with_graph=4)
    for seen, has in ((often, True), (replace(often, with_graph=3), False), (replace(often, passes=0), False)):
        found = finding("frequent-evaluation", healthy(interruption=seen, windows=[]))
        assert found is not None
        assert ("keeps what a backward pass would need" in found.sentence) is has
        assert ("torch.inference_mode()" in found.advice) is has
        assert "eval_steps" in found.advice


def test_what_is_only_known_by_the_mode_of_the_model_need_not_be_an_evaluation() -> None:
    seen = Interruption(seen=9, seconds=1.0, every=10.0, by_mode=True, passes=4, with_graph=4)
    found = finding("frequent-evaluation", healthy(interruption=seen, windows=[]))
    assert found is not None
    assert found.sentence.startswith(
        "About once in 10 steps, the program puts its model into evaluation mode, for 1.0 s."
    )
    assert "If it evaluates there" in found.advice
    assert "torch.inference_mode()" in found.advice


def test_work_between_the_steps_of_an_optimizer_that_calls_a_closure_need_not_be_an_evaluation() -> None:
    evidence = healthy(interruption=Interruption(seen=3, seconds=1.0, every=20.0), windows=[])
    found = finding("frequent-evaluation", replace(evidence, found=replace(evidence.found, rung="closure")))
    assert found is not None
    assert found.sentence.startswith(
        "After 20 calls of its closure, the optimizer has made a step, and other work follows for 1.0 s. These calls"
    )
    assert "If it evaluates or draws there" in found.advice


@pytest.mark.parametrize(("batches", "epochs"), [(100, True), (None, False)])
def test_no_epoch_is_named_where_none_is_known(batches: int | None, epochs: bool) -> None:
    """A loader of the user's own may never end, whatever the program calls an epoch."""
    evidence = healthy(interruption=Interruption(seen=9, seconds=1.0, every=10.0), windows=[])
    found = finding("frequent-evaluation", replace(evidence, found=replace(evidence.found, epoch_batches=batches)))
    assert found is not None
    assert found.sentence.startswith(
        "Within an epoch, the program" if epochs else "About once in 10 steps, the program"
    )
    assert "in 10 steps" in found.sentence


def test_what_is_evaluated_in_each_step_is_a_part_of_the_steps() -> None:
    seen = replace(STEPS, steps=20, mean_ms=100.0, evaluations=19, evaluation_share=0.45)
    found = finding("frequent-evaluation", healthy(steps=seen))
    assert found is not None
    assert found.sentence == (
        "In each step, the program puts its model into evaluation mode, for 47 ms. That is 45 % of the time."
    )
    assert "every tenth step" in found.advice
    rarely = finding("frequent-evaluation", healthy(steps=replace(seen, evaluations=7)))
    assert rarely is not None
    assert rarely.sentence.startswith("About once in 3 steps, the program puts its model into evaluation mode, for 129")
    assert finding("frequent-evaluation", healthy(steps=replace(seen, evaluations=1))) is None
    assert finding("frequent-evaluation", healthy(steps=replace(seen, evaluation_share=0.05))) is None
    keeps = finding("frequent-evaluation", healthy(steps=replace(seen, passes=4, with_graph=4)))
    assert keeps is not None
    assert keeps.sentence.endswith("The evaluation keeps what a backward pass would need, and none comes.")
    assert keeps.advice.startswith("Evaluate under `with torch.inference_mode():`.")
    assert "every tenth step" in keeps.advice
    mixed = finding("frequent-evaluation", healthy(steps=replace(seen, passes=4, with_graph=3)))
    assert mixed is not None
    assert "backward pass" not in mixed.sentence


def test_evaluations_within_epochs_and_between_them_are_parts_of_one_time() -> None:
    """Epochs of 10 s, with 10 evaluations of 1 s and a pause of 20 s."""
    both = healthy(
        epoch_pause=pause(evaluation=20.0), interruption=Interruption(seen=9, seconds=1.0, every=10.0), windows=[]
    )
    within, between = finding("frequent-evaluation", both), finding("slow-epoch-turn", both)
    assert within is not None
    assert between is not None
    assert (within.weight, between.weight, both.in_steps) == pytest.approx((0.25, 0.5, 0.25))
    half = finding("work-between-steps", replace(both, phases=PhaseTable(baseline=shares(between=0.4))))
    assert half is not None
    assert half.weight == pytest.approx(0.1, abs=0.001)


def test_pauses_between_epochs_make_what_steps_lose_weigh_less() -> None:
    pause = EpochPause(seen=3, seconds=10.0, evaluation=10.0, saving=0.0, first_batch=0.0, rest=0.0)
    half = finding("work-between-steps", healthy(phases=shares(between=0.4), epoch_pause=pause))
    assert half is not None
    assert half.weight == pytest.approx(0.2, abs=0.001)


def test_a_start_that_waits_for_its_first_batch_says_so() -> None:
    waits = replace(STEPS, first_step_seconds=60.0, first_batch_seconds=45.0)
    late = finding("slow-start", healthy(steps=waits, setup_seconds=[75.0]))
    assert late is not None
    assert "It takes 1 min from the start of the process to its first step. For 45 s of these it waits" in late.sentence
    assert "smaller buffer" in late.advice
    assert late.evidence["first_batch_seconds"] == 45.0
    again = finding("slow-start", healthy(steps=waits, setup_seconds=[75.0, 20.0]))
    assert again is not None
    assert "It takes 20 s" in again.sentence
    assert "waits" not in again.sentence, "who knows which part of it is spared"
    soon = finding("slow-start", healthy(steps=replace(waits, first_batch_seconds=5.0), setup_seconds=[75.0]))
    assert soon is not None
    assert "waits" not in soon.sentence
    assert "importtime" in soon.advice


def test_the_first_step_tells_the_start_before_sessions_do_and_caches_are_made_once() -> None:
    late = healthy(steps=None, setup_seconds=[30.0, 20.0, 25.0])
    assert late.first_step_seconds == 20.0, "the first start had something to do that later ones had not"
    assert replace(late, found=replace(FOUND, setup_seconds=12.0)).first_step_seconds == pytest.approx(12.001)
    assert replace(late, steps=STEPS).first_step_seconds == 4.0
    first_of_all = replace(STEPS, first_step_seconds=29.0)
    assert replace(late, steps=first_of_all).first_step_seconds == 20.0
