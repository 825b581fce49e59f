"""`cleanup_calls`: `gc.collect()` and `empty_cache()` calls of the user's own code in its steps; False leaves them out.
The effect is checked by the number of calls left out.

The functions are replaced once, before the user's code gets hold of them, by functions that check their caller. Until
the loop is found they note the lines that call in steps. In a window they skip the calls from those lines and from
nowhere else: torch and other libraries have their reasons to call, and calls between epochs cost no step anything.
"""

from __future__ import annotations

import functools
import gc
import sys
import threading
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch

from ..loop.collecting import ASKING
from ..loop.steps import Steps
from ..process.originals import get_frame
from ..process.user_code import is_users_file
from . import GuestContext, Knob, Refused
from ._memory import MemoryLimit

NAME = "cleanup_calls"
MOST_LINES = 16
"""At most this many lines are kept; a loop has one or two."""
SURELY = 3.0
"""If at least this many calls are expected in a lead-in and none comes, the knob had no effect."""

Place = Tuple[str, int]
"""The file of a caller, as its code names it, and the line."""

_collect = gc.collect


class Calls:
    """Calls in steps, by line, until the loop is found. `left_out`: how many were left out in the current window."""

    def __init__(self) -> None:
        self.watching = True
        self.names: Dict[Place, str] = {}
        self.counts: Dict[Place, int] = {}
        self.threads: Dict[Place, int] = {}
        self.without = False
        """Whether calls are left out now."""
        self.left_out = 0

    def note(self, name: str, place: Place) -> None:
        if place in self.names or len(self.names) < MOST_LINES:
            self.names.setdefault(place, name)
            self.counts[place] = self.counts.get(place, 0) + 1
            self.threads.setdefault(place, threading.get_ident())

    def leaves_out(self, place: Place) -> bool:
        if not self.without or self.threads.get(place) != threading.get_ident():
            return False
        self.left_out += 1
        return True


def of(steps: Steps) -> Calls:
    """What was seen in this process; a forked process starts over."""
    calls = steps.noted.get(NAME)
    if calls is None:
        calls = steps.noted[NAME] = Calls()
    return calls


def in_step(steps: Steps) -> bool:
    """Whether the loop is in a step, before it is found: some loader's epoch has begun and not ended or, without a
    loader, a step was made. A call with gradients off is part of an evaluation."""
    if not torch.is_grad_enabled():
        return False
    if steps.records:
        return any(record.in_epoch for record in steps.records.values())
    return bool(steps.optimizer_steps or steps.own_backwards)


def steps_made(steps: Steps) -> int:
    return steps.batches or steps.optimizer_steps or steps.own_backwards


class CleanupCalls(Knob):
    name = NAME

    def __init__(self) -> None:
        self._calls: Optional[Calls] = None
        self._memory: Optional[MemoryLimit] = None
        self._asked = 0
        self._every = 0.0
        """Calls in one step, as seen before the loop was found."""

    # -- before the loop is found ------------------------------------------------------------------------------------

    @classmethod
    def watch(cls, steps: Steps) -> None:
        shim = _asking(steps, "gc.collect", _collect, lambda: True, 0)
        gc.collect = shim
        _replace_in_users_modules(_collect, shim)
        for module, name, title, in_use in _empty_caches():
            original = getattr(module, name, None)
            if original is not None and not hasattr(original, "_doctor_asks"):
                _replace(original, _asking(steps, title, original, in_use, None), module, name)

    @classmethod
    def facts(cls, steps: Steps, device: str, loader: Any = None) -> Any:
        calls = of(steps)
        calls.watching = False
        here = threading.get_ident()
        lines = [
            [name, file, line, calls.counts[file, line]]
            for (file, line), name in calls.names.items()
            if calls.threads[file, line] == here
        ]
        return {"lines": lines, "steps": steps_made(steps)} if lines else None

    # -- in a window -------------------------------------------------------------------------------------------------

    def apply(self, value: Any, context: GuestContext) -> None:
        if value:
            return
        calls = of(context.steps)
        if not calls.names:
            raise Refused("no call was seen in the steps")
        self._memory = MemoryLimit(context.device)
        self._every = sum(calls.counts.values()) / max(1, steps_made(context.steps))
        self._calls = calls
        calls.left_out = 0
        calls.without = True

    def before_step(self, context: GuestContext) -> None:
        self._asked += 1
        if self._calls is None or self._memory is None or not self._calls.without:
            return
        self.gave_up = self._memory.short()
        if self.gave_up:
            self._calls.without = False
            _collect()
            if _cuda_in_use():
                torch.cuda.empty_cache()

    def revert(self, context: GuestContext) -> None:
        if self._calls is not None:
            self._calls.without = False

    def effect(self, value: Any, context: GuestContext) -> Optional[bool]:
        if self._calls is None:
            return None
        if self._calls.left_out:
            return True
        # A call in every hundredth step may not have come yet.
        return False if self._every * self._asked > SURELY else None


