"""The catalogue: what each fix says of itself, and what it would try on a loop."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, get_args

import pytest

from bottleneck_doctor import fixes, knobs
from bottleneck_doctor.documents.report import Phases, Setting
from bottleneck_doctor.fixes import RETIRED_IDS, NotApplicable, Offer, catalogue, distribution_checks
from bottleneck_doctor.fixes._fix import Part
from bottleneck_doctor.fixes.workers import sweep
from bottleneck_doctor.knobs import all_knobs, allocator
from bottleneck_doctor.runtime.wire.messages import Found
from bottleneck_doctor.wording import words

BY_ID = {fix.id: fix for fix in catalogue()}

FOUND = Found(
    rung="optimizer step",
    period=1,
    periodic=True,
    step_seconds=[0.1] * 8,
    wait_seconds=[0.05] * 8,
    samples_per_step=32.0,
    device="cpu",
    usable_cpus=4,
    threads=4,
    has_loader=True,
    loader_type="DataLoader",
    dataset_type="Pets",
    batch_size=32,
    epoch_batches=100,
    start_method="fork",
    has_root_module=True,
)
WITH_WORKERS = replace(FOUND, num_workers=2, prefetch_factor=2)
BARE = replace(FOUND, has_loader=False, epoch_batches=None, batch_size=None)
ON_GPU = replace(FOUND, device="cuda:0")


def settings(identifier: str, found: Found) -> list[Setting]:
    proposal = BY_ID[identifier].propose(found)
    assert isinstance(proposal, Offer), proposal
    return list(proposal.settings)


def refusal(identifier: str, found: Found) -> str:
    proposal = BY_ID[identifier].propose(found)
    assert isinstance(proposal, NotApplicable), proposal
    return proposal.reason


def test_another_number_of_threads_is_a_matter_of_rounding() -> None:
    """Sums over another number of threads are added up in another order: gradients differ in their last bits."""
    proposals = {fix.id: fix.propose(FOUND) for fix in catalogue()}
    turning = {
        identifier
        for identifier, each in proposals.items()
        if isinstance(each, Offer) and any("intra_op_threads" in setting for setting in each.settings)
    }
    assert turning == {"threads", "intra-op-threads"}
    assert {BY_ID[identifier].risk for identifier in turning} == {"numerics"}


def test_every_file_is_a_fix_named_by_its_id() -> None:
    files = {path.stem for path in Path(fixes.__file__).parent.glob("*.py") if not path.stem.startswith("_")}
    assert {fix.id.replace("-", "_") for fix in catalogue()} == files


def test_ids_are_unique_nouns_that_were_never_retired() -> None:
    ids = [fix.id for fix in catalogue()]
    assert len(set(ids)) == len(ids)
    for identifier in ids:
        assert re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", identifier)
        # A noun says what there will be; "enable-workers" would be an order.
        assert identifier.partition("-")[0] not in {"use", "enable", "disable", "set", "add", "increase", "reduce"}
    assert not RETIRED_IDS & set(ids)


@pytest.mark.parametrize("identifier", BY_ID)
def test_fix_says_what_why_how_and_where_it_is_written(identifier: str) -> None:
    fix = BY_ID[identifier]
    assert not fix.title.endswith(".")
    assert fix.why.endswith(".")
    assert fix.how.endswith(".")
    assert fix.source.startswith("https://")
    assert fix.risk in words.RISK_WORDS
    assert fix.target in ("data", "compute", "transfer")


@pytest.mark.parametrize("identifier", BY_ID)
def test_fixes_act_on_parts_that_the_report_knows(identifier: str) -> None:
    parts = BY_ID[identifier].acts_on
    assert set(parts) <= {each.name for each in fields(Phases)}
    assert len(set(parts)) == len(parts)


def test_parts_of_a_step_are_called_as_in_the_report() -> None:
    names = [each.name for each in fields(Phases)]
    assert list(get_args(Part)) == names
    assert list(words.PART_WORDS) == list(words.PHASE_WORDS) == names


def test_order_is_by_order_then_id() -> None:
    assert list(catalogue()) == sorted(catalogue(), key=lambda fix: (fix.order, fix.id))
    assert catalogue() is catalogue()


@pytest.mark.parametrize("identifier", BY_ID)
@pytest.mark.parametrize(
    "found", [FOUND, WITH_WORKERS, BARE, ON_GPU, replace(FOUND, iterable=True, epoch_batches=None)]
)
def test_proposals_are_settings_of_known_knobs_or_a_reason(identifier: str, found: Found) -> None:
    proposal = BY_ID[identifier].propose(found)
    if isinstance(proposal, NotApplicable):
        assert proposal.reason
        assert not proposal.reason.endswith(".")
    else:
        assert proposal.settings
        for setting in proposal.settings:
            assert setting
            assert set(setting) <= {each.name for each in all_knobs()}


# -- one by one ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cpus", "current", "counts"),
    [
        (1, 0, [1, 2]),
        (2, 0, [1, 2, 4]),
        (2, 2, [1, 4]),
        (3, 0, [1, 2, 4, 8]),
        (4, 0, [1, 2, 4, 8]),
        (64, 0, [8, 16, 32, 64, 128]),
        (64, 32, [8, 16, 64, 128]),
    ],
)
def test_sweep_of_workers(cpus: int, current: int, counts: list[int]) -> None:
    assert sweep(cpus, current) == counts


def test_workers() -> None:
    assert settings("workers", FOUND) == [{"num_workers": count} for count in (1, 2, 4, 8)]
    assert {"num_workers": 2} not in settings("workers", WITH_WORKERS)
    assert "DataLoader" in refusal("workers", BARE)


def test_workers_that_would_break_the_script_are_not_started() -> None:
    unsafe = replace(FOUND, start_method="spawn", workers_unsafe="the script has no guard")
    for identifier in ("workers", "persistent-workers", "prefetch-factor"):
        assert refusal(identifier, unsafe) == "the script has no guard"
    # Whoever has workers already has them work.
    assert settings("workers", replace(unsafe, num_workers=1))


def test_no_workers() -> None:
    assert settings("no-workers", WITH_WORKERS) == [{"num_workers": 0}]
    assert refusal("no-workers", FOUND).startswith("already on")
    assert refusal("no-workers", BARE)


def test_persistent_workers() -> None:
    assert settings("persistent-workers", WITH_WORKERS) == [{"persistent_workers": True}]
    proposal = BY_ID["persistent-workers"].propose(FOUND)
    assert isinstance(proposal, Offer)
    assert proposal.with_workers
    assert refusal("persistent-workers", replace(WITH_WORKERS, persistent_workers=True)).startswith("already on")
    endless = replace(FOUND, epoch_batches=None, iterable=True)
    assert "a new loader for every epoch" in refusal("persistent-workers", replace(WITH_WORKERS, made_anew=True))
    assert "no known end" in refusal("persistent-workers", endless)
    assert settings("persistent-workers", replace(endless, epoch_batches_seen=12))


def test_workers_are_forked_where_they_start_otherwise_and_start_often() -> None:
    spawned = replace(WITH_WORKERS, start_method="spawn", obstacles={"multiprocessing_context": ""})
    fork = {"multiprocessing_context": "fork"}
    assert settings("forked-workers", spawned) == [fork]
    assert settings("forked-workers", replace(spawned, made_anew=True, persistent_workers=True)) == [fork]
    proposal = BY_ID["forked-workers"].propose(replace(spawned, num_workers=0))
    assert isinstance(proposal, Offer)
    assert proposal.with_workers
    assert refusal("forked-workers", WITH_WORKERS).startswith("already on")
    assert "only once" in refusal("forked-workers", replace(spawned, persistent_workers=True))
    assert "only once" in refusal("forked-workers", replace(spawned, epoch_batches=None))
    assert "would share" in refusal("forked-workers", replace(spawned, open_handle="an open file"))
    elsewhere = replace(spawned, obstacles={"multiprocessing_context": "forking is safe on Linux only"})
    assert "Linux" in refusal("forked-workers", elsewhere)
    assert "no torch DataLoader" in refusal("forked-workers", BARE)


def test_tensors_are_handed_over_by_name_where_a_batch_has_many() -> None:
    seen = replace(
        WITH_WORKERS, obstacles={"sharing_strategy": ""}, facts={"sharing_strategy": {"tensors": 12}}, own={}
    )
    by_name = {"sharing_strategy": "file_system"}
    assert settings("sharing-strategy", seen) == [by_name]
    proposal = BY_ID["sharing-strategy"].propose(replace(seen, num_workers=0))
    assert isinstance(proposal, Offer)
    assert proposal.with_workers
    assert refusal("sharing-strategy", replace(seen, own=by_name)).startswith("already on")
    few = replace(seen, facts={"sharing_strategy": {"tensors": 1}})
    assert refusal("sharing-strategy", few).startswith("a batch has 1 tensor,")
    assert "could not be seen" in refusal("sharing-strategy", replace(seen, facts={}))
    assert "not forked" in refusal("sharing-strategy", replace(seen, start_method="forkserver"))
    assert refusal("sharing-strategy", replace(seen, obstacles={"sharing_strategy": "why not"})) == "why not"
    assert "no torch DataLoader" in refusal("sharing-strategy", BARE)


def test_a_program_that_can_have_no_other_workers_gets_forked_ones() -> None:
    unsafe = replace(
        FOUND, start_method="forkserver", workers_unsafe="no guard", obstacles={"multiprocessing_context": ""}
    )
    (setting,) = settings("forked-workers", unsafe)
    assert setting == {"num_workers": 4, "multiprocessing_context": "fork"}
    many = settings("forked-workers", replace(unsafe, usable_cpus=64))
    assert many == [{"num_workers": 8, "multiprocessing_context": "fork"}]


@pytest.mark.parametrize(("current", "proposed"), [(None, 4), (2, 4), (3, 4), (4, 8), (16, 32)])
def test_prefetch_factor(current: int | None, proposed: int) -> None:
    found = replace(WITH_WORKERS, prefetch_factor=current)
    assert settings("prefetch-factor", found) == [{"prefetch_factor": proposed}]


def test_pinned_memory() -> None:
    assert settings("pinned-memory", ON_GPU) == [{"pin_memory": True}]
    waits = replace(ON_GPU, facts={"non_blocking": {"calls": [["to", "train.py", 12]]}})
    assert settings("pinned-memory", waits) == [{"pin_memory": True, "non_blocking": True}]
    assert settings("non-blocking-copies", replace(waits, pin_memory=True)) == [{"non_blocking": True}]
    assert "not pinned" in refusal("non-blocking-copies", waits)
    assert "no line of the loop" in refusal("non-blocking-copies", replace(ON_GPU, pin_memory=True))
    assert "CPU" in refusal("non-blocking-copies", FOUND)
    assert "CPU" in refusal("pinned-memory", FOUND)
    assert refusal("pinned-memory", replace(ON_GPU, pin_memory=True)) == "already on"


def test_batches_are_copied_ahead_from_pinned_memory() -> None:
    assert settings("device-prefetch", ON_GPU) == [{"pin_memory": True, "device_prefetch": True}]
    assert settings("device-prefetch", replace(ON_GPU, pin_memory=True)) == [{"device_prefetch": True}]
    assert "CPU" in refusal("device-prefetch", FOUND)
    assert "DataLoader" in refusal("device-prefetch", replace(ON_GPU, has_loader=False))


@pytest.mark.parametrize(("identifier", "dtype"), [("amp-bf16", "bfloat16"), ("amp-fp16", "float16")])
def test_mixed_precision(identifier: str, dtype: str) -> None:
    assert settings(identifier, ON_GPU) == [{"autocast": dtype}]
    assert settings(identifier, replace(ON_GPU, has_loader=False)) == [{"autocast": dtype}]
    already: list[dict[str, Any]] = [{"autocast": "bfloat16"}, {"grad_scaler": True}, {"has_root_module": False}]
    for changes in already:
        assert refusal(identifier, replace(ON_GPU, **changes))


def test_debug_switches_that_are_on() -> None:
    both = {"detect_anomaly": True, "deterministic_algorithms": True}
    assert settings("debug-switches", replace(BARE, own=both)) == [dict.fromkeys(both, False)]
    cudnn = {"cudnn_deterministic": True}
    assert settings("debug-switches", replace(ON_GPU, own=cudnn)) == [{"cudnn_deterministic": False}]
    for nothing_to_gain in ({}, cudnn, {"detect_anomaly": False}, {"detect_anomaly": None}):
        assert "are on" in refusal("debug-switches", replace(FOUND, own=nothing_to_gain))


def test_anomaly_detection_changes_no_number_and_the_others_do() -> None:
    for own, risk in (
        ({"detect_anomaly": True}, "identical"),
        ({"deterministic_algorithms": True}, "numerics"),
        ({"detect_anomaly": True, "deterministic_algorithms": True}, "numerics"),
    ):
        offer = BY_ID["debug-switches"].propose(replace(FOUND, own=own))
        assert isinstance(offer, Offer)
        assert offer.risk == risk


def test_cudnn_times_its_algorithms_where_it_does_not_and_the_other_way_round() -> None:
    convolutions = replace(ON_GPU, facts={"cudnn_benchmark": {"convolutions": 3}})
    assert settings("cudnn-benchmark", convolutions) == [{"cudnn_benchmark": True}]
    on = replace(convolutions, own={"cudnn_benchmark": True})
    assert settings("cudnn-benchmark", on) == [{"cudnn_benchmark": False}]
    assert "no convolutions" in refusal(
        "cudnn-benchmark", replace(ON_GPU, facts={"cudnn_benchmark": {"convolutions": 0}})
    )
    assert "could not be seen" in refusal("cudnn-benchmark", ON_GPU)
    assert "another device" in refusal("cudnn-benchmark", replace(convolutions, device="cpu"))


def test_a_model_is_compiled_where_that_is_asked_for() -> None:
    fix, found = BY_ID["compile"], replace(FOUND, obstacles={"compiled": ""})
    assert settings("compile", found) == [{"compiled": True}]
    assert isinstance(fix.proposed(found, named=True), Offer)
    unasked = fix.proposed(found, named=False)
    assert isinstance(unasked, NotApplicable)
    assert "`--only compile`" in unasked.reason
    compiled = fix.proposed(replace(FOUND, obstacles={"compiled": "already on: the model is compiled"}), named=False)
    assert compiled == NotApplicable("already on: the model is compiled")
    assert isinstance(fix.proposed(replace(found, device="cuda:0"), named=False), Offer)
    short = replace(found, step_seconds=[0.5, 0.01, 0.01, 0.02])
    assert settings("compile", short) == [{"compiled": True}], "a CPU has no CUDA graphs"
    on_device = [{"compiled": True}, {"compiled": "reduce-overhead"}]
    assert settings("compile", replace(short, device="cuda:0")) == on_device
    assert settings("compile", replace(short, device="cuda:0", step_seconds=[0.1] * 4)) == [{"compiled": True}]


def test_what_is_on_already_is_taken_back() -> None:
    compiled = replace(FOUND, obstacles={"uncompiled": ""})
    assert settings("no-compile", compiled) == [{"uncompiled": True}]
    assert "was not seen" in refusal("no-compile", FOUND)
    pinned = replace(ON_GPU, pin_memory=True)
    assert settings("pageable-memory", pinned) == [{"pin_memory": False}]
    assert "are not pinned" in refusal("pageable-memory", ON_GPU)
    assert "torch pins nothing" in refusal("pageable-memory", replace(pinned, device="cpu"))
    assert "no torch DataLoader" in refusal("pageable-memory", replace(pinned, has_loader=False))
    for fix in catalogue():
        assert set(fix.undoes) <= BY_ID.keys() - {fix.id}


def test_batches_come_as_they_are_ready_where_they_take_unequally_long() -> None:
    free = {"in_order": ""}
    uneven = [0.5, *([0.05] * 6), 0.3, 0.05]  # The first waits for the epoch to begin.
    here = replace(FOUND, obstacles=free)
    assert settings("out-of-order", replace(here, wait_seconds=uneven)) == [{"in_order": False}]
    assert "take about equally long" in refusal("out-of-order", replace(here, wait_seconds=[0.5, *([0.05] * 8)]))
    assert settings("out-of-order", replace(here, wait_seconds=[0.05] * 3)) == [{"in_order": False}]
    # What a loop waits for workers says nothing about how long a batch takes them.
    assert settings("out-of-order", replace(WITH_WORKERS, obstacles=free)) == [{"in_order": False}]
    assert "was not seen" in refusal("out-of-order", WITH_WORKERS)
    told = replace(WITH_WORKERS, obstacles={"in_order": "already on: so it is"})
    assert refusal("out-of-order", told) == "already on: so it is"
    assert "no torch DataLoader" in refusal("out-of-order", BARE)
    assert BY_ID["out-of-order"].risk == "order"


def test_batches_are_cut_where_they_go_on_behind_their_longest_row() -> None:
    def padded(**told: Any) -> Found:
        return replace(FOUND, facts={"trimmed_padding": {"obstacle": "", "share": 0.6, "names": ["input_ids"], **told}})

    assert settings("trimmed-padding", padded()) == [{"trimmed_padding": True}]
    assert "no attention mask" in refusal("trimmed-padding", FOUND)
    assert "hardly go on" in refusal("trimmed-padding", padded(share=0.05))
    assert refusal("trimmed-padding", padded(share=0.0)) == "already on: each batch ends where its longest row ends"
    assert refusal("trimmed-padding", padded(obstacle="the loss counts padding, too")).startswith("the loss counts")
    assert "no torch DataLoader" in refusal("trimmed-padding", BARE)


def test_segments_grow_where_the_devices_memory_ran_short() -> None:
    def counted(**told: Any) -> Found:
        seen = {"obstacle": "", "retries": 3, "variable": "PYTORCH_ALLOC_CONF", **told}
        return replace(FOUND, device="cuda:0", facts={"expandable_segments": seen})

    assert settings("expandable-segments", counted()) == [{"expandable_segments": "PYTORCH_ALLOC_CONF"}]
    assert knobs.variables({"expandable_segments": "PYTORCH_ALLOC_CONF"}) == {
        "PYTORCH_ALLOC_CONF": "expandable_segments:True"
    }
    assert refusal("expandable-segments", counted(obstacle="never ran short")) == "never ran short"
    assert "not on a CUDA device" in refusal("expandable-segments", FOUND)
    assert "could not be seen" in refusal("expandable-segments", replace(FOUND, device="cuda:0"))


def test_rows_are_grouped_by_length_where_that_is_asked_for() -> None:
    free = replace(FOUND, obstacles={"grouped_lengths": ""})
    told = replace(free, facts={"grouped_lengths": {"obstacle": "", "part": '["ids"]'}})
    assert settings("grouped-lengths", told) == [{"grouped_lengths": True}]
    # Nobody looks at rows unless they are to be grouped.
    unasked = BY_ID["grouped-lengths"].proposed(free, named=False)
    assert isinstance(unasked, NotApplicable)
    assert "`--only grouped-lengths`" in unasked.reason
    slow = replace(free, facts={"grouped_lengths": {"obstacle": "only 3 rows could be looked at in 1 s"}})
    assert refusal("grouped-lengths", slow).startswith("only 3 rows")
    assert refusal("grouped-lengths", replace(FOUND, obstacles={"grouped_lengths": "no mask"})) == "no mask"
    assert "no torch DataLoader" in refusal("grouped-lengths", BARE)


def test_inputs_are_kept_where_whole_samples_can_not_be() -> None:
    kept = {"obstacle": "", "samples": 100, "bytes": 1 << 20, "seconds": 2.0}
    drawn = {"cached_samples": {"obstacle": "its samples are drawn at random, so each epoch has others"}}

    def looked(**told: Any) -> Found:
        return replace(FOUND, num_workers=0, facts={**drawn, "cached_inputs": {**kept, **told}})

    assert settings("cached-inputs", looked()) == [{"cached_inputs": True}]
    in_workers = replace(looked(), num_workers=2, start_method="fork")
    assert settings("cached-inputs", in_workers) == [
        {"cached_inputs": True, "num_workers": 0}, {"cached_inputs": True}
    ]  # fmt: skip
    assert settings("cached-inputs", replace(in_workers, start_method="spawn")) == [
        {"cached_inputs": True, "num_workers": 0}
    ]
    assert refusal("cached-inputs", looked(obstacle="so it is")) == "so it is"
    whole = replace(looked(), facts={"cached_inputs": kept, "cached_samples": {"obstacle": ""}})
    assert "whole samples can be kept" in refusal("cached-inputs", whole)
    assert "could not be seen" in refusal("cached-inputs", FOUND)
    assert "over before" in refusal("cached-inputs", replace(looked(), run_epochs=1))
    assert "no torch DataLoader" in refusal("cached-inputs", BARE)


def test_transforms_are_done_to_whole_batches_where_the_guest_saw_that_they_can_be() -> None:
    def looked(obstacle: str) -> Found:
        return replace(FOUND, facts={"batched_transforms": {"obstacle": obstacle}})

    assert settings("batched-transforms", looked("")) == [{"batched_transforms": True}]
    on_gpu = replace(looked(""), device="cuda:0")
    assert settings("batched-transforms", on_gpu) == [{"batched_transforms": True}, {"batched_transforms": "device"}]
    assert refusal("batched-transforms", looked("so it is")) == "so it is"
    assert "could not be seen" in refusal("batched-transforms", FOUND)
    assert "no torch DataLoader" in refusal("batched-transforms", BARE)


def test_the_opposite_of_what_is_on_shows_what_it_is_worth() -> None:
    kept = replace(WITH_WORKERS, persistent_workers=True, epoch_batches=100)
    assert settings("restarted-workers", kept) == [{"persistent_workers": False}]
    assert "lives on" in refusal("restarted-workers", WITH_WORKERS)
    assert "lives on" in refusal("restarted-workers", replace(kept, num_workers=0))
    assert "no known end" in refusal("restarted-workers", replace(kept, epoch_batches=None, epoch_batches_seen=None))
    assert "no torch DataLoader" in refusal("restarted-workers", BARE)
    ready = replace(WITH_WORKERS, facts={"in_order": {"off": True}})
    assert settings("ordered-batches", ready) == [{"in_order": True}]
    assert "asked for" in refusal("ordered-batches", WITH_WORKERS)
    assert "asked for" in refusal("ordered-batches", replace(ready, num_workers=0))
    assert "no torch DataLoader" in refusal("ordered-batches", BARE)
    fused = replace(FOUND, obstacles={**FOUND.obstacles, "unfused_optimizer": ""})
    assert settings("unfused-optimizer", fused) == [{"unfused_optimizer": True}]
    laid = replace(FOUND, has_root_module=True, obstacles={**FOUND.obstacles, "contiguous_format": ""})
    assert settings("contiguous-format", laid) == [{"contiguous_format": True}]
    assert "no call of a module" in refusal("contiguous-format", replace(laid, has_root_module=False))
    plain = replace(FOUND, obstacles={**FOUND.obstacles, "unfused_optimizer": "the optimizer is not fused"})
    assert refusal("unfused-optimizer", plain) == "the optimizer is not fused"


def test_pictures_are_decoded_smaller_where_the_guest_saw_that_they_can_be() -> None:
    def looked(obstacle: str) -> Found:
        return replace(FOUND, facts={"reduced_decoding": {"obstacle": obstacle}})

    assert settings("reduced-decoding", looked("")) == [{"reduced_decoding": True}]
    assert refusal("reduced-decoding", looked("so it is")) == "so it is"
    assert "could not be seen" in refusal("reduced-decoding", FOUND)
    assert "no torch DataLoader" in refusal("reduced-decoding", BARE)


def test_workers_get_one_thread_where_samples_are_prepared_by_several(monkeypatch: pytest.MonkeyPatch) -> None:
    def looked(several: bool | None = True, libraries: tuple[str, ...] = ("openblas",), obstacle: str = "") -> Found:
        told = {"obstacle": obstacle, "several": several, "libraries": list(libraries)}
        return replace(WITH_WORKERS, facts={"single_threaded": told})

    for name in ("OPENBLAS_NUM_THREADS", "OPENCV_FOR_THREADS_NUM"):
        monkeypatch.delenv(name, raising=False)
    assert settings("worker-threads", looked()) == [{"single_threaded": "openblas"}]
    both = looked(libraries=("openblas", "opencv"))
    assert settings("worker-threads", both) == [{"single_threaded": "openblas+opencv"}]
    without = replace(looked(), num_workers=0)
    assert settings("worker-threads", without) == [{"single_threaded": "openblas", "num_workers": 4}]
    unsafe = replace(without, workers_unsafe="so it is")
    assert refusal("worker-threads", unsafe) == "so it is"
    assert "one thread each" in refusal("worker-threads", looked(several=False))
    assert "neither OpenBLAS" in refusal("worker-threads", looked(libraries=()))
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    assert refusal("worker-threads", looked(libraries=())) == "already on: `OPENBLAS_NUM_THREADS=1` is set"
    assert refusal("worker-threads", looked(obstacle="so it is")) == "so it is"
    streamed = BY_ID["worker-threads"].proposed(looked(several=None), named=False)
    assert isinstance(streamed, NotApplicable)
    assert "iterable" in streamed.reason
    assert isinstance(BY_ID["worker-threads"].proposed(looked(several=None), named=True), Offer)
    assert "could not be seen" in refusal("worker-threads", WITH_WORKERS)
    assert "no torch DataLoader" in refusal("worker-threads", BARE)


def test_larger_batches_are_tried_where_that_is_asked_for() -> None:
    free = replace(FOUND, obstacles={"batch_size": ""})
    assert settings("batch-size", free) == [{"batch_size": 64}, {"batch_size": 128}]
    unasked = BY_ID["batch-size"].proposed(free, named=False)
    assert isinstance(unasked, NotApplicable)
    assert "`--only batch-size`" in unasked.reason
    assert "was not seen" in refusal("batch-size", FOUND)
    assert "could not be seen" in refusal("batch-size", replace(free, batch_size=None))
    assert refusal("batch-size", replace(FOUND, obstacles={"batch_size": "so it is"})) == "so it is"
    assert "no torch DataLoader" in refusal("batch-size", BARE)


def test_attention_weights_are_left_out_where_nothing_reads_them() -> None:
    facts = {"obstacle": "", "calls": [["attention", "/net.py", 7]]}
    seen = replace(FOUND, facts={"attention_weights": facts})
    assert settings("attention-weights", seen) == [{"attention_weights": False}]
    assert "no `nn.MultiheadAttention`" in refusal("attention-weights", FOUND)
    read = replace(FOUND, facts={"attention_weights": {"obstacle": "the program reads them"}})
    assert refusal("attention-weights", read) == "the program reads them"


def test_dropout_draws_fewer_bits_where_it_is_computed_on_the_cpu() -> None:
    seen = replace(FOUND, facts={"quick_dropout": {"obstacle": ""}})
    assert settings("quick-dropout", seen) == [{"quick_dropout": True}]
    assert "could not be seen" in refusal("quick-dropout", FOUND)
    attends = replace(FOUND, facts={"quick_dropout": {"obstacle": "", "attention": True}})
    assert settings("quick-dropout", attends) == [{"quick_dropout": "attention"}]
    none = replace(FOUND, facts={"quick_dropout": {"obstacle": "no dropout was found in the model"}})
    assert refusal("quick-dropout", none) == "no dropout was found in the model"


def test_numbers_next_to_0_are_taken_as_0_where_they_were_seen() -> None:
    seen = replace(FOUND, facts={"flush_denormal": {"obstacle": "", "places": ["the weights"]}})
    assert settings("flush-denormal", seen) == [{"flush_denormal": True}]
    assert "could not be seen" in refusal("flush-denormal", FOUND)
    none = replace(FOUND, facts={"flush_denormal": {"obstacle": "hardly any such number was seen"}})
    assert refusal("flush-denormal", none) == "hardly any such number was seen"


def test_distributions_are_made_without_checks_where_they_were_seen_to_check() -> None:
    seen = replace(FOUND, facts={"distribution_checks": {"obstacle": ""}})
    assert settings("distribution-checks", seen) == [{"distribution_checks": False}]
    offers = {device: distribution_checks.propose(replace(seen, device=device)) for device in ("cpu", "cuda:0")}
    assert {device: isinstance(each, Offer) and bool(each.within) for device, each in offers.items()} == {
        "cpu": True,
        "cuda:0": False,  # There, a check waits for what the device computes.
    }
    assert "could not be seen" in refusal("distribution-checks", FOUND)
    none = replace(FOUND, facts={"distribution_checks": {"obstacle": "no distribution was made"}})
    assert refusal("distribution-checks", none) == "no distribution was made"


def test_numbers_are_taken_late_where_they_are_only_recorded() -> None:
    facts = {"obstacle": "", "lines": [["/train.py", 7]]}
    on_device = replace(FOUND, device="cuda:0")
    assert settings("sync-points", replace(on_device, facts={"late_values": facts})) == [{"late_values": True}]
    assert "is there at once" in refusal("sync-points", replace(FOUND, facts={"late_values": facts}))
    assert "could not be seen" in refusal("sync-points", on_device)
    asked = replace(on_device, facts={"late_values": {"obstacle": "it goes by them"}})
    assert refusal("sync-points", asked) == "it goes by them"


def test_attention_is_fused_where_the_program_writes_it_out() -> None:
    seen = replace(FOUND, facts={"fused_attention": {"obstacle": "", "places": [["/net.py", 7]]}})
    assert settings("fused-attention", seen) == [{"fused_attention": True}]
    assert "no function of the program's own" in refusal("fused-attention", FOUND)
    twice = replace(seen, facts={**seen.facts, "checkpointing": {"count": 3, "calls": []}})
    assert "checkpointing" in refusal("fused-attention", twice)
    compiled = replace(FOUND, facts={"fused_attention": {"obstacle": "the model is compiled"}})
    assert refusal("fused-attention", compiled) == "the model is compiled"


def test_checkpointing_is_left_out_where_it_was_seen() -> None:
    seen = replace(FOUND, facts={"checkpointing": {"count": 24, "calls": []}})
    assert settings("checkpointing", seen) == [{"checkpointing": False}]
    assert "no activation checkpointing" in refusal("checkpointing", FOUND)


def test_bfloat16_is_tried_on_request_where_it_has_no_fast_kernels() -> None:
    slow = replace(FOUND, facts={"autocast": {"slow_bfloat16": True}})
    unasked = BY_ID["amp-bf16"].proposed(slow, named=False)
    assert isinstance(unasked, NotApplicable)
    assert "no fast kernels for bfloat16" in unasked.reason
    assert "`--only amp-bf16`" in unasked.reason
    assert isinstance(BY_ID["amp-bf16"].proposed(slow, named=True), Offer)
    assert isinstance(BY_ID["amp-bf16"].proposed(FOUND, named=False), Offer)


def test_autocast_is_not_tried_on_a_model_in_double_precision() -> None:
    def with_double(share: float) -> Found:
        return replace(FOUND, facts={"float32_precision": {"double": share}})

    assert "float64, which autocast leaves" in refusal("amp-bf16", with_double(1.0))
    assert settings("amp-bf16", with_double(0.9)) == [{"autocast": "bfloat16"}]


def test_autocast_is_left_out_where_it_is_on() -> None:
    on = replace(FOUND, autocast="bfloat16")
    assert settings("full-precision", replace(on, obstacles={"no_autocast": ""})) == [{"no_autocast": True}]
    assert "is compiled" in refusal("full-precision", replace(on, obstacles={"no_autocast": "the model is compiled"}))
    assert "without autocast" in refusal("full-precision", replace(FOUND, obstacles={"no_autocast": ""}))


@pytest.mark.parametrize(
    ("identifier", "setting"),
    [
        ("batched-gradient-copies", {"batched_grad_copy": True}),
        ("bucket-views", {"gradient_as_bucket_view": True}),
        ("fused-optimizer", {"fused_optimizer": True}),
        ("merged-groups", {"merged_groups": True}),
        ("no-sync", {"no_sync": True}),
        ("no-unused-search", {"find_unused_parameters": False}),
        ("single-precision", {"single_precision": True}),
        ("static-graph", {"static_graph": True}),
        ("zero-grad-none", {"zero_grad_none": True}),
    ],
)
def test_what_the_guest_saw_of_the_loop_decides(identifier: str, setting: Setting) -> None:
    (knob,) = setting
    assert settings(identifier, replace(FOUND, obstacles={knob: ""})) == [setting]
    assert settings(identifier, replace(BARE, obstacles={knob: ""})) == [setting]
    assert refusal(identifier, replace(FOUND, obstacles={knob: "already on: so it is"})) == "already on: so it is"
    assert "was not seen" in refusal(identifier, FOUND)


@pytest.mark.parametrize(
    ("gradients", "cap", "size"),
    [
        (440, 25, 100),  # Many buckets: fewer, larger ones.
        (100, 100, 25),  # One bucket: several, so that the exchange begins before the backward pass is over.
        (26, 25, 100),
        (20, 25, 5),
        (3, 25, None),
    ],
)
def test_buckets_of_another_size(gradients: int, cap: int, size: int | None) -> None:
    seen = {"gradients": gradients << 20, "cap": cap << 20}
    found = replace(FOUND, obstacles={"bucket_cap_mb": ""}, facts={"bucket_cap_mb": seen})
    if size is None:
        assert "gradients take 3 MiB" in refusal("bucket-size", found)
    else:
        assert settings("bucket-size", found) == [{"bucket_cap_mb": size}]
    assert "was not seen" in refusal("bucket-size", replace(found, facts={}))
    assert refusal("bucket-size", replace(found, obstacles={"bucket_cap_mb": "a hook"})) == "a hook"


@pytest.mark.parametrize(("batches", "offered"), [(12, True), (10, False), (None, False)])
def test_updates_that_a_scaler_judges_have_to_be_whole(batches: int | None, offered: bool) -> None:
    scaled = replace(FOUND, grad_scaler=True, obstacles={"no_sync": ""}, facts={"no_sync": {"passes": 4}})
    proposal = BY_ID["no-sync"].propose(replace(scaled, epoch_batches=batches))
    assert isinstance(proposal, Offer) is offered
    assert settings("no-sync", replace(scaled, grad_scaler=False, epoch_batches=batches))


def test_lists_of_tensors_where_no_step_is_fused() -> None:
    obstacles = {"fused_optimizer": "torch has no fused `NAdam`", "foreach_optimizer": ""}
    assert settings("fused-optimizer", replace(FOUND, obstacles=obstacles)) == [{"foreach_optimizer": True}]
    already = {"fused_optimizer": "torch has no fused `NAdam`", "foreach_optimizer": "already on"}
    assert refusal("fused-optimizer", replace(FOUND, obstacles=already)) == "torch has no fused `NAdam`"


@pytest.mark.parametrize(
    ("threads", "usable", "counts"),
    [(2, 2, [1]), (4, 4, [1, 2]), (1, 4, [2, 4]), (48, 4, [1, 2, 4]), (3, 3, [1]), (2, 1, [1]), (32, 64, [1, 64])],
)
def test_threads(threads: int, usable: int, counts: list[int]) -> None:
    for loop in (FOUND, BARE):
        found = replace(loop, threads=threads, usable_cpus=usable)
        assert settings("threads", found) == [{"intra_op_threads": count} for count in counts]


def test_threads_that_can_be_no_others() -> None:
    assert "one usable CPU" in refusal("threads", replace(BARE, threads=1, usable_cpus=1))
    assert "on a device" in refusal("threads", ON_GPU)


UNITS = {"levels": ["high"], "matrices": True, "contradictory": False}


def precise(found: Found, own: dict[str, Any] | None = None, **changed: Any) -> Found:
    return replace(found, own=own or {}, facts={"float32_precision": {**UNITS, **changed}})


def test_precision_of_float32() -> None:
    high, medium = ({"float32_precision": level} for level in ("high", "medium"))
    assert settings("float32-precision", precise(ON_GPU)) == [high]
    assert settings("float32-precision", precise(FOUND, levels=["medium"])) == [medium]
    assert settings("float32-precision", precise(BARE, levels=["high", "medium"])) == [high, medium]
    both = ["high", "medium"]
    assert settings("float32-precision", precise(FOUND, {"float32_precision": "high"}, levels=both)) == [medium]


def test_convolutions_that_may_not_be_in_tensorfloat32() -> None:
    off = {"cudnn_allow_tf32": False}
    allowed = {"cudnn_allow_tf32": True}
    assert settings("float32-precision", precise(ON_GPU, off)) == [{"float32_precision": "high", **allowed}]
    assert settings("float32-precision", precise(ON_GPU, off, matrices=False)) == [
        {"float32_precision": "high", **allowed}
    ]
    assert settings("float32-precision", precise(ON_GPU, {**off, "float32_precision": "medium"})) == [allowed]


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (ON_GPU, "could not be read"),
        (precise(replace(ON_GPU, autocast="bfloat16")), "already on: the forward pass runs under autocast (bfloat16)"),
        (precise(ON_GPU, levels=[]), "the GPU has no units with which torch could multiply in Tensor"),
        (precise(FOUND, levels=[]), "the processor has no units"),
        (precise(replace(FOUND, device="mps:0"), levels=[]), "the device has no units"),
        (precise(ON_GPU, contradictory=True), "itself sets the precision of one backend"),
        (precise(ON_GPU, {"float32_precision": "high"}), 'already on: `torch.set_float32_matmul_precision("high")`'),
        (precise(ON_GPU, {"float32_precision": "medium"}), "already on"),
        (precise(ON_GPU, matrices=False), "no layer of the model multiplies float32 matrices"),
    ],
)
def test_precision_that_brings_nothing(found: Found, reason: str) -> None:
    assert reason in refusal("float32-precision", found)


LAYOUT = {"weights": 4, "contiguous": 3, "channels_last": 0, "obstacle": ""}


def laid_out(found: Found, **changed: Any) -> Found:
    return replace(found, facts={"channels_last": {**LAYOUT, **changed}})


def test_channels_last() -> None:
    for found in (FOUND, BARE, ON_GPU):
        assert settings("channels-last", laid_out(found)) == [{"channels_last": True}]
    # Kernels of one pixel lie in both layouts: what counts are the pictures then.
    assert settings("channels-last", laid_out(FOUND, contiguous=0))
    # A part of the weights is not laid out so yet.
    assert settings("channels-last", laid_out(FOUND, channels_last=2))


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (replace(FOUND, has_root_module=False), "no call of a module with trainable parameters"),
        (FOUND, "could not be seen"),
        (laid_out(FOUND, weights=0), "the model has no 2-D convolutions"),
        (laid_out(FOUND, contiguous=0, channels_last=3), "already on"),
        (laid_out(FOUND, obstacle="the model is nailed down"), "the model is nailed down"),
        (laid_out(replace(FOUND, device="mps:0")), "CPUs and CUDA"),
    ],
)
def test_channels_last_that_can_t_be_tried(found: Found, reason: str) -> None:
    assert reason in refusal("channels-last", found)


def test_half_precision_is_for_devices_with_units_for_it() -> None:
    assert settings("amp-bf16", FOUND) == [{"autocast": "bfloat16"}]
    assert "CPU" in refusal("amp-fp16", FOUND)


def test_memory_is_kept_in_windows_where_it_can_be_switched(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*allocator.KEEPING, "LD_PRELOAD"):
        monkeypatch.delenv(name, raising=False)
    assert settings("allocator", FOUND) == [{"allocator": "glibc-keeps"}], "nobody has looked: a process starts with it"
    told = replace(FOUND, facts={"kept_memory": {"obstacle": ""}})
    assert settings("allocator", told) == [{"kept_memory": True}]
    assert knobs.variables({"kept_memory": True}) == allocator.KEEPING
    other = replace(FOUND, facts={"kept_memory": {"obstacle": "another memory allocator is loaded"}})
    assert refusal("allocator", other) == "another memory allocator is loaded"
    assert "device" in refusal("allocator", replace(told, device="cuda:0"))
    monkeypatch.setattr(allocator, "installed", lambda name: None)
    assert "is installed here" in refusal("preloaded-allocator", told)
    monkeypatch.setattr(allocator, "installed", lambda name: "/lib/lib.so" if name == "tcmalloc" else None)
    assert settings("preloaded-allocator", told) == [{"allocator": "tcmalloc"}]
    monkeypatch.setenv("LD_PRELOAD", "/usr/lib/libjemalloc.so.2")
    for each in ("allocator", "preloaded-allocator"):
        assert refusal(each, told) == "already on: `jemalloc` is set"
