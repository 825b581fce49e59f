"""What the benchmarks share: starting a script and reading its epoch times, intervals, the line on the machine, files.

A start is one process of an ordinary training script that prints `epoch N … S s` after each epoch, where S is the time
that the epoch's training took, evaluation and checkpoints left out. Times in seconds, half widths of logarithms.
"""

from __future__ import annotations

import json
import math
import os
import platform
import random
import re
import resource
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import psutil

from bottleneck_doctor.statistics.distributions import student_t_quantile

ROOT = Path(__file__).resolve().parents[1]
WORKLOADS = Path(__file__).resolve().parent / "workloads"
DOCTOR = (sys.executable, "-m", "bottleneck_doctor")
EPOCH = re.compile(r"^epoch (\d+)\b.*?([\d.]+) s\b", re.MULTILINE)
START_EVERY = 1.1
"""Seconds from one start to the next at least: programs that name things by the second must not collide."""


# -- the machine -------------------------------------------------------------------------------------------------------


def machine() -> dict[str, Any]:
    """What the figures were made on."""
    import torch

    cpu = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
            if line.startswith("model name"):
                cpu = line.partition(":")[2].strip()
                break
    except OSError:
        pass
    devices = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    return {
        "cpu": cpu,
        "cores": len(os.sched_getaffinity(0)),
        "load": [round(value, 2) for value in os.getloadavg()],
        "python": platform.python_version(),
        "torch": torch.__version__,
        "devices": devices,
        "system": platform.platform(),
        "date": time.strftime("%Y-%m-%d %H:%M", time.gmtime()) + " UTC",
        "revision": revision(),
    }


