"""The edit that copies batches ahead: what is edited runs and does the same where there is no such device, and where a
part of a batch may stay on the CPU, nothing is edited."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from bottleneck_doctor.edits.copied_ahead import copied_ahead_change

PROGRAM = """\
import torch
from torch.utils.data import DataLoader


# Trains.
def train(model, {loader}, device):
    seen = []
    for {target} in {batches}:
        {move}
        seen.append(model(images).sum().item() + labels.sum().item())
    return seen
"""
LINE = 10
MOVE = "images, labels = images.to(device), labels.to(device)"


def program(target: str = "images, labels", batches: str = "loader", move: str = MOVE, loader: str = "loader") -> str:
    return PROGRAM.format(target=target, batches=batches, move=move.replace("|", "\n        "), loader=loader)


def result(source: str, batches: Any, device: Any = "cpu") -> list[float]:
    """What the function sees of batches."""
    defined: dict[str, Any] = {}
    exec(compile(source, "train.py", "exec"), defined)
    return list(defined["train"](lambda images: 2 * images, batches, device))


BATCHES = [(torch.ones(2) * each, torch.tensor(each)) for each in range(3)]


@pytest.mark.parametrize(
    ("given", "header"),
    [
        ({}, "for images, labels in copied_ahead(loader, device):"),
        (
            {"target": "step, (images, labels)", "batches": "enumerate(loader, 1)"},
            "for step, (images, labels) in enumerate(copied_ahead(loader, device), 1):",
        ),
        (
            {"move": "images = images.to(device, non_blocking=True)|labels = labels.to(device=device)"},
            "for images, labels in copied_ahead(loader, device):",
        ),
        ({"target": "[images, labels]"}, "for [images, labels] in copied_ahead(loader, device):"),
    ],
)
def test_the_edited_program_sees_the_same_batches(given: dict[str, str], header: str) -> None:
    source = program(**given)
    change = copied_ahead_change(source, LINE)
    assert change is not None
    assert header in change.edited
    assert "\n\n\ndef copied_ahead(batches, device):\n" in change.edited
    assert change.edited.index("def copied_ahead") < change.edited.index("# Trains.")
    assert result(change.edited, BATCHES) == result(source, BATCHES)


def test_the_device_is_the_one_that_the_loop_moves_to() -> None:
    for move, device in (
        ("images, labels = images.cuda(), labels.cuda(non_blocking=True)", '"cuda"'),
        ("images, labels = images.to('cuda:1'), labels.to('cuda:1')", "'cuda:1'"),
        ("images, labels = images.to(self.device), labels.to(self.device)", "self.device"),
    ):
        change = copied_ahead_change(program(move=move), LINE)
        assert change is not None
        assert f"in copied_ahead(loader, {device}):" in change.edited


def test_a_loader_is_known_by_its_name_or_by_what_makes_it() -> None:
    source = program(loader="batches", batches="batches")
    assert copied_ahead_change(source, LINE) is None
    made = f"{source}\nbatches = DataLoader([1])\n"
    change = copied_ahead_change(made, LINE)
    assert change is not None
    assert "in copied_ahead(batches, device):" in change.edited


@pytest.mark.parametrize(
    "given",
    [
        {"target": "images, labels, rows"},  # One part stays where it is, and may be used there.
        {"move": "images = images.to(device)"},
        {"move": "images, labels = images.to(device), labels.to(other)"},
        {"move": "images, labels = images.to(torch.float64), labels.to(torch.float64)"},
        {"move": "images, labels = images.cuda(0), labels.cuda(0)"},
        {"move": "images, labels = images.to(*where), labels.to(*where)"},
        {"move": "device = pick()|images, labels = images.to(device), labels.to(device)"},
        {"move": "images, labels = images.to(labels), labels.to(labels)"},
        {"batches": "tqdm(loader)"},  # Which asks for its length.
        {"batches": "loader.dataset"},
        {"batches": "enumerate(loader)", "target": "images, *labels"},
        {"target": "images, *labels"},
        {"target": "images, (labels, rows)"},
        {"move": f"{MOVE}|copied_ahead = 1"},
    ],
)
def test_what_is_not_certain_is_left_alone(given: dict[str, str]) -> None:
    assert copied_ahead_change(program(**given), LINE + given.get("move", "").count("|")) is None


def test_a_loop_that_is_not_seen_is_left_alone() -> None:
    assert copied_ahead_change("import torch\nmodel(images)\n", 2) is None
    assert copied_ahead_change(program().replace("import torch\n", "", 1), LINE - 1) is None
    assert copied_ahead_change(program().replace("for images, labels in loader:", "while True:"), LINE) is None
    assert copied_ahead_change(program().replace("    for", "    async for"), LINE) is None
