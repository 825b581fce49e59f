"""Enters the process: waits until torch is executed, then lets the guest attach to it.

Many libraries call `importlib.util.find_spec("torch")` long before torch is imported, so the guest hooks the execution
of the module, not its look-up.
"""

from __future__ import annotations

import json
import os
import sys
from types import ModuleType
from typing import Any, Callable, Dict

from .process import (
    notebook_entry,
    originals,  # noqa: F401  here, before any code of the user's has run
    parent_death,
    tracebacks,
)
from .wire.channel import VARIABLE, invited_from_here


class _Finder:
    """Stands first in `sys.meta_path` and hooks the loader that the next finder offers for a module of interest."""

    def __init__(self, wanted: Dict[str, Callable[[ModuleType], None]], tell_failure: Callable[[], None]) -> None:
        self._wanted = wanted
        self._tell_failure = tell_failure

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name not in self._wanted:
            return None
        for finder in sys.meta_path:
            look = getattr(finder, "find_spec", None)
            if finder is self or look is None:
                continue
            spec = look(name, path, target)
            if spec is not None:
                self._hook(spec.loader, name)
                return spec
        return None

    def _hook(self, loader: Any, name: str) -> None:
        execute = getattr(loader, "exec_module", None)
        if execute is None:
            return

        def exec_module(module: ModuleType) -> None:
            execute(module)
            self._executed(name, module)

        try:
            loader.exec_module = exec_module
        except AttributeError:  # A loader with slots: the guest stays out, training goes on.
            return

    def _executed(self, name: str, module: ModuleType) -> None:
        told = self._wanted.pop(name, None)
        if not self._wanted and self in sys.meta_path:
            sys.meta_path.remove(self)
        try:
            if told is not None:
                told(module)
        except Exception:
            self._tell_failure()


def _attach(torch: ModuleType) -> None:
    from . import guest

    guest.attach()


def _watch_subprocess(subprocess: ModuleType) -> None:
    from .process import subprocess_entry

    subprocess_entry.watch(subprocess)


def enter(tell_failure: Callable[[], None]) -> None:
    """Called once at interpreter start. Does nothing unless a supervisor invited this process. `tell_failure`: called
    in an `except` clause, it tells the supervisor that the guest can't do its work."""
    if not os.environ.get(VARIABLE):
        return
    notebook_entry.install()
    tracebacks.hide_own_frames()
    _end_with_supervisor()
    parent_death.end_with_parent()
    wanted: Dict[str, Callable[[ModuleType], None]] = {"torch": _attach}
    try:
        from .files import guard

        if guard.install(json.loads(os.environ[VARIABLE])):
            wanted["safetensors._safetensors_rust"] = guard.watch_safetensors
    except Exception:
        tell_failure()
    if "subprocess" in sys.modules:
        _watch_subprocess(sys.modules["subprocess"])
    else:
        wanted["subprocess"] = _watch_subprocess
    sys.meta_path.insert(0, _Finder(wanted, tell_failure))


def _end_with_supervisor() -> None:
    """Make the kernel end this process if the supervisor that started it is killed, and a rank if its launcher is.

    Linux only.
    """
    try:
        invitation = json.loads(os.environ[VARIABLE])
        if not invited_from_here(os.environ[VARIABLE]):
            return
        supervisor, parent = invitation.get("supervisor"), os.getppid()
        if supervisor == parent:
            os.environ[VARIABLE] = json.dumps({**invitation, "launcher": os.getpid()})
        rank = "RANK" in os.environ and parent == invitation.get("launcher")
        if supervisor == parent or rank:
            parent_death.end_with(parent)
    except (AttributeError, ValueError, OSError):
        pass
