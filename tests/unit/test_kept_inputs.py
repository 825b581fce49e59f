"""The edit that keeps what transforms get: what it writes runs, decodes once, and makes the same batches."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from bottleneck_doctor.edits.kept_inputs import kept_inputs_change
from bottleneck_doctor.knobs import HeldPlace, HeldTransforms

PLAIN = HeldTransforms("", "transform", "tuple", (HeldPlace("", "[0]", "{}"),))
HEAD = """import torch
from torch.utils.data import DataLoader, Subset

decoded = []


class Noise:
    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, value):
        return value + torch.rand(())


class Pictures:
    def __init__(self, transform=None):
        self.transform = transform

    def __len__(self):
        return 6

    def __getitem__(self, index):
        decoded.append(index)
        made = self.transform(torch.full((2,), float(index)))
        return {}


"""
SAMPLES = {"tuple": "made, index", "list": "[index, made]", "dict": '{"image": made, "label": index}', "": "made"}
PLACES = {"tuple": "[0]", "list": "[1]", "dict": "['image']", "": ""}


def edited(body: str, held: HeldTransforms | None = PLAIN) -> str | None:
    source = f"{HEAD.replace('return {}', 'return ' + SAMPLES[held.kind if held else 'tuple'])}{body}\n"
    line = next(number for number, text in enumerate(source.split("\n"), 1) if "DataLoader(" in text)
    change = kept_inputs_change(source, line, held)
    return None if change is None else change.edited


def batches(source: str) -> tuple[list[Any], int]:
    """Those of two epochs, and how many samples were decoded for them."""
    names: dict[str, Any] = {}
    exec(source, names)
    torch.manual_seed(4)
    made = [*names["loader"], *names["loader"]]
    return made, len(names["decoded"])


def flat(batch: Any) -> list[torch.Tensor]:
    if isinstance(batch, torch.Tensor):
        return [batch]
    return list(batch.values()) if isinstance(batch, dict) else list(batch)


@pytest.mark.parametrize("kind", SAMPLES)
@pytest.mark.parametrize(
    ("body", "owner"),
    [
        ("loader = DataLoader(Pictures(Noise([])), batch_size=2, shuffle=True)", ""),
        ("data = Pictures(transform=Noise([]))\nloader = DataLoader(dataset=data, batch_size=2, shuffle=True)", ""),
        (
            "part = Subset(Pictures(Noise([])), range(4))\nloader = DataLoader(\n    part,\n    batch_size=2,\n)",
            ".dataset",
        ),
        ("def made():\n    data = Pictures(Noise([]))\n    return DataLoader(data, 2)\n\n\nloader = made()", ""),
    ],
)
def test_the_same_batches_are_made_of_what_was_decoded_once(kind: str, body: str, owner: str) -> None:
    held = HeldTransforms(owner, "transform", kind, (HeldPlace("", PLACES[kind], "{}"),))
    after = edited(body, held)
    assert after is not None
    assert after.count("KeptInputs(") == 1
    source = f"{HEAD.replace('return {}', 'return ' + SAMPLES[kind])}{body}\n"
    (before, often), (made, once) = batches(source), batches(after)
    assert often == 2 * once
    for one, other in zip(before, made, strict=True):
        assert type(one) is type(other)
        assert all(torch.equal(*pair) for pair in zip(flat(one), flat(other), strict=True))


@pytest.mark.parametrize(
    "body",
    [
        "for epoch in range(2):\n    loader = DataLoader(Pictures(Noise([])), batch_size=2)",
        "def loaded(data):\n    return DataLoader(data, batch_size=2)\n\n\nloader = loaded(Pictures(Noise([])))",
        "loader = DataLoader(Pictures(Noise([])), batch_size=2)\nprint(loader.dataset.transform)",
        "KeptInputs = Pictures\nloader = DataLoader(Pictures(Noise([])), batch_size=2)",
        "given = [Pictures(Noise([]))]\nloader = DataLoader(*given)",
    ],
)
def test_where_it_is_not_certain_nothing_is_written(body: str) -> None:
    assert edited(body) is None


def test_transforms_may_be_held_by_a_class_around_them() -> None:
    preset = "class Preset:\n    def __init__(self):\n        self.chain = Noise([])\n\n"
    preset += "    def __call__(self, value):\n        return self.chain(value)\n\n\n"
    body = f"{preset}data = Pictures(Preset())\nchain = data.transform.chain\nloader = DataLoader(data, batch_size=2)"
    after = edited(body, HeldTransforms("", "transform.chain", "tuple", PLAIN.places))
    assert after is not None
    (before, often), (made, once) = (
        batches(f"{HEAD.replace('return {}', 'return made, index')}{body}\n"),
        batches(after),
    )
    assert often == 2 * once
    assert all(torch.equal(*pair) for pair in zip(before[0], made[0], strict=True))
    names: dict[str, Any] = {}
    exec(after, names)
    assert names["data"].transform.chain is names["chain"]


ASKED = [
    "loader.dataset.classes[1]",
    "len(loader.dataset.classes)",
    "list(loader.dataset.names.items()), loader.dataset.classes.index('dog')",
    "[each for each in loader.dataset.classes]",
    "[loader.dataset.names[each] for each in loader.dataset.classes]",
    "loader.dataset.classes if len(loader.dataset) else other.dataset.rooms",
]


@pytest.mark.parametrize("asked", ASKED)
def test_what_is_asked_of_the_dataset_is_answered(asked: str) -> None:
    """Each time anew, and a name that only another dataset has is no error."""
    named = "        self.classes, self.names = ['cat', 'dog'], {'cat': 1, 'dog': 2}"
    head = HEAD.replace("        self.transform = transform", f"        self.transform = transform\n{named}")
    body = "data = Pictures(Noise([]))\nloader = DataLoader(data, batch_size=2, shuffle=True)\nfirst = ASKED\n"
    source = head.replace("return {}", "return made, index") + body.replace("ASKED", asked)
    source += "data.classes, data.names = data.classes[::-1], {'dog': 3, 'cat': 4}\n"
    source += f"told = first, ({asked})\n"
    line = next(number for number, text in enumerate(source.split("\n"), 1) if "DataLoader(" in text)
    change = kept_inputs_change(source, line, PLAIN)
    assert change is not None
    answers = []
    for each in (source, change.edited):
        names: dict[str, Any] = {}
        exec(each, names)
        answers.append(names["told"])
        assert len(list(names["loader"])) == 3
        assert len(names["decoded"]) == 6
    assert answers[0] == answers[1]


@pytest.mark.parametrize(
    "line",
    [
        "loader.dataset.classes = ['cat']",
        "loader.dataset.targets[2] = 4",
        "loader.dataset.sizes, other = 3, 4",
        "loader.dataset.size += 1",
        "del loader.dataset.size",
        "for loader.dataset.size in range(4): pass",
        "with open('x') as loader.dataset.file: pass",
        "loader.dataset.set_epoch(3)",
        "loader.dataset.classes.append('bird')",
        "loader.dataset.inputs",
        "loader.dataset.dataset.classes",
        "loader.dataset._names",
        "loader.dataset.__class__",
    ],
)
def test_a_dataset_that_is_told_something_stays(line: str) -> None:
    assert edited(f"loader = DataLoader(Pictures(Noise([])), batch_size=2)\n{line}") is None


def by_name(sample: str) -> str:
    """A program whose transforms are given their values by name."""
    source = f"{HEAD}loader = DataLoader(Pictures(Noise()), batch_size=2)\n"
    made = "self.transform(torch.full((2,), float(index)))"
    for before, after in (
        ("return {}", f"return {sample}"),
        (made, "self.transform(image=torch.full((2,), float(index)), mask=[1, index])"),
        ("(self, transforms):\n        self.transforms = transforms", "(self):\n        pass"),
        (
            "(self, value):\n        return value + torch.rand(())",
            "(self, image, mask=[]):\n        return noisy(image, mask)",
        ),
    ):
        assert before in source
        source = source.replace(before, after)
    noisy = (
        "def noisy(image, mask):\n    noise = torch.rand(())\n    return dict(image=image + noise, mask=mask + noise)\n"
    )
    return source.replace("class Noise", noisy.replace("=mask", "=torch.tensor(mask)") + "\n\nclass Noise")


IMAGE, MASK = HeldPlace("image", "[0]", "{}"), HeldPlace("mask", "[1]", "({}.float() / 2).view(2)")
NAMED = {
    "tuple": ('(made["image"], (made["mask"].float() / 2).view(2), index)', "tuple", (IMAGE, MASK)),
    "list": ('[made["image"], made["mask"], index]', "list", (IMAGE, HeldPlace("mask", "[1]", "{}"))),
    "dict": (
        '{**made, "label": index}',
        "dict",
        (HeldPlace("image", "['image']", "{}"), HeldPlace("mask", "['mask']", "{}")),
    ),
    "alone": ('made["image"]', "", (HeldPlace("image", "", "{}"),)),
    "alone, and more": ('made["image"].double()', "", (HeldPlace("image", "", "{}.double()"),)),
}


@pytest.mark.parametrize("name", NAMED)
def test_transforms_are_given_their_values_by_name(name: str) -> None:
    sample, kind, places = NAMED[name]
    source = by_name(sample)
    if not kind:
        source = source.replace(", mask=[1, index])", ")")
    change = kept_inputs_change(
        source, source[: source.index("loader =")].count("\n") + 1, HeldTransforms("", "transform", kind, places)
    )
    assert change is not None
    (before, often), (made, once) = batches(source), batches(change.edited)
    assert often == 2 * once
    for one, other in zip(before, made, strict=True):
        assert all(torch.equal(*pair) for pair in zip(flat(one), flat(other), strict=True))


@pytest.mark.parametrize("kind", SAMPLES)
def test_what_is_done_afterwards_is_done_again(kind: str) -> None:
    after = "{}.double().view(2, 1)"
    source = HEAD.replace("return {}", "return " + SAMPLES[kind].replace("made", after.format("made")))
    source += "loader = DataLoader(Pictures(Noise([])), batch_size=2, shuffle=True)\n"
    held = HeldTransforms("", "transform", kind, (HeldPlace("", PLACES[kind], after),))
    change = kept_inputs_change(source, source[: source.index("loader =")].count("\n") + 1, held)
    assert change is not None
    (before, often), (made, once) = batches(source), batches(change.edited)
    assert often == 2 * once
    for one, other in zip(before, made, strict=True):
        assert type(one) is type(other)
        assert all(torch.equal(*pair) for pair in zip(flat(one), flat(other), strict=True))


def test_rows_of_the_library_datasets_are_read_once() -> None:
    pytest.importorskip("datasets")
    source = """import torch
