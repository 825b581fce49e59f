"""`phases`: the shares of a step, with synchronisation, and the parts of loading.

Hooks are on only while the window runs. The result, with times in seconds:

- `phases` (by name, exclusive), `seconds` (their sum), `step_seconds`, `wait_seconds`, `ready` (batches found ready)
- `synchronising`: `name`, `file`, `line`, `count`, `seconds` of calls that take values out of tensors
- `garbage`: `collections`, `seconds`
- `exchanges`: `passes` (backward), `exchanged` (those of them that exchanged gradients with other processes), `updates`
  (of optimizers), or None
- `evaluations`: `times`, `seconds` of evaluating within steps
- `frozen`: what the model's frozen parts take (see `FrozenParts.detail`)
- `loading` (see `LoadingRecorder.detail`) or None, and then `loading_missing` says why
- `timeline`: `seconds`, `events` of `[lane, kind, start, seconds, batch]`, or None
"""

from __future__ import annotations

import functools
import gc
import threading
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch

from ..knobs import GuestContext
from ..knobs._modules import patch_methods
from ..loader.feed import READY_SECONDS
from ..loop.steps import Watch
from ..process.originals import get_frame, now
from ..process.patches import Patches
from . import Mode
from .communication import Communication
from .evaluating import StepEvaluations
from .frozen import FrozenParts
from .loading import LoadingRecorder
from .stopwatch import (
    BACKWARD,
    BETWEEN,
    COMMUNICATION,
    DATA_WAIT,
    FORWARD,
    HOST_TO_DEVICE,
    OPTIMIZER,
    ZERO_GRAD,
    SoFar,
    Stopwatch,
)
from .values import TakenValues

_WHOLE = (DATA_WAIT, FORWARD, BACKWARD)
"""Phases in which a call of a module is part of the phase: transforms, submodules, recomputed checkpoints."""
_NOT_THE_USERS = (DATA_WAIT, BACKWARD, OPTIMIZER, ZERO_GRAD)
"""Phases in which torch itself takes values out of tensors."""


