"""Made-up evidence for the results of `build.py`: phases, loading, use of the machine, profiles."""

from __future__ import annotations

import random
from collections.abc import Sequence

from bottleneck_doctor.documents.report import (
    CallNode,
    DeviceProfile,
    DeviceUse,
    EpochPause,
    Event,
    FileUse,
    Finding,
    GarbageCollection,
    HotFunction,
    LineCost,
    LineListing,
    LineProfile,
    Loading,
    NotJudged,
    Operator,
    Phases,
    PhaseTable,
    ProcessUse,
    Profiles,
    SamplingProfile,
    Setting,
    Site,
    Span,
    StepTimes,
    SynchronisingCall,
    Timeline,
    TransformCost,
    Utilization,
    Warning,
    Window,
    WindowUse,
    WorkerActivity,
)

BEST: Setting = {"num_workers": 4, "persistent_workers": True, "memory_format": "channels_last"}
PIL = "/usr/lib/python3.12/site-packages/PIL/"
TORCH = "/usr/lib/python3.12/site-packages/torch/"
VISION = "/usr/lib/python3.12/site-packages/torchvision/"
HOME = "/home/ada/pets/"


def findings() -> list[Finding]:
    return [
        Finding(
            id="input-bound",
            title="Training waits for data",
            sentence="A step takes 2.67 s, and 1.95 s of it pass before its batch is there.",
            evidence={"data_wait_share": 0.731, "step_seconds": 2.667},
            fixes=["workers", "persistent-workers"],
            weight=0.731,
            share=0.731,
            site=Site(file=HOME + "train.py", line=58),
            advice="Let worker processes make batches while the model computes.",
        ),
        Finding(
            id="slow-decode",
            title="Decoding JPEG files takes most of loading",
            sentence="`PIL.ImageFile.load` takes 41.2 ms of the 60.6 ms that a sample takes to fetch.",
            evidence={"decode_ms": 41.2, "fetch_ms_per_sample": 60.6},
            fixes=["workers"],
            weight=0.497,
            site=Site(file=HOME + "data.py", line=31),
            advice="Pictures are decoded at 500 × 375 and then shrunk: decode them once, at the size you train with.",
        ),
        Finding(
            id="slow-transform",
            title="`ColorJitter` is the dearest transform",
            sentence="`ColorJitter` takes 11.8 ms a sample, 19 % of fetching.",
            evidence={"transform_ms": 11.8, "share_of_fetch": 0.195},
            fixes=[],
            weight=0.142,
            site=Site(file=HOME + "data.py", line=18),
            advice="Do it on whole batches, after collating.",
        ),
        Finding(
            id="slow-epoch-turn",
            title="Starting workers costs time every epoch",
            sentence="Four workers take 1.3 s to start. With 115 batches an epoch that is 1.5 % of the time, unless "
            "they are kept.",
            evidence={"turn_seconds": 1.31},
            fixes=["persistent-workers"],
            weight=0.015,
        ),
        Finding(
            id="step-jitter",
            title="Steps are irregular",
            sentence="One step in twenty takes longer than 3.31 s, 1.25 times the median.",
            evidence={"jitter": 1.25},
            fixes=["prefetch-factor", "gone"],
        ),
    ]


def not_judged() -> list[NotJudged]:
    return [
        NotJudged(id="pageable-copies", reason="There is no device to copy to."),
        NotJudged(id="cold-cache", reason="The files' pages could not be dropped: the file system refused."),
    ]


def phases() -> PhaseTable:
    return PhaseTable(
        baseline=Phases(
            data_wait=0.731,
            host_to_device=0.0,
            forward=0.093,
            backward=0.137,
            optimizer=0.018,
            zero_grad=0.003,
            between=0.018,
        ),
        best=Phases(
            data_wait=0.061,
            host_to_device=0.0,
            forward=0.319,
            backward=0.471,
            optimizer=0.065,
            zero_grad=0.011,
            between=0.073,
        ),
        best_setting=BEST,
    )


