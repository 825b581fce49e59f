"""The edit that lays a model and its input out in another memory format."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.diagnosable import FOUND

from bottleneck_doctor.edits.advice import changes_for
from bottleneck_doctor.edits.diff import ChangeText
from bottleneck_doctor.edits.memory_format import memory_format_change
from bottleneck_doctor.runtime.wire.messages import Site

FORMAT = ".to(memory_format=torch.channels_last)"
SCRIPT = """\
import torch


def main():
    model = Net()
    for epoch in range(3):
        for images, labels in loader:
            loss = criterion(model(images), labels)
            loss.backward()
"""
EDITED = f"""\
import torch


def main():
    model = Net()
    model = model{FORMAT}
    for epoch in range(3):
        for images, labels in loader:
            images = images{FORMAT}
            loss = criterion(model(images), labels)
            loss.backward()
"""


def change(source: str, marked: str = "(images") -> ChangeText | None:
    line = next(number for number, text in enumerate(source.splitlines(), 1) if marked in text)
    made = memory_format_change(source, line, "channels_last")
    assert made is None or ast.parse(made.edited)
    return made


def test_an_input_of_other_dimensions_stays_as_it_is() -> None:
    """As the points of a cloud, of which the model makes its pictures."""
    line = next(number for number, text in enumerate(SCRIPT.splitlines(), 1) if "(images" in text)
    made = memory_format_change(SCRIPT, line, "channels_last", pictures=False)
    assert made is not None
    assert [line for line in made.diff.splitlines() if line[0] in "+-"] == [f"+    model = model{FORMAT}"]


def test_the_model_above_its_loops_and_the_input_above_the_call() -> None:
    made = change(SCRIPT)
    assert made is not None
    assert (made.edited, made.note, made.line) == (EDITED, "", 6)
    assert [line for line in made.diff.splitlines() if line[0] in "+-"] == [
        f"+    model = model{FORMAT}",
        f"+            images = images{FORMAT}",
    ]
    windows = change(SCRIPT.replace("\n", "\r\n"))
    assert windows is not None
    assert windows.edited == EDITED.replace("\n", "\r\n")


def test_a_model_that_is_made_in_a_loop_is_laid_out_in_it() -> None:
    source = SCRIPT.replace(
        "    model = Net()\n    for epoch in range(3):\n", "    for seed in (1, 2):\n        model = Net()\n"
    )
    made = change(source)
    assert made is not None
    assert f"        model = Net()\n        model = model{FORMAT}\n        for images" in made.edited


def test_a_function_that_trains_one_step() -> None:
    made = change("import torch as t\n\ndef step(self, images):\n    return self.net(images)\n", "net(images")
    assert made is not None
    assert f"    images = images{FORMAT.replace('torch', 't')}\n    return self.net(images)\n" in made.edited
    assert made.note == f"And write `self.net = self.net{FORMAT.replace('torch', 't')}` where the model is made."
    assert made.unfinished
    made = change("def step(net, images):\n    return net(images)\n", " net(images")
    assert made is not None
    assert made.note.endswith("Import torch in this file.")


NESTED = """\
import torch


def train(task, loader, seen):
    for epoch in range(2):
        for image in loader:
            def forward():
                return task(image)
            seen.append(forward())
