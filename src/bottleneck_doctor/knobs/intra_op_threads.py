"""`intra_op_threads`: threads that one operation is spread over in the main process."""

from __future__ import annotations

from bottleneck_doctor.documents.report import Setting, SettingValue
from bottleneck_doctor.knobs._edits import Call, Callback
from bottleneck_doctor.knobs._spec import KnobSpec, place_told, set_by_a_library
from bottleneck_doctor.runtime.wire.messages import Found, Site

NAME = "intra_op_threads"
CALL = Call("torch.set_num_threads({value})", overruled_by=set_by_a_library(NAME))


def _of_ultralytics(value: SettingValue, found: Found) -> Callback | None:
    # It sets the number itself, before training begins.
    return None if CALL.overruled_by(found) is None else Callback("on_train_start", CALL.text.format(value=value))


KNOB = KnobSpec(
    name=NAME,
    layer="process",
    edit=CALL,
    of_ultralytics=_of_ultralytics,
    shares_cores=True,
)


def alone(setting: Setting) -> int | None:
    """The number of threads that a setting asks for, where it asks for nothing else; None for any other setting."""
    return int(setting[NAME]) if setting.keys() == {NAME} else None


def set_by(found: Found) -> Site | None:
    """The line of a library that set the number last; None where none did."""
    return CALL.overruled_by(found)


def set_at(found: Found) -> Site | None:
    """The user's line that set the number last; None where none of theirs did."""
    return place_told(found, NAME, "written")