# -- whom to ask -------------------------------------------------------------------------------------------------------


def _asking(steps: Steps, title: str, original: Any, in_use: Callable[[], bool], answer: Any) -> Any:
    """`original`, except for calls of the user's that are left out now, which return `answer`."""

    is_compiling = torch.compiler.is_compiling

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        if is_compiling():  # What is traced must meet what it would meet without us; what runs comes by below.
            return original(*args, **kwargs)
        calls = of(steps)
        if calls.watching or calls.without:
            frame = get_frame(1)
            file = frame.f_code.co_filename
            if is_users_file(file):
                place = (file, frame.f_lineno)
                if calls.leaves_out(place):
                    return answer
                if calls.watching and in_step(steps) and in_use():
                    calls.note(title, place)
        return original(*args, **kwargs)

    ASKING.add(call.__code__)  # type: ignore[attr-defined]
    call._doctor_asks = True  # type: ignore[attr-defined]
    return call


def _empty_caches() -> List[Tuple[Any, str, str, Callable[[], bool]]]:
    """The torch functions that empty a cache, by the names that users write, and whether they do anything here."""
    found: List[Tuple[Any, str, str, Callable[[], bool]]] = [
        (torch.cuda, "empty_cache", "torch.cuda.empty_cache", _cuda_in_use),
        (torch._C, "_cuda_emptyCache", "torch._C._cuda_emptyCache", _cuda_in_use),
    ]
    for kind in ("mps", "xpu", "accelerator"):
        module = sys.modules.get(f"torch.{kind}")
        if module is not None:
            found.append((module, "empty_cache", f"torch.{kind}.empty_cache", functools.partial(_in_use, kind)))
    return found


def _cuda_in_use() -> bool:
    return bool(torch.cuda.is_initialized())  # type: ignore[no-untyped-call]


def _in_use(kind: str) -> bool:
    """Whether a device of this kind has a cache to empty."""
    if kind == "mps":
        return bool(torch.backends.mps.is_available())
    if kind == "xpu":
        return bool(torch.xpu.is_initialized())  # type: ignore[no-untyped-call]
    return bool(getattr(torch._C, "_accelerator_isAllocatorInitialized", lambda: False)())


def _replace(original: Any, new: Any, module: Any, name: str) -> None:
    """Also replace the same function in the module that defines it."""
    setattr(module, name, new)
    home = sys.modules.get(getattr(original, "__module__", None) or "")
    if home is not None and getattr(home, name, None) is original:
        setattr(home, name, new)


def _replace_in_users_modules(original: Any, new: Any) -> None:
    """Also replace it in the user's modules that imported it (`from gc import collect`) before torch was imported."""
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if name == "__main__" or (isinstance(file, str) and is_users_file(file)):
            for key, value in list(vars(module).items()):
                if value is original:
                    setattr(module, key, new)


KNOB = CleanupCalls
