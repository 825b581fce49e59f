"""Batches that are copied ahead, in the loop of a real program. Its device is the CPU, so no copy takes time: what is
tested is that each batch comes once, in its order, and is the one that the loop's moves return."""

from __future__ import annotations

import pytest
from tests.process.conftest import StartGuest
from tests.process.driver import PRELUDE

from bottleneck_doctor.documents.report import Setting

pytestmark = pytest.mark.process

MOVING = (
    PRELUDE
    + """
workers = int(sys.argv[1])
loader = DataLoader(Rows(24), batch_size=4, num_workers=workers)
for epoch in range(100000):
    rows = []
    for inputs, labels in loader:
        inputs, labels = inputs.to("cpu"), labels.to("cpu")
        train_on((inputs,))
        rows += labels.tolist()
    note("epochs", rows)
"""
)
ON: Setting = {"device_prefetch": True}


@pytest.mark.parametrize("workers", [pytest.param(0, marks=pytest.mark.slow(together=True)), 2])
def test_each_batch_comes_once_and_in_its_order(guest: StartGuest, workers: int) -> None:
    script = guest(MOVING, str(workers))
    script.found()
    before = len(script.notes("epochs"))
    for setting in (ON, {}, {**ON, "num_workers": 1}):
        done = script.window(setting, lead_in=1, steps=0, epochs=2)
        assert (done.status, done.reason, done.whole_epochs) == ("ok", "", 2)
        assert done.effect == dict.fromkeys(setting, True)
        assert done.steps == 12
    script.window({}, lead_in=0, steps=0, epochs=1)
    epochs = script.notes("epochs")[before + 1 :]  # The first one may have begun before there were windows.
    assert len(epochs) >= 8
    assert all(rows == list(range(24)) for rows in epochs)


def test_a_loop_that_moves_nothing_has_no_use_for_it(guest: StartGuest) -> None:
    script = guest(MOVING.replace('inputs.to("cpu"), labels.to("cpu")', "inputs, labels"), "1")
    script.found()
    done = script.window(ON, steps=8)
    assert (done.status, done.effect) == ("no_effect", {"device_prefetch": False})
    assert script.window({}, steps=8).status == "ok"


@pytest.mark.slow(together=True)
def test_windows_of_steps_have_batches_ahead_too(guest: StartGuest) -> None:
    script = guest(MOVING, "1")
    script.found()
    for setting in (ON, {}, ON):
        done = script.window(setting, lead_in=4, steps=20)
        assert (done.status, done.effect, done.steps) == ("ok", dict.fromkeys(setting, True), 20)