from datasets import Dataset
from torch.utils.data import DataLoader

decoded = []


def transform(batch):
    longest = max(batch["length"])
    rows = [torch.nn.functional.pad(torch.ones(each), (0, longest - each)) for each in batch["length"]]
    return {"rows": [row + torch.rand(()) for row in rows], "number": batch["number"]}


data = Dataset.from_dict({"length": [1, 4, 2, 3], "number": [0, 1, 2, 3]}).with_transform(transform)
loader = DataLoader(data, batch_size=2, shuffle=True)
"""
    change = kept_inputs_change(
        source, source[: source.index("loader =")].count("\n") + 1, HeldTransforms("", "", "rows", ())
    )
    assert change is not None
    assert change.edited.count("KeptInputs(data)") == 1
    (before, _), (made, _) = batches(source), batches(change.edited)
    for one, other in zip(before, made, strict=True):
        assert list(one) == list(other)
        assert all(torch.equal(*pair) for pair in zip(flat(one), flat(other), strict=True))


def test_what_nobody_has_seen_is_not_written() -> None:
    body = "loader = DataLoader(Pictures(Noise([])), batch_size=2)"
    assert edited(body, None) is None
    later = HeldTransforms("", "transform", "kind of a later release", (HeldPlace("", "[0]", "{}"),))
    source = f"{HEAD}{body}\n"
    assert kept_inputs_change(source, source[: source.index("loader =")].count("\n") + 1, later) is None
