"""Where a window with smaller tensors asked for no memory, the variables that keep memory belong to its setting."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.test_judge import BF16, FOUND, WORKERS_2, Experiment, amp, judged, outcome, timed, workers

from bottleneck_doctor.documents.labels import BASELINE
from bottleneck_doctor.documents.report import Setting, Surroundings, Window
from bottleneck_doctor.examine import looks
from bottleneck_doctor.knobs import allocator, switched
from bottleneck_doctor.wording import promise_words

BOTH: Setting = {**WORKERS_2, **BF16}
KEPT: Setting = {**BF16, "allocator": "glibc-keeps"}
AS_WRITTEN = Surroundings(faults=140_000.0, kernel_cpu=0.3)
NONE = Surroundings(faults=0.0, kernel_cpu=0.0)


def with_pages(windows: list[Window], **around: Surroundings | None) -> list[Window]:
    """`written` of the windows as written, `under` of those with autocast, `workers` of those with workers alone."""
    known = {"written": AS_WRITTEN, "under": NONE, "workers": AS_WRITTEN, **around}
    which = {True: "under", False: "workers"}
    return [
        replace(each, around=known["written" if each.label == BASELINE else which["autocast" in each.setting]])
        for each in windows
    ]


def experiment() -> list[Window]:
    return Experiment(timed([(WORKERS_2, 1.2), (BF16, 2.0)])).windows


def test_what_windows_had_at_hand_becomes_a_part_of_the_setting() -> None:
    judgement = judged(with_pages(experiment()), [workers(WORKERS_2), amp()])
    bf16 = outcome(judgement, "amp-bf16")
    assert (bf16.status, bf16.setting) == ("faster", KEPT)
    assert bf16.speedup is not None
    assert bf16.speedup.estimate == pytest.approx(2.0, rel=0.02)
    said = judgement.verdict.sentence
    assert "`MALLOC_…=…`" in said
    assert promise_words.kept_memory(KEPT) in said
    # Windows switched the other part alone, and other fixes are as they were.
    assert switched(bf16.setting) == BF16
    assert outcome(judgement, "workers").setting == WORKERS_2


@pytest.mark.parametrize(
    "around",
    [
        # A step takes half the time, so these are as many pages a step.
        {"under": Surroundings(faults=280_000.0, kernel_cpu=0.3)},
        {"under": Surroundings(faults=200_000.0, kernel_cpu=0.2)},
        # The kernel hardly works, or works as much for something else.
        {"written": Surroundings(faults=140_000.0, kernel_cpu=0.02)},
        {"under": Surroundings(faults=0.0, kernel_cpu=0.6)},
        {"under": None},
        {"written": None},
        {"under": Surroundings()},
    ],
)
def test_nothing_is_added_that_windows_do_not_show(around: dict[str, Surroundings | None]) -> None:
    judgement = judged(with_pages(experiment(), **around), [workers(WORKERS_2), amp()])
    assert outcome(judgement, "amp-bf16").setting == BF16
    assert "MALLOC_" not in judgement.verdict.sentence


def test_a_device_keeps_its_memory_by_itself() -> None:
    judgement = judged(with_pages(experiment()), [workers(WORKERS_2), amp()], replace(FOUND, device="cuda:0"))
    assert outcome(judgement, "amp-bf16").setting == BF16


def test_only_smaller_tensors_need_it() -> None:
    """More workers take pages away from the process that trains, and into their own."""
    windows = Experiment(timed([(WORKERS_2, 2.0)])).windows
    judgement = judged(with_pages(windows, workers=NONE), [workers(WORKERS_2)])
    assert outcome(judgement, "workers").setting == WORKERS_2


def test_it_stays_open_what_is_open() -> None:
    windows = [each for each in experiment() if each.session == 1]
    bf16 = outcome(judged(with_pages(windows), [workers(WORKERS_2), amp()]), "amp-bf16")
    assert (bf16.status, bf16.setting) == ("cannot_tell", BF16)


def test_several_fixes_together_have_it_once() -> None:
    windows = Experiment(timed([(WORKERS_2, 2.0), (BF16, 1.3), (BOTH, 2.6)])).windows
    rungs = [("workers", WORKERS_2), ("amp-bf16", BOTH)]
    judgement = judged(with_pages(windows), [workers(WORKERS_2), amp()], rungs=rungs)
    assert judgement.combination is not None
    assert judgement.combination.setting == {**BOTH, **allocator.kept({})}
    assert [rung.setting for rung in judgement.combination.ladder] == [WORKERS_2, BOTH]
    assert judgement.verdict.together
    assert promise_words.kept_memory(judgement.combination.setting) in judgement.verdict.sentence


def test_the_sentence_speaks_of_nothing_else() -> None:
    assert promise_words.kept_memory(BF16) == ""
    assert promise_words.kept_memory(allocator.kept({})) == ""
    assert "The variables belong to it" in promise_words.kept_memory(KEPT)


def test_a_part_that_is_open_does_not_trouble_what_needs_the_variables() -> None:
    """The variables are no part of what windows measured, so nothing is asked about a setting with them."""
    windows = [
        replace(each, seconds=each.seconds * (1 + 0.3 * (each.session - 2.5))) if each.setting == BF16 else each
        for each in Experiment(timed([(WORKERS_2, 2.0), (BF16, 1.4), (BOTH, 2.5)])).windows
    ]
    rungs = [("workers", WORKERS_2), ("amp-bf16", BOTH)]
    judgement = judged(with_pages(windows), [workers(WORKERS_2), amp()], rungs=rungs)
    assert outcome(judgement, "amp-bf16").status == "cannot_tell"
    assert judgement.combination is not None
    assert judgement.combination.setting == {**BOTH, **allocator.kept({})}
    assert looks.offered(judgement) == (BOTH, judgement.combination.speedup)
