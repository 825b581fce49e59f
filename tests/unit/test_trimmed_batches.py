"""The edit that cuts batches to their longest row: what it writes runs, and makes what the window's collate makes."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from bottleneck_doctor.edits.trimmed_batches import trimmed_batches_change
from bottleneck_doctor.runtime.knobs.trimmed_padding import to_longest

NAMES = ("input_ids", "attention_mask")
HEAD = """import torch
from torch.utils.data import DataLoader, default_collate


class Rows:
    def __len__(self):
        return 12

    def __getitem__(self, index):
        mask = (torch.arange(9) < 1 + index % 5).long()
        return {"input_ids": (index + 1) * mask, "attention_mask": mask, "label": index}


def gathered(rows):
    return default_collate(rows)


data = Rows()
"""
FUNCTION = """def to_longest(rows):
    batch = {}(rows)
    longest = int(batch["attention_mask"].any(0).nonzero().max()) + 1
    for name in ("input_ids", "attention_mask"):
        batch[name] = batch[name][:, :longest].contiguous()
    return batch


"""


def edited(call: str, head: str = HEAD) -> str | None:
    source = f"{head}{call}\n"
    line = next(number for number, text in enumerate(source.split("\n"), 1) if "DataLoader(" in text)
    change = trimmed_batches_change(source, line, NAMES)
    return None if change is None else change.edited


def batches(source: str) -> list[Any]:
    scope: dict[str, Any] = {}
    torch.manual_seed(1)
    exec(source, scope)
    return list(scope["loader"])


WRITTEN = {
    "loader = DataLoader(data, batch_size=4, shuffle=True)": (
        "torch.utils.data.default_collate",
        "loader = DataLoader(data, batch_size=4, shuffle=True, collate_fn=to_longest)\n",
    ),
    "loader = DataLoader(data, 4, collate_fn=gathered)": (
        "gathered",
        "loader = DataLoader(data, 4, collate_fn=to_longest)\n",
    ),
    "loader = DataLoader(data, 4, collate_fn=None)": (
        "torch.utils.data.default_collate",
        "loader = DataLoader(data, 4, collate_fn=to_longest)\n",
    ),
    "# All.\ndef make():\n    return DataLoader(\n        data,\n        batch_size=4,\n    )\nloader = make()": (
        "torch.utils.data.default_collate",
        "# All.\ndef make():\n    return DataLoader(\n        data,\n        batch_size=4,\n"
        "        collate_fn=to_longest,\n    )\nloader = make()\n",
    ),
}


@pytest.mark.parametrize("call", WRITTEN)
def test_what_is_written_makes_what_a_window_has(call: str) -> None:
    collate, after = WRITTEN[call]
    assert edited(call) == f"{HEAD}\n\n{FUNCTION.format(collate)}{after}"
    now = batches(edited(call) or "")
    assert any(each["input_ids"].shape[1] < 9 for each in now)
    for one, other in zip([to_longest(each) for each in batches(HEAD + call)], now, strict=True):
        assert list(one) == list(other)
        assert all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize(
    "call",
    [
        "loader = DataLoader(data, 4, collate_fn=lambda rows: gathered(rows))",
        "mine = gathered\nloader = DataLoader(data, 4, collate_fn=mine)",
        "loader = DataLoader(data, 4, False, None, None, 0, gathered)",
        "loader = DataLoader(data, **{'batch_size': 4})",
        "to_longest = 3\nloader = DataLoader(data, 4)",
        "loader = (DataLoader(data, 4), DataLoader(data, 4))[0]",
    ],
)
def test_calls_that_are_left_alone(call: str) -> None:
    assert edited(call) is None


def test_torch_is_called_what_the_file_calls_it() -> None:
    call = "loader = DataLoader(data, 4)"
    short = edited(call, HEAD.replace("import torch\n", "import torch as t\n"))
    assert short is not None
    assert "    batch = t.utils.data.default_collate(rows)\n" in short


def test_torch_has_to_be_there_for_the_whole_file() -> None:
    within = "def shown(batch):\n    import torch\n\n    print(torch.is_tensor(batch))\n"
    assert edited("loader = DataLoader(data, 4)", HEAD.replace("import torch\n", within)) is None


def test_other_line_ends_stay() -> None:
    source = f"{HEAD}loader = DataLoader(data, 4)\n".replace("\n", "\r\n")
    change = trimmed_batches_change(source, source.count("\n"), NAMES)
    assert change is not None
    assert change.edited.count("\n") == change.edited.count("\r\n")
    assert change.edited.replace("\r\n", "\n") == edited("loader = DataLoader(data, 4)")
