"""Lets the guest enter Python processes that the user's program starts with a PYTHONPATH of its own.

The guest enters by PYTHONPATH. A program that sets another value for the processes that it starts would keep the guest
out of the process that trains. So if the invitation is in their environment but the entry folder is not, the folder is
put first again, in a copy of the environment: the program's own dictionary and its `os.environ` stay as they are.
"""

from __future__ import annotations

import functools
import os
from types import ModuleType
from typing import Any, Dict, Optional

from ..wire.channel import VARIABLE
from .user_code import OWN_FOLDER

ENTRY = os.path.join(OWN_FOLDER, "entry")
_NAME = "PYTHONPATH"


def watch(subprocess: ModuleType) -> None:
    """Patch `subprocess.Popen`, through which the whole module starts its programs, in place."""
    popen: Any = subprocess.Popen
    original = popen.__init__
    names = getattr(getattr(original, "__code__", None), "co_varnames", ())
    if "env" not in names:  # Somebody's own.
        return
    position = names.index("env") - 1  # Without `self`.

    @functools.wraps(original)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        given = args[position] if len(args) > position else kwargs.get("env")
        mended = with_entry(given)
        if mended is not None:
            if len(args) > position:
                args = (*args[:position], mended, *args[position + 1 :])
            else:
                kwargs = {**kwargs, "env": mended}
        original(self, *args, **kwargs)

    popen.__init__ = init


def with_entry(given: Any) -> Optional[Dict[str, str]]:
    """The environment that a process should get instead of the one `given` (None: this process's own). Returns None if
    the given one is right."""
    try:
        environment = os.environ if given is None else given
        if not environment.get(VARIABLE):
            return None  # Not invited, as where a program starts from an empty environment on purpose.
        path = environment.get(_NAME) or ""
        if any(os.path.abspath(each) == ENTRY for each in path.split(os.pathsep) if each):
            return None
        return {**environment, _NAME: os.pathsep.join(each for each in (ENTRY, path) if each)}
    except Exception:  # An environment unlike any: theirs to see what comes of it.
        return None