def revision() -> str:
    """The commit of the doctor that was measured, with a `+` where the tree has other changes."""
    try:
        commit = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.strip()
        dirty = subprocess.run(["git", "diff", "--quiet", "HEAD", "--", "src"], cwd=ROOT, check=False).returncode
        return commit + ("+" if dirty else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def machine_line(seen: dict[str, Any]) -> str:
    devices = ", ".join(seen["devices"]) or "no GPU"
    load = " ".join(f"{value:g}" for value in seen["load"])
    return (
        f"{seen['cpu']}, {seen['cores']} cores, {devices}, load {load}, Python {seen['python']}, "
        f"torch {seen['torch']}, {seen['system']}, {seen['date']}, revision {seen['revision']}"
    )


# -- starts ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Start:
    """One start of a script: seconds of every epoch it printed, its whole life, and why it does not count, if so."""

    epochs: list[float]
    seconds: float
    others: float
    """Mean number of cores that programs of others kept busy meanwhile."""
    failure: str = ""
    epoch_mean: float = field(init=False)
    """Mean seconds of the epochs after the first, which warms caches, allocator and libraries up; 0 where it failed."""

    def __post_init__(self) -> None:
        rest = self.epochs[1:]
        object.__setattr__(self, "epoch_mean", fmean(rest) if rest and not self.failure else 0.0)

    def to_json(self) -> dict[str, Any]:
        return {"epochs": self.epochs, "seconds": self.seconds, "others": self.others, "failure": self.failure}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Start:
        return cls(value["epochs"], value["seconds"], value["others"], value["failure"])


_last_start = -math.inf


def start(
    argv: Sequence[str], cwd: Path, epochs: int, limit: float = 900.0, variables: Mapping[str, str] | None = None
) -> Start:
    """Run a script to its end and read the times of its `epochs` epochs. A start that goes wrong is a result too.

    `variables` are set for it beside the environment.
    """
    global _last_start
    time.sleep(max(0.0, _last_start + START_EVERY - time.monotonic()))
    _last_start = time.monotonic()
    busy, own = _busy_seconds(), _own_seconds()
    failure = ""
    try:
        done = subprocess.run(
            [sys.executable, *argv],
            cwd=cwd,
            env={**os.environ, **(variables or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=limit,
            check=False,
        )
        text = done.stdout
        if done.returncode:
            lines = [line for line in text.splitlines() if line.strip()]
            failure = f"exit code {done.returncode}: {lines[-1].strip()[:200] if lines else 'no output'}"
    except subprocess.TimeoutExpired as expired:
        out = expired.stdout or b""
        text = out.decode(errors="replace") if isinstance(out, bytes) else out
        failure = f"not done after {limit:.0f} s"
    times = [float(seconds) for _, seconds in EPOCH.findall(text)]
    if not failure and len(times) != epochs:
        failure = f"printed the times of {len(times)} epochs instead of {epochs}"
    seconds = time.monotonic() - _last_start
    others = max(0.0, _busy_seconds() - busy - (_own_seconds() - own)) / seconds
    return Start(times, seconds, others, failure)


def examination(words: Sequence[str], cwd: Path, limit: float, **options: Any) -> tuple[int, str, float]:
    """Run `doctor` with these words: exit code, why there is no report ("" where there is one), and seconds it took.

    One that is not done after `limit` seconds has failed. `options` are those of `subprocess.Popen`.
    """
    begun = time.monotonic()
    process = subprocess.Popen(
        [*DOCTOR, *words],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        **options,
    )
    failure = ""
    try:
        out, err = process.communicate(timeout=limit)
    except BaseException as error:
        process.terminate()  # It ends what it started; killing it would not.
        out, err = process.communicate(timeout=60)
        if not isinstance(error, subprocess.TimeoutExpired):
            raise
        failure = f"not done after {limit:.0f} s. "
    if process.returncode and not failure:
        failure = f"exit code {process.returncode}. "
    if failure:
        failure += (err or out).strip()[-1500:]
    return process.returncode, failure, time.monotonic() - begun


def _busy_seconds() -> float:
    """CPU seconds of everything on this machine, since it started."""
    times = psutil.cpu_times()
    return float(times.user + times.system + getattr(times, "steal", 0.0))


def _own_seconds() -> float:
    """CPU seconds of this process and of its ended children."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


# -- intervals ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ratio:
    """An estimated ratio with its 95 % interval, and half its width as a logarithm."""

    estimate: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        if self.low <= 0 or self.high <= 0:
            return math.inf
        return (math.log(self.high) - math.log(self.low)) / 2

    def agrees_with(self, other: Ratio) -> bool:
        """Whether both may be one and the same ratio: whether they agree within their joint 95 % interval."""
        apart = abs(math.log(self.estimate / other.estimate))
        return apart <= math.hypot(self.half_width, other.half_width)

    def text(self) -> str:
        return f"{self.estimate:.3f} ({self.low:.3f}–{self.high:.3f})"


def unpaired(slow: Sequence[float], quick: Sequence[float]) -> Ratio | None:
    """How many times `quick` is as fast as `slow`, both in seconds, from the spread between starts (Welch).

    Geometric means; None with fewer than two starts on a side.
    """
    if len(slow) < 2 or len(quick) < 2:
        return None
    a, b = [math.log(value) for value in slow], [math.log(value) for value in quick]
    va, vb = stdev(a) ** 2 / len(a), stdev(b) ** 2 / len(b)
    centre = fmean(a) - fmean(b)
    if va + vb == 0:
        return Ratio(math.exp(centre), math.exp(centre), math.exp(centre))
    df = (va + vb) ** 2 / (va**2 / (len(a) - 1) + vb**2 / (len(b) - 1))
    half = student_t_quantile(0.975, df) * math.sqrt(va + vb)
    return Ratio(math.exp(centre), math.exp(centre - half), math.exp(centre + half))


def mean_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Mean and its 95 % interval (Student); the interval is infinite for one value."""
    centre = fmean(values)
    if len(values) < 2:
        return centre, -math.inf, math.inf
    half = student_t_quantile(0.975, len(values) - 1) * stdev(values) / math.sqrt(len(values))
    return centre, centre - half, centre + half


def most_of(hits: int, of: int) -> float:
    """The share that the truth is at most, 95 % sure, where so many of so many were hit (Clopper and Pearson, 1934)."""
    low, high = hits / max(1, of), 1.0
    if hits >= of:
        return 1.0
    for _ in range(60):
        middle = (low + high) / 2
        as_few = sum(math.comb(of, each) * middle**each * (1 - middle) ** (of - each) for each in range(hits + 1))
        low, high = (middle, high) if as_few > 0.05 else (low, middle)
    return high


def designed_for(rate: float, hits: int, of: int) -> str:
    """What is known of a rate that is promised: `designed for at most 1 %; measured 0 of 128, so at most 2.3 %`."""
    return f"designed for at most {100 * rate:g} %; measured {hits} of {of}, so at most {100 * most_of(hits, of):.1f} %"


# -- order, files, tables ----------------------------------------------------------------------------------------------


def shuffled(keys: Sequence[str], seed: int) -> list[str]:
    """The order of one round."""
    order = list(keys)
    random.Random(seed).shuffle(order)
    return order


def save(path: Path | None, document: Any) -> None:
    """Write as JSON, whole or not at all, so that an interrupted benchmark can be taken up again."""
    if path is None:
        return
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    draft.replace(path)


def taken_up(path: Path | None, fresh: dict[str, Any], same: Sequence[str] = ()) -> dict[str, Any]:
    """What a benchmark has measured so far, out of its file; `fresh` where there is none yet.

    Ends the process where the file is of another format, or was begun with other values of the entries in `same`.
    """
    if path is None or not path.exists():
        return fresh
    document: dict[str, Any] = json.loads(path.read_bytes())
    if document.get("format") != fresh["format"]:
        sys.exit(f"{path} is of another version of this benchmark: begin anew in another file")
    for name in same:
        if document.get(name) != fresh[name]:
            sys.exit(f"{path} was begun with other options: {name} {document.get(name)!r}, not {fresh[name]!r}")
    return document


def table(head: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Columns lined up; the first `left` of them to the left."""
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    lines = []
    for row in [head, *rows]:
        cells = [
            cell.ljust(width) if column < left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def concluded(
    title: str, machines: Sequence[dict[str, Any]], text: str, missed: Sequence[str], *, interrupted: bool
) -> int:
    """Print what a benchmark has found by now, with the machine it ran on last, and the goals that it misses. Returns
    its exit code."""
    print(title)
    for seen in machines[-1:]:
        print(f"on {machine_line(seen)}")
    print(f"\n{text}")
    for each in missed:
        print(f"MISSED: {each}")
    if interrupted:
        print("\ninterrupted: the same command with --json goes on")
        return 130
    return 1 if missed else 0


def say(text: str) -> None:
    """A line of progress, on standard error."""
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


def setting_text(setting: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(setting.items())) or "as written"
