"""What a process that trained in float32 before keeps for autocast, and a program that starts with autocast does not.

    python benchmarks/kept_memory.py
    python benchmarks/kept_memory.py --starts 5

A small convolutional network is trained in processes of their own, in turn: in float32, in bfloat16 from the start, in
bfloat16 after float32, as in a window of `doctor run`, and the first two again with the variables of the `allocator`
fix. The table holds medians over the starts: time a step, pages that the process asked the kernel for, and time for
which the kernel worked. Linux with glibc, on a CPU. Takes three minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from statistics import median

from _common import machine, machine_line, say, shuffled, table

from bottleneck_doctor.knobs import allocator

STEPS = 60
WAYS = {
    "float32": ((False,), False),
    "bfloat16 from the start": ((True,), False),
    "bfloat16 after float32": ((False, True), False),
    "float32, memory kept": ((False,), True),
    "bfloat16 from the start, memory kept": ((True,), True),
}
"""Whether autocast is on, one after the other, of which the last is timed; and whether the variables are set."""


def train(autocast: list[bool]) -> dict[str, float]:
    """In this process: time, pages and the kernel's time of a step of the last."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    first = (nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
    model = nn.Sequential(*first, nn.Linear(9216, 128), nn.ReLU(), nn.Linear(128, 10))
    optimizer = torch.optim.Adadelta(model.parameters(), lr=0.1)
    images, labels = torch.randn(64, 1, 28, 28), torch.randint(10, (64,))
    for enabled in autocast:
        for step in range(STEPS + 30):
            if step == 30:
                before, began = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
                loss = nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            loss.item()
        seconds, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF)
    return {
        "seconds": seconds / STEPS,
        "pages": (after.ru_minflt - before.ru_minflt) / STEPS,
        "kernel": (after.ru_stime - before.ru_stime) / STEPS,
    }


def start(way: str) -> dict[str, float]:
    autocast, kept = WAYS[way]
    variables = allocator.variables(allocator.KEEPS) if kept else {}
    words = [sys.executable, __file__, "--train", json.dumps(autocast)]
    done = subprocess.run(words, env={**os.environ, **variables}, capture_output=True, text=True, check=True)
    measured: dict[str, float] = json.loads(done.stdout)
    return measured


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--starts", type=int, default=5, help="processes of each kind")
    parser.add_argument("--train", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.train:
        print(json.dumps(train(json.loads(options.train))))
        return 0
    seen: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    for number in range(options.starts):
        say(f"round {number + 1} of {options.starts}")
        for way in shuffled(list(WAYS), number):
            seen[way].append(start(way))
    print(machine_line(machine()))
    rows = []
    for way, starts in seen.items():
        seconds = [1000 * each["seconds"] for each in starts]
        pages, kernel = (median(each[name] for each in starts) for name in ("pages", "kernel"))
        span = f"{median(seconds):.1f} ({min(seconds):.1f}–{max(seconds):.1f})"
        rows.append([way, span, f"{pages:.0f}", f"{1000 * kernel:.1f}"])
    print(table(["", "ms a step", "pages a step", "kernel, ms a step"], rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
