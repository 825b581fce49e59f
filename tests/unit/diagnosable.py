"""Evidence made by hand: of a healthy training, and the pieces with which it is made ill."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from bottleneck_doctor.diagnose import Evidence, diagnose, rules
from bottleneck_doctor.documents.report import (
    Baseline,
    CallNode,
    DeviceProfile,
    DeviceUse,
    EpochPause,
    FileUse,
    Finding,
    FixOutcome,
    FrozenPart,
    GarbageCollection,
    HotFunction,
    LineCost,
    LineListing,
    LineProfile,
    Loading,
    Noise,
    Operator,
    Phases,
    PhaseTable,
    PictureUse,
    ProcessUse,
    Profiles,
    RankPart,
    SamplingProfile,
    Setting,
    Site,
    Speedup,
    StepTimes,
    Surroundings,
    SynchronisingCall,
    TransformCost,
    Utilization,
    Window,
    WindowUse,
    WorkerActivity,
    WorkerPoint,
    Workers,
)
from bottleneck_doctor.runtime.wire import messages
from bottleneck_doctor.runtime.wire.messages import Found

BY_ID = {rule.id: rule for rule in rules()}
FILE = "/home/me/train.py"
TORCH = "/opt/lib/python3.11/site-packages/torch/"
FETCH = TORCH + "utils/data/_utils/fetch.py"
MB = 1 << 20

# -- evidence of a healthy training ------------------------------------------------------------------------------------


def shares(**given: float) -> Phases:
    """Phases with these shares; forward and backward take the rest, one to two, unless they are given."""
    parts = {"data_wait": 0.01, "host_to_device": 0.0, "optimizer": 0.03, "zero_grad": 0.01, "between": 0.02, **given}
    rest = max(0.0, 1.0 - sum(parts.values()))
    return Phases(**{"forward": rest / 3, "backward": 2 * rest / 3, **parts})


def loading(**given: Any) -> Loading:
    """Batches of 32 samples from memory, at hand in next to no time."""
    return Loading(
        **{
            "setting": {},
            "num_workers": 0,
            "batches": 100,
            "samples_per_batch": 32.0,
            "bytes_per_batch": 8.0 * MB,
            "fetch_ms": 10.0,
            "fetch_p95_ms": 11.0,
            "collate_ms": 0.5,
            "hand_over_ms": None,
            "out_of_order_share": 0.0,
            "fetch_site": Site(file=FILE, line=20),
            **given,
        }
    )


def in_workers(count: int = 2, *, idle: float = 0.1, **given: Any) -> Loading:
    """The same in workers, all alike."""
    fetch = given.get("fetch_ms", 10.0) / 1000
    made = [
        WorkerActivity(worker=each, batches=50, fetch_seconds=fetch, collate_seconds=0.0005, idle_share=idle)
        for each in range(count)
    ]
    return loading(**{"num_workers": count, "hand_over_ms": 0.5, "workers": made, **given})


CAMERA = PictureUse(
    width=1920,
    height=1440,
    used_width=64,
    used_height=48,
    factor=8,
    whole_ms=16.0,
    reduced_ms=4.0,
    tried=3,
)
"""Pictures of a camera, of which thumbnails are made, and what one takes whole and at an eighth of its size."""


def listing(name: str, first: int, *lines: tuple[str, float]) -> LineListing:
    """A function whose lines took these seconds."""
    costs = [LineCost(line=first + place, text=text, seconds=cost) for place, (text, cost) in enumerate(lines)]
    return LineListing(name=name, path=FILE, first_line=first, seconds=sum(cost for _, cost in lines), lines=costs)


GETITEM = listing(
    "Pets.__getitem__", 20, ("def __getitem__(self, index):", 0.0), ("value = work(index)", 1.0), ("return value", 0.1)
)
TRAINING = listing(
    "train",
    50,
    ("def train(loader):", 0.0),
    ("for batch in loader:", 4.0),
    ("loss = model(batch)", 2.0),
    ("loss.backward()", 3.0),
    ("optimizer.step()", 1.0),
    ("log(loss)", 0.9),
    ("count += 1", 0.1),
)


def looking(seconds: float, *, ran: int = 5, reached: int = 100, doing: str = "picture = model(grid)") -> LineListing:
    """A training function of 10 s a hundred steps, beside what it does under an `if`, `ran` times of `reached`."""
    rows: tuple[tuple[str, int, float], ...] = (
        ("def train(loader):", 0, 0.0),
        ("    for batch in loader:", reached, 4.0),
        ("        loss = model(batch)", reached, 4.0),
        ("        loss.backward()", reached, 5.0),
        ("        optimizer.step()", reached, 1.0),
        ("        if step % options.every == 0:  # Now and then.", reached, 0.0),
        ("            # Not more often.", 0, 0.0),
        ("            with torch.no_grad():", 2 * ran, 0.0),
        (f"                {doing}", ran, 0.9 * seconds),
        ("                if loss < best:", ran, 0.0),
        ("                    save(model)", 1, 0.1 * seconds),
        ("        step += 1", reached, 0.0),
    )
    lines = [
        LineCost(line=50 + place, text=text, hits=hits or None, seconds=cost)
        for place, (text, hits, cost) in enumerate(rows)
    ]
    return LineListing(name="train", path=FILE, first_line=50, seconds=14.0 + seconds, lines=lines)


AVERAGING = listing(
    "train",
    50,
    *((each.text, each.seconds or 0.0) for each in TRAINING.lines[:5]),
    ("average(kept, model)", 0.9),
    ("count += 1", 0.1),
)
AVERAGE = listing(
    "average",
    80,
    ("def average(kept, model):", 0.0),
    ("for mean, weight in zip(kept.parameters(), model.parameters()):", 0.1),
    ("mean.lerp_(weight, 0.1)", 0.8),
)


def node(name: str, path: str, line: int, *children: CallNode, count: int = 0, own: bool = False) -> CallNode:
    """A function of a call tree; `count` samples ended in it."""
    total = count + sum(child.count for child in children)
    return CallNode(name=name, path=path, line=line, count=total, own=own, children=list(children))


def sampled(
    *,
    fetch: Sequence[CallNode] = (),
    between: Sequence[CallNode] = (),
    forward: Sequence[CallNode] = (),
    optimizer: Sequence[CallNode] = (),
    role: str = "main",
    functions: Sequence[HotFunction] = (),
) -> SamplingProfile:
    """Stacks of a training function, by what they were about; those of workers with `role`."""
    fetching = node("fetch", FETCH, 50, node("__getitem__", FILE, 21, *fetch, count=0 if fetch else 10, own=True))
    loop = node("_worker_loop", TORCH + "utils/data/_utils/worker.py", 300, fetching)
    trained = node(
        "train",
        FILE,
        51,
        *([node("__next__", TORCH + "utils/data/dataloader.py", 700, fetching)] if role == "main" else []),
        node("_call_impl", TORCH + "nn/modules/module.py", 1500, *forward, count=20),
        node("backward", TORCH + "_tensor.py", 500, count=30),
        node("wrapper", TORCH + "optim/optimizer.py", 400, *optimizer, count=5),
        *between,
        count=2,
        own=True,
    )
    trees = {"main": node("main", "", 0, trained)}
    if role == "workers":
        trees["workers"] = node("workers", "", 0, loop)
    return SamplingProfile(
        rate=100,
        seconds=1.0,
        samples={name: tree.count for name, tree in trees.items()},
        functions=list(functions),
        trees=trees,
    )


def operators(**given: Any) -> DeviceProfile:
    """Large operations, which take nearly all of the traced time."""
    return DeviceProfile(
        **{
            "steps": 10,
            "seconds": 1.0,
            "operators": [
                Operator(name="aten::conv2d", calls=100, cpu_ms=950.0, device_ms=0.0, share=0.95),
                Operator(name="Optimizer.step#SGD.step", calls=10, cpu_ms=40.0, device_ms=0.0, share=0.04),
            ],
            **given,
        }
    )


WRITTEN_OUT = {"fused_attention": {"obstacle": "", "places": [[FILE, 40], [FILE, 52]]}}
"""What a guest says of a program with attention of its own in two places."""


def attention_operators(share: float, *more: str) -> list[Operator]:
    """Operators of such a program, with this part of a traced second in softmax."""
    parts = {"aten::bmm": 0.95 - share, "aten::_softmax": 0.4 * share, "aten::_softmax_backward_data": 0.6 * share}
    parts |= dict.fromkeys(more, 0.0)
    return [
        Operator(name=name, calls=100, cpu_ms=1000 * part, device_ms=500 * part, share=part)
        for name, part in parts.items()
    ]


def point(count: int, ratio: float, *, baseline: bool = False) -> WorkerPoint:
    made = Speedup(estimate=ratio, low=ratio * 0.97, high=ratio * 1.03, pairs=8, sessions=3)
    return WorkerPoint(
        num_workers=count, samples_per_second=320 * ratio, speedup=made, steady=made, is_baseline=baseline
    )


def curve(own: int, **others: float) -> Workers:
    """Speeds by number of workers, `w4=1.8`."""
    points = [point(own, 1.0, baseline=True), *(point(int(name[1:]), ratio) for name, ratio in others.items())]
    return Workers(curve=sorted(points, key=lambda each: each.num_workers), usable_cpus=4)


def use(
    *,
    main: Mapping[str, float | None] | None = None,
    workers: Mapping[str, float | None] | None = None,
    devices: Sequence[DeviceUse] = (),
    count: int = 2,
    resident: Sequence[float] = (500.0 * MB,) * 4,
    **machine: float | None,
) -> Utilization:
    """Four windows as written. `workers`: figures of all workers together."""
    windows = []
    for index, bytes_held in enumerate(resident):
        main_use: dict[str, Any] = {"cpu_user": 1.0, "cpu_system": 0.0, "threads": 8.0, "blocked_share": 0.0}
        processes = [ProcessUse(role="main", processes=1, **{**main_use, "rss_bytes": bytes_held, **(main or {})})]
        if workers is not None:
            processes.append(ProcessUse(role="workers", processes=count, **workers))
        given: dict[str, Any] = {"cores_busy": 2.0, "cpu_pressure": 0.0, "memory_available_bytes": 8192.0 * MB}
        windows.append(
            WindowUse(
                window=index,
                label="baseline",
                samples=50,
                processes=processes,
                devices=list(devices),
                **{**given, **machine},
            )
        )
    return Utilization(interval_seconds=0.1, monitor_cpu=0.01, times=[], series={}, windows=windows)


def waiting_ranks(slowest: float, others: float = 0.25) -> list[RankPart]:
    """Of four ranks the last waits `slowest` of five seconds for its data."""
    return [
        RankPart(rank=rank, steps=50, samples=400.0, seconds=5.0, wait_seconds=slowest if rank == 3 else others)
        for rank in range(4)
    ]


def window(index: int, **given: Any) -> Window:
    return Window(
        **{
            "session": 1,
            "rank": 0,
            "block": index,
            "setting": {},
            "mode": "timed",
            "steps": 50,
            "samples": 1600.0,
            "seconds": 5.0,
            "lead_in_steps": 2,
            "lead_in_seconds": 0.2,
            "wait_seconds": 0.1,
            "turn_seconds": None,
            "whole_epochs": 0,
            "queue_change": 0,
            "ready_share": 1.0,
            "effect": {},
            "started": 20.0 * index,
            "label": "baseline",
            **given,
        }
    )


FOUND = Found(
    rung="optimizer step",
    period=1,
    periodic=True,
    step_seconds=[0.1] * 8,
    wait_seconds=[0.001] * 8,
    samples_per_step=32.0,
    device="cpu",
    usable_cpus=4,
    threads=4,
    has_loader=True,
    has_root_module=True,
    dataset_type="Pets",
    forward_site=messages.Site(FILE, 52),
    backward_site=messages.Site(FILE, 53),
)
STEPS = StepTimes(
    steps=400,
    mean_ms=100.0,
    p50_ms=99.0,
    p95_ms=108.0,
    jitter=1.09,
    outliers=2,
    wait_mean_ms=1.0,
    wait_p95_ms=1.2,
    ready_share=0.0,
    first_step_seconds=4.0,
)


def compiled_again(times: int) -> dict[str, Any]:
    """Facts of a loop whose forward pass torch had to compile again so many times."""
    reason = "tensor 'rows' size mismatch at index 1. expected 24, actual 31"
    again = {"name": "Net.forward", "file": FILE, "line": 12, "times": times, "reason": reason}
    return {"uncompiled": {"recompiled": [again], "most_versions": 8}}


def healthy(wait: float = 0.01, *, phases: Phases | None = None, **given: Any) -> Evidence:
    """All evidence of a loop with steps of 100 ms and epochs of 100, which waits for data so much and has no fault."""
    phases = phases or shares(data_wait=wait)
    loop = given.pop("loop", None) or loading()
    found = replace(given.pop("found", FOUND), num_workers=loop.num_workers)
    base = Baseline(
        samples_per_second=320.0,
        steps_per_second=10.0,
        step_ms=100.0,
        windows=8,
        sessions=3,
        data_wait_share=phases.data_wait,
        settings={},
        rung="optimizer step",
        period=1,
        batch_size=32.0,
        epoch_batches=100,
        epoch_turn_seconds=0.1,
        device=found.device,
    )
    made = Evidence(
        found=found,
        baseline=base,
        phases=PhaseTable(baseline=phases),
        steps=STEPS,
        epoch_pause=EpochPause(seen=3, seconds=0.0, evaluation=0.0, saving=0.0, first_batch=0.0, rest=0.0),
        loading=[loop],
        utilization=use(workers={"cpu_user": 1.2, "cpu_system": 0.0} if loop.num_workers else None),
        profiles=Profiles(
            sampling=sampled(role="workers" if loop.num_workers else "main"),
            lines=LineProfile(steps=10, listings=[GETITEM, TRAINING]),
            device=operators(),
        ),
        synchronising=[],
        garbage=GarbageCollection(collections=3, ms_per_step=0.1, share=0.001),
        workers=curve(loop.num_workers, w8=1.0),
        noise=Noise(aa_ratio=None, floor=0.02),
        windows=[window(index) for index in range(4)],
        setup_seconds=[4.0, 4.1, 4.2],
    )
    return replace(made, **given)


def profiled(evidence: Evidence, **parts: Any) -> Evidence:
    """With another part of the profiles."""
    assert evidence.profiles is not None
    return replace(evidence, profiles=replace(evidence.profiles, **parts))


def listings(*made: LineListing) -> LineProfile:
    return LineProfile(steps=10, listings=list(made))


def on_gpu(evidence: Evidence, **profile: Any) -> Evidence:
    given = {"utilization": 0.95, "sm_efficiency": 0.9, "occupancy": 0.5, "tensor_core_share": 0.8} | {
        "tensor_core_eligible_share": 0.9,
        "memcpy_share": 0.01,
        "pageable_copies": 0,
        "idle_share": 0.05,
        "kernels_per_step": 500.0,
        "kernel_mean_us": 180.0,
    }
    made = replace(evidence, found=replace(evidence.found, device="cuda:0"))
    return profiled(made, device=operators(**{**given, **profile}))


# -- what makes it ill -----------------------------------------------------------------------------------------------

WAITING = 0.6
BLUR = [TransformCost(name="RandomBlur", ms_per_sample=0.25, share_of_fetch=0.8, file=FILE, line=31)]
CHAIN = [
    TransformCost(name=name, ms_per_sample=0.4 * share, share_of_fetch=share, file=FILE, line=31)
    for name, share in (("Crop", 0.25), ("Flip", 0.2), ("ToTensor", 0.2), ("Normalize", 0.15))
]
FLIP = [TransformCost(name="Flip", ms_per_sample=0.08, share_of_fetch=0.25, file=FILE, line=31)]
BLUR_LISTING = listing(
    "RandomBlur.__call__", 31, ("def __call__(self, x):", 0.0), ("size = 3", 0.1), ("return blur(x)", 0.9)
)
DECODING = listing(
    "Pets.__getitem__",
    20,
    ("def __getitem__(self, index):", 0.0),
    ('picture = Image.open(self.files[index]).convert("RGB")', 0.8),
    ("return np.asarray(picture)", 0.2),
)
READING = listing(
    "Pets.__getitem__",
    20,
    ("def __getitem__(self, index):", 0.0),
    ('with open(self.files[index], "rb") as file:', 0.5),
    ("value = file.read()", 0.4),
    ("return parse(value)", 0.1),
)
COLLATE = listing("collate", 40, ("def collate(samples):", 0.0), ("for x in samples:", 0.3), ("rows.append(x)", 0.9))
SMALL = FileUse(per_batch=64.0, mean_bytes=2048.0, file_system="ext4", remote=False)
LARGE = FileUse(per_batch=32.0, mean_bytes=512.0 * 1024, file_system="ext4", remote=False)
REMOTE = replace(LARGE, file_system="nfs4", remote=True)
IDLE_WORKERS = {"cpu_user": 0.1, "cpu_system": 0.08, "blocked_share": 0.0}
BUSY_WORKERS = {"cpu_user": 1.7, "cpu_system": 0.1}
STORM = {"cpu_user": 1.7, "cpu_system": 0.1, "threads": 34.0, "involuntary_switches": 2000.0}
LEAKING = [(500.0 + 300 * each) * MB for each in range(4)]
ITEM = SynchronisingCall(name="item", path=FILE, line=55, per_step=64.0, ms_per_step=12.0)
FROZEN = FrozenPart(
    site=Site(file=FILE, line=77), names=["layer3", "layer2", "layer1", "conv1"], share=0.6, batch=False, random=False
)
IMBALANCED = [
    WorkerActivity(worker=0, batches=50, fetch_seconds=0.01, collate_seconds=0.0, idle_share=0.5),
    WorkerActivity(worker=1, batches=50, fetch_seconds=0.04, collate_seconds=0.0, idle_share=0.0),
]
TINY = [
    Operator(name="aten::mul", calls=100_000, cpu_ms=600.0, device_ms=0.0, share=0.6),
    Operator(name="aten::conv2d", calls=100, cpu_ms=100.0, device_ms=0.0, share=0.1),
]
FORWARD = [node("forward", FILE, 12, node("decide", FILE, 8, count=30, own=True), own=True)]


def finding(identifier: str, evidence: Evidence) -> Finding | None:
    """What one rule says, without the others."""
    made = diagnose(evidence, [BY_ID[identifier]])
    assert not made.not_judged, made.not_judged
    return made.findings[0] if made.findings else None


def faster(id: str, setting: Setting, low: float) -> FixOutcome:
    """A fix that was measured to be surely so many times as fast; one that costs time if that is less than once."""
    return FixOutcome(
        id=id,
        title="",
        why="",
        setting=setting,
        status="faster" if low > 1 else "slower",
        risk="numerics",
        reason="",
        speedup=Speedup(estimate=1.1 * low, low=low, high=1.2 * low, pairs=8, sessions=3),
    )


def kept(low: float) -> Evidence:
    """A training that is surely so many times as fast where it keeps its memory. As written, a step of 100 ms asks for
    477 MiB, for which the kernel works 36 % of the time of two cores."""
    around = Surroundings(own_cpu=2.0, kernel_cpu=0.72, faults=1_220_703.125)
    windows = [replace(window(index), around=around) for index in range(4)]
    return replace(healthy(windows=windows), fixes=[faster("allocator", {"kept_memory": True}, low)])


def flushed(low: float, *, places: Sequence[str] = ()) -> Evidence:
    """A training that is surely so many times as fast with denormal numbers taken as 0."""
    facts = {"flush_denormal": {"obstacle": "", "places": list(places)}}
    fix = faster("flush-denormal", {"flush_denormal": True}, low)
    return replace(healthy(found=replace(FOUND, facts=facts)), fixes=[fix])
