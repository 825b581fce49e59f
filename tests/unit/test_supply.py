"""What the first look says of batches, against queues whose truth is known: when steps wait, and when they don't."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.unit.gate_samples import window
from tests.unit.made_up_queue import Fed, Queue, fed
from tests.unit.test_selection import FOUND

from bottleneck_doctor.documents.labels import BASELINE
from bottleneck_doctor.documents.report import Loading as Made
from bottleneck_doctor.documents.report import Setting, Window
from bottleneck_doctor.knobs import Loading
from bottleneck_doctor.measure import phases, schedule, supply
from bottleneck_doctor.measure.costs import Costs
from bottleneck_doctor.measure.pairing import step_cost
from bottleneck_doctor.measure.schedule import LoopShape, probe
from bottleneck_doctor.measure.supply import AMPLE, HARDLY, Supply

PHASES = probe("phases:baseline", {}, mode="phases")


def truth(compute: float, load: float, workers: int) -> float:
    """Seconds of a step, in the long run."""
    return max(compute, load / workers) if workers else compute + load


def as_window(made: Fed, **changed: Any) -> Window:
    return replace(
        window(1, made.seconds / made.steps),
        steps=made.steps,
        samples=float(made.steps),
        seconds=made.seconds,
        wait_seconds=made.wait_seconds,
        queue_change=made.change,
        turn_seconds=None,
        **changed,
    )


def looked_at(compute: float, load: float, workers: int, *, threads: int = 1) -> tuple[Costs, Supply]:
    """What a first window of phases shows of such a loop, as it is sized by what its first steps took."""
    found = replace(FOUND, num_workers=workers, prefetch_factor=2 if workers else None, threads=threads, usable_cpus=16)
    costs = Costs(schedule.shape_of(found), truth(compute, load, workers), 1.0, brief=True)
    size = costs.explaining_size(PHASES, 3.0, None, 18.0)
    told = as_window(fed(Queue(load, workers, 2), compute, size.lead_in, size.steps))
    made = phases.loading(
        [
            {
                "loading": {
                    "num_workers": workers,
                    "fetch_seconds": [load],
                    "collate_seconds": 0.0,
                    "samples": 4.0,
                    "bytes": 0.0,
                    "hand_over_seconds": [],
                    "delivered": 1,
                    "out_of_order": 0,
                    "span": 1.0,
                    "workers": [],
                    "files": None,
                    "fetch_site": None,
                    "collate_site": None,
                    "transforms": [],
                }
            }
        ],
        {},
    )
    costs.supply = supply.seen(told, made, found, None)
    assert costs.supply is not None
    costs.regular = True
    return costs, costs.supply


LOOPS = {
    "compute": st.floats(0.1, 8.0),
    "load": st.floats(0.0, 20.0),
    "workers": st.integers(0, 8),
}


@given(**LOOPS)
def test_it_never_says_of_a_loop_that_waits_that_it_does_not(compute: float, load: float, workers: int) -> None:
    """However few steps the first look held: those that a filled queue kept from waiting say nothing."""
    _, seen = looked_at(compute, load, workers)
    assume(seen.no_reason)
    assert 1 - compute / truth(compute, load, workers) < 2 * HARDLY


def test_starts_of_epochs_that_bring_less_than_is_worth_trying_are_no_reason_for_faster_loading() -> None:
    _, seen = looked_at(2.0, 0.1, 2)
    assert seen.no_reason
    for start, none in ((0.012, True), (0.018, True), (0.025, False)):
        assert replace(seen, epoch_start=start).no_reason is none
    # Within an epoch, one short window says less.
    assert not replace(seen, wait=0.012).no_reason


@given(**LOOPS, tried=st.integers(0, 8), prefetch=st.integers(1, 8))
def test_a_short_lead_in_times_what_a_long_one_would(
    compute: float, load: float, workers: int, tried: int, prefetch: int
) -> None:
    """The trap of the full queue, and that of waiting in bursts: shorter windows fall into neither."""
    costs, _ = looked_at(compute, load, workers)
    setting: Setting = {"num_workers": tried, "prefetch_factor": prefetch} if tried else {"num_workers": 0}
    step = truth(compute, load, tried)
    size = schedule.window_size(
        costs.shape,
        setting,
        "timed",
        step,
        1.0,
        epochs=False,
        least=2,
        settled=None if costs.supply is None else costs.supply.settled_after(costs.shape.loading(setting)),
    )
    assume(size.lead_in < tried * (prefetch + 1))
    timed = as_window(fed(Queue(load, tried, prefetch), compute, size.lead_in, size.steps))
    assert step_cost(timed, 1.0) == pytest.approx(step, rel=0.02)


def test_where_waiting_matters_a_window_goes_past_the_queue() -> None:
    costs, seen = looked_at(2.0, 3.0, 2)
    assert seen.use(2) > AMPLE
    assert not seen.keeps_up
    size = costs.size(probe("baseline", {}), 1.0)
    assert (size.lead_in, size.steps) == (6, 2)
    for workers in (1, 4):
        assert costs.size(probe("", {"num_workers": workers}), 1.0).lead_in == 3 * workers


@pytest.mark.parametrize(
    ("step", "setting", "lead_in"),
    [
        (0.05, {}, 6),
        (0.5, {}, 2),
        (2.5, {}, 1),
        (2.5, {"autocast": "bfloat16"}, 2),
        (2.5, {"num_workers": 8}, 1),
        (2.5, {"num_workers": 0}, 1),
        (2.5, {"replay": True}, 1),
    ],
)
def test_where_none_waits_it_leads_in_as_long_as_something_settles(
    step: float, setting: dict[str, Any], lead_in: int
) -> None:
    costs, _ = looked_at(step, 0.01 * step, 2)
    assert costs.size(probe("", setting), 1.0).lead_in == lead_in


def test_what_autocast_settles_to_is_waited_for_once_in_a_process() -> None:
    costs, _ = looked_at(2.5, 0.0, 2)
    each = probe("", {"autocast": "bfloat16"})
    assert [costs.size(each, 1.0, warm=warm).lead_in for warm in (False, True)] == [2, 1]


def test_a_loop_that_a_check_compares_leads_in_as_ever() -> None:
    """A check has another promise to keep: its windows are alike on both sides, whatever one side shows."""
    costs, seen = looked_at(2.5, 0.01, 2)
    gate = Costs(costs.shape, 2.5, 1.0)
    gate.supply = seen
    assert gate.size(probe("baseline", {}), 1.0).lead_in == 6


def test_loading_alone_is_timed_past_the_queue() -> None:
    costs, _ = looked_at(2.5, 0.01, 2)
    assert costs.size(probe("", {}, mode="loader_only"), 1.0).lead_in == 6


@pytest.mark.parametrize(("threads", "crowding"), [(14, 0.0), (15, 0.1)])
def test_workers_stand_in_the_way_where_cpus_are_short(threads: int, crowding: float) -> None:
    _, seen = looked_at(2.0, 0.2, 2, threads=threads)
    assert seen.crowding == pytest.approx(crowding)
    assert replace(seen, batch=None).crowding == (1.0 if crowding else 0.0)


def test_starting_an_epoch_is_a_reason_to_load_otherwise() -> None:
    told = replace(as_window(fed(Queue(0.01, 2, 2), 2.0, 1, 2)), turn_seconds=3.0)
    found = replace(FOUND, num_workers=2, prefetch_factor=2)
    short, long = (supply.seen(told, None, found, batches) for batches in (20, 2000))
    assert short is not None
    assert long is not None
    assert short.epoch_start == pytest.approx(3 / 43, rel=0.02)
    assert long.epoch_start < HARDLY


@pytest.mark.parametrize(("computing", "computes"), [(None, True), (0.9, True), (0.1, False)])
def test_whether_making_a_batch_is_computing(computing: float | None, computes: bool) -> None:
    told = as_window(fed(Queue(0.5, 2, 2), 2.0, 1, 2))
    made = Made(
        setting={},
        num_workers=2,
        batches=2,
        samples_per_batch=4.0,
        bytes_per_batch=0.0,
        fetch_ms=500.0,
        fetch_p95_ms=600.0,
        collate_ms=20.0,
        hand_over_ms=5.0,
        out_of_order_share=0.0,
        computing=computing,
    )
    seen = supply.seen(told, made, replace(FOUND, num_workers=2), None)
    assert seen is not None
    assert seen.computes is computes
    assert seen.batch == pytest.approx(0.625)


def test_a_loop_without_a_loader_has_no_supply() -> None:
    told = as_window(fed(Queue(0.0, 0, 2), 2.0, 1, 2))
    assert supply.seen(told, None, replace(FOUND, has_loader=False), None) is None
    assert supply.seen(replace(told, steps=0), None, FOUND, None) is None


@pytest.mark.parametrize(("load", "bound"), [(3.0, True), (0.5, False)])
@pytest.mark.parametrize("workers", [0, 1, 4])
def test_nothing_but_waiting(workers: int, load: float, bound: bool) -> None:
    _, seen = looked_at(0.02, load * max(1, workers), workers)
    assert seen.bound is bound


@given(use=st.floats(0.0, AMPLE), workers=st.integers(1, 8), prefetch=st.integers(1, 8))
def test_by_then_workers_have_filled_the_queue(use: float, workers: int, prefetch: int) -> None:
    """Until they have they are busy all of the time, and may stand in the way of computing."""
    load = use * workers * 2.0
    _, seen = looked_at(2.0, load, workers)
    lead_in = seen.settled_after(Loading(workers, prefetch, persistent=False))
    assume(lead_in is not None)
    assert lead_in is not None
    queue = Queue(load, workers, prefetch)
    for _ in range(max(1, lead_in)):
        queue.take()
        queue.now += 2.0
    # Each may be at the batch that was asked for last.
    assert queue.ready() >= (prefetch - 1) * workers
    assert lead_in <= workers * prefetch


@pytest.mark.parametrize(
    ("step", "epoch", "wait", "whole"),
    [(8.0, 8, 0.0005, False), (0.5, 8, 0.0005, True), (8.0, 8, 0.2, True), (8.0, 3, 0.0005, True)],
)
def test_long_steps_are_timed_within_an_epoch_all_of_whose_batches_lie_ready(
    step: float, epoch: int, wait: float, whole: bool
) -> None:
    """Eight batches, made at once by four workers: no worker makes one while steps are timed, so nobody sees how."""
    shape = schedule.shape_of(replace(FOUND, num_workers=4, prefetch_factor=2, epoch_batches=epoch))
    costs = Costs(shape, step, 4.0, brief=True)
    seen = supply.Supply(wait=wait, epoch_start=0.0, step=step, batch=None, workers=4, drained=True)
    assert not seen.keeps_up
    costs.heed(seen, regular=True)
    assert costs.epochs is whole
    if not whole:
        size = costs.size(schedule.probe("baseline", {}), 4.0)
        assert size.lead_in + size.steps <= epoch


@pytest.mark.parametrize(
    ("workers", "epoch", "wait", "start", "whole"),
    [
        (0, 140, 0.02, 0.0, False),
        (0, 140, 0.2, 0.0, True),  # Workers may help, and each epoch starts them.
        (0, 140, 0.02, 0.05, True),
        (2, 140, 0.0, 0.0, True),
        (0, 60, 0.02, 0.0, True),  # An epoch is no longer than a window.
    ],
)
def test_a_computing_loop_without_workers_is_timed_within_its_epochs(
    workers: int, epoch: int, wait: float, start: float, whole: bool
) -> None:
    """140 steps of 57 ms: two such windows take as long as one of a whole epoch."""
    shape = schedule.shape_of(replace(FOUND, num_workers=workers, epoch_batches=epoch))
    costs = Costs(shape, 0.057, 4.0, brief=True)
    assert costs.epochs
    costs.heed(supply.Supply(wait=wait, epoch_start=start, step=0.057, batch=0.001, workers=workers), regular=True)
    assert costs.epochs is whole


def test_what_a_loader_takes_to_start_is_a_part_of_windows_that_start_it() -> None:
    """Steps of 10 s, and a dataset that fills a buffer for a minute before its first batch."""
    shape = LoopShape(period=1, epoch_batches=None, num_workers=2, prefetch_factor=2, served=True)
    costs = Costs(shape, 10.0, 1.0, brief=True)
    first, other = probe(BASELINE, {}), probe("num_workers=1", {"num_workers": 1})
    fused = probe("fused_optimizer=True", {"fused_optimizer": True})
    plain = {each.key: costs.measuring(each) for each in (first, other, fused)}
    seen = replace(window(1, 10.0), mode="phases", steps=2, seconds=20.0, lead_in_steps=1, lead_in_seconds=70.0)
    costs.learnt_first(seen)
    started = {each.key: costs.measuring(each) for each in (first, other, fused)}
    assert started == {key: seconds + 60.0 for key, seconds in plain.items()}
    costs.seconds[BASELINE] = costs.measuring(first)
    assert costs.measuring(fused) == plain[fused.key], "the loader goes on"
    assert costs.measuring(other) == started[other.key]
    assert costs.baseline() == started[BASELINE]
