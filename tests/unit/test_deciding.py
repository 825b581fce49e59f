"""Where something small is claimed, and more on top of it may be worth much more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.unit.test_judge import BF16, FOUND, WORKERS_2, Experiment, amp, timed, workers

from bottleneck_doctor.documents.labels import key_of
from bottleneck_doctor.documents.report import Setting, Window
from bottleneck_doctor.examine.deciding import lacking, larger
from bottleneck_doctor.examine.evidence import JudgeEvidence
from bottleneck_doctor.examine.judge import judge

BOTH: Setting = {**WORKERS_2, **BF16}


def evidence(windows: Sequence[Window]) -> JudgeEvidence:
    return JudgeEvidence(
        found=FOUND,
        windows=windows,
        candidates=[workers(WORKERS_2), amp()],
        rungs=[("workers", WORKERS_2), ("amp-bf16", BOTH)],
        chosen_after=1,
        epoch_batches=None,
    )


def windows(worth: float, spread: float) -> list[Window]:
    """Workers bring 1.1×, and with bfloat16 on top `worth`, which differs by `spread` from process to process."""
    made = Experiment(timed([(WORKERS_2, 1.1), (BOTH, worth)]), sessions=3).windows
    return [
        replace(each, seconds=each.seconds * (1 + spread * (each.session - 2))) if each.label == key_of(BOTH) else each
        for each in made
    ]


def test_what_contains_a_claim_and_looks_much_better_is_worth_more_processes() -> None:
    asked = evidence(windows(1.4, 0.2))
    assert lacking(asked, judge(asked)) is None, "something is claimed"
    found = larger(judge(asked))
    assert found is not None
    claimed, together = found
    assert (claimed.setting, together.setting) == (WORKERS_2, BOTH)
    assert together.speedup.estimate == pytest.approx(1.4, rel=0.05)


@pytest.mark.parametrize(
    ("worth", "spread", "why"),
    [
        (1.15, 0.2, "it adds less than an edit is worth"),
        (1.4, 0.002, "it is claimed"),
    ],
)
def test_no_more_processes_are_asked_for_elsewhere(worth: float, spread: float, why: str) -> None:
    assert larger(judge(evidence(windows(worth, spread)))) is None, why


def test_nothing_larger_is_seen_where_nothing_is_claimed() -> None:
    made = Experiment(timed([(WORKERS_2, 1.0), (BOTH, 1.0)]), sessions=3).windows
    assert larger(judge(evidence(made))) is None
