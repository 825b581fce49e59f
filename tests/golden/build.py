"""Made-up results, where no recording can stand: `python tests/golden/build.py` writes them to `invented/` as JSON.

The figures are invented but consistent with one another; nothing here was measured. `gpu`: no machine that records has
GPUs. `hostile`: nobody's program is that. `undecided`: every kind of doubt stands on one page. `pets`: what tests of
single rules of the page put figures of their own into; no golden page is drawn of it. All other golden results are
recorded (`record.py`). `report-format-1.json` is written by neither: it stays as the first release wrote it.
"""

from __future__ import annotations

import random
import runpy
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from bottleneck_doctor.documents.report import (
    Baseline,
    CallNode,
    Change,
    Combination,
    DeviceProfile,
    DeviceUse,
    Entrypoint,
    Environment,
    Event,
    FileUse,
    Finding,
    FixOutcome,
    HotFunction,
    LadderStep,
    LineCost,
    LineListing,
    LineProfile,
    Method,
    Noise,
    NotJudged,
    Operator,
    Profiles,
    Protection,
    Result,
    SamplingProfile,
    SessionRecord,
    Setting,
    Settle,
    Site,
    SourceFile,
    Sources,
    Span,
    Speedup,
    SynchronisingCall,
    Timeline,
    Tool,
    TransformCost,
    Verdict,
    Warning,
    WholeRun,
    Window,
    WorkerPoint,
    Workers,
    to_json,
)

HERE = Path(__file__).parent

evidence = SimpleNamespace(**runpy.run_path(str(HERE / "evidence.py")))
"""The evidence that the results hold, by the file beside this one: this folder is no package."""

LOADER = "    loader = DataLoader(dataset, batch_size=32, shuffle=True"


def speedup(estimate: float, low: float, high: float, pairs: int = 8, sessions: int = 4) -> Speedup:
    return Speedup(estimate=estimate, low=low, high=high, pairs=pairs, sessions=sessions)


def loader_diff(added: str) -> str:
    return f"@@ -42 +42 @@\n-{LOADER})\n+{LOADER}, {added})\n"


def loader_change(added: str) -> Change:
    return Change(file="train.py", line=42, diff=loader_diff(added))


def kept(project: str, path: str) -> Sources:
    """What is kept of one file that changes edit."""
    return Sources(project=project, files=[SourceFile(file=path, path=path, sha256="5f" * 32, line_digests="")])


def windows() -> list[Window]:
    luck = random.Random(7)
    rates: list[tuple[Setting, float, float]] = [
        ({}, 12.0, 0.73),
        ({"num_workers": 4}, 40.1, 0.06),
        ({"num_workers": 4, "persistent_workers": True}, 41.2, 0.05),
        ({"num_workers": 2}, 24.3, 0.46),
        (evidence.BEST, 43.0, 0.06),
        ({"autocast": "bfloat16"}, 12.1, 0.75),
    ]
    made = []
    started = 30.0
    for session in range(1, 5):
        level = luck.gauss(1, 0.02)
        started += 6.0
        for block in range(2):
            for setting, rate, wait in luck.sample(rates, len(rates)):
                seconds = 6 * 32 / (rate * level * luck.gauss(1, 0.015))
                made.append(
                    Window(
                        session=session,
                        rank=0,
                        block=block,
                        setting=setting,
                        mode="timed",
                        steps=6,
                        samples=6 * 32,
                        seconds=round(seconds, 3),
                        lead_in_steps=4,
                        lead_in_seconds=round(seconds * 0.4, 3),
                        wait_seconds=round(seconds * wait, 3),
                        turn_seconds=1.31 if setting.get("num_workers") else 0.02,
                        whole_epochs=0,
                        queue_change=0,
                        ready_share=0.9 if setting.get("num_workers") == 4 else 0.0,
                        effect=dict.fromkeys(setting, True),
                        started=round(started, 2),
                    )
                )
                started += seconds * 1.4
    made.append(
        replace(made[-1], setting={"num_workers": 64}, status="failed", reason="Too many open files", seconds=0.0)
    )
    return made


