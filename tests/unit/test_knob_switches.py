"""The knobs that switch off what is there for debugging: they hold in a window, and leave what the user had."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from bottleneck_doctor.runtime.knobs import GuestContext, kinds, own_settings
from bottleneck_doctor.runtime.loop.steps import Steps

NAMES = ("detect_anomaly", "deterministic_algorithms", "cudnn_deterministic")


def turn_all(on: bool) -> None:
    torch.autograd.set_detect_anomaly(on)
    torch.set_deterministic_debug_mode("warn" if on else "default")
    torch.backends.cudnn.deterministic = on


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    functions = torch.is_anomaly_enabled, torch.is_anomaly_check_nan_enabled, torch.set_anomaly_enabled
    yield
    turn_all(False)
    assert functions == (torch.is_anomaly_enabled, torch.is_anomaly_check_nan_enabled, torch.set_anomaly_enabled)


@pytest.fixture
def model() -> nn.Module:
    return nn.Linear(2, 1)


@pytest.fixture
def context(model: nn.Module) -> GuestContext:
    steps = Steps()
    steps.roots = [model]
    return GuestContext(steps, "cpu")


def state() -> list[Any]:
    return [
        torch.is_anomaly_enabled(),
        torch.is_anomaly_check_nan_enabled(),
        torch.get_deterministic_debug_mode(),
        torch.backends.cudnn.deterministic,
    ]


def test_what_is_on_is_told() -> None:
    assert not set(NAMES) & set(own_settings())
    turn_all(True)
    assert own_settings() == dict.fromkeys(NAMES, True)


@pytest.mark.parametrize("name", NAMES)
def test_off_in_the_window_and_as_it_was_behind_it(name: str, model: nn.Module, context: GuestContext) -> None:
    torch.autograd.set_detect_anomaly(True, check_nan=False)
    torch.set_deterministic_debug_mode("warn")
    torch.backends.cudnn.deterministic = True
    before = state()
    knob = kinds()[name]()
    knob.apply(False, context)
    assert not knob.is_on()
    model(torch.ones(1, 2))
    assert knob.effect(False, context) is True
    knob.timed_part_begins(context)
    assert not model._forward_pre_hooks, "nothing is looked at while steps are timed"
    knob.before_step(context)
    assert not knob.is_on()
    knob.revert(context)
    assert state() == before


@pytest.mark.parametrize("name", NAMES)
def test_a_window_that_fails_before_it_was_applied_leaves_everything(name: str, context: GuestContext) -> None:
    turn_all(True)
    before = state()
    kinds()[name]().revert(context)
    assert state() == before


@pytest.mark.parametrize("name", ["deterministic_algorithms", "cudnn_deterministic"])
def test_what_is_switched_on_again_in_the_step_did_not_take_effect(
    name: str, model: nn.Module, context: GuestContext
) -> None:
    turn_all(True)
    knob = kinds()[name]()
    knob.apply(False, context)
    knob.before_step(context)
    turn_all(True)
    model(torch.ones(1, 2))
    knob.before_step(context)
    assert not knob.is_on()
    assert knob.effect(False, context) is False
    knob.revert(context)


def test_what_is_switched_on_again_between_steps_is_off_in_them(model: nn.Module, context: GuestContext) -> None:
    turn_all(True)
    knob = kinds()["deterministic_algorithms"]()
    knob.apply(False, context)
    for _ in range(2):
        torch.use_deterministic_algorithms(True)
        knob.before_step(context)
        model(torch.ones(1, 2))
    assert knob.effect(False, context) is True
    knob.revert(context)


def test_a_with_inside_of_the_step(model: nn.Module, context: GuestContext) -> None:
    """Between two steps it is off already, and that is no reason to leave it on in them."""
    knob = kinds()["detect_anomaly"]()
    knob.apply(False, context)
    for _ in range(2):
        knob.before_step(context)
        with torch.autograd.set_detect_anomaly(True):
            output = model(torch.ones(1, 2))
            assert output.grad_fn is not None
            assert not output.grad_fn.metadata
    assert knob.effect(False, context) is True
    knob.revert(context)
    assert not torch.is_anomaly_enabled()


def test_a_with_around_a_step_or_an_epoch_finds_and_leaves_its_own_state(
    model: nn.Module, context: GuestContext
) -> None:
    knob = kinds()["detect_anomaly"]()
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        knob.apply(False, context)
        with torch.autograd.set_detect_anomaly(True):
            assert torch.is_anomaly_enabled(), "so the program is told"
            assert not knob.is_on(), "but it is off"
            model(torch.ones(1, 2)).backward()
        assert not torch.is_anomaly_check_nan_enabled()
    assert not torch.is_anomaly_enabled()
    with torch.autograd.set_detect_anomaly(True):
        assert knob.effect(False, context) is True
        knob.revert(context)
        assert torch.is_anomaly_enabled()
    assert not torch.is_anomaly_enabled()


def test_the_compiler_is_told_where_the_program_uses_it(context: GuestContext, monkeypatch: pytest.MonkeyPatch) -> None:
    config = SimpleNamespace(deterministic=True)
    monkeypatch.setitem(sys.modules, "torch._inductor.config", config)
    torch.set_deterministic_debug_mode("error")
    knob = kinds()["deterministic_algorithms"]()
    knob.apply(False, context)
    told = [config.deterministic]
    knob.revert(context)
    assert [*told, config.deterministic] == [False, True]
    assert torch.get_deterministic_debug_mode() == 2
