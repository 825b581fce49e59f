"""Rules about waiting for data that have more than one side, and the places that they name."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.diagnosable import (
    BLUR,
    BLUR_LISTING,
    BUSY_WORKERS,
    BY_ID,
    CAMERA,
    FILE,
    FOUND,
    GETITEM,
    IDLE_WORKERS,
    LARGE,
    REMOTE,
    SMALL,
    TORCH,
    TRAINING,
    WAITING,
    curve,
    faster,
    finding,
    healthy,
    in_workers,
    listing,
    listings,
    loading,
    node,
    profiled,
    sampled,
    use,
)

from bottleneck_doctor.diagnose import Statement, diagnose
from bottleneck_doctor.diagnose._rule import portion
from bottleneck_doctor.documents.report import (
    CallNode,
    Noise,
    Site,
    TransformCost,
    Workers,
)
from bottleneck_doctor.runtime.wire import messages

FOREIGN = replace(BLUR[0], name="ColorJitter", file=TORCH.replace("torch/", "torchvision/transforms.py"))


LOADER = messages.Site(FILE, 50)


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
        (FOREIGN, None, 50, "`ColorJitter` (used by the loader made at train.py, line 50)"),
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
    assert found.sentence.startswith(f"Collating takes 75 % of making a batch: 30 ms in {told}. ")
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


def test_the_dataset_that_makes_a_sample_is_named_and_not_the_one_that_holds_it() -> None:
    wrapped = replace(FOUND, dataset_type="ConcatDataset")
    found = finding("slow-fetch", healthy(WAITING, found=wrapped))
    assert found is not None
    assert "`Pets.__getitem__` (train.py, line 21)" in found.sentence
    unlisted = finding("slow-fetch", profiled(healthy(WAITING, found=wrapped), lines=None))
    assert unlisted is not None
    assert "`__getitem__`" in unlisted.sentence
    assert "ConcatDataset" not in unlisted.sentence


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


def seeding(*ends: tuple[str, int]) -> list[CallNode]:
    """What a dataset of a library's spends its samples on: seeding, which ends in many functions."""
    queued = [node(name, f"/usr/lib/python3.11/{name}.py", 3, count=count) for name, count in ends]
    inner = node("_manual_seed_impl", TORCH + "random.py", 77, *queued)
    return [node("manual_seed", TORCH + "random.py", 59, inner), node("randn", TORCH + "functional.py", 9, count=30)]


def test_a_function_that_calls_many_is_named_in_their_place() -> None:
    many = sampled(fetch=seeding(("checkcache", 31), ("walk_stack", 20), ("format", 19)))
    found = finding("slow-fetch", profiled(healthy(WAITING), lines=None, sampling=many))
    assert found is not None
    assert "In 70 % of the stack samples of making batches, `manual_seed` (random.py) was running." in found.sentence
    assert found.advice.startswith("`torch.manual_seed` seeds the generator of each kind of device.")


def test_a_function_in_which_most_ends_is_named_itself() -> None:
    one = sampled(fetch=[node("randn", TORCH + "functional.py", 9, node("inner", TORCH + "inner.py", 3, count=9))])
    found = finding("slow-fetch", profiled(healthy(WAITING), lines=None, sampling=one))
    assert found is not None
    assert "`inner` (inner.py) was running" in found.sentence
    assert found.advice.startswith("Do this work once")


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


@pytest.mark.parametrize(("decoding", "found"), [(None, True), (0.9, False)])
def test_what_pillow_was_seen_to_decode_and_convert_is_no_reading(decoding: float | None, found: bool) -> None:
    """Stacks see the decoder in six samples of ten; the rest of that line copies the picture, and opens the file."""
    lines = ("def __getitem__(self, index):", 0.0), ('picture = Image.open(file).convert("RGB")', 1.0)
    stacks = [node("load", "/x/site-packages/PIL/ImageFile.py", 300, count=6)]
    stacks += [node("convert", "/x/site-packages/PIL/Image.py", 900, count=4)]
    evidence = profiled(
        healthy(WAITING, loop=loading(files=SMALL, decoding=decoding)),
        lines=listings(listing("Pets.__getitem__", 20, *lines)),
        sampling=sampled(fetch=stacks),
    )
    assert (finding("many-small-files", evidence) is not None) is found
    assert finding("slow-decode", evidence) is not None


