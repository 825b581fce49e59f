"""Describes the machine and times fixed work on it: nothing in, one line of JSON out.

Started as a script by the interpreter that runs the training, which is not ours to change: standard library and torch
only, and torch may be missing. What is timed is done several times and the best is told, since a neighbour can only
make it slower; work on one core counts the seconds that the core was ours.
"""

import json
import os
import platform
import sys
import time
from importlib import util
from typing import Any, Callable, Dict, List, Optional

HERE = os.path.dirname(os.path.realpath(__file__))

PYTHON_LOOP = 400_000
MATRIX = 512
"""Side of the matrices whose product is timed: a few hundredths of a second on one core."""
BLOCK_BYTES = 128 << 20
"""More than caches hold."""
DEVICE_MATRIX = 4096
DEVICE_PRODUCTS = 4
SPENT_ON_EACH = 0.35
"""Seconds that are spent on one kind of work, about."""
LEAST_TIMES = 3


def facts() -> Dict[str, Any]:
    """What the machine is, as this interpreter sees it."""
    library, version = platform.libc_ver()
    kernel = ".".join(platform.release().split(".")[:2])
    words = [platform.system(), kernel, platform.machine()]
    return {
        "system": " ".join(words) + (f", {library} {version}" if library else ""),
        "python": f"{platform.python_implementation()} {sys.version_info[0]}.{sys.version_info[1]}",
        "usable_cpus": usable_cpus(),
    }


def usable_cpus() -> int:
    """As the guest counts them: by its own file, which is of the same kind as this one."""
    runtime = os.path.join(HERE, os.pardir, os.pardir, "runtime")
    spec = util.spec_from_file_location("suitability", os.path.join(runtime, "process", "suitability.py"))
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    count: int = module.usable_cpus()
    return count


def best(work: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> float:
    """The least seconds by `clock` that `work` took."""
    work()
    taken: List[float] = []
    end = time.perf_counter() + SPENT_ON_EACH
    while len(taken) < LEAST_TIMES or time.perf_counter() < end:
        begun = clock()
        work()
        taken.append(clock() - begun)
    return max(1e-9, min(taken))


def python_loop() -> int:
    """What an interpreter does all day: a loop, sums, a look-up."""
    total = 0
    table: Dict[int, int] = {}
    for number in range(PYTHON_LOOP):
        table[number & 255] = total
        total += number * 3 % 7
    return total


def with_torch(torch: Any) -> Dict[str, Any]:
    """Fixed work on the host."""
    threads = torch.get_num_threads()
    left, right = torch.ones(MATRIX, MATRIX), torch.ones(MATRIX, MATRIX)
    # With all cores, any neighbour would count.
    torch.set_num_threads(1)
    compute = best(lambda: torch.mm(left, right), time.thread_time)
    torch.set_num_threads(threads)
    source = torch.ones(BLOCK_BYTES, dtype=torch.uint8)
    target = torch.empty_like(source)
    copied = best(lambda: target.copy_(source))
    return {"compute_seconds": compute, "memory_bytes_per_second": 2 * BLOCK_BYTES / copied}


def with_device(torch: Any) -> Dict[str, Any]:
    """Fixed work on the first device."""
    left = torch.ones(DEVICE_MATRIX, DEVICE_MATRIX, device="cuda")
    source = torch.ones(BLOCK_BYTES, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    here = torch.ones(BLOCK_BYTES, dtype=torch.uint8).pin_memory()

    def finished(work: Callable[[], Any]) -> Callable[[], None]:
        def run() -> None:
            for _ in range(DEVICE_PRODUCTS):
                work()
            torch.cuda.synchronize()

        return run

    compute = best(finished(lambda: torch.mm(left, left)))
    copied = best(finished(lambda: target.copy_(source)))
    sent = best(finished(lambda: target.copy_(here, non_blocking=True)))
    return {
        "device_compute_seconds": compute / DEVICE_PRODUCTS,
        "device_bytes_per_second": 2 * BLOCK_BYTES * DEVICE_PRODUCTS / copied,
        "transfer_bytes_per_second": BLOCK_BYTES * DEVICE_PRODUCTS / sent,
    }


def main() -> None:
    """Say all of it. A device that can't be used is told by its absence."""
    # Its own folder is no place to import from.
    sys.path[:] = [entry for entry in sys.path if os.path.realpath(entry or os.curdir) != HERE]
    told = facts()
    work: Dict[str, Optional[float]] = {"python_seconds": best(python_loop, time.thread_time)}
    devices: List[str] = []
    told["torch"] = "none"
    try:
        import torch
    except ImportError:
        torch = None  # type: ignore[assignment]
    if torch is not None:
        told["torch"] = torch.__version__
        work.update(with_torch(torch))
        if torch.cuda.is_available():
            devices = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
            try:
                work.update(with_device(torch))
            except RuntimeError:  # Full, or in use by somebody who wants it alone.
                pass
    told["devices"] = devices
    print(json.dumps({"facts": told, "calibration": work}))


if __name__ == "__main__":
    main()
