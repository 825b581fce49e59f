"""Larger batches in windows: as many samples come as the window says, and the training goes on as written after it."""

from __future__ import annotations

import pytest
from tests.process.conftest import StartGuest
from tests.process.driver import PRELUDE

from bottleneck_doctor.documents.report import Setting
from bottleneck_doctor.edits.advice import changes_for

pytestmark = pytest.mark.process

LARGER: Setting = {"batch_size": 12}
PLAIN = (
    PRELUDE
    + """
loader = DataLoader(Rows(400), batch_size=4, shuffle=True, num_workers=int(sys.argv[1]))
for epoch in range(4):
    for batch in loader:
        time.sleep(0.01)
        train_on(batch)
        note("sizes", len(batch[0]))
"""
)


@pytest.mark.parametrize("workers", [pytest.param("0", marks=pytest.mark.slow), "2"])
def test_windows_have_larger_batches(guest: StartGuest, workers: str) -> None:
    script = guest(PLAIN, workers)
    assert script.found().obstacles["batch_size"] == ""
    larger = script.window(LARGER, lead_in=2, steps=8)
    assert (larger.status, larger.effect, larger.steps, larger.samples) == ("ok", {"batch_size": True}, 8, 96.0)
    plain = script.window({}, lead_in=2, steps=8)
    assert (plain.status, plain.samples) == ("ok", 32.0)
    whole = script.window(LARGER, lead_in=0, steps=0, epochs=1)
    assert (whole.status, whole.samples) == ("ok", 400.0)
    assert script.run_out().code == 0
    sizes = script.notes("sizes")
    assert set(sizes) == {4, 12}


def test_the_edit_stands_in_the_call(guest: StartGuest) -> None:
    (change,) = changes_for(LARGER, guest(PLAIN, "0").found())
    assert "batch_size=12" in change.diff
