"""The knobs, as the supervisor knows them: one file a knob, found by its place in this folder.

To add a knob, add a file that defines `KNOB` here and its counterpart, which changes things, in `runtime/knobs/`. Who
has to treat settings differently asks these functions, or a function of the knob's own file, and never for its name.
Names that are not known, as a report of another release may hold them, are passed over.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import lru_cache

from bottleneck_doctor.documents.report import Preparation, Setting, SettingValue
from bottleneck_doctor.knobs._edits import (
    Argument,
    AttentionCall,
    AutocastBlock,
    BeforeLoop,
    Call,
    Callback,
    CopiedAhead,
    GivenArgument,
    GroupedRows,
    HeldPlace,
    HeldTransforms,
    KeptInputs,
    ListedSamples,
    LoaderArgument,
    Made,
    MemoryFormat,
    OfModel,
    OwnFunction,
    RecordedValues,
    ReducedPictures,
    Removal,
    SmallerPictures,
    Switch,
    Transformed,
    TransformedBatches,
    TrimmedBatches,
    Uncompiled,
    Variables,
    WholeBatches,
)
from bottleneck_doctor.knobs._spec import LAYERS, KnobSpec, Layer, Loading
from bottleneck_doctor.runtime.wire.messages import Found


@lru_cache
def all_knobs() -> tuple[KnobSpec, ...]:
    """Every knob, by layer and name."""
    names = [module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_")]
    knobs: list[KnobSpec] = [importlib.import_module(f"{__name__}.{name}").KNOB for name in names]
    return tuple(sorted(knobs, key=lambda knob: (LAYERS.index(knob.layer), knob.name)))


@lru_cache
def _by_name() -> dict[str, KnobSpec]:
    return {knob.name: knob for knob in all_knobs()}


def knob(name: str) -> KnobSpec | None:
    """The knob of this name; None where it is not known."""
    return _by_name().get(name)


def knobs_of(setting: Setting) -> list[KnobSpec]:
    """The knobs that a setting gives values for, in the order of `all_knobs`."""
    return [each for each in all_knobs() if each.name in setting]


def of_layer(setting: Setting, layer: Layer) -> Setting:
    """The part of a setting that acts in `layer`."""
    return {each.name: setting[each.name] for each in knobs_of(setting) if each.layer == layer}


def by_variables(setting: Setting) -> Setting:
    """The part of a setting that a user brings about by variables around the process, and by no line of the program."""
    return {each.name: setting[each.name] for each in knobs_of(setting) if isinstance(each.edit, Variables)}


def is_by_variables(setting: Setting) -> bool:
    """Whether variables around the process bring about all of a setting that changes something."""
    return bool(setting) and by_variables(setting) == setting


def variables(setting: Setting) -> dict[str, str]:
    """What is set around a process so that it starts under a setting."""
    found: dict[str, str] = {}
    for each in knobs_of(setting):
        if isinstance(each.edit, Variables):
            found |= each.edit.of(setting[each.name])
    return found


def settling(setting: Setting) -> Setting:
    """The part of a setting under which the first steps of a process are slower than those that follow."""
    return {each.name: setting[each.name] for each in knobs_of(setting) if each.needs_settling}


def first_step_seconds(setting: Setting) -> float:
    """Seconds that the first step of a process under this setting may take beyond what others take."""
    return sum(each.first_step_seconds for each in knobs_of(setting))


def usual_first_step_seconds(setting: Setting) -> float:
    """Seconds that it usually takes beyond what others take, to plan with."""
    return sum(each.usual_first_step_seconds for each in knobs_of(setting))


def is_dear(setting: Setting) -> bool:
    """Whether its first window in a process takes much longer than others."""
    return usual_first_step_seconds(setting) > 0


def may_crash(setting: Setting) -> bool:
    """Whether a process that dies under this setting died of it."""
    return any(each.may_crash for each in knobs_of(setting))


def needs_workers(setting: Setting) -> bool:
    """Whether a part of the setting means nothing without workers."""
    return any(each.needs_workers for each in knobs_of(setting))


def clash(setting: Setting) -> bool:
    """Whether a part of the setting has nothing to do beside another part of it."""
    return any(name in setting for each in knobs_of(setting) for name in each.idle_beside)


def in_part(setting: Setting) -> bool:
    """Whether windows under the setting train on a part of the data."""
    return any(each.in_part and setting[each.name] for each in knobs_of(setting))


def shares_cores(setting: Setting) -> bool:
    """Whether what the setting is worth depends on how many cores other programs leave to the training."""
    return any(each.shares_cores for each in knobs_of(setting))


def only_loads(setting: Setting) -> bool:
    """Whether the setting changes nothing but how fast batches are made. So does the empty one."""
    return all(each is not None and each.only_loads for each in map(knob, setting))


def shrinking(setting: Setting) -> Setting:
    """The part of a setting that makes tensors smaller."""
    return {each.name: setting[each.name] for each in knobs_of(setting) if each.shrinks}


def of_collector(setting: Setting) -> Setting:
    """The part of a setting that changes when Python's garbage collector runs, or what it goes through."""
    return {each.name: setting[each.name] for each in knobs_of(setting) if each.collects}