def steps() -> StepTimes:
    return StepTimes(
        steps=48,
        mean_ms=2667.0,
        p50_ms=2648.0,
        p95_ms=3310.0,
        jitter=1.25,
        outliers=1,
        wait_mean_ms=1950.0,
        wait_p95_ms=2540.0,
        ready_share=0.0,
        first_step_seconds=6.8,
    )


def pause() -> EpochPause:
    return EpochPause(seen=2, seconds=21.4, evaluation=16.1, saving=1.9, first_batch=2.0, rest=1.4)


def main_steps(count: int, lengths: dict[str, float], luck: random.Random, spread: float) -> list[Event]:
    events, at = [], 0.0
    for batch in range(count):
        for kind, seconds in lengths.items():
            seconds *= max(0.2, luck.gauss(1, spread))
            events.append(Event(lane="main", kind=kind, start=round(at, 4), seconds=round(seconds, 4), batch=batch))
            at += seconds
    return events


def timelines() -> list[Timeline]:
    luck = random.Random(3)
    compute = {"forward": 0.24, "backward": 0.36, "optimizer": 0.05, "zero_grad": 0.01, "between": 0.05}
    alone = main_steps(4, {"data_wait": 1.95, **compute}, luck, 0.06)
    together = main_steps(14, {"data_wait": 0.045, **compute}, luck, 0.08)
    end = max(event.start + event.seconds for event in together)
    for worker in range(4):
        at, batch = 0.31 * worker, 8 + worker
        while at < end - 0.2:
            fetch, collate = luck.gauss(2.55, 0.16), 0.12
            for kind, start, seconds in (("fetch", at, fetch), ("collate", at + fetch, collate)):
                seconds = min(seconds, end - start)
                if seconds > 0:
                    lane = f"worker {worker}"
                    together.append(
                        Event(lane=lane, kind=kind, start=round(start, 4), seconds=round(seconds, 4), batch=batch)
                    )
            at += fetch + collate + abs(luck.gauss(0.2, 0.1))
            batch += 4
    return [
        Timeline(setting={}, seconds=10.7, events=alone),
        Timeline(setting=BEST, seconds=round(end, 2), events=together),
    ]


def loading() -> list[Loading]:
    transforms = [
        TransformCost(
            name="ColorJitter", ms_per_sample=11.8, share_of_fetch=0.195, made_file=HOME + "data.py", made_line=18
        ),
        TransformCost(
            name="RandomResizedCrop", ms_per_sample=3.1, share_of_fetch=0.051, made_file=HOME + "data.py", made_line=16
        ),
        TransformCost(
            name="ToTensor", ms_per_sample=2.6, share_of_fetch=0.043, made_file=HOME + "data.py", made_line=19
        ),
        TransformCost(
            name="Normalize", ms_per_sample=0.9, share_of_fetch=0.015, made_file=HOME + "data.py", made_line=20
        ),
        TransformCost(
            name="RandomHorizontalFlip",
            ms_per_sample=0.2,
            share_of_fetch=0.003,
            made_file=HOME + "data.py",
            made_line=17,
        ),
    ]
    files = FileUse(per_batch=32.0, mean_bytes=108_400.0, file_system="ext4", remote=False)
    return [
        Loading(
            setting={},
            num_workers=0,
            batches=48,
            samples_per_batch=32,
            bytes_per_batch=19_267_840,
            fetch_ms=1938.0,
            fetch_p95_ms=2490.0,
            collate_ms=11.6,
            hand_over_ms=None,
            out_of_order_share=0.0,
            transforms=transforms,
            files=files,
            fetch_site=Site(file=HOME + "data.py", line=28),
            collate_name="default_collate",
            collate_module="torch.utils.data._utils.collate",
        ),
        Loading(
            setting=BEST,
            num_workers=4,
            batches=120,
            samples_per_batch=32,
            bytes_per_batch=19_267_840,
            fetch_ms=2571.0,
            fetch_p95_ms=2930.0,
            collate_ms=119.0,
            hand_over_ms=8.4,
            out_of_order_share=0.083,
            transforms=transforms[:2],
            workers=[
                WorkerActivity(
                    worker=n, batches=30, fetch_seconds=2.5 + n / 20, collate_seconds=0.119, idle_share=0.05 + n / 40
                )
                for n in range(4)
            ],
            files=files,
            fetch_site=Site(file=HOME + "data.py", line=28),
        ),
    ]


