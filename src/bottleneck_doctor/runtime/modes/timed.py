"""Proxies for transforms, and wrappers of a dataset's methods, which add up how long their calls take.

Times are exclusive: time inside a nested timed call counts for that call alone, so that the times can be summed.
"""

from __future__ import annotations

import copy
import functools
import io
import os
import threading
import types
from numbers import Integral
from typing import Any, Callable, Dict

from ..process.originals import now

_LEFT = frozenset(
    (
        *("__annotations__", "__call__", "__class__", "__class_getitem__", "__copy__", "__deepcopy__", "__del__"),
        *("__delattr__", "__delete__", "__dict__", "__dir__", "__doc__", "__eq__", "__get__", "__getattr__"),
        *("__getattribute__", "__getnewargs__", "__getnewargs_ex__", "__getstate__", "__hash__", "__init__"),
        *("__init_subclass__", "__module__", "__new__", "__reduce__", "__reduce_ex__", "__repr__", "__set__"),
        *("__set_name__", "__setattr__", "__setstate__", "__sizeof__", "__slots__", "__subclasshook__", "__weakref__"),
    )
)
"""Special methods that a proxy has of its own, or that do no work of the element."""
_NO_SAMPLES = (str, bytes, bytearray, memoryview, os.PathLike, io.IOBase, Integral, type(None))
"""Paths, texts, encoded data, files and indices: what takes one of these reads, decodes or looks up a sample."""


class Clock(threading.local):
    """For each thread, the seconds of timed calls that have ended inside the current one."""

    inner = 0.0


class TimedElement:
    """Behaves like a transform in everything but its type, and adds up how long its calls take.

    `sure`: it is a transform, whatever its input. Otherwise only calls with a sample count.
    """

    __slots__ = ("_doctor_clock", "_doctor_element", "_doctor_lazy", "_doctor_seconds", "_doctor_sure")

    def __init__(self, element: Any, clock: Clock, sure: bool) -> None:
        put = object.__setattr__
        put(self, "_doctor_element", element)
        put(self, "_doctor_clock", clock)
        put(self, "_doctor_sure", sure)
        put(self, "_doctor_lazy", False)
        put(self, "_doctor_seconds", 0.0)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not (self._doctor_sure or _is_sample(args, kwargs)):
            return self._doctor_element(*args, **kwargs)
        clock = self._doctor_clock
        before, clock.inner = clock.inner, 0.0
        begun = now()
        try:
            made = self._doctor_element(*args, **kwargs)
        finally:
            spent = now() - begun
            object.__setattr__(self, "_doctor_seconds", self._doctor_seconds + spent - clock.inner)
            clock.inner = before + spent
        if isinstance(made, (types.GeneratorType, types.CoroutineType)):
            # Its work is done later, where it is not timed.
            object.__setattr__(self, "_doctor_lazy", True)
        return made

    @property  # type: ignore[misc]  # isinstance() asks for it, and shall see the element's class
    def __class__(self) -> Any:
        return self._doctor_element.__class__

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "_doctor_element"), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._doctor_element, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._doctor_element, name)

    def __dir__(self) -> Any:
        return dir(self._doctor_element)

    def __repr__(self) -> str:
        return repr(self._doctor_element)

    def __eq__(self, other: object) -> bool:
        return bool(self._doctor_element == (unwrapped(other)))

    def __hash__(self) -> int:
        return hash(self._doctor_element)

    def __reduce_ex__(self, protocol: Any) -> Any:
        # A copy, or what a spawned worker gets, is the element alone.
        return copy.copy, (self._doctor_element,)


_kinds: Dict[type, type] = {}


def timed(element: Any, clock: Clock, *, sure: bool = True) -> Any:
    """A proxy for an element, with the special methods that its type has, such as `__len__`, and no others."""
    kind = type(element)
    if kind not in _kinds:
        passed_on = {
            name: _passing_on(name)
            for name in dir(kind)
            if name[:2] == name[-2:] == "__"
            and name not in _LEFT
            and callable(getattr(kind, name, None))
            and getattr(kind, name, None) is not getattr(object, name, None)
        }
        _kinds[kind] = type("TimedElement", (TimedElement,), {"__slots__": (), **passed_on})
    return _kinds[kind](element, clock, sure)


def unwrapped(element: Any) -> Any:
    """The element that a proxy stands for; anything else unchanged."""
    return object.__getattribute__(element, "_doctor_element") if is_timed(element) else element


def is_timed(element: Any) -> bool:
    return issubclass(type(element), TimedElement)


def seconds_of(element: Any) -> float:
    """Seconds that a proxy's element took so far in this process; 0 if its work can't be timed."""
    return 0.0 if element._doctor_lazy else float(element._doctor_seconds)


class TimedMethod:
    """Adds up how long a dataset's method takes, without the timed calls inside it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.seconds = 0.0

    def __call__(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """A function that does what the original does and is timed; for `Patches.put`."""
        clock = self._clock

        @functools.wraps(original)
        def fetch(*args: Any, **kwargs: Any) -> Any:
            before, clock.inner = clock.inner, 0.0
            begun = now()
            try:
                return original(*args, **kwargs)
            finally:
                spent = now() - begun
                self.seconds += spent - clock.inner
                clock.inner = before + spent

        return fetch


def _passing_on(name: str) -> Any:
    def special(proxy: Any, *args: Any, **kwargs: Any) -> Any:
        element = proxy._doctor_element
        return getattr(type(element), name)(element, *args, **kwargs)

    special.__name__ = name
    return special


def _is_sample(args: Any, kwargs: Any) -> bool:
    """Whether the first argument may be a sample or a part of one."""
    first = args[0] if args else next(iter(kwargs.values()), None)
    if isinstance(first, (list, tuple)) and first:
        first = first[0]
    return not isinstance(first, _NO_SAMPLES)