def fixes() -> list[FixOutcome]:
    return [
        FixOutcome(
            id="workers",
            title="Load in worker processes",
            why="Samples are decoded one after another in the process that trains; four can be decoded at once.",
            setting={"num_workers": 4},
            status="faster",
            risk="identical",
            reason="",
            speedup=speedup(3.31, 3.12, 3.49),
            steady=speedup(3.52, 3.33, 3.71),
            confirmed=speedup(3.28, 3.09, 3.48, 6, 3),
            change=loader_change("num_workers=4"),
        ),
        FixOutcome(
            id="persistent-workers",
            title="Keep workers between epochs",
            why="Without it every epoch starts its workers anew: 1.3 s each time, for 115 batches of work.",
            setting={"num_workers": 4, "persistent_workers": True},
            status="faster",
            risk="identical",
            reason="",
            speedup=speedup(3.43, 3.22, 3.64),
            steady=speedup(3.51, 3.31, 3.70),
            over={"num_workers": 4},
            added=speedup(1.036, 1.021, 1.052),
            confirmed=speedup(3.41, 3.20, 3.63, 6, 3),
            change=loader_change("num_workers=4, persistent_workers=True"),
        ),
        FixOutcome(
            id="amp-bf16",
            title="Mixed precision in bfloat16",
            why="Matrix products in bfloat16 move half the bytes, where the CPU has instructions for it.",
            setting={"autocast": "bfloat16"},
            status="no_difference",
            risk="numerics",
            reason="Training waits for data; what the model gains here, it waits longer.",
            speedup=speedup(1.004, 0.991, 1.017),
        ),
        FixOutcome(
            id="channels-last",
            title="Channels-last memory format",
            why="Convolutions read neighbouring channels together.",
            setting={"memory_format": "channels_last"},
            status="faster",
            risk="numerics",
            reason="",
            speedup=speedup(1.061, 1.032, 1.091),
            change=Change(
                file="train.py",
                line=51,
                diff="@@ -51 +51 @@\n-    model = resnet18(num_classes=37)\n"
                "+    model = resnet18(num_classes=37).to(memory_format=torch.channels_last)\n",
                note="Give the batch the same format: `images = images.to(memory_format=torch.channels_last)`.",
            ),
        ),
        FixOutcome(
            id="prefetch-factor",
            title="Prefetch more batches",
            why="A deeper queue evens out batches that take long to load.",
            setting={"num_workers": 4, "prefetch_factor": 4},
            status="no_difference",
            risk="identical",
            reason="The queue is full as it is.",
            speedup=speedup(0.998, 0.987, 1.009),
            over={"num_workers": 4},
        ),
        FixOutcome(
            id="gc",
            title="Freeze the garbage collector during steps",
            why="Python looks for cycles while the model waits.",
            setting={"gc": "frozen"},
            status="cannot_tell",
            risk="identical",
            reason="",
            speedup=speedup(1.021, 0.972, 1.073),
            more_blocks=14,
        ),
        FixOutcome(
            id="intra-op-threads",
            title="Fewer threads in the main process",
            why="Threads of the main process take CPUs from the workers.",
            setting={"num_threads": 1},
            status="slower",
            risk="identical",
            reason="The forward and backward pass take 1.9 times as long.",
            speedup=speedup(0.822, 0.801, 0.843),
        ),
        FixOutcome(
            id="pinned-memory",
            title="Pinned memory",
            why="Copies to the device can run beside the computation.",
            setting={"pin_memory": True},
            status="not_applicable",
            risk="identical",
            reason="There is no device to copy to: training runs on the CPU.",
        ),
        FixOutcome(
            id="zero-grad-none",
            title="Set gradients to None",
            why="Saves writing zeros.",
            setting={},
            status="not_applicable",
            risk="identical",
            reason="Already on.",
        ),
        FixOutcome(
            id="compile",
            title="torch.compile",
            why="Fuses operations.",
            setting={"compile": True},
            status="failed",
            risk="numerics",
            reason="`torch.compile` needs a C++ compiler: InvalidCxxCompiler: No working C++ compiler found in c++.",
        ),
    ]


