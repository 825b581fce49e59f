"""Describes the machine and times fixed work on it: no input, one line of JSON out.

The interpreter that runs the training starts this as a script. We can't install anything there, so it uses the standard
library and torch only, and torch may be missing. Each piece of work is timed several times and the best time is
reported, because other programs can only make it slower. Work on one core is timed in CPU seconds.
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
"""More than fits into caches."""
DEVICE_MATRIX = 4096
DEVICE_PRODUCTS = 4
SPENT_ON_EACH = 0.35
"""About how many seconds are spent on each kind of work."""
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
    """The CPUs that may be used, counted by the guest's own module, which also runs in the user's interpreter."""
    runtime = os.path.join(HERE, os.pardir, os.pardir, "runtime")
    spec = util.spec_from_file_location("suitability", os.path.join(runtime, "process", "suitability.py"))
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    count: int = module.usable_cpus()
    return count


def best(work: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> float:
    """The smallest number of seconds by `clock` that `work` took."""
    work()
    taken: List[float] = []
    end = time.perf_counter() + SPENT_ON_EACH
    while len(taken) < LEAST_TIMES or time.perf_counter() < end:
        begun = clock()
        work()
        taken.append(clock() - begun)
    return max(1e-9, min(taken))


def python_loop() -> int:
    """Typical work of an interpreter: a loop, sums, a look-up."""
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
    # One thread: on all cores, any other program would affect the time.
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
    """Print all of it. Figures of a device that can't be used are left out."""
    # Nothing is to be imported from this script's own folder.
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
            except RuntimeError:  # The device is full, or another program uses it exclusively.
                pass
    told["devices"] = devices
    print(json.dumps({"facts": told, "calibration": work}))


if __name__ == "__main__":
    main()