def use_of(window: Window) -> tuple[float, float, float]:
    """Cores of the main process and of the workers, and bytes read a second, under the window's setting."""
    workers = float(window.setting.get("num_workers", 0))
    rate = window.samples / window.seconds if window.seconds else 0.0
    return (1.75, 0.0, 0.2e6) if not workers else (1.0 + rate / 100, 0.061 * rate, 0.4e6)


def utilization(windows: Sequence[Window], interval: float = 2.0) -> Utilization:
    luck = random.Random(11)
    begun = windows[0].started - 8
    placed = [window for window in windows if window.status == "ok"]
    length = placed[-1].started + placed[-1].seconds * 1.4 - begun + 3
    times: list[float] = []
    names = ["main_cpu", "workers_cpu", "others_cpu", "cores_busy", "main_rss_bytes", "workers_rss_bytes"]
    names += ["memory_available_bytes", "session_read_bytes"]
    series: dict[str, list[float | None]] = {name: [] for name in names}
    for index in range(int(length / interval)):
        at = index * interval
        inside = [each for each in placed if each.started <= at + begun < each.started + each.seconds * 1.4]
        main, workers, read = use_of(inside[0]) if inside else (0.9, 0.0, 0.0)
        main, workers = main * luck.gauss(1, 0.12), workers * luck.gauss(1, 0.1)
        other = abs(luck.gauss(0.55, 0.2))
        with_workers = bool(inside and inside[0].setting.get("num_workers"))
        values: list[float | None] = [main, workers, other, min(main + workers + other, 16.0)]
        values.append(1.42e9 + 2e7 * luck.random())
        values += [2.31e9 if with_workers else 0.0, 24e9 - (2.3e9 if with_workers else 0), read * luck.random()]
        times.append(at)
        for name, value in zip(names, values, strict=True):
            # What the kernel keeps to itself for a while: a gap, not a zero.
            hidden = name.endswith("rss_bytes") and 120 < at < 170
            series[name].append(None if hidden or value is None else float(f"{value:.3g}"))
    return Utilization(
        interval_seconds=interval,
        monitor_cpu=0.009,
        times=times,
        series=series,
        windows=[window_use(index, window) for index, window in enumerate(windows) if window.status == "ok"],
        spans=[
            Span(
                start=round(each.started - begun, 2),
                end=round(each.started - begun + each.seconds * 1.4, 2),
                label="baseline" if not each.setting else ", ".join(f"{k}={v}" for k, v in each.setting.items()),
                session=each.session,
            )
            for each in placed
        ],
        missing=["The time that processes wait for disks: this kernel was built without delay accounting."],
    )


def window_use(index: int, window: Window) -> WindowUse:
    main, workers, read = use_of(window)
    processes = [
        ProcessUse(
            role="main",
            processes=1,
            cpu_user=main * 0.9,
            cpu_system=main * 0.1,
            threads=6.0,
            involuntary_switches=41.0,
            pss_bytes=1.42e9,
            read_bytes=0.0,
        ),
    ]
    if window.setting.get("num_workers"):
        processes.append(
            ProcessUse(
                role="workers",
                processes=4,
                cpu_user=workers * 0.93,
                cpu_system=workers * 0.07,
                threads=4.0,
                involuntary_switches=388.0,
                pss_bytes=2.31e9,
                read_bytes=read,
            )
        )
    return WindowUse(
        window=index,
        label="baseline" if not window.setting else "setting",
        samples=int(window.seconds),
        processes=processes,
        cores_busy=main + workers + 0.6,
        others_cpu=0.6,
        memory_available_bytes=24e9,
        cpu_mhz=4480.0,
    )


