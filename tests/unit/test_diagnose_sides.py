"""Rules that have more than one side, and the places that findings name."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.diagnosable import (
    BLUR,
    BLUR_LISTING,
    BUSY_WORKERS,
    BY_ID,
    FILE,
    FOUND,
    GETITEM,
    IDLE_WORKERS,
    ITEM,
    LARGE,
    LEAKING,
    MB,
    REMOTE,
    SMALL,
    STEPS,
    TORCH,
    TRAINING,
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
from tests.unit.test_diagnose_rules import CASES

from bottleneck_doctor.diagnose import diagnose
from bottleneck_doctor.documents.report import (
    EpochPause,
    GarbageCollection,
    HotFunction,
    Noise,
    Operator,
    Phases,
    PhaseTable,
    Site,
    Speedup,
    TransformCost,
    Workers,
)
from bottleneck_doctor.runtime.wire import messages

FOREIGN = replace(BLUR[0], name="ColorJitter", file=TORCH.replace("torch/", "torchvision/transforms.py"))
LOADER = messages.Site(FILE, 50)
CALLED = Site(file=FILE, line=20)


@pytest.mark.parametrize(
    ("transform", "fetch_site", "site", "told"),
    [
        (
            replace(FOREIGN, made_file=FILE, made_line=7),
            Site(file=FILE, line=20),
            7,
            "`ColorJitter` (train.py, line 7)",
        ),
        (FOREIGN, Site(file=FILE, line=20), 21, "`ColorJitter` (called from train.py, line 21)"),
        (FOREIGN, None, 50, "`ColorJitter` (of the loader made at train.py, line 50)"),
        (
            replace(BLUR[0], made_file=FILE, made_line=7),
            Site(file=FILE, line=20),
            33,
            "`RandomBlur` (train.py, line 33)",
        ),
    ],
)
def test_a_transform_is_named_with_the_line_that_its_author_would_change(
    transform: TransformCost, fetch_site: Site | None, site: int, told: str
) -> None:
    evidence = healthy(WAITING, loop=loading(transforms=[transform], fetch_site=fetch_site))
    evidence = profiled(evidence, lines=listings(GETITEM, BLUR_LISTING, TRAINING))
    found = finding("slow-transform", replace(evidence, found=replace(evidence.found, loader_site=LOADER)))
    assert found is not None
    assert found.site == Site(file=FILE, line=site)
    assert found.sentence.startswith(told + " takes ")


@pytest.mark.parametrize(
    ("name", "module", "site", "told"),
    [
        ("default_collate", "torch.utils.data._utils.collate", None, "torch's own collate function"),
        ("Collater", "torch_geometric.loader.dataloader", 50, "`Collater` of torch_geometric (train.py, line 50)"),
        ("", "", 50, "the loader's collate function (train.py, line 50)"),
    ],
)
def test_a_library_s_collate_function_is_not_called_torch_s(
    name: str, module: str, site: int | None, told: str
) -> None:
    loop = loading(collate_ms=30.0, collate_name=name, collate_module=module)
    evidence = healthy(WAITING, loop=loop)
    found = finding("slow-collate", replace(evidence, found=replace(evidence.found, loader_site=LOADER)))
    assert found is not None
    assert found.sentence.startswith(f"Putting samples together into a batch, by {told}, takes ")
    assert (found.site.line if found.site is not None else None) == site


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


def test_the_first_step_tells_the_start_before_sessions_do_and_caches_are_made_once() -> None:
    late = healthy(steps=None, setup_seconds=[30.0, 20.0, 25.0])
    assert late.first_step_seconds == 20.0, "the first start had something to do that later ones had not"
    assert replace(late, found=replace(FOUND, setup_seconds=12.0)).first_step_seconds == 12.0
    assert replace(late, steps=STEPS).first_step_seconds == 4.0
    first_of_all = replace(STEPS, first_step_seconds=29.0)
    assert replace(late, steps=first_of_all).first_step_seconds == 20.0


def test_python_in_loading_and_between_steps_is_not_the_passes() -> None:
    evidence = healthy(phases=shares(data_wait=0.5, between=0.3))
    few = [Operator(name="aten::conv2d", calls=100, cpu_ms=200.0, device_ms=0.0, share=0.2)]
    assert finding("python-bound", profiled(evidence, device=operators(operators=few))) is None


@pytest.mark.parametrize("identifier", ["many-small-files", "network-file-system", "cold-cache"])
def test_what_nothing_explains_is_not_taken_for_reading_files(identifier: str) -> None:
    """A sleep in `__getitem__` that opens a file as well: neither transform nor decoder, and not reading either."""
    files = REMOTE if identifier == "network-file-system" else SMALL if identifier == "many-small-files" else LARGE
    evidence = healthy(WAITING, loop=loading(files=files), utilization=use(main={"read_bytes": 1e9}))
    unseen = diagnose(profiled(evidence, lines=None), [BY_ID[identifier]])
    assert unseen.findings == []
    assert "no line profile shows" in unseen.not_judged[0].reason
    asleep = listing("Pets.__getitem__", 20, ('x = open(path, "rb").read()', 0.2), ("time.sleep(0.05)", 0.8))
    assert finding(identifier, profiled(evidence, lines=listings(asleep))) is None
    asked = listing("Pets.__getitem__", 20, ("x = urlopen(address).read()", 0.9), ("return x", 0.1))
    assert finding(identifier, profiled(evidence, lines=listings(asked))) is None


def test_a_library_s_dataset_is_seen_to_read_by_the_functions_that_samples_end_in() -> None:
    loop = loading(files=SMALL, fetch_site=None)
    folder = "/x/site-packages/torchvision/datasets/folder.py"
    found = healthy(WAITING, loop=loop)
    reads = profiled(found, lines=None, sampling=sampled(fetch=[node("pil_loader", folder, 300, count=9)]))
    assert finding("many-small-files", reads) is not None
    maps = profiled(found, lines=None, sampling=sampled(fetch=[node("resize", "/x/PIL/Image.py", 9, count=9)]))
    assert finding("many-small-files", maps) is None


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
    first = 0.8 + STEPS.wait_mean_ms / 1000
    start = EpochPause(
        seen=3, seconds=first, evaluation=0.0, saving=0.0, first_batch=first, rest=0.0, first_batches_seen=3
    )
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


# -- a share is measured, or it is not shown -------------------------------------------------------------------------


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


# -- what was seen once is not spoken of ------------------------------------------------------------------------------


def pause(**given: float) -> EpochPause:
    parts = {"evaluation": 0.0, "saving": 0.0, "first_batch": 0.0, "rest": 0.0, **given}
    seen, first = int(parts.pop("seen", 3)), int(parts.pop("first_batches_seen", 0))
    return EpochPause(seen=seen, seconds=sum(parts.values()), first_batches_seen=first, **parts)


def test_the_start_of_an_epoch_that_one_window_met_is_no_pause_between_epochs() -> None:
    """Windows of short epochs took 11 s for the warm-up of one process; real pauses were 1 s."""
    once = healthy(epoch_pause=None, windows=[window(0, turn_seconds=11.0), window(1), window(2)])
    made = diagnose(once, [BY_ID["slow-epoch-turn"]])
    assert made.findings == []
    assert [each.id for each in made.not_judged] == ["slow-epoch-turn"]
    often = replace(once, windows=[window(index, turn_seconds=cost) for index, cost in enumerate((11.0, 1.5, 1.4))])
    found = finding("slow-epoch-turn", often)
    assert found is not None
    assert found.evidence["pause_seconds"] == 1.5, "and of several the one in the middle"


def test_one_pause_is_not_taken_for_all_of_them() -> None:
    assert diagnose(healthy(epoch_pause=pause(seen=1, rest=10.0), windows=[]), [BY_ID["slow-epoch-turn"]]).not_judged
    found = finding("slow-epoch-turn", healthy(epoch_pause=pause(seen=2, rest=10.0), windows=[]))
    assert found is not None
    assert found.evidence["pause_seconds"] == 10.0


def test_a_first_batch_that_was_never_timed_is_no_part_of_the_pause() -> None:
    found = finding("slow-epoch-turn", healthy(epoch_pause=pause(rest=5.0, first_batch=11.0), windows=[]))
    assert found is not None
    assert found.evidence["pause_seconds"] == 5.0
    assert "first batch" not in found.sentence


def test_a_start_of_epochs_that_comes_out_below_nothing_is_nothing() -> None:
    early = healthy(epoch_pause=None, windows=[window(index, turn_seconds=-0.2) for index in range(3)])
    assert early.pause_seconds == 0.0
    assert early.in_steps == 1.0


@pytest.mark.parametrize("sessions", [1, 2])
def test_no_finding_claims_what_too_few_processes_say(sessions: int) -> None:
    def few(count: int, **others: float) -> Workers:
        made = curve(count, **others)
        return replace(
            made,
            curve=[
                each if each.is_baseline else replace(each, speedup=replace(each.speedup, sessions=sessions))
                for each in made.curve
            ],
        )

    assert finding("too-few-workers", healthy(WAITING, loop=in_workers(1), workers=few(1, w4=2.0))) is None
    assert finding("too-many-workers", healthy(0.2, loop=in_workers(8), workers=few(8, w2=1.25))) is None
    cheap = in_workers(fetch_ms=0.3, collate_ms=0.2, hand_over_ms=1.5, bytes_per_batch=64.0 * 1024)
    found = finding("memory-data-needs-no-workers", healthy(WAITING, loop=cheap, workers=few(2, w0=2.0)))
    assert found is not None
    assert "as fast" not in found.sentence


def test_a_loop_without_a_period_is_judged_by_two_windows() -> None:
    """A rollout fell into the window of phases, and the samples of the stack say that it is a tenth."""
    odd = replace(FOUND, periodic=False)
    evidence = healthy(phases=shares(between=0.6), found=odd)
    work = [node("step", FILE, 90, count=100, own=True)]
    assert finding("work-between-steps", profiled(evidence, sampling=sampled(between=work))) is not None
    assert finding("work-between-steps", profiled(evidence, sampling=sampled())) is None
    assert diagnose(profiled(evidence, sampling=None), [BY_ID["work-between-steps"]]).not_judged


# -- words ----------------------------------------------------------------------------------------------------------


def test_what_is_not_explained_is_told_in_the_profile_s_own_words() -> None:
    """An environment of a rollout: no callback, no metric, no logging."""
    work = [node("step", FILE, 90, node("simulate", "/x/site-packages/gym/core.py", 7, count=50), own=True)]
    evidence = profiled(healthy(phases=shares(between=0.5)), sampling=sampled(between=work), lines=None)
    found = finding("work-between-steps", evidence)
    assert found is not None
    assert "`simulate` (core.py)" in found.sentence
    for guess in ("callback", "metric", "logging"):
        assert guess not in found.sentence


def test_the_line_of_the_loop_is_not_the_place_where_a_library_makes_batches() -> None:
    """A torchvision dataset with a lone transform: nothing of the user's lies below the line that asks for a batch."""
    library = node("__getitem__", "/x/site-packages/torchvision/datasets/mnist.py", 140, count=90)
    fetching = node("fetch", TORCH + "utils/data/_utils/fetch.py", 50, library)
    tree = node("main", "", 0, node("train", FILE, 51, fetching, count=2, own=True))
    sampling = replace(sampled(), trees={"main": tree})
    made_at = replace(FOUND, loader_site=messages.Site(FILE, 80))
    evidence = healthy(WAITING, loop=loading(fetch_site=None), found=made_at)
    found = finding("slow-fetch", profiled(evidence, sampling=sampling, lines=None))
    assert found is not None
    assert found.site == Site(file=FILE, line=80), "the loader is made there, and line 51 only asks for batches"
    assert "`__getitem__` (mnist.py)" in found.sentence


