"""The knobs that change how optimizers step: what they leave alone, what becomes of the numbers, what they leave."""

from __future__ import annotations

import copy
import io
import pickle
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_pre_hook

from bottleneck_doctor.runtime.knobs import GuestContext, Knob, _optimizers, kinds, obstacles
from bottleneck_doctor.runtime.loop.steps import Steps

NAMES = ("fused_optimizer", "foreach_optimizer", "merged_groups")
IMPLEMENTATIONS = ({"foreach": False}, {"foreach": True}, {"fused": True})
Make = Callable[[Any], torch.optim.Optimizer]


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.layers = nn.ModuleList(nn.Linear(6, 6) for _ in range(4))
        self.late = nn.Linear(6, 1)
        self.uses_late = True

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            rows = torch.tanh(layer(rows))
        made: torch.Tensor = self.late(rows) if self.uses_late else rows
        return made


def apart(model: nn.Module) -> list[dict[str, Any]]:
    """A group for each tensor; vectors are not decayed."""
    return [{"params": [each], "weight_decay": 0.1 if each.ndim > 1 else 0.0} for each in model.parameters()]


class Training:
    """A model and its optimizer, stepped by numbers of their own."""

    def __init__(self, make: Make) -> None:
        self.model: Any = Net()
        self.optimizer: Any = make(apart(self.model))
        self.numbers = torch.Generator().manual_seed(5)
        self.made = 0

    def loss(self) -> Any:
        return self.model(torch.randn(5, 6, generator=self.numbers)).square().mean()

    def steps(self, count: int) -> Training:
        for _ in range(count):
            self.optimizer.zero_grad()
            self.loss().backward()
            self.optimizer.step()
            self.made += 1
        return self

    def context(self) -> GuestContext:
        steps = Steps()
        steps.roots = [self.model]
        steps.optimizers = [self.optimizer]
        return GuestContext(steps, "cpu")

    def values(self) -> list[torch.Tensor]:
        """Parameters, and what the optimizer keeps of them."""
        kept = [value for state in self.optimizer.state.values() for value in state.values()]
        return [*self.model.parameters(), *(value for value in kept if isinstance(value, torch.Tensor))]


def same(one: Training, other: Training) -> bool:
    pairs = list(zip(one.values(), other.values(), strict=True))
    return all(left.dtype is right.dtype and torch.equal(left, right) for left, right in pairs)


def near(one: Training, other: Training) -> None:
    for left, right in zip(one.values(), other.values(), strict=True):
        torch.testing.assert_close(left, right, rtol=2e-5, atol=2e-6)


def adamw(**options: Any) -> Make:
    return lambda parameters: torch.optim.AdamW(parameters, lr=1e-2, **options)


def sgd(**options: Any) -> Make:
    return lambda parameters: torch.optim.SGD(parameters, lr=1e-2, momentum=0.9, **options)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, Any, Any]]:
    """What AdamW's functional step was called with: how many tensors, `fused` and `foreach`."""
    calls: list[tuple[int, Any, Any]] = []
    name = "adam" if issubclass(torch.optim.AdamW, torch.optim.Adam) else "adamw"
    module = sys.modules[f"torch.optim.{name}"]
    original = getattr(module, name)

    def noted(params: Any, *args: Any, **kwargs: Any) -> Any:
        calls.append((len(params), kwargs["fused"], kwargs["foreach"]))
        return original(params, *args, **kwargs)

    monkeypatch.setattr(module, name, noted)
    return calls


def applied(name: str, training: Training) -> tuple[Knob, GuestContext]:
    knob, context = kinds()[name](), training.context()
    knob.apply(True, context)
    return knob, context


