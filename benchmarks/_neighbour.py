"""Another program on the machine, until it or what started it is ended: `python _neighbour.py core|bursts|memory`.

`core` keeps one core busy; `bursts` keeps two busy for 5 s of every 20; `memory` copies 64 MB to and fro.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
import time

BURST, EVERY = 5.0, 20.0


def end_with(parent: int) -> None:
    """End this process once another one has become its parent: a benchmark that is killed ends nothing itself."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(0)


def busy(seconds: float) -> None:
    until = time.monotonic() + seconds
    number = 1
    while time.monotonic() < until:
        for _ in range(10000):
            number = number * 3 % 1000003


def core() -> None:
    while True:
        busy(60.0)


def bursts() -> None:
    while True:
        both = [multiprocessing.Process(target=busy, args=(BURST,), daemon=True) for _ in range(2)]
        for each in both:
            each.start()
        for each in both:
            each.join()
        time.sleep(EVERY - BURST)


def memory() -> None:
    here, there = bytearray(64 << 20), bytearray(64 << 20)
    while True:
        here[:] = there
        there[:] = here


if __name__ == "__main__":
    threading.Thread(target=end_with, args=(os.getppid(),), daemon=True).start()
    {"core": core, "bursts": bursts, "memory": memory}[sys.argv[1]]()
