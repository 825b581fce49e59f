"""How much of a batch is padding: read from its attention mask, whatever the batch is, and added up over batches."""

from __future__ import annotations

from collections import UserDict
from typing import Any

import pytest
import torch
from tests.unit.diagnosable import healthy, loading

from bottleneck_doctor.diagnose import Evidence, diagnose
from bottleneck_doctor.documents.report import PaddingUse
from bottleneck_doctor.measure import phases
from bottleneck_doctor.runtime.loop.padding import Padding, padding_of

LENGTHS = torch.tensor([3, 5, 1, 2])
MASK = (torch.arange(16) < LENGTHS[:, None]).long()
IDS = torch.arange(1, 65).view(4, 16) * MASK
KNOWN = Padding(places=64, filled=11, needed=20)

BATCHES: dict[str, Any] = {
    "a dictionary": {"input_ids": IDS, "attention_mask": MASK, "labels": torch.zeros(4)},
    "a tokenizer's": UserDict(input_ids=IDS, attention_mask=MASK.bool()),
    "a tuple": (IDS, MASK, torch.zeros(4)),
    "a list, the mask first": [MASK.to(torch.uint8), IDS],
    "padded in front": {"attention_mask": MASK.flip(1)},
    "columns beside labels": [{"input_ids": IDS, "attention_mask": MASK}, torch.zeros(4)],
    "columns of two texts beside labels": ([{"attention_mask": MASK}, {"attention_mask": MASK}], torch.zeros(4)),
}


@pytest.mark.parametrize("name", BATCHES)
def test_a_mask_says_what_is_padding(name: str) -> None:
    assert padding_of(BATCHES[name]) == KNOWN


OTHERS: dict[str, Any] = {
    "pictures": (torch.zeros(4, 3, 8, 8), torch.zeros(4).long()),
    "answers of zeros and ones": (torch.rand(4, 16), MASK),
    "answers beside numbers": (IDS + 1000, (torch.arange(64).view(4, 16) % 2)),
    "a mask for every pair": {"attention_mask": torch.ones(4, 16, 16).long()},
    "added to scores": {"attention_mask": torch.zeros(4, 16)},
    "weights": {"attention_mask": MASK * 3},
    "nothing": {},
    "a tensor": MASK,
    "objects": [object()],
    "objects deeper in": ([[object()], {"attention_mask": MASK * 3}], [{"rows": MASK}]),
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_no_mask_is_left_alone(name: str) -> None:
    assert padding_of(OTHERS[name]) is None


def test_rows_of_nothing_need_nothing() -> None:
    assert padding_of({"attention_mask": torch.zeros(2, 3).long()}) == Padding(places=6, filled=0, needed=0)


def made(*padding: dict[str, int] | None) -> list[dict[str, Any]]:
    """Two windows of phases, with two batches of four rows each."""
    common = {
        "num_workers": 0,
        "fetch_seconds": [0.01, 0.01],
        "collate_seconds": 0.001,
        "samples": 8.0,
        "bytes": 100.0,
        "hand_over_seconds": [],
        "delivered": 0,
        "out_of_order": 0,
        "span": 1.0,
        "workers": [],
        "files": None,
        "fetch_site": None,
        "collate_site": None,
        "transforms": [],
    }
    return [{"loading": {**common, "padding": each}} for each in padding]


def test_windows_add_up() -> None:
    found = phases.loading(
        made({"places": 128, "filled": 32, "needed": 64}, {"places": 128, "filled": 0, "needed": 32}), {}
    )
    assert found is not None
    assert found.padding == PaddingUse(columns=16.0, empty=0.875, behind_longest=0.625)
    without = phases.loading(made(None, None), {})
    assert without is not None
    assert without.padding is None


def padded(empty: float, behind: float) -> Evidence:
    return healthy(loop=loading(padding=PaddingUse(columns=128.0, empty=empty, behind_longest=behind)))


def test_rows_of_unlike_length_are_another_matter() -> None:
    (finding,) = (each for each in diagnose(padded(0.6, 0.0)).findings if each.id == "padding")
    assert finding.sentence.startswith("60 % of the places of a batch are padding")
    assert "similar length" in finding.advice
    assert not [each for each in diagnose(padded(0.3, 0.0)).findings if each.id == "padding"]