# -- merged groups -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", IMPLEMENTATIONS, ids=str)
@pytest.mark.parametrize("make", [adamw, sgd])
def test_weights_and_state_are_the_same_bit_by_bit_with_merged_groups(make: Any, options: dict[str, bool]) -> None:
    """200 steps with windows in them, a schedule in each step, and a group that is treated differently half-way."""
    merged, plain = Training(make(**options)), Training(make(**options))
    for each in (merged, plain):
        schedule = torch.optim.lr_scheduler.LambdaLR(each.optimizer, lambda step: 0.99**step)
        knob, context = kinds()["merged_groups"](), each.context()
        for step in range(200):
            if each is merged and step in (20, 120):
                knob.apply(True, context)
            if step == 60:
                each.optimizer.param_groups[2]["initial_lr"] = 5e-3
                schedule.base_lrs[2] = 5e-3
            each.steps(1)
            schedule.step()
            if each is merged and step in (100, 180):
                assert knob.effect(True, context) is True
                knob.revert(context)
                knob = kinds()["merged_groups"]()
    assert same(merged, plain)
    assert merged.optimizer.state_dict()["param_groups"] == plain.optimizer.state_dict()["param_groups"]


def test_groups_are_merged_in_the_step_and_nowhere_else(counted: list[tuple[int, Any, Any]]) -> None:
    training = Training(adamw())
    groups = list(training.optimizer.param_groups)
    seen: list[int] = []
    training.optimizer.register_step_pre_hook(lambda optimizer, args, kwargs: seen.append(len(args[0].param_groups)))
    training.optimizer.register_step_post_hook(lambda optimizer, *_: seen.append(len(optimizer.param_groups)))
    training.steps(1)
    assert [count for count, *_ in counted] == [1] * 10
    knob, context = applied("merged_groups", training)
    assert knob.effect(True, context) is None, "no step yet"
    counted.clear()
    training.steps(1)
    assert [count for count, *_ in counted] == [5, 5]
    assert set(seen) == {10}, "the user's hooks see their groups"
    assert all(one is other for one, other in zip(training.optimizer.param_groups, groups, strict=True))
    knob.revert(context)
    counted.clear()
    training.steps(1)
    assert len(counted) == 10


def test_hyperparameters_are_compared_in_each_step(counted: list[tuple[int, Any, Any]]) -> None:
    training = Training(adamw()).steps(1)
    knob, context = applied("merged_groups", training)
    training.optimizer.param_groups[0]["lr"] = 0.5
    counted.clear()
    training.steps(1)
    assert [count for count, *_ in counted] == [1, 5, 4]
    training.optimizer.param_groups[0]["lr"] = 1e-2
    training.optimizer.param_groups[1]["mine"] = "a word that the optimizer doesn't know"
    counted.clear()
    training.steps(1)
    assert [count for count, *_ in counted] == [5, 5]
    for number, group in enumerate(training.optimizer.param_groups):
        group["lr"] = 0.01 + 0.001 * number
    training.steps(1)
    assert knob.effect(True, context) is False
    knob.revert(context)


def test_a_closure_that_changes_hyperparameters_is_heeded() -> None:
    merged, plain = Training(adamw()).steps(2), Training(adamw()).steps(2)
    _knob, _ = applied("merged_groups", merged)
    for each in (merged, plain):

        def closure(training: Training = each) -> Any:
            training.optimizer.zero_grad()
            loss = training.loss()
            loss.backward()
            training.optimizer.param_groups[4]["lr"] = 0.3
            return loss

        returned = each.optimizer.step(closure)
        assert returned is not None
    assert same(merged, plain)


def test_a_step_that_raises_leaves_everything(counted: list[tuple[int, Any, Any]]) -> None:
    training = Training(adamw()).steps(1)
    before = vars(training.optimizer).keys(), list(training.optimizer.param_groups)
    applied("merged_groups", training)
    applied("fused_optimizer", training)

    def closure() -> torch.Tensor:
        raise KeyError("theirs")

    with pytest.raises(KeyError, match="theirs"):
        training.optimizer.step(closure)
    assert (vars(training.optimizer).keys(), training.optimizer.param_groups) == before


def test_momentum_that_begins_late_is_not_merged_with_what_has_begun() -> None:
    """A fused step begins the momentum of all of its parameters, or of none of them."""
    merged, plain = Training(sgd(fused=True)), Training(sgd(fused=True))
    for each in (merged, plain):
        each.model.uses_late = False
        each.steps(2)
    knob, context = applied("merged_groups", merged)
    for each in (merged, plain):
        each.steps(2)
        each.model.uses_late = True
        each.steps(3)
    assert knob.effect(True, context) is True
    assert same(merged, plain)


