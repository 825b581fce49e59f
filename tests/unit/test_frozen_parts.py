"""`modes/frozen.py`: which calls of modules count as those of a frozen part, and which only look like one."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from bottleneck_doctor.runtime.modes.frozen import FrozenParts

Step = Callable[[torch.Tensor], torch.Tensor]


@contextmanager
def watched(*roots: nn.Module) -> Iterator[FrozenParts]:
    """Calls of modules pass through the watch, as in a window of phases."""
    parts = FrozenParts(list(roots), lambda: None)
    kind: Any = nn.Module
    original = kind.__call__

    def call(module: Any, /, *args: Any, **kwargs: Any) -> Any:
        return parts.called(original, module, *args, **kwargs)

    kind.__call__ = call
    try:
        yield parts
    finally:
        kind.__call__ = original


def seen(step: Step, *learning: nn.Module, steps: int = 3, roots: tuple[nn.Module, ...] = ()) -> list[dict[str, Any]]:
    """What is told of some steps of training."""
    weights = [each for module in learning for each in module.parameters() if each.requires_grad]
    optimizer = torch.optim.SGD(weights, lr=0.1)
    with watched(*(roots or learning)) as parts:
        for _ in range(steps):
            batch = torch.randn(4, 8)
            parts.batch_arrived()
            step(batch).sum().backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            optimizer.zero_grad()
            parts.step_ended()
        return parts.detail()


class Frozen(nn.Module):
    """A frozen part with a head."""

    def __init__(self, *features: nn.Module) -> None:
        super().__init__()
        self.features = nn.Sequential(*(features or (nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8)))).requires_grad_(
            False
        )
        self.head = nn.Linear(8, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.features(x))  # type: ignore[no-any-return]


def test_a_frozen_part_is_named() -> None:
    model = Frozen().eval()
    (told,) = seen(model, model)
    assert [part["name"] for part in told["parts"]] == ["features"]
    assert told["seconds"] == pytest.approx(sum(part["seconds"] for part in told["parts"]))
    assert told["seconds"] > 0
    assert not told["batch"]
    assert not told["random"]


def test_a_frozen_part_in_several_pieces_is_told_once() -> None:
    model = nn.Sequential(nn.Linear(8, 8).requires_grad_(False), nn.Linear(8, 8).requires_grad_(False), nn.Linear(8, 2))

    def step(x: torch.Tensor) -> torch.Tensor:
        return model(x)  # type: ignore[no-any-return]

    (told,) = seen(step, model)
    assert [part["name"] for part in told["parts"]] == ["0", "1"]


def test_a_part_without_gradients_counts_however_it_is_called() -> None:
    encoder, head = nn.Linear(8, 8).requires_grad_(False), nn.Linear(8, 2)

    def step(x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            features = {"hidden": [encoder(input=x)]}
        return head(features["hidden"][0])  # type: ignore[no-any-return]

    (told,) = seen(step, head)
    assert [part["name"] for part in told["parts"]] == ["Linear"]


def test_a_teacher_of_the_same_batch_counts_also_behind_its_student() -> None:
    student, teacher = nn.Linear(8, 2), nn.Linear(8, 2).requires_grad_(False)
    assert seen(lambda x: student(x) - teacher(x), student)


@pytest.mark.parametrize("batch_norm", [True, False])
def test_batch_norm_in_training_mode_is_told(batch_norm: bool) -> None:
    model = Frozen(nn.Linear(8, 8), nn.BatchNorm1d(8))
    model.features.train(batch_norm)
    (told,) = seen(model, model)
    assert told["batch"] is batch_norm


@pytest.mark.parametrize("dropout", [0.5, 0.0])
def test_dropout_is_told(dropout: float) -> None:
    model = Frozen(nn.Linear(8, 8), nn.Dropout(dropout))
    (told,) = seen(model, model)
    assert told["random"] is (dropout > 0)


def test_what_is_drawn_within_the_step_is_told() -> None:
    model = Frozen().eval()
    (told,) = seen(lambda x: model(x + torch.randn_like(x)), model)
    assert told["random"]


def test_what_is_drawn_for_the_student_is_told_of_its_teacher() -> None:
    student, teacher = nn.Linear(8, 2), nn.Linear(8, 2).requires_grad_(False)

    def step(x: torch.Tensor) -> torch.Tensor:
        noisy = x + torch.randn_like(x)
        return student(noisy) - teacher(noisy)  # type: ignore[no-any-return]

    assert [told["random"] for told in seen(step, student)] == [True]


def test_dropout_of_the_student_is_none_of_the_teachers() -> None:
    student, teacher = nn.Sequential(nn.Linear(8, 2), nn.Dropout()), nn.Linear(8, 2).requires_grad_(False)
    assert [told["random"] for told in seen(lambda x: student(x) - teacher(x), student)] == [False]


# -- look-alikes -------------------------------------------------------------------------------------------------------


def test_a_model_that_learns_has_no_frozen_part() -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))
    assert not seen(model, model)


def test_what_passes_gradients_on_is_no_frozen_part() -> None:
    """As a loss that compares what a frozen network makes of pictures."""
    model, critic = nn.Linear(8, 8), nn.Linear(8, 2).requires_grad_(False)
    assert not seen(lambda x: critic(model(x)), model)


def test_what_is_given_the_output_of_a_part_that_learns_is_no_frozen_part() -> None:
    model, reward = nn.Linear(8, 8), nn.Linear(8, 2).requires_grad_(False)

    def step(x: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = model(x)
        with torch.no_grad():
            worth: torch.Tensor = reward(made.detach() + 1)
        return made * worth.sum()

    assert not seen(step, model)


def test_a_running_mean_is_no_frozen_part() -> None:
    student = nn.Linear(8, 2)
    teacher = copy.deepcopy(student).requires_grad_(False)

    def step(x: torch.Tensor) -> torch.Tensor:
        torch._foreach_lerp_(list(teacher.parameters()), list(student.parameters()), 0.001)
        return student(x) - teacher(x)  # type: ignore[no-any-return]

    assert not seen(step, student)


def test_a_part_that_is_frozen_only_while_another_learns_is_no_frozen_part() -> None:
    """As the networks of a GAN, each of which is frozen while the other takes its step."""
    maker, critic = nn.Linear(8, 8), nn.Linear(8, 2)
    optimizer = torch.optim.SGD(maker.parameters(), lr=0.1)

    def step(x: torch.Tensor) -> torch.Tensor:
        maker.requires_grad_(True)
        maker(x).sum().backward()
        optimizer.step()
        maker.requires_grad_(False)
        return critic(maker(x))  # type: ignore[no-any-return]

    assert not seen(step, critic)


def test_what_is_computed_again_in_the_backward_pass_is_no_frozen_part() -> None:
    class Adapted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.base = nn.Linear(8, 8).requires_grad_(False)
            self.adapter = nn.Linear(8, 8)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.base(x) + self.adapter(x)  # type: ignore[no-any-return]

    model = nn.ModuleList([Adapted(), Adapted()])

    def step(x: torch.Tensor) -> torch.Tensor:
        x = x.requires_grad_()
        for block in model:
            x = checkpoint(block, x, use_reentrant=True)
        return x

    assert not seen(step, model)


def test_one_step_does_not_show_that_weights_stay() -> None:
    model = Frozen().eval()
    assert not seen(model, model, steps=1)


def test_nothing_is_watched_after_a_step_without_a_frozen_part() -> None:
    model = nn.Linear(8, 2)
    with watched(model) as parts:
        model(torch.ones(2, 8))
        assert parts.watching
        parts.step_ended()
        assert not parts.watching


def test_arguments_may_have_any_name() -> None:
    class Named(nn.Module):
        def forward(self, *, function: int, module: int) -> int:
            return function + module

    with watched():
        assert Named()(function=1, module=2) == 3