def node(name: str, path: str, line: int, count: int, *children: CallNode) -> CallNode:
    return CallNode(name=name, path=path, line=line, count=count, own=path.startswith(HOME), children=list(children))


def loading_tree(count: int) -> CallNode:
    part = count / 1000
    return node(
        "__getitem__",
        HOME + "data.py",
        28,
        count,
        node("load", PIL + "ImageFile.py", 212, int(690 * part)),
        node(
            "__call__",
            VISION + "transforms/transforms.py",
            95,
            int(290 * part),
            node("adjust_hue", VISION + "transforms/_functional_pil.py", 95, int(120 * part)),
            node("adjust_saturation", VISION + "transforms/_functional_pil.py", 85, int(60 * part)),
            node("to_tensor", VISION + "transforms/functional.py", 172, int(50 * part)),
        ),
    )


def sampling() -> SamplingProfile:
    train = node(
        "train",
        HOME + "train.py",
        52,
        1290,
        node("__next__", TORCH + "utils/data/dataloader.py", 733, 940, loading_tree(930)),
        node("backward", TORCH + "_tensor.py", 595, 178),
        node(
            "_call_impl", TORCH + "nn/modules/module.py", 1784, 120, node("conv2d", TORCH + "nn/functional.py", 1, 96)
        ),
        node("step", TORCH + "optim/adam.py", 213, 24),
    )
    hot = [
        ("load", PIL + "ImageFile.py", 212, "__getitem__", "data.py", 31, 641),
        ("backward", TORCH + "_tensor.py", 595, "train", "train.py", 62, 178),
        ("adjust_hue", VISION + "transforms/_functional_pil.py", 95, "__getitem__", "data.py", 33, 111),
        ("conv2d", TORCH + "nn/functional.py", 1, "forward", "model.py", 19, 96),
        ("adjust_saturation", VISION + "transforms/_functional_pil.py", 85, "__getitem__", "data.py", 33, 55),
        ("to_tensor", VISION + "transforms/functional.py", 172, "__getitem__", "data.py", 33, 46),
        ("step", TORCH + "optim/adam.py", 213, "train", "train.py", 63, 24),
        ("__getitem__", HOME + "data.py", 30, "__getitem__", "data.py", 30, 18),
        ("collect", "", 0, "", "", 0, 9),
    ]
    return SamplingProfile(
        rate=100,
        seconds=13.0,
        samples={"main": 1300},
        functions=[
            HotFunction(
                role="main",
                name=name,
                path=path,
                line=line,
                own_name=own,
                own_path=HOME + own_path if own_path else "",
                own_line=own_line,
                share=count / 1300,
                count=count,
            )
            for name, path, line, own, own_path, own_line, count in hot
        ],
        trees={"main": node("<module>", HOME + "train.py", 1, 1300, train)},
        files=["report-artifacts/stacks.raw.txt", "report-artifacts/stacks.speedscope.json"],
    )


GETITEM = """\
    def __getitem__(self, index):
        path, label = self.samples[index]
        with open(path, "rb") as file:
            image = Image.open(file).convert("RGB")
        if self.transform is not None:
            image = self.transform(image)
        return image, label
"""

TRAIN = """\
def train(config):
    torch.manual_seed(config["seed"])
    dataset = Pets(config["folder"], transform=build_transform(config))
    held_out = Pets(config["folder"], split="test", transform=plain_transform())

    # The order of samples follows the seed.
    generator = torch.Generator().manual_seed(config["seed"])
    loader = DataLoader(dataset, batch_size=32, shuffle=True)
    checks = DataLoader(held_out, batch_size=64)

    model = resnet18(num_classes=37)
    criterion = nn.CrossEntropyLoss(label_smoothing=config["smoothing"])
    optimizer = torch.optim.Adam(model.parameters(), lr=config["lr"])
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, config["epochs"])

    for epoch in range(config["epochs"]):
        model.train()
        seen = 0
        for images, labels in loader:
            outputs = model(images)
            loss = criterion(outputs, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seen += len(labels)
            if seen % 1024 == 0:
                print(f"epoch {epoch}: {seen} samples, loss {loss.item():.3f}")
        schedule.step()
        accuracy = evaluate(model, checks)
        print(f"epoch {epoch}: accuracy {accuracy:.3f}")
        torch.save(model.state_dict(), config["checkpoint"])
"""


