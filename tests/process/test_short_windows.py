"""Windows of two long steps behind a lead-in of one, in a real process: where no step waits, they say what is true."""

from __future__ import annotations

from typing import Any

import pytest
from tests.process.conftest import StartGuest
from tests.process.driver import LOOP

from bottleneck_doctor.measure.pairing import QUEUE_TOLERANCE

pytestmark = pytest.mark.process

COMPUTE, LOAD = 1.0, 0.01
"""Seconds of a step, and of each of its four samples."""
SLOW = LOOP.replace("Rows()", f"Rows(4000, {LOAD})") + f"        time.sleep({COMPUTE})\n"


@pytest.mark.timed
def test_two_steps_behind_one_say_what_a_step_takes(guest: StartGuest) -> None:
    script = guest(SLOW)
    script.found()
    told: list[tuple[Any, float]] = []
    for setting in ({}, {"num_workers": 2}, {"num_workers": 1}, {}):
        done = script.window(setting, lead_in=1, steps=2)
        assert (done.status, done.lead_in_steps, done.steps) == ("ok", 1, 2)
        assert abs(done.queue_change) <= max(1.0, QUEUE_TOLERANCE * done.steps)
        told.append((setting, done.seconds / done.steps))
    for setting, step in told:
        assert step == pytest.approx(COMPUTE + (0.0 if setting else 4 * LOAD), rel=0.05), setting
