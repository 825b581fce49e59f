"""Batches that are cut to their longest row: a window of them computes on less, and the edit does the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.process.conftest import StartGuest
from tests.process.driver import PRELUDE, notes, run_plain, write
from tests.process.reader import READER

from bottleneck_doctor.documents.report import Setting
from bottleneck_doctor.edits.advice import changes_for, edited_files
from bottleneck_doctor.fixes import NotApplicable, Offer, catalogue

pytestmark = pytest.mark.process

ON: Setting = {"trimmed_padding": True}
FIX = next(fix for fix in catalogue() if fix.id == "trimmed-padding")
PADDED = (
    PRELUDE
    + """
COLUMN_SECONDS = 0.0005

class Padded(Rows):
    def __getitem__(self, index):
        mask = (torch.arange(64) < 4 + index % 5).long()
        words = (index + 1) * mask
        behind = -100 if "--counted" not in sys.argv else 0
        return {"input_ids": words, "attention_mask": mask, "labels": torch.where(mask != 0, words, behind)}
"""
    + READER
    + """
loader = DataLoader(Padded(400, 0.0), batch_size=4, shuffle=True, num_workers=int(sys.argv[1]))
for epoch in range(2):
    for batch in loader:
        optimizer.zero_grad()
        loss = reader(batch["input_ids"], batch["attention_mask"]).square().mean()
        loss.backward()
        optimizer.step()
        note("columns", batch["labels"].shape[1])
        note("loss", round(loss.item(), 5))
"""
)
"""The forward pass takes 0.5 ms a column: 32 ms for all 64, and 4 ms at most for those that hold something."""


@pytest.mark.alone
@pytest.mark.parametrize("workers", [pytest.param("0", marks=pytest.mark.slow(together=True)), "1"])
def test_a_window_computes_on_no_column_that_holds_nothing(guest: StartGuest, workers: str) -> None:
    script = guest(PADDED, workers)
    found = script.found()
    assert FIX.propose(found) == Offer((ON,))
    assert found.facts["trimmed_padding"]["names"] == ["input_ids", "attention_mask", "labels"]
    assert found.facts["trimmed_padding"]["share"] > 0.85
    step = []
    for setting in (dict[str, bool](), ON, dict[str, bool](), ON):
        done = script.window(setting, lead_in=2, steps=8)
        assert (done.status, done.reason) == ("ok", "")
        assert done.effect == dict.fromkeys(setting, True)
        step.append(done.seconds / done.steps)
    assert min(step[0], step[2]) > 0.03
    assert max(step[1], step[3]) < 0.016


@pytest.mark.slow(together=True)
def test_the_edited_program_has_the_same_losses(guest: StartGuest, tmp_path: Path) -> None:
    script = guest(PADDED, "0")
    found = script.found()
    (change,) = changes_for(ON, found)
    assert "collate_fn=to_longest" in change.diff
    ((_, after),) = edited_files(ON, found).values()
    folders = [tmp_path / "written", tmp_path / "edited"]
    for folder, source in zip(folders, (PADDED, after), strict=True):
        one_epoch = source.replace("range(2)", "range(1)")
        assert run_plain([str(write(folder, one_epoch)), "0"], folder).code == 0
    assert notes(folders[0] / "loss") == notes(folders[1] / "loss")
    assert set(notes(folders[0] / "columns")) == {64}
    assert max(notes(folders[1] / "columns")) == 8


def test_padding_that_counts_in_the_loss_stays(guest: StartGuest) -> None:
    refused = FIX.propose(guest(PADDED, "0", "--counted").found())
    assert isinstance(refused, NotApplicable)
    assert "the loss counts padding" in refused.reason
