"""`allocator`: what gives the process its memory, and whether it goes back to the kernel at every step."""

from __future__ import annotations

import ctypes.util
from collections.abc import Mapping

from bottleneck_doctor.documents.report import Setting, SettingValue
from bottleneck_doctor.knobs._edits import Variables
from bottleneck_doctor.knobs._spec import KnobSpec

NAME = "allocator"
KEEPS = "glibc-keeps"
"""glibc's own, which keeps large buffers (mallopt(3))."""
KEEPING: Mapping[str, str] = {
    "MALLOC_MMAP_THRESHOLD_": str(1 << 30),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 40),
    "MALLOC_TOP_PAD_": str(64 << 20),
}
"""Large buffers come from the heap, and the heap never shrinks. A step that asks for what the last one gave back finds
it there, and the kernel has no pages to clear."""
LIBRARIES = {"jemalloc": "jemalloc", "tcmalloc": "tcmalloc_minimal"}
"""Other allocators by their name here, with that of their library."""


def variables(value: SettingValue) -> Mapping[str, str]:
    """What is set around a process for a value; nothing for one that is not known here."""
    if value == KEEPS:
        return KEEPING
    library = installed(str(value))
    return {"LD_PRELOAD": library} if library is not None else {}


def kept(setting: Setting) -> Setting:
    """The setting, in a process that keeps large buffers."""
    return {**setting, NAME: KEEPS}


def installed(name: str) -> str | None:
    """The library of another allocator, as the loader finds it; None where there is none."""
    return ctypes.util.find_library(LIBRARIES[name]) if name in LIBRARIES else None


def chosen(environment: Mapping[str, str]) -> str:
    """What the user's variables say of it, "" where they say nothing."""
    named = next((name for name in KEEPING if name in environment), "")
    preloaded = environment.get("LD_PRELOAD", "")
    return named or next((name for name in LIBRARIES if name in preloaded), "")


KNOB = KnobSpec(name=NAME, layer="session", edit=Variables(variables))
