"""The knob that spares waiting for numbers which are only recorded: which lines it acts on, what these get, and that
nothing of it is left. Tensors of the CPU stand for those of a device."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.unit.own_modules import loaded

from bottleneck_doctor.runtime.knobs import GuestContext, Refused, late_values
from bottleneck_doctor.runtime.knobs.late_values import LateValues
from bottleneck_doctor.runtime.loop.steps import Steps

LOOP = """
def train(losses, each_step):
    total, seen = 0.0, []
    for loss in losses:
        each_step()
        total += loss.item()
        seen.append((float(loss), loss.item()))
        if loss.item() < 0:
            break
    return total, seen, [loss.item() for loss in losses]
"""
LOSSES = [torch.tensor(each) for each in (1.0, 2.0, 3.0, 4.0)]


@pytest.fixture
def train(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    monkeypatch.setattr(late_values, "waits", lambda tensor: True)
    path = tmp_path / "looping.py"
    path.write_text(LOOP)
    before = {name: vars(torch.Tensor).get(name) for name in ("item", "__float__")}
    yield loaded(path).train
    sys.modules.pop("looping", None)
    assert {name: vars(torch.Tensor).get(name) for name in before} == before


def facts_in(train: Callable[..., Any], steps: Steps, device: str = "cuda:0") -> Any:
    """What the knob sees when it is asked within a step."""
    found: list[Any] = []
    train(LOSSES[:1], lambda: found.append(LateValues.facts(steps, device)))
    return found[0]


def test_lines_that_only_record_are_found_in_the_loop_that_runs(train: Callable[..., Any], tmp_path: Path) -> None:
    file = str(tmp_path / "looping.py")
    assert facts_in(train, Steps()) == {"obstacle": "", "lines": [(file, 6), (file, 7)]}
    assert facts_in(train, Steps(), "cpu") is None


def test_such_lines_get_the_first_number_again_and_others_get_their_own(train: Callable[..., Any]) -> None:
    steps = Steps()
    facts_in(train, steps)
    knob, context = LateValues(), GuestContext(steps, "cuda:0")
    knob.apply(True, context)
    try:
        assert knob.effect(True, context) is None
        total, seen, after = train(LOSSES, lambda: None)
    finally:
        knob.revert(context)
    assert (total, seen) == (4.0, [(1.0, 1.0)] * 4)
    assert after == [1.0, 2.0, 3.0, 4.0]
    assert knob.effect(True, context) is True
    assert train(LOSSES, lambda: None)[:2] == (10.0, [(each, each) for each in after])


def test_other_threads_get_their_own_numbers(train: Callable[..., Any]) -> None:
    steps = Steps()
    facts_in(train, steps)
    knob, context = LateValues(), GuestContext(steps, "cuda:0")
    knob.apply(True, context)
    totals: list[float] = []
    try:
        other = threading.Thread(target=lambda: totals.append(train(LOSSES, lambda: None)[0]))
        other.start()
        other.join()
    finally:
        knob.revert(context)
    assert totals == [10.0]


def test_nothing_is_done_where_no_line_is_known(train: Callable[..., Any]) -> None:
    steps = Steps()
    with pytest.raises(Refused):
        LateValues().apply(True, GuestContext(steps, "cuda:0"))
    # Asked outside of any loop.
    assert LateValues.facts(steps, "cuda:0") == {"obstacle": "the training loop takes no number out of a tensor"}


def test_a_number_that_is_on_the_host_is_taken_as_ever() -> None:
    assert not late_values.waits(torch.ones(1))
    assert late_values.waits(torch.ones(1, device="meta"))