class Phases(Mode, Watch):
    name = "phases"

    def __init__(self, options: Dict[str, Any], context: GuestContext, synchronise: Callable[[], None]) -> None:
        super().__init__(options, context, synchronise)
        self._clock = Stopwatch(synchronise)
        self._patches = Patches()
        self._values = TakenValues(self._value_counts)
        self._loading: Optional[LoadingRecorder] = None
        self._communication = Communication(context.steps.roots)
        self._frozen = FrozenParts(context.steps.roots, synchronise)
        self._evaluations = StepEvaluations(context.steps, synchronise)
        self._before: Optional[SoFar] = None
        """As the model last came into evaluation mode within a step."""
        self._thread = threading.get_ident()
        self._wait = -1
        self._asked = 0.0
        self._holding = False
        self._waits: List[float] = []
        self._ready = 0
        self._collection_began: Optional[float] = None
        self._collections = 0
        self._collecting = 0.0
        self._updates = 0
        self._called: List[int] = []
        """What ends the phases that running calls of optimizers' closures began."""

    # -- on and off --------------------------------------------------------------------------------------------------

    def apply(self) -> None:
        try:
            self._put_on()
        except Exception:
            self.revert()
            raise

    def _put_on(self) -> None:
        loader = getattr(self.context.feed, "loader", None)
        if loader is not None:
            self._loading = LoadingRecorder()
            self._loading.on_worker = self._take_off
            self._loading.apply(loader)
        put = self._patches.put
        put(torch.nn.Module, "__call__", self._forward)
        patch_methods(self._patches, self.context.steps, self._method)
        for owner in self._with_own("zero_grad", torch.nn.Module, torch.optim.Optimizer):
            put(owner, "zero_grad", functools.partial(self._wrapped, ZERO_GRAD))
        put(torch.autograd, "backward", functools.partial(self._wrapped, BACKWARD))
        put(torch.autograd, "grad", functools.partial(self._wrapped, BACKWARD))
        for name in ("step", "unscale_", "update"):
            put(torch.amp.GradScaler, name, functools.partial(self._wrapped, OPTIMIZER))
        self._values.apply(self._patches)
        self._communication.apply()
        if self.context.device != "cpu":
            put(torch.Tensor, "to", self._moving)
            put(torch.Tensor, "cuda", self._moving)
        self.context.steps.watch = self
        gc.callbacks.append(self._collector)

    def _with_own(self, name: str, *bases: type) -> List[type]:
        """The base classes, and the classes of this loop's optimizers and models that have their own `name`."""
        kinds = [type(each) for each in (*self.context.steps.optimizers, *self.context.steps.roots)]
        owners = [kind for each in kinds for kind in each.__mro__ if name in vars(kind)]
        return list(dict.fromkeys((*bases, *owners)))

    def revert(self) -> None:
        self._clock.stop()
        self._take_off()
        if self._loading is not None:
            self._loading.revert()

    def _take_off(self) -> None:
        """Remove all hooks except those that loading needs: here, and in each worker."""
        self._patches.take_off()
        self._communication.revert()
        if self.context.steps.watch is self:
            self.context.steps.watch = None
        if self._collector in gc.callbacks:
            gc.callbacks.remove(self._collector)

    # -- the window --------------------------------------------------------------------------------------------------

    def resume(self) -> None:
        self._holding = self.context.feed is None  # Without a loader a step is whatever lies between optimizer steps.
        self._clock.start()
        if self.context.steps.closures.within:
            self._clock.begin(OPTIMIZER)
            self.closure_begins()
        if not self._holding:
            self._wait = self._clock.begin(DATA_WAIT)  # The feed may have to be opened first.

    def suspend(self) -> None:
        self.synchronise()
        self.interrupted(now())

    def interrupted(self, at: float) -> None:
        if self.context.feed is not None:
            self._close_step(at)
        self._evaluations.forget()
        self._clock.stop(at)
        if self._loading is not None:
            self._loading.stopped()

    def fetching(self) -> None:
        self._close_step()
        if self._clock.current is not DATA_WAIT:
            self._wait = self._clock.begin(DATA_WAIT)
        if self._loading is not None:
            self._loading.asked(self.context.feed)
        self._asked = now()

    def fetched(self, batch: Any) -> None:
        waited = now() - self._asked
        if self._loading is not None:
            self._clock.batch = self._loading.arrived(counts=self._clock.running)
        if not self._clock.running:
            return
        self._waits.append(waited)
        self._ready += waited < READY_SECONDS
        self._clock.end(self._wait)
        self._frozen.batch_arrived()
        self._holding = True

    def step_ended(self) -> None:
        self._close_step()

    def evaluates(self, on: bool) -> None:
        if not on:
            self._evaluations.end()
        elif self._clock.running:
            self._before = self._clock.so_far()
            self._evaluations.begin()

    def left_out(self) -> None:
        if self._before is not None:
            self._clock.back_to(self._before)
        self._evaluations.forget()

    def _close_step(self, at: Optional[float] = None) -> None:
        if self._clock.running and self._holding:
            self._clock.step_ended(at)
            self._frozen.step_ended()
            self._holding = self.context.feed is None

    # -- phases ------------------------------------------------------------------------------------------------------

    def _elsewhere(self) -> bool:
        return not self._clock.running or threading.get_ident() != self._thread

    def _wrapped(self, phase: str, original: Any) -> Any:
        clock = self._clock

        def call(*args: Any, **kwargs: Any) -> Any:
            if self._elsewhere() or clock.current is DATA_WAIT:
                return original(*args, **kwargs)
            return self._charged(phase, original, args, kwargs)

        return call

    def _charged(self, phase: str, function: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
        clock = self._clock
        token = clock.begin(phase)
        clock.nested += 1
        try:
            return function(*args, **kwargs)
        finally:
            clock.nested -= 1
            clock.end(token)
            if phase is BACKWARD and token >= 0:
                self._communication.backward_ended()

    def _forward(self, original: Any) -> Any:
        clock, frozen, is_compiling = self._clock, self._frozen, torch.compiler.is_compiling

        def call(module: Any, /, *args: Any, **kwargs: Any) -> Any:
            # Asked first: a graph that is made now must not depend on what is charged at the moment.
            if is_compiling():
                return original(module, *args, **kwargs)
            if clock.current in _WHOLE:
                if frozen.watching and clock.current is FORWARD and not self._elsewhere():
                    return frozen.called(original, module, *args, **kwargs)
                return original(module, *args, **kwargs)
            if self._elsewhere():
                return original(module, *args, **kwargs)
            return self._charged(FORWARD, frozen.called, (original, module, *args), kwargs)

        return call

    def _method(self, original: Any) -> Any:
        """A method of the model that is called in place of the model."""
        clock = self._clock

        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            if self._elsewhere() or clock.current in _WHOLE:
                return original(*args, **kwargs)
            return self._charged(FORWARD, original, args, kwargs)

        return call

    def optimizer_begins(self) -> None:
        if not self._elsewhere():
            self._clock.begin(OPTIMIZER)

    # What a closure does besides forward and backward is the loop's own work, not the optimizer's.

    def closure_begins(self) -> None:
        if not self._elsewhere():
            self._called.append(self._clock.begin(BETWEEN))
            self._clock.nested += 1

    def closure_ended(self) -> None:
        if self._called:
            self._clock.nested -= 1
            self._clock.end(self._called.pop())

    def optimizer_ended(self) -> None:
        if not self._elsewhere():
            self._clock.end_phase(OPTIMIZER)
            self._updates += 1

    def _moving(self, original: Any) -> Any:
        def move(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            if self._elsewhere() or self._clock.current is DATA_WAIT:
                return original(tensor, *args, **kwargs)
            onto = tensor.device.type == "cpu"
            if onto and not _names_device(args, kwargs, otherwise=original.__name__ == "cuda"):
                return original(tensor, *args, **kwargs)
            self.synchronise()
            begun = now()
            moved = original(tensor, *args, **kwargs)
            if onto:
                if moved.device.type != "cpu":
                    self._clock.moved(HOST_TO_DEVICE, begun)
            elif moved.device.type == "cpu" and self._value_counts():
                self._values.note('.to("cpu")', now() - begun, get_frame(1))
            return moved

        return move

    # -- by the way --------------------------------------------------------------------------------------------------

    def _value_counts(self) -> bool:
        return self._clock.running and self._clock.current not in _NOT_THE_USERS

    def _collector(self, moment: str, info: Dict[str, int]) -> None:
        if moment == "start":
            self._collection_began = now() if self._clock.running else None
        elif self._collection_began is not None:
            self._collecting += now() - self._collection_began
            self._collections += 1
            self._collection_began = None

    # -- what was found ----------------------------------------------------------------------------------------------

    def detail(self) -> Dict[str, Any]:
        clock = self._clock
        drawn = (clock.drawn[0][1], clock.drawn[-1][2]) if clock.drawn else None
        loading: Dict[str, Any] = {"loading": None, "loading_missing": "no loader makes batches here"}
        if self._loading is not None:
            loading = self._loading.detail(self.context.feed.loader, clock.segments, drawn)
        lanes: List[Any] = loading.pop("lanes", [])
        timeline = None
        if drawn is not None:
            began = drawn[0]
            main = [
                ["main", kind, round(first - began, 7), round(last - first, 7), batch]
                for kind, first, last, batch in clock.drawn
            ]
            timeline = {"seconds": drawn[1] - began, "events": main + lanes}
        phases = dict(clock.seconds)
        phases[COMMUNICATION] = min(phases[BACKWARD], self._communication.seconds())
        phases[BACKWARD] -= phases[COMMUNICATION]
        exchanges = self._communication.exchanges()
        return {
            "phases": phases,
            "seconds": sum(phases.values()),
            "step_seconds": [round(seconds, 7) for seconds in clock.step_seconds],
            "wait_seconds": [round(seconds, 7) for seconds in self._waits],
            "ready": self._ready,
            "synchronising": self._values.detail(),
            "garbage": {"collections": self._collections, "seconds": self._collecting},
            "exchanges": None if exchanges is None else {**exchanges, "updates": self._updates},
            "evaluations": self._evaluations.detail(),
            "frozen": self._frozen.detail(),
            "timeline": timeline,
            **loading,
        }


def _names_device(args: Tuple[Any, ...], kwargs: Dict[str, Any], *, otherwise: bool) -> bool:
    """Whether the arguments of `Tensor.to` name a device that is not the CPU."""
    target = kwargs.get("device", args[0] if args else None)
    if isinstance(target, torch.Tensor):
        target = target.device
    if isinstance(target, str):
        return not target.startswith("cpu")
    if isinstance(target, torch.device):
        return target.type != "cpu"
    return otherwise or (isinstance(target, int) and not isinstance(target, bool))
