"""What chains of transforms are given, in place of what they make: samples of a dataset with an `Input` for each, and
how such a sample is finished.

The transforms stay what they are for everybody else. While inputs are taken, and in the thread that takes them alone,
calls of a chain return what it was given. Chains of torchvision's take one value, those of albumentations named ones.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

import torch

from ._tail import fetching

_ABSENT: Any = object()
_passing = threading.RLock()
"""One thread at a time takes inputs."""


class Input(NamedTuple):
    """Stands in a sample for what a chain of transforms makes of `value`. `chain`: which chain it is. `name`: None, or
    the chain is given all of `value` by name, and this is what it makes of the one with this name. `after`: methods
    that are called afterwards, such as `float()`, each with its arguments."""

    value: Any
    chain: int
    name: Optional[str] = None
    after: Tuple[Tuple[str, Tuple[Any, ...]], ...] = ()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return functools.partial(self._then, name)

    def __truediv__(self, divisor: Any) -> Any:
        return self._then("__truediv__", divisor)

    def _then(self, method: str, *given: Any) -> Any:
        if not all(isinstance(each, (int, float, str, torch.dtype, type(None))) for each in given):
            raise TypeError(f"`{method}` is given more than numbers")
        return self._replace(after=(*self.after, (method, given)))

    def made(self, value: Any) -> Any:
        """What becomes of `value`, which the chain has made."""
        for method, given in self.after:
            value = getattr(value, method)(*given)
        return value

    def code(self) -> Optional[str]:
        """The same as code, in which `{}` stands for the value; None where that can't be written everywhere."""
        text = "{}"
        for method, given in self.after:
            if any(isinstance(each, torch.dtype) for each in given):
                return None
            told = ", ".join(map(repr, given))
            text = f"({text} / {told})" if method == "__truediv__" else f"{text}.{method}({told})"
        return text


class Inputs:
    """The samples of a dataset with `Input` in place of what its chains of transforms make."""

    def __init__(self, dataset: Any, chains: List[Any]) -> None:
        self._dataset = dataset
        self._chains = chains

    def __getitem__(self, index: Any) -> Any:
        with _passed_over(self._chains):
            return self._dataset[index]


@contextlib.contextmanager
def _passed_over(chains: List[Any]) -> Iterator[None]:
    """Calls of these chains in this thread return what they are given. For this long, their classes have a `__call__`
    that asks whose call it is: Python looks for it in the class alone, and a chain may be held in many places."""
    numbers = {id(chain): number for number, chain in enumerate(chains)}
    before: List[Tuple[type, Any]] = []
    with _passing:
        try:
            for kind in {type(chain) for chain in chains}:
                own = vars(kind).get("__call__", _ABSENT)
                kind.__call__ = _asking(kind.__call__, numbers)
                before.append((kind, own))
            fetching.on = True
            yield
        finally:
            fetching.on = False
            for kind, own in before:
                if own is _ABSENT:
                    del kind.__call__
                else:
                    kind.__call__ = own


def _asking(call: Any, numbers: Dict[int, int]) -> Any:
    def asked(self: Any, *given: Any, **named: Any) -> Any:
        if fetching.on and id(self) in numbers:
            return taken(numbers[id(self)], given, named)
        return call(self, *given, **named)

    return asked


def taken(chain: int, given: Tuple[Any, ...], named: Dict[str, Any]) -> Any:
    """What stands for the result of a chain: it is given one value, or some by name. Anything else raises."""
    if named and not given:
        return {name: Input(named, chain, name) for name in named}
    (value,) = given
    if named:
        raise TypeError("a chain of transforms is given values in both ways")
    return Input(value, chain)


def has_input(sample: Any) -> bool:
    if isinstance(sample, Input):
        return True
    if isinstance(sample, dict):
        return any(map(has_input, sample.values()))
    return isinstance(sample, (list, tuple)) and any(map(has_input, sample))


def finished(sample: Any, chains: List[Any]) -> Any:
    """A sample with its transforms done, in the order in which the dataset does them."""
    return _finished(sample, chains, {})


def _finished(sample: Any, chains: List[Any], made: Dict[int, Any]) -> Any:
    """`made`: what was made by name so far, by what the chain was given. One call makes all of it."""
    if isinstance(sample, Input):
        if sample.name is None:
            return sample.made(chains[sample.chain](sample.value))
        if id(sample.value) not in made:
            made[id(sample.value)] = chains[sample.chain](**sample.value)
        return sample.made(made[id(sample.value)][sample.name])
    if isinstance(sample, dict):
        return {key: _finished(value, chains, made) for key, value in sample.items()}
    if isinstance(sample, (list, tuple)):
        parts = [_finished(value, chains, made) for value in sample]
        return type(sample)(*parts) if hasattr(sample, "_fields") else type(sample)(parts)
    return sample


class Kept:
    """Stands for a dataset that has `count` samples, and keeps the inputs of its transforms; it holds some of them."""

    def __init__(self, samples: List[Any], count: int, chains: List[Any]) -> None:
        self._samples = tuple(samples)
        self._count = count
        self.chains = chains

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: Any) -> Any:
        return finished(self._samples[index % len(self._samples)], self.chains)
