"""What the monitor costs: cores that sampling takes while it watches a process with eight loader workers.

    python benchmarks/monitor.py [--workers 8] [--seconds 20] [--repeat 3]

Prints the figure that a report gives as `monitor_cpu`, and beside it what the operating system says the whole watching
process used, so that the first is not taken on trust. The target is 0.02 cores at most. Also: mean interval, bytes
recorded, and for comparison what a walk of the same tree by psutil would cost at the same rate.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
from _common import machine, machine_line

from bottleneck_doctor.monitor import UsageWatch, utilization

TARGET = 0.02

TRAINING = """
import sys
import torch
from torch.utils.data import DataLoader, Dataset

class Rows(Dataset):
    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        return torch.full((3, 64, 64), float(index))

if __name__ == "__main__":
    torch.set_num_threads(1)
    model = torch.nn.Linear(3 * 64 * 64, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    for step, batch in enumerate(DataLoader(Rows(), batch_size=32, num_workers=int(sys.argv[1]))):
        model(batch.flatten(1)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        if step == 10:
            print("on", flush=True)
"""


def cost(pid: int, seconds: float) -> None:
    """Watch once, and print."""
    # Whole seconds of waiting: whatever this process uses meanwhile is the monitor's.
    own, began = time.process_time(), time.perf_counter()
    watch = UsageWatch(pid)
    watch.start()
    time.sleep(seconds)
    watch.stop()
    used = (time.process_time() - own) / (time.perf_counter() - began)
    found = utilization([watch], [])
    recording = watch.recording
    assert found is not None
    assert recording is not None
    size = sum(sys.getsizeof(column) for column in recording.columns.values()) + sys.getsizeof(recording.times)
    workers = max(value or 0 for value in found.series["workers"])
    verdict = "within" if max(found.monitor_cpu, used) <= TARGET else "OVER"
    print(
        f"{workers:g} workers: {found.monitor_cpu:.4f} cores by its own count, {used:.4f} by the system's: "
        f"{verdict} the target of {TARGET}; a sample every {found.interval_seconds:.3f} s, "
        f"{size / seconds * 600 / 1e6:.2f} MB in ten minutes",
        flush=True,
    )


def walk(pid: int) -> float:
    """Cores that reading the same tree by psutil would take at ten times a second."""
    begun, rounds = time.process_time(), 20
    for _ in range(rounds):
        root = psutil.Process(pid)
        for process in [root, *root.children(recursive=True)]:
            with process.oneshot():
                process.cpu_times()
                process.memory_info()
                process.num_threads()
                process.io_counters()
                process.num_ctx_switches()
    return 10 * (time.process_time() - begun) / rounds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    print(machine_line(machine()), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "train.py")
        script.write_text(TRAINING)
        training = subprocess.Popen(
            [sys.executable, str(script), str(arguments.workers)],
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            assert training.stdout is not None
            if training.stdout.readline() != b"on\n":
                return 1
            for _ in range(arguments.repeat):
                cost(training.pid, arguments.seconds)
            print(f"the same tree walked by psutil: {walk(training.pid):.4f} cores at ten times a second")
        finally:
            os.killpg(training.pid, 9)
            training.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
