"""The edit that calls a method of the model above its loop."""

from __future__ import annotations

import pytest

from bottleneck_doctor.edits.of_model import of_model_change

LOOP = """\
def train(net, loader):
    net.train()
    for epoch in range(3):
        for images, labels in loader:
            out = net(images)
            loss(out, labels).backward()
"""


def test_above_the_outermost_loop() -> None:
    change = of_model_change(LOOP, 5, "compile()")
    assert change is not None
    assert change.edited == LOOP.replace("    for epoch", "    net.compile()\n    for epoch")
    assert change.note == ""


def test_an_attribute_of_an_object() -> None:
    change = of_model_change(LOOP.replace("net(", "self.model("), 5, "compile()")
    assert change is not None
    assert "+    self.model.compile()\n" in change.diff


def test_a_call_inside_another() -> None:
    change = of_model_change(LOOP.replace("net(images)", "relu(net(images))"), 5, "compile()")
    assert change is not None
    assert "+    net.compile()\n" in change.diff


def test_without_a_loop_it_is_said_where() -> None:
    change = of_model_change("def step(net, x):\n    return net(x)\n", 2, "compile()")
    assert change is None or "where the model is made" in change.note


@pytest.mark.parametrize("line", ["out = net(*images)", "out = f(images) + g(images)"])
def test_nothing_where_the_model_is_not_plain(line: str) -> None:
    assert of_model_change(LOOP.replace("out = net(images)", line), 5, "compile()") is None