def pets() -> Result:
    curve = [
        (0, 12.0, speedup(1, 1, 1), speedup(1, 1, 1)),
        (1, 13.1, speedup(1.09, 1.04, 1.14), speedup(1.13, 1.08, 1.18)),
        (2, 24.3, speedup(2.02, 1.9, 2.15), speedup(2.1, 1.97, 2.24)),
        (3, 33.8, speedup(2.81, 2.64, 2.99), speedup(2.97, 2.8, 3.14)),
        (4, 40.1, speedup(3.31, 3.12, 3.49), speedup(3.52, 3.33, 3.71)),
        (6, 40.4, speedup(3.3, 3.07, 3.55), speedup(3.55, 3.31, 3.8)),
        (8, 38.7, speedup(3.12, 2.86, 3.4), speedup(3.41, 3.15, 3.7)),
    ]
    return Result(
        tool=Tool(name="bottleneck-doctor", version="0.1.0"),
        created="2026-11-20T10:31:00Z",
        entrypoint=Entrypoint(argv=["python", "train.py", "config.json"], cwd="/home/ada/pets"),
        environment=Environment(
            python="3.12.7",
            torch="2.9.1",
            platform="Linux 6.8, x86_64, glibc 2.39",
            cpu="AMD Ryzen 7 7700X 8-Core Processor",
            usable_cpus=4,
            total_cpus=16,
            memory_bytes=32 * 1024**3,
            devices=[],
            variables={"OMP_NUM_THREADS": "4"},
            fingerprint="b3f2c87d10e4",
        ),
        verdict=Verdict(
            sentence="Training waits for data 73 % of the time. `num_workers=4, persistent_workers=True` makes "
            "training 3.4× faster (95 % 3.2–3.6, 8 pairs).",
            finding="input-bound",
            fix="persistent-workers",
        ),
        baseline=Baseline(
            samples_per_second=12.0,
            steps_per_second=0.375,
            step_ms=2667.0,
            windows=8,
            sessions=4,
            data_wait_share=0.73,
            settings={"num_workers": 0, "batch_size": 32, "shuffle": True, "pin_memory": False},
            rung="optimizer steps",
            period=1,
            batch_size=32,
            epoch_batches=115,
            epoch_turn_seconds=0.02,
            device="cpu",
        ),
        noise=Noise(aa_ratio=speedup(1.003, 0.991, 1.015), floor=0.015),
        ceilings={"synthetic": speedup(3.74, 3.6, 3.88), "loader_only": speedup(1.37, 1.33, 1.41)},
        fixes=fixes(),
        combination=Combination(
            setting={"num_workers": 4, "persistent_workers": True, "memory_format": "channels_last"},
            speedup=speedup(3.62, 3.4, 3.85),
            confirmed=speedup(3.58, 3.37, 3.8, 6, 3),
            ladder=[
                LadderStep(fix="workers", setting={"num_workers": 4}, speedup=speedup(3.31, 3.12, 3.49)),
                LadderStep(
                    fix="persistent-workers",
                    setting={"num_workers": 4, "persistent_workers": True},
                    speedup=speedup(3.43, 3.22, 3.64),
                ),
                LadderStep(
                    fix="channels-last",
                    setting={"num_workers": 4, "persistent_workers": True, "memory_format": "channels_last"},
                    speedup=speedup(3.62, 3.4, 3.85),
                ),
            ],
        ),
        workers=Workers(
            curve=[
                WorkerPoint(num_workers=n, samples_per_second=rate, speedup=whole, steady=steady, is_baseline=n == 0)
                for n, rate, whole, steady in curve
            ],
            usable_cpus=4,
        ),
        phases=evidence.phases(),
        utilization=evidence.utilization(windows()),
        profiles=evidence.profiles(),
        findings=evidence.findings(),
        warnings=[
            Warning(
                slug="shared-machine",
                sentence="Other processes used 0.6 of your 4 CPUs on average; figures may be better when they rest.",
            ),
            Warning(
                slug="files-restored",
                sentence="`runs/last.pt` was written while probing and has been put back as it was.",
            ),
        ],
        windows=windows(),
        method=Method(
            command=["doctor", "run", "--budget", "10m", "--seed", "7", "train.py", "--", "config.json"],
            seed=7,
            budget_seconds=600,
            seconds=571.4,
            ways="windows",
            protection=Protection(
                kind="sandbox",
                covered=["/home", "/tmp", "/work"],
                unprotected=["what it sends over the network"],
            ),
            sessions=[
                SessionRecord(
                    number=number,
                    setup_seconds=4.1 + number / 10,
                    seconds=140.2 + number,
                    ended="ended by us when its windows were done",
                    other_load=0.6,
                )
                for number in range(1, 5)
            ],
        ),
        steps=evidence.steps(),
        epoch_pause=evidence.pause(),
        loading=evidence.loading(),
        timelines=evidence.timelines(),
        garbage=evidence.garbage(),
        not_judged=evidence.not_judged(),
    )


