"""The edit that groups rows by length: what it writes runs, gives every row once, and puts similar rows together."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import pytest
import torch

from bottleneck_doctor.edits.grouped_rows import grouped_rows_change

HEAD = """import torch
from torch.utils.data import DataLoader

torch.manual_seed(3)
LENGTHS = torch.randint(1, 200, (203,)).tolist()
data = [{"words": [index] * length} for index, length in enumerate(LENGTHS)]
size = 4


class Rows(list):
    pass


def listed(rows):
    return [len(row["words"]) for row in rows]


def numbers(rows):
    return [row["words"][0] for row in rows]


"""
PART = '["words"]'


def edited(call: str, head: str = HEAD) -> str | None:
    source = f"{head}{call}\n"
    line = next(number for number, text in enumerate(source.split("\n"), 1) if "DataLoader(" in text)
    change = grouped_rows_change(source, line, PART)
    return None if change is None else change.edited


def batches(source: str, name: str = "loader") -> list[Any]:
    scope: dict[str, Any] = {}
    exec(source, scope)
    torch.manual_seed(1)
    loader = scope[name]
    made = list(loader)
    assert len(made) == len(loader)
    return made


def spread(made: Sequence[Sequence[int]]) -> float:
    """Mean difference between the longest and the shortest row of a batch."""
    return sum(max(batch) - min(batch) for batch in made) / len(made)


WRITTEN = {
    "loader = DataLoader(data, batch_size=4, shuffle=True, collate_fn=listed)": (
        "loader = DataLoader(data, collate_fn=listed, batch_sampler=GroupedByLength(data, 4))"
    ),
    "loader = DataLoader(data, 4, True, collate_fn=listed)": (
        "loader = DataLoader(data, collate_fn=listed, batch_sampler=GroupedByLength(data, 4))"
    ),
    "loader = DataLoader(Rows(data), size, shuffle=True, drop_last=False, sampler=None, collate_fn=listed)": (
        "dataset = Rows(data)\n"
        "loader = DataLoader(dataset, sampler=None, collate_fn=listed, batch_sampler=GroupedByLength(dataset, size))"
    ),
    "loader = DataLoader(\n    data,\n    size,\n    shuffle=True,\n    drop_last=True,\n    collate_fn=listed\n)": (
        "loader = DataLoader(\n    data,\n    collate_fn=listed,\n    batch_sampler=GroupedByLength(data, size)\n)"
    ),
}


@pytest.mark.parametrize("call", WRITTEN)
def test_similar_rows_come_together_and_every_row_once(call: str) -> None:
    source = edited(call)
    assert source is not None
    assert source.endswith(f"{WRITTEN[call]}\n")
    before, after = batches(f"{HEAD}{call}\n"), batches(source)
    if "drop_last=True" not in call:
        assert sorted(chain(*after)) == sorted(chain(*before))
    assert [len(batch) for batch in after].count(4) == 203 // 4
    assert spread(after) < 0.3 * spread(before)
    # They come in no order of length, and every epoch has others.
    longest = [max(batch) for batch in after]
    assert longest != sorted(longest)
    assert longest != sorted(longest, reverse=True)


def test_each_row_comes_once_an_epoch_and_epochs_differ() -> None:
    source = edited("loader = DataLoader(data, batch_size=4, shuffle=True, collate_fn=numbers)")
    assert source is not None
    scope: dict[str, Any] = {}
    exec(source, scope)
    one, other = list(scope["loader"]), list(scope["loader"])
    assert sorted(chain(*one)) == sorted(chain(*other)) == list(range(203))
    assert {tuple(sorted(batch)) for batch in one} != {tuple(sorted(batch)) for batch in other}


@pytest.mark.parametrize(
    "call",
    [
        "loader = DataLoader(data, batch_size=4)",
        "loader = DataLoader(data, batch_size=4, shuffle=size > 1)",
        "loader = DataLoader(data, batch_size=4, shuffle=True, drop_last=size > 1)",
        "loader = DataLoader(data, batch_size=4, shuffle=True, generator=torch.Generator())",
        "loader = DataLoader(data, batch_size=4, sampler=torch.utils.data.RandomSampler(data))",
        "loader = DataLoader(data, **dict(batch_size=4, shuffle=True))",
        "loader = DataLoader(data, 4, True, None)",
        "loader = DataLoader(data, shuffle=True)",
        "loader = DataLoader(data, batch_size=4, shuffle=True)  # GroupedByLength\nGroupedByLength = 1",
        "loader = DataLoader(\n    data,\n    batch_size=4,  # As in the paper.\n    shuffle=True,\n)",
        "for epoch in range(2):\n    loader = DataLoader(data, batch_size=4, shuffle=True)",
        "loaders = [DataLoader(Rows(data[fold:]), batch_size=4, shuffle=True) for fold in range(3)]",
    ],
)
def test_what_is_not_certain_is_left_alone(call: str) -> None:
    assert edited(call) is None


def test_the_module_has_to_be_there_by_its_name() -> None:
    head = HEAD.replace("import torch\n", "from torch import manual_seed, randint\n", 1)
    head = head.replace("torch.manual_seed", "manual_seed").replace("torch.randint", "randint")
    assert edited("loader = DataLoader(data, batch_size=4, shuffle=True)", head) is None
