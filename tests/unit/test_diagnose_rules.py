"""Every rule on evidence made for it: that it fires first, with the right figures and place, is silent below its
threshold, and is not judged without what it needs."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
from tests.unit.diagnosable import (
    AVERAGE,
    AVERAGING,
    BLUR,
    BLUR_LISTING,
    BUSY_WORKERS,
    BY_ID,
    CAMERA,
    CHAIN,
    COLLATE,
    DECODING,
    FILE,
    FLIP,
    FORWARD,
    FOUND,
    FROZEN,
    GETITEM,
    IDLE_WORKERS,
    IMBALANCED,
    ITEM,
    LARGE,
    LEAKING,
    MB,
    READING,
    REMOTE,
    SMALL,
    STEPS,
    STORM,
    TINY,
    TRAINING,
    WAITING,
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

from bottleneck_doctor.diagnose import Evidence, Statement, diagnose, headline
from bottleneck_doctor.diagnose._evidence import NEEDS, missing
from bottleneck_doctor.documents.report import (
    EpochPause,
    EvaluationLoader,
    Exchanges,
    GarbageCollection,
    Interruption,
    LineListing,
    LongPause,
    Noise,
    PaddingUse,
    Site,
    Speedup,
)

# -- one case a rule ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """Evidence on which a rule fires first, and evidence just below its threshold. `line`: of the place, None for none.

    `weight`: of the rule alone, before causes take over what they explain.
    """

    fires: Evidence
    silent: Evidence
    weight: float
    words: tuple[str, ...]
    line: int | None = None


WAITED = EpochPause(
    seen=3,
    seconds=10.0,
    evaluation=9.0,
    saving=1.0,
    first_batch=0.0,
    rest=0.0,
    waiting=8.0,
    waited_for=EvaluationLoader(workers=0, site=Site(file=FILE, line=12)),
)
"""An evaluation that waits for most of its time."""

CASES: dict[str, Case] = {
    "input-bound": Case(
        fires=replace(healthy(WAITING), loading=[], workers=None),
        silent=replace(healthy(0.04), loading=[], workers=None),
        weight=0.6,
        words=("waits for data 60 % of the time", "60 ms a step"),
    ),
    "slow-fetch": Case(
        fires=healthy(WAITING),
        silent=healthy(0.04),
        weight=0.6 * 10 / 10.5,
        words=("95 % of making a batch", "`Pets.__getitem__` (train.py, line 21)", "10 ms a batch"),
        line=21,
    ),
    "slow-decode": Case(
        fires=profiled(
            healthy(WAITING),
            lines=listings(DECODING, TRAINING),
            sampling=sampled(fetch=[node("load", "/x/site-packages/PIL/ImageFile.py", 300, count=9)]),
        ),
        silent=healthy(WAITING),
        weight=0.6 * 0.8 * 10 / 10.5,
        words=("Decoding files (train.py, line 21)", "76 % of making a batch", "60 % of the time"),
        line=21,
    ),
    "oversized-pictures": Case(
        fires=profiled(
            healthy(WAITING, loop=loading(decoding=0.9, pictures=CAMERA)),
            lines=listings(DECODING, TRAINING),
            sampling=sampled(fetch=[node("load", "/x/site-packages/PIL/ImageFile.py", 300, count=9)]),
        ),
        # Most of a batch is made of something else.
        silent=healthy(WAITING, loop=loading(decoding=0.1, pictures=CAMERA)),
        weight=0.6 * 0.9 * 0.75 * 10 / 10.5,
        words=("1920 x 1440 are decoded whole (train.py, line 21)", "At an eighth", "64 % of making a batch"),
        line=21,
    ),
    "slow-transform": Case(
        fires=profiled(
            healthy(WAITING, loop=loading(transforms=BLUR)), lines=listings(GETITEM, BLUR_LISTING, TRAINING)
        ),
        silent=healthy(WAITING, loop=loading(transforms=FLIP)),
        weight=0.6 * 0.8 * 10 / 10.5,
        words=("`RandomBlur` (train.py, line 33)", "250 µs a sample", "76 % of making a batch"),
        line=33,
    ),
    "slow-chain": Case(
        fires=healthy(WAITING, loop=loading(transforms=CHAIN)),
        silent=healthy(WAITING, loop=loading(transforms=CHAIN[:1])),
        weight=0.6 * 0.8 * 10 / 10.5,
        words=(
            "The 4 transforms of a sample (train.py, line 31)",
            "320 µs together, 76 % of making a batch",
            "`Crop` 24 %",
        ),
        line=31,
    ),
    "slow-collate": Case(
        fires=profiled(
            healthy(WAITING, loop=loading(collate_ms=30.0, collate_site=Site(file=FILE, line=40))),
            lines=listings(GETITEM, COLLATE),
        ),
        silent=healthy(WAITING, loop=loading(collate_ms=4.0, collate_site=Site(file=FILE, line=40))),
        weight=0.6 * 0.75,
        words=("the collate function (train.py, line 42)", "making a batch: 30 ms", "75 %"),
        line=42,
    ),
    "slow-hand-over": Case(
        fires=healthy(WAITING, loop=in_workers(idle=0.9, hand_over_ms=30.0, bytes_per_batch=128.0 * MB)),
        # Workers that make the next batch meanwhile are not held up by it.
        silent=healthy(WAITING, loop=in_workers(idle=0.1, hand_over_ms=30.0, bytes_per_batch=128.0 * MB)),
        weight=0.6 * 30 / 35.25,
        words=("A finished batch of 128 MiB takes 30 ms", "85 %"),
    ),
    "memory-data-needs-no-workers": Case(
        fires=healthy(
            WAITING,
            loop=in_workers(fetch_ms=0.3, collate_ms=0.2, hand_over_ms=1.5, bytes_per_batch=64.0 * 1024),
            workers=curve(2, w0=2.0, w4=0.9),
        ),
        silent=healthy(
            WAITING,
            loop=in_workers(fetch_ms=0.3, collate_ms=0.2, hand_over_ms=1.5, bytes_per_batch=64.0 * 1024),
            workers=curve(2, w0=1.01, w4=0.9),
        ),
        weight=0.5,
        words=("500 µs to make", "1.5 ms to get from 2 workers", "2.0× (95 % 1.9–2.1, 8 pairs) as fast"),
    ),
    "workers-io-bound": Case(
        fires=healthy(WAITING, loop=in_workers(), utilization=use(workers=IDLE_WORKERS)),
        silent=healthy(WAITING, loop=in_workers(), utilization=use(workers={"cpu_user": 1.2})),
        weight=0.6 * 0.9,
        words=("While making batches, 2 workers each compute 10 % of the time", "(train.py, line 21)"),
        line=21,
    ),
    "workers-cpu-bound": Case(
        fires=healthy(WAITING, loop=in_workers(), utilization=use(workers=BUSY_WORKERS, cores_busy=3.0)),
        silent=healthy(WAITING, loop=in_workers(), utilization=use(workers={"cpu_user": 1.2})),
        weight=0.6 * 5.25 / 5.75,
        words=("2 workers keep 1.00 cores busy each", "3.0 of 4 cores are busy"),
    ),
    "oversubscribed-cores": Case(
        fires=healthy(
            WAITING, loop=in_workers(8), utilization=use(workers={"cpu_user": 3.5}, count=8, cores_busy=3.95)
        ),
        silent=healthy(
            WAITING, loop=in_workers(4), utilization=use(workers={"cpu_user": 3.5}, count=4, cores_busy=3.95)
        ),
        weight=0.6 * (1 - 4 / 7.2),
        words=("7.2 of 8 workers are busy", "4 usable cores"),
    ),
    "oversubscribed-threads": Case(
        fires=healthy(WAITING, loop=in_workers(), utilization=use(workers=STORM)),
        silent=healthy(WAITING, loop=in_workers(), utilization=use(workers={**STORM, "involuntary_switches": 50.0})),
        weight=0.6 * (1 - 4 / 32) * 5.25 / 5.75,
        words=("2 workers compute with 16 threads each on 4 usable cores", "2000 times a second"),
    ),
    "unused-cores": Case(
        fires=replace(
            healthy(found=replace(FOUND, threads=1)), fixes=[faster("threads", {"intra_op_threads": 4}, 1.6)]
        ),
        silent=replace(
            healthy(found=replace(FOUND, threads=1)), fixes=[faster("threads", {"intra_op_threads": 4}, 1.08)]
        ),
        weight=1 - 1 / 1.6,
        words=("torch computes with 1 thread on 4 usable cores.", "Computing is"),
    ),
    "too-few-workers": Case(
        fires=healthy(WAITING, loop=in_workers(1), workers=curve(1, w4=2.0)),
        silent=healthy(WAITING, loop=in_workers(1), workers=curve(1, w4=1.04)),
        weight=0.5,
        words=(
            "1 worker does not keep up",
            "320 samples a second. With 4 workers it reaches 640, 2.0× (95 % 1.9–2.1, 8 pairs)",
        ),
    ),
    "too-many-workers": Case(
        fires=healthy(0.2, loop=in_workers(8), workers=curve(8, w2=1.25, w16=0.9)),
        silent=healthy(0.2, loop=in_workers(8), workers=curve(8, w2=1.01, w16=0.9)),
        weight=0.2,
        words=("8 workers are too many: with 2, training is 1.25× (95 % 1.21–1.29, 8 pairs) as fast",),
    ),
    "many-small-files": Case(
        fires=profiled(healthy(WAITING, loop=loading(files=SMALL)), lines=listings(READING)),
        silent=profiled(healthy(WAITING, loop=loading(files=LARGE)), lines=listings(READING)),
        weight=0.6 * 0.9 * 10 / 10.5,
        words=("On average, a batch opens 64 files of 2 KiB (train.py, line 21)", "86 % of making a batch"),
        line=21,
    ),
    "network-file-system": Case(
        fires=profiled(healthy(WAITING, loop=loading(files=REMOTE)), lines=listings(READING)),
        silent=profiled(healthy(WAITING, loop=loading(files=LARGE)), lines=listings(READING)),
        weight=0.6 * 0.9 * 10 / 10.5,
        words=("opens 32 files (16 MiB) on a network file system (nfs4)", "86 %"),
        line=21,
    ),
    "cold-cache": Case(
        fires=profiled(
            healthy(WAITING, loop=loading(files=LARGE), utilization=use(main={"read_bytes": 128.0 * MB})),
            lines=listings(READING),
        ),
        silent=profiled(
            healthy(WAITING, loop=loading(files=LARGE), utilization=use(main={"read_bytes": 64.0 * MB})),
            lines=listings(READING),
        ),
        weight=0.6 * 0.9 * 10 / 10.5 * 0.8,
        words=("Of the bytes in the opened files, 80 % come from the disk (128 MiB a second)",),
        line=21,
    ),
    "worker-imbalance": Case(
        fires=healthy(WAITING, loop=in_workers(fetch_ms=25.0, workers=IMBALANCED)),
        silent=healthy(WAITING, loop=in_workers(workers=[IMBALANCED[0], replace(IMBALANCED[1], fetch_seconds=0.014)])),
        weight=0.6 * 0.75,
        words=("Worker 1 takes 40 ms a batch, 4.0 times as long as the others (10 ms)",),
        line=21,
    ),
    "out-of-order-batches": Case(
        fires=healthy(WAITING, loop=in_workers(4, out_of_order_share=0.4, fetch_p95_ms=40.0)),
        # Two even workers that take turns finish a third out of order, and nobody waits for it.
        silent=healthy(WAITING, loop=in_workers(4, out_of_order_share=0.4, fetch_p95_ms=13.0)),
        weight=0.6 * 0.75,
        words=(
            "40 % of the batches were finished before an earlier one",
            "10 ms on average, and 40 ms or more for one batch in twenty",
        ),
        line=21,
    ),
    "step-jitter": Case(
        fires=replace(healthy(), steps=replace(STEPS, p50_ms=80.0, p95_ms=200.0, jitter=2.5, outliers=12)),
        silent=replace(healthy(), steps=replace(STEPS, p50_ms=80.0, p95_ms=112.0, jitter=1.4, outliers=6)),
        weight=0.2,
        words=(
            "take 80 ms or less, but one in twenty takes 200 ms or more (2.5 times as long)",
            "training would need 20 % less time",
        ),
    ),
    "work-between-steps": Case(
        fires=healthy(phases=shares(between=0.4)),
        silent=healthy(phases=shares(between=0.09)),
        weight=0.4,
        words=("40 % of the time", "40 ms a step. Most of this work is done at train.py, line 55"),
        line=55,
    ),
    "occasional-work": Case(
        fires=profiled(healthy(), lines=listings(looking(10.0))),
        silent=profiled(healthy(), lines=listings(looking(0.5))),
        # Waiting is of the training as written: the listing's own is left out.
        weight=0.5 * 0.99,
        words=(
            "About once in 20 steps, the loop does more, for 2.0 s",
            "what stands under `if step % options.every == 0` at train.py, line 55",
            "50 % of the time",
        ),
        line=55,
    ),
    "averaged-weights": Case(
        fires=profiled(healthy(phases=shares(between=0.4)), lines=listings(AVERAGING, AVERAGE)),
        silent=profiled(healthy(phases=shares(between=0.05)), lines=listings(AVERAGING, AVERAGE)),
        weight=0.4 * 0.9,
        words=("one tensor after another", "(train.py, line 82)", "36 % of the time, 36 ms a step"),
        line=82,
    ),
    "python-bound": Case(
        fires=profiled(
            healthy(), device=operators(operators=TINY), sampling=sampled(forward=FORWARD), lines=listings(TRAINING)
        ),
        silent=profiled(healthy(), sampling=sampled(forward=FORWARD)),
        weight=0.87,
        words=("87 % of a step is Python code", "1.0 cores busy", "train.py, line 8"),
        line=8,
    ),
    "synchronising-calls": Case(
        fires=healthy(synchronising=[ITEM]),
        silent=healthy(synchronising=[replace(ITEM, ms_per_step=4.0)]),
        weight=0.12,
        words=("`item` at train.py, line 55", "64 times a step", "12 ms a step, which is 12 % of the step"),
        line=55,
    ),
    "garbage-collection": Case(
        fires=replace(
            profiled(healthy(), lines=listings(TRAINING, listing("tidy", 80, ("gc.collect()", 1.0)))),
            garbage=GarbageCollection(collections=100, ms_per_step=25.0, share=0.25),
        ),
        silent=healthy(garbage=GarbageCollection(collections=100, ms_per_step=4.0, share=0.04)),
        weight=0.25,
        words=("ran 100 times", "(train.py, line 80)", "25 ms a step, 25 % of the time"),
        line=80,
    ),
    "written-out-attention": Case(
        fires=profiled(
            healthy(found=replace(FOUND, facts=WRITTEN_OUT)),
            device=operators(operators=attention_operators(0.2)),
            lines=listings(
                TRAINING, listing("forward", 50, ("scores = q @ k.mT", 0.3), ("", 0.0), ("s.softmax()", 0.4))
            ),
        ),
        # torch's own attention calls softmax itself where it has no kernel.
        silent=profiled(
            healthy(found=replace(FOUND, facts=WRITTEN_OUT)),
            device=operators(operators=attention_operators(0.2, "aten::_scaled_dot_product_attention_math")),
        ),
        weight=0.2,
        words=("in single steps (train.py, line 52)", "takes 20 % of a step"),
        line=52,
    ),
    "padding": Case(
        fires=healthy(loop=loading(padding=PaddingUse(columns=512.0, empty=0.9, behind_longest=0.8))),
        silent=healthy(loop=loading(padding=PaddingUse(columns=512.0, empty=0.3, behind_longest=0.04))),
        weight=0.8 * 0.93,
        words=("padded to 512 places", "fills 102", "80 % of what the model computes on"),
    ),
    "double-precision": Case(
        fires=healthy(found=replace(FOUND, facts={"float32_precision": {"double": 1.0}})),
        silent=healthy(found=replace(FOUND, facts={"float32_precision": {"double": 0.02}})),
        weight=0.93 / 2,
        words=("100 % of the model's weights are in double precision", "take 93 % of the time"),
    ),
    "returned-memory": Case(
        fires=kept(1.5),
        silent=kept(1.05),
        weight=1 - 1 / 1.5,
        words=(
            "each step asks for 477 MiB anew, which takes 36 % of the processor's time",
            "training is 1.65× (95 % 1.50–1.80, 8 pairs) as fast",
        ),
    ),
    "denormal-numbers": Case(
        fires=flushed(2.1, places=["the gradients", "the weights"]),
        silent=flushed(1.05, places=["the gradients"]),
        weight=1 - 1 / 2.1,
        words=(
            "turn up in the gradients and the weights, and this processor is slow with them",
            "training is 2.3× (95 % 2.1–2.5, 8 pairs) as fast",
        ),
    ),
    "recompiles": Case(
        fires=healthy(found=replace(FOUND, facts=compiled_again(8))),
        silent=healthy(found=replace(FOUND, facts=compiled_again(2))),
        weight=0.29 * 0.93,
        words=(
            "torch compiled `Net.forward` (train.py, line 12) 8 times in the first few steps",
            "because dimension 1 of `rows` was 31 and not 24. It has given the function up",
        ),
        line=12,
    ),
    "frozen-part": Case(
        fires=healthy(frozen=[FROZEN], found=replace(FOUND, facts={"cached_samples": {"repeats": True}})),
        # What streams by may never come again.
        silent=healthy(frozen=[FROZEN], found=replace(FOUND, iterable=True)),
        weight=0.6,
        words=(
            "`layer3`, `layer2`, `layer1` and 1 more (train.py, line 77) take 60 % of a step",
            "nothing in there learns",
            "Samples are the same in each epoch, and so are its outputs",
        ),
        line=77,
    ),
    "needless-exchanges": Case(
        fires=healthy(phases=shares(communication=0.4), exchanges=Exchanges(passes=40, exchanged=40, updates=10)),
        silent=healthy(phases=shares(communication=0.4), exchanges=Exchanges(passes=40, exchanged=10, updates=10)),
        weight=0.3,
        words=("takes 4 backward passes", "after each of them", "40 % of the time"),
    ),
    "slow-optimizer": Case(
        fires=profiled(
            healthy(phases=shares(optimizer=0.4)),
            sampling=sampled(optimizer=[node("step", FILE, 70, count=30, own=True)]),
        ),
        silent=healthy(phases=shares(optimizer=0.19)),
        weight=0.4,
        words=("The optimizer (train.py, line 70) takes 40 % of the time, 40 ms a step",),
        line=70,
    ),
    "compute-bound": Case(
        fires=healthy(
            ceilings={"synthetic": Speedup(estimate=1.031, low=1.01, high=1.05, pairs=8, sessions=3)},
        ),
        silent=on_gpu(healthy(ceilings={"synthetic": Speedup(estimate=1.3, low=1.2, high=1.4, pairs=8, sessions=3)})),
        weight=0.97,
        words=("take 97 % of the time", "at 97 % of the speed that it would have if every batch were ready at once"),
    ),
    "transfer-bound": Case(
        fires=on_gpu(healthy(phases=shares(host_to_device=0.2))),
        silent=on_gpu(healthy(phases=shares(host_to_device=0.09))),
        weight=0.2,
        words=("takes 20 % of a step. A batch of 8 MiB is copied at 400 MiB a second",),
    ),
    "pageable-copies": Case(
        fires=on_gpu(
            profiled(healthy(phases=shares(host_to_device=0.08)), lines=listings(listing("a", 90, ("x.to(dev)", 1.0)))),
            pageable_copies=20,
        ),
        silent=on_gpu(healthy(phases=shares(host_to_device=0.08)), pageable_copies=0),
        weight=0.08,
        words=("2 copies a step (train.py, line 90) start from pageable memory", "does not pin", "8 % of a step"),
        line=90,
    ),
    "launch-bound": Case(
        fires=on_gpu(healthy(), idle_share=0.6, kernel_mean_us=4.0, kernels_per_step=900.0, utilization=0.4),
        silent=on_gpu(healthy(), idle_share=0.2, kernel_mean_us=4.0, kernels_per_step=900.0, utilization=0.8),
        weight=0.59,
        words=("launches 900 kernels of 4.0 µs on average", "59 % of the time"),
    ),
    "low-sm-efficiency": Case(
        fires=on_gpu(healthy(), sm_efficiency=0.2, utilization=0.8),
        silent=on_gpu(healthy(), sm_efficiency=0.5, utilization=0.8),
        weight=0.8 * 0.75,
        words=("Kernels run 80 % of the time, but keep only an estimated 25 %", "50 % of the warps"),
    ),
    "tensor-cores-idle": Case(
        fires=on_gpu(healthy(), tensor_core_share=0.0, tensor_core_eligible_share=0.7, utilization=1.0),
        silent=on_gpu(healthy(), tensor_core_share=0.3, tensor_core_eligible_share=0.7, utilization=1.0),
        weight=0.35,
        words=("Operations that Tensor Cores could do take 70 % of the kernels' time",),
    ),
    "slow-epoch-turn": Case(
        fires=healthy(
            epoch_pause=EpochPause(
                seen=3, seconds=10.0, evaluation=7.0, saving=2.0, first_batch=1.0, rest=0.0, first_batches_seen=3
            )
        ),
        silent=healthy(
            epoch_pause=EpochPause(seen=3, seconds=1.0, evaluation=0.7, saving=0.2, first_batch=0.1, rest=0.0)
        ),
        weight=0.5,
        words=("The pause between two epochs takes 10 s (7.0 s evaluating, 2.0 s saving)", "50 % of the time"),
    ),
    "long-pause": Case(
        fires=healthy(long_pause=LongPause(seen=3, seconds=15.0, steps=50.0, site=Site(file=FILE, line=90))),
        silent=healthy(long_pause=LongPause(seen=1, seconds=15.0, steps=50.0)),
        weight=0.75,
        words=(
            "After about 50 steps, the script did something other than training (train.py, line 90) for at least 15 s",
            "These steps take 5.0 s",
            "at least 75 % of the time until then",
        ),
        line=90,
    ),
    "frequent-evaluation": Case(
        fires=healthy(interruption=Interruption(seen=4, seconds=1.0, every=20.0)),
        silent=healthy(interruption=Interruption(seen=4, seconds=0.1, every=20.0)),
        weight=1 / 3,
        words=(
            "About once in 20 steps, the program evaluates, for 1.0 s",
            "These steps take 2.0 s",
            "33 % of the time",
        ),
    ),
    "evaluation-waits": Case(
        fires=healthy(epoch_pause=WAITED),
        silent=healthy(epoch_pause=replace(WAITED, waiting=3.0)),
        weight=0.4,
        words=("takes 9.0 s, which is 45 % of the time", "its data during 89 % of that", "line 12) has no workers"),
        line=12,
    ),
    "training-data-evaluated": Case(
        fires=healthy(
            epoch_pause=EpochPause(
                seen=3, seconds=10.0, evaluation=9.0, saving=1.0, first_batch=0.0, rest=0.0, of_training=6.0
            )
        ),
        silent=healthy(
            epoch_pause=EpochPause(
                seen=3, seconds=10.0, evaluation=9.0, saving=1.0, first_batch=0.0, rest=0.0, of_training=0.6
            )
        ),
        weight=0.3,
        words=("6.0 s go into evaluating the training data", "30 % of the time"),
    ),
    "slow-start": Case(
        fires=healthy(steps=replace(STEPS, first_step_seconds=25.0), setup_seconds=[26.0, 26.1]),
        silent=healthy(steps=replace(STEPS, first_step_seconds=9.0)),
        weight=0.2,
        words=("takes 25 s from the start", "The steps of one epoch take 10 s"),
    ),
    "memory-growth": Case(
        fires=healthy(utilization=use(resident=LEAKING)),
        silent=healthy(utilization=use(resident=[(500.0 + 10 * each) * MB for each in range(4)])),
        weight=1.0,
        words=(
            "by up to 900 MiB in one process",
            "15 MiB a second, 1.5 MiB a step",
            "the 8 GiB that are free will last 9 min",
        ),
    ),
    "straggler-rank": Case(
        fires=healthy(windows=[window(index, parts=waiting_ranks(2.0)) for index in range(2)]),
        silent=healthy(windows=[window(index, parts=waiting_ranks(0.4)) for index in range(2)]),
        weight=0.35,
        words=("Rank 3 spends 40 % of the time waiting for data, the others 5 %", "lose 35 %"),
    ),
    "machine-noise": Case(
        fires=healthy(utilization=use(steal_share=0.12), noise=Noise(aa_ratio=None, floor=0.08)),
        silent=healthy(utilization=use(steal_share=0.01), noise=Noise(aa_ratio=None, floor=0.04)),
        weight=0.12,
        words=("a difference below 8 % may be chance", "take 12 % of the processor time"),
    ),
}


@pytest.mark.parametrize(
    "listed",
    [
        looking(10.0, ran=1),
        looking(10.0, ran=70),
        looking(10.0, doing="optimizer.step()"),
        replace(TRAINING, seconds=0.0),
    ],
    ids=["seen once", "in nearly each step", "a step that gradients are accumulated for", "nothing was timed"],
)
def test_what_is_a_part_of_most_steps_is_not_occasional(listed: LineListing) -> None:
    assert finding("occasional-work", profiled(healthy(), lines=listings(listed))) is None


def test_evaluations_that_have_a_finding_of_their_own_are_not_told_as_occasional_work() -> None:
    evidence = profiled(
        healthy(steps=replace(STEPS, evaluations=5, evaluation_share=0.4)), lines=listings(looking(10.0))
    )
    assert finding("occasional-work", evidence) is None


def test_calls_in_a_library_are_told_apart_from_a_loop_of_the_users() -> None:
    inside = replace(ITEM, library="torchdiffeq", ms_per_step=8.0)
    between = healthy(phases=shares(between=0.6), synchronising=[inside])
    found = finding("synchronising-calls", between)
    assert found is not None
    assert "`item` in torchdiffeq, called at train.py, line 55, takes a value out of a tensor" in found.sentence
    assert found.share == pytest.approx(0.08)
    assert "option" in found.advice
    own = finding(
        "synchronising-calls", healthy(phases=shares(between=0.6), synchronising=[replace(inside, library="")])
    )
    assert own is not None
    assert own.share == pytest.approx(0.6, rel=0.2)


@pytest.mark.parametrize(
    ("changing", "repeats", "words"),
    [
        (False, True, "Samples are the same in each epoch, and so are its outputs."),
        (False, None, "The same samples give the same outputs in each epoch."),
        (False, False, "Its outputs would be the same in each epoch, but for samples that change from epoch to epoch."),
        (
            True,
            False,
            "but for samples that change from epoch to epoch, BatchNorm in training mode and what is drawn at random",
        ),
    ],
)
def test_what_a_frozen_part_makes_is_the_same_only_where_that_is_known(
    changing: bool, repeats: bool | None, words: str
) -> None:
    facts = {} if repeats is None else {"cached_samples": {"repeats": repeats}}
    evidence = healthy(frozen=[replace(FROZEN, batch=changing, random=changing)], found=replace(FOUND, facts=facts))
    found = finding("frozen-part", evidence)
    assert found is not None
    assert words in found.sentence


def test_noise_that_took_no_time_has_no_weight() -> None:
    found = finding(
        "machine-noise", healthy(utilization=use(steal_share=0.001), noise=Noise(aa_ratio=None, floor=0.08))
    )
    assert found is not None
    assert found.weight == 0.0


def test_every_rule_has_a_case() -> None:
    assert set(CASES) == set(BY_ID)


@pytest.mark.parametrize("identifier", CASES)
def test_fires_with_its_figures_and_its_place(identifier: str) -> None:
    case = CASES[identifier]
    found = finding(identifier, case.fires)
    assert found is not None
    assert found.weight == pytest.approx(case.weight, abs=0.002)
    for words in case.words:
        assert words in found.sentence.replace("\u202f", " "), found.sentence
    assert found.sentence.endswith(".")
    assert found.site == (Site(file=FILE, line=case.line) if case.line is not None else None)
    assert found.evidence
    assert all(isinstance(value, float) for value in found.evidence.values())


LONGEST = 30
"""Words of a sentence that is read once."""


@pytest.mark.parametrize("identifier", CASES)
def test_a_sentence_is_short_and_speaks_of_the_training(identifier: str) -> None:
    said = BY_ID[identifier].judge(CASES[identifier].fires)
    assert isinstance(said, Statement)
    for sentence in (*re.split(r"(?<=[.;:])\s", said.sentence), f"Training {said.clause}"):
        assert len(sentence.split()) <= LONGEST, sentence
        assert "your" not in sentence.lower().split()


@pytest.mark.parametrize("identifier", CASES)
def test_is_silent_below_its_threshold(identifier: str) -> None:
    assert finding(identifier, CASES[identifier].silent) is None


@pytest.mark.parametrize("identifier", [identifier for identifier in CASES if identifier != "compute-bound"])
def test_is_silent_on_a_healthy_training(identifier: str) -> None:
    everything = diagnose(healthy(loop=in_workers(), windows=[window(index) for index in range(4)]))
    assert [each.id for each in everything.findings] == ["compute-bound"]
    assert identifier not in [each.id for each in everything.findings]


WITHOUT: dict[str, Callable[[Evidence], Evidence]] = {
    "loader": lambda e: replace(e, found=replace(e.found, has_loader=False)),
    "own-workers": lambda e: replace(e, loading=[loading()]),
    "device": lambda e: replace(e, found=replace(e.found, device="cpu")),
    "baseline": lambda e: replace(e, baseline=None),
    "wait": lambda e: replace(e, baseline=None, phases=None),
    "step": lambda e: replace(e, baseline=None, steps=None),
    "phases": lambda e: replace(e, phases=None),
    "steps": lambda e: replace(e, steps=None),
    "epoch": lambda e: replace(e, baseline=None, steps=None),
    "epoch-pause": lambda e: replace(e, epoch_pause=None, baseline=None),
    "loading": lambda e: replace(e, loading=[replace(each, setting={"num_workers": 4}) for each in e.loading]),
    "files": lambda e: replace(e, loading=[replace(each, files=None) for each in e.loading]),
    "utilization": lambda e: replace(e, utilization=None),
    "profile": lambda e: profiled(e, sampling=None, lines=None),
    "operators": lambda e: profiled(e, device=None),
    "synchronising": lambda e: replace(e, synchronising=None),
    "garbage": lambda e: replace(e, garbage=None),
    "curve": lambda e: replace(e, workers=None),
    "noise": lambda e: replace(e, noise=None),
    "start": lambda e: replace(e, setup_seconds=[], steps=None),
    "ranks": lambda e: replace(e, windows=[window(0)]),
}


def test_every_need_can_be_taken_away() -> None:
    assert set(WITHOUT) == set(NEEDS)


@pytest.mark.parametrize(
    ("identifier", "need"), [(identifier, need) for identifier, rule in BY_ID.items() for need in rule.needs]
)
def test_is_not_judged_without_what_it_needs(identifier: str, need: str) -> None:
    poorer = WITHOUT[need](CASES[identifier].fires)
    assert missing(need, poorer)
    made = diagnose(poorer, [BY_ID[identifier]])
    assert made.findings == []
    assert [each.id for each in made.not_judged] == [identifier]
    # Where one piece of evidence goes, another may go with it; the first that is missed is named.
    assert made.not_judged[0].reason in {missing(each, poorer) for each in BY_ID[identifier].needs}


@pytest.mark.parametrize("identifier", CASES)
def test_without_any_profile_a_rule_names_less_but_does_not_break(identifier: str) -> None:
    made = diagnose(replace(CASES[identifier].fires, profiles=None))
    assert not [each for each in made.not_judged if "bug" in each.reason]


# -- what comes first --------------------------------------------------------------------------------------------------

LATER = {"input-bound", "machine-noise"}
"""General, and not of the training: these are first only where there is nothing else."""


@pytest.mark.parametrize("identifier", [identifier for identifier in CASES if identifier not in LATER])
def test_among_all_rules_the_cause_comes_first(identifier: str) -> None:
    made = diagnose(CASES[identifier].fires)
    ids = [each.id for each in made.findings]
    if identifier in {"workers-cpu-bound", "step-jitter", "pageable-copies"}:
        # Symptoms, or too light next to what limits this training.
        assert identifier in ids
    else:
        assert ids[0] == identifier, ids
        told = headline(made.findings, made.clauses)
        assert told is not None
        assert told.finding == identifier
        assert told.opening.startswith("Training ")
    assert [each.weight for each in made.findings] == sorted((each.weight for each in made.findings), reverse=True)


def test_the_headline_names_the_transform_and_its_line() -> None:
    made = diagnose(CASES["slow-transform"].fires)
    told = headline(made.findings, made.clauses)
    assert told is not None
    assert told.opening == "Training waits for data 60 % of the time, most of it in `RandomBlur` (train.py, line 33)."
    assert made.findings[0].weight == pytest.approx(0.6), "the cause has the weight of the wait"
    assert "input-bound" not in [each.id for each in made.findings]
