"""What the doctor costs the loop that it measures, and what it costs to start.

    python benchmarks/overhead.py

A loop inside a timed window of the baseline against the same loop uninstrumented, at steps of 1, 10 and 100 ms. Both
run in one process, in turn, ten milliseconds each (a step at least): for the uninstrumented side everything that the
guest put into torch is taken out and the batches come from a loader of its own, so nothing but the guest differs. Two
processes are no good for this: starts of the very same loop differ by ten percent here. The step's work is counted, not
timed, so whatever slows it is seen. Several processes are run, and the interval is made of their medians. Then the time
of `doctor --help`, and the memory of the doctor's own process.

A step is training (which the guest serves and hooks) and filling work (an ordinary Python loop that it never touches).
The filling work alone differs by some percent from step to step on a shared machine, with and without the guest, so the
figure that counts is the difference of the rest, as a share of the whole step; the whole is printed beside it.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from _common import DOCTOR, WORKLOADS, machine, machine_line, mean_interval, save, say, table

from bottleneck_doctor.runtime.wire import messages
from bottleneck_doctor.session.session import Command, Exited, Session

LENGTHS_MS = (1, 10, 100)
MORE_STEPS_THAN_THERE_ARE = 10**7
OVERHEAD_TARGET, TARGET_LENGTH_MS = 0.01, 10
HELP_TARGET = 0.3
MEMORY_TARGET = 150e6

LOOP = """
import itertools, json, sys, time
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.dataloader import _BaseDataLoaderIter
from torch.optim import optimizer as optimizers

LENGTH, BLOCK, PAIRS, WARM_UP = {length}, {block}, {pairs}, 60
torch.set_num_threads(1)


def busy(count):
    # Small integers only: what is allocated here would be faster or slower by what was allocated before.
    total = 0
    for _ in itertools.repeat(None, count):
        total = (total + 1) & 127
    return total


def loader():
    samples = (WARM_UP + BLOCK * PAIRS + 20) * 8
    return DataLoader(TensorDataset(torch.randn(samples, 16), torch.randn(samples, 1)), batch_size=8)


