"""Workers in which OpenBLAS has one thread: in the window that asks for it, and only there."""

from __future__ import annotations

import os

import pytest
from tests.process.conftest import StartGuest
from tests.process.driver import PRELUDE

from bottleneck_doctor.documents.report import Setting
from bottleneck_doctor.edits.advice import changes_for
from bottleneck_doctor.fixes import Offer, catalogue

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one CPU: OpenBLAS has one thread anyway"),
]

ON: Setting = {"single_threaded": "openblas"}
FIX = next(fix for fix in catalogue() if fix.id == "worker-threads")
MATRICES = (
    PRELUDE
    + """
import ctypes
import numpy

matrix = numpy.random.default_rng(0).standard_normal((250, 250))


class Products(Rows):
    def __getitem__(self, index):
        product = (matrix @ matrix).sum()
        if torch.utils.data.get_worker_info() is not None:
            note("threads", threads())
        return torch.full((4,), float(product)), index


def threads():
    with open("/proc/self/maps") as maps:
        file = next(line.split()[-1] for line in maps if "openblas" in line)
    library = ctypes.CDLL(file)
    for name in ("scipy_openblas_get_num_threads64_", "scipy_openblas_get_num_threads", "openblas_get_num_threads"):
        if hasattr(library, name):
            return getattr(library, name)()


loader = DataLoader(Products(), batch_size=4, num_workers=int(sys.argv[1]))
for epoch in range(100000):
    for batch in loader:
        train_on(batch)
"""
)


def test_workers_of_its_window_have_no_threads_beside_their_own(guest: StartGuest) -> None:
    script = guest(MATRICES, "1")
    found = script.found()
    assert FIX.propose(found) == Offer((ON,))
    as_written = script.notes("threads")
    done = script.window(ON, lead_in=4, steps=8)
    assert (done.status, done.reason, done.effect) == ("ok", "", {"single_threaded": True})
    # A worker as written may have made some batches before this window, and after it.
    limited = script.notes("threads")[len(as_written) :]
    assert limited.count(1) > 20
    assert min(as_written) > 1
    both = script.window({**ON, "num_workers": 2}, lead_in=2, steps=6)
    assert (both.status, both.effect) == ("ok", {"single_threaded": True, "num_workers": True})
    again = script.window({}, lead_in=4, steps=8)
    assert again.status == "ok"
    assert min(script.notes("threads")[-8:]) > 1


def test_without_workers_it_is_tried_with_some(guest: StartGuest) -> None:
    found = guest(MATRICES, "0").found()
    assert FIX.propose(found) == Offer(({**ON, "num_workers": found.usable_cpus},))
    (alone,) = changes_for(ON, found)
    assert (alone.line, alone.diff) == (0, "")
    assert alone.note == "Put `OPENBLAS_NUM_THREADS=1` before the command that starts the training."
    (both,) = changes_for({**ON, "num_workers": 2}, found)
    assert "num_workers=2" in both.diff
    assert both.note.endswith("put `OPENBLAS_NUM_THREADS=1` before the command that starts the training.")
