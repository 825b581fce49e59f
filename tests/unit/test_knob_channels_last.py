"""The knob that lays convolutions out with channels last: the same numbers, and every stride as it was behind it."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from bottleneck_doctor.runtime.knobs import GuestContext, _layout
from bottleneck_doctor.runtime.knobs.channels_last import ChannelsLast
from bottleneck_doctor.runtime.knobs.contiguous_format import ContiguousFormat
from bottleneck_doctor.runtime.loop.steps import Steps

Optimizer = Callable[[Any], torch.optim.Optimizer]

OPTIMIZERS: dict[str, Optimizer] = {
    "momentum": lambda weights: torch.optim.SGD(weights, lr=0.05, momentum=0.9),
    "Adam": lambda weights: torch.optim.Adam(weights, lr=0.01, amsgrad=True),
    "fused": lambda weights: torch.optim.AdamW(weights, lr=0.01, fused=True),
    "one by one": lambda weights: torch.optim.Adam(weights, lr=0.01, foreach=False),
    "groups": lambda weights: torch.optim.SGD([{"params": [each]} for each in weights], lr=0.05, momentum=0.9),
}


@pytest.fixture(autouse=True)
def _nothing_is_compiled() -> None:
    """Whatever other tests have compiled in this process."""
    torch._dynamo.utils.counters.clear()


class Net(nn.Module):
    """Kernels of 3 x 3, of one pixel, and one a channel, and what is added to pictures."""

    position: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.Conv2d(8, 8, 1),
            nn.Conv2d(8, 8, 3, padding=1, groups=8),
            nn.AdaptiveAvgPool2d(2),
        )
        self.head = nn.Linear(32, 5)
        self.register_buffer("position", torch.rand(1, 3, 12, 12))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.head(self.layers(images + self.position).flatten(1))
        return out


def trained(
    optimizer: Optimizer = OPTIMIZERS["momentum"],
    steps: int = 2,
    layout: torch.memory_format = torch.contiguous_format,
) -> tuple[Net, GuestContext]:
    """A model after a few steps, and the loop that it is in."""
    torch.manual_seed(0)
    model = Net().to(memory_format=layout)
    loop = Steps()
    loop.callers.roots.append(model)
    loop.optimizers.append(optimizer(list(model.parameters())))
    train(model, loop, steps)
    return model, GuestContext(loop, "cpu")


def train(model: nn.Module, loop: Steps, steps: int) -> None:
    for _ in range(steps):
        for each in loop.optimizers:
            each.zero_grad()
        model(torch.rand(4, 3, 12, 12)).square().mean().backward()
        for each in loop.optimizers:
            each.step()


def held(model: nn.Module, loop: Steps) -> dict[str, torch.Tensor]:
    """Every tensor of the model, its gradients and its optimizers, by what it is."""
    found = dict(model.named_parameters()) | dict(model.named_buffers())
    found |= {f"{name}.grad": each.grad for name, each in model.named_parameters() if each.grad is not None}
    for optimizer in loop.optimizers:
        for number, state in enumerate(optimizer.state.values()):
            found |= {f"{number}.{key}": each for key, each in state.items() if isinstance(each, torch.Tensor)}
    return found


def picture(tensors: dict[str, torch.Tensor]) -> dict[str, tuple[Any, ...]]:
    """Where and how each of them lies, and what it holds."""
    return {
        name: (id(each), each.data_ptr(), each.stride(), each.detach().contiguous().view(-1).tolist())
        for name, each in tensors.items()
    }


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_nothing_is_left_of_it_where_nothing_was_trained(name: str) -> None:
    model, context = trained(OPTIMIZERS[name])
    before = picture(held(model, context.steps))
    knob = ChannelsLast()
    knob.apply(True, context)
    for each in held(model, context.steps).values():
        assert each.dim() != 4 or each.stride() == _layout.channels_last(each.shape)
    during = picture(held(model, context.steps))
    assert {name: values[3] for name, values in during.items()} == {name: values[3] for name, values in before.items()}
    knob.revert(context)
    assert picture(held(model, context.steps)) == before
    assert not model._forward_pre_hooks
    assert not any(each._forward_hooks for each in model.modules())


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_strides_and_places_are_as_they_were_behind_steps_under_it(name: str) -> None:
    model, context = trained(OPTIMIZERS[name])
    before = {each: values[:3] for each, values in picture(held(model, context.steps)).items() if ".grad" not in each}
    strides = {each: tensor.stride() for each, tensor in held(model, context.steps).items()}
    knob = ChannelsLast()
    knob.apply(True, context)
    train(model, context.steps, 3)
    under = {each: values[3] for each, values in picture(held(model, context.steps)).items()}
    knob.revert(context)
    behind = picture(held(model, context.steps))
    assert {each: values[3] for each, values in behind.items()} == under, "to the last bit what was learned"
    assert {each: tensor.stride() for each, tensor in held(model, context.steps).items()} == strides
    assert {each: values[:3] for each, values in behind.items() if each in before} == before
    train(model, context.steps, 1)


@pytest.mark.parametrize(
    ("kind", "layout"), [(ChannelsLast, torch.contiguous_format), (ContiguousFormat, torch.channels_last)]
)
def test_it_learns_the_same_but_for_rounding(
    kind: type[ChannelsLast] | type[ContiguousFormat], layout: torch.memory_format
) -> None:
    weights = []
    for applied in (False, True):
        model, context = trained(layout=layout)
        knob = kind()
        if applied:
            knob.apply(True, context)
        torch.manual_seed(1)
        train(model, context.steps, 5)
        knob.revert(context)
        weights.append(torch.cat([each.detach().flatten() for each in model.parameters()]))
    torch.testing.assert_close(*weights, rtol=1e-3, atol=1e-5)


def test_what_the_optimizer_keeps_lies_as_its_weights_so_that_a_step_is_none_over_two_layouts() -> None:
    model, context = trained()
    knob = ChannelsLast()
    knob.apply(True, context)
    for steps in (0, 1):
        train(model, context.steps, steps)
        for weight in model.parameters():
            (buffer,) = context.steps.optimizers[0].state[weight].values()
            assert weight.grad is not None
            assert weight.stride() == buffer.stride() == weight.grad.stride()
    knob.revert(context)


def test_what_the_optimizer_begins_to_keep_in_the_window() -> None:
    model, context = trained(steps=0)
    knob = ChannelsLast()
    knob.apply(True, context)
    train(model, context.steps, 1)
    knob.revert(context)
    for each in held(model, context.steps).values():
        assert each.is_contiguous()


def test_effect_is_what_convolutions_put_out() -> None:
    model, context = trained()
    knob = ChannelsLast()
    knob.apply(True, context)
    assert knob.effect(True, context) is False, "nothing was computed yet"
    train(model, context.steps, 1)
    assert knob.effect(True, context) is True
    knob.timed_part_begins(context)
    assert not any(each._forward_hooks for each in model.modules()), "nothing is looked at while steps are timed"
    with torch.no_grad():
        weight = model.layers[0].weight
        assert isinstance(weight, nn.Parameter)
        weight.data = weight.data.contiguous()  # As a program may that puts averaged weights in their place.
    assert knob.effect(True, context) is False
    knob.revert(context)
    assert weight.is_contiguous()


def test_pictures_are_laid_out_wherever_they_stand_among_the_arguments() -> None:
    seen: list[Any] = []

    class Asking(Net):
        def forward(self, images: Any, **more: Any) -> torch.Tensor:
            seen.append((images, more))
            return super().forward(images["left"][0])

    model, context = Asking(), GuestContext(Steps(), "cpu")
    context.steps.callers.roots.append(model)
    knob = ChannelsLast()
    knob.apply(True, context)
    given = {"left": (torch.rand(2, 3, 12, 12), "name")}
    model(given, right=[torch.rand(2, 3, 12, 12)], mask=torch.rand(2, 12))
    images, more = seen.pop()
    for each in (images["left"][0], more["right"][0]):
        assert each.is_contiguous(memory_format=torch.channels_last)
    assert images["left"][1] == "name"
    assert given["left"][0].is_contiguous(), "the program's own are its own"
    with torch.no_grad():
        model(given)
    assert seen.pop()[0]["left"][0] is given["left"][0]
    knob.revert(context)


def test_copies_of_the_model_carry_nothing_on() -> None:
    model, context = trained()
    knob = ChannelsLast()
    knob.apply(True, context)
    copied, pickled = copy.deepcopy(model), pickle.dumps(model)
    assert b"bottleneck_doctor" not in pickled
    kept = {name: each.clone() for name, each in model.state_dict().items()}
    knob.revert(context)
    images = torch.rand(2, 3, 12, 12)
    for other in (copied, pickle.loads(pickled)):
        torch.testing.assert_close(other(images), model(images))
    model.load_state_dict(kept)
    for each in model.parameters():
        assert each.is_contiguous()


def test_views_that_the_program_holds_show_what_was_learned() -> None:
    model, context = trained()
    weights = [each.data for each in model.parameters()]
    knob = ChannelsLast()
    knob.apply(True, context)
    train(model, context.steps, 2)
    knob.revert(context)
    for view, weight in zip(weights, model.parameters(), strict=True):
        assert torch.equal(view, weight)
        assert view.data_ptr() == weight.data_ptr()


def test_weights_that_the_program_changes_the_type_of_stay_changed() -> None:
    model, context = trained(steps=0)
    knob = ChannelsLast()
    knob.apply(True, context)
    model.double()
    knob.revert(context)
    assert all(each.dtype is torch.float64 for each in model.parameters())


def test_weights_and_modules_that_are_shared_are_moved_once() -> None:
    model, context = trained()
    context.steps.callers.roots.append(nn.Sequential(model.layers[0]))
    before = picture(held(model, context.steps))
    knob = ChannelsLast()
    knob.apply(True, context)
    knob.revert(context)
    assert picture(held(model, context.steps)) == before


# -- where it applies --------------------------------------------------------------------------------------------------


def facts(*modules: nn.Module, optimizer: Optimizer = OPTIMIZERS["momentum"]) -> dict[str, Any]:
    steps = Steps()
    steps.callers.roots.extend(modules)
    steps.optimizers.append(optimizer([each for module in modules for each in module.parameters()]))
    return ChannelsLast.facts(steps, "cpu")


class Task(Net):
    """As timm's: it takes a device or a type, and fails with a memory format."""

    def to(self, *args: Any, **kwargs: Any) -> Any:
        torch.empty(0).to(*args, **kwargs)
        return super().to(*args, **kwargs)