model = nn.Linear(16, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


def train(batches, steps, work):
    begun, filled = time.perf_counter(), 0.0
    for _ in range(steps):
        inputs, targets = next(batches)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        own = time.perf_counter()
        busy(work)
        filled += time.perf_counter() - own
    ended = time.perf_counter()
    return (ended - begun) / steps, filled / steps


patched = _BaseDataLoaderIter.__next__, torch.autograd.backward
hooks = [optimizers._global_optimizer_pre_hooks, optimizers._global_optimizer_post_hooks]
kept = [dict(each) for each in hooks]
instrumented = [hasattr(each, "__wrapped__") for each in patched] + [bool(each) for each in kept]


def instrument(on):
    _BaseDataLoaderIter.__next__ = patched[0] if on else patched[0].__wrapped__
    torch.autograd.backward = patched[1] if on else patched[1].__wrapped__
    for hook, each in zip(hooks, kept):
        hook.clear()
        hook.update(each if on else {{}})


served, plain = iter(loader()), iter(loader())
# Taken before the guest knows which loader trains, so that it stays as torch made it.
begun = time.perf_counter()
busy(2_000_000)
a_second = 2_000_000 / (time.perf_counter() - begun)
bare, _ = train(served, WARM_UP, 0)
work = max(0, int((LENGTH - bare) * a_second))
if all(instrumented):
    sides = {{"window": [], "plain": []}}
    for number in range(PAIRS):
        for side in ("window", "plain") if number % 2 else ("plain", "window"):
            instrument(side == "window")
            sides[side].append(train(served if side == "window" else plain, BLOCK, work))
    instrument(True)
    print(json.dumps(sides), flush=True)
else:
    print(json.dumps({{"missing": instrumented}}), flush=True)
"""
"""Blocks of steps with the guest's hooks in and out, in turn; the first of each pair changes from pair to pair."""


class Unmeasured(Exception):
    """A process did not yield its figure."""


# -- processes ---------------------------------------------------------------------------------------------------------


def in_a_window(argv: Sequence[str]) -> str:
    """What the script prints when all but its first steps lie in one timed window of the baseline."""
    session = Session(Command((sys.executable, *argv), Path.cwd()), 1)
    granted = False
    try:
        session.start()
        while True:
            event = session.event(600)
            if isinstance(event, messages.Found) and not granted:
                granted = True
                session.grant(messages.Grant(1, {}, "timed", 2, MORE_STEPS_THAN_THERE_ARE, 0))
            elif isinstance(event, messages.WindowDone):
                raise Unmeasured(f"the window ended early: {event.status} {event.reason}")
            elif isinstance(event, Exited):
                if event.code or not granted:
                    raise Unmeasured(f"exit code {event.code}, window granted: {granted}; {event.tail[-300:]}")
                return event.tail
            elif event is None:
                raise Unmeasured("silence for ten minutes")
    finally:
        session.stop()


# -- the loop ----------------------------------------------------------------------------------------------------------


def one_process(length_ms: int, seconds: float) -> list[tuple[list[float], list[float]]]:
    """Seconds a step, and of them in the filling work, with the guest and without it: every pair of blocks of one
    process."""
    block = max(1, round(10 / length_ms))
    pairs = max(20, round(seconds * 1000 / (2 * block * length_ms)))
    with tempfile.TemporaryDirectory(prefix="overhead-") as folder:
        script = Path(folder) / "loop.py"
        script.write_text(LOOP.format(length=length_ms / 1000, block=block, pairs=pairs), encoding="utf-8")
        printed = json.loads(in_a_window([str(script)]).strip().splitlines()[-1])
    if "missing" in printed:
        raise Unmeasured(f"the guest is not where it was expected: {printed['missing']}")
    return list(zip(printed["window"], printed["plain"], strict=True))


def overhead_rows(options: argparse.Namespace, document: dict[str, Any]) -> list[list[str]]:
    """A row for each length of a step; processes that failed are counted in it."""
    rows = []
    for length in LENGTHS_MS:
        wholes: list[float] = []
        shares: list[float] = []
        extras: list[float] = []
        seen: list[float] = []
        for number in range(options.processes):
            try:
                pairs = one_process(length, options.seconds)
            except (Unmeasured, subprocess.TimeoutExpired) as error:
                print(f"  {length} ms, process {number + 1}: failed: {error}")
                continue
            document["pairs"].append({"length_ms": length, "process": number, "pairs": pairs})
            save(options.json, document)
            # The middle pair of a process: a neighbour that wakes up for a moment spoils some pairs, not half of them.
            wholes.append(median(math.log(window[0] / plain[0]) for window, plain in pairs))
            own = median((window[0] - window[1]) - (plain[0] - plain[1]) for window, plain in pairs)
            seen.append(median(plain[0] for _, plain in pairs))
            extras.append(own)
            shares.append(own / seen[-1])
            say(f"{length} ms, process {number + 1}/{options.processes}: {shares[-1]:+.3%}")
        count = f"{len(shares)} of {options.processes}"
        if len(shares) < 2:
            rows.append([f"{length} ms", "-", "-", "-", "-", count, "-"])
            continue
        share, extra = mean_interval(shares), [1e6 * value for value in mean_interval(extras)]
        whole = [math.expm1(value) for value in mean_interval(wholes)]
        verdict = _verdict(share[2], OVERHEAD_TARGET) if length == TARGET_LENGTH_MS else "-"
        cost = f"{extra[0]:.0f} µs ({extra[1]:.0f} to {extra[2]:.0f})"
        figures = [f"{1000 * median(seen):.2f} ms", cost, _percent(share), _percent(whole)]
        rows.append([f"{length} ms", *figures, count, verdict])
    return rows


# -- starting and memory -----------------------------------------------------------------------------------------------


def help_seconds(times: int) -> list[float]:
    seconds = []
    for _ in range(times):
        begun = time.perf_counter()
        subprocess.run([*DOCTOR, "--help"], stdout=subprocess.DEVNULL, check=True)
        seconds.append(time.perf_counter() - begun)
    return seconds


def help_imports_torch() -> bool:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "bottleneck_doctor", "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    return re.search(r"\|\s+torch$", done.stderr, re.MULTILINE) is not None


def supervisor_memory(budget: str) -> tuple[int, int]:
    """Peak resident bytes of the doctor's own process, without its children, and its exit code."""
    script = [str(WORKLOADS / "short_epochs.py"), "--", "--num-workers", "1"]
    with tempfile.TemporaryDirectory(prefix="memory-") as folder:
        process = subprocess.Popen(
            [*DOCTOR, "run", "-q", "--budget", budget, "-o", folder, *script],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        peak = 0
        # The kernel's own high-water mark, so that nothing between two looks is missed but the very end.
        while process.poll() is None:
            try:
                found = re.search(r"^VmHWM:\s+(\d+) kB", Path(f"/proc/{process.pid}/status").read_text(), re.MULTILINE)
            except OSError:
                break
            if found:
                peak = max(peak, 1024 * int(found[1]))
            time.sleep(0.02)
        return peak, process.wait()


# -- the whole ---------------------------------------------------------------------------------------------------------


def _percent(interval: Sequence[float]) -> str:
    centre, low, high = interval
    return f"{centre:+.3%} ({low:+.3%} to {high:+.3%})"


def _verdict(value: float, target: float) -> str:
    return "reached" if value <= target else "MISSED"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--processes", type=int, default=6, help="processes for each length of a step")
    parser.add_argument("--seconds", type=float, default=8.0, help="timed seconds of a process")
    parser.add_argument("--budget", default="60s", help="of the examination whose memory is measured")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every pair here")
    parser.add_argument("--quick", action="store_true", help="2 processes of a second, a 20 s examination")
    options = parser.parse_args()
    if options.quick:
        options.processes, options.seconds, options.budget = 2, 1.0, "20s"
    document: dict[str, Any] = {"machine": machine(), "pairs": []}
    print(f"What the doctor costs\non {machine_line(document['machine'])}\n", flush=True)

    document["help_seconds"] = seconds = help_seconds(9)
    document["help_imports_torch"] = imports = help_imports_torch()
    print(f"doctor --help: {median(seconds):.3f} s, median of {len(seconds)} ({min(seconds):.3f}–{max(seconds):.3f})")
    print(f"  target at most {HELP_TARGET} s: {_verdict(median(seconds), HELP_TARGET)}")
    print(f"  imports torch: {'YES' if imports else 'no'}\n", flush=True)

    rows = overhead_rows(options, document)
    print("A timed window of the baseline against the loop uninstrumented, in turn in one process; 95 % intervals")
    head = ["step", "seen plain", "overhead of a step", "share of it", "whole step, with its noise", "processes"]
    head.append(f"upper end ≤ {OVERHEAD_TARGET:.0%}")
    print(table(head, rows), flush=True)
    print()

    peak, code = supervisor_memory(options.budget)
    document["supervisor_bytes"] = peak
    print(f"Peak memory of the doctor's own process in an examination of {options.budget}: {peak / 1e6:.0f} MB")
    if code:
        print(f"  that examination ended with exit code {code}")
    print(f"  target at most {MEMORY_TARGET / 1e6:.0f} MB: {_verdict(peak, MEMORY_TARGET)}")
    save(options.json, document)


if __name__ == "__main__":
    main()