def test_a_training_process_that_makes_its_batches_is_seen_to_wait_or_to_compute() -> None:
    """A sleep in `__getitem__` without workers, and the same time spent computing."""
    asleep = finding("workers-io-bound", healthy(WAITING, loop=loading(computing=0.05)))
    assert asleep is not None
    assert "computes 5 % of the time and waits for the rest" in asleep.sentence.replace("5.0", "5")
    assert "a sleep" in asleep.sentence
    assert asleep.site == Site(file=FILE, line=21)
    assert finding("workers-io-bound", healthy(WAITING, loop=loading(computing=0.97))) is None
    unknown = diagnose(healthy(WAITING, loop=loading()), [BY_ID["workers-io-bound"]])
    assert unknown.not_judged, "and not taken for either where nobody looked"
    full = healthy(WAITING, loop=loading(computing=0.05), utilization=use(cores_busy=3.95))
    assert diagnose(full, [BY_ID["workers-io-bound"]]).not_judged, "it may have waited for a core"
    ready = replace(full, loading=[loading(computing=0.05, delayed=0.02)])
    assert finding("workers-io-bound", ready) is not None, "it did not wait for a core, whoever had them"
    queued = replace(full, loading=[loading(computing=0.3, delayed=0.6)])
    assert finding("workers-io-bound", replace(queued, utilization=use())) is None


