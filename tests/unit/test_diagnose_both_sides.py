"""Every rule asked from both sides, by properties: where its cause is, it speaks; where all else is the same and the
cause's measured quantity is too small to matter, it doesn't.

A pair's two ranges stand clear of the rule's threshold: what lies in between is for `test_diagnose_rules`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.diagnosable import (
    AVERAGE,
    AVERAGING,
    BLUR,
    BY_ID,
    CAMERA,
    FLIP,
    FOUND,
    FROZEN,
    ITEM,
    LARGE,
    MB,
    REMOTE,
    SMALL,
    STEPS,
    TRAINING,
    WRITTEN_OUT,
    attention_operators,
    compiled_again,
    curve,
    faster,
    finding,
    flushed,
    healthy,
    in_workers,
    kept,
    listing,
    listings,
    loading,
    looking,
    node,
    on_gpu,
    operators,
    profiled,
    sampled,
    shares,
    use,
    waiting_ranks,
    window,
)

from bottleneck_doctor.diagnose import Evidence
from bottleneck_doctor.documents.report import (
    EpochPause,
    EvaluationLoader,
    Exchanges,
    FileUse,
    GarbageCollection,
    Interruption,
    LongPause,
    Noise,
    Operator,
    PaddingUse,
    StepTimes,
    WorkerActivity,
)


@dataclass(frozen=True)
class Pair:
    """How much of a cause there is, and the evidence that follows.

    `made`: that evidence, of the amount and of the share of a step that training waits for data; the latter only for
    rules about loading. `quantity`: what the amount is. `there`, `away`: from and to which amount the cause has to be
    found, and must not be.
    """

    quantity: str
    made: Callable[[float, float], Evidence]
    there: tuple[float, float]
    away: tuple[float, float]


def part(share: float, rest: float = 10.0) -> float:
    """What takes this share of the whole, where the rest takes `rest`."""
    return rest * share / (1.0 - share)


def reading(files: FileUse) -> Callable[[float, float], Evidence]:
    """Files are opened, which is so much of fetching; the rest of it is none of their business."""

    def made(share: float, wait: float) -> Evidence:
        lines = listing(
            "Pets.__getitem__",
            20,
            ("def __getitem__(self, index):", 0.0),
            ('with open(self.files[index], "rb") as file:', share / 2),
            ("value = file.read()", share / 2),
            ("return ask(value)", 1.0 - share),
        )
        where = 22 if share > 0.5 else 23
        stacks = sampled(fetch=[node("work", "/usr/lib/python3.11/x.py", where, count=9)])
        return profiled(healthy(wait, loop=loading(files=files)), lines=listings(lines), sampling=stacks)

    return made


def decoding(share: float, wait: float) -> Evidence:
    lines = listing(
        "Pets.__getitem__",
        20,
        ("def __getitem__(self, index):", 0.0),
        ('picture = Image.open(self.files[index]).convert("RGB")', share),
        ("return augment(picture)", 1.0 - share),
    )
    stacks = sampled(fetch=[node("load", "/x/site-packages/PIL/ImageFile.py", 300, count=9)])
    return profiled(healthy(wait), lines=listings(lines, TRAINING), sampling=stacks)


def from_disk(share: float, wait: float) -> Evidence:
    """So much of the 160 MiB that are opened each second comes from the disk."""
    evidence = reading(LARGE)(0.9, wait)
    return replace(evidence, utilization=use(main={"read_bytes": share * 160.0 * MB}))


def uneven(ratio: float, wait: float) -> Evidence:
    """One of two workers takes so many times as long as the other."""
    made = [
        WorkerActivity(worker=each, batches=50, fetch_seconds=seconds, collate_seconds=0.0, idle_share=0.2)
        for each, seconds in enumerate((0.01, 0.01 * ratio))
    ]
    return healthy(wait, loop=in_workers(workers=made))


def at_work(cores: float, wait: float) -> Evidence:
    """Two workers that are at work nine tenths of the time compute on so many cores together."""
    evidence = healthy(wait, loop=in_workers(), utilization=use(workers={"cpu_user": cores, "cpu_system": 0.0}))
    return replace(evidence, workers=curve(2, w8=1.0))


def crowded(count: float, wait: float) -> Evidence:
    number = round(count)
    machine = use(workers={"cpu_user": min(0.9 * number, 3.5)}, count=number, cores_busy=3.95)
    return healthy(wait, loop=in_workers(number), utilization=machine)


def jitter(cost: float, _: float) -> Evidence:
    """Longer steps cost this share of the time."""
    usual = 100.0 * (1.0 - cost)
    steps: StepTimes = replace(STEPS, p50_ms=usual, p95_ms=2.5 * usual, jitter=2.5, outliers=12)
    return replace(healthy(), steps=steps)


def small_operations(share: float, _: float) -> Evidence:
    """What operations of 10 µs and more leave of the traced time."""
    large = Operator(name="aten::conv2d", calls=100, cpu_ms=1000 * (1.0 - share), device_ms=0.0, share=1.0 - share)
    return profiled(healthy(), device=operators(operators=[large]))


def attending(share: float, _: float) -> Evidence:
    """Attention that is written out, with this share of a step in its softmax."""
    return profiled(
        healthy(found=replace(FOUND, facts=WRITTEN_OUT)), device=operators(operators=attention_operators(share))
    )


def in_memory(milliseconds: float, wait: float) -> Evidence:
    loop = in_workers(fetch_ms=milliseconds, collate_ms=0.2, hand_over_ms=1.5, bytes_per_batch=64.0 * 1024)
    return healthy(wait, loop=loop, workers=curve(2, w0=2.0, w4=0.9))


def evaluated(seconds: float, _: float) -> Evidence:
    return healthy(
        epoch_pause=EpochPause(seen=3, seconds=seconds, evaluation=seconds, saving=0.0, first_batch=0.0, rest=0.0)
    )


def paused_for_long(seconds: float, _: float) -> Evidence:
    return healthy(long_pause=LongPause(seen=3, seconds=seconds, steps=50.0))


def evaluated_again(seconds: float, _: float) -> Evidence:
    pause = EpochPause(
        seen=3, seconds=10.0, evaluation=10.0, saving=0.0, first_batch=0.0, rest=0.0, of_training=seconds
    )
    return healthy(epoch_pause=pause)


def evaluation_waiting(seconds: float, _: float) -> Evidence:
    pause = EpochPause(
        seen=3,
        seconds=10.0,
        evaluation=10.0,
        saving=0.0,
        first_batch=0.0,
        rest=0.0,
        waiting=seconds,
        waited_for=EvaluationLoader(workers=2, site=None),
    )
    return healthy(epoch_pause=pause)


PAIRS: dict[str, Pair] = {
    "input-bound": Pair(
        "the share of a step spent waiting",
        lambda amount, _: replace(healthy(amount), loading=[], workers=None),
        (0.07, 0.95),
        (0.0, 0.04),
    ),
    "slow-fetch": Pair(
        "the share of making a batch that the data set's own code takes",
        lambda amount, wait: healthy(wait, loop=loading(fetch_ms=part(amount), collate_ms=10.0)),
        (0.4, 0.95),
        (0.0, 0.25),
    ),
    "slow-decode": Pair("the share of fetching in lines that decode", decoding, (0.45, 0.95), (0.0, 0.25)),
    "oversized-pictures": Pair(
        "the part of fetching that decoding takes, of which three quarters would be spared",
        lambda amount, wait: healthy(wait, loop=loading(decoding=amount, pictures=CAMERA)),
        (0.35, 0.95),
        (0.0, 0.22),
    ),
    "slow-transform": Pair(
        "the share of fetching that one transform takes",
        lambda amount, wait: healthy(wait, loop=loading(transforms=[replace(BLUR[0], share_of_fetch=amount)])),
        (0.45, 0.95),
        (0.0, 0.25),
    ),
    "slow-chain": Pair(
        "the share of fetching that five transforms take",
        lambda amount, wait: healthy(wait, loop=loading(transforms=[replace(FLIP[0], share_of_fetch=amount / 5)] * 5)),
        (0.45, 0.95),
        (0.0, 0.25),
    ),
    "slow-collate": Pair(
        "the share of making a batch that collating takes",
        lambda amount, wait: healthy(wait, loop=loading(collate_ms=part(amount))),
        (0.4, 0.95),
        (0.0, 0.25),
    ),
    "slow-hand-over": Pair(
        "milliseconds that a batch takes from its worker",
        lambda amount, wait: healthy(wait, loop=in_workers(idle=0.9, hand_over_ms=amount, bytes_per_batch=128.0 * MB)),
        (6.0, 200.0),
        (0.0, 1.5),
    ),
    "memory-data-needs-no-workers": Pair("milliseconds to fetch a batch", in_memory, (0.05, 1.0), (20.0, 500.0)),
    "workers-io-bound": Pair("cores that two workers keep busy", at_work, (0.02, 0.7), (1.1, 1.8)),
    "workers-cpu-bound": Pair("cores that two workers keep busy", at_work, (1.55, 1.8), (0.02, 1.2)),
    "oversubscribed-cores": Pair("workers on four cores", crowded, (12, 24), (1, 4)),
    "oversubscribed-threads": Pair(
        "threads that torch computes with on four cores",
        lambda amount, _: healthy(found=replace(FOUND, threads=round(amount))),
        (8, 128),
        (1, 4),
    ),
    "unused-cores": Pair(
        "how many times as fast four threads are as one",
        lambda amount, _: replace(
            healthy(found=replace(FOUND, threads=1)), fixes=[faster("threads", {"intra_op_threads": 4}, amount)]
        ),
        (1.15, 4.0),
        (0.4, 1.05),
    ),
    "too-few-workers": Pair(
        "the speed with more workers",
        lambda amount, wait: healthy(wait, loop=in_workers(1), workers=curve(1, w4=amount)),
        (1.15, 4.0),
        (0.4, 1.02),
    ),
    "too-many-workers": Pair(
        "the speed with fewer workers",
        lambda amount, wait: healthy(wait, loop=in_workers(8), workers=curve(8, w2=amount, w16=0.9)),
        (1.15, 4.0),
        (0.4, 1.02),
    ),
    "many-small-files": Pair("the share of fetching that reads files", reading(SMALL), (0.5, 0.95), (0.0, 0.2)),
    "network-file-system": Pair("the share of fetching that reads files", reading(REMOTE), (0.5, 0.95), (0.0, 0.2)),
    "cold-cache": Pair("the share of what is opened that the disk delivers", from_disk, (0.6, 1.0), (0.0, 0.4)),
    "worker-imbalance": Pair("the slower worker's time over the other's", uneven, (1.8, 20.0), (0.8, 1.25)),
    "out-of-order-batches": Pair(
        "the share of batches finished before an earlier one",
        lambda amount, wait: healthy(wait, loop=in_workers(4, out_of_order_share=amount, fetch_p95_ms=40.0)),
        (0.15, 0.8),
        (0.0, 0.07),
    ),
    "step-jitter": Pair("the share of the time that longer steps cost", jitter, (0.08, 0.6), (0.0, 0.03)),
    "work-between-steps": Pair(
        "the share of a step between the passes",
        lambda amount, _: healthy(phases=shares(between=amount)),
        (0.14, 0.9),
        (0.0, 0.07),
    ),
    "occasional-work": Pair(
        "the share of the time of what is done once in 20 steps",
        lambda amount, _: profiled(healthy(), lines=listings(looking(10.0 * amount / (1 - amount)))),
        (0.25, 0.9),
        (0.0, 0.09),
    ),
    "averaged-weights": Pair(
        "the share of a step between the passes, nine tenths of it spent averaging",
        lambda amount, _: profiled(healthy(phases=shares(between=amount)), lines=listings(AVERAGING, AVERAGE)),
        (0.14, 0.9),
        (0.0, 0.05),
    ),
    "python-bound": Pair("the share of the time outside large operations", small_operations, (0.45, 0.95), (0.0, 0.2)),
    "synchronising-calls": Pair(
        "milliseconds of a step of 100 in such calls",
        lambda amount, _: healthy(synchronising=[replace(ITEM, ms_per_step=amount)]),
        (7.0, 80.0),
        (0.0, 4.0),
    ),
    "garbage-collection": Pair(
        "the share of the time in the collector",
        lambda amount, _: healthy(garbage=GarbageCollection(collections=100, ms_per_step=100 * amount, share=amount)),
        (0.07, 0.7),
        (0.0, 0.04),
    ),
    "padding": Pair(
        "the part of a row that no row of its batch needs",
        lambda amount, _: healthy(loop=loading(padding=PaddingUse(columns=512.0, empty=amount, behind_longest=amount))),
        (0.08, 0.95),
        (0.0, 0.05),
    ),
    "double-precision": Pair(
        "the part of the weights that are float64",
        lambda amount, _: healthy(found=replace(FOUND, facts={"float32_precision": {"double": amount}})),
        (0.6, 1.0),
        (0.0, 0.4),
    ),
    "returned-memory": Pair(
        "how many times as fast training is with memory that is kept",
        lambda amount, _: kept(amount),
        (1.15, 20.0),
        (0.5, 1.1),
    ),
    "denormal-numbers": Pair(
        "how many times as fast training is with such numbers taken as 0",
        lambda amount, _: flushed(amount),
        (1.15, 20.0),
        (0.5, 1.1),
    ),
    "recompiles": Pair(
        "how often a function was compiled again",
        lambda amount, _: healthy(found=replace(FOUND, facts=compiled_again(round(amount)))),
        (3.0, 8.0),
        (0.0, 2.0),
    ),
    "written-out-attention": Pair("the share of a step in attention's softmax", attending, (0.07, 0.6), (0.0, 0.04)),
    "frozen-part": Pair(
        "the share of a step in a frozen part",
        lambda amount, _: healthy(frozen=[replace(FROZEN, share=amount)]),
        (0.12, 0.9),
        (0.0, 0.09),
    ),
    "needless-exchanges": Pair(
        "the share of a step in communication, half of it needless",
        lambda amount, _: healthy(
            phases=shares(communication=amount), exchanges=Exchanges(passes=20, exchanged=20, updates=10)
        ),
        (0.12, 0.8),
        (0.0, 0.09),
    ),
    "slow-optimizer": Pair(
        "the share of a step in the optimizer",
        lambda amount, _: healthy(phases=shares(optimizer=amount)),
        (0.25, 0.9),
        (0.0, 0.16),
    ),
    "compute-bound": Pair(
        "the share of a step in the passes and the optimizer",
        lambda amount, _: healthy(phases=shares(between=0.99 - amount)),
        (0.75, 0.98),
        (0.05, 0.65),
    ),
    "transfer-bound": Pair(
        "the share of a step in copies to the device",
        lambda amount, _: on_gpu(healthy(phases=shares(host_to_device=amount))),
        (0.14, 0.8),
        (0.0, 0.07),
    ),
    "pageable-copies": Pair(
        "copies from pageable memory",
        lambda amount, _: on_gpu(healthy(phases=shares(host_to_device=0.08)), pageable_copies=round(amount)),
        (5, 500),
        (0, 0),
    ),
    "launch-bound": Pair(
        "the share of the time that the device stands still",
        lambda amount, _: on_gpu(
            healthy(), idle_share=amount, kernel_mean_us=4.0, kernels_per_step=900.0, utilization=1.0 - amount
        ),
        (0.4, 0.95),
        (0.0, 0.22),
    ),
    "low-sm-efficiency": Pair(
        "the share of multiprocessors that kernels keep busy, of a device that is busy 0.8 of the time",
        lambda amount, _: on_gpu(healthy(), sm_efficiency=amount, utilization=0.8),
        (0.02, 0.33),
        (0.48, 0.8),
    ),
    "tensor-cores-idle": Pair(
        "the share of the kernels' time on Tensor Cores, where 0.7 could be",
        lambda amount, _: on_gpu(healthy(), tensor_core_share=amount, tensor_core_eligible_share=0.7, utilization=1.0),
        (0.0, 0.03),
        (0.15, 0.7),
    ),
    "slow-epoch-turn": Pair("seconds between epochs of 10 s", evaluated, (2.0, 60.0), (0.0, 0.6)),
    "long-pause": Pair("seconds after 50 steps of 0.1 s", paused_for_long, (10.0, 90.0), (0.0, 0.3)),
    "frequent-evaluation": Pair(
        "seconds of an evaluation after each 50 steps of 0.1 s",
        lambda amount, _: healthy(interruption=Interruption(seen=3, seconds=amount, every=50.0)),
        (0.7, 60.0),
        (0.0, 0.4),
    ),
    "evaluation-waits": Pair(
        "seconds of waiting for data, of 10 of evaluation between epochs of 10 s",
        evaluation_waiting,
        (5.5, 10.0),
        (0.0, 4.5),
    ),
    "training-data-evaluated": Pair(
        "seconds of the training data's evaluation, of 10 between epochs of 10 s",
        evaluated_again,
        (1.5, 10.0),
        (0.0, 0.8),
    ),
    "slow-start": Pair(
        "seconds until the first step",
        lambda amount, _: healthy(steps=replace(STEPS, first_step_seconds=amount), setup_seconds=[amount]),
        (20.0, 300.0),
        (0.5, 8.0),
    ),
    "memory-growth": Pair(
        "MiB that each window leaves behind",
        lambda amount, _: healthy(utilization=use(resident=[(500.0 + amount * each) * MB for each in range(4)])),
        (100.0, 900.0),
        (0.0, 15.0),
    ),
    "straggler-rank": Pair(
        "seconds of five that one of four ranks waits",
        lambda amount, _: healthy(windows=[window(index, parts=waiting_ranks(amount)) for index in range(2)]),
        (0.8, 4.5),
        (0.1, 0.4),
    ),
    "machine-noise": Pair(
        "what the same training differs by",
        lambda amount, _: healthy(utilization=use(steal_share=0.0), noise=Noise(aa_ratio=None, floor=amount)),
        (0.07, 0.5),
        (0.0, 0.04),
    ),
}

waits = st.floats(0.2, 0.9)


def amounts(bounds: tuple[float, float]) -> st.SearchStrategy[float]:
    return st.floats(*bounds, allow_nan=False)


def test_every_rule_has_two_sides() -> None:
    assert set(PAIRS) == set(BY_ID), "a rule needs a pair: evidence with its cause, and the same without"


def test_the_sides_of_a_pair_lie_apart() -> None:
    for identifier, pair in PAIRS.items():
        assert pair.there[0] <= pair.there[1], identifier
        assert pair.away[0] <= pair.away[1], identifier
        assert pair.away[1] < pair.there[0] or pair.there[1] < pair.away[0], identifier


@pytest.mark.parametrize("identifier", PAIRS)
def test_a_cause_that_is_there_is_found_and_one_that_is_away_is_not(identifier: str) -> None:
    pair = PAIRS[identifier]

    @settings(max_examples=30, deadline=None)
    @given(amounts(pair.there), amounts(pair.away), waits)
    def asked(there: float, away: float, wait: float) -> None:
        found = finding(identifier, pair.made(there, wait))
        assert found is not None, f"{pair.quantity}: {there}, wait {wait}"
        assert 0.0 <= found.weight <= 1.0
        assert found.weight > 0.0 or identifier == "machine-noise"
        said = finding(identifier, pair.made(away, wait))
        assert said is None, f"{pair.quantity}: {away}, wait {wait}: {said.sentence if said else ''}"

    asked()


COSTS_WORKERS = {"memory-data-needs-no-workers"}
"""It speaks of what workers cost, which is measured: nobody has to wait for a batch."""
ABOUT_LOADING = [
    identifier
    for identifier, rule in BY_ID.items()
    if "wait" in rule.needs and identifier not in COSTS_WORKERS | {"input-bound"}
]


@pytest.mark.parametrize("identifier", ABOUT_LOADING)
def test_what_nobody_waits_for_is_no_finding(identifier: str) -> None:
    """The other half of every cause in loading: it is there in full, and training hardly waits for it."""
    pair = PAIRS[identifier]

    @settings(max_examples=20, deadline=None)
    @given(amounts(pair.there), st.floats(0.0, 0.04))
    def asked(there: float, wait: float) -> None:
        said = finding(identifier, pair.made(there, wait))
        assert said is None, f"{pair.quantity}: {there}, wait {wait}: {said.sentence if said else ''}"

    asked()
