"""Numbers next to 0 taken as 0: in every thread of torch's, for a window, and offered where they were seen."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from bottleneck_doctor.edits.call import call_change
from bottleneck_doctor.knobs import flush_denormal
from bottleneck_doctor.runtime.knobs import GuestContext
from bottleneck_doctor.runtime.knobs.flush_denormal import NAME, FlushDenormal, denormal_share
from bottleneck_doctor.runtime.loop.steps import Steps

SMALL = 1e-40


def able() -> bool:
    """Whether the processor has the mode; it is off afterwards."""
    has = bool(torch.set_flush_denormal(True))
    torch.set_flush_denormal(False)
    return has


pytestmark = pytest.mark.skipif(not able(), reason="this processor computes with denormal numbers only")


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    # So the threads are there before anything is switched.
    assert not flushed().any()
    yield
    torch.set_num_threads(before)
    assert not flushed().any()


VALUES = torch.full((1 << 20,), SMALL)
"""So many that every thread of torch's computes with some. Made here, where no thread takes them as 0."""


def flushed() -> torch.Tensor:
    """Which of them were taken as 0."""
    return VALUES * torch.ones(1) == 0


def test_every_thread_of_torch_takes_them_as_0_and_none_does_afterwards() -> None:
    knob, context = FlushDenormal(), GuestContext(Steps(), "cpu")
    torch.set_flush_denormal(True)
    alone = flushed()
    torch.set_flush_denormal(False)
    assert alone.any(), "the calling thread has it"
    assert not alone.all(), "torch sets it in the calling thread alone, or this test shows nothing"
    knob.apply(True, context)
    assert flushed().all()
    assert knob.effect(True, context) is True
    knob.revert(context)
    assert not flushed().any()
    knob.revert(context)


def test_a_program_that_switches_it_off_meanwhile_is_told() -> None:
    knob, context = FlushDenormal(), GuestContext(Steps(), "cpu")
    knob.apply(True, context)
    torch.set_flush_denormal(False)
    assert knob.effect(True, context) is False
    knob.before_step(context)
    assert FlushDenormal.stands() is True
    knob.revert(context)


@pytest.mark.parametrize(
    ("values", "share"),
    [
        (torch.full((8,), SMALL), 1.0),
        (torch.tensor([1.0, 0.0, -SMALL, 1e-30]), 0.25),
        (torch.full((4,), 1e-310, dtype=torch.float64), 1.0),
        (torch.full((4,), SMALL, dtype=torch.float64), 0.0),
        (torch.zeros(8), 0.0),
        (torch.empty(0), 0.0),
        (torch.ones(8, dtype=torch.int64), 0.0),
        (torch.full((8,), SMALL, dtype=torch.bfloat16), 0.0),
        (torch.full((4, 4), SMALL).t()[:, :2], 0.0),
        (torch.full((4, 4), SMALL).to_sparse(), 0.0),
        (torch.full((4,), SMALL, device="meta"), 0.0),
        (None, 0.0),
        ("words", 0.0),
    ],
)
def test_the_part_of_denormal_numbers(values: Any, share: float) -> None:
    assert denormal_share(values) == share


def test_large_tensors_are_sampled() -> None:
    values = torch.ones(1 << 20)
    values[: 1 << 18] = SMALL
    assert denormal_share(values) == pytest.approx(0.25, abs=0.01)


def facts(model: nn.Module, *, optimizer: Any = None, device: str = "cpu", steps: Steps | None = None) -> Any:
    steps = steps or Steps()
    steps.roots.append(model)
    if optimizer is not None:
        steps.optimizers.append(optimizer)
    return FlushDenormal.facts(steps, device)


def test_it_is_offered_where_such_numbers_were_seen() -> None:
    model = nn.Linear(64, 64)
    assert facts(model) == {"obstacle": "hardly any such number was seen in what the model computes with", "places": []}
    assert "on a device" in facts(model, device="cuda:0")["obstacle"]

    decayed = nn.Linear(64, 64)
    decayed.weight.data[:4] = SMALL
    assert facts(decayed) == {"obstacle": "", "places": ["the weights"]}

    model.weight.grad = torch.full((64, 64), SMALL)
    assert facts(model)["places"] == ["the gradients"]
    model.weight.grad = torch.ones(64, 64)
    optimizer = torch.optim.Adam(model.parameters())
    optimizer.step()
    assert facts(model, optimizer=optimizer)["obstacle"]
    optimizer.state[model.weight]["exp_avg"].fill_(SMALL)
    assert facts(model, optimizer=optimizer)["places"] == ["the state of the optimizer"]


def test_recurrent_layers_may_hide_them() -> None:
    assert facts(nn.Sequential(nn.Embedding(4, 4), nn.LSTM(4, 4))) == {"obstacle": "", "places": []}


def test_it_is_on_already_where_the_program_has_it() -> None:
    torch.set_flush_denormal(True)
    said, own = facts(nn.Linear(4, 4)), FlushDenormal.own()
    torch.set_flush_denormal(False)
    assert said["obstacle"].startswith("already on")
    assert own is True
    assert FlushDenormal.own() is None


def test_what_layers_pass_on_and_back_is_looked_at_until_the_loop_is_found(tmp_path: Path) -> None:
    steps = Steps()
    FlushDenormal.watch(steps)
    assert steps.callers.inputs is not None
    values = (torch.ones(64, requires_grad=True) * 1.0).requires_grad_()
    steps.callers.inputs((values, {"more": [torch.ones(4)]}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.save(values, tmp_path / "values.pt")  # Without a word of a hook that is lost.
    (values * SMALL).sum().backward()  # type: ignore[no-untyped-call]
    assert facts(nn.Linear(4, 4), steps=steps)["places"] == ["the gradients"]
    assert not vars(steps.callers)["inputs"]

    steps = Steps()
    FlushDenormal.watch(steps)
    FlushDenormal.batch_seen(steps, None, [torch.ones(4), {"rows": torch.full((4,), SMALL)}])
    assert steps.callers.inputs is not None
    steps.callers.inputs((torch.full((4,), SMALL),))
    assert facts(nn.Linear(4, 4), steps=steps)["places"] == ["the batches", "what the layers pass on"]
    FlushDenormal.batch_seen(steps, None, torch.full((4,), SMALL))


def test_what_goes_wrong_in_looking_ends_it() -> None:
    steps = Steps()
    steps.callers.install()
    try:
        told: list[Any] = []

        def look(inputs: Any) -> None:
            told.append(inputs)
            raise ValueError

        steps.callers.inputs = look
        model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
        model(torch.ones(4))
        model(torch.ones(4))
    finally:
        steps.callers.stop()
    assert len(told) == 1
    assert steps.callers.inputs is None


def test_its_edit_stands_at_the_top() -> None:
    source = "import torch\n\nmodel = torch.nn.Linear(4, 4)\n"
    code = flush_denormal.KNOB.edit.code(True, "cpu") if flush_denormal.KNOB.edit is not None else ""
    change = call_change(source, code or "")
    assert change is not None
    assert "+torch.set_flush_denormal(True)" in change.diff
    assert NAME == flush_denormal.NAME
    off = call_change(source.replace("\n\n", "\ntorch.set_flush_denormal(False)\n"), code or "")
    assert off is not None
    assert "-torch.set_flush_denormal(False)\n+torch.set_flush_denormal(True)" in off.diff