def test_what_workers_say_of_their_computing_is_believed_before_what_was_seen_from_outside() -> None:
    busy = healthy(WAITING, loop=in_workers(computing=0.98), utilization=use(workers=IDLE_WORKERS))
    assert finding("workers-io-bound", busy) is None
    asleep = healthy(WAITING, loop=in_workers(computing=0.02), utilization=None)
    assert finding("workers-io-bound", asleep) is not None
    queued = healthy(WAITING, loop=in_workers(computing=0.4, delayed=0.55), utilization=use(workers=BUSY_WORKERS))
    assert finding("workers-io-bound", queued) is None, "they stood ready and had no core"
    assert finding("workers-cpu-bound", queued) is not None


def test_a_forward_pass_of_no_module_is_no_work_between_the_steps() -> None:
    """Weights and slices of tensors: what nobody calls as a module is seen as operations only."""
    bare = replace(FOUND, has_root_module=False, has_loader=False)
    seen = Phases(
        data_wait=0.0, host_to_device=0.0, forward=0.0, backward=0.5, optimizer=0.0, zero_grad=0.0, between=0.5
    )
    evidence = healthy(phases=seen, found=bare)
    assert finding("work-between-steps", evidence) is None, "operations take 95 % of the time"
    computes = finding("compute-bound", evidence)
    assert computes is not None
    assert "take 95 % of the time (45 %, 50 % and 0 %)" in computes.sentence.replace("\u202f", " ")
    few = [Operator(name="aten::mm", calls=100, cpu_ms=550.0, device_ms=0.0, share=0.55)]
    loops = finding("work-between-steps", profiled(evidence, device=operators(operators=few)))
    assert loops is not None
    assert loops.evidence["between_share"] == pytest.approx(0.45)
    assert loops.site is None, "the hottest line may be the forward pass"
    unknown = diagnose(profiled(evidence, device=None), [BY_ID["work-between-steps"]])
    assert unknown.not_judged