def test_what_is_told_of_a_model() -> None:
    told = facts(Net())
    assert told == {"weights": 3, "contiguous": 1, "channels_last": 0, "obstacle": ""}
    laid_out: nn.Module = Net().to(memory_format=torch.channels_last)
    assert facts(laid_out) == {"weights": 3, "contiguous": 0, "channels_last": 1, "obstacle": ""}
    assert facts(nn.Linear(2, 2))["weights"] == 0
    assert facts(Task())["own_to"]
    assert "several" not in facts(Net(), nn.Linear(2, 2))
    assert facts(Net(), Net())["several"]


class Padded:
    """Pictures of several sizes, padded to the largest, with a `to` that knows devices only."""

    tensors = torch.ones(2, 3, 4, 4)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ((torch.ones(2, 3, 4),), {"no_pictures": True}),
        ((torch.ones(2, 3, 4, 4),), {}),
        ((torch.ones(2, 3, 4, 4), torch.ones(2)), {}),
        ((torch.ones(2), torch.ones(2, 3, 4, 4)), {"no_pictures": True}),
        ((Padded(),), {"no_pictures": True}),
        ((), {}),
    ],
)
def test_what_the_model_is_given_decides_what_the_user_writes(given: tuple[Any, ...], told: dict[str, Any]) -> None:
    steps, model = Steps(), Net()
    steps.callers.roots.append(model)
    steps.callers._module_called(model, given)
    for kind in (ChannelsLast, ContiguousFormat):
        facts = kind.facts(steps, "cpu")
        assert {name: value for name, value in facts.items() if name == "no_pictures"} == told


