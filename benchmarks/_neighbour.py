"""Another program on the machine, until it is ended: `python _neighbour.py core|bursts|memory`.

`core` keeps one core busy; `bursts` keeps two busy for 5 s of every 20; `memory` copies 64 MB to and fro.
"""

from __future__ import annotations

import multiprocessing
import sys
import time

BURST, EVERY = 5.0, 20.0


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
    {"core": core, "bursts": bursts, "memory": memory}[sys.argv[1]]()
