"""How long reading a large py-spy recording takes, and how much memory.

    python benchmarks/raw_profile.py --megabytes 200

Writes a raw file with stacks as deep and as varied as those of a long training with eight loader workers, then makes of
it in a process of its own all that the report holds. Promised: 200 MB in 10 s and 500 MB at most.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _common import machine, machine_line

SITE = "/opt/conda/lib/python3.11/site-packages"
LIBRARIES = [
    "torch/nn/modules",
    "torch/optim",
    "torch/autograd",
    "torchvision/transforms",
    "PIL",
    "numpy/lib",
    "timm/data",
]
WORKERS = 8
FUNCTIONS = 4000
LINES = 12
"""Lines at which a function was seen."""


def _frames(source: random.Random) -> list[list[str]]:
    """For each function its frames, one a line."""
    functions = []
    for index in range(FUNCTIONS):
        if index % 10 == 0:
            path = f"/home/someone/project/training/part_{index % 70}.py"
        else:
            path = f"{SITE}/{source.choice(LIBRARIES)}/module_{index % 300}.py"
        name = source.choice(["forward", "__call__", "_apply", "step", "convert", "decode", "<listcomp>", "inner"])
        lines = source.sample(range(10, 2000), LINES)
        functions.append([f"Class{index}.{name} ({path}:{line})" for line in lines])
    return functions


def write(path: Path, megabytes: float, seed: int = 0) -> int:
    """Write a file of about this size. Returns its number of lines."""
    source = random.Random(seed)
    functions = _frames(source)
    command = "python -m training.main --config conf/base.yaml --epochs 100"
    trunk = [f"<module> (/home/someone/project/training/main.py:{n})" for n in (310, 288, 251)]
    trunk += [source.choice(functions[index]) for index in range(0, 60, 7)]
    loop = f"_worker_loop ({SITE}/torch/utils/data/_utils/worker.py:349)"
    written = lines = 0
    with path.open("w") as stream:
        while written < megabytes * 1e6:
            worker = source.randrange(WORKERS + 3)
            prefix = f'process 4000:"{command}";'
            pid = 4000
            if worker < WORKERS:
                pid = 4100 + worker
                prefix += f'process {pid}:"{command}";'
            stack = list(trunk)
            if worker < WORKERS:
                stack.append(loop)
            # A function calls few others: which ones follows from itself, so that stacks share their beginnings.
            at = source.randrange(5)
            for _ in range(source.randint(8, 30)):
                stack.append(functions[at][min(int(source.expovariate(0.8)), LINES - 1)])
                at = (at * 7 + min(int(source.expovariate(0.5)), 6) + 1) % FUNCTIONS
            line = f"{prefix}thread ({pid}): MainThread;{';'.join(stack)} {1 + int(source.paretovariate(1.1))}\n"
            stream.write(line)
            written += len(line)
            lines += 1
    return lines


def peak_bytes() -> int:
    """The most memory that this process ever held. Not `ru_maxrss`, which it inherits from its parent's."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def read(path: Path) -> None:
    """Make of the file what the report holds, and print seconds and peak memory. In a process of its own."""
    from bottleneck_doctor.profiling.sampling import sampling_profile

    began = time.perf_counter()
    profile = sampling_profile([path], rate=100, seconds=600)
    seconds = time.perf_counter() - began
    print(f"read in {seconds:.1f} s, {peak_bytes() / 1e6:.0f} MB of memory at most")
    print(f"samples {profile.samples}, hottest {profile.functions[0].name} {profile.functions[0].share:.1%}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=float, default=200.0)
    parser.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read:
        read(options.read)
        return
    print(machine_line(machine()))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.raw"
        lines = write(path, options.megabytes)
        print(f"{path.stat().st_size / 1e6:.0f} MB, {lines} stacks", flush=True)
        subprocess.run([sys.executable, __file__, "--read", str(path)], check=True)


if __name__ == "__main__":
    main()