def test_the_first_batch_of_an_epoch_counts_for_what_it_takes_longer_than_others() -> None:
    """Without workers every batch is waited for: the first of an epoch as long as the others, and no longer."""
    slow = replace(STEPS, wait_mean_ms=600.0)
    made_alike = healthy(WAITING, steps=slow, epoch_pause=pause(first_batch=0.61, first_batches_seen=4), windows=[])
    assert made_alike.pause_seconds == pytest.approx(0.01)
    started = healthy(WAITING, steps=slow, epoch_pause=pause(first_batch=5.6, first_batches_seen=4), windows=[])
    assert started.pause_seconds == pytest.approx(5.0)


def test_workers_at_a_lock_on_a_machine_that_others_keep_busy_are_not_too_many() -> None:
    full = use(workers={"cpu_user": 1.0}, count=8, cores_busy=3.95)
    waiting = healthy(WAITING, loop=in_workers(8, computing=0.15, delayed=0.5), utilization=full)
    assert finding("oversubscribed-cores", waiting) is None, "they use one core of four together"
    working = healthy(WAITING, loop=in_workers(8, computing=0.45, delayed=0.5), utilization=full)
    assert finding("oversubscribed-cores", working) is not None


@pytest.mark.parametrize(("collate_ms", "found"), [(50.0, "slow-collate"), (1.0, "input-bound")])
def test_a_wait_that_making_batches_does_not_account_for_has_no_part_of_it_for_its_cause(
    collate_ms: float, found: str
) -> None:
    """Timed windows waited 42 ms a batch, beside another program; in the one that looked closer batches took 1.9 ms."""
    made = diagnose(healthy(WAITING, loop=loading(collate_ms=collate_ms, fetch_ms=0.1, fetch_p95_ms=0.1)))
    assert made.findings[0].id == found


