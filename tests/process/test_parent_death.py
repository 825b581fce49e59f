"""Whoever kills the training process finds its workers gone at once, however they were started."""

from __future__ import annotations

import sys
import time

import psutil
import pytest
from tests.process.conftest import StartGuest
from tests.process.driver import PRELUDE

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform != "linux", reason="the kernel ends orphans on Linux only"),
]

STUCK = (
    """
import multiprocessing, sys, time

if multiprocessing.parent_process() is not None:
    time.sleep(60)  # A worker that is still importing doesn't look who is alive.
"""
    + PRELUDE
    + """
class Slow(Rows):
    def __getitem__(self, index):
        time.sleep(60)


if __name__ == "__main__":
    for batch in DataLoader(Slow(40), batch_size=4, num_workers=2, multiprocessing_context=sys.argv[1]):
        train_on(batch)
"""
)


@pytest.mark.parametrize(
    "context",
    [
        "fork",
        pytest.param("spawn", marks=pytest.mark.slow(together=True)),
        pytest.param("forkserver", marks=pytest.mark.slow(together=True)),
    ],
)
def test_workers_end_with_the_one_that_started_them(guest: StartGuest, context: str) -> None:
    script = guest(STUCK, context)
    pid = script.session.pid
    assert pid is not None
    trainer = psutil.Process(pid)
    wanted = {"fork": 2, "spawn": 3, "forkserver": 4}[context]  # A resource tracker, and the forkserver.
    deadline = time.monotonic() + 60
    while len(started := trainer.children(recursive=True)) < wanted:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    time.sleep(1.0)  # What starts anew has to come to its first line.
    trainer.kill()
    _, left = psutil.wait_procs(started, timeout=3.0)
    assert not [each.cmdline() for each in left]
