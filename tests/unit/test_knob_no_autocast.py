"""The user's autocast is off in a window and as written after it, whatever was open as the window began or ended."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
import torch
from torch import nn

from bottleneck_doctor.runtime.knobs import GuestContext
from bottleneck_doctor.runtime.knobs.no_autocast import NoAutocast
from bottleneck_doctor.runtime.loop.steps import Steps

ENTER, EXIT = torch.autocast.__enter__, torch.autocast.__exit__


@pytest.fixture
def model() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 4))


@pytest.fixture
def context(model: nn.Module) -> GuestContext:
    steps = Steps()
    steps.roots = [model]
    return GuestContext(steps, "cpu")


@pytest.fixture
def knob(context: GuestContext) -> Iterator[NoAutocast]:
    made = NoAutocast()
    yield made
    made.revert(context)
    assert (torch.autocast.__enter__, torch.autocast.__exit__) == (ENTER, EXIT)
    assert not torch.is_autocast_enabled("cpu")


def on() -> torch.autocast:
    return torch.autocast("cpu", dtype=torch.bfloat16)


def dtype(model: nn.Module) -> torch.dtype:
    answer: torch.Tensor = model(torch.ones(2, 4))
    return answer.dtype


def test_a_block_of_each_step(model: nn.Module, knob: NoAutocast, context: GuestContext) -> None:
    knob.apply(True, context)
    assert knob.effect(True, context) is False, "nothing was seen to be on yet"
    region = on()  # Of torch 2.4, `__enter__` returns nothing.
    with region:
        assert dtype(model) is torch.float32
    assert region._enabled
    assert knob.effect(True, context) is True
    knob.revert(context)
    with on():
        assert dtype(model) is torch.bfloat16


def test_what_the_user_has_off_is_no_effect(model: nn.Module, knob: NoAutocast, context: GuestContext) -> None:
    knob.apply(True, context)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=False):
        assert dtype(model) is torch.float32
    assert knob.effect(True, context) is False


def test_a_decorated_function(model: nn.Module, knob: NoAutocast, context: GuestContext) -> None:
    forward = on()(model.forward)
    knob.apply(True, context)
    assert forward(torch.ones(2, 4)).dtype is torch.float32
    assert knob.effect(True, context) is True
    knob.revert(context)
    assert forward(torch.ones(2, 4)).dtype is torch.bfloat16


def test_a_block_around_the_whole_loop(model: nn.Module, knob: NoAutocast, context: GuestContext) -> None:
    with on():
        knob.apply(True, context)
        assert knob.effect(True, context) is True
        assert dtype(model) is torch.float32
        with torch.autocast("cpu", enabled=False):
            pass
        knob.before_step(context)
        assert dtype(model) is torch.float32
        knob.revert(context)
        assert dtype(model) is torch.bfloat16
    assert dtype(model) is torch.float32


def test_a_block_that_begins_in_the_window_and_outlives_it(
    model: nn.Module, knob: NoAutocast, context: GuestContext
) -> None:
    knob.apply(True, context)
    with on():
        assert dtype(model) is torch.float32
        knob.revert(context)
        assert dtype(model) is torch.bfloat16
    assert dtype(model) is torch.float32


def test_a_block_inside_another_that_is_open_at_the_end(
    model: nn.Module, knob: NoAutocast, context: GuestContext
) -> None:
    with on():
        knob.apply(True, context)
        with torch.autocast("cpu", enabled=False):
            knob.revert(context)
            assert dtype(model) is torch.float32
        assert dtype(model) is torch.bfloat16


def test_a_block_that_the_window_began_in_and_left(model: nn.Module, knob: NoAutocast, context: GuestContext) -> None:
    with on():
        knob.apply(True, context)
    assert dtype(model) is torch.float32
    with on():
        knob.revert(context)
        assert dtype(model) is torch.bfloat16
    assert dtype(model) is torch.float32


def test_other_threads_lose_it_for_the_step_alone(model: nn.Module, knob: NoAutocast, context: GuestContext) -> None:
    knob.apply(True, context)
    seen: list[torch.dtype] = []

    def work() -> None:
        with on():
            seen.append(dtype(model))

    for _ in range(2):
        other = threading.Thread(target=work)
        other.start()
        other.join()
        knob.revert(context)
    assert seen == [torch.float32, torch.bfloat16]


def test_a_compiled_model_is_left_alone(model: nn.Module, context: GuestContext) -> None:
    assert NoAutocast.obstacle(context.steps) == ""
    context.steps.roots = [torch.compile(model, backend="eager")]
    assert "compiled" in str(NoAutocast.obstacle(context.steps))
