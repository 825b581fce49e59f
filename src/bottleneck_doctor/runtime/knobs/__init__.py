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
from typing import Any, Callable, Dict, Mapping, Optional, Tuple

from ..loop.evaluated import Evaluated
from ..loop.interruptions import Interruptions
from ..loop.pauses import EpochPauses
from ..loop.steps import Steps


class GuestContext:
    """What knobs and modes may use: the loop's device and root modules, the current feed, the last batch served, the
    pauses between epochs so far, evaluations in the midst of epochs, and what the model computed in both. `made_anew`:
    the script makes a new loader for every epoch."""

    def __init__(self, steps: Steps, device: str) -> None:
        self.steps = steps
        self.device = device
        self.feed: Any = None
        self.batch: Any = None
        self.pauses = EpochPauses()
        self.evaluated = Evaluated(steps)
        self.evaluated_within = Evaluated(steps)
        self.interruptions = Interruptions()
        self.made_anew = False

    def pauses_so_far(self) -> Dict[str, Any]:
        """`WindowDone.pauses`."""
        if not self.pauses.seen and not self.interruptions.seen:
            return {}
        return {
            "epoch_pause": {**self.pauses.totals(), **self.evaluated.totals()},
            "interruptions": {**self.interruptions.told(), **self.evaluated_within.totals()},
        }


class Knob:
    name = ""
    layer = "process"
    """`loader`: it changes how batches are made, and has no meaning in a loop without a loader. Otherwise `process`."""
    argument = False
    """Whether it is an argument of the DataLoader, with an attribute of the same name."""
    keeps_batches = False
    """Whether kept batches are served instead of the loader's."""
    shapes_last = False
    """Whether it changes what other knobs put in the place of the loader's dataset."""
    takes_samples = False
    """Whether `facts` takes samples of the loader's dataset, which may take long: it is not called in a process whose
    windows can't have the knob."""
    gave_up = ""
    """Why it stopped in the middle of its window, which has then failed; "" while it works."""

    @classmethod
    def shape(cls, value: Any, loader: Any) -> None:
        """Change the copy of the user's loader that a window's batches come from, before its iterator is made."""

    def apply(self, value: Any, context: GuestContext) -> None:
        """Make the change. May raise; the window then fails with that reason."""

    def revert(self, context: GuestContext) -> None:
        """Restore what the user had. Must not raise."""

    def before_step(self, context: GuestContext) -> None:
        """Called at each batch request (or step) while the knob is applied."""

    def fetching(self, value: Any, fetch: Callable[[], Any], context: GuestContext) -> Callable[[], Any]:
        """What the loop's batches come from in the place of `fetch`, which gives the next one of the window's feed, and
        raises `StopIteration` at the end of an epoch. Asked for anew at each start of one."""
        return fetch

    def delivered(self, value: Any, batch: Any, context: GuestContext) -> Any:
        """What the loop gets for a batch that came from the window's feed."""
        return batch

    def loop_left(self, context: GuestContext) -> None:
        """Called when the user's loop is left for a while, for an evaluation or at the end of an epoch, until the next
        `before_step`."""

    def timed_part_begins(self, context: GuestContext) -> None:
        """Called when the lead-in is over: remove whatever only serves `effect`."""

    def effect(self, value: Any, context: GuestContext) -> Optional[bool]:
        """Whether the window shows the change; None where there is nothing to see. A knob of how batches are made only
        says `effect_on_loading`."""
        return self.effect_on_loading(value, context.feed)

    def effect_on_loading(self, value: Any, feed: Any) -> Optional[bool]:
        """As `effect`, by the window's feed alone: so for windows that only load, too."""
        return None

    @classmethod
    def watch(cls, steps: Steps) -> None:
        """Called once, before anything trains: watch from now on for what `facts` returns, and keep it in
        `steps.noted`. May raise."""

    @classmethod
    def batch_seen(cls, steps: Steps, loader: Any, batch: Any) -> None:
        """Called with each batch that a loader hands out until the loop is found: note what `facts` returns in
        `steps.noted`. May raise."""

    @classmethod
    def facts(cls, steps: Steps, device: str, loader: Any = None) -> Any:
        """What was seen by the time the loop is found, with which its fix decides whether it applies: JSON values, or
        None. `device`: where the model is (`cuda:0`). `loader` is None in a loop without a loader; its dataset may be
        asked for samples in this process. Ends what `watch` began. May raise."""
        return None

    @classmethod
    def recall(cls, told: Dict[str, Any], loader: Any) -> bool:
        """Be ready for windows by what `facts` told in an earlier process of the same program, where that found no
        obstacle, and take no samples. False if that is not enough, so that `facts` is asked again. May raise."""
        return False

    @classmethod
    def own(cls) -> Any:
        """The user's own value, as the process shows it now and as JSON can hold it: a bool, a number or a string. None
        if it is read elsewhere, or the user has not set it. May raise."""
        return None

    @classmethod
    def obstacle(cls, steps: Steps, loader: Any = None) -> Optional[str]:
        """Why it can't be applied to this loop, judging by its optimizers, models and loader: the end of a sentence; ""
        if it can. None if it can be applied to any loop. `loader`: as for `facts`. May raise."""
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
    """A new knob of every kind, by name."""
    return {name: kind() for name, kind in kinds().items()}


