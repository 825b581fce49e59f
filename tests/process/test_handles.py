"""Windows that load in the main process, and those that load in workers, share no open file: all read what is there."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.process.conftest import StartGuest
from tests.process.driver import PRELUDE

from bottleneck_doctor.failure import Failure, cause

pytestmark = pytest.mark.process

RECORDS = (
    PRELUDE
    + """
class Archive(Dataset):
    def __init__(self, early):
        self.files = {}
        self.file = self.open() if early else None

    def open(self):
        return open("records.bin", "rb", buffering=0)

    def __len__(self):
        return 256

    def __getitem__(self, index):
        if self.file is None:
            self.file = self.open()
        if os.getpid() not in self.files:
            self.files[os.getpid()] = self.open()
        for file in (self.file, *self.files.values()):
            file.seek(8 * index)
            time.sleep(0.0005)
            read = file.read(8)
            if int(read) != index:
                raise ValueError(f"asked for {index}, read {read}")
        return torch.full((4,), float(index))


if __name__ == "__main__":
    with open("records.bin", "w") as file:
        file.writelines(f"{index:7d}\\n" for index in range(256))
    dataset = Archive(early=sys.argv[2] == "early")
    for epoch in range(100000):
        part = torch.utils.data.Subset(dataset, range(200))
        for batch in DataLoader(part, batch_size=4, num_workers=int(sys.argv[1])):
            optimizer.zero_grad()
            model(batch).mean().backward()
            optimizer.step()
            if int(sys.argv[1]) and dataset.file is not None:
                note("opened in the main process", True)
"""
)
"""Two that share a position read what the other asked for: the wait between `seek` and `read` lets them."""


@pytest.mark.parametrize("workers", [2, 0])
def test_lazily_opened_files_are_not_shared(guest: StartGuest, workers: int) -> None:
    script = guest(RECORDS, str(workers), "lazy")
    found = script.found()
    assert (found.num_workers, found.open_handle) == (workers, "")
    for setting in ({"num_workers": 0}, {}, {"num_workers": 3}, {"num_workers": 0}, {"num_workers": 2}):
        done = script.window(setting, lead_in=6, steps=24)
        assert (done.status, done.reason) == ("ok", "")
    alone = script.window({"num_workers": 0}, mode="loader_only", lead_in=2, steps=8)
    whole = script.window({"num_workers": 2}, lead_in=0, steps=0, epochs=1)
    assert (alone.status, whole.status, whole.steps) == ("ok", "ok", 50)
    assert script.notes("opened in the main process") == []


def test_file_that_was_open_before_the_fork_is_named(guest: StartGuest, tmp_path: Path) -> None:
    script = guest(RECORDS, "0", "early")
    found = script.found()
    assert found.open_handle == "`Archive.file`, an open FileIO"
    assert script.window({}).status == "ok"
    torn = script.window({"num_workers": 2}, lead_in=6, steps=100)
    assert torn.status == "failed"
    words = Failure(setting={"num_workers": 2}, words=torn.reason, open_handle=found.open_handle)
    assert cause(words).sentence.startswith("ValueError: asked for ")
    assert (
        "the dataset holds `Archive.file`, an open FileIO, whose position forked workers share" in cause(words).sentence
    )
    assert script.window({}).status == "ok"