def without_evidence(result: Result) -> Result:
    """As if nothing had been explained."""
    return replace(
        result,
        phases=None,
        utilization=None,
        profiles=None,
        findings=[],
        steps=None,
        epoch_pause=None,
        loading=[],
        timelines=[],
        garbage=None,
        not_judged=[],
    )


def gpu() -> Result:
    """Two GPUs that wait for their host and compute in float32."""
    whole = pets()
    assert whole.baseline is not None
    train = "/home/me/resnet/train.py"
    autocast = replace(
        whole.fixes[2],
        status="faster",
        reason="",
        why="Matrix products in bfloat16 run on Tensor Cores.",
        speedup=speedup(1.78, 1.71, 1.85),
        change=Change(
            file="train.py",
            line=91,
            diff="@@ -91 +91,2 @@\n-        outputs = model(images)\n"
            '+        with torch.autocast("cuda", dtype=torch.bfloat16):\n+            outputs = model(images)\n',
        ),
    )
    pinned = replace(
        whole.fixes[0],
        id="pinned-memory",
        title="Pinned memory",
        why="Copies to the device run beside the computation.",
        setting={"pin_memory": True},
        speedup=speedup(1.041, 1.022, 1.06),
        steady=None,
        confirmed=None,
        change=None,
    )
    raced = [replace(each, setting={"autocast": "bfloat16"} if each.setting else {}) for each in whole.windows[:10]]
    return replace(
        without_evidence(whole),
        entrypoint=Entrypoint(argv=["torchrun", "--nproc-per-node", "2", train], cwd="/home/me/resnet"),
        environment=replace(whole.environment, devices=["NVIDIA H100 80GB HBM3"] * 2, usable_cpus=16),
        verdict=Verdict(
            sentence="Tensor Cores lie idle. `autocast` in bfloat16 makes training 1.78× faster "
            "(95 % 1.71–1.85, 8 pairs).",
            finding="tensor-cores-idle",
            fix="amp-bf16",
        ),
        baseline=replace(
            whole.baseline,
            samples_per_second=1422.0,
            steps_per_second=5.55,
            step_ms=180.0,
            data_wait_share=0.034,
            settings={"num_workers": 8, "batch_size": 256, "shuffle": True, "pin_memory": False},
            batch_size=256,
            device="cuda:0",
        ),
        ceilings={"synthetic": speedup(1.04, 1.02, 1.06)},
        fixes=[autocast, pinned],
        combination=None,
        workers=None,
        warnings=[],
        windows=raced,
        phases=evidence.gpu_phases(),
        utilization=evidence.gpu_utilization(raced),
        profiles=evidence.gpu_profiles(),
        findings=evidence.gpu_findings(),
        synchronising=evidence.gpu_calls(),
        sources=kept("/home/me/resnet", "train.py"),
        whole_run=WholeRun(
            epochs=90, steps=450_450, start=21.0, training=81_081.0, between=7_200.0, may_end_sooner=False
        ),
    )


