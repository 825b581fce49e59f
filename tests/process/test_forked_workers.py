"""Workers that are forked in place of spawned: a window has them, they start at once, and the edit is the same.

A program that can have no others is in `known_programs.py`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.process.conftest import StartGuest
from tests.process.driver import PRELUDE, notes, run_plain, write

from bottleneck_doctor.documents.report import Setting
from bottleneck_doctor.edits.advice import changes_for, edited_files
from bottleneck_doctor.fixes import Offer, catalogue

pytestmark = pytest.mark.process

ON: Setting = {"multiprocessing_context": "fork"}
FIX = next(fix for fix in catalogue() if fix.id == "forked-workers")
GUARDED = (
    PRELUDE
    + """
def main():
    loader = DataLoader(Rows(40), batch_size=4, num_workers=1, multiprocessing_context="spawn")
    for epoch in range(int(sys.argv[1])):
        began = time.perf_counter()
        for batch in loader:
            train_on(batch)
        note("seconds", time.perf_counter() - began)


if __name__ == "__main__":
    main()
"""
)
UNGUARDED = (
    PRELUDE
    + """
import torch.multiprocessing

torch.multiprocessing.set_start_method("spawn", force=True)
loader = DataLoader(Rows(40), batch_size=4)
for epoch in range(int(sys.argv[1])):
    for batch in loader:
        train_on(batch)
    note("epochs", epoch)
"""
)


@pytest.mark.slow(together=True)
def test_a_window_has_workers_that_start_at_once(guest: StartGuest) -> None:
    script = guest(GUARDED, "10000")
    found = script.found()
    assert FIX.propose(found) == Offer((ON,), with_workers=True)
    seconds = []
    for setting in (dict[str, str](), ON, dict[str, str](), ON):
        done = script.window(setting, lead_in=1, steps=0, epochs=1)
        assert (done.status, done.reason) == ("ok", "")
        assert done.effect == dict.fromkeys(setting, True)
        seconds.append(done.seconds)
    # A spawned worker imports torch in each epoch, which takes a second or more.
    assert seconds[1] + seconds[3] < 0.5 * (seconds[0] + seconds[2]), seconds
    loading = script.window(ON, mode="loader_only", lead_in=1, steps=3)
    assert (loading.status, loading.effect) == ("ok", dict.fromkeys(ON, True))


@pytest.mark.slow(together=True)
def test_where_forked_workers_fail_the_training_goes_on_with_its_own(guest: StartGuest) -> None:
    """As a dataset does that computes on the GPU."""
    program = GUARDED.replace("import torch\n", "import torch\nparent = os.getpid()\n", 1)
    fails = "        if os.getppid() == parent:\n            raise RuntimeError('not in a fork')\n"
    script = guest(
        program.replace("        time.sleep(self.seconds)\n", f"{fails}        time.sleep(self.seconds)\n"), "10000"
    )
    script.found()
    done = script.window(ON, lead_in=1, steps=4)
    assert done.status == "failed"
    assert "not in a fork" in done.reason
    assert script.window({}, lead_in=1, steps=4).status == "ok"


@pytest.mark.slow(together=True)
@pytest.mark.parametrize(
    ("program", "noted", "changed"),
    [
        (GUARDED, "seconds", 'multiprocessing_context="fork"'),
        (UNGUARDED, "epochs", 'num_workers=2, multiprocessing_context="fork"'),
    ],
    ids=["guarded", "unguarded"],
)
def test_the_edited_program_trains(guest: StartGuest, tmp_path: Path, program: str, noted: str, changed: str) -> None:
    found = replace(guest(program, "10000").found(), usable_cpus=2)
    proposal = FIX.propose(found)
    assert isinstance(proposal, Offer)
    (setting,) = proposal.settings
    (change,) = changes_for(setting, found)
    assert changed in change.diff
    ((_, after),) = edited_files(setting, found).values()
    folder = tmp_path / "edited"
    done = run_plain([str(write(folder, after)), "3"], folder)
    assert (done.code, done.err) == (0, "")
    assert len(notes(folder / noted)) == 3
