"""Whether a dataset could be handed to workers that are started anew, found out without copying it."""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from bottleneck_doctor.runtime.process.suitability import workers_unsafe


class Rows(Dataset[int]):
    def __init__(self, held: Any) -> None:
        self.held = held

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> int:
        return index


@pytest.fixture(autouse=True)
def guarded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    main = ModuleType("__main__")
    script = tmp_path / "train.py"
    script.write_text("if __name__ == '__main__':\n    pass\n")
    main.__file__ = str(script)
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "__main__", main)
        yield


def unsafe(held: Any, method: str = "forkserver", workers: int = 0) -> str:
    loader: Any = DataLoader(Rows(held), num_workers=workers)
    return workers_unsafe(loader, method, loader.dataset)


def test_what_only_a_process_that_starts_may_be_given_is_no_obstacle() -> None:
    context = multiprocessing.get_context("forkserver")
    assert unsafe([context.Value("i", 0), context.Lock()]) == ""
    assert multiprocessing.context.get_spawning_popen() is None


def test_what_can_not_be_pickled_is_named() -> None:
    assert "the dataset cannot be pickled" in unsafe(lambda: 0)
    assert "(RuntimeError)" in unsafe(multiprocessing.get_context("fork").Lock())
    assert unsafe(lambda: 0, "fork") == ""
    # Where the user has workers, they were given it.
    assert unsafe(lambda: 0, workers=1) == ""


def test_arrays_are_neither_copied_nor_moved() -> None:
    numpy = pytest.importorskip("numpy")

    class Tracked(numpy.ndarray):  # type: ignore[misc, name-defined]
        def __reduce__(self) -> Any:
            raise AssertionError("it would be copied")

    tensor = torch.zeros(1 << 20)
    assert unsafe({"rows": tensor, "more": [numpy.zeros(4)]}) == ""
    assert not tensor.is_shared()  # type: ignore[no-untyped-call]