@pytest.mark.parametrize(("hand_over", "said"), [(189.0, "slow-hand-over"), (0.5, "too-many-workers")])
def test_workers_whose_batches_take_long_to_arrive_are_not_just_too_many(hand_over: float, said: str) -> None:
    """Batches of 128 MiB from one worker: none is twelve times as fast, and handing them over is why."""
    one = in_workers(1, fetch_ms=0.1, collate_ms=25.0, hand_over_ms=hand_over, idle=0.9)
    evidence = healthy(0.96, loop=one, workers=curve(1, w0=12.0), found=replace(FOUND, num_workers=1))
    found = {each.id for each in diagnose(evidence).findings}
    assert found & {"slow-hand-over", "too-many-workers"} == {said}


FLIPPED = replace(BLUR[0], name="RandomHorizontalFlip", ms_per_sample=2.5, share_of_fetch=0.5)


@pytest.mark.parametrize(
    ("there", "threads", "found"),
    [
        (0.03, 2, "oversubscribed-threads"),
        (1.5, 2, "slow-transform"),  # As slow in a worker: the work itself is slow.
        (0.03, 1, "slow-transform"),  # One thread waits for no other.
    ],
)
def test_work_that_is_slow_only_where_threads_wait_for_one_another(there: float, threads: int, found: str) -> None:
    """Beside a busy neighbour a flip took 2.7 ms in the training process, and 0.04 ms in a worker."""
    here = loading(transforms=[FLIPPED], fetch_ms=160.0, collate_ms=52.0)
    elsewhere = in_workers(
        setting={"num_workers": 2},
        transforms=[replace(FLIPPED, ms_per_sample=there)],
        collate_ms=3.0 if there < 1 else 50.0,
    )
    evidence = healthy(WAITING, loop=here, found=replace(FOUND, threads=threads))
    evidence = replace(evidence, loading=[here, elsewhere])
    first = diagnose(evidence).findings[0]
    assert first.id == found
    if found == "oversubscribed-threads":
        assert "`RandomHorizontalFlip` and putting samples together take 132 ms a batch" in first.sentence
        assert "4.0 ms in a worker" in first.sentence


@pytest.mark.parametrize(("wait", "first"), [(0.06, ["compute-bound", "slow-transform"]), (0.12, ["slow-transform"])])
def test_what_little_there_is_beside_computing_does_not_lead(wait: float, first: list[str]) -> None:
    """A classifier that computes 91 % of the time was told of a transform that takes 5 %, and of nothing else."""
    made = diagnose(profiled(healthy(wait, loop=loading(transforms=BLUR)), lines=listings(GETITEM, BLUR_LISTING)))
    assert [each.id for each in made.findings] == first


