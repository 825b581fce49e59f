"""What is known of the programs in `planted/`: the cause of each, the lines that its author would change, and what is
not so, however much it looks like it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROGRAMS = Path(__file__).resolve().parent / "planted"
MARK = "# the slow line"
SCRATCH = "{scratch}"
"""Stands in a program's arguments for a folder that is the run's own and gone afterwards."""

FILES = ("many-small-files", "network-file-system", "cold-cache")
"""Findings about files. They are false of whatever opens none while it makes batches, or opens them quickly."""
WAITS = (
    "input-bound",
    "slow-fetch",
    "slow-decode",
    "oversized-pictures",
    "slow-transform",
    "slow-chain",
    "slow-collate",
    "slow-hand-over",
    "too-few-workers",
    "workers-io-bound",
    "workers-cpu-bound",
    "worker-imbalance",
    "out-of-order-batches",
    *FILES,
)
"""Findings that all say that training waits for its batches."""
STEPS = (
    "work-between-steps",
    "occasional-work",
    "averaged-weights",
    "synchronising-calls",
    "garbage-collection",
    "slow-optimizer",
)
"""Findings that say that something in the steps takes time beside the passes. Not `step-jitter`: a neighbour on the
machine makes any steps uneven.
"""
NOWHERE = (
    "transfer-bound",
    "pageable-copies",
    "launch-bound",
    "low-sm-efficiency",
    "tensor-cores-idle",
    "straggler-rank",
)
"""Findings about devices and several ranks: all programs train in one process, on the CPU."""


LATE = 2.5
"""With 45 s given, such a program has time for a start of its own for its lines."""


@dataclass(frozen=True, kw_only=True)
class Planted:
    """One program, and the truth about it.

    `expected`: ids of the finding that names the cause; several where they say the same of it. `never`: ids that must
    not be among the findings at all, since they are not so; one that is found is a falsehood. `place`: whether a line
    of the program is the cause, so that the finding has to name one that is marked. `fix`: ids of which the fastest fix
    must be one; () where there must be none, None where that depends on the machine or is no fix of the doctor's.
    `late`: how many times a budget that is given it gets, since its cause is seen by what is gathered last, the profile
    of lines or the trace of operators. A short budget has no room for these.
    """

    name: str
    expected: tuple[str, ...]
    never: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    place: bool = True
    fix: tuple[str, ...] | None = None
    late: float = 1.0

    @property
    def file(self) -> Path:
        return PROGRAMS / f"{self.name}.py"

    @property
    def untrue(self) -> frozenset[str]:
        """Ids that must not be among the findings: `never`, and what is true of none of the programs."""
        return frozenset(self.never + NOWHERE)

    def marked(self) -> set[int]:
        """Numbers of the lines that the right finding may name."""
        lines = self.file.read_text(encoding="utf-8").splitlines()
        return {number for number, line in enumerate(lines, 1) if line.rstrip().endswith(MARK)}

    def fingerprint(self) -> str:
        """Changes with whatever would make an earlier examination another one."""
        return hashlib.sha256(self.file.read_bytes() + repr(self.arguments).encode()).hexdigest()


def _on_disk(name: str, **known: Any) -> Planted:
    return Planted(name=name, arguments=("--data", f"{SCRATCH}/{name}"), **known)


def _computes(name: str, *never: str, **known: Any) -> Planted:
    """A program that only computes, and looks as if something else were the matter."""
    never = (*never, *WAITS, "python-bound", "padding", "double-precision", "recompiles", "training-data-evaluated")
    never = (*never, "evaluation-waits", "unused-cores", "returned-memory")
    return Planted(name=name, expected=("compute-bound",), never=never, place=False, **known)


SUITE = (
    # Loading: where a sample or a batch is made.
    Planted(name="sleep_in_transform", expected=("slow-transform",), never=FILES, fix=("workers",)),
    Planted(name="heavy_transform", expected=("slow-transform",), never=(*FILES, "workers-io-bound")),
    Planted(name="lone_to_tensor", expected=("slow-transform",), never=(*FILES, "slow-fetch", "slow-decode")),
    Planted(name="lone_function", expected=("slow-transform",), never=(*FILES, "slow-decode", "slow-collate")),
    Planted(name="subset_chain", expected=("slow-transform",), never=(*FILES, "slow-decode", "slow-collate")),
    Planted(name="wrapped_dataset", expected=("slow-transform",), never=(*FILES, "slow-decode", "slow-collate")),
    Planted(
        name="many_transforms", expected=("slow-chain",), never=(*FILES, "slow-fetch", "slow-decode", "slow-collate")
    ),
    _on_disk(
        "decode_pictures",
        expected=("oversized-pictures", "slow-decode"),
        never=FILES,
        fix=("workers", "cached-samples", "reduced-decoding"),
    ),
    _on_disk(
        "pictures_in_size",
        expected=("slow-decode",),
        never=(*FILES, "oversized-pictures"),
        fix=("workers", "cached-samples"),
    ),
    # `intra-op-threads` is workers with cores left to them.
    Planted(
        name="features_in_fetch",
        expected=("slow-fetch", "too-few-workers"),
        never=FILES,
        fix=("workers", "intra-op-threads", "cached-samples"),
    ),
    Planted(name="seeded_samples", expected=("slow-fetch",), never=(*FILES, "slow-transform", "workers-io-bound")),
    _on_disk(
        "features_of_files",
        expected=("slow-fetch",),
        never=(*FILES, "slow-decode", "slow-collate", "workers-io-bound"),
    ),
    Planted(name="concat", expected=("slow-fetch",), never=(*FILES, "slow-transform", "workers-io-bound")),
    Planted(name="decompression", expected=("slow-fetch",), never=(*FILES, "workers-io-bound")),
    _on_disk("gzip_files", expected=("slow-fetch", "slow-decode"), never=(*FILES, "workers-io-bound")),
    Planted(name="tokenize_in_fetch", expected=("slow-fetch",), never=(*FILES, "slow-decode", "slow-collate")),
    _on_disk("sqlite_rows", expected=("slow-fetch",), never=(*FILES, "slow-decode", "workers-io-bound")),
    _on_disk(
        "sleep_in_getitem",
        expected=("slow-fetch", "workers-io-bound"),
        never=(*FILES, "slow-decode", "slow-transform", "slow-collate", "workers-cpu-bound"),
        fix=("workers", "cached-samples"),
    ),
    Planted(
        name="rpc_in_getitem",
        expected=("slow-fetch", "workers-io-bound"),
        never=(*FILES, "slow-decode", "slow-transform", "slow-collate"),
        fix=("workers", "cached-samples"),
    ),
    _on_disk(
        "lock_in_getitem",
        expected=("workers-io-bound", "slow-fetch"),
        never=(*FILES, "slow-decode", "workers-cpu-bound", "oversubscribed-cores", "too-few-workers"),
    ),
    Planted(name="slow_collate", expected=("slow-collate",), never=(*FILES, "workers-io-bound")),
    Planted(name="pad_in_collate", expected=("slow-collate",), never=(*FILES, "slow-fetch", "slow-transform")),
    Planted(name="tokenize_in_collate", expected=("slow-collate",), never=(*FILES, "slow-fetch", "slow-transform")),
    Planted(name="graph_collater", expected=("slow-collate",), never=(*FILES, "slow-fetch", "slow-transform")),
    # The loader's own collate takes the time that the samples' form costs it: no line of the program's does.
    Planted(name="dicts_of_numbers", expected=("slow-collate",), never=(*FILES, "slow-fetch"), place=False),
    Planted(
        name="big_hand_over",
        expected=("slow-hand-over",),
        never=FILES,
        place=False,
        fix=("no-workers", "cached-samples"),
    ),
    _on_disk(
        "small_files",
        expected=("many-small-files",),
        never=("cold-cache", "slow-decode", "slow-transform"),
        late=LATE,
    ),
    Planted(
        name="slow_storage",
        expected=("workers-io-bound",),
        never=(*FILES, "workers-cpu-bound", "oversubscribed-cores"),
        fix=("workers", "cached-samples"),
    ),
    # Loading: how many make it, and on what cores.
    Planted(
        name="tokenize_in_workers",
        expected=("workers-cpu-bound", "slow-fetch"),
        never=(*FILES, "workers-io-bound", "worker-imbalance"),
    ),
    Planted(
        name="uneven_samples",
        expected=("workers-cpu-bound", "slow-fetch"),
        never=(*FILES, "workers-io-bound", "worker-imbalance", "slow-collate"),
    ),
    Planted(
        name="one_worker",
        expected=("too-few-workers", "slow-fetch"),
        never=FILES,
        place=False,
        fix=("workers", "cached-samples"),
    ),
    # Sixteen workers on two cores cost most where they are started: at every turn of an epoch.
    Planted(name="too_many_workers", expected=("too-many-workers", "slow-epoch-turn"), place=False),
    Planted(
        name="workers_for_tensors",
        expected=("memory-data-needs-no-workers",),
        never=(*FILES, "workers-io-bound", "too-few-workers"),
        place=False,
        fix=("no-workers",),
    ),
    Planted(name="thread_storm", expected=("oversubscribed-threads",), never=FILES, place=False),
    Planted(name="uneven_shards", expected=("worker-imbalance",), never=(*FILES, "workers-cpu-bound"), place=False),
    Planted(name="rare_slow_sample", expected=("step-jitter",), never=FILES, place=False),
    # The step.
    Planted(name="conv_compute", expected=("compute-bound",), never=(*WAITS, *STEPS), place=False),
    Planted(name="one_thread", expected=("unused-cores",), never=(*WAITS, *STEPS), fix=("threads",)),
    Planted(
        name="returned_memory",
        expected=("returned-memory",),
        never=(*WAITS, *STEPS),
        place=False,
        fix=("allocator", "amp-bf16"),
    ),
    Planted(name="averaged_weights", expected=("averaged-weights", "work-between-steps"), never=WAITS),
    Planted(
        name="double_arrays",
        expected=("double-precision",),
        fix=("single-precision",),
        never=(*WAITS, *STEPS),
        place=False,
    ),
    Planted(
        name="vanishing_gradients",
        expected=("denormal-numbers",),
        never=(*WAITS, *STEPS),
        place=False,
        fix=("flush-denormal",),
    ),
    Planted(name="changing_shapes", expected=("recompiles",), never=(*WAITS, *STEPS)),
    Planted(
        name="exchanged_each_time",
        expected=("needless-exchanges",),
        never=(*WAITS, *STEPS),
        place=False,
        fix=("no-sync",),
    ),
    Planted(
        name="padded_rows", expected=("padding",), never=(*WAITS, *STEPS, "memory-growth"), fix=("trimmed-padding",)
    ),
    Planted(name="own_attention", expected=("written-out-attention",), never=(*WAITS, *STEPS)),
    Planted(name="frozen_backbone", expected=("frozen-part",), never=(*WAITS, *STEPS)),
    Planted(name="small_layers", expected=("python-bound",), never=FILES, place=False, late=LATE),
    Planted(name="python_forward", expected=("python-bound",), never=(*FILES, "work-between-steps")),
    Planted(name="own_optimizer", expected=("slow-optimizer",), never=(*FILES, "work-between-steps")),
    Planted(name="cyclic_garbage", expected=("garbage-collection",), never=FILES, place=False),
    Planted(name="collect_each_step", expected=("garbage-collection", "work-between-steps"), never=FILES),
    # Between steps.
    Planted(name="heavy_callback", expected=("work-between-steps",), never=FILES),
    Planted(name="logging_between_steps", expected=("work-between-steps",), never=FILES),
    Planted(name="item_loop", expected=("synchronising-calls", "work-between-steps"), never=FILES),
    Planted(name="python_metrics", expected=("work-between-steps", "python-bound"), never=FILES),
    Planted(
        name="checkpoint_often",
        expected=("occasional-work", "work-between-steps"),
        never=FILES,
        arguments=("--output", SCRATCH),
    ),
    Planted(
        name="drawn_often",
        expected=("occasional-work",),
        never=(*WAITS, "frequent-evaluation", "synchronising-calls"),
        late=LATE,
    ),
    # No loader: time goes by between passes, and nobody told the doctor that it is loading, or playing.
    Planted(
        name="own_batches",
        expected=("work-between-steps",),
        never=(*WAITS, "compute-bound", "slow-epoch-turn"),
    ),
    Planted(
        name="rollout",
        expected=("work-between-steps", "python-bound"),
        never=(*WAITS, "compute-bound", "slow-optimizer"),
    ),
    # Between epochs, and the whole run.
    Planted(
        name="short_epochs",
        expected=("slow-epoch-turn",),
        never=FILES,
        place=False,
        fix=("persistent-workers", "no-workers", "cached-samples"),
    ),
    Planted(
        name="long_breaks",
        expected=("long-pause",),
        never=("slow-start", "compute-bound"),
    ),
    Planted(
        name="long_evaluation",
        expected=("slow-epoch-turn",),
        never=(*FILES, "training-data-evaluated", "evaluation-waits"),
        place=False,
    ),
    Planted(
        name="frequent_evaluation",
        expected=("frequent-evaluation",),
        never=(*FILES, "slow-epoch-turn", "training-data-evaluated"),
        place=False,
    ),
    Planted(
        name="evaluated_each_step",
        expected=("frequent-evaluation",),
        never=(*FILES, "slow-epoch-turn", "training-data-evaluated"),
        place=False,
    ),
    Planted(name="evaluation_waits", expected=("evaluation-waits",), never=(*FILES, "training-data-evaluated")),
    Planted(name="evaluated_again", expected=("training-data-evaluated",), never=FILES, place=False),
    Planted(
        name="validation_part", expected=("slow-epoch-turn",), never=(*FILES, "training-data-evaluated"), place=False
    ),
    Planted(name="losses_kept", expected=("memory-growth",), never=WAITS, place=False),
    Planted(name="slow_start", expected=("slow-start",), never=FILES, place=False),
    # Look-alikes: something is there that could be the cause, and costs next to nothing. Computing is what takes time.
    _computes("double_sums", *STEPS),
    _computes("softmax_gates", *STEPS, "written-out-attention"),
    _computes("mean_teacher", *STEPS, "frozen-part"),
    _computes("averaged_epochs", *STEPS),
    _computes("quick_files", *STEPS, arguments=("--data", f"{SCRATCH}/quick_files")),
    _computes("cheap_chain", *STEPS),
    _computes("fitting_worker", *STEPS, "memory-data-needs-no-workers", "too-many-workers", "oversubscribed-cores"),
    _computes("cheap_logging", *STEPS, arguments=("--output", SCRATCH)),
    _computes("little_garbage", *STEPS),
    _computes("last_losses", *STEPS, "memory-growth"),
    _computes(
        "accumulated_steps",
        "step-jitter",
        "slow-optimizer",
        "work-between-steps",
        "occasional-work",
        "needless-exchanges",
    ),
    _computes("manual_update", "slow-optimizer", "slow-epoch-turn"),
    _computes(
        "short_evaluation", "slow-epoch-turn", "long-pause", "work-between-steps", arguments=("--output", SCRATCH)
    ),
    _computes("tuned_first_steps", "slow-epoch-turn", "slow-start", "memory-growth"),
    _computes("long_epochs", "slow-epoch-turn", "slow-start", "long-pause"),
    _computes("unlabelled_batches", "frequent-evaluation", "slow-epoch-turn"),
    _computes("short_sequences", "denormal-numbers"),
    _computes("scored_each_step", "frequent-evaluation", "slow-epoch-turn"),
)

INPUT = (
    "input-bound",
    "slow-fetch",
    "slow-decode",
    "oversized-pictures",
    "slow-transform",
    "slow-chain",
    "slow-collate",
    "slow-hand-over",
    "too-few-workers",
    "workers-io-bound",
    "workers-cpu-bound",
    "many-small-files",
    "network-file-system",
    "cold-cache",
)
HOST = ("python-bound", "launch-bound", "work-between-steps", "slow-optimizer", "garbage-collection", "transfer-bound")
CONTRADICTIONS: frozenset[frozenset[str]] = frozenset(
    frozenset(pair)
    for pair in (
        # Workers can't be short of cores and idle for the disk's sake, or too few and too many, or needless and short.
        ("workers-io-bound", "workers-cpu-bound"),
        ("workers-io-bound", "oversubscribed-cores"),
        ("too-few-workers", "too-many-workers"),
        ("too-few-workers", "oversubscribed-cores"),
        # Data in memory that costs next to nothing to make is not slow to make, nor read from anywhere.
        *(("memory-data-needs-no-workers", other) for other in INPUT if other not in ("input-bound", "slow-hand-over")),
        # What stands at the ceiling of its computing is not held up by anything else.
        *(("compute-bound", other) for other in (*INPUT, *HOST)),
        ("compute-bound", "worker-imbalance"),
        ("compute-bound", "memory-data-needs-no-workers"),
        ("compute-bound", "too-many-workers"),
        # A device that waits for launches is not one that is kept too busy by what it was given.
        ("launch-bound", "tensor-cores-idle"),
    )
)
