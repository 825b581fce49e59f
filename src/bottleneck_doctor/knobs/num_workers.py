"""`num_workers`: how many processes make batches.

A number of workers is more than a value: it has a curve, a best and a queue. Who deals in such numbers gets them here,
and turns them into settings here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from bottleneck_doctor.documents.report import Setting, SettingValue
from bottleneck_doctor.knobs._edits import Callback, LoaderArgument
from bottleneck_doctor.knobs._spec import KnobSpec, Loading
from bottleneck_doctor.runtime.wire.messages import Found

NEED_WORKERS: Mapping[str, object] = {
    "prefetch_factor": None,
    "persistent_workers": False,
    "timeout": 0,
    "multiprocessing_context": None,
}
"""Arguments that the DataLoader refuses, or that are pointless, with no workers; each with the value that it takes."""


def _without(value: SettingValue) -> Mapping[str, object]:
    return NEED_WORKERS if value == 0 else {}


def _given(found: Found) -> Mapping[str, object]:
    # A loader with workers has a `prefetch_factor` whether or not it was given one.
    context = found.start_method if found.own_start_method else None
    return {
        "persistent_workers": found.persistent_workers,
        "timeout": found.timeout,
        "multiprocessing_context": context,
    }


def _own(found: Found) -> int | None:
    return found.num_workers if found.has_loader else None


def _of_ultralytics(value: SettingValue, found: Found) -> Callback | None:
    # On a CPU, it takes no workers, whatever its `workers=` says.
    if value == 0 or not found.device.startswith("cpu"):
        return None
    return Callback("on_pretrain_routine_start", f'setattr(trainer.args, "workers", {value})')


def _loads(loading: Loading, value: SettingValue) -> Loading:
    return replace(loading, workers=int(value))


KNOB = KnobSpec(
    name="num_workers",
    layer="loader",
    edit=LoaderArgument(10, _without, _given),
    only_loads=True,
    own=_own,
    of_ultralytics=_of_ultralytics,
    loads=_loads,
    shares_cores=True,
)


def setting_of(count: int) -> Setting:
    """The setting that changes the number of workers to `count`, and nothing else."""
    return {KNOB.name: count}


def asked(setting: Setting) -> int | None:
    """The number of workers that a setting asks for; None where it leaves the user's own."""
    count = setting.get(KNOB.name)
    return None if count is None else int(count)


def under(setting: Setting, own: int) -> int:
    """The number of workers under a setting, where the user has `own`."""
    count = asked(setting)
    return own if count is None else count


def alone(setting: Setting) -> int | None:
    """The number of workers that a setting asks for, where it asks for nothing else; None for any other setting."""
    return asked(setting) if len(setting) == 1 else None
