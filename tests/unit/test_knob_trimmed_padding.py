"""Batches cut to their longest row: only what holds nothing is cut off."""

from __future__ import annotations

import copy
import pickle
from collections import UserDict
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, default_collate

from bottleneck_doctor.runtime.knobs.trimmed_padding import NAME, Cut, ToLongest, TrimmedPadding, cut_of, to_longest
from bottleneck_doctor.runtime.loop.steps import Steps

LENGTHS = (3, 5, 2)
COLUMNS = 8
KEPT = max(LENGTHS)
MASK = torch.stack([(torch.arange(COLUMNS) < length).long() for length in LENGTHS])
ROWS: Any = [1]
WORDS = torch.arange(1, 1 + MASK.numel()).view_as(MASK)


def batch(**more: Any) -> dict[str, Any]:
    made = {"input_ids": WORDS * MASK, "attention_mask": MASK.clone(), "labels": torch.tensor([0, 1, 0])}
    return {**made, **more}


def labels(behind: int) -> torch.Tensor:
    return torch.where(MASK != 0, WORDS, torch.tensor(behind))


def test_a_batch_ends_with_its_longest_row() -> None:
    given = batch(
        labels=labels(-100), token_type_ids=torch.zeros_like(MASK), position_ids=torch.arange(COLUMNS).expand(3, -1)
    )
    before = copy.deepcopy(given)
    names = ("input_ids", "attention_mask", "labels", "token_type_ids", "position_ids")
    assert cut_of(given) == Cut(COLUMNS, KEPT, names, "")
    cut = to_longest(given)
    for name in names:
        assert cut[name].is_contiguous()
        assert torch.equal(cut[name], before[name][:, :KEPT]), name


def test_other_dimensions_and_other_kinds_of_batches() -> None:
    deep = batch(embedded=torch.where(MASK[..., None] != 0, torch.rand(3, COLUMNS, 4), torch.tensor(0.0)), note="three")
    assert to_longest(deep)["embedded"].shape == (3, KEPT, 4)
    like_one = to_longest(UserDict(batch()))
    assert like_one["input_ids"].shape == (3, KEPT)
    for other in ([WORDS, MASK], WORDS, {"rows": WORDS}, None):
        assert cut_of(other) is None
        assert to_longest(other) is other


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"labels": labels(0)}, "the loss counts padding"),
        ({"input_ids": WORDS}, "holds something where"),
        ({"attention_mask": MASK.flip(1), "input_ids": WORDS * MASK.flip(1)}, ""),
        ({"seen": MASK[:, None, :].expand(3, COLUMNS, COLUMNS)}, "has another form"),
        ({"turned": WORDS.T.reshape(1, COLUMNS, 3)}, "has another form"),
        ({"parts": {"input_ids": WORDS}}, "is no tensor"),
    ],
)
def test_a_batch_that_stays_as_it_is(more: dict[str, Any], why: str) -> None:
    given = batch(**more)
    before = copy.deepcopy(given)
    cut = cut_of(given)
    assert cut is not None
    assert why in cut.obstacle
    after = to_longest(given)
    for name, value in before.items():
        if isinstance(value, torch.Tensor):
            assert torch.equal(after[name], value), name


def test_rows_that_are_padded_at_their_beginning_go_on_to_the_last_column() -> None:
    turned = MASK.flip(1)
    cut = cut_of(batch(attention_mask=turned, input_ids=WORDS * turned))
    assert cut is not None
    assert cut.kept == COLUMNS


def test_a_batch_of_nothing_stays() -> None:
    empty = batch(attention_mask=torch.zeros_like(MASK), input_ids=torch.zeros_like(MASK))
    assert to_longest(empty)["input_ids"].shape == MASK.shape


def test_workers_get_the_collate_function() -> None:
    again = pickle.loads(pickle.dumps(ToLongest(default_collate)))
    rows = [{"input_ids": WORDS[place] * MASK[place], "attention_mask": MASK[place]} for place in range(3)]
    assert again(rows)["input_ids"].shape == (3, KEPT)


def test_what_is_told_of_the_batches_that_were_seen() -> None:
    loader: Any = DataLoader(ROWS)
    steps = Steps()
    for _ in range(100):
        TrimmedPadding.batch_seen(steps, loader, batch())
    told = TrimmedPadding.facts(steps, "cpu", loader)
    assert told == {"obstacle": "", "share": 1 - KEPT / COLUMNS, "names": ["input_ids", "attention_mask"]}
    assert NAME not in steps.noted
    TrimmedPadding.batch_seen(steps, loader, batch())
    TrimmedPadding.batch_seen(steps, loader, batch(labels=labels(7)))
    assert "the loss counts padding" in TrimmedPadding.facts(steps, "cpu", loader)["obstacle"]
    TrimmedPadding.batch_seen(steps, loader, [WORDS])
    assert TrimmedPadding.facts(steps, "cpu", loader) is None


def test_a_copy_of_the_loader_is_made_to_cut() -> None:
    loader: Any = DataLoader(ROWS)
    for value in (True, False):
        shadow = copy.copy(loader)
        TrimmedPadding.shape(value, shadow)
        assert isinstance(shadow.collate_fn, ToLongest) == value
    assert loader.collate_fn is default_collate