def listing(name: str, path: str, first: int, text: str, costs: dict[int, tuple[int, float]]) -> LineListing:
    """`costs`: runs and seconds by line, counted from the listing's first."""
    whole = sum(seconds for _, seconds in costs.values())
    lines = []
    for index, line in enumerate(text.splitlines()):
        hits, seconds = costs.get(index, (None, None))
        share = seconds / whole if seconds is not None else None
        lines.append(LineCost(line=first + index, text=line, hits=hits, seconds=seconds, share=share))
    return LineListing(name=name, path=path, first_line=first, seconds=whole, lines=lines)


def line_profile() -> LineProfile:
    fetching = {1: (256, 0.0004), 2: (256, 0.031), 3: (256, 10.55), 4: (256, 0.0001), 5: (256, 4.76), 6: (256, 0.0001)}
    training = {18: (9, 15.6), 19: (8, 1.99), 20: (8, 0.009), 21: (8, 0.061), 22: (8, 2.92), 23: (8, 0.384)}
    training |= {24: (8, 0.0002), 25: (8, 0.0001)}
    return LineProfile(
        steps=8,
        listings=[
            listing("Pets.__getitem__", HOME + "data.py", 28, GETITEM, fetching),
            listing("train", HOME + "train.py", 40, TRAIN, training),
        ],
        files=["report-artifacts/lines.lprof"],
    )


def operators(rows: Sequence[tuple[str, int, float, float]]) -> list[Operator]:
    whole = sum(device or cpu for _, _, cpu, device in rows) * 1.06
    return [
        Operator(name=name, calls=calls, cpu_ms=cpu, device_ms=device, share=(device or cpu) / whole)
        for name, calls, cpu, device in rows
    ]


def cpu_profile() -> DeviceProfile:
    rows = [
        ("aten::convolution_backward", 120, 1690.0, 0.0),
        ("aten::mkldnn_convolution", 120, 1120.0, 0.0),
        ("aten::native_batch_norm_backward", 120, 322.0, 0.0),
        ("aten::native_batch_norm", 120, 241.0, 0.0),
        ("Optimizer.step#Adam.step", 6, 188.0, 0.0),
        ("aten::threshold_backward", 102, 121.0, 0.0),
        ("aten::clamp_min_", 102, 96.0, 0.0),
        ("aten::max_pool2d_with_indices", 6, 54.0, 0.0),
    ]
    return DeviceProfile(
        steps=6, seconds=16.1, operators=operators(rows), files=["report-artifacts/steps.trace.json.gz"]
    )


def profiles() -> Profiles:
    return Profiles(sampling=sampling(), lines=line_profile(), device=cpu_profile())


def garbage() -> GarbageCollection:
    return GarbageCollection(collections=17, ms_per_step=3.1, share=0.0012)


# On two GPUs: work that the device could do faster, and a host that waits for it.


