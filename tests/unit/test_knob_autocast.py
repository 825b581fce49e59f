"""The autocast knob leaves nothing on a model that is copied or compiled while it holds."""

from __future__ import annotations

import copy
import pickle
import threading
import warnings
from collections.abc import Iterator

import pytest
import torch
from torch import nn

from bottleneck_doctor.runtime.knobs import GuestContext
from bottleneck_doctor.runtime.knobs.autocast import Autocast
from bottleneck_doctor.runtime.loop.steps import Steps


@pytest.fixture
def model() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 4))


@pytest.fixture
def applied(model: nn.Module) -> Iterator[Autocast]:
    steps = Steps()
    steps.roots = [model]
    context = GuestContext(steps, "cpu")
    knob = Autocast()
    yield knob
    knob.revert(context)
    assert dtype(model) is torch.float32


def apply(knob: Autocast, model: nn.Module) -> None:
    steps = Steps()
    steps.roots = [model]
    knob.apply("bfloat16", GuestContext(steps, "cpu"))


def dtype(model: nn.Module) -> torch.dtype:
    answer: torch.Tensor = model(torch.ones(2, 4))
    return answer.dtype


def test_a_copy_of_the_model_computes_as_written(model: nn.Module, applied: Autocast) -> None:
    apply(applied, model)
    copied, pickled = copy.deepcopy(model), pickle.dumps(model)
    assert b"bottleneck_doctor" not in pickled
    assert dtype(model) is torch.bfloat16
    applied._leave()
    for other in (copied, pickle.loads(pickled)):
        assert dtype(other) is torch.float32
    assert not torch.is_autocast_enabled("cpu")


def test_a_model_that_was_compiled_in_place(model: nn.Module, applied: Autocast) -> None:
    """Hooks would run inside of the graph, and have it compiled anew."""
    model.compile(backend="eager")
    assert dtype(model) is torch.float32
    apply(applied, model)
    assert not model._forward_pre_hooks
    assert dtype(model) is torch.bfloat16
    applied._leave()
    assert dtype(copy.deepcopy(model)) is torch.float32


def test_a_model_with_a_scripted_part() -> None:
    """MACE has several: their parameters lie in no dictionary of Python's."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # torch's, of scripting: programs have such parts all the same.
        scripted = torch.jit.script(nn.Linear(4, 4))
    model = nn.Sequential(nn.Linear(4, 4), scripted)
    knob, steps = Autocast(), Steps()
    steps.roots = [model]
    context = GuestContext(steps, "cpu")
    knob.apply("bfloat16", context)
    try:
        assert dtype(model) is torch.bfloat16
        assert knob.effect("bfloat16", context)
    finally:
        knob.revert(context)
    assert dtype(model) is torch.float32


def test_a_thread_leaves_what_it_entered_though_the_window_ends_in_another(model: nn.Module) -> None:
    """Batches may be asked for in a thread of their own, while a forward pass is under way in the main one."""
    steps = Steps()
    steps.roots = [model]
    context = GuestContext(steps, "cpu")
    knob = Autocast()
    knob.apply("bfloat16", context)
    assert dtype(model) is torch.bfloat16
    for work in (lambda: knob.before_step(context), lambda: knob.revert(context)):
        other = threading.Thread(target=work)
        other.start()
        other.join()
        assert torch.is_autocast_enabled("cpu"), "it is this thread's to leave"
    assert steps.on_backward is not None
    steps.on_backward()
    assert not torch.is_autocast_enabled("cpu")
    # Or before the next window's own.
    for _ in range(2):
        knob = Autocast()
        knob.apply("bfloat16", context)
        model(torch.ones(2, 4))
        other = threading.Thread(target=lambda each=knob: each.revert(context))
        other.start()
        other.join()
    steps.on_backward()
    assert not torch.is_autocast_enabled("cpu")


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cells = nn.LSTM(4, 4)

    def forward(self, x: torch.Tensor, *, state: tuple[torch.Tensor, torch.Tensor]) -> tuple[torch.Tensor, object]:
        out, after = self.cells(x, state)
        return out, after


def test_what_a_loop_carries_from_step_to_step_is_of_the_model_s_type_behind_a_window() -> None:
    """The state of an LSTM came out of autocast in bfloat16, and the next step as written failed on it."""
    model = Recurrent()
    steps = Steps()
    steps.roots = [model]
    context = GuestContext(steps, "cpu")
    x = torch.ones(2, 3, 4)
    state = torch.zeros(1, 3, 4), torch.zeros(1, 3, 4)
    try:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            model(x, state=state)
    except RuntimeError:
        pytest.skip("this processor has no LSTM in bfloat16")
    knob = Autocast()
    knob.apply("bfloat16", context)
    _, carried = model(x, state=state)
    knob.before_step(context)
    knob.revert(context)
    carried = tuple(each.detach() for each in carried)
    assert torch.bfloat16 in {each.dtype for each in carried}
    with torch.no_grad():
        model(x, state=state)  # An evaluation comes between.
    out, _ = model(x, state=carried)
    assert out.dtype is torch.float32
    assert not model._forward_pre_hooks, "nothing stays behind"


class OwnLayer(nn.Module):
    """As graph networks have it: a product, which autocast makes in its type, and a bias in the model's."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(4, 4)), nn.Parameter(torch.ones(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.mm(x, self.weight) + self.bias


class InFullPrecision(nn.Module):
    """A part that the program keeps out of autocast."""

    def __init__(self, inside: nn.Module) -> None:
        super().__init__()
        self.inside = inside

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", enabled=False):
            out: torch.Tensor = self.inside(x.float())
        return out


@pytest.mark.parametrize(
    ("parts", "effect"),
    [
        ([nn.Linear(4, 4)], True),
        ([OwnLayer()], None),
        ([nn.Linear(4, 4), OwnLayer()], True),
        ([InFullPrecision(nn.Linear(4, 4))], False),
        ([InFullPrecision(nn.Linear(4, 4)), OwnLayer()], False),
    ],
)
def test_only_torch_s_own_layers_show_that_autocast_does_nothing(parts: list[nn.Module], effect: bool | None) -> None:
    model = nn.Sequential(*parts)
    steps = Steps()
    steps.roots = [model]
    context = GuestContext(steps, "cpu")
    knob = Autocast()
    knob.apply("bfloat16", context)
    try:
        assert dtype(model) is (torch.float32 if type(parts[-1]) is not nn.Linear else torch.bfloat16)
        assert knob.effect("bfloat16", context) is effect
    finally:
        knob.revert(context)


def test_it_is_told_where_bfloat16_has_no_fast_kernels() -> None:
    fast = torch.ops.mkldnn._is_mkldnn_bf16_supported()
    assert Autocast.facts(Steps(), "cpu") == (None if fast else {"slow_bfloat16": True})
    assert Autocast.facts(Steps(), "cuda:0") is None