def settle(*fixes: str, minutes: int = 5) -> Settle:
    """What would settle these."""
    only = [word for fix in sorted(fixes) for word in ("--only", fix)]
    command = ["doctor", "run", "--budget", f"{minutes}m", *only, "train.py", "--", "config.json"]
    return Settle(seconds=60.0 * minutes, command=command, fixes=list(fixes))


def undecided() -> Result:
    """Nothing can be claimed, and fixes are ranked by the chance that they help."""
    whole = pets()
    by_id = {fix.id: fix for fix in fixes()}
    few = "it was measured in only {}, and since processes differ, it takes 3 or more to be sure"
    open_ones = [
        replace(
            by_id["channels-last"],
            reason="it may be slower or faster: the interval reaches from 0.93× to 1.36×",
            speedup=speedup(1.125, 0.93, 1.36, 6, 3),
            chance=0.41,
            settle=settle("channels-last", minutes=15),
        ),
        replace(
            by_id["workers"],
            reason=few.format("1 process"),
            speedup=speedup(1.85, 0.0, 1e4, 2, 1),
            chance=0.972,
            settle=settle("workers"),
        ),
        replace(by_id["gc"], reason=few.format("2 processes"), speedup=speedup(0.94, 0.81, 1.09, 4, 2), chance=0.012),
        replace(
            by_id["prefetch-factor"],
            reason="the time was over before it could be measured",
            speedup=None,
            over={},
            settle=settle("prefetch-factor", "workers", minutes=6),
        ),
    ]
    plain = [replace(fix, status="cannot_tell", steady=None, confirmed=None, more_blocks=4) for fix in open_ones]
    return replace(
        without_evidence(whole),
        verdict=Verdict(
            sentence="Training waits for data 73 % of the time. Cannot tell yet: `num_workers=4` looked 1.85× as fast "
            "in 1 process, but it takes 2 or more to be sure. It is likely to help (97 %). To make sure, run `doctor "
            "run --budget 20m --only channels-last --only workers train.py …` (about 20 minutes).",
            settle=settle("workers", "channels-last", minutes=20),
        ),
        fixes=[*plain, *(fix for fix in fixes() if fix.id in ("pinned-memory", "compile"))],
        combination=None,
        workers=None,
    )


def hostile_finding(attack: str, path: str) -> Finding:
    return Finding(
        id=attack,
        title=attack,
        sentence=attack,
        evidence={attack: 1.0},
        fixes=[attack, "</style>"],
        weight=0.4,
        share=0.3,
        site=Site(file=path, line=3),
        advice=attack,
    )


def hostile_evidence(attack: str, path: str) -> dict[str, Any]:
    """The fields of a `Result` that hold evidence, each text of them an attack."""
    site = Site(file=path, line=3)
    whole = pets()
    assert whole.utilization is not None
    use = replace(whole.utilization.windows[0], window=0, label=attack)
    tree = CallNode(
        name=attack, path=path, line=1, count=9, children=[CallNode(name=attack, path=path, line=2, count=9)]
    )
    function = HotFunction(
        role="main",
        name=attack,
        path=path,
        line=1,
        own_name=attack,
        own_path=path,
        own_line=2,
        share=1.0,
        count=9,
    )
    lines = [LineCost(line=3, text=attack, hits=1, seconds=1.0, share=1.0)]
    operator = Operator(name=attack, calls=1, cpu_ms=1.0, device_ms=1.0, share=1.0)
    return {
        "phases": replace(whole.phases, best_setting={attack: attack}) if whole.phases else None,
        "loading": [
            replace(
                each,
                setting={attack: attack} if each.setting else {},
                transforms=[TransformCost(name=attack, ms_per_sample=1.0, share_of_fetch=2.0, file=path, line=3)],
                files=FileUse(per_batch=1.0, mean_bytes=1.0, file_system=attack, remote=True),
                fetch_site=site,
                collate_site=site,
            )
            for each in whole.loading
        ],
        "timelines": [
            Timeline(
                setting={attack: attack},
                seconds=1.0,
                events=[Event(lane=attack, kind=attack, start=0.0, seconds=1.0, batch=1)],
            )
        ],
        "utilization": replace(
            whole.utilization,
            times=whole.utilization.times[:40],
            series={name: values[:40] for name, values in whole.utilization.series.items()} | {attack: [1.0]},
            windows=[replace(use, devices=[DeviceUse(index=0, name=attack, throttle_reasons=[attack])])],
            spans=[Span(start=0.0, end=9.0, label=attack, session=1)],
            missing=[attack],
        ),
        "profiles": Profiles(
            sampling=SamplingProfile(
                rate=100, seconds=1.0, samples={"main": 9}, functions=[function], trees={"main": tree}, files=[path]
            ),
            lines=LineProfile(
                steps=1,
                listings=[LineListing(name=attack, path=path, first_line=3, seconds=1.0, lines=lines)],
                files=[attack],
            ),
            device=DeviceProfile(
                steps=1, seconds=1.0, operators=[operator], kernels=[operator], idle_share=1.0, idle_cause=attack
            ),
            missing=[Warning(slug=attack, sentence=attack)],
        ),
        "synchronising": [SynchronisingCall(name=attack, path=path, line=3, per_step=1.0, ms_per_step=1.0)],
        "not_judged": [NotJudged(id=attack, reason=attack)],
    }