def gpu_findings() -> list[Finding]:
    return [
        Finding(
            id="tensor-cores-idle",
            title="Tensor Cores lie idle",
            sentence="78 % of kernel time is matrix work that Tensor Cores could do; they do none of it, because the "
            "model computes in float32.",
            evidence={"tensor_core_eligible_share": 0.78, "tensor_core_share": 0.0},
            fixes=["amp-bf16", "channels-last"],
            weight=0.44,
            site=Site(file="/home/me/resnet/train.py", line=88),
            advice="Let autocast choose bfloat16 for matrix products and convolutions.",
        ),
        Finding(
            id="synchronising-calls",
            title="`.item()` makes the host wait every step",
            sentence="`loss.item()` runs once a step and takes 31.0 ms of its 180 ms, in which no new work reaches "
            "the device.",
            evidence={"per_step": 1.0, "ms_per_step": 31.0},
            fixes=[],
            weight=0.09,
            site=Site(file="/home/me/resnet/train.py", line=97),
            advice="Add the loss up on the device, and take its value every hundredth step.",
        ),
        Finding(
            id="pageable-copies",
            title="Batches are copied from pageable memory",
            sentence="Two copies a step come from pageable memory: 9.2 ms in which the host does nothing else.",
            evidence={"pageable_copies": 12.0, "host_to_device_share": 0.051},
            fixes=["pinned-memory"],
            weight=0.051,
            site=Site(file="/home/me/resnet/train.py", line=86),
            advice="Let the loader pin its batches, and copy with `non_blocking=True`.",
        ),
    ]


def gpu_phases() -> PhaseTable:
    return PhaseTable(
        baseline=Phases(
            data_wait=0.034,
            host_to_device=0.051,
            forward=0.281,
            backward=0.452,
            optimizer=0.031,
            zero_grad=0.002,
            between=0.067,
            communication=0.082,
        ),
        best=Phases(
            data_wait=0.071,
            host_to_device=0.012,
            forward=0.236,
            backward=0.401,
            optimizer=0.052,
            zero_grad=0.004,
            between=0.101,
            communication=0.123,
        ),
        best_setting={"autocast": "bfloat16"},
    )


def gpu_profile() -> DeviceProfile:
    kernels = [
        ("sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nhwckrsc_nhwc_tilesize128x64x8_stage3", 318, 0.0, 286.0),
        ("sm80_xmma_dgrad_implicit_gemm_f32f32_f32f32_f32_nhwckrsc_nhwc_tilesize128x128x8", 312, 0.0, 251.0),
        ("void cudnn::batchnorm_bwtr_nhwc_semiPersist<float, float>", 318, 0.0, 96.0),
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 24, 0.0, 88.0),
        ("void at::native::vectorized_elementwise_kernel<4, at::native::BinaryFunctor<float, float>>", 960, 0.0, 61.0),
        ("Memcpy HtoD (Pageable -> Device)", 12, 0.0, 54.0),
    ]
    rows = [
        ("aten::convolution_backward", 318, 41.0, 402.0),
        ("aten::cudnn_convolution", 318, 22.0, 286.0),
        ("aten::cudnn_batch_norm_backward", 318, 12.0, 96.0),
        ("aten::_local_scalar_dense", 6, 186.0, 0.1),
        ("aten::copy_", 24, 55.0, 54.0),
    ]
    return DeviceProfile(
        steps=6,
        seconds=1.08,
        operators=operators(rows),
        kernels=operators(kernels),
        utilization=0.81,
        sm_efficiency=0.68,
        occupancy=0.37,
        tensor_core_share=0.0,
        tensor_core_eligible_share=0.78,
        memcpy_share=0.05,
        pageable_copies=12,
        idle_share=0.19,
        idle_cause="in 61 % of it the host waits for a value that it asked for",
        kernels_per_step=704.0,
        kernel_mean_us=181.0,
        files=["report-artifacts/steps.trace.json.gz"],
    )