"""


class Noted:
    """What is laid out, and how often."""

    def __init__(self, laid_out: int = 0) -> None:
        self.laid_out = laid_out

    def to(self, memory_format: object) -> Noted:
        return Noted(self.laid_out + 1)


class Net(Noted):
    """A module: it is laid out in its place."""

    def to(self, memory_format: object) -> Net:
        self.laid_out += 1
        return self

    def __call__(self, image: Noted) -> tuple[int, int]:
        return self.laid_out, image.laid_out


def test_names_of_a_function_around_it_are_not_assigned() -> None:
    """`image = image.to(...)` in the inner function would make it a name of that function, without a value."""
    made = change(NESTED, "task(image)")
    assert made is not None
    assert f"return task(image{FORMAT})" in made.edited
    assert f"    task = task{FORMAT}\n    for epoch" in made.edited
    assert not made.unfinished
    names: dict[str, Any] = {}
    seen: list[tuple[int, int]] = []
    exec(made.edited, names)
    names["train"](Net(), [Noted(), Noted()], seen)
    assert seen == [(1, 1)] * 4


def test_a_global_model_is_laid_out_in_its_place() -> None:
    source = "import torch\n\ndef train(loader, seen):\n    for image in loader:\n        seen.append(model(image))\n"
    # `seen.append(...)` is no call of a model, and neither is what it is given.
    made = change(
        source.replace("seen.append(model(image))", "out = model(image)\n        seen.append(out)"), "(image)"
    )
    assert made is not None
    assert f"    model{FORMAT}\n    for image" in made.edited
    names: dict[str, Any] = {"model": Net()}
    seen: list[tuple[int, int]] = []
    exec(made.edited, names)
    names["train"]([Noted(), Noted()], seen)
    assert seen == [(1, 1)] * 2


def test_names_of_a_comprehension_exist_only_in_it() -> None:
    made = change("import torch\nwhile True:\n    outputs = [net(x) for x in parts]\n", "net(x)")
    assert made is not None
    assert f"[net(x{FORMAT}) for x in parts]" in made.edited


@pytest.mark.parametrize(
    "line",
    [
        "loss = model(images.float())",
        "loss = model(images=images) + len(images)",
        "loss = first(images) + second(images)",
        "trainer.fit(images)",
        "fit(images)",
        "self(images)",
        "for output in model(images): pass",
        "if model(images): pass",
        "print(images)",
    ],
)
def test_what_is_called_with_what_is_not_guessed(line: str) -> None:
    assert change(f"from trainers import fit\nwhile True:\n    {line}\n") is None
    assert memory_format_change("import (", 1, "channels_last") is None
    assert memory_format_change(SCRIPT, 99, "channels_last") is None


def test_the_report_s_change(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    forward = Site(file=str(script), line=8)
    found = replace(FOUND, device="cpu", forward_site=forward, loader_site=None)
    (only,) = changes_for({"channels_last": True}, found)
    assert (only.line, only.note) == (6, "")
    assert f"+    model = model{FORMAT}" in only.diff
    # A model with a `to` of its own may refuse it.
    (only,) = changes_for({"channels_last": True}, replace(found, facts={"channels_last": {"own_to": True}}))
    assert (only.diff, only.unfinished) == ("", True)
    # One line of a step calls one of its models, and each of them was laid out.
    (only,) = changes_for({"channels_last": True}, replace(found, facts={"channels_last": {"several": True}}))
    assert (only.diff, only.unfinished) == ("", True)
    assert f"`model = model{FORMAT}` where each of the models is made" in only.note
    # What the model takes is a class of the program's.
    (only,) = changes_for({"channels_last": True}, replace(found, facts={"channels_last": {"no_pictures": True}}))
    assert f"+    model = model{FORMAT}" in only.diff
    assert f"images{FORMAT}" not in only.diff
    script.write_text(SCRIPT.replace("model(images)", "model(images.float())"))
    (only,) = changes_for({"channels_last": True}, found)
    assert (only.line, only.diff) == (8, "")
    assert only.note == (
        f"Write `model = model{FORMAT}` where the model is made, and `images = images{FORMAT}` before it is called."
    )
    calls, *rest = changes_for({"channels_last": True, "intra_op_threads": 1}, replace(found, forward_site=None))
    assert not rest
    assert f"And write `model = model{FORMAT}` where the model is made" in calls.note
    assert calls.unfinished


def test_a_part_that_is_left_to_the_user_is_known(tmp_path: Path) -> None:
    """The edit of the autocast and the input is made, and the model is laid out where nobody sees it made."""
    script = tmp_path / "train.py"
    script.write_text("import torch\n\n\ndef step(model, images):\n    loss = model(images)\n    loss.backward()\n")
    site = Site(file=str(script), line=5)
    found = replace(
        FOUND, device="cpu", forward_site=site, backward_site=replace(site, line=6), loader_site=None, has_loader=False
    )
    (only,) = changes_for({"channels_last": True, "autocast": "bfloat16"}, found)
    assert f"images = images{FORMAT}" in only.diff
    assert "torch.autocast" in only.diff
    assert only.unfinished
    (only,) = changes_for({"autocast": "bfloat16"}, found)
    assert not only.unfinished