@pytest.mark.filterwarnings("ignore:Sparse invariant checks")
def test_sparse_gradients_stay_in_a_group_of_their_own() -> None:
    def training() -> tuple[Any, torch.optim.Optimizer]:
        torch.manual_seed(0)
        model = nn.ModuleList([nn.Embedding(9, 4, sparse=True), nn.Linear(4, 4, bias=False)])
        return model, torch.optim.Adagrad([{"params": [each]} for each in model.parameters()], lr=0.1, foreach=True)

    results = []
    for with_knob in (False, True):
        model, optimizer = training()
        steps = Steps()
        steps.roots, steps.optimizers = [model], [optimizer]
        if with_knob:
            kinds()["merged_groups"]().apply(True, GuestContext(steps, "cpu"))
        for number in range(20):
            optimizer.zero_grad()
            model[1](model[0](torch.tensor([number % 9, 3]))).square().sum().backward()
            optimizer.step()
        results.append(list(model.parameters()))
    assert all(torch.equal(one, other) for one, other in zip(*results, strict=True))


# -- fused and foreach -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "flag"), [("fused_optimizer", 1), ("foreach_optimizer", 2)])
@pytest.mark.parametrize("options", [{}, {"amsgrad": True}, {"maximize": True}], ids=str)
def test_another_implementation_in_the_window_alone(
    name: str, flag: int, options: dict[str, bool], counted: list[tuple[int, Any, Any]]
) -> None:
    other, plain = Training(adamw(**options)).steps(3), Training(adamw(**options)).steps(3)
    before = copy.deepcopy(other.optimizer.state_dict()["param_groups"])
    counts = [state["step"] for state in other.optimizer.state.values()]
    knob, context = applied(name, other)
    assert knob.effect(True, context) is None
    counted.clear()
    other.steps(5)
    assert all(call[flag] is True and call[3 - flag] is False for call in counted)
    assert len(counted) == 50
    assert knob.effect(True, context) is True
    assert other.optimizer.state_dict()["param_groups"] == before, "also in the window"
    knob.revert(context)
    assert [state["step"] for state in other.optimizer.state.values()] == counts
    assert all(one is two for one, two in zip(counts, (s["step"] for s in other.optimizer.state.values()), strict=True))
    counted.clear()
    other.steps(2)
    assert not any(call[flag] for call in counted)
    near(other, plain.steps(7))


@pytest.mark.parametrize(
    "make", [sgd(), sgd(nesterov=True), lambda p: torch.optim.Adagrad(p), lambda p: torch.optim.Adam(p)]
)
@pytest.mark.parametrize("name", ["fused_optimizer", "foreach_optimizer"])
def test_every_class_learns_what_it_learned(make: Make, name: str) -> None:
    other, plain = Training(make).steps(2), Training(make).steps(2)
    knob, context = applied(name, other)
    other.steps(20)
    assert knob.effect(True, context) is True
    knob.revert(context)
    near(other.steps(2), plain.steps(22))


