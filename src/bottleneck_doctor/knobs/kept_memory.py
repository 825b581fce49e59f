"""`kept_memory`: whether glibc's allocator keeps large blocks of memory, switched while a program trains. A user sets
the same variables as for `allocator`."""

from __future__ import annotations

from collections.abc import Mapping

from bottleneck_doctor.documents.report import Setting, SettingValue
from bottleneck_doctor.knobs import allocator
from bottleneck_doctor.knobs._edits import Variables
from bottleneck_doctor.knobs._spec import KnobSpec, told_obstacle
from bottleneck_doctor.runtime.wire.messages import Found

NAME = "kept_memory"
SETTING: Setting = {NAME: True}


def variables(value: SettingValue) -> Mapping[str, str]:
    """What is set around a process for a value."""
    return allocator.KEEPING if value else {}


def alone(setting: Setting) -> bool:
    """Whether a setting keeps memory, in a window or by variables, and changes nothing else."""
    return setting in (SETTING, allocator.kept({}))


def is_part(setting: Setting) -> bool:
    """Whether a setting says what becomes of memory, whatever else it changes."""
    return NAME in setting or allocator.NAME in setting


def obstacle(found: Found) -> str | None:
    """Why it can't be switched while this program trains, "" where it can; None where the guest has not looked."""
    return told_obstacle(found, NAME)


KNOB = KnobSpec(name=NAME, layer="process", edit=Variables(variables))
