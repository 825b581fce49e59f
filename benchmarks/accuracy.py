"""Analytic truth: programs whose speed under every setting is known beforehand, against what the doctor promises.

python benchmarks/accuracy.py [--cases NAME ...] [--budget 60] [--repeat N] [--json FILE]

Loading and computing are sleeps, so the truth does not depend on the machine but for what a batch, a step and the
workers' start and end cost besides, which is measured first and printed. With load l a batch, compute c and w workers,
a step takes l + c for w = 0 and max(c, l / w) otherwise; where samples or epochs are uneven, a discrete simulation of
torch's loader says what it takes.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
SCRIPT = HERE / "workloads" / "analytic.py"
PREFETCH = 2
DISTINCT = 1.05
"""Settings whose true speeds differ by less than this ratio may come in either order."""


@dataclass(frozen=True)
class Case:
    """One program: its kind, seconds of loading and computing a batch, and batches an epoch."""

    name: str
    kind: str
    load: float
    compute: float
    batches: int

    def arguments(self) -> list[str]:
        words = [self.kind, "--load", self.load, "--compute", self.compute, "--batches", self.batches]
        return [str(word) for word in words]


CASES = [
    Case("data-bound", "map", 0.080, 0.030, 600),
    Case("compute-bound", "map", 0.006, 0.080, 600),
    Case("balanced", "map", 0.050, 0.050, 600),
    Case("slow sample in ten", "slow-sample", 0.080, 0.030, 600),
    Case("unequal batches", "unequal", 0.080, 0.030, 600),
    Case("six-batch epochs", "map", 0.080, 0.030, 6),
    # Steady windows, whose promise weighs what starting an epoch costs.
    Case("sixty-batch epochs", "map", 0.080, 0.030, 60),
    Case("iterable", "iterable", 0.080, 0.030, 600),
    Case("no loader", "no-loader", 0.0, 0.060, 600),
]


MOST_WORKERS = 4
"""Starting and ending more workers than this is taken to cost as much more as each of these does."""


@dataclass(frozen=True)
class Overhead:
    """Seconds that this machine adds to the ideal: a step, a batch made by a worker, an epoch's start and end."""

    step: float
    handover: float
    epoch: dict[int, float]
    """By number of workers that are started and ended."""


CALIBRATION = f"""
import json, sys, time; sys.path.insert(0, {str(SCRIPT.parent)!r})
from statistics import median
import torch, analytic
from torch.utils.data import DataLoader
torch.set_num_threads(1)
model = torch.nn.Linear(4, 2); optimizer = torch.optim.SGD(model.parameters(), lr=.01)
def epoch(loader, compute):
    begun = time.perf_counter()
    for x, y in loader:
        time.sleep(compute)
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad(); loss.backward(); optimizer.step()
    return time.perf_counter() - begun
def typical(workers, batches, load, compute):
    loader = DataLoader(analytic.Samples(4 * batches, load / 4), batch_size=4, num_workers=workers)
    epoch(loader, compute)
    return median(epoch(loader, compute) for _ in range(5))
long, short = typical(1, 34, .03, .005), typical(1, 4, .03, .005)
epochs = [typical(workers, 4, .03, .01) for workers in range(1, {MOST_WORKERS} + 1)]
print(json.dumps([typical(0, 30, .02, .01), long - short, epochs]))
"""


def measure_overhead() -> Overhead:
    """From plain loops without the doctor, with loads unlike those that are examined."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CALIBRATION], capture_output=True, text=True, check=True
    )
    alone, thirty_more, epochs = json.loads(done.stdout)
    free = Overhead(alone / 30 - 0.03, thirty_more / 30 - 0.03, {})
    short = Case("calibration", "map", 0.03, 0.01, 4)
    epoch = {w: seconds - epoch_seconds(short, w, free) for w, seconds in enumerate(epochs, 1)}
    return Overhead(free.step, free.handover, epoch)


def loads(case: Case, count: int) -> list[tuple[float, float, int]]:
    """Loading seconds, computing seconds and samples of the first `count` batches."""
    if case.kind == "unequal":
        sizes = itertools.islice(itertools.cycle((2, 8, 5, 11)), count)
        return [(case.load * size / 6.5, case.compute * size / 6.5, size) for size in sizes]
    if case.kind == "slow-sample":
        quick = case.load / 4 / 1.9
        batches = []
        for number in range(count):
            indices = range(4 * number, 4 * number + 4)
            slow = sum((index * 7) % 10 == 3 for index in indices)
            batches.append((quick * (4 - slow) + 10 * quick * slow, case.compute, 4))
        return batches
    return [(case.load, case.compute, 4)] * count


def epoch_seconds(
    case: Case, workers: int, overhead: Overhead, *, persistent: bool = False, prefetch: int = 2
) -> float:
    """Seconds of one epoch: a simulation of torch's loader, in-order delivery and prefetching included."""
    batches = loads(case, case.batches)
    step = overhead.step
    if workers == 0:
        return sum(load + compute + step for load, compute, _ in batches)
    clock = 0.0 if persistent else epoch_overhead(overhead, workers)
    free = [clock] * workers
    ready: list[float] = []
    sent = 0

    def send(at: float) -> None:
        nonlocal sent
        if sent < len(batches):
            worker = sent % workers
            free[worker] = max(free[worker], at) + batches[sent][0] + overhead.handover
            ready.append(free[worker])
            sent += 1

    for _ in range(prefetch * workers):
        send(clock)
    for number, (_, compute, _) in enumerate(batches):
        clock = max(clock, ready[number])
        send(clock)
        clock += compute + step
    return clock


