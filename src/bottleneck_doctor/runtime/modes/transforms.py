"""What each transform costs: the transforms that can be reached from a dataset are replaced by proxies that measure the
time.

They are changed in place, for one window only, and only in the dictionaries of instances, so that no `__setattr__`
runs. If several of a dataset's own methods do the work, these are timed too.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

from ..process.patches import Patches
from ..wire.messages import Site
from .reach import ABSENT, Group, Spot, find
from .sites import as_json, class_site, function_site, plain_function
from .timed import Clock, TimedMethod, seconds_of, timed

_FETCHERS = ("__getitems__", "__getitem__")


class Chains:
    """The transforms of a dataset. Put proxies in with `time`, take them out with `revert`."""

    def __init__(self) -> None:
        self.groups: List[Group] = []
        """Transforms that were made together."""
        self.datasets: List[Any] = []
        """All datasets on the way, outermost first."""
        self._clock = Clock()
        self._elements: List[Any] = []
        self._proxies: Dict[int, Any] = {}
        self._described: List[Dict[str, Any]] = []
        self._undo: List[Tuple[Any, Any, Any, Any]] = []
        self._patches = Patches()
        self._methods: List[Tuple[str, TimedMethod, Site]] = []

    def time(self, *roots: Any) -> None:
        """Replace every transform that can be reached from `roots`. If that fails, nothing is timed."""
        try:
            found = find(roots)
            self.groups, self.datasets = found.groups, found.datasets
            for spot in found.spots:
                self._put(spot)
            for group in found.groups:
                self._elements += [each for each in group.elements if not any(each is one for one in self._elements)]
            self._described = [
                {"name": name_of(each), "site": as_json(_site_of(each)), "holds": id(each) in found.holders}
                for each in self._elements
            ]
            self._time_methods()
        except Exception:  # Then the report has no such part.
            self.revert()
            self.groups, self._elements, self._described, self._methods = [], [], [], []

    def _put(self, spot: Spot) -> None:
        proxies = []
        for element in spot.elements:
            if id(element) not in self._proxies:
                self._proxies[id(element)] = timed(element, self._clock, sure=spot.sure)
            proxies.append(self._proxies[id(element)])
        held, key = spot.held, spot.key
        after = proxies[0] if spot.kind is None else spot.kind(proxies)
        before = held[key] if isinstance(held, list) else held.get(key, ABSENT)
        held[key] = after
        self._undo.append((held, key, before, after))

    def _time_methods(self) -> None:
        own: Dict[Tuple[type, str], Site] = {}
        for dataset in self.datasets:
            for name in _FETCHERS:
                kind = next((base for base in type(dataset).__mro__ if name in vars(base)), None)
                site = None if kind is None else function_site(vars(kind)[name])
                if kind is not None and site is not None:
                    own[kind, name] = site
        if len(own) < 2:  # Then there is nothing to ask.
            return
        for (kind, name), site in own.items():
            method = TimedMethod(self._clock)
            self._patches.put(kind, name, method)
            self._methods.append((f"{kind.__qualname__}.{name}", method, site))

    def revert(self) -> None:
        """Restore everything except what others have replaced in the meantime."""
        self._patches.take_off()
        while self._undo:
            held, key, before, after = self._undo.pop()
            if isinstance(held, list):
                # Its place may have moved.
                for position, each in enumerate(held):
                    if each is after:
                        held[position] = before
            elif held.get(key, ABSENT) is after:
                if before is ABSENT:
                    del held[key]
                else:
                    held[key] = before

    def seconds(self) -> List[float]:
        """Seconds that each transform took so far in this process, in the order of `described`. No time counts
        twice."""
        return [seconds_of(self._proxies[id(each)]) for each in self._elements]

    def all_seconds(self) -> List[float]:
        """The same, followed by those of each method that is timed."""
        return self.seconds() + [method.seconds for _, method, _ in self._methods]

    def names(self) -> List[str]:
        """The names that belong to `all_seconds`, in its order."""
        return [each["name"] for each in self._described] + [name for name, _, _ in self._methods]

    def described(self) -> List[Dict[str, Any]]:
        """Name of each transform, where it begins if it is the user's own, and whether it holds others."""
        return [dict(each) for each in self._described]

    def elements(self) -> List[Any]:
        """The transforms themselves, in the order of `described`."""
        return list(self._elements)

    def busiest_method(self, seconds: List[float]) -> Optional[Site]:
        """Where the user's method begins that took most of the time, not counting transforms and the other methods.
        `seconds`: as from `all_seconds`. None if no method was timed."""
        spent = seconds[len(self._elements) :]
        if not self._methods or len(spent) < len(self._methods) or max(spent) <= 0:
            return None
        return self._methods[spent.index(max(spent))][2]


def name_of(element: Any) -> str:
    """A name that its author recognises: a function's name, or a class and the function that it was given."""
    function = plain_function(element)
    name = getattr(function, "__name__", None) or type(function).__name__
    inner = getattr(element, "lambd", None)
    return f"{type(element).__name__}({name})" if callable(inner) else str(name)


def _site_of(element: Any) -> Optional[Site]:
    # A method says more than its class: that is where its lines are.
    function = plain_function(element)
    return function_site(function) or class_site(type(function))
