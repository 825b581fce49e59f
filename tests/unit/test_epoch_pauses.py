"""Whose time it is between two epochs, where several loaders are evaluated."""

from __future__ import annotations

from bottleneck_doctor.runtime.loop.pauses import EpochPauses


def evaluated(pauses: EpochPauses, *, counts: bool) -> None:
    """The training data for 1 s and 3 s of work on it, something else for 3 s, and the training data for 1 s."""
    pauses.began(0.0, 0.0, counts)
    for at, training, begins in (
        (1.0, True, True),
        (2.0, True, False),
        (5.0, False, True),
        (7.0, False, False),
        (8.0, True, True),
        (9.0, True, False),
    ):
        pauses.foreign(at, training=training, begins=begins)
    pauses.ended(10.0, 11.0, False, 0.0)


def test_what_lies_before_a_loaders_start_is_work_on_the_one_before() -> None:
    pauses = EpochPauses()
    evaluated(pauses, counts=True)
    assert (pauses.evaluation, pauses.of_training) == (8.0, 5.0)
    evaluated(pauses, counts=True)
    assert (pauses.evaluation, pauses.of_training) == (16.0, 10.0)


def test_an_evaluation_waits_for_its_loader_from_the_start_of_it() -> None:
    pauses = EpochPauses()
    slow, quick = (2, "train.py", 7), (0, "", 0)

    def batch(asked: float, given: float, loader: tuple[int, str, int]) -> None:
        pauses.asked(asked)
        pauses.foreign(given, training=False, loader=loader)

    for counts in (True, False):
        pauses.began(0.0, 0.0, counts)
        pauses.asked(1.0)
        pauses.foreign(1.0, training=False, begins=True)
        batch(1.5, 3.0, slow)
        batch(4.0, 4.5, slow)
        batch(5.0, 5.25, quick)
        pauses.ended(8.0, 9.0, False, 0.0)
    assert pauses.waiting == {slow: 2.5, quick: 0.25}
    told = pauses.totals()
    assert told["waiting"][0] == {"seconds": 2.5, "workers": 2, "file": "train.py", "line": 7}
    assert told["evaluation"] == 4.25


def test_a_loader_that_was_started_and_gave_nothing_is_not_waited_for() -> None:
    """As keras does at the end of each evaluation. The next one is waited for from its own start."""
    pauses, held_out = EpochPauses(), (0, "train.py", 7)
    for began in (0.0, 100.0):
        pauses.began(began, began, True)
        pauses.asked(began + 1.0)
        pauses.foreign(began + 1.25, training=False, loader=held_out)
        pauses.asked(began + 2.0)
        pauses.foreign(began + 2.0, training=False, begins=True)
        pauses.ended(began + 3.0, began + 3.0, False, 0.0)
    assert pauses.waiting == {held_out: 0.5}


def test_pauses_under_a_setting_and_evaluations_in_the_midst_of_an_epoch_do_not_count() -> None:
    pauses = EpochPauses()
    evaluated(pauses, counts=False)
    assert (pauses.seen, pauses.of_training) == (0, 0.0)
    pauses.foreign(12.0, training=True, begins=True)
    pauses.foreign(14.0, training=True)
    pauses.began(20.0, 20.0, True)
    pauses.ended(21.0, 22.0, False, 0.0)
    assert (pauses.seen, pauses.of_training) == (1, 0.0)


def test_a_model_in_evaluation_mode_computes_beside_what_another_loader_gives() -> None:
    """3 s of evaluation by a loader, and 4 s of samples, within 8 s in the mode; the rest is 3 s of other work."""
    pauses = EpochPauses()
    pauses.evaluation_mode(-9.0, on=True)  # In the midst of the epoch.
    pauses.evaluation_mode(-5.0, on=False)
    pauses.began(0.0, 0.0, True)
    pauses.evaluation_mode(1.0, on=True)
    pauses.foreign(1.5, training=False, begins=True)
    pauses.foreign(4.5, training=False)
    pauses.evaluation_mode(9.0, on=False)
    pauses.ended(10.0, 11.0, False, 0.0)
    assert (pauses.evaluation, pauses.rest, pauses.in_mode) == (3.0, 7.0, 5.0)
    pauses.began(20.0, 20.0, True)
    pauses.evaluation_mode(22.0, on=True)  # It goes on in this mode until the next epoch.
    pauses.ended(25.0, 26.0, False, 0.0)
    assert (pauses.rest, pauses.in_mode) == (12.0, 8.0)
