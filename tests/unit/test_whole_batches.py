"""The edit that has a loader ask for whole batches: what it writes runs, and gives the same batches."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from bottleneck_doctor.edits.whole_batches import whole_batches_change
from bottleneck_doctor.runtime.knobs.batched_fetch import same_batch

HEAD = (
    "import torch\n"
    "from torch.utils.data import DataLoader, TensorDataset\n"
    "data = TensorDataset(torch.arange(23).float(), torch.arange(23))\n"
    "g = torch.Generator().manual_seed(3)\n"
)
LINE = 5


def edited(call: str, head: str = HEAD) -> str | None:
    change = whole_batches_change(f"{head}{call}\n", LINE)
    return None if change is None else change.edited


def drawn(source: str) -> list[Any]:
    """Two epochs of the loader that a program makes, and what is drawn at random behind them."""
    scope: dict[str, Any] = {}
    torch.manual_seed(1)
    exec(source, scope)
    return [*scope["loader"], *scope["loader"], torch.rand(1)]


WRITTEN = {
    "loader = DataLoader(data, batch_size=4, shuffle=True)": (
        "loader = DataLoader(\n"
        "    data,\n"
        "    sampler=BatchSampler(RandomSampler(data), batch_size=4, drop_last=False),\n"
        "    batch_size=None,\n)\n"
    ),
    "loader = DataLoader(data, 4)": (
        "loader = DataLoader(\n"
        "    data,\n"
        "    sampler=BatchSampler(SequentialSampler(data), batch_size=4, drop_last=False),\n"
        "    batch_size=None,\n)\n"
    ),
    "loader = DataLoader(data, 2 + 2, True, num_workers=0, drop_last=True)": (
        "loader = DataLoader(\n"
        "    data,\n"
        "    sampler=BatchSampler(RandomSampler(data), batch_size=2 + 2, drop_last=True),\n"
        "    batch_size=None,\n"
        "    num_workers=0,\n)\n"
    ),
    "loader = DataLoader(\n    dataset=data,\n    batch_size=5,\n    shuffle=True,\n    generator=g,\n)": (
        "loader = DataLoader(\n"
        "    data,\n"
        "    sampler=BatchSampler(RandomSampler(data, generator=g), batch_size=5, drop_last=False),\n"
        "    batch_size=None,\n"
        "    generator=g,\n)\n"
    ),
    "loader = DataLoader(data, batch_size=4, shuffle=len(data) > 3)": (
        "loader = DataLoader(\n"
        "    data,\n"
        "    sampler=BatchSampler(RandomSampler(data) if len(data) > 3 else SequentialSampler(data), batch_size=4, "
        "drop_last=False),\n"
        "    batch_size=None,\n)\n"
    ),
    "loader = DataLoader(data, batch_size=4, sampler=range(0, 23, 2))": (
        "loader = DataLoader(\n"
        "    data,\n"
        "    sampler=BatchSampler(range(0, 23, 2), batch_size=4, drop_last=False),\n"
        "    batch_size=None,\n)\n"
    ),
    "loader = DataLoader(data, batch_sampler=[[1, 2], [3]])": (
        "loader = DataLoader(data, sampler=[[1, 2], [3]], batch_size=None)\n"
    ),
    "loader = DataLoader(TensorDataset(torch.arange(9.0)), 4)": (
        "dataset = TensorDataset(torch.arange(9.0))\n"
        "loader = DataLoader(\n"
        "    dataset,\n"
        "    sampler=BatchSampler(SequentialSampler(dataset), batch_size=4, drop_last=False),\n"
        "    batch_size=None,\n)\n"
    ),
}


@pytest.mark.parametrize("call", WRITTEN)
def test_the_edit_gives_the_same_batches(call: str) -> None:
    after = edited(call)
    assert after is not None
    assert after.endswith(f"manual_seed(3)\n{WRITTEN[call]}")
    one, other = drawn(f"{HEAD}{call}\n"), drawn(after)
    assert len(one) == len(other) > 2
    assert all(map(same_batch, one, other))


def test_names_are_imported_beside_that_of_the_loader() -> None:
    after = edited("loader = DataLoader(data, 4, True)")
    assert after is not None
    assert "from torch.utils.data import DataLoader, TensorDataset, BatchSampler, RandomSampler\n" in after
    head = HEAD.replace("from torch.utils.data import DataLoader, TensorDataset", "from torch.utils import data as d")
    qualified = edited("loader = d.DataLoader(data, 4)", head.replace("TensorDataset(", "d.TensorDataset("))
    assert qualified is not None
    assert "sampler=d.BatchSampler(d.SequentialSampler(data), batch_size=4, drop_last=False)" in qualified
    assert "import data as d\n" in qualified


@pytest.mark.parametrize(
    "call",
    [
        "loader = DataLoader(data, **options)",
        "loader = DataLoader(*given)",
        "loader = DataLoader(data, batch_size=4, collate_fn=mine)",
        "loader = make_loader(data, batch_size=4)",
        "loader = DataLoader(data)",
        "loader = DataLoader(\n    data,\n    batch_size=4,  # as in the paper\n)",
        "loader = DataLoader(",
        # What is drawn for each fold can't be named once above.
        "loaders = [DataLoader(TensorDataset(torch.arange(fold)), 4) for fold in (4, 5)]",
    ],
)
def test_no_edit_where_it_is_not_certain(call: str) -> None:
    assert edited(call) is None


def test_no_edit_where_the_loader_comes_from_somewhere_else() -> None:
    head = HEAD.replace("from torch.utils.data import DataLoader, TensorDataset", "from mine import *")
    assert edited("loader = DataLoader(data, 4)", head) is None
