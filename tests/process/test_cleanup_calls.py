"""Clean-up calls in the steps: their lines are found, left out in a window, and called again behind it."""

from __future__ import annotations

import pytest
from tests.process.conftest import StartGuest
from tests.process.driver import PRELUDE

from bottleneck_doctor.edits.advice import changes_for
from bottleneck_doctor.fixes import Offer, catalogue

pytestmark = pytest.mark.process

CLEANS_UP = (
    "from gc import collect\nimport gc\n"
    + PRELUDE
    + """
collections = 0


def counted(moment, info):
    global collections
    collections += moment == "stop" and info["generation"] == 2


gc.callbacks.append(counted)
loader = DataLoader(Rows(), batch_size=4)
for epoch in range(4):
    for batch in loader:
        train_on(batch)
        before = collections
        gc.collect()
        torch.cuda.empty_cache()
        collect()
        note("in the step", collections - before)
    before = collections
    gc.collect()
    note("between epochs", collections - before)
"""
)


@pytest.mark.slow(together=True)
def test_calls_are_found_and_left_out_in_a_window(guest: StartGuest) -> None:
    script = guest(CLEANS_UP)
    found = script.found()
    offer = next(fix for fix in catalogue() if fix.id == "cleanup-calls").propose(found)
    assert isinstance(offer, Offer)
    (setting,) = offer.settings
    (change,) = changes_for(setting, found)
    assert [line for line in change.diff.splitlines() if line.startswith(("+", "-"))] == [
        "-        gc.collect()",
        "-        collect()",
    ], "the one between epochs stays, and so does one that does nothing without a device"
    begun = len(script.notes("in the step"))
    done = script.window(setting, lead_in=4, steps=20)
    assert (done.status, done.reason, done.effect) == ("ok", "", {"cleanup_calls": True})
    ended = len(script.notes("in the step"))
    assert script.window().status == "ok"
    assert script.run_out().code == 0
    told = script.notes("in the step")
    assert len(told) == 64
    assert set(told[:begun]) == set(told[ended:]) == {2}
    assert set(told[begun:ended]) == {0}
    assert set(script.notes("between epochs")) == {1}
