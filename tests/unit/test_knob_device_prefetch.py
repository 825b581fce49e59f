"""The knob that copies batches ahead: what the loop gets, in which order, what its moves return, and that nothing of it
is left. The device `meta` stands for one that computes: copies to it are made on any machine, without a stream."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from bottleneck_doctor.runtime.knobs import GuestContext, kinds
from bottleneck_doctor.runtime.knobs.device_prefetch import DevicePrefetch
from bottleneck_doctor.runtime.loop.steps import Steps


def batches(count: int) -> list[Any]:
    return [(torch.full((2,), float(each)), {"label": torch.tensor([each])}, f"name {each}") for each in range(count)]


def copied_where(tensor: torch.Tensor, knob: DevicePrefetch) -> bool:
    """Whether the knob has a copy of this tensor for the loop."""
    return id(tensor) in knob._there


@pytest.fixture
def applied() -> Iterator[Callable[..., Any]]:
    """Applies the knob to batches: the knob, and what gives the loop its batches."""
    before = {name: vars(torch.Tensor).get(name) for name in ("to", "cuda")}
    context = GuestContext(Steps(), "meta")
    knobs: list[DevicePrefetch] = []

    def apply(fetch: Callable[[], Any], value: bool = True) -> Any:
        knob = DevicePrefetch()
        knobs.append(knob)
        knob.apply(value, context)
        return knob, knob.fetching(value, fetch, context)

    yield apply
    for knob in knobs:
        knob.revert(context)
    assert {name: vars(torch.Tensor).get(name) for name in before} == before


def test_batches_come_in_their_order_each_asked_for_before_the_one_in_front_is_given(
    applied: Callable[..., Any],
) -> None:
    own = batches(3)
    asked: list[Any] = []

    def fetch() -> Any:
        if len(asked) == len(own):
            raise StopIteration
        asked.append(own[len(asked)])
        return asked[-1]

    _, following = applied(fetch)
    given = []
    for ahead in (2, 3, 3):
        given.append(following())
        assert len(asked) == ahead
    assert all(each is mine for each, mine in zip(given, own, strict=True))
    for _ in range(2):
        with pytest.raises(StopIteration):
            following()


def test_an_epoch_without_batches_is_over_at_once(applied: Callable[..., Any]) -> None:
    _, following = applied(lambda: next(iter(())))
    with pytest.raises(StopIteration):
        following()


def test_an_error_in_loading_is_raised(applied: Callable[..., Any]) -> None:
    def fetch() -> Any:
        raise KeyError("sample")

    _, following = applied(fetch)
    with pytest.raises(KeyError):
        following()


def test_a_move_returns_the_copy_and_all_else_has_the_batch_as_it_was_made(applied: Callable[..., Any]) -> None:
    source = iter(batches(3))
    knob, following = applied(lambda: next(source))
    inputs, labels, name = following()
    assert (inputs.device.type, labels["label"].device.type, name) == ("cpu", "cpu", "name 0")
    copy = knob._there[id(inputs)].copy
    assert inputs.to("meta") is copy
    assert inputs.to(torch.device("meta"), non_blocking=True) is not copy  # Nobody knows that both are one.
    assert labels["label"].to(device="meta", dtype=torch.float64).dtype == torch.float64
    assert knob.effect(True, GuestContext(Steps(), "meta")) is True
    assert knob._served == 2


@pytest.mark.parametrize("move", [lambda x: x.to(torch.float64), lambda x: x.to("cpu"), lambda x: x.to(torch.zeros(1))])
def test_what_moves_elsewhere_moves_there(applied: Callable[..., Any], move: Callable[[Any], Any]) -> None:
    source = iter(batches(2))
    knob, following = applied(lambda: next(source))
    inputs, *_ = following()
    assert move(inputs).device.type == "cpu"
    assert copied_where(inputs, knob)
    assert knob.effect(True, GuestContext(Steps(), "meta")) is False


def test_a_tensor_that_was_changed_since_is_moved_as_it_is(applied: Callable[..., Any]) -> None:
    source = iter(batches(2))
    knob, following = applied(lambda: next(source))
    inputs, *_ = following()
    inputs.add_(1)
    assert inputs.to("meta").device.type == "meta"
    assert knob._served == 0


def test_other_threads_move_for_themselves(applied: Callable[..., Any]) -> None:
    source = iter(batches(2))
    knob, following = applied(lambda: next(source))
    inputs, *_ = following()
    thread = threading.Thread(target=lambda: inputs.to("meta"))
    thread.start()
    thread.join()
    assert knob._served == 0
    assert copied_where(inputs, knob)


def test_a_wrong_call_fails_as_it_does_without_the_knob(applied: Callable[..., Any]) -> None:
    source = iter(batches(2))
    _, following = applied(lambda: next(source))
    inputs, *_ = following()
    with pytest.raises(TypeError):
        inputs.to(["meta"])


def test_off_is_as_written(applied: Callable[..., Any]) -> None:
    def fetch() -> Any:
        return 1

    knob, following = applied(fetch, value=False)
    assert following is fetch
    assert knob.effect(False, GuestContext(Steps(), "meta")) is None


def test_copies_that_do_not_wait_leave_it_its_moves() -> None:
    """`non_blocking`, which may be tried with it, puts its own `to` and `cuda` on top."""
    context = GuestContext(Steps(), "meta")
    context.steps.noted["non_blocking"] = {(__file__, 1)}
    tensor = torch.ones(2)
    both = {name: kinds()[name]() for name in ("device_prefetch", "non_blocking")}
    before = vars(torch.Tensor).get("to")
    for knob in both.values():
        knob.apply(True, context)
    try:
        following = both["device_prefetch"].fetching(True, iter([tensor]).__next__, context)
        assert following().to("meta").device.type == "meta"
        assert both["device_prefetch"].effect(True, context) is True
    finally:
        for knob in reversed(both.values()):
            knob.revert(context)
    assert vars(torch.Tensor).get("to") is before
