"""Windows of two long steps behind a lead-in of one, in a real process: where no step waits, they say what is true."""

from __future__ import annotations

import time
from typing import Any

import pytest
from tests.process.conftest import StartGuest
from tests.process.driver import LOOP

from bottleneck_doctor.measure.pairing import QUEUE_TOLERANCE

pytestmark = pytest.mark.process

COMPUTE, LOAD = 1.0, 0.01
"""Seconds of a step, and of each of its four samples."""
SLOW = LOOP.replace("Rows()", f"Rows(4000, {LOAD})") + f"        time.sleep({COMPUTE})\n"


@pytest.mark.slow
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


BRIEF = LOOP.replace("batch_size=4", "batch_size=4, num_workers=4").replace(
    "    for batch in loader:", "    time.sleep(0.5)\n    for batch in loader:"
)
"""Epochs of sixteen batches: workers start in each, and between them half a second passes."""


@pytest.mark.timed
@pytest.mark.parametrize("lead_in", [pytest.param(each, marks=pytest.mark.slow) for each in (12, 40)])
def test_a_window_is_over_in_time_where_epochs_are_mostly_their_starts(guest: StartGuest, lead_in: int) -> None:
    """The timed part would take a hundred epochs: a limit on what is timed is no limit on those."""
    script = guest(BRIEF)
    script.found()
    begun = time.monotonic()
    done = script.window(lead_in=lead_in, steps=400, most_seconds=60.0, most_wall_seconds=3.0)
    assert done.status == "ok"
    assert 1 <= done.steps < 100
    assert 3.0 <= time.monotonic() - begun < 9.0
    # Whoever comes next is timed as planned.
    assert script.window(lead_in=2, steps=6).steps == 6


WORKED = LOOP.replace("batch_size=4", "batch_size=4, num_workers=2").replace("Rows()", "Rows(64, 0.002)")
"""Epochs of sixteen batches, which two workers make."""


def test_a_window_that_begins_near_the_end_of_an_epoch_leads_in_behind_it(guest: StartGuest) -> None:
    """However few steps were left of that epoch: the first one behind it waits for workers to start."""
    script = guest(WORKED + "        time.sleep(0.01)\n")
    script.found()
    led = [script.window(lead_in=4, steps=5).lead_in_steps for _ in range(12)]
    assert min(led) >= 2