def test_a_line_that_decodes_and_transforms_is_no_decoding_as_a_whole() -> None:
    """As a function that a data set of Hugging Face calls: half of the line is decoding, as was timed where it is."""
    line = 'rows["pixels"] = [augment(image.convert("RGB")) for image in rows["image"]]'
    evidence = profiled(
        healthy(WAITING, loop=loading(decoding=0.5)),
        lines=listings(listing("transform", 20, ("def transform(rows):", 0.0), (line, 1.0))),
        sampling=sampled(fetch=[node("transform", "/home/ada/train.py", 21, count=9)]),
    )
    found = finding("slow-decode", evidence)
    assert found is not None
    assert found.evidence["share_of_making"] < 0.55
    unseen = finding("slow-decode", replace(evidence, loading=healthy(WAITING, loop=loading()).loading))
    assert unseen is not None
    assert unseen.evidence["share_of_making"] > 0.9


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


@pytest.mark.parametrize(("collate_ms", "found"), [(50.0, "slow-collate"), (1.0, "input-bound")])
def test_a_wait_that_making_batches_does_not_account_for_has_no_part_of_it_for_its_cause(
    collate_ms: float, found: str
) -> None:
    """Timed windows waited 42 ms a batch, beside another program; in the one that looked closer batches took 1.9 ms."""
    made = diagnose(healthy(WAITING, loop=loading(collate_ms=collate_ms, fetch_ms=0.1, fetch_p95_ms=0.1)))
    assert made.findings[0].id == found


def test_workers_that_sleep_are_short_of_nothing_but_workers() -> None:
    evidence = healthy(WAITING, loop=in_workers(), utilization=use(workers=IDLE_WORKERS), workers=curve(2, w8=2.2))
    ids = [each.id for each in diagnose(evidence).findings]
    assert ids[0] == "workers-io-bound"
    assert "too-few-workers" in ids


def test_workers_waiting_in_a_transform_are_a_symptom_of_it() -> None:
    evidence = healthy(WAITING, loop=in_workers(transforms=BLUR), utilization=use(workers=IDLE_WORKERS))
    ids = [each.id for each in diagnose(evidence).findings]
    assert ids.index("slow-transform") < ids.index("workers-io-bound")


def test_a_training_process_that_makes_its_batches_is_seen_to_wait_or_to_compute() -> None:
    """A sleep in `__getitem__` without workers, and the same time spent computing."""
    asleep = finding("workers-io-bound", healthy(WAITING, loop=loading(computing=0.05)))
    assert asleep is not None
    assert "computes 5 % of the time and otherwise waits for storage" in asleep.sentence.replace("5.0", "5")
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


def test_workers_at_a_lock_on_a_machine_that_others_keep_busy_are_not_too_many() -> None:
    full = use(workers={"cpu_user": 1.0}, count=8, cores_busy=3.95)
    waiting = healthy(WAITING, loop=in_workers(8, computing=0.15, delayed=0.5), utilization=full)
    assert finding("oversubscribed-cores", waiting) is None, "they use one core of four together"
    working = healthy(WAITING, loop=in_workers(8, computing=0.45, delayed=0.5), utilization=full)
    assert finding("oversubscribed-cores", working) is not None


@pytest.mark.parametrize(("hand_over", "said"), [(189.0, "slow-hand-over"), (0.5, "too-many-workers")])
def test_workers_whose_batches_take_long_to_arrive_are_not_just_too_many(hand_over: float, said: str) -> None:
    """Batches of 128 MiB from one worker: none is twelve times as fast, and handing them over is why."""
    one = in_workers(1, fetch_ms=0.1, collate_ms=25.0, hand_over_ms=hand_over, idle=0.9)
    evidence = healthy(0.96, loop=one, workers=curve(1, w0=12.0), found=replace(FOUND, num_workers=1))
    found = {each.id for each in diagnose(evidence).findings}
    assert found & {"slow-hand-over", "too-many-workers"} == {said}


