"""The samples and the elements of a batch, whatever it is made of."""

from __future__ import annotations

from collections import UserDict
from typing import Any

import pytest
import torch
from torch.utils.data import BatchSampler, DataLoader, TensorDataset

from bottleneck_doctor.runtime.loader.attributes import samples_told
from bottleneck_doctor.runtime.loop.batches import batch_elements, batch_samples


def test_samples_of_a_batch_are_its_first_dimension() -> None:
    rows = torch.zeros(7, 3)
    for batch in (
        rows,
        (rows, torch.zeros(2)),
        [rows],
        {"input_ids": rows, "labels": torch.zeros(1)},
        [[rows, rows], rows],
        ["a", "b", "c", "d", "e", "f", "g"],
    ):
        assert batch_samples(batch) == 7, batch
    assert batch_samples(torch.tensor(3.0)) == 1
    assert batch_samples(object()) == 1
    assert batch_samples([]) == 1


def test_a_list_of_pictures_counts_its_pictures() -> None:
    pictures = [torch.zeros(3, 20 + i, 30) for i in range(4)]
    assert batch_samples((pictures, [{"boxes": torch.zeros(2, 4)}] * 4), 4) == 4
    views = [torch.zeros(8, 3), torch.zeros(8, 3)]
    assert batch_samples((views, torch.zeros(8)), 8) == 8


def test_the_part_that_is_as_long_as_the_batch_says_is_believed() -> None:
    boxes_first = {"boxes": torch.zeros(9, 4), "names": ("a",) * 4, "pictures": torch.zeros(4, 3, 8, 8)}
    assert batch_samples(boxes_first, 4) == 4
    assert batch_samples((torch.zeros(50, 4, 3), torch.zeros(4)), 4) == 4  # Time before batch.
    assert batch_samples(boxes_first, 5) == batch_samples(boxes_first) == 9
    assert batch_samples([[["name", torch.zeros(6, 2)]]]) == 6
    assert batch_samples([[[[torch.zeros(3)] * 1000] * 1000] * 1000] * 1000, 4) == 3


class Padded:
    """Pictures of several sizes, padded to the largest, and where each of them ends, as in DETR."""

    def __init__(self, count: int, *side: int) -> None:
        self.tensors, self.mask = torch.zeros(count, 3, *side), torch.zeros(count, *side, dtype=torch.bool)
        self.names, self.dataset = ["a"] * count, Rows()


class Rows:
    def __init__(self) -> None:
        self.rows = torch.zeros(1000)


@pytest.mark.parametrize("count", [1, 3])
def test_what_a_class_of_the_program_s_holds_is_a_part_of_the_batch(count: int) -> None:
    targets = [{"boxes": torch.zeros(5 + each, 4), "size": torch.zeros(2)} for each in range(count)]
    for batch in (
        (Padded(count, 7, 9), targets),
        (Padded(count, 7, 9), tuple(targets)),
        (torch.zeros(9, 4), Padded(count, 2, 2)),
    ):
        assert batch_samples(batch, count) == count
    assert batch_samples((torch.zeros(9, 4), Padded(2, 2, 2)), 3) == 9
    assert batch_samples(targets, count) == count
    assert batch_samples(Padded(count, 7, 9), count) == count
    assert batch_samples((Padded(count, 7, 9), targets), count + 2) == count, "the last batch of an epoch"
    boxes = sum(each["boxes"].numel() + 2 for each in targets)
    assert batch_elements((Padded(count, 7, 9), targets)) == count * 7 * 9 * 4 + boxes


def test_a_batch_of_two_parts_is_no_batch_of_two_samples() -> None:
    rows = torch.zeros(8, 3)
    assert batch_samples(({"x": rows}, {"y": rows}), 2) == 8
    assert batch_samples([rows, rows], 2) == 8


class Graphs:
    """As torch_geometric's batches: what they hold lies in stores."""

    def __init__(self) -> None:
        self.stores = [{"x": torch.zeros(10, 3), "edge_index": torch.zeros(2, 40), "names": ["a"]}]

    def values(self) -> None:
        raise AssertionError("they are not asked for")


def test_elements_of_a_batch_are_those_of_all_of_its_tensors() -> None:
    ids, mask = torch.zeros(4, 30, dtype=torch.long), torch.ones(4, 30)
    assert batch_elements(ids) == 120
    assert batch_elements({"input_ids": ids, "attention_mask": mask, "text": ["a"] * 4, "epoch": 3}) == 240
    assert batch_elements(UserDict(input_ids=ids, attention_mask=mask)) == 240
    assert batch_elements(([torch.zeros(3, 5, 7), torch.zeros(3, 4, 4)], [{"boxes": torch.zeros(2, 4)}])) == 161
    assert batch_elements(Graphs()) == 110
    assert batch_elements([torch.zeros(1)] * 5000) == 1000
    assert batch_elements([[0] * 100, [torch.zeros(1)] * 5000]) < 900
    assert batch_elements(torch.nn.utils.rnn.pack_sequence([torch.zeros(3), torch.zeros(2)])) == 5 + 3


def test_elements_of_a_batch_unlike_any_are_not_counted() -> None:
    class Broken:
        @property
        def values(self) -> None:
            raise RuntimeError("nobody may ask")

    nested: Any = []
    nested.append(nested)
    for batch in (None, "text", b"bytes", 3, object(), Broken(), nested, [], {}):
        assert batch_elements(batch) == 0


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"batch_size": 4}, 4),
        ({"batch_sampler": BatchSampler(range(12), 3, drop_last=False)}, 3),
        ({"batch_sampler": [[0, 1], [2]]}, None),
        ({"batch_size": None}, None),
    ],
)
def test_a_batch_sampler_tells_how_many_samples_a_batch_has(given: dict[str, Any], told: int | None) -> None:
    assert samples_told(DataLoader(TensorDataset(torch.zeros(12, 1)), **given)) == told
