"""Copies of pinned batches that don't wait: in the lines that the source shows, and nowhere else."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
import torch

from bottleneck_doctor.runtime.knobs import GuestContext, Refused, kinds
from bottleneck_doctor.runtime.knobs.non_blocking import NAME
from bottleneck_doctor.runtime.loop.steps import Steps

HERE = str(Path(__file__).resolve())


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What `Tensor.to` was called with by name. All tensors of a CPU are pinned: there is no device here to pin for."""
    calls: list[dict[str, Any]] = []
    original = torch.Tensor.to

    def noted(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        calls.append(kwargs)
        return original(tensor, *args, **kwargs)

    monkeypatch.setattr(torch.Tensor, "to", noted)
    monkeypatch.setattr(torch.Tensor, "is_pinned", lambda tensor: tensor.is_cpu)
    return calls


def looked_at(device: str) -> tuple[Steps, Any]:
    """What is told of a loop that copies a batch in one line, and of it converted in another."""
    steps, told = Steps(), None
    for rows in [torch.ones(2)]:
        told = kinds()[NAME].facts(steps, device)
        rows.to("meta")
        rows.to(torch.float64)
    return steps, told


def line_of(text: str) -> int:
    lines = Path(HERE).read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.strip() == text)


def test_the_lines_of_the_loop_are_told() -> None:
    steps, told = looked_at("cuda:0")
    assert told == {"calls": [["to", HERE, line_of('rows.to("meta")')]]}
    assert steps.noted[NAME]
    assert looked_at("cpu")[1] is None


def copied() -> None:
    for rows in [torch.ones(2), torch.ones(3)]:
        rows.to("meta")  # in the loop
    torch.ones(4).to("meta")


def test_copies_of_these_lines_do_not_wait(given: list[dict[str, Any]]) -> None:
    steps = Steps()
    context = GuestContext(steps, "cuda:0")
    knob = kinds()[NAME]()
    with pytest.raises(Refused, match="no line was seen"):
        knob.apply(True, context)
    steps.noted[NAME] = {(copied.__code__.co_filename, line_of('rows.to("meta")  # in the loop'))}
    before = torch.Tensor.to
    knob.apply(True, context)
    assert knob.effect(True, context) is None
    copied()
    assert given == [{"non_blocking": True}, {"non_blocking": True}, {}]
    assert knob.effect(True, context) is True
    other = threading.Thread(target=copied)
    other.start()
    other.join()
    assert given[3:] == [{}, {}, {}], "only the thread that trains"
    knob.revert(context)
    assert torch.Tensor.to is before
    copied()
    assert given[6:] == [{}, {}, {}]


def test_what_is_not_pinned_is_copied_as_written(given: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.Tensor, "is_pinned", lambda tensor: False)
    steps = Steps()
    steps.noted[NAME] = {(copied.__code__.co_filename, line_of('rows.to("meta")  # in the loop'))}
    knob, context = kinds()[NAME](), GuestContext(steps, "cuda:0")
    knob.apply(True, context)
    copied()
    assert given == [{}, {}, {}]
    assert knob.effect(True, context) is None
    knob.revert(context)
