"""The edit that transforms whole batches: what it writes runs, and makes the same batches."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from bottleneck_doctor.edits.transformed_batches import transformed_batches_change
from bottleneck_doctor.knobs import Transformed

TOLD = Transformed(
    ("ToTensor()", "Normalize((0.5,), (0.2,))"),
    "PILToTensor()",
    ("ConvertImageDtype(torch.float32)", "Normalize((0.5,), (0.2,))"),
    ("[0]",),
)
HEAD = """import numpy
import torch
from PIL import Image
from torch.utils.data import DataLoader, default_collate
from torchvision import transforms


class Pictures:
    def __init__(self, transform=None):
        self.transform = transform

    def __len__(self):
        return 6

    def __getitem__(self, index):
        made = numpy.random.default_rng(index).integers(0, 256, (4, 4), dtype=numpy.uint8)
        return self.transform(Image.fromarray(made)), index


def gathered(rows):
    return default_collate(rows)


MEAN = 0.5
"""
FLIP, LAST = "transforms.RandomHorizontalFlip()", "transforms.ToTensor(), transforms.Normalize((0.5,), (0.2,))"
CHAIN = f"transforms.Compose([{FLIP}, {LAST}])"
ON_BATCH = "transforms.Compose([transforms.ConvertImageDtype(torch.float32), transforms.Normalize((0.5,), (0.2,))])"
FUNCTION = """on_batch = {}


def transformed(samples):
    batch = {}(samples)
    batch[0] = on_batch(batch[0].contiguous())
    return batch
"""


def edited(body: str, told: Transformed = TOLD) -> str | None:
    source = f"{HEAD}{body}\n"
    line = next(number for number, text in enumerate(source.split("\n"), 1) if "DataLoader(" in text)
    change = transformed_batches_change(source, line, told)
    return None if change is None else change.edited


def batches(source: str) -> list[Any]:
    scope: dict[str, Any] = {}
    torch.manual_seed(1)
    exec(source, scope)
    torch.manual_seed(1)
    return list(scope["loader"])


WRITTEN = {
    "in one call": f"loader = DataLoader(Pictures(transform={CHAIN}), batch_size=2, shuffle=True)",
    "by names": (
        f"chain = {CHAIN}\ndata = Pictures(transform=chain)\nprint(len(data))\n"
        "loader = DataLoader(data, batch_size=2, shuffle=True)"
    ),
    "over lines": (
        f"chain = transforms.Compose(\n    [\n        {FLIP},\n        transforms.ToTensor(),\n"
        "        transforms.Normalize((0.5,), (0.2,)),\n    ]\n)\n"
        "loader = DataLoader(dataset=Pictures(transform=chain), batch_size=2)"
    ),
    "in a function": (
        f"def made():\n    chain = {CHAIN}\n    data = Pictures(transform=chain)\n"
        "    return DataLoader(data, batch_size=3)\n\n\nloader = made()"
    ),
    "with numbers that are worked out": (
        f"loader = DataLoader(Pictures(transform={CHAIN.replace('(0.5,), (0.2,)', '[0.25 * 2], [0.1 + 0.1]')}))"
    ),
    "with a collate function": f"loader = DataLoader(Pictures(transform={CHAIN}), batch_size=2, collate_fn=gathered)",
}


@pytest.mark.parametrize("kind", WRITTEN)
def test_the_edited_program_makes_the_same_batches(kind: str) -> None:
    after = edited(WRITTEN[kind])
    assert after is not None
    collate = "gathered" if "gathered" in WRITTEN[kind] else "torch.utils.data.default_collate"
    on_batch = ON_BATCH.replace("(0.5,), (0.2,)", "[0.25 * 2], [0.1 + 0.1]") if "0.25" in WRITTEN[kind] else ON_BATCH
    assert FUNCTION.format(on_batch, collate) in after
    assert "collate_fn=transformed" in after
    assert after.count("ToTensor()") == 1
    for one, other in zip(batches(f"{HEAD}{WRITTEN[kind]}\n"), batches(after), strict=True):
        assert torch.equal(one[0], other[0])
        assert one[0].stride() == other[0].stride()
        assert torch.equal(one[1], other[1])


def test_what_bytes_are_made_of_already_is_only_left_out() -> None:
    told = Transformed(
        ("ConvertImageDtype(torch.float32)", "Normalize((0.5,), (0.2,))"), "", TOLD.on_batch, ("['image']", "['mask']")
    )
    chain = CHAIN.replace("ToTensor(), ", "PILToTensor(), transforms.ConvertImageDtype(torch.float32), ")
    after = edited(f"loader = DataLoader(Pictures(transform={chain}), batch_size=2)", told)
    assert after is not None
    assert "[transforms.RandomHorizontalFlip(), transforms.PILToTensor()]" in after
    assert "    batch['mask'] = on_batch(batch['mask'].contiguous())" in after


@pytest.mark.parametrize(
    "body",
    [
        f"chain = {CHAIN}\ntest = Pictures(transform=chain)\nloader = DataLoader(Pictures(transform=chain))",
        f"data = Pictures(transform={CHAIN})\nfirst = data[0]\nloader = DataLoader(data)",
        f"data = Pictures(transform={CHAIN})\ndata = Pictures(transform={CHAIN})\nloader = DataLoader(data)",
        f"loader = DataLoader(Pictures(transform={CHAIN.replace('(0.5,)', '(MEAN,)')}))",
        f"loader = DataLoader(Pictures(transform={CHAIN.replace('.ToTensor(),', '.ToTensor(), abs,')}))",
        f"loader = DataLoader(Pictures({CHAIN}))",
        "loader = DataLoader(Pictures(transform=transforms.ToTensor()))",
        f"kwargs = {{}}\nloader = DataLoader(Pictures(transform={CHAIN}), **kwargs)",
        f"transformed = 3\nloader = DataLoader(Pictures(transform={CHAIN}))",
        f"T = transforms\nloader = DataLoader(Pictures(transform={CHAIN.replace('transforms.', 'T.')}))",
    ],
)
def test_what_is_not_certain_is_left_to_the_user(body: str) -> None:
    assert edited(body) is None


def test_a_place_that_nobody_can_assign_to_is_left_to_the_user() -> None:
    assert edited(WRITTEN["in one call"], Transformed(TOLD.transforms, TOLD.instead, TOLD.on_batch, ())) is None


def test_a_batch_that_is_the_pictures_themselves() -> None:
    after = edited(WRITTEN["in one call"], Transformed(TOLD.transforms, TOLD.instead, TOLD.on_batch, ("",)))
    assert after is not None
    assert "    return on_batch(batch.contiguous())\n" in after
