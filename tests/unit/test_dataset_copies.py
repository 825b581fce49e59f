"""The loader that this process may take samples of: the user's own, or one that keeps their files apart."""

from __future__ import annotations

import io
import sys
import types
from typing import Any

import pytest
from torch.utils.data import DataLoader, Dataset

from bottleneck_doctor.runtime.loader import dataset_copies


class Lazy(Dataset[Any]):
    """Opens its file at its first sample."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.handle: Any = None

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> int:
        if self.handle is None:
            self.handle = io.FileIO(self.path)
        return index


@pytest.fixture
def data(tmp_path: Any) -> Lazy:
    (tmp_path / "rows").write_bytes(b"rows")
    return Lazy(str(tmp_path / "rows"))


def test_without_workers_it_is_the_users_own(data: Lazy) -> None:
    loader = DataLoader(data)
    assert dataset_copies.for_this_process(loader) is loader


def test_what_workers_open_is_not_opened_here(data: Lazy) -> None:
    loader = DataLoader(data, num_workers=1, multiprocessing_context="fork")
    here = dataset_copies.for_this_process(loader)
    assert here.dataset is not data
    assert here.dataset[0] == 0
    assert data.handle is None
    assert loader.dataset is data
    here.dataset.handle.close()


def test_a_file_that_only_one_may_open_is_left_to_workers(data: Lazy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lmdb", types.ModuleType("lmdb"))
    assert dataset_copies.for_this_process(DataLoader(data, num_workers=1)) is None
    assert dataset_copies.for_this_process(DataLoader(data)) is not None