def epoch_overhead(overhead: Overhead, workers: int) -> float:
    """Seconds of an epoch's start and end with so many workers."""
    if not overhead.epoch or workers in overhead.epoch:
        return overhead.epoch.get(workers, 0.0)
    return overhead.epoch[MOST_WORKERS] + (workers - MOST_WORKERS) * overhead.epoch[MOST_WORKERS] / MOST_WORKERS


def truth(case: Case, setting: dict, overhead: Overhead) -> float | None:
    """The true speedup of a setting; None where it is not known beforehand."""
    known = {"num_workers", "persistent_workers", "prefetch_factor", "autocast"}
    if set(setting) - known:
        return None
    if case.kind == "no-loader":
        return 1.0
    if "autocast" in setting:
        return None
    base = epoch_seconds(case, 0, overhead)
    other = epoch_seconds(
        case,
        int(setting.get("num_workers", 0)),
        overhead,
        persistent=bool(setting.get("persistent_workers")),
        prefetch=int(setting.get("prefetch_factor", PREFETCH)),
    )
    return base / other


def examine(case: Case, budget: int, seed: int) -> dict:
    """The report of one examination."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "bottleneck_doctor", "run", "--quiet", "--no-explain"]
        command += ["-o", folder, "--seed", str(seed)]
        command += (
            ["--budget", f"{budget}s", "--skip", "amp-bf16"] if case.kind != "no-loader" else ["--budget", f"{budget}s"]
        )
        done = subprocess.run([*command, str(SCRIPT), "--", *case.arguments()], capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"{case.name}: exit {done.returncode}\n{done.stdout}\n{done.stderr}")
        return json.loads((Path(folder) / "report.json").read_text())


def settings_of(report: dict) -> list[tuple[dict, dict]]:
    """Every measured setting with its speedup, once each."""
    seen: dict[str, tuple[dict, dict]] = {}
    for point in (report["workers"] or {}).get("curve", []):
        if not point["is_baseline"]:
            setting = {"num_workers": point["num_workers"]}
            seen[json.dumps(setting)] = (setting, point["speedup"])
    for fix in report["fixes"]:
        if fix["speedup"]:
            seen[json.dumps(fix["setting"], sort_keys=True)] = (fix["setting"], fix["speedup"])
    return list(seen.values())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", nargs="*", default=[case.name for case in CASES])
    parser.add_argument("--budget", type=int, default=60)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    print(
        f"{platform.platform()}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}, "
        f"Python {platform.python_version()}"
    )
    overhead = measure_overhead()
    print(
        f"overhead of this machine: {1e3 * overhead.step:.2f} ms a step, {1e3 * overhead.handover:.2f} ms a batch "
        f"made by a worker; an epoch's start and end with 1 to {MOST_WORKERS} workers: "
        f"{', '.join(f'{1e3 * each:.0f}' for each in overhead.epoch.values())} ms"
    )
    print(f"{'case':20} {'setting':44} {'true':>6} {'promised':>8}  {'95 %':13} {'error':>7}  {'A/A':>6}")
    errors: list[float] = []
    held: list[bool] = []
    misordered: list[str] = []
    rows: list[dict] = []
    for case in CASES:
        if case.name not in options.cases:
            continue
        for repetition in range(options.repeat):
            begun = time.monotonic()
            report = examine(case, options.budget, seed=repetition)
            control = (report["noise"] or {}).get("aa_ratio") or {"estimate": math.nan}
            pairs: list[tuple[float, float]] = []
            for setting, speedup in settings_of(report):
                true = truth(case, setting, overhead)
                if true is None:
                    continue
                error = speedup["estimate"] / true - 1
                errors.append(abs(error))
                held.append(speedup["low"] <= true <= speedup["high"])
                pairs.append((true, speedup["estimate"]))
                text = ", ".join(f"{name}={value}" for name, value in setting.items())
                interval = f"{speedup['low']:.2f}–{speedup['high']:.2f}"
                print(
                    f"{case.name:20} {text:44} {true:6.2f} {speedup['estimate']:8.2f}  {interval:13} {error:+7.1%}"
                    f"  {control['estimate'] - 1:+6.1%}",
                    flush=True,
                )
                rows.append({"case": case.name, "setting": setting, "true": true, "promised": speedup, "error": error})
            for one, other in itertools.combinations([(1.0, 1.0), *pairs], 2):
                if max(one[0], other[0]) / min(one[0], other[0]) > DISTINCT and (one[0] < other[0]) != (
                    one[1] < other[1]
                ):
                    misordered.append(f"{case.name}: {one} and {other}")
            print(f"{'':20} {report['verdict']['sentence']}  [{time.monotonic() - begun:.0f} s]", flush=True)
    print(
        f"\nerror: median {statistics.median(errors):.1%}, worst {max(errors):.1%}; "
        f"truth inside the interval in {sum(held)} of {len(held)}; order wrong in {len(misordered)} pairs"
    )
    for line in misordered:
        print(f"  order: {line}")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    return 1 if misordered or statistics.median(errors) > 0.05 or max(errors) > 0.12 else 0


if __name__ == "__main__":
    sys.exit(main())