def test_a_ceiling_that_one_noisy_window_set_is_not_told_beside_computing() -> None:
    """`At 66 % of the speed with free data: computing is what limits it` contradicts itself."""
    noisy = {"synthetic": Speedup(estimate=1.5, low=0.2, high=9.0, pairs=2, sessions=1)}
    found = finding("compute-bound", healthy(ceilings=noisy))
    assert found is not None
    assert "free" not in found.sentence
    assert "of_ceiling" not in found.evidence


def test_steps_of_a_window_that_had_neighbours_are_not_taken_for_all_steps() -> None:
    """Half of them took 35 ms and two of 37 more than a second, where timed windows have 63 ms a step."""
    restless = replace(STEPS, mean_ms=250.0, p50_ms=35.0, p95_ms=1800.0, jitter=50.4, outliers=2, steps=37)
    made = diagnose(healthy(steps=restless), [BY_ID["step-jitter"]])
    assert made.findings == []
    assert "was disturbed" in made.not_judged[0].reason
    always = replace(restless, mean_ms=100.0)
    assert finding("step-jitter", healthy(steps=always)) is not None


@pytest.mark.parametrize("loop", [replace(FOUND, period=16), replace(FOUND, periodic=False)])
def test_steps_that_do_different_work_differ_in_length(loop: messages.Found) -> None:
    """Sixteen updates a rollout: the first of them holds the rollout, and takes a hundred times as long."""
    uneven = replace(STEPS, p50_ms=1.6, p95_ms=240.0, jitter=148.0, outliers=12)
    made = diagnose(healthy(steps=uneven, found=loop), [BY_ID["step-jitter"]])
    assert made.findings == []
    assert "may do different work" in made.not_judged[0].reason


def test_uneven_steps_beside_other_programs_are_not_the_training_s() -> None:
    uneven = replace(STEPS, p50_ms=80.0, p95_ms=200.0, jitter=2.5, outliers=12)
    busy = healthy(steps=uneven, utilization=use(others_cpu=1.3))
    made = diagnose(busy, [BY_ID["step-jitter"]])
    assert made.findings == []
    assert "other programs kept 1.3 cores busy" in made.not_judged[0].reason
    assert finding("step-jitter", healthy(steps=uneven, utilization=use(others_cpu=0.1))) is not None
    of_data = replace(uneven, wait_mean_ms=10.0, wait_p95_ms=125.0)
    late = healthy(0.5, steps=of_data, loop=loading(fetch_p95_ms=60.0), utilization=use(others_cpu=1.3))
    assert finding("step-jitter", late) is not None, "samples that take longer do so whoever runs beside"


def test_the_dataset_that_makes_a_sample_is_named_and_not_the_one_that_holds_it() -> None:
    wrapped = replace(FOUND, dataset_type="ConcatDataset")
    found = finding("slow-fetch", healthy(WAITING, found=wrapped))
    assert found is not None
    assert "`Pets.__getitem__` (train.py, line 21)" in found.sentence
    unlisted = finding("slow-fetch", profiled(healthy(WAITING, found=wrapped), lines=None))
    assert unlisted is not None
    assert "`__getitem__`" in unlisted.sentence
    assert "ConcatDataset" not in unlisted.sentence


def test_no_finding_claims_what_noise_keeps_the_verdict_from_claiming() -> None:
    """`num_workers=0` measured 1.10 (1.03 to 1.18) where nothing below 1.05 is claimed."""
    near = healthy(0.2, loop=in_workers(8), workers=curve(8, w2=1.10))
    assert finding("too-many-workers", near) is not None
    assert finding("too-many-workers", replace(near, noise=Noise(aa_ratio=None, floor=0.08))) is None


