"""The settings that the guest can change, one file each, found by their place in this folder. To add one, add a file
that defines `KNOB`, its class, and its counterpart for the supervisor in `bottleneck_doctor/knobs/`.

A knob has a `name`, `apply(value, context)`, `revert(context)` and `effect(value, context)`, which says whether the
change can be observed (None: nothing to observe yet). Knobs of the loader change nothing themselves, because the feed
is built with their values; they only check that it uses them.
"""

from __future__ import annotations

import contextlib
import importlib
import pkgutil
from typing import Any, Dict, Optional

from ..loop.pauses import EpochPauses
from ..loop.steps import Steps


class GuestContext:
    """What knobs and modes may touch: the loop's device and root modules, the current feed, the last batch served, and
    the pauses between epochs so far. `made_anew`: the script makes its loader anew for every epoch."""

    def __init__(self, steps: Steps, device: str) -> None:
        self.steps = steps
        self.device = device
        self.feed: Any = None
        self.batch: Any = None
        self.pauses = EpochPauses()
        self.made_anew = False


class Knob:
    name = ""
    layer = "process"
    """`loader`: it says how batches are made, and means nothing where no loader feeds the loop; else `process`."""
    argument = False
    """Whether it is an argument of the DataLoader, which the loader holds under the same name."""
    keeps_batches = False
    """Whether batches that were kept are served in place of the loader's."""
    gave_up = ""
    """Why it stopped acting in the middle of its window, which has failed then; "" while it acts."""

    @classmethod
    def shape(cls, value: Any, loader: Any) -> None:
        """Change the copy of the user's loader that a window's batches come from, before its iterator is made."""

    def apply(self, value: Any, context: GuestContext) -> None:
        """Change it. May raise; the window then fails with that reason."""

    def revert(self, context: GuestContext) -> None:
        """As the user had it. Must not raise."""

    def before_step(self, context: GuestContext) -> None:
        """Called at each batch request (or step) while the knob is applied."""

    def timed_part_begins(self, context: GuestContext) -> None:
        """Called when lead-in is over: take away whatever only serves `effect`."""

    def effect(self, value: Any, context: GuestContext) -> Optional[bool]:
        return None

    def effect_on_loading(self, value: Any, feed: Any) -> Optional[bool]:
        """The same in a window that only loads, with `feed`."""
        return None

    @classmethod
    def watch(cls, steps: Steps) -> None:
        """Called once, before anything trains: look from now on for what `facts` tells, and keep it in `steps.noted`.
        May raise."""

    @classmethod
    def facts(cls, steps: Steps, device: str, loader: Any = None) -> Any:
        """What was seen of it by the time the loop is found, for its fix to say whether it applies: JSON values, or
        None. `device`: where the model is (`cuda:0`). `loader` is None in a loop that no loader feeds. Ends what
        `watch` began. May raise."""
        return None

    @classmethod
    def own(cls) -> Any:
        """What the user has set it to, as the process shows it now, and can be written as JSON: a bool, a number or a
        string. None where that is seen elsewhere, or the user leaves it as it is. May raise."""
        return None

    @classmethod
    def obstacle(cls, steps: Steps) -> Optional[str]:
        """Why it can't be applied to this loop, by what was seen of its optimizers and models: a sentence's end, ""
        where it can. None where it can be applied to any loop. May raise."""
        return None


class Refused(Exception):
    """A knob can't be changed here, or a mode can't run; the text says why, for the user to read."""


_kinds: Dict[str, Any] = {}


def kinds() -> Dict[str, Any]:
    """The class of every knob, by name."""
    if not _kinds:
        modules = [importlib.import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__)]
        _kinds.update({module.KNOB.name: module.KNOB for module in modules if hasattr(module, "KNOB")})
    return _kinds


def registry() -> Dict[str, Knob]:
    """A fresh knob of every kind, by name."""
    return {name: kind() for name, kind in kinds().items()}


def arguments(setting: Dict[str, Any]) -> Dict[str, Any]:
    """The part of a setting that the DataLoader takes as arguments."""
    return {name: value for name, value in setting.items() if name in kinds() and kinds()[name].argument}


def shape(loader: Any, setting: Dict[str, Any]) -> None:
    """Make a copy of the user's loader what the setting asks for beyond its arguments."""
    for name, value in setting.items():
        if name in kinds():
            kinds()[name].shape(value, loader)


def needs_loader(setting: Dict[str, Any]) -> bool:
    """Whether a part of the setting means nothing where no loader feeds the loop."""
    return any(name in kinds() and kinds()[name].layer == "loader" for name in setting)


def keeps_batches(setting: Dict[str, Any]) -> bool:
    """Whether batches that were kept are served under this setting."""
    return any(value and name in kinds() and kinds()[name].keeps_batches for name, value in setting.items())


def own_settings() -> Dict[str, Any]:
    """What the user has set knobs to, by name, as far as the process shows it now. Never raises."""
    own: Dict[str, Any] = {}
    try:
        for name, kind in kinds().items():
            value = kind.own()
            if value is not None:
                own[name] = value
    except Exception:
        pass  # It only saves the trying of what is on, or off, already.
    return own


def obstacles(steps: Steps) -> Dict[str, str]:
    """Why knobs can't be applied to this loop, by name; "" where they can. Never raises."""
    found: Dict[str, str] = {}
    for name, kind in kinds().items():
        try:
            reason = kind.obstacle(steps)
        except Exception:
            continue  # What can't be looked at isn't changed.
        if reason is not None:
            found[name] = reason
    return found


def watch(steps: Steps) -> None:
    """Have every knob look for what it needs to know of a loop. Never raises."""
    with contextlib.suppress(Exception):
        for kind in kinds().values():
            with contextlib.suppress(Exception):
                kind.watch(steps)


def facts(steps: Steps, device: str, loader: Any = None) -> Dict[str, Any]:
    """What knobs saw of the loop, the model and the machine, by name, of those that look. Never raises."""
    seen: Dict[str, Any] = {}
    for name, kind in kinds().items():
        with contextlib.suppress(Exception):  # Without them its fix isn't tried, and says so.
            fact = kind.facts(steps, device, loader)
            if fact:
                seen[name] = fact
    return seen
