"""Windows that load in the main process, and those that load in workers, share no open file: all read what is there."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from tests.process.conftest import StartGuest
from tests.process.driver import PRELUDE

from bottleneck_doctor.session.failure import Failure, cause

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


@pytest.mark.parametrize("workers", [2, pytest.param(0, marks=pytest.mark.slow(together=True))])
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


TAKING = (
    PRELUDE
    + """
from collections import OrderedDict


class Taking(Dataset):
    def __init__(self, options):
        self.options, self.storage = options, None

    def __len__(self):
        return 256

    def __getitem__(self, index):
        if self.storage is None:
            self.storage = self.options.pop("type")
        return torch.full((4,), float(index))


if __name__ == "__main__":
    dataset = Taking(OrderedDict(type="disk"))
    for epoch in range(100000):
        for batch in DataLoader(dataset, batch_size=4, num_workers=2):
            optimizer.zero_grad()
            model(batch).mean().backward()
            optimizer.step()
"""
)


def test_options_that_workers_take_something_out_of_are_not_shared(guest: StartGuest) -> None:
    """As BasicSR's datasets do: its workers had found nothing there once a sample had been made in the main process."""
    script = guest(TAKING)
    script.found()
    for setting in ({"num_workers": 0}, {}, {"num_workers": 0}, {"num_workers": 3}):
        done = script.window(setting, lead_in=6, steps=24)
        assert (done.status, done.reason) == ("ok", "")
    assert script.window({}, mode="phases", lead_in=2, steps=8).status == "ok"
    assert script.window({}, lead_in=0, steps=0, epochs=1).status == "ok"


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


# -- libraries whose handles must not be shared ----------------------------------------------------------------------

ARCHIVES = (
    PRELUDE
    + """
class Hdf5:
    def write(self):
        with h5py.File("records.h5", "w") as file:
            rows = torch.arange(256).repeat(64, 1).T.contiguous()
            file.create_dataset("rows", data=rows, chunks=(4, 64), compression=4)

    def open(self):
        self.file = h5py.File("records.h5", "r")
        self.rows = self.file["rows"]

    def read(self, index):
        return int(self.rows[index][index % 64])


class Lmdb:
    def write(self):
        with lmdb.open("records.lmdb", map_size=1 << 24) as environment, environment.begin(write=True) as transaction:
            for index in range(256):
                transaction.put(f"{index:08d}".encode(), str(index).encode() * 500)

    def open(self):
        self.environment = lmdb.open("records.lmdb", readonly=True, lock=False, readahead=False)
        self.transaction = self.environment.begin()

    def read(self, index):
        text = self.transaction.get(f"{index:08d}".encode())
        return int(text[: len(text) // 500])


class Archive(Dataset):
    def __init__(self, kind, early):
        self.records, self.opened = {"h5py": Hdf5, "lmdb": Lmdb}[kind](), early
        if early:
            self.records.open()

    def __len__(self):
        return 256

    def __getitem__(self, index):
        if not self.opened:
            self.records.open()
            self.opened = True
        read = self.records.read(index)
        if read != index:
            raise ValueError(f"asked for {index}, read {read}")
        return torch.full((4,), float(index))


if __name__ == "__main__":
    kind, workers, early = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "early"
    globals()[kind] = __import__(kind)
    {"h5py": Hdf5, "lmdb": Lmdb}[kind]().write()
    dataset = Archive(kind, early)
    loader = DataLoader(dataset, batch_size=4, shuffle=True, num_workers=workers)
    for epoch in range(100000):
        for batch in loader:
            optimizer.zero_grad()
            model(batch).mean().backward()
            optimizer.step()
            if workers and dataset.opened:
                note("opened in the main process", True)
"""
)


@pytest.mark.parametrize("workers", [2, pytest.param(0, marks=pytest.mark.slow(together=True))])
@pytest.mark.parametrize("library", ["h5py", "lmdb"])
def test_archives_that_are_opened_lazily(guest: StartGuest, library: str, workers: int) -> None:
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    script = guest(ARCHIVES, library, str(workers), "lazy")
    found = script.found()
    assert (found.num_workers, found.open_handle) == (workers, "")
    for setting in ({}, {"num_workers": 0}, {"num_workers": 3}, {"num_workers": 0}, {"num_workers": 1}):
        done = script.window(setting, lead_in=6, steps=24)
        assert (done.status, done.reason) == ("ok", "")
    alone = script.window({"num_workers": 0}, mode="loader_only", lead_in=2, steps=8)
    whole = script.window({"num_workers": 2}, lead_in=0, steps=0, epochs=1)
    assert (alone.status, whole.status, whole.steps) == ("ok", "ok", 64)
    assert script.notes("opened in the main process") == []


@pytest.mark.parametrize(("library", "handle"), [("h5py", "an open File"), ("lmdb", "an open Environment")])
def test_archive_that_was_open_before_the_fork_is_named(guest: StartGuest, library: str, handle: str) -> None:
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    script = guest(ARCHIVES, library, "0", "early")
    found = script.found()
    assert found.open_handle.endswith(handle), found.open_handle
    assert script.window({}).status == "ok"
