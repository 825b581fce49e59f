"""Rules that have more than one side, and the places that findings name."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.diagnosable import (
    BLUR,
    BY_ID,
    FILE,
    FOUND,
    GETITEM,
    IDLE_WORKERS,
    ITEM,
    LEAKING,
    MB,
    SMALL,
    STEPS,
    TORCH,
    WAITING,
    curve,
    finding,
    healthy,
    in_workers,
    listing,
    listings,
    loading,
    node,
    on_gpu,
    operators,
    profiled,
    sampled,
    shares,
    use,
    window,
)

from bottleneck_doctor.diagnose import diagnose
from bottleneck_doctor.result import (
    EpochPause,
    GarbageCollection,
    HotFunction,
    Operator,
    PhaseTable,
    Site,
    TransformCost,
)


def test_a_library_s_transform_is_named_with_the_user_s_line() -> None:
    foreign = [replace(BLUR[0], name="ColorJitter", file=TORCH.replace("torch/", "torchvision/transforms.py"))]
    found = finding("slow-transform", healthy(WAITING, loop=loading(transforms=foreign)))
    assert found is not None
    assert found.site == Site(file=FILE, line=21)


def test_a_hot_line_is_followed_into_the_function_that_it_calls() -> None:
    work = listing("work", 5, ("def work(index):", 0.0), ("for _ in range(9):", 0.4), ("total += heavy(index)", 0.6))
    found = finding("slow-fetch", profiled(healthy(WAITING), lines=listings(GETITEM, work)))
    assert found is not None
    assert found.site == Site(file=FILE, line=7)


def test_without_listings_stacks_name_the_line() -> None:
    deeper = sampled(fetch=[node("work", FILE, 9, node("sleep", "/usr/lib/python3.11/x.py", 3, count=9), own=True)])
    found = finding("slow-fetch", profiled(healthy(WAITING), lines=None, sampling=deeper))
    assert found is not None
    assert found.site == Site(file=FILE, line=9)


def test_work_between_without_listings_is_named_by_the_table_of_functions() -> None:
    row = HotFunction(
        role="main", name="train", path=FILE, line=56, own_name="train", own_path=FILE, own_line=56, share=0.4, count=40
    )
    evidence = profiled(healthy(phases=shares(between=0.4)), lines=None, sampling=sampled(functions=[row]))
    found = finding("work-between-steps", evidence)
    assert found is not None
    assert found.site == Site(file=FILE, line=56), "the tree's line of the training function is that of the loop"


def test_work_between_is_followed_into_a_callback() -> None:
    trainer = listing(
        "Trainer.fit",
        50,
        ("def fit(self, loader):", 0.0),
        ("for batch in loader:", 1.0),
        ("loss = self.model(batch)", 1.0),
        ("loss.backward()", 1.0),
        ("for callback in self.callbacks:", 0.1),
        ("callback.on_step_end(self)", 6.0),
    )
    light = listing("Mean.on_step_end", 10, ("self.total += 1", 0.1))
    heavy = listing("Spectrum.on_step_end", 30, ("weights = self.weights()", 0.5), ("values = svd(weights)", 5.3))
    found = finding(
        "work-between-steps",
        profiled(healthy(phases=shares(between=0.6)), lines=listings(trainer, light, heavy)),
    )
    assert found is not None
    assert found.site == Site(file=FILE, line=31)


def test_collecting_garbage_is_not_counted_as_work_between_as_well() -> None:
    evidence = healthy(
        phases=shares(between=0.5), garbage=GarbageCollection(collections=9, ms_per_step=30.0, share=0.3)
    )
    made = {each.id: each.weight for each in diagnose(evidence).findings}
    assert made["garbage-collection"] > made["work-between-steps"]
    assert finding("work-between-steps", replace(evidence, phases=PhaseTable(baseline=shares(between=0.38)))) is None


def test_a_loop_around_item_calls_counts_as_theirs() -> None:
    loop = listing(
        "train",
        50,
        ("for batch in loader:", 1.0),
        ("loss = model(batch)", 1.0),
        ("loss = model(batch)", 1.0),
        ("loss.backward()", 1.0),
        ("for index in range(1024):", 1.5),
        ("right += guesses[index].item()", 4.0),
    )
    evidence = profiled(healthy(phases=shares(between=0.6), synchronising=[ITEM]), lines=listings(loop))
    assert finding("synchronising-calls", replace(evidence, synchronising=[replace(ITEM, per_step=1.0)])) is not None
    few = finding("synchronising-calls", replace(evidence, synchronising=[replace(ITEM, per_step=2, ms_per_step=20.0)]))
    many = finding("synchronising-calls", replace(evidence, synchronising=[replace(ITEM, ms_per_step=8.0)]))
    assert few is not None
    assert many is not None
    assert few.weight == pytest.approx(0.2)
    assert many.weight == pytest.approx(0.6 * 4.0 / 5.0), "the part of the work between that the line has"
    assert diagnose(replace(evidence, synchronising=[replace(ITEM, ms_per_step=20.0)])).findings[0].id == (
        "synchronising-calls"
    )


def test_on_a_device_a_synchronising_call_costs_what_the_device_stands_still_for() -> None:
    waiting = replace(ITEM, per_step=1.0, ms_per_step=90.0)
    assert finding("synchronising-calls", on_gpu(healthy(synchronising=[waiting]), idle_share=0.02)) is None
    lost = finding("synchronising-calls", on_gpu(healthy(synchronising=[waiting]), idle_share=0.3))
    assert lost is not None
    assert lost.weight == pytest.approx(0.3)


def test_more_threads_of_torch_than_cores_are_found_without_workers() -> None:
    found = finding("oversubscribed-threads", healthy(found=replace(FOUND, threads=32)))
    assert found is not None
    assert "torch computes with 32 threads on 4 usable cores" in found.sentence
    assert found.weight == pytest.approx(0.96 * (1 - 4 / 32), abs=0.01)
    assert diagnose(healthy(found=replace(FOUND, threads=32))).findings[0].id == "oversubscribed-threads"


def test_workers_that_sleep_are_short_of_nothing_but_workers() -> None:
    evidence = healthy(WAITING, loop=in_workers(), utilization=use(workers=IDLE_WORKERS), workers=curve(2, w8=2.2))
    ids = [each.id for each in diagnose(evidence).findings]
    assert ids[0] == "workers-io-bound"
    assert "too-few-workers" in ids


def test_workers_waiting_in_a_transform_are_a_symptom_of_it() -> None:
    evidence = healthy(WAITING, loop=in_workers(transforms=BLUR), utilization=use(workers=IDLE_WORKERS))
    ids = [each.id for each in diagnose(evidence).findings]
    assert ids.index("slow-transform") < ids.index("workers-io-bound")


def test_sampled_decoding_is_bounded_by_what_its_line_takes() -> None:
    sleepy = listing(
        "Pets.__getitem__", 20, ("def __getitem__(self, index):", 0.0), ("x = Image.open(f)", 0.05), ("rest(x)", 0.95)
    )
    evidence = profiled(
        healthy(WAITING),
        lines=listings(sleepy),
        sampling=sampled(fetch=[node("load", "/x/site-packages/PIL/ImageFile.py", 300, count=9)]),
    )
    assert finding("slow-decode", evidence) is None


def test_rare_slow_samples_are_jitter_before_they_are_a_slow_fetch() -> None:
    steps = replace(STEPS, mean_ms=100.0, p50_ms=5.0, p95_ms=900.0, jitter=180.0, wait_mean_ms=95.0, wait_p95_ms=890.0)
    evidence = replace(healthy(0.95, loop=loading(fetch_ms=90.0, fetch_p95_ms=880.0)), steps=steps)
    made = diagnose(evidence)
    assert [each.id for each in made.findings[:2]] == ["step-jitter", "slow-fetch"]
    assert "batches that take 880 ms to fetch instead of 90 ms on average" in made.findings[0].sentence


def test_bursts_of_workers_are_not_jitter() -> None:
    steps = replace(STEPS, p50_ms=20.0, p95_ms=300.0, jitter=15.0, wait_mean_ms=80.0, wait_p95_ms=290.0)
    assert finding("step-jitter", replace(healthy(0.8, loop=in_workers(4)), steps=steps)) is None


def test_memory_that_levels_off_is_not_growth() -> None:
    filling = [sum(600.0 / 4**each for each in range(count)) * MB for count in range(1, 8)]
    windows = [window(index) for index in range(7)]
    assert finding("memory-growth", healthy(windows=windows, utilization=use(resident=filling))) is None


def test_memory_growth_is_not_judged_on_few_windows() -> None:
    made = diagnose(healthy(utilization=use(resident=LEAKING[:2])), [BY_ID["memory-growth"]])
    assert [each.id for each in made.not_judged] == ["memory-growth"]


def test_windows_of_other_settings_and_modes_say_nothing_of_the_training_as_written() -> None:
    other = [window(0, setting={"num_workers": 4}), window(1, mode="lines"), window(2, mode="phases"), window(3)]
    made = diagnose(healthy(windows=other, utilization=use(resident=LEAKING)), [BY_ID["memory-growth"]])
    assert [each.id for each in made.not_judged] == ["memory-growth"]


def test_pauses_between_epochs_make_what_steps_lose_weigh_less() -> None:
    pause = EpochPause(seen=3, seconds=10.0, evaluation=10.0, saving=0.0, first_batch=0.0, rest=0.0)
    half = finding("work-between-steps", healthy(phases=shares(between=0.4), epoch_pause=pause))
    assert half is not None
    assert half.weight == pytest.approx(0.2, abs=0.001)


def test_a_device_that_hides_the_wait_is_believed() -> None:
    evidence = on_gpu(healthy(0.6))
    assert evidence.wait == 0.6
    assert replace(evidence, phases=PhaseTable(baseline=shares(data_wait=0.02))).wait == 0.02


def test_the_first_step_tells_the_start_before_sessions_do() -> None:
    late = healthy(steps=None, setup_seconds=[30.0, 20.0, 25.0])
    assert late.first_step_seconds == 25.0
    assert replace(late, found=replace(FOUND, setup_seconds=12.0)).first_step_seconds == 12.0
    assert replace(late, steps=STEPS).first_step_seconds == 4.0


def test_python_in_loading_and_between_steps_is_not_the_passes() -> None:
    evidence = healthy(phases=shares(data_wait=0.5, between=0.3))
    few = [Operator(name="aten::conv2d", calls=100, cpu_ms=200.0, device_ms=0.0, share=0.2)]
    assert finding("python-bound", profiled(evidence, device=operators(operators=few))) is None


def test_without_listings_small_files_are_named_by_the_line_that_was_sampled() -> None:
    evidence = profiled(healthy(WAITING, loop=loading(files=SMALL)), lines=None)
    found = finding("many-small-files", evidence)
    assert found is not None
    assert found.site == Site(file=FILE, line=21), "and not by the line on which the method begins"


def test_without_listings_a_slow_transform_is_named_by_the_line_that_was_sampled() -> None:
    blur = TransformCost(name="Blur", ms_per_sample=9.0, share_of_fetch=0.9, file=FILE, line=30)
    stacks = sampled(
        fetch=[
            node("__call__", FILE, 33, node("resize", "/lib/python3/site-packages/PIL/Image.py", 9, count=9), own=True)
        ]
    )
    evidence = profiled(healthy(WAITING, loop=loading(transforms=[blur])), lines=None, sampling=stacks)
    found = finding("slow-transform", evidence)
    assert found is not None
    assert found.site == Site(file=FILE, line=33), "and not the line on which its method begins"
    elsewhere = profiled(
        healthy(WAITING, loop=loading(transforms=[replace(blur, line=90)])), lines=None, sampling=stacks
    )
    found = finding("slow-transform", elsewhere)
    assert found is not None
    assert found.site == Site(file=FILE, line=90), "no stack passes through what begins there"


def test_the_start_of_epochs_that_are_timed_whole_counts_once() -> None:
    """Epochs of 100 steps that take a second, 800 ms of which wait for the first batch: they are no part of a step."""
    start = EpochPause(seen=3, seconds=0.8, evaluation=0.0, saving=0.0, first_batch=0.8, rest=0.0)
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
