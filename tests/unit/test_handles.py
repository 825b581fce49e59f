"""What is opened lazily in one process stays out of another's copy of the dataset, and nothing else is copied."""

from __future__ import annotations

import argparse
import os
import pickle
import sqlite3
import sys
from collections import OrderedDict, defaultdict
from enum import Enum
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.utils.data import ConcatDataset, Dataset, Subset, TensorDataset

from bottleneck_doctor.runtime.loader.handles import DatasetCopy, Noted, exclusive, let_go


class Reader:
    """Opens its file when it is first asked."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file: Any = None

    def byte(self, index: int) -> int:
        if self.file is None:
            self.file = self.path.open("rb")
        self.file.seek(index)
        return int(self.file.read(1)[0])


class Lazy(Dataset[int]):
    def __init__(self, path: Path) -> None:
        self.reader = Reader(path)
        self.files: dict[str, Any] = {}
        self.tables: list[Any] = [None, None]
        self.rows = list(range(10_000))
        self.path = path
        self.epoch = 0

    def __getitem__(self, index: int) -> int:
        if "first" not in self.files:
            self.files["first"] = self.path.open("rb")
        if self.tables[1] is None:
            self.tables[1] = sqlite3.connect(":memory:")
        if not hasattr(self, "late"):
            self.late = self.path.open()
        return self.reader.byte(index)

    def __len__(self) -> int:
        return 256

    def close(self) -> None:
        for each in (self.reader.file, getattr(self, "late", None), *self.files.values(), *self.tables):
            if each is not None:
                each.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "data.bin").write_bytes(bytes(range(256)))
    return tmp_path / "data.bin"


def is_fresh(dataset: Lazy) -> bool:
    return (dataset.reader.file, dataset.files, dataset.tables, hasattr(dataset, "late")) == (
        None,
        {},
        [None, None],
        False,
    )


def test_what_the_main_process_opens_stays_in_its_copy(path: Path) -> None:
    dataset = Lazy(path)
    made = DatasetCopy(ConcatDataset([Subset(dataset, range(100))]))
    assert made.copy[7] == 7
    assert is_fresh(dataset)
    copied = made.copy.datasets[0].dataset
    assert copied.rows is dataset.rows, "data are shared"
    dataset.epoch = 3
    made.refresh()
    assert copied.epoch == 3
    assert copied.reader.file is not None, "what is open stays open"
    copied.close()


def test_workers_get_the_dataset_as_it_was_when_its_loader_was_made(path: Path) -> None:
    dataset = Lazy(path)
    subset = Subset(dataset, range(100))
    noted = Noted()
    noted.note(subset)
    assert not noted.opened_late(subset)
    assert subset[9] == 9
    noted.note(subset)
    assert noted.opened_late(subset), "a loader that is made anew for an epoch changes nothing"
    subset = Subset(dataset, range(50))
    noted.note(subset)
    assert noted.opened_late(subset)
    assert noted.opened_early(subset) == ""
    dataset.epoch = 2
    copied = DatasetCopy(subset, noted.as_it_was)
    assert is_fresh(copied.copy.dataset)
    assert copied.copy.dataset.epoch == 2
    assert not is_fresh(dataset)
    assert copied.copy[11] == 11
    dataset.epoch = 5
    copied.refresh()
    assert copied.copy.dataset.epoch == 5
    pickle.dumps(Lazy(path))
    copied.copy.dataset.close()
    dataset.close()


class Eager(Dataset[int]):
    def __init__(self, path: Path) -> None:
        self.file = path.open("rb")

    def __getitem__(self, index: int) -> int:
        return index

    def __del__(self) -> None:
        self.file.close()


def test_what_was_open_before_is_named_and_stays(path: Path) -> None:
    dataset = Eager(path)
    noted = Noted()
    noted.note(dataset)
    assert not noted.opened_late(dataset)
    assert noted.opened_early(dataset) == "`Eager.file`, an open BufferedReader"
    copied = DatasetCopy(dataset)
    assert copied.copy.file is dataset.file
    del copied
    assert not dataset.file.closed, "the copy's end closes nothing"


class Dotted(dict[str, Any]):
    """Options of a library: a dictionary whose entries are attributes, too."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


class Uncopyable(dict[str, Any]):
    def __copy__(self) -> Uncopyable:
        raise NotImplementedError


class Taking(Dataset[int]):
    """Takes the kind of its storage out of its options when it opens that."""

    def __init__(self, options: Any) -> None:
        self.options, self.all, self.storage = options, {"io": options, "scale": 4}, ""

    def __getitem__(self, index: int) -> int:
        if not self.storage:
            holder = self.options if isinstance(self.options, dict) else vars(self.options)
            self.storage = holder.pop("kind")
        return index


