"""A share of the time is measured, or it is not shown."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.diagnosable import (
    BLUR,
    FILE,
    WAITING,
    finding,
    healthy,
    in_workers,
    loading,
    on_gpu,
    shares,
)
from tests.unit.test_diagnose_rules import CASES

from bottleneck_doctor.diagnose import diagnose
from bottleneck_doctor.documents.report import (
    PhaseTable,
    TransformCost,
)


def test_a_device_that_hides_the_wait_is_believed() -> None:
    evidence = on_gpu(healthy(0.6))
    assert evidence.wait == 0.6
    assert replace(evidence, phases=PhaseTable(baseline=shares(data_wait=0.02))).wait == 0.02


def test_a_cause_takes_over_the_rank_of_the_wait_and_keeps_its_own_share() -> None:
    """The demo: a transform that is 53 % of making a batch, in a training that waits 81 % of the time."""
    slow = [TransformCost(name="RandomRotation", ms_per_sample=4.9, share_of_fetch=0.53, file=FILE, line=31)]
    made = diagnose(healthy(0.81, loop=loading(transforms=slow, collate_ms=0.0)))
    first = made.findings[0]
    assert first.id == "slow-transform"
    assert first.weight == pytest.approx(0.81), "it ranks as the wait that it explains"
    assert first.share == pytest.approx(0.53 * 0.81), "and accounts for its own part of it"


@pytest.mark.parametrize(
    "identifier",
    ["slow-start", "memory-growth", "too-few-workers", "too-many-workers", "machine-noise", "oversubscribed-cores"],
)
def test_what_is_worked_out_and_not_measured_is_no_share_of_the_time(identifier: str) -> None:
    found = finding(identifier, CASES[identifier].fires)
    assert found is not None
    assert found.share is None


def test_parts_of_what_workers_make_at_once_are_no_shares_of_the_time() -> None:
    by_workers = finding("slow-transform", healthy(WAITING, loop=in_workers(transforms=BLUR)))
    alone = finding("slow-transform", healthy(WAITING, loop=loading(transforms=BLUR)))
    assert by_workers is not None
    assert by_workers.share is None
    assert alone is not None
    assert alone.share == pytest.approx(0.6 * 0.8 * 10 / 10.5)


@pytest.mark.parametrize("share", [0.4, 0.9])
def test_what_a_share_is_worth_at_most(share: float) -> None:
    found = finding("work-between-steps", healthy(phases=shares(between=share)))
    assert found is not None
    assert found.share is not None
    assert found.at_most == pytest.approx(1 / (1 - found.share))


def test_nobody_says_what_is_left_beside_nearly_all_of_the_time() -> None:
    found = finding("work-between-steps", healthy(phases=shares(between=0.985)))
    assert found is not None
    assert found.at_most is None


def test_nothing_is_worth_anything_where_its_time_cannot_be_spared_or_is_not_known() -> None:
    computing = finding("compute-bound", CASES["compute-bound"].fires)
    on_device = finding("work-between-steps", on_gpu(healthy(phases=shares(between=0.4))))
    of_workers = finding("slow-transform", healthy(WAITING, loop=in_workers(transforms=BLUR)))
    for found in (computing, on_device, of_workers):
        assert found is not None
        assert found.at_most is None


def test_a_pause_between_epochs_is_worth_as_much_on_a_device() -> None:
    found = finding(
        "slow-epoch-turn", replace(on_gpu(healthy()), epoch_pause=CASES["slow-epoch-turn"].fires.epoch_pause)
    )
    assert found is not None
    assert found.share is not None
    assert found.at_most == pytest.approx(1 / (1 - found.share))