def resizes(setting: Setting) -> bool:
    """Whether batches of other sizes are what the setting is tried for."""
    return any(each.resizes and setting[each.name] for each in knobs_of(setting))


def switched(setting: Setting) -> Setting:
    """The part of a setting that windows of one process switch; all of it where a process has to be started with it."""
    started = of_layer(setting, "session")
    return {name: value for name, value in setting.items() if name not in started} or setting


def is_ceiling(setting: Setting) -> bool:
    """Whether the setting shows what could be, and is none that a user could choose."""
    return any(each.ceiling and setting[each.name] for each in knobs_of(setting))


def loading(setting: Setting, own: Loading) -> Loading:
    """How batches are made under a setting, where they are made as `own` says without it."""
    for each in knobs_of(setting):
        own = each.loads(own, setting[each.name])
    return own


def preparation(setting: Setting, found: Found) -> Preparation | None:
    """What a setting does once before training begins; None where it does nothing."""
    return next(filter(None, (each.prepares(found) for each in knobs_of(setting) if setting[each.name])), None)


def code(name: str, value: SettingValue, device: str) -> str | None:
    """What a user writes for a value outside of the DataLoader's arguments; None where it is one of those. `device` as
    in a `Baseline` (`cuda:0`), "" where it is not known."""
    each = knob(name)
    return None if each is None or each.edit is None else each.edit.code(value, device)


def called(name: str, value: SettingValue, device: str) -> str | None:
    """What a sentence calls a value: as `code`, but in short where several variables are set."""
    each = knob(name)
    if each is not None and isinstance(each.edit, Variables):
        return each.edit.called(value)
    return code(name, value, device)


def own_settings(found: Found) -> Setting:
    """The user's own values, as far as they are known."""
    own = {each.name: each.own(found) for each in all_knobs()}
    return {name: value for name, value in own.items() if value is not None}


__all__ = [
    "Argument",
    "AttentionCall",
    "AutocastBlock",
    "BeforeLoop",
    "Call",
    "Callback",
    "CopiedAhead",
    "GivenArgument",
    "GroupedRows",
    "HeldPlace",
    "HeldTransforms",
    "KeptInputs",
    "KnobSpec",
    "Layer",
    "ListedSamples",
    "LoaderArgument",
    "Loading",
    "Made",
    "MemoryFormat",
    "OfModel",
    "OwnFunction",
    "RecordedValues",
    "ReducedPictures",
    "Removal",
    "SmallerPictures",
    "Switch",
    "Transformed",
    "TransformedBatches",
    "TrimmedBatches",
    "Uncompiled",
    "Variables",
    "WholeBatches",
]
