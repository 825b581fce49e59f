"""Batches that are taken as they are ready: a window of them waits for no slow one, and the edit is the same."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
from tests.process.conftest import StartGuest
from tests.process.driver import PRELUDE, notes, run_plain, write
from torch.utils.data import DataLoader

from bottleneck_doctor.documents.report import Setting
from bottleneck_doctor.edits.advice import changes_for, edited_files
from bottleneck_doctor.fixes import NotApplicable, Offer, catalogue

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(
        "in_order" not in inspect.signature(DataLoader).parameters, reason="this torch has no `in_order`"
    ),
]

ON: Setting = {"in_order": False}
FIX = next(fix for fix in catalogue() if fix.id == "out-of-order")
UNEVEN = (
    PRELUDE
    + """
class Uneven(Rows):
    def __getitem__(self, index):
        time.sleep(0.1 if index % 10 == 0 else 0.01)
        return super().__getitem__(index)


loader = DataLoader(Uneven(400, 0.0), batch_size=1, shuffle="--sorted" not in sys.argv, num_workers=int(sys.argv[1]))
for epoch in range(3):
    for batch in loader:
        train_on(batch)
        note("rows", batch[1].tolist())
"""
)
"""One batch in ten takes 100 ms to make, the others 10 ms: 19 ms on average. Simulated, two workers need 12 ms a batch
in order, and 9.5 ms as they are ready."""


@pytest.mark.sleeping
def test_a_window_is_held_up_by_no_slow_batch(guest: StartGuest) -> None:
    script = guest(UNEVEN, "2")
    found = script.found()
    assert FIX.propose(found) == Offer((ON,), with_workers=True)
    step = []
    for setting in (dict[str, bool](), ON, dict[str, bool](), ON):
        done = script.window(setting, lead_in=10, steps=100)
        assert (done.status, done.reason) == ("ok", "")
        assert done.effect == dict.fromkeys(setting, True)
        step.append(done.seconds / done.steps)
    assert 1.1 < (step[0] + step[2]) / (step[1] + step[3]) < 1.6, step
    loading = script.window(ON, mode="loader_only", lead_in=1, steps=3)
    assert (loading.status, loading.effect) == ("ok", dict.fromkeys(ON, True))


def test_it_rides_on_workers_that_are_added(guest: StartGuest) -> None:
    script = guest(UNEVEN, "0")
    assert FIX.propose(script.found()) == Offer((ON,), with_workers=True)
    done = script.window({**ON, "num_workers": 2}, lead_in=2, steps=10)
    assert (done.status, done.effect) == ("ok", {"in_order": True, "num_workers": True})
    assert script.window(ON, lead_in=2, steps=4).effect == {"in_order": False}


@pytest.mark.slow(together=True)
def test_the_edited_program_trains_on_the_same_rows(guest: StartGuest, tmp_path: Path) -> None:
    script = guest(UNEVEN, "2")
    found = script.found()
    (change,) = changes_for(ON, found)
    assert "in_order=False" in change.diff
    ((_, after),) = edited_files(ON, found).values()
    folder = tmp_path / "edited"
    short = after.replace("range(3)", "range(2)").replace("Uneven(400", "Uneven(100")
    assert run_plain([str(write(folder, short)), "2"], folder).code == 0
    rows = [each[0] for each in notes(folder / "rows")]
    assert len(rows) == 200
    assert all(sorted(rows[at : at + 100]) == list(range(100)) for at in (0, 100))


def test_a_fixed_order_stays(guest: StartGuest) -> None:
    refused = FIX.propose(guest(UNEVEN, "2", "--sorted").found())
    assert isinstance(refused, NotApplicable)
    assert "may have a meaning" in refused.reason