@pytest.mark.parametrize("sessions", [1])
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


def test_no_finding_claims_what_noise_keeps_the_verdict_from_claiming() -> None:
    """`num_workers=0` measured 1.10 (1.03 to 1.18) where nothing below 1.05 is claimed."""
    near = healthy(0.2, loop=in_workers(8), workers=curve(8, w2=1.10))
    assert finding("too-many-workers", near) is not None
    assert finding("too-many-workers", replace(near, noise=Noise(aa_ratio=None, floor=0.08))) is None


def test_more_threads_of_torch_than_cores_are_found_without_workers() -> None:
    found = finding("oversubscribed-threads", healthy(found=replace(FOUND, threads=32)))
    assert found is not None
    assert "torch computes with 32 threads on 4 usable cores" in found.sentence
    assert found.weight == pytest.approx(0.96 * (1 - 4 / 32), abs=0.01)
    assert diagnose(healthy(found=replace(FOUND, threads=32))).findings[0].id == "oversubscribed-threads"
    written = {"intra_op_threads": {"written": {"file": "/home/ada/train.py", "line": 107}}}
    found = finding("oversubscribed-threads", healthy(found=replace(FOUND, threads=32, facts=written)))
    assert found is not None
    assert found.site == Site(file="/home/ada/train.py", line=107)
    assert "torch computes with 32 threads (train.py, line 107) on 4 usable cores" in found.sentence


@pytest.mark.parametrize(
    ("others", "count", "gain", "said"),
    [
        (1.0, 1, 8.9, True),
        (1.0, 1, 1.05, False),  # Hardly worth it.
        (0.2, 1, 8.9, False),  # Nobody else needs the cores.
        (1.0, 8, 8.9, False),  # More threads are faster.
    ],
)
def test_threads_that_wait_because_other_programs_have_the_cores(
    others: float, count: int, gain: float, said: bool
) -> None:
    """Beside a program that kept one of two cores busy, one thread was 8.9 times as fast as two."""
    fewer = faster("threads", {"intra_op_threads": count}, gain)
    found = replace(FOUND, threads=4)
    evidence = replace(healthy(found=found, utilization=use(others_cpu=others)), fixes=[fewer])
    made = finding("oversubscribed-threads", evidence)
    assert (made is not None) is said
    if made is not None:
        assert "computes with 4 threads on 4 cores, of which other programs keep 1.0 busy" in made.sentence
        assert made.weight == pytest.approx(1 - 1 / 8.9)
        assert diagnose(evidence).findings[0].id == "oversubscribed-threads"
        # More parts of a setting may have been what helped.
        both = replace(fewer, setting={"intra_op_threads": 1, "num_workers": 2})
        assert finding("oversubscribed-threads", replace(evidence, fixes=[both])) is None


@pytest.mark.parametrize(
    ("threads", "count", "said"),
    [
        (1, 4, True),
        (4, 8, False),  # All cores are in use.
        (2, 1, False),  # Fewer threads are faster.
    ],
)
def test_cores_are_missed_only_where_more_threads_are_faster(threads: int, count: int, said: bool) -> None:
    more = faster("threads", {"intra_op_threads": count}, 1.5)
    evidence = replace(healthy(found=replace(FOUND, threads=threads)), fixes=[more])
    made = finding("unused-cores", evidence)
    assert (made is not None) is said
    if made is not None:
        assert diagnose(evidence).findings[0].id == "unused-cores"
        assert made.site is None
        # More parts of a setting may have been what helped.
        both = replace(more, setting={"intra_op_threads": count, "num_workers": 2})
        assert finding("unused-cores", replace(evidence, fixes=[both])) is None


