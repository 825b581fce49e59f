"""How long the model's frozen parts take: modules that do not learn, and that nothing that learns comes before.

Such a part makes the same of the same samples in each epoch, so its outputs could be computed once. A call counts only
if that is certain:

- none of the module's parameters needs a gradient, and neither does what it is given or what it returns;
- what it is given comes from no module that learns: none has returned in this step, or the first of them was given the
  very same tensors (a teacher beside its student);
- it isn't computed again in the backward pass, as checkpoints without `use_reentrant=False` are;
- its weights stay the same, unlike those of a running mean.
"""

from __future__ import annotations

import os
from collections import defaultdict
from types import FrameType
from typing import Any, Callable, DefaultDict, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

import torch
from torch.nn.modules.batchnorm import _BatchNorm

from ..knobs._generators import Generators
from ..process.originals import get_frame, now
from ..process.user_code import is_users_file

_LEARNS, _FROZEN, _EMPTY = range(3)
_CHECKPOINT = os.path.join("torch", "utils", "checkpoint.py")
_COMPARED = 64
"""Weights of each parameter that are compared. A running mean moves all of them."""


_LOOKED_AT = 3
"""Random generators are looked at in this many steps, which costs some time in each."""


class _Drawn:
    """The global random generators, and the device's, as they stand."""

    def __init__(self) -> None:
        self._host = Generators()
        self._device = _device_states()

    def drew(self) -> bool:
        """Whether one of them has moved."""
        return self._host.drew() or not all(map(torch.equal, self._device, _device_states()))


def _device_states() -> List[Any]:
    cuda: Any = torch.cuda
    return [cuda.get_rng_state()] if cuda.is_initialized() else []


class _Before(NamedTuple):
    """How it is before a call: whether what it is given was drawn within the step, and where the generators stand; None
    if nobody looks at them."""

    drawn: bool
    generators: Optional[_Drawn]


