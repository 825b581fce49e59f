"""What a knob is to the supervisor: all that anybody may ask of it, so that nobody asks for its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from bottleneck_doctor.documents.report import Preparation, SettingValue
from bottleneck_doctor.knobs._edits import Callback, Edit, Made
from bottleneck_doctor.runtime.wire.messages import Found, Site, Taker

Layer = Literal["loader", "process", "session"]
"""Where a knob acts: on how batches are made, on the process that trains, or on a process that starts with it."""
LAYERS: tuple[Layer, ...] = ("loader", "process", "session")


@dataclass(frozen=True)
class Loading:
    """How batches are made: `workers` processes, each `prefetch` batches ahead, kept from one epoch to the next where
    `persistent`."""

    workers: int
    prefetch: int
    persistent: bool

    @property
    def depth(self) -> int:
        """Batches that can lie ready."""
        return self.workers * self.prefetch


def _unseen(found: Found) -> SettingValue | None:
    return None


def _no_argument(value: SettingValue, found: Found) -> Mapping[str, object]:
    return {}


def _no_callback(value: SettingValue, found: Found) -> Callback | None:
    return None


def _nothing_first(found: Found) -> Preparation | None:
    return None


def _as_before(loading: Loading, value: SettingValue) -> Loading:
    return loading


@dataclass(frozen=True, kw_only=True)
class KnobSpec:
    """One knob. `name` is its name in settings, in the guest's registry and in reports."""

    name: str
    layer: Layer
    edit: Edit | None
    """None: nobody writes it, for it only shows what could be."""
    needs_settling: bool = False
    """Whether the first steps under a value of it, in each process, are slower than those that follow: they stay out of
    what is timed, however long."""
    first_step_seconds: float = 0.0
    """Seconds that its first step in each process may take beyond what a step takes otherwise, and is no hang."""
    usual_first_step_seconds: float = 0.0
    """The same, as it usually is: nothing but the order in which settings are tried depends on it."""
    may_crash: bool = False
    """Whether a process that dies under it died of it, so that it is not tried a second time."""
    only_loads: bool = False
    """Whether it changes nothing but how fast batches are made, so that no value of it makes training faster than it is
    with data for free."""
    needs_workers: bool = False
    """Whether it says how workers are used, and means nothing without them."""
    idle_beside: tuple[str, ...] = ()
    """Names of knobs beside which it has nothing to do, so that they are never tried together."""
    resizes: bool = False
    """Whether batches of other sizes are what it is tried for."""
    shrinks: bool = False
    """Whether a training that has it from its start has smaller tensors than the same training as written."""
    ceiling: bool = False
    """Whether it shows what could be had without one of the costs, and is no setting that a user could choose."""
    options: tuple[str, ...] = ()
    """Names by which programs have an option for it, in lower case and with hyphens between words (`mixed-precision`).
    () where it is the value of an argument: edits follow that to its option."""
    own: Callable[[Found], SettingValue | None] = _unseen
    """The user's own value, to be told as a part of the training as written; None where there is nothing to tell."""
    of_trainer: Callable[[SettingValue, Found], Mapping[str, object]] = _no_argument
    """Arguments of transformers' `TrainingArguments` that do the same as a value does, by their names."""
    of_ultralytics: Callable[[SettingValue, Found], Callback | None] = _no_callback
    """The callback of Ultralytics' trainer that does the same as a value does; None where none does, or is needed."""
    loads: Callable[[Loading, SettingValue], Loading] = _as_before
    """What a value makes of how batches are made."""
    shares_cores: bool = False
    """Whether what a value is worth depends on how many cores other programs leave to the training."""
    collects: bool = False
    """Whether it changes when Python's garbage collector runs, or what it goes through."""
    in_part: bool = False
    """Whether windows with it train on a part of the data, so that their losses are not those of a user's training."""
    prepares: Callable[[Found], Preparation | None] = _nothing_first
    """What it does once before training begins, where it is switched on."""


def seen(name: str) -> Callable[[Found], SettingValue | None]:
    """The `own` of a knob that the guest itself reads the user's value of."""

    def own(found: Found) -> SettingValue | None:
        value = found.own.get(name)
        return value if isinstance(value, bool | int | float | str) else None

    return own


def told(found: Found, name: str) -> dict[str, Any] | None:
    """What the guest told of a loop for the knob of this name; None where it has not looked."""
    seen = found.facts.get(name)
    return seen if isinstance(seen, dict) else None


def set_by_a_library(name: str) -> Callable[[Found], Site | None]:
    """Where a library sets what the knob of this name changes, if one does so last."""
    return lambda found: place_told(found, name, "set_by")


def told_made(name: str) -> Callable[[Found], Made]:
    """Where the guest saw what the knob of this name changes being made."""
    return lambda found: Made(told_calls(found, name), told_calls(found, name, "through"), _told_takers(found, name))


def _told_takers(found: Found, name: str) -> list[Taker]:
    takers = (told(found, name) or {}).get("takers")
    try:
        return [Taker(**each) for each in takers] if isinstance(takers, list) else []
    except TypeError:  # No guest of this version.
        return []


def place_told(found: Found, name: str, what: str) -> Site | None:
    """The place that the guest told of `what` for the knob of this name; None where it told none."""
    place = (told(found, name) or {}).get(what)
    file, line = (place.get("file"), place.get("line")) if isinstance(place, dict) else (None, None)
    return Site(file, line) if isinstance(file, str) and isinstance(line, int) else None


def prepared(name: str) -> Callable[[Found], Preparation | None]:
    """The `prepares` of a knob whose guest told of samples that are prepared once before training begins: how many, and
    what that takes."""

    def prepares(found: Found) -> Preparation | None:
        seen = told(found, name)
        if seen is None:
            return None
        samples, size, seconds = (seen.get(each) for each in ("samples", "bytes", "seconds"))
        if not isinstance(samples, int) or not isinstance(size, int) or not isinstance(seconds, int | float):
            return None
        return Preparation(samples=samples, seconds=float(seconds), bytes=size)

    return prepares


def told_calls(found: Found, name: str, what: str = "calls") -> list[tuple[str, Site]]:
    """The calls that the guest told for the knob of this name: what is called, and where. Empty where it told none.
    `what`: under what name."""
    calls = (told(found, name) or {}).get(what)
    kept = []
    for each in calls if isinstance(calls, list) else ():
        match each:
            case [str(called), str(file), int(line)]:
                kept.append((called, Site(file=file, line=line)))
    return kept


def told_obstacle(found: Found, name: str) -> str | None:
    """Why the guest could not use the knob of this name, "" where it could; None where it has not looked."""
    obstacle = (told(found, name) or {}).get("obstacle")
    return obstacle if isinstance(obstacle, str) else None