def test_whoever_set_so_few_threads_is_named() -> None:
    fixes = [faster("threads", {"intra_op_threads": 4}, 1.5)]
    own = {"intra_op_threads": {"written": {"file": "/home/ada/train.py", "line": 7}}}
    made = finding("unused-cores", replace(healthy(found=replace(FOUND, threads=1, facts=own)), fixes=fixes))
    assert made is not None
    assert made.site == Site(file="/home/ada/train.py", line=7)
    assert "torch computes with 1 thread (train.py, line 7) on 4 usable cores." in made.sentence
    library = {"intra_op_threads": {"set_by": {"file": "/x/site-packages/trains/engine.py", "line": 40}}}
    made = finding("unused-cores", replace(healthy(found=replace(FOUND, threads=1, facts=library)), fixes=fixes))
    assert made is not None
    assert made.site is None
    assert "on 4 usable cores, as a library sets it (engine.py, line 40)." in made.sentence


@pytest.mark.parametrize(("loading", "said"), [(0, True), (2, False)])
def test_threads_that_wait_because_processes_of_the_same_program_have_the_cores(loading: int, said: bool) -> None:
    """Hogwild: each of two processes trains with two threads on two cores. Workers that load are none of these."""
    fewer = faster("threads", {"intra_op_threads": 1}, 2.8)
    usage = use(others_cpu=0.0, workers={"cpu_user": 1.9, "cpu_system": 0.1})
    evidence = healthy(found=replace(FOUND, threads=4), utilization=usage)
    evidence = replace(evidence, found=replace(evidence.found, num_workers=loading), fixes=[fewer])
    made = finding("oversubscribed-threads", evidence)
    assert (made is not None) is said
    if made is not None:
        assert "4 threads on 4 cores, of which other processes of this program keep 2.0 busy" in made.sentence
        assert "in each of these processes" in made.advice


@pytest.mark.parametrize(("delayed", "said"), [(0.9, True), (0.1, False), (None, False)])
def test_threads_that_give_way_to_one_another_wait_for_a_core_all_the_same(delayed: float | None, said: bool) -> None:
    """Eight of OpenBLAS on two cores were hardly ever taken off one, and stood ready 90 % of the time."""
    polite = use(workers={"threads": 10.0, "involuntary_switches": 20.0})
    evidence = healthy(WAITING, loop=in_workers(delayed=delayed), utilization=polite)
    found = BY_ID["oversubscribed-threads"].judge(evidence)
    assert isinstance(found, Statement) == said
    if isinstance(found, Statement):
        assert "its worker is ready but has no core 90 % of the time" in found.sentence


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
        assert "`RandomHorizontalFlip` and collating take 132 ms a batch" in first.sentence
        assert "In a worker, which computes with one, they take 4.0 ms" in first.sentence


def test_a_process_that_is_blocked_on_a_disk_is_said_to_wait_for_no_more_than_that() -> None:
    """A third of the wait is a disk's; what the rest is, nobody saw."""
    blocked = healthy(WAITING, loop=loading(), utilization=use(main={"blocked_share": 0.2}))
    said = BY_ID["workers-io-bound"].judge(blocked)
    assert isinstance(said, Statement)
    assert said.sentence.startswith("The training process is blocked on a disk 20 % of the time (train.py, line 21). ")
    assert said.clause.endswith("60 % of the time, a large part of it blocked on a disk (train.py, line 21)")


def test_a_part_that_may_not_be_the_largest_is_not_called_so() -> None:
    assert [portion(share) for share in (0.1, 0.35, 0.6, 0.95)] == [
        "part of it",
        "a large part of it",
        "most of it",
        "nearly all of it",
    ]


def test_that_workers_are_not_needed_is_inferred_where_it_was_not_measured() -> None:
    cheap = in_workers(fetch_ms=0.3, collate_ms=0.2, hand_over_ms=1.5, bytes_per_batch=64.0 * 1024)
    found = finding("memory-data-needs-no-workers", healthy(WAITING, loop=cheap, workers=curve(2, w4=0.9)))
    assert found is not None
    assert "Training without workers was not measured." in found.sentence
    assert "in memory" not in found.sentence, "that few files are opened is all that was seen"