class FrozenParts:
    """Times the calls of frozen modules that pass through `called`, until a whole step has none."""

    def __init__(self, roots: List[Any], synchronise: Callable[[], None]) -> None:
        self.watching = True
        self._roots = roots
        self._synchronise = synchronise
        self._kinds: Dict[int, Tuple[Any, int]] = {}
        self._timed: DefaultDict[Tuple[str, int], Dict[int, float]] = defaultdict(dict)
        self._weights: Dict[int, List[Tuple[Any, Any]]] = {}
        self._random: Set[int] = set()
        self._steps = 0
        self._inside = False
        self._learnt = False
        self._given: Optional[List[Any]] = None
        self._given_random = False
        self._arrival: Optional[_Drawn] = None

    def batch_arrived(self) -> None:
        looks = self.watching and self._steps < _LOOKED_AT
        self._arrival = self._safely(_Drawn) if looks else None

    def step_ended(self) -> None:
        self._steps += 1
        self._learnt, self._given, self._arrival = False, None, None
        if not self._timed:
            self.watching = False

    # -- calls -------------------------------------------------------------------------------------------------------

    def called(self, function: Any, module: Any, /, *args: Any, **kwargs: Any) -> Any:
        """What `function(module, *args, **kwargs)` returns, which is the module's own call."""
        if self._inside or not self.watching:
            return function(module, *args, **kwargs)
        given = (args, kwargs)
        kind = self._safely(lambda: self._kind(module, given))
        if kind == _FROZEN:
            return self._of_frozen(function, module, given)
        try:
            return function(module, *args, **kwargs)
        finally:
            self._learnt = self._learnt or kind == _LEARNS

    def _safely(self, look: Callable[[], Any]) -> Any:
        """What a look returns. If it fails, as while a CUDA graph is captured, nothing is looked at any more."""
        try:
            return look()
        except Exception:
            self.watching = False
            return None

    def _kind(self, module: Any, given: Any) -> int:
        known = self._kinds.get(id(module))
        if known is None:
            known = self._kinds[id(module)] = module, _kind_of(module)
        kind = known[1]
        if kind == _FROZEN and _kind_of(module) != _FROZEN:  # Some programs switch it in every step.
            kind = _LEARNS
        if kind == _LEARNS and self._given is None:
            self._given = list(_tensors(given))
            self._given_random = self._drew_since_arrival()
        return kind

    def _of_frozen(self, function: Any, module: Any, given: Any) -> Any:
        args, kwargs = given
        before = self._safely(lambda: self._before(module, given))
        if before is None:
            return function(module, *args, **kwargs)
        self._inside = True
        begun = now()
        try:
            returned = function(module, *args, **kwargs)
        finally:
            self._inside = False
        self._safely(lambda: self._after(module, returned, begun, before))
        return returned

    def _before(self, module: Any, given: Any) -> Optional[_Before]:
        """None if the call of a frozen module does not count."""
        if not self._given_samples(given):
            return None
        if id(module) not in self._weights:
            self._weights[id(module)] = [(each, _some_of(each)) for each in module.parameters()]
        drawn = self._given_random if self._learnt else self._drew_since_arrival()
        generators = _Drawn() if self._arrival is not None else None
        self._synchronise()
        return _Before(drawn, generators)

    def _after(self, module: Any, returned: Any, begun: float, before: _Before) -> None:
        self._synchronise()
        seconds = now() - begun
        made = list(_tensors(returned))
        if not made or any(each.requires_grad for each in made):
            return
        self._note(module, seconds, get_frame(1))
        if before.drawn or (before.generators is not None and before.generators.drew()):
            self._random.add(id(module))

    def _drew_since_arrival(self) -> bool:
        return self._arrival is not None and self._arrival.drew()

    def _given_samples(self, given: Any) -> bool:
        """Whether nothing that learns has had a part in what a module is given."""
        tensors = list(_tensors(given))
        if not tensors or any(each.requires_grad for each in tensors):
            return False
        first = self._given or ()
        return not self._learnt or all(any(each is one for one in first) for each in tensors)

    def _note(self, module: Any, seconds: float, frame: Optional[FrameType]) -> None:
        place: Optional[Tuple[str, int]] = None
        while frame is not None:
            name = frame.f_code.co_filename
            if name.endswith(_CHECKPOINT) and not torch.is_grad_enabled():
                return
            if place is None and is_users_file(name):
                place = os.path.abspath(name), frame.f_lineno
            frame = frame.f_back
        if place is not None:
            calls = self._timed[place]
            calls[id(module)] = calls.get(id(module), 0.0) + seconds

    # -- what was found ----------------------------------------------------------------------------------------------

    def detail(self) -> List[Dict[str, Any]]:
        """By the user's line that leads there: `file`, `line`, `seconds`, `parts` (`name`, `seconds`), `batch` (whether
        outputs depend on the rest of the batch) and `random` (whether they are drawn at random, or what they are made
        of is drawn within the step). Nothing of less than two steps, which can't show that weights stay the same."""
        return [] if self._steps < 2 else self._safely(self._found) or []

    def _found(self) -> List[Dict[str, Any]]:
        same = {key for key, kept in self._weights.items() if all(_stays(each, before) for each, before in kept)}
        found = []
        for (file, line), calls in self._timed.items():
            timed = {key: seconds for key, seconds in calls.items() if key in same}
            modules = [inner for key in timed for inner in self._kinds[key][0].modules() if inner.training]
            if timed:
                found.append(
                    {
                        "file": file,
                        "line": line,
                        "seconds": sum(timed.values()),
                        "parts": [{"name": self._name(key), "seconds": seconds} for key, seconds in timed.items()],
                        "batch": any(isinstance(each, _BatchNorm) for each in modules),
                        "random": not self._random.isdisjoint(timed),
                    }
                )
        return found

    def _name(self, key: int) -> str:
        """What the model calls a module; of one that is no part of it, or is all of it, the class."""
        module = self._kinds[key][0]
        for root in self._roots:
            for name, each in root.named_modules():
                if each is module and name:
                    return str(name)
        return type(module).__name__


def _kind_of(module: Any) -> int:
    """Anything that can't be told counts as learning."""
    parameters = list(module.parameters())
    if not parameters:
        return _EMPTY
    plain = all(type(each) is torch.nn.Parameter for each in parameters)
    return _FROZEN if plain and not any(each.requires_grad for each in parameters) else _LEARNS


def _some_of(parameter: Any) -> Any:
    some = parameter.detach()
    while some.dim() > 1 and some.numel():
        some = some[0]
    return some.reshape(-1)[:_COMPARED].clone()


def _stays(parameter: Any, before: Any) -> bool:
    after = _some_of(parameter)
    return after.dtype == before.dtype and after.device == before.device and torch.equal(after, before)


def _tensors(value: Any) -> Iterator[Any]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _tensors(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _tensors(each)
