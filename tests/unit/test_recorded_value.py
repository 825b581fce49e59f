"""The edit that keeps recorded numbers as tensors until the loop is over: what is edited does the same, and where that
is not certain, nothing is edited."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from bottleneck_doctor.edits.recorded_value import recorded_value_change

PROGRAM = """\
import torch

def train(losses, log):
    total, kept, seen = 0.0, [], 0
    kept = []
    for epoch in range(2):
        for loss in losses:
            seen += 1
            {line}
        log.append(total)  # once an epoch
    return total, kept, seen
"""
LINE = 9


def program(line: str) -> str:
    return PROGRAM.format(line=line.replace("|", "\n            "))


def result(source: str) -> tuple[Any, list[Any]]:
    """What the function returns, and what it logs."""
    defined: dict[str, Any] = {}
    exec(compile(source, "train.py", "exec"), defined)
    log: list[Any] = []
    losses = [torch.tensor(each, requires_grad=True) for each in (1.0, 2.5, 4.0)]
    return defined["train"](losses, log), log


@pytest.mark.parametrize(
    "line",
    [
        "total += loss.item()",
        "total += loss.item() * 4",
        "total += 2 * (loss * loss).item() / 8 - 1",
        "total += (loss.item())",
        "kept.append(loss.item())",
    ],
)
def test_the_edited_program_records_the_same(line: str) -> None:
    source = program(line)
    change = recorded_value_change(source, LINE)
    assert change is not None
    assert change.edited
    assert ".item()" not in change.edited
    assert result(change.edited) == result(source)
    assert change.line == LINE


def test_only_two_lines_differ() -> None:
    source = program("total += loss.item()  # the sum")
    change = recorded_value_change(source, LINE)
    assert change is not None
    edited = (change.edited or "").splitlines()
    assert [line for line in edited if line not in source.splitlines()] == [
        "            total += loss.detach().float()  # the sum",
        "        total = float(total)",
    ]
    assert edited.index("        total = float(total)") == LINE  # Behind the loop, and before what reads it.


@pytest.mark.parametrize(
    "line",
    [
        "total += loss.item()|print(total)",
        "total += loss.item()|if epoch > 5:|    return total",
        "total -= loss.item()",
        "total += -loss.item()",
        "total += loss.item() + loss.item()",
        "total += loss.item(# why|)",
        "total += int(loss.item())",
        "total += float(loss)",
        "log.append(loss.item())",
        "kept.append(round(loss.item()))",
        "kept.append(loss.item())|print(kept)",
        "print(loss.item())",
        "log[0].total += loss.item()",
        "global total|total += loss.item()",
        "x = loss.item()",
        "total += loss.item(); seen += 1",
        "pass",
    ],
)
def test_nothing_is_edited_where_it_is_not_certain(line: str) -> None:
    number = LINE + ("global" in line)
    assert recorded_value_change(program(line), number) is None


@pytest.mark.parametrize(
    "source",
    [
        "while True:\n    total += loss.item()\n",
        "for loss in losses:\n    total += loss.item()\nelse:\n    print(total)\n",
        "total += loss.item()\n",
        "for loss in losses:\n    def note():\n        total += loss.item()\n",
        "for loss in losses:\n    total += loss.item(\n",
    ],
)
def test_other_loops_are_left_alone(source: str) -> None:
    for line in range(1, 5):
        assert recorded_value_change(source, line) is None