def hostile() -> Result:
    """Texts that try to leave their place: markup, scripts, terminal escapes, directions, long paths."""
    whole = pets()
    attack = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"' style=color:red {{ 7*7 }}"
    reversed_text = "\u202eevil\u202c \u001b[31mred\u0000 日本語 \u2028 ü"
    path = "/" + "very_long_folder_name/" * 14 + "train.py"
    fix = replace(
        whole.fixes[0],
        id="</style>",
        title=attack,
        why=reversed_text,
        setting={attack: attack},
        reason=attack,
        change=Change(file=path, line=3, diff=f"@@ -3 +3 @@\n-{attack}\n+{reversed_text}\n", note=attack),
    )
    return replace(
        whole,
        entrypoint=Entrypoint(argv=["python", attack, path], cwd=path),
        environment=replace(whole.environment, cpu=attack, variables={attack: attack}, devices=[attack]),
        verdict=Verdict(
            sentence=f"`{attack}` {reversed_text}",
            fix="</style>",
            settle=Settle(seconds=60.0, command=[attack, reversed_text], fixes=[attack, reversed_text]),
        ),
        ceilings={attack: speedup(2.0, 1.9, 2.1)},
        fixes=[
            fix,
            replace(fix, status="failed", speedup=None, id="-->"),
            replace(
                fix,
                status="cannot_tell",
                id=reversed_text,
                chance=0.5,
                settle=Settle(seconds=60.0, command=[attack, reversed_text], fixes=[attack, reversed_text]),
            ),
        ],
        combination=Combination(
            setting={attack: 1},
            speedup=speedup(3.0, 2.9, 3.1),
            confirmed=None,
            ladder=[LadderStep(fix=attack, setting={attack: attack}, speedup=speedup(3.0, 2.9, 3.1))],
        ),
        sources=Sources(project=attack, files=[SourceFile(file=path, path=attack, sha256=attack, line_digests=attack)]),
        findings=[hostile_finding(attack, path)],
        **hostile_evidence(attack, path),
        warnings=[Warning(slug=attack, sentence=attack)],
        windows=[replace(whole.windows[0], label=attack, mode=attack, reason=attack)],
        method=replace(
            whole.method,
            command=["doctor", "run", attack],
            sessions=[replace(whole.method.sessions[0], ended=attack)],
        ),
    )


def results() -> dict[str, Result]:
    """Every made-up result by the name of its files."""
    return {
        "pets": pets(),
        "gpu": gpu(),
        "hostile": hostile(),
        "undecided": undecided(),
    }


if __name__ == "__main__":
    for name, result in results().items():
        (HERE / "invented" / f"{name}.json").write_bytes(to_json(result))