@pytest.mark.parametrize(
    "options",
    [
        {"kind": "disk"},
        OrderedDict(kind="disk"),
        defaultdict(str, kind="disk"),
        Dotted(kind="disk"),
        argparse.Namespace(kind="disk"),
        SimpleNamespace(kind="disk"),
    ],
    ids=lambda each: type(each).__name__,
)
def test_options_that_a_dataset_takes_something_out_of_are_its_copys_own(options: Any) -> None:
    dataset = Taking(options)
    for _ in range(2):
        copied = DatasetCopy(dataset).copy
        assert type(copied.options) is type(options)
        assert copied[3] == 3
        assert copied.storage == "disk"
    assert dataset[3] == 3, "the user's own workers find what they need"


@pytest.mark.parametrize("make", [dict, OrderedDict, Dotted, SimpleNamespace])
def test_what_the_user_sets_in_options_later_is_seen(make: Any) -> None:
    options = make(kind="disk", epoch=0)
    dataset = Taking(options)
    made = DatasetCopy(dataset)
    assert made.copy[3] == 3
    entries = options if isinstance(options, dict) else vars(options)
    entries.update(epoch=3, noise=0.1)
    made.refresh()
    copied = made.copy.options if isinstance(options, dict) else vars(made.copy.options)
    assert (copied["epoch"], copied["noise"]) == (3, 0.1)
    assert "kind" not in copied, "what the copy has taken out stays out"
    assert entries["kind"] == "disk"


def test_what_is_opened_into_a_dictionary_later_is_not_copied(path: Path) -> None:
    dataset = Lazy(path)
    made = DatasetCopy(dataset)
    with path.open("rb") as opened:
        dataset.files.update(first=opened, count=1)
        made.refresh()
    assert made.copy.files == {"count": 1}
    dataset.files.update({str(number): number for number in range(1000)})
    made.refresh()
    assert made.copy.files == {"count": 1}, "it has become a cache"


def test_options_that_cannot_be_copied_are_shared() -> None:
    options, large = Uncopyable(kind="disk"), Dotted({str(number): number for number in range(1000)})
    assert DatasetCopy(Taking(options)).copy.options is options
    assert DatasetCopy(Taking(large)).copy.options is large
    assert DatasetCopy(options).copy is options


def test_what_cannot_be_copied_is_used_as_it_is(path: Path) -> None:
    tensors = TensorDataset(torch.ones(4, 2))
    assert DatasetCopy(tensors).copy.tensors[0] is tensors.tensors[0]
    rows = list(range(1000))
    assert DatasetCopy(rows).copy is rows
    for data in (rows, {"a": 1}, "text", None):
        noted = Noted()
        noted.note(data)
        assert not noted.opened_late(data)
    circular: Any = Reader(path)
    circular.me = [circular]
    copied = DatasetCopy(circular).copy
    assert copied is not circular
    assert copied.me[0] is copied


def test_nothing_is_kept_alive(path: Path) -> None:
    noted = Noted()
    dataset = Eager(path)
    noted.note(dataset)
    file = dataset.file
    del dataset
    assert file.closed
    assert noted._owners == {}


class Environment:
    """As lmdb's, of which a process may open one a file. Its type doesn't say whose it is."""

    __module__ = "builtins"

    def __init__(self) -> None:
        self.closed = False

    def close(self) -> None:
        self.closed = True


def test_forked_workers_let_go_of_what_they_could_not_open_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lmdb", SimpleNamespace(Environment=Environment))
    dataset = Lazy(path)
    noted = Noted()
    noted.note(dataset)
    first, second = Environment(), Environment()
    dataset.reader.file, dataset.files["second"] = first, second
    assert set(exclusive(dataset)) == {first, second}
    copied = DatasetCopy(dataset, noted.as_it_was)
    assert exclusive(copied.copy) == []
    with let_go(exclusive(dataset)):
        child = os.fork()
        if child == 0:
            os._exit(10 * first.closed + second.closed)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 11
    assert not first.closed
    child = os.fork()
    if child == 0:
        os._exit(first.closed)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


class Switched(Lazy):
    """Says by a switch that its file is open."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.opened = self.augments = False
        self.epoch = 0

    def __getitem__(self, index: int) -> int:
        self.opened = True
        return super().__getitem__(index)


def test_switch_that_went_on_when_a_file_was_opened_goes_back(path: Path) -> None:
    dataset = Switched(path)
    noted = Noted()
    noted.note(dataset)
    # What the user sets before iterating is no part of that.
    dataset.augments, dataset.epoch = True, 3
    noted.note_flags(dataset)
    assert dataset[7] == 7
    noted.note_flags(dataset)
    copied = DatasetCopy(dataset, noted.as_it_was)
    assert (copied.copy.opened, copied.copy.augments, copied.copy.epoch) == (False, True, 3)
    assert dataset.opened
    dataset.close()


class Split(Enum):
    TRAIN = 1
    HELD_OUT = 2


def test_what_there_is_one_of_stays_itself(tmp_path: Path) -> None:
    dataset = Lazy(tmp_path)
    dataset.tables = [Split.TRAIN]
    dataset.files = {"split": Split.HELD_OUT}
    copied = DatasetCopy(dataset).copy
    assert copied is not dataset
    assert copied.tables[0] is Split.TRAIN
    assert copied.files["split"] is Split.HELD_OUT