def test_workers_that_nobody_waits_for_are_not_said_to_make_training_wait() -> None:
    """They cost cores; what training without them gains was measured."""
    cheap = in_workers(fetch_ms=0.3, collate_ms=0.2, hand_over_ms=1.5, bytes_per_batch=64.0 * 1024)
    said = BY_ID["memory-data-needs-no-workers"].judge(healthy(0.01, loop=cheap, workers=curve(2, w0=2.0)))
    assert isinstance(said, Statement)
    assert said.clause == "loses 50 % of its time by using 2 workers for batches that are cheap to make"
    inferred = BY_ID["memory-data-needs-no-workers"].judge(healthy(WAITING, loop=cheap, workers=curve(2, w4=0.9)))
    assert isinstance(inferred, Statement)
    assert inferred.clause.startswith("waits for data 60 % of the time")


@pytest.mark.parametrize(
    ("count", "said"), [(1, "1 worker keeps 0.40 cores busy"), (2, "2 workers keep 0.40 cores busy each")]
)
def test_workers_without_a_core_are_said_to_wait_for_one(count: int, said: str) -> None:
    queued = in_workers(count, computing=0.4, delayed=0.55)
    found = finding("workers-cpu-bound", healthy(WAITING, loop=queued, utilization=use(workers=BUSY_WORKERS)))
    assert found is not None
    waits = "waits" if count == 1 else "wait"
    assert found.sentence.startswith(f"{said} while making batches, and {waits} for a core 55 % of that time. ")


def test_uneven_batches_are_no_cause_where_workers_wait_for_a_core() -> None:
    """Beside another program, batches that are alike took 2.2 times as long now and then, and came first."""
    for delayed, first in ((0.1, "out-of-order-batches"), (0.6, "slow-fetch")):
        loop = in_workers(4, out_of_order_share=0.3, fetch_p95_ms=40.0, computing=0.4, delayed=delayed)
        found = [each.id for each in diagnose(healthy(WAITING, loop=loop)).findings]
        assert "out-of-order-batches" in found
        assert found[0] == first, delayed


@pytest.mark.parametrize(
    ("library", "mode", "said"),
    [
        ("Pillow", "", 'Write `image.draft("RGB", (240, 180))` behind `image = Image.open(...)`'),
        ("Pillow", "L", 'Write `image.draft("L", (240, 180))` behind'),
        ("OpenCV", "RGB", "Give `cv2.imread` (or `cv2.imdecode`) the flag `cv2.IMREAD_REDUCED_COLOR_8`"),
        ("OpenCV", "L", "the flag `cv2.IMREAD_REDUCED_GRAYSCALE_8`"),
    ],
)
def test_large_pictures_are_decoded_smaller_in_the_words_of_the_library(library: str, mode: str, said: str) -> None:
    camera = replace(CAMERA, library=library, mode=mode)
    found = finding("oversized-pictures", healthy(WAITING, loop=loading(decoding=0.9, pictures=camera)))
    assert found is not None
    assert said in found.advice


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("wave, rate = librosa.load(path, sr=16000)", "pass `offset` and `duration` to `librosa.load`"),
        ("wave, rate = torchaudio.load(path)", "pass `frame_offset` and `num_frames` to `torchaudio.load`"),
        ("wave, rate = sf.read(path)", "pass `start` and `frames` to `soundfile.read`"),
        ("frames = decord.VideoReader(path)", "Decode only the frames that are used"),
        ("picture = Image.open(path)", "Store the files at the size that training uses"),
    ],
)
def test_what_decodes_sound_or_video_is_told_how_to_decode_less(line: str, said: str) -> None:
    decodes = listing("Sounds.__getitem__", 20, ("def __getitem__(self, index):", 0.0), (line, 1.0))
    found = finding("slow-decode", profiled(healthy(WAITING), lines=listings(decodes), sampling=sampled(fetch=[])))
    assert found is not None
    assert said in found.advice