@pytest.mark.parametrize("kind", ["Adadelta", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop"])
def test_classes_that_know_no_fused_step(kind: str) -> None:
    make = getattr(torch.optim, kind)
    other, plain = Training(make).steps(2), Training(make).steps(2)
    assert "has no fused" in obstacles(other.context().steps)["fused_optimizer"]
    knob, context = applied("foreach_optimizer", other)
    both, with_both = applied("merged_groups", other)
    other.steps(20)
    assert (knob.effect(True, context), both.effect(True, with_both)) == (True, True)
    near(other, plain.steps(20))


def test_a_count_of_another_type_is_the_users_own_again() -> None:
    torch.set_default_dtype(torch.float64)
    try:
        other, plain = Training(adamw()).steps(2), Training(adamw()).steps(2)
        counts = [state["step"] for state in other.optimizer.state.values()]
        assert counts[0].dtype is torch.float64
        knob, context = applied("fused_optimizer", other)
        other.steps(3)
        assert knob.effect(True, context) is True
        knob.revert(context)
        after = [state["step"] for state in other.optimizer.state.values()]
        assert all(one is two and float(two) == 5 for one, two in zip(counts, after, strict=True))
        near(other, plain.steps(3))
    finally:
        torch.set_default_dtype(torch.float32)


def test_parameters_that_came_in_the_window_count_as_the_others() -> None:
    torch.set_default_dtype(torch.float64)
    try:
        training = Training(adamw())
        training.model.uses_late = False
        training.steps(2)
        knob, context = applied("fused_optimizer", training)
        training.model.uses_late = True
        training.steps(2)
        assert knob.effect(True, context) is True
        knob.revert(context)
        assert {state["step"].dtype for state in training.optimizer.state.values()} == {torch.float64}
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("name", NAMES)
def test_a_checkpoint_that_is_loaded_in_the_window(name: str) -> None:
    torch.set_default_dtype(torch.float64)
    try:
        other, plain = Training(adamw()).steps(2), Training(adamw()).steps(2)
        knob, context = applied(name, other)
        for each in (other, plain):
            saved = copy.deepcopy(each.optimizer.state_dict())
            each.steps(2).optimizer.load_state_dict(saved)
            each.steps(2)
        assert knob.effect(True, context) is True
        knob.revert(context)
        near(other.steps(1), plain.steps(1))
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("name", NAMES)
def test_groups_that_come_in_the_window(name: str) -> None:
    other, plain = Training(adamw()).steps(2), Training(adamw()).steps(2)
    knob, context = applied(name, other)
    for each in (other, plain):
        each.model.more = nn.Parameter(torch.ones(6))
        each.optimizer.add_param_group({"params": [each.model.more]})
        each.model.more.grad = torch.ones(6)
        each.optimizer.step()
        each.steps(2)
    knob.revert(context)
    near(other.steps(1), plain.steps(1))


def test_momentum_that_begins_late_is_stepped_as_written() -> None:
    other, plain = Training(lambda p: sgd()(one_group(p))), Training(lambda p: sgd()(one_group(p)))
    for each in (other, plain):
        each.model.uses_late = False
        each.steps(2)
        each.model.uses_late = True
    knob, context = applied("fused_optimizer", other)
    near(other.steps(3), plain.steps(3))
    assert knob.effect(True, context) is False
    knob.revert(context)


@pytest.mark.parametrize("broken", ["can_step", "groups"])
def test_a_mistake_of_our_own_leaves_the_step_as_written(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def mistaken(*_: Any) -> None:
        raise AttributeError("no such thing")

    other, plain = Training(adamw()).steps(1), Training(adamw()).steps(1)
    monkeypatch.setattr(kinds()["fused_optimizer"], broken, mistaken)
    knob, context = applied("fused_optimizer", other)
    assert same(other.steps(3), plain.steps(3))
    assert knob.effect(True, context) is False
    knob.revert(context)


def one_group(groups: list[dict[str, Any]]) -> list[nn.Parameter]:
    return [parameter for group in groups for parameter in group["params"]]


@pytest.mark.parametrize("names", [("fused_optimizer", "merged_groups"), ("merged_groups", "fused_optimizer")])
def test_both_at_once(names: tuple[str, str], counted: list[tuple[int, Any, Any]]) -> None:
    other, plain = Training(adamw()).steps(2), Training(adamw()).steps(2)
    knobs = [applied(name, other) for name in names]
    counted.clear()
    other.steps(4)
    assert counted == [(5, True, False)] * 8
    assert all(knob.effect(True, context) is True for knob, context in knobs)
    for knob, context in knobs:
        knob.revert(context)
    near(other.steps(1), plain.steps(5))


@pytest.mark.parametrize("name", NAMES)
def test_copies_of_the_optimizer_know_nothing_of_it(name: str) -> None:
    training = Training(adamw()).steps(2)
    knob, context = applied(name, training)
    copied = copy.deepcopy(training.optimizer)
    buffer = io.BytesIO()
    pickle.dump(training.optimizer, buffer)
    torch.save(training.optimizer.state_dict(), buffer)
    for each in (copied, pickle.loads(buffer.getvalue())):
        assert not each._optimizer_step_pre_hooks
        assert type(each) is torch.optim.AdamW
        assert [set(group) for group in each.param_groups] == [set(group) for group in training.optimizer.param_groups]
    knob.revert(context)
    assert not training.optimizer._optimizer_step_pre_hooks


# -- with a gradient scaler --------------------------------------------------------------------------------------------


def scaled(training: Training, scaler: torch.amp.GradScaler, overflow: bool = False) -> None:
    training.optimizer.zero_grad()
    scaler.scale(training.loss()).backward()
    if overflow:
        for parameter in training.model.parameters():
            if parameter.grad is not None:
                parameter.grad.fill_(float("inf"))
    scaler.step(training.optimizer)
    scaler.update()


@pytest.mark.parametrize("make", [adamw(), sgd(), lambda p: sgd()(one_group(p))])
def test_a_gradient_scaler_is_served_as_by_a_fused_optimizer_of_the_users_own(make: Make) -> None:
    """Momentum of some parameters begins in the window, which no fused step takes: the scale is taken out before it."""
    trainings = [Training(make), Training(make)]
    scalers = [torch.amp.GradScaler("cpu", init_scale=64.0, growth_interval=3) for _ in trainings]
    knob: Knob | None = None
    for training, scaler in zip(trainings, scalers, strict=True):
        training.model.uses_late = False
        scaled(training, scaler)
        if training is trainings[0]:
            knob, context = kinds()["fused_optimizer"](), training.context()
            context.steps.user_scaler = True
            knob.apply(True, context)
            assert training.optimizer._step_supports_amp_scaling is True
        training.model.uses_late = True
        for number in range(8):
            scaled(training, scaler, overflow=number in (0, 4))
    assert knob is not None
    knob.revert(context)
    other = trainings[0].optimizer
    assert not {"_step_supports_amp_scaling", "grad_scale", "found_inf"} & set(vars(other))
    assert scalers[0].get_scale() == scalers[1].get_scale()
    near(*trainings)


def test_a_trainer_that_clips_by_itself_scales_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lightning", object())
    training = Training(adamw()).steps(1)
    context = training.context()
    context.steps.user_scaler = True
    kinds()["fused_optimizer"]().apply(True, context)
    assert not hasattr(training.optimizer, "_step_supports_amp_scaling")


# -- not fused ---------------------------------------------------------------------------------------------------------


def test_a_fused_optimizer_steps_as_by_default_in_the_window_alone(counted: list[tuple[int, Any, Any]]) -> None:
    other, plain = Training(adamw(fused=True)).steps(3), Training(adamw(fused=True)).steps(3)
    before = copy.deepcopy(other.optimizer.state_dict()["param_groups"])
    knob, context = applied("unfused_optimizer", other)
    assert knob.effect(True, context) is None
    counted.clear()
    other.steps(5)
    assert len(counted) == 50
    assert all(call[1:] == (None, None) for call in counted), "as torch has it by default"
    assert knob.effect(True, context) is True
    assert other.optimizer.state_dict()["param_groups"] == before
    knob.revert(context)
    counted.clear()
    near(other.steps(2), plain.steps(7))
    assert all(call[1] is True for call in counted)


@pytest.mark.parametrize("make", [sgd(fused=True), lambda p: torch.optim.Adam(p, fused=True)])
def test_every_fused_class_learns_what_it_learned(make: Make) -> None:
    other, plain = Training(make).steps(2), Training(make).steps(2)
    knob, context = applied("unfused_optimizer", other)
    other.steps(20)
    assert knob.effect(True, context) is True
    knob.revert(context)
    near(other.steps(2), plain.steps(22))


def test_a_step_that_takes_a_scale_out_stays_fused() -> None:
    trainings = [Training(adamw(fused=True)), Training(adamw(fused=True))]
    scalers = [torch.amp.GradScaler("cpu", init_scale=64.0) for _ in trainings]
    knob, context = applied("unfused_optimizer", trainings[0])
    for training, scaler in zip(trainings, scalers, strict=True):
        for number in range(6):
            scaled(training, scaler, overflow=number == 2)
    assert knob.effect(True, context) is False
    knob.revert(context)
    near(*trainings)


@pytest.mark.parametrize(
    ("make", "reason"),
    [(adamw(), "is not fused"), (sgd(foreach=True), "is not fused"), (lambda p: Own(p, fused=True), "`Own`")],
)
def test_what_is_not_fused_by_torch_has_nothing_to_leave_out(make: Make, reason: str) -> None:
    steps = Steps()
    steps.optimizers = [make(list(LINEAR.parameters()))]
    assert reason in obstacles(steps)["unfused_optimizer"]


# -- what is left alone ------------------------------------------------------------------------------------------------


class Own(torch.optim.AdamW):
    pass


LINEAR = nn.Linear(2, 2)


@pytest.mark.parametrize(
    ("make", "reasons"),
    [
        (lambda p: Own(p), ("`Own`", "`Own`", "`Own`")),
        (lambda p: torch.optim.LBFGS(p), ("`LBFGS`", "`LBFGS`", "`LBFGS`")),
        (lambda p: torch.optim.AdamW(p, fused=True), ("already on", "already on", "one group")),
        (lambda p: torch.optim.AdamW(p, foreach=True), ("", "already on", "one group")),
        (lambda p: torch.optim.AdamW(p, differentiable=True), ("gradients flow", "gradients flow", "one group")),
        (lambda p: torch.optim.AdamW(p, lr=torch.tensor(0.1)), ("is a tensor", "than plain tensors", "one group")),
        (lambda p: torch.optim.NAdam(p), ("no fused `NAdam`", "", "one group")),
        (lambda p: torch.optim.AdamW(p), ("", "", "one group")),
        (lambda p: torch.optim.AdamW([{"params": [each]} for each in p]), ("", "", "")),
        (
            lambda p: torch.optim.AdamW([{"params": [each], "lr": 1 / 2**n} for n, each in enumerate(p)]),
            ("", "", "no two groups"),
        ),
    ],
)
def test_what_is_in_the_way(make: Make, reasons: tuple[str, str, str]) -> None:
    steps = Steps()
    steps.optimizers = [make(list(LINEAR.parameters()))]
    told = obstacles(steps)
    for name, reason in zip(NAMES, reasons, strict=True):
        assert (reason in told[name]) if reason else told[name] == ""
        assert not told[name].endswith(".")
        if reason:
            with pytest.raises(ValueError, match=r"\w"):
                kinds()[name]().apply(True, GuestContext(steps, "cpu"))
    assert not steps.optimizers[0]._optimizer_step_pre_hooks


def test_without_an_optimizer_nothing_is_changed() -> None:
    told = obstacles(Steps())
    assert all("no step of a torch optimizer" in told[name] for name in NAMES)


def test_sparse_gradients_and_other_numbers_are_no_case_for_a_fused_step() -> None:
    for parameter in (nn.Parameter(torch.ones(3, dtype=torch.complex64)), nn.Parameter(torch.ones(3, 2))):
        parameter.grad = torch.ones_like(parameter) if parameter.is_complex() else torch.ones(3, 2).to_sparse()
        steps = Steps()
        steps.optimizers = [torch.optim.SGD([parameter], lr=0.1)]
        assert "has no fused" in obstacles(steps)["fused_optimizer"]


def test_a_step_that_somebody_replaced_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.optim.RMSprop, "step", lambda self: None)
    steps = Steps()
    steps.optimizers = [torch.optim.RMSprop(LINEAR.parameters())]
    assert "was replaced" in obstacles(steps)["foreach_optimizer"]


def test_one_of_two_optimizers_is_enough() -> None:
    steps = Steps()
    steps.optimizers = [torch.optim.LBFGS(LINEAR.parameters()), torch.optim.AdamW(LINEAR.parameters())]
    assert obstacles(steps)["fused_optimizer"] == ""
    kinds()["fused_optimizer"]().apply(True, GuestContext(steps, "cpu"))
    assert [len(each._optimizer_step_pre_hooks) for each in steps.optimizers] == [0, 1]


def test_looking_whether_there_is_a_fused_step_tells_no_hook() -> None:
    told: list[Any] = []
    handle = register_optimizer_step_pre_hook(lambda *args: told.append(args))
    try:
        _optimizers.has_fused.cache_clear()
        assert _optimizers.has_fused(torch.optim.AdamW, "cpu", torch.float32)
        assert not _optimizers.has_fused(torch.optim.RMSprop, "cpu", torch.float32)
        assert not _optimizers.has_fused(torch.optim.AdamW, "cpu", torch.int64)
    finally:
        handle.remove()
    assert not told
