"""Random generators: the global ones, and those that a dataset holds, are seen to move, and are put back."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import ConcatDataset, Dataset, Subset

from bottleneck_doctor.runtime.knobs._generators import Generators

_SHARED = np.random.default_rng(1)


class Drawn(Dataset[Any]):
    """Its samples are drawn by what it is given."""

    def __init__(self, draw: Callable[[], Any], **held: Any) -> None:
        self.draw = draw
        self.__dict__.update(held)

    def __len__(self) -> int:
        return 100

    def __getitem__(self, index: int) -> Any:
        return self.draw()


class OfItsClass(Drawn):
    generator = random.Random(4)


class OfItsMethod(Drawn):
    def __getitem__(self, index: int) -> Any:
        return _SHARED.random()


class Transform:
    def __init__(self, generator: Any, inner: Any = None) -> None:
        self.generator = generator
        self.transforms = [inner]

    def __call__(self) -> Any:
        return self.generator.random()


def _closed_over() -> Drawn:
    generator = random.Random(2)
    return Drawn(lambda: generator.random())


def _partial() -> Drawn:
    return Drawn(functools.partial(np.random.RandomState.random_sample, np.random.RandomState(5)))


def _of_torch() -> Drawn:
    generator = torch.Generator().manual_seed(3)
    return Drawn(functools.partial(torch.rand, 2, generator=generator))


def _deep() -> Any:
    within = Drawn(Transform(random.Random(7), Transform(np.random.default_rng(2))))
    return ConcatDataset([Subset(within, range(4)), Subset(within, range(9))])


OWN: dict[str, Callable[[], Any]] = {
    "of the class": lambda: OfItsClass(OfItsClass.generator.random),
    "named by its method": lambda: OfItsMethod(float),
    "in a closure": _closed_over,
    "in a partial": _partial,
    "of torch": _of_torch,
    "a bound method": lambda: Drawn(np.random.Generator(np.random.MT19937(8)).random),
    "deep": _deep,
}


@pytest.mark.parametrize("name", OWN)
def test_a_generator_of_its_own_is_seen_and_put_back(name: str) -> None:
    data = OWN[name]()
    before = Generators(data)
    assert not before.drew()
    first = data[0]
    assert before.drew()
    second = data[0]
    before.put_back()
    assert not before.drew()
    again = data[0], data[0]
    assert [np.array_equal(*pair) for pair in zip((first, second), again, strict=True)] == [True, True]


@pytest.mark.parametrize("draw", [random.random, np.random.random, lambda: torch.rand(1)])
def test_a_global_generator_is_seen_and_put_back(draw: Callable[[], Any]) -> None:
    before = Generators()
    first = draw()
    assert before.drew()
    before.put_back()
    assert not before.drew()
    assert draw() == first


def test_one_that_is_made_with_the_first_sample_counts_as_drawn() -> None:
    class Late(Drawn):
        generator: Any = None

        def __getitem__(self, index: int) -> Any:
            self.generator = self.generator or np.random.default_rng(0)
            return index

    data = Late(float)
    before = Generators(data)
    data[0]
    assert before.drew()
    before.put_back()


def test_what_has_no_state_and_what_holds_data_is_passed_over() -> None:
    data = Drawn(float, system=random.SystemRandom(), rows=[random.Random(0)] * 1000, itself=None)
    data.__dict__["itself"] = data
    before = Generators(data, 3, None, "text", int)
    data.__dict__["rows"][0].random()
    assert not before.drew()
    before.put_back()