def test_the_line_that_calls_a_framework_s_trainer_is_not_where_its_callbacks_work() -> None:
    lightning = "/x/site-packages/lightning/"
    step = node(
        "run",
        lightning + "loops/fit_loop.py",
        100,
        node("_call_impl", TORCH + "nn/modules/module.py", 1500, count=20),
        node("backward", TORCH + "_tensor.py", 500, count=30),
        node("log_metrics", lightning + "loggers/csv_logs.py", 70, count=50),
    )
    fit = node("fit", lightning + "trainer/trainer.py", 500, step)
    tree = node("main", "", 0, node("main", FILE, 90, fit, own=True))
    sampling = replace(sampled(), trees={"main": tree})
    evidence = profiled(healthy(phases=shares(between=0.5)), sampling=sampling, lines=None)
    found = finding("work-between-steps", evidence)
    assert found is not None
    assert found.site is None, "nobody would change line 90, `trainer.fit(model)`, for what a logger does"
    assert "`log_metrics` (csv_logs.py)" in found.sentence
    callback = node("on_batch_end", FILE, 30, node("write", "/x/site-packages/x/w.py", 1, count=60), own=True)
    own = replace(step, children=[*step.children, callback])
    tree = node("main", "", 0, node("main", FILE, 90, replace(fit, children=[own]), own=True))
    found = finding("work-between-steps", profiled(evidence, sampling=replace(sampling, trees={"main": tree})))
    assert found is not None
    assert found.site == Site(file=FILE, line=30), "a callback of the user's own is a place"
    assert "most of that work is done at train.py, line 30" in found.sentence
    seldom = replace(own, children=[*step.children, replace(callback, count=8, children=[])])
    tree = node("main", "", 0, node("main", FILE, 90, replace(fit, children=[seldom]), own=True))
    found = finding("work-between-steps", profiled(evidence, sampling=replace(sampling, trees={"main": tree})))
    assert found is not None
    assert found.site is None, "8 of 58 samples are not where it goes by"


def test_the_line_of_the_optimizer_is_not_that_of_another_phase() -> None:
    """One function holds the loop: the tree knows it by the line of its backward pass, the table by every line."""
    step = node("_multi_tensor_rmsprop", TORCH + "optim/rmsprop.py", 463, count=25)
    tree = node("main", "", 0, node("train", FILE, 114, node("backward", TORCH + "_tensor.py", 5, count=40), own=True))
    tree = replace(tree, children=[replace(tree.children[0], count=65, children=[*tree.children[0].children, step])])
    common = {"role": "main", "own_name": "train", "own_path": FILE}
    rows = [
        HotFunction(
            name="backward",
            path=TORCH + "_tensor.py",
            line=5,
            own_line=114,
            share=0.6,
            count=40,
            **common,  # type: ignore[arg-type]
        ),
        HotFunction(
            name="_multi_tensor_rmsprop",
            path=TORCH + "optim/rmsprop.py",
            line=463,
            own_line=117,
            share=0.4,
            count=25,
            **common,  # type: ignore[arg-type]
        ),
    ]
    sampling = replace(sampled(), trees={"main": tree}, functions=rows)
    evidence = profiled(healthy(phases=shares(optimizer=0.4)), sampling=sampling, lines=None)
    found = finding("slow-optimizer", evidence)
    assert found is not None
    assert found.site == Site(file=FILE, line=117)
    lines = [("def train():", 0.0), *[("x = 1", 0.0)] * 3, ("loss.backward()", 0.6), ("x = 2", 0.0), ("y = 2", 0.0)]
    listed = listing("train", 110, *lines, ("scaler.step(optimizer)", 0.4))
    at_loop = replace(evidence, found=replace(FOUND, backward_site=messages.Site(FILE, 114), forward_site=None))
    found = finding("slow-optimizer", profiled(at_loop, lines=listings(listed)))
    assert found is not None
    assert found.site == Site(file=FILE, line=117), "and not the hottest line of the function around it"
