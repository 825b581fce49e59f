"""Whole batches by one index: the same rows in the same order as without us, here and in workers."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.process.conftest import StartGuest
from tests.process.driver import PRELUDE, notes, run_plain, write

from bottleneck_doctor.documents.report import Setting
from bottleneck_doctor.edits.advice import changes_for
from bottleneck_doctor.fixes import Offer, catalogue

pytestmark = pytest.mark.process

IN_MEMORY = (
    PRELUDE
    + """
data = TensorDataset(torch.arange(70).float().repeat(4, 1).T, torch.arange(70))
loader = DataLoader(data, batch_size=4, shuffle=True, num_workers=int(sys.argv[1]))
for epoch in range(4):
    for batch in loader:
        train_on(batch)
        note("rows", [type(batch).__name__, *batch[1].tolist()])
"""
)
ON: Setting = {"batched_fetch": True}


def test_whole_batches_are_the_rows_that_come_without_us(guest: StartGuest, tmp_path: Path) -> None:
    alone = tmp_path / "alone"
    assert run_plain([str(write(alone, IN_MEMORY)), "0"], alone).code == 0
    script = guest(IN_MEMORY, "0")
    found = script.found()
    offer = next(fix for fix in catalogue() if fix.id == "batched-fetch").propose(found)
    assert offer == Offer((ON,))
    (change,) = changes_for(ON, found)
    assert "sampler=BatchSampler(RandomSampler(data), batch_size=4, drop_last=False)" in change.diff
    settings: list[Setting] = [ON, {}, ON]
    for setting in settings:
        done = script.window(setting, lead_in=2, steps=12)
        assert (done.status, done.reason) == ("ok", "")
        assert done.effect == dict.fromkeys(setting, True)
    loading = script.window(ON, mode="loader_only", lead_in=1, steps=3)
    assert (loading.status, loading.effect) == ("ok", {"batched_fetch": True})
    assert script.run_out().code == 0
    expected, rows = notes(alone / "rows"), script.notes("rows")
    assert len(expected) == len(rows) == 72
    # Up to the batches that only were loaded.
    assert rows[: found.position + 42] == expected[: found.position + 42]


def test_workers_take_whole_batches_too(guest: StartGuest) -> None:
    script = guest(IN_MEMORY, "1")
    script.found()
    done = script.window(ON, lead_in=2, steps=20)
    assert (done.status, done.reason, done.effect) == ("ok", "", {"batched_fetch": True})
    both = script.window({**ON, "num_workers": 2}, lead_in=2, steps=6)
    assert (both.status, both.effect) == ("ok", {"batched_fetch": True, "num_workers": True})
    phases = script.window(ON, mode="phases", lead_in=2, steps=6)
    assert (phases.status, phases.detail["loading"] is not None) == ("ok", True)
    assert all(row[0] == "list" and len(set(row)) == len(row) for row in script.notes("rows"))