def arguments(setting: Dict[str, Any]) -> Dict[str, Any]:
    """The part of a setting that the DataLoader takes as arguments."""
    return {name: value for name, value in setting.items() if name in kinds() and kinds()[name].argument}


def of_loader(setting: Dict[str, Any]) -> Tuple[Tuple[str, Any], ...]:
    """The part of a setting that changes how batches are made, in a fixed order."""
    return tuple(sorted(each for each in setting.items() if each[0] in kinds() and kinds()[each[0]].layer == "loader"))


def shape(loader: Any, setting: Dict[str, Any]) -> None:
    """Change a copy of the user's loader as the setting wants it, beyond the loader's arguments."""
    known = [name for name in setting if name in kinds()]
    for name in sorted(known, key=lambda name: kinds()[name].shapes_last):
        kinds()[name].shape(setting[name], loader)


def needs_loader(setting: Dict[str, Any]) -> bool:
    """Whether a part of the setting has no meaning in a loop without a loader."""
    return any(name in kinds() and kinds()[name].layer == "loader" for name in setting)


def keeps_batches(setting: Dict[str, Any]) -> bool:
    """Whether kept batches are served under this setting."""
    return any(value and name in kinds() and kinds()[name].keeps_batches for name, value in setting.items())


def own_settings() -> Dict[str, Any]:
    """The user's own values of knobs, by name, as far as the process shows them now. Never raises."""
    own: Dict[str, Any] = {}
    try:
        for name, kind in kinds().items():
            value = kind.own()
            if value is not None:
                own[name] = value
    except Exception:
        pass  # It only saves the trying of what is on, or off, already.
    return own


def obstacles(steps: Steps, loader: Any = None) -> Dict[str, str]:
    """Why knobs can't be applied to this loop, by name; "" if they can. Never raises."""
    found: Dict[str, str] = {}
    for name, kind in kinds().items():
        try:
            reason = kind.obstacle(steps, loader)
        except Exception:
            continue  # What can't be looked at isn't changed.
        if reason is not None:
            found[name] = reason
    return found


def watch(steps: Steps) -> None:
    """Make every knob watch for what it needs to know about a loop. Never raises."""
    with contextlib.suppress(Exception):
        for kind in kinds().values():
            with contextlib.suppress(Exception):
                kind.watch(steps)


def batch_seen(steps: Steps, loader: Any, batch: Any) -> None:
    """Show a batch to every knob that wants to see it. Never raises."""
    for kind in kinds().values():
        if kind.batch_seen.__func__ is not Knob.batch_seen.__func__:  # type: ignore[attr-defined]
            with contextlib.suppress(Exception):
                kind.batch_seen(steps, loader, batch)


def facts(steps: Steps, device: str, loader: Any = None, tried: Optional[Mapping[str, Any]] = None) -> Dict[str, Any]:
    """What knobs saw of the loop, the model and the machine, by name, for the knobs that watch. `tried`: what an
    earlier process told of those that windows may have, by name; None for any knob. Never raises."""
    seen: Dict[str, Any] = {}
    for name, kind in kinds().items():
        if kind.takes_samples and tried is not None:
            if name not in tried:
                continue
            if _recalls(kind, tried[name], loader):
                seen[name] = tried[name]
                continue
        with contextlib.suppress(Exception):  # Without them its fix isn't tried, and says so.
            fact = kind.facts(steps, device, loader)
            if fact:
                seen[name] = fact
    return seen


def _recalls(kind: Any, told: Any, loader: Any) -> bool:
    """Whether a knob needs no samples, because an earlier process told enough."""
    if loader is None or not isinstance(told, dict) or told.get("obstacle") != "":
        return False
    try:
        return bool(kind.recall(told, loader))
    except Exception:  # The loader is unlike the one of which that was told.
        return False