def gpu_sampling() -> SamplingProfile:
    train = "/home/me/resnet/train.py"

    def hot(role: str, name: str, path: str, line: int, own: str, own_line: int, share: float) -> HotFunction:
        count = int(share * (1200 if role == "main" else 2400))
        return HotFunction(
            role="main" if role == "main" else "workers",
            name=name,
            path=path,
            line=line,
            own_name=own,
            own_path=train if own else "",
            own_line=own_line,
            share=share,
            count=count,
        )

    return SamplingProfile(
        rate=100,
        seconds=12.0,
        samples={"main": 1200, "workers": 2400},
        functions=[
            hot("main", "item", TORCH + "_tensor.py", 0, "train_epoch", 97, 0.412),
            hot("main", "backward", TORCH + "autograd/graph.py", 829, "train_epoch", 94, 0.233),
            hot("main", "to", train, 86, "train_epoch", 86, 0.091),
            hot("main", "_call_impl", TORCH + "nn/modules/module.py", 1784, "train_epoch", 91, 0.084),
            hot("workers", "load", PIL + "ImageFile.py", 212, "__getitem__", 41, 0.583),
            hot("workers", "resize", PIL + "Image.py", 2304, "__getitem__", 43, 0.241),
            hot("workers", "get", "/usr/lib/python3.12/multiprocessing/queues.py", 103, "", 0, 0.112),
        ],
        trees={
            "main": node(
                "<module>",
                train,
                1,
                1200,
                node("item", TORCH + "_tensor.py", 0, 494),
                node("backward", TORCH + "autograd/graph.py", 829, 280),
            ),
            "workers": node("_worker_loop", TORCH + "utils/data/_utils/worker.py", 252, 2400, loading_tree(2000)),
        },
        files=["report-artifacts/stacks-rank-0.raw.txt"],
    )


def gpu_calls() -> list[SynchronisingCall]:
    train = "/home/me/resnet/train.py"
    return [
        SynchronisingCall(name="item", path=train, line=97, per_step=1.0, ms_per_step=31.0),
        SynchronisingCall(name="cpu", path=train, line=103, per_step=0.01, ms_per_step=0.4),
    ]


def gpu_utilization(windows: Sequence[Window]) -> Utilization:
    luck = random.Random(23)
    times = [round(index * 0.5, 2) for index in range(180)]
    series: dict[str, list[float | None]] = {"main_cpu": [], "workers_cpu": []}
    series |= {f"gpu{n}_{what}": [] for n in range(2) for what in ("utilization", "memory_bytes", "power_watts")}
    for at in times:
        running = at > 6
        series["main_cpu"].append(round(luck.gauss(1.9, 0.1), 2))
        series["workers_cpu"].append(round(luck.gauss(3.4, 0.4), 2) if running else 0.0)
        for n in range(2):
            hidden = n == 1 and 40 < at < 47
            busy = min(1.0, max(0.0, luck.gauss(0.82 - 0.06 * n, 0.08))) if running else 0.0
            series[f"gpu{n}_utilization"].append(None if hidden else round(busy, 2))
            series[f"gpu{n}_memory_bytes"].append(None if hidden else 31.2e9 if running else 0.6e9)
            series[f"gpu{n}_power_watts"].append(None if hidden else round(120 + 430 * busy))
    devices = [
        DeviceUse(
            index=n,
            name="NVIDIA H100 80GB HBM3",
            utilization=0.82 - 0.06 * n,
            memory_bytes=31.2e9,
            memory_total_bytes=85.5e9,
            power_watts=470.0 - 20 * n,
            sm_clock_mhz=1755.0,
            throttle_reasons=["power cap"] if n else [],
            pcie_rx_bytes=2.1e9,
            pcie_tx_bytes=0.2e9,
        )
        for n in range(2)
    ]
    main = ProcessUse(role="main", processes=2, cpu_user=1.9, cpu_system=0.2, rss_bytes=9.8e9)
    return Utilization(
        interval_seconds=0.5,
        monitor_cpu=0.014,
        times=times,
        series=series,
        windows=[
            WindowUse(window=index, label="baseline", samples=20, processes=[main], devices=devices, cores_busy=6.1)
            for index, window in enumerate(windows)
            if not window.setting
        ],
        spans=[
            Span(
                start=8.0 + 8 * index,
                end=14.5 + 8 * index,
                label="autocast" if index % 2 else "baseline",
                session=1 + index // 5,
            )
            for index in range(10)
        ],
    )


def gpu_profiles() -> Profiles:
    return Profiles(
        sampling=gpu_sampling(),
        device=gpu_profile(),
        missing=[
            Warning(
                slug="no-line-profile",
                sentence="The line profile was left out: `line_profiler` is not installed where your script runs.",
            )
        ],
    )
