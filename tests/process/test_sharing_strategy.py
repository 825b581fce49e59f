"""Windows whose workers hand tensors over by name: they are faster where a batch has many, and leave nothing behind."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tests.process.conftest import StartGuest
from tests.process.driver import PRELUDE, notes, run_plain, write

from bottleneck_doctor.documents.report import Setting
from bottleneck_doctor.edits.advice import changes_for, edited_files
from bottleneck_doctor.fixes import Offer, catalogue
from bottleneck_doctor.knobs import sharing_strategy

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is one way to share"),
]

ON: Setting = {"sharing_strategy": "file_system"}
FIX = next(fix for fix in catalogue() if fix.id == "sharing-strategy")
PROGRAM = (
    PRELUDE
    + """
class Columns(torch.utils.data.Dataset):
    def __len__(self):
        return 8000

    def __getitem__(self, index):
        return {f"column{number}": torch.full((4,), float(index)) for number in range(40)}


loader = DataLoader(Columns(), batch_size=4, num_workers=1)
for epoch in range(int(sys.argv[1])):
    for number, batch in enumerate(loader):
        train_on([batch["column0"]])
        if number == 60 and len(sys.argv) > 2:
            break
    note("strategies", torch.multiprocessing.get_sharing_strategy())
"""
)


def shared_files() -> set[str]:
    return {path.name for path in Path("/dev/shm").glob("torch_*")}


@pytest.mark.slow(together=True)
def test_a_window_hands_over_by_name_and_leaves_nothing(guest: StartGuest) -> None:
    before = shared_files()
    script = guest(PROGRAM, "10000")
    found = script.found()
    assert sharing_strategy.tensors(found) == 40
    assert FIX.propose(found) == Offer((ON,), with_workers=True)
    seconds = []
    for setting in (dict[str, str](), ON, dict[str, str](), ON):
        done = script.window(setting, lead_in=4, steps=60)
        assert (done.status, done.reason) == ("ok", "")
        assert done.effect == dict.fromkeys(setting, True)
        seconds.append(done.seconds)
    assert seconds[1] + seconds[3] < 0.9 * (seconds[0] + seconds[2]), seconds
    loading = script.window(ON, mode="loader_only", lead_in=4, steps=20)
    assert (loading.status, loading.effect) == ("ok", dict.fromkeys(ON, True))
    script.close()
    for _ in range(50):
        if shared_files() <= before:
            break
        time.sleep(0.1)
    assert shared_files() <= before


@pytest.mark.slow(together=True)
def test_the_edited_program_hands_over_by_name(guest: StartGuest, tmp_path: Path) -> None:
    found = guest(PROGRAM, "10000").found()
    (change,) = changes_for(ON, found)
    assert '+torch.multiprocessing.set_sharing_strategy("file_system")' in change.diff
    ((_, after),) = edited_files(ON, found).values()
    folder = tmp_path / "edited"
    done = run_plain([str(write(folder, after)), "2", "short"], folder)
    assert (done.code, done.err) == (0, "")
    assert notes(folder / "strategies") == ["file_system"] * 2


def test_few_tensors_are_left_as_they_are(guest: StartGuest) -> None:
    found = guest(PROGRAM.replace("range(40)", "range(3)"), "10000").found()
    assert sharing_strategy.tensors(found) == 3
    assert "3 tensors" in str(FIX.propose(replace(found, usable_cpus=2)))
