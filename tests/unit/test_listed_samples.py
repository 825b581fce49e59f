"""The edit that gives a loader a list of its samples: what it writes runs, and gives the same batches."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from bottleneck_doctor.edits.listed_samples import given_samples_change, listed_samples_change
from bottleneck_doctor.runtime.knobs.batched_fetch import same_batch
from bottleneck_doctor.runtime.wire.messages import Taker

HEAD = (
    "import torch\n"
    "from torch.utils.data import DataLoader, TensorDataset\n"
    "data = TensorDataset(torch.arange(23).float(), torch.arange(23))\n"
    "held = {'train': data}\n"
)
LINE = 5


def edited(call: str, line: int = LINE) -> str | None:
    change = listed_samples_change(f"{HEAD}{call}\n", line)
    return None if change is None else change.edited.removeprefix(HEAD)


def drawn(source: str) -> list[Any]:
    """Two epochs of the loader that a program makes, and what is drawn at random behind them."""
    scope: dict[str, Any] = {}
    torch.manual_seed(1)
    exec(source, scope)
    return [*scope["loader"], *scope["loader"], torch.rand(1)]


LIST = "samples = [data[index] for index in range(len(data))]\n"
WRITTEN = {
    "loader = DataLoader(data, batch_size=4, shuffle=True)": (
        f"{LIST}loader = DataLoader(samples, batch_size=4, shuffle=True)\n"
    ),
    "loader = DataLoader(batch_size=4, dataset=data)": f"{LIST}loader = DataLoader(batch_size=4, dataset=samples)\n",
    "loader = DataLoader(\n    data,  # all of it\n    4,\n)": (
        f"{LIST}loader = DataLoader(\n    samples,  # all of it\n    4,\n)\n"
    ),
    "loader = DataLoader(held['train'], 4)": (
        "samples = [held['train'][index] for index in range(len(held['train']))]\nloader = DataLoader(samples, 4)\n"
    ),
    "loader = DataLoader(TensorDataset(torch.arange(9)), 4)": (
        "dataset = TensorDataset(torch.arange(9))\n"
        "samples = [dataset[index] for index in range(len(dataset))]\n"
        "loader = DataLoader(samples, 4)\n"
    ),
    "def make():\n    return DataLoader(\n        TensorDataset(torch.arange(9),  # one\n"
    "                      torch.arange(9)),\n        batch_size=4)\nloader = make()": (
        "def make():\n    dataset = TensorDataset(torch.arange(9),  # one\n"
        "                  torch.arange(9))\n"
        "    samples = [dataset[index] for index in range(len(dataset))]\n"
        "    return DataLoader(\n        samples,\n        batch_size=4)\nloader = make()\n"
    ),
    "loader = {part: DataLoader(held[part], 4) for part in held}['train']": (
        "loader = {part: DataLoader([held[part][index] for index in range(len(held[part]))], 4) "
        "for part in held}['train']\n"
    ),
    "samples = index = 3\nloader = DataLoader(data, 4)": (
        "samples = index = 3\n"
        "train_samples = [data[index] for index in range(len(data))]\n"
        "loader = DataLoader(train_samples, 4)\n"
    ),
    "index = 'train'\nloader = DataLoader(held[index], 4)": (
        "index = 'train'\n"
        "samples = [held[index][i] for i in range(len(held[index]))]\n"
        "loader = DataLoader(samples, 4)\n"
    ),
    "def make():\n    return DataLoader(data, 4)\nloader = make()": (
        "def make():\n    samples = [data[index] for index in range(len(data))]\n    return DataLoader(samples, 4)\n"
        "loader = make()\n"
    ),
    "loader = DataLoader(data, 4)\nclass Pairs:\n    def size(self): return self.dataset.shape\n"
    "def name(cfg): return cfg.dataset.name": (
        f"{LIST}loader = DataLoader(samples, 4)\nclass Pairs:\n    def size(self): return self.dataset.shape\n"
        "def name(cfg): return cfg.dataset.name\n"
    ),
    "given = {'dataset': data, 'batch_size': 4}\nloader = DataLoader(shuffle=True, **given)": (
        "given = {'dataset': data, 'batch_size': 4}\n"
        "dataset = given['dataset']\n"
        "samples = [dataset[index] for index in range(len(dataset))]\n"
        "loader = DataLoader(shuffle=True, **{**given, 'dataset': samples})\n"
    ),
    "given = {'dataset': data, 'num_workers': 2}\nloader = DataLoader(**{**given, 'num_workers': 0})": (
        "given = {'dataset': data, 'num_workers': 2}\n"
        "dataset = given['dataset']\n"
        "samples = [dataset[index] for index in range(len(dataset))]\n"
        "loader = DataLoader(**{**given, 'num_workers': 0, 'dataset': samples})\n"
    ),
    "class DataRows(DataLoader):\n    def __init__(self, dataset):\n        self.given = {'dataset': dataset}\n"
    "        super().__init__(sampler=None, **self.given)  # DataLoader\nloader = DataRows(data)": (
        "class DataRows(DataLoader):\n    def __init__(self, dataset):\n        self.given = {'dataset': dataset}\n"
        "        train_dataset = self.given['dataset']\n"
        "        samples = [train_dataset[index] for index in range(len(train_dataset))]\n"
        "        super().__init__(sampler=None, **{**self.given, 'dataset': samples})  # DataLoader\n"
        "loader = DataRows(data)\n"
    ),
}


@pytest.mark.parametrize("call", WRITTEN)
def test_what_is_written_gives_the_same_batches(call: str) -> None:
    makes = [place for place, text in enumerate(call.split("\n")) if "DataLoader(" in text or "# DataLoader" in text]
    after = edited(call, LINE + makes[0])
    assert after == WRITTEN[call]
    before, now = drawn(HEAD + call), drawn(HEAD + after)
    assert len(before) == len(now)
    assert all(map(same_batch, before, now))


@pytest.mark.parametrize(
    "call",
    [
        "loader = DataLoader(*held.values())",
        "loader = DataLoader(**{'dataset': data})",
        "loader = DataLoader(**held, **held)",
        "loader = DataLoader(**{**held, **held})",
        "loader = DataLoader(**made())",
        "loader = DataLoader(*held, **held)",
        "loader = MyDataLoader(**held)",
        "class Rows(Loader):\n    def __init__(self): super().__init__(**held)",
        "loaders = [DataLoader(**held) for _ in held]",
        "loader = print(data)",
        "pair = DataLoader(data, 4), DataLoader(data, 2)",
        "make = lambda: DataLoader(TensorDataset(torch.arange(9)))",
        "loader = DataLoader(samples, 4)",
        "for loader in [DataLoader(data, 4)]: pass",
        "while True: loader = DataLoader(data, 4)",
        "loader = DataLoader(data, 4)\nloader.dataset.shuffle()",
        "loader = DataLoader(data, 4)\nprint(loader.dataset.samples)",
        "loader = DataLoader(data, 4)\nclass Rows(DataLoader):\n    def size(self): self.dataset.shape = 3",
        "ListedSamples = None\nloader = DataLoader(data, 4)\nprint(loader.dataset.tensors)",
    ],
)
def test_what_is_not_certain_is_left_alone(call: str) -> None:
    assert edited(call) is None


ASKED = "\nprint(loader.dataset.tensors[0].shape, len(loader.dataset))\n"


@pytest.mark.parametrize(
    ("call", "given"),
    [
        ("loader = DataLoader(data, 4, shuffle=True)", "DataLoader(ListedSamples(data), 4, shuffle=True)"),
        ("loader = DataLoader(batch_size=4, dataset=data)", "DataLoader(batch_size=4, dataset=ListedSamples(data))"),
        (
            "make = lambda: DataLoader(TensorDataset(torch.arange(9)), 4)\nloader = make()",
            "lambda: DataLoader(ListedSamples(TensorDataset(torch.arange(9))), 4)",
        ),
        (
            "given = {'dataset': data, 'batch_size': 4}\nloader = DataLoader(shuffle=True, **given)",
            "DataLoader(shuffle=True, **{**given, 'dataset': ListedSamples(given['dataset'])})",
        ),
    ],
)
def test_what_is_asked_of_the_dataset_is_answered(call: str, given: str, capsys: pytest.CaptureFixture[str]) -> None:
    whole = call + ASKED
    makes = next(place for place, text in enumerate(call.split("\n")) if "DataLoader(" in text)
    after = edited(whole, LINE + makes)
    assert after is not None
    assert given in after
    assert after.count("@property") == 1
    before, now = drawn(HEAD + whole), drawn(HEAD + after)
    assert len(before) == len(now)
    assert all(map(same_batch, before, now))
    said = capsys.readouterr().out.splitlines()
    assert said[: len(said) // 2] == said[len(said) // 2 :]


NET = "class Net:\n    def fit(self, X, y=None):\n        return DataLoader(X, 4, shuffle=True)\n"
FIT = Taker("", {"dataset": "X"}, {"dataset": 0}, called="fit")
OF_ALL = "torch.utils.data.Subset(samples, range(len(samples)))"
GIVEN = {
    "loader = Net().fit(data)": f"{LIST}loader = Net().fit({OF_ALL})\n",
    "loader = Net().fit(y=None, X=data)": f"{LIST}loader = Net().fit(y=None, X={OF_ALL})\n",
    "loader = dict(made=Net().fit(TensorDataset(torch.arange(9)), None))['made']": (
        "dataset = TensorDataset(torch.arange(9))\n"
        "samples = [dataset[index] for index in range(len(dataset))]\n"
        f"loader = dict(made=Net().fit({OF_ALL}, None))['made']\n"
    ),
}


@pytest.mark.parametrize("call", GIVEN)
def test_a_library_gets_a_dataset_of_a_list(call: str) -> None:
    """It makes the loader, and may take a list for something else."""
    change = given_samples_change(f"{HEAD}{NET}{call}\n", LINE + 3, "fit", FIT)
    assert change is not None
    assert change.edited == f"{HEAD}{NET}{GIVEN[call]}"
    before, now = drawn(HEAD + NET + call), drawn(change.edited)
    assert len(before) == len(now)
    assert all(map(same_batch, before, now))
    assert given_samples_change(change.edited.replace("samples", "data"), LINE + 4, "fitted", FIT) is None


def test_torch_is_imported_where_the_file_has_no_name_for_it() -> None:
    change = given_samples_change('"""Fits."""\n\nfrom kit import net, rows\n\nnet.fit(rows)\n', 5, "fit", FIT)
    assert change is not None
    assert change.edited == (
        '"""Fits."""\n\nimport torch\nfrom kit import net, rows\n\n'
        f"samples = [rows[index] for index in range(len(rows))]\nnet.fit({OF_ALL})\n"
    )


@pytest.mark.parametrize(
    ("head", "imported", "name"),
    [
        ("import torch as t\n", "", "t"),
        ("from kit import net\n\ndef seed():\n    import torch\n", "import torch\n", "torch"),
    ],
)
def test_torch_is_called_what_the_whole_file_calls_it(head: str, imported: str, name: str) -> None:
    change = given_samples_change(f"{head}net.fit(rows)\n", head.count("\n") + 1, "fit", FIT)
    assert change is not None
    listed = "samples = [rows[index] for index in range(len(rows))]\n"
    assert change.edited == f"{imported}{head}{listed}net.fit({OF_ALL.replace('torch', name, 1)})\n"


@pytest.mark.parametrize(
    "call",
    [
        "net.fit(*data)",
        "net.fit(**data)",
        "net.fit()",
        "net.fit(data), net.fit(data)",
        "[net.fit(data) for _ in range(2)]",
        "for _ in range(2): net.fit(data)",
        "net.fit(data)\nprint(loader.dataset.tensors)",
        "net.learn(data)",
    ],
)
def test_what_is_not_certain_of_a_library_is_left_alone(call: str) -> None:
    assert given_samples_change(f"{HEAD}{call}\n", LINE, "fit", FIT) is None