def test_models_that_are_left_alone() -> None:
    compiled = Net()
    compiled.compile(backend="eager")
    wrapped = nn.Sequential()
    wrapped.append(torch.compile(Net(), backend="eager"))  # type: ignore[arg-type]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scripted = torch.jit.script(nn.Sequential(nn.Conv2d(3, 3, 3)))
    shared = Net()
    shared.share_memory()
    block = Net()
    kernel = torch.zeros(2 * 8 * 3 * 3 * 3)
    block.layers[0].weight = nn.Parameter(kernel[: kernel.numel() // 2].view(8, 3, 3, 3))
    tied = nn.Sequential(nn.Conv2d(3, 3, 3), nn.Conv2d(3, 3, 3))
    tied[1].weight.data = tied[0].weight.data

    class DistributedDataParallel(nn.Sequential):
        """Called as torch's own, which needs a process group."""

    for model, reason in (
        (compiled, "compiled"),
        (wrapped, "compiled"),
        (scripted, "TorchScript"),
        (DistributedDataParallel(Net()), "several processes"),
        (nn.Sequential(Net(), nn.Conv3d(3, 3, 3)), "3-D"),
        (shared, "shared with other processes"),
        (block, "share a block of memory"),
        (tied, "share a block of memory"),
    ):
        told = facts(model)
        assert reason in told["obstacle"]
        steps = Steps()
        steps.callers.roots.append(model)
        before = [each.stride() for each in model.parameters()]
        knob = ChannelsLast()
        with pytest.raises(RuntimeError, match=reason):
            knob.apply(True, GuestContext(steps, "cpu"))
        knob.revert(GuestContext(steps, "cpu"))
        assert [each.stride() for each in model.parameters()] == before


def test_a_compiled_function_relies_on_strides_too() -> None:
    """It calls the model, which itself is not compiled."""
    model = Net()
    assert facts(model)["obstacle"] == ""
    torch.compile(lambda images: model(images), backend="eager")(torch.rand(2, 3, 12, 12))
    assert "compiled" in facts(model)["obstacle"]


def test_optimizers_that_take_one_layout_only() -> None:
    assert "LBFGS" in facts(Net(), optimizer=lambda weights: torch.optim.LBFGS(weights))["obstacle"]
    _, context = trained()
    for state in context.steps.optimizers[0].state.values():
        state["packed"] = torch.zeros_like(state["momentum_buffer"], dtype=torch.uint8)
    assert "packs its state" in _layout.obstacle(context.steps)


def test_a_window_that_fails_amid_it_leaves_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    model, context = trained()
    before = picture(held(model, context.steps))
    made: list[int] = []
    in_order = _layout.in_order

    def short_of_memory(tensor: torch.Tensor, strides: tuple[int, ...]) -> torch.Tensor:
        made.append(1)
        if len(made) == 4:
            raise RuntimeError("out of memory")
        return in_order(tensor, strides)

    monkeypatch.setattr(_layout, "in_order", short_of_memory)
    knob = ChannelsLast()
    with pytest.raises(RuntimeError, match="out of memory"):
        knob.apply(True, context)
    knob.revert(context)
    assert picture(held(model, context.steps)) == before


# -- the other way round -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_what_the_user_has_in_channels_last_is_contiguous_in_the_window_alone(name: str) -> None:
    model, context = trained(OPTIMIZERS[name], layout=torch.channels_last)
    before = picture(held(model, context.steps))
    knob = ContiguousFormat()
    assert knob.obstacle(context.steps) == ""
    knob.apply(True, context)
    assert all(each.is_contiguous() for each in held(model, context.steps).values())
    knob.revert(context)
    assert picture(held(model, context.steps)) == before
    assert not model._forward_pre_hooks
    knob.apply(True, context)
    assert knob.effect(True, context) is False, "nothing was computed yet"
    train(model, context.steps, 2)
    assert knob.effect(True, context) is True
    knob.revert(context)
    strides = {each: tensor.stride() for each, tensor in held(model, context.steps).items() if ".grad" not in each}
    assert strides == {each: values[2] for each, values in before.items() if ".grad" not in each}


def test_a_model_that_is_contiguous_has_no_layout_to_leave_out() -> None:
    _, context = trained()
    assert ContiguousFormat.obstacle(context.steps) == "no weights of convolutions are in channels_last"
    with pytest.raises(RuntimeError, match="no weights"):
        ContiguousFormat().apply(True, context)
    assert ContiguousFormat.obstacle(Steps()) == "no weights of convolutions are in channels_last"
