"""Samples that are prepared once: a window with them is as fast as what is left of a step, and the edit is the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.process.conftest import StartGuest
from tests.process.driver import PRELUDE, notes, run_plain, write

from bottleneck_doctor.documents.report import Setting
from bottleneck_doctor.edits.advice import changes_for, edited_files
from bottleneck_doctor.fixes import NotApplicable, Offer, catalogue

pytestmark = pytest.mark.process

ON: Setting = {"cached_samples": True}
FIX = next(fix for fix in catalogue() if fix.id == "cached-samples")
PREPARED = (
    PRELUDE
    + """
class Slow(Rows):
    def __getitem__(self, index):
        time.sleep(0.005)
        if "--random" in sys.argv:
            return super().__getitem__(index)[0] + torch.rand(1), index
        return super().__getitem__(index)


data = Slow(60, 0.0)
loader = DataLoader(data, batch_size=4, shuffle=True, num_workers=int(sys.argv[1]))
for epoch in range(6):
    for batch in loader:
        train_on(batch)
        note("rows", batch[1].tolist())
"""
)
"""A sample takes 5 ms to prepare, so a step waits for 20 ms; the rest of it takes about one."""


@pytest.mark.sleeping
def test_a_window_waits_for_no_preparing(guest: StartGuest) -> None:
    script = guest(PREPARED, "0")
    found = script.found()
    assert FIX.propose(found) == Offer((ON,))
    seen = found.facts["cached_samples"]
    assert seen["samples"] == 60
    assert 0.3 <= seen["seconds"] < 0.6
    settings: list[Setting] = [{}, ON, {}, ON, {**ON, "num_workers": 1}]
    step = []
    for setting in settings:
        done = script.window(setting, lead_in=2, steps=10)
        assert (done.status, done.reason) == ("ok", "")
        assert done.effect == dict.fromkeys(setting, True)
        step.append(done.seconds / done.steps)
    assert min(step[0], step[2]) > 0.02
    assert max(step[1], step[3]) < 0.012
    loading = script.window(ON, mode="loader_only", lead_in=1, steps=3)
    assert (loading.status, loading.effect) == ("ok", ON)
    assert script.run_out().code == 0


@pytest.mark.slow(together=True)
def test_the_edited_program_draws_and_learns_from_the_same_rows(guest: StartGuest, tmp_path: Path) -> None:
    script = guest(PREPARED, "0")
    found = script.found()
    (change,) = changes_for(ON, found)
    assert "+samples = [data[index] for index in range(len(data))]" in change.diff
    assert "+loader = DataLoader(samples, batch_size=4" in change.diff
    ((_, after),) = edited_files(ON, found).values()
    folders = [tmp_path / "written", tmp_path / "edited"]
    for folder, source in zip(folders, (PREPARED, after), strict=True):
        assert run_plain([str(write(folder, source)), "0"], folder).code == 0
    assert notes(folders[0] / "rows") == notes(folders[1] / "rows")


@pytest.mark.slow(together=True)
def test_random_samples_are_left_alone_and_draw_what_they_draw_without_us(guest: StartGuest, tmp_path: Path) -> None:
    alone = tmp_path / "alone"
    assert run_plain([str(write(alone, PREPARED)), "0", "--random"], alone).code == 0
    script = guest(PREPARED, "0", "--random")
    refused = FIX.propose(script.found())
    assert isinstance(refused, NotApplicable)
    assert refused.reason == "its samples are drawn at random, so each epoch has others"
    assert script.run_out().code == 0
    assert script.notes("rows") == notes(alone / "rows")


@pytest.mark.sleeping
def test_workers_of_the_users_go_too(guest: StartGuest) -> None:
    script = guest(PREPARED, "1")
    found = script.found()
    alone: Setting = {**ON, "num_workers": 0}
    assert FIX.propose(found) == Offer((alone, ON))
    done = script.window(alone, lead_in=2, steps=10)
    assert (done.status, done.effect) == ("ok", dict.fromkeys(alone, True))
    assert done.seconds / done.steps < 0.012
    (change,) = changes_for(alone, found)
    assert "samples = [data[index]" in change.diff
    assert "num_workers=0" in change.diff
