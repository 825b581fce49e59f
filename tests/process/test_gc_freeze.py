"""A collector that takes long: seen, frozen in a window, and as it was behind it."""

from __future__ import annotations

import pytest
from tests.process.conftest import StartGuest
from tests.process.driver import PRELUDE

from bottleneck_doctor.edits.advice import changes_for
from bottleneck_doctor.fixes import Offer, catalogue

pytestmark = pytest.mark.process

WALKED = (
    "import gc\n"
    + PRELUDE
    + """
kept = [[number] for number in range(200000)]
state = [gc.get_threshold(), 0]
loader = DataLoader(Rows(), batch_size=4)
for epoch in range(4):
    for batch in loader:
        optimizer.zero_grad()
        model(batch[0]).mean().backward()
        optimizer.step()
        young = [[number] for number in range(4000)]
        gc.collect(2)
        note("state", [gc.get_threshold()[0], gc.get_freeze_count() > 200000, gc.isenabled()])
        note("callbacks", len(gc.callbacks))  # After an epoch, doctor looks how long the collector runs.
note("left", gc.get_threshold() == state[0])
"""
)


@pytest.mark.slow
def test_a_collector_that_takes_long_is_seen_and_frozen_in_a_window(guest: StartGuest) -> None:
    script = guest(WALKED)
    found = script.found()
    assert found.facts["gc_freeze"]["share"] > 0.1
    offer = next(fix for fix in catalogue() if fix.id == "gc-freeze").propose(found)
    assert isinstance(offer, Offer)
    (setting,) = offer.settings
    (change,) = changes_for(setting, found)
    assert [line for line in change.diff.splitlines() if line.startswith("+")] == [
        "+gc.collect()",
        "+gc.freeze()",
        "+gc.set_threshold(50000)",
    ]
    before = script.window({}, lead_in=2, steps=6)
    begun = len(script.notes("state"))
    done = script.window(setting, lead_in=2, steps=6)
    assert (done.status, done.reason, done.effect) == ("ok", "", {"gc_freeze": True})
    assert done.seconds < before.seconds
    ended = len(script.notes("state"))
    assert script.run_out().code == 0
    states = script.notes("state")
    usual = states[0]
    assert usual[1:] == [False, True]
    assert states[:begun] == [usual] * begun
    assert states[begun:ended] == [[50000, True, True]] * (ended - begun)
    assert states[ended:] == [usual] * (len(states) - ended)
    assert script.notes("left") == [True]
    assert script.notes("callbacks")[-1] == 0


BETWEEN_EPOCHS = (
    "import gc\n"
    + PRELUDE
    + """
kept = [[number] for number in range(400000)]
loader = DataLoader(Rows(80), batch_size=4)
for epoch in range(40):
    for batch in loader:
        optimizer.zero_grad()
        model(batch[0]).mean().backward()
        optimizer.step()
    gc.collect()
"""
)


@pytest.mark.slow
@pytest.mark.parametrize("size", [{"lead_in": 2, "steps": 60}, {"lead_in": 1, "epochs": 3}], ids=["steps", "epochs"])
def test_a_window_tells_what_the_collector_takes_between_its_epochs(guest: StartGuest, size: dict[str, int]) -> None:
    script = guest(BETWEEN_EPOCHS)
    script.found()
    before, frozen, after = (script.window(setting, **size) for setting in ({}, {"gc_freeze": 50_000}, {}))
    # The first of them may begin within an epoch.
    assert all(each.turns in (3, 4) for each in (before, frozen, after))
    for each in (before, after):
        assert each.turns_collecting > 5 * frozen.turns_collecting
    assert script.run_out().code == 0
