"""A script that writes without end fills no disk, and its first and last words are told."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from tests.process.driver import PRELUDE, Guest, wait_until, write

from bottleneck_doctor.session.session import Command

pytestmark = pytest.mark.process

FLOOD = (
    PRELUDE
    + r"""
print("first words")
sys.stdout.flush()
for _ in range(100):
    os.write(1, 10_000 * (99 * b"\xff" + b"\n"))
for number, batch in enumerate(DataLoader(Rows(800), batch_size=4)):
    train_on(batch)
    os.write(1, 1000 * (99 * b"\xff" + b"\n"))
print("last words")
sys.exit(3)
"""
)
"""100 MB that are no UTF-8 before it trains, and 0.1 MB in every step."""


@pytest.mark.parametrize("terminal", [False, pytest.param(True, marks=pytest.mark.slow(together=True))])
def test_output_of_a_hundred_megabytes(tmp_path: Path, terminal: bool) -> None:
    guest = Guest(Command((sys.executable, str(write(tmp_path, FLOOD))), tmp_path, terminal=terminal))
    log = guest.session._output.log.path
    try:
        guest.found()
        assert os.stat(log).st_size > 100e6
        assert wait_until(lambda: os.stat(log).st_blocks * 512 < 10e6)
        for setting in ({}, {"num_workers": 1}):
            assert guest.window(setting).status == "ok"
        ended = guest.run_out()
        assert wait_until(lambda: os.stat(log).st_blocks * 512 < 10e6)
    finally:
        guest.close()
    assert ended.code == 3
    lines = ended.tail.splitlines()
    assert lines[0] == "first words"
    assert lines[-1] == "last words"
    assert any(line.startswith("[... 1") and line.endswith(" MB left out ...]") for line in lines)
    assert len(ended.tail) < 30_000
