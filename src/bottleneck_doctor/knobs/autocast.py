"""`autocast`: forward pass and loss in bfloat16 or float16. Kernels are picked for a type as it is met first, and some
operations have none: a process that ends there ends for that."""

from __future__ import annotations

from collections.abc import Mapping

from bottleneck_doctor.documents.report import SettingValue
from bottleneck_doctor.knobs._edits import AutocastBlock, Callback
from bottleneck_doctor.knobs._spec import KnobSpec, told
from bottleneck_doctor.runtime.wire.messages import Found

NAME = "autocast"


def _own(found: Found) -> str | None:
    return found.autocast or None


def _of_trainer(value: SettingValue, found: Found) -> Mapping[str, object]:
    if value != "bfloat16":
        return {"fp16": True}
    # It refuses bfloat16 on a CPU, unless it was told to train there.
    return {"bf16": True, "use_cpu": True} if found.device.startswith("cpu") else {"bf16": True}


def _of_ultralytics(value: SettingValue, found: Found) -> Callback | None:
    # On a GPU, its own `amp=` does that.
    if not found.device.startswith("cpu"):
        return None
    forward = f"{AutocastBlock().code(value, found.device)}(trainer.model.forward)"
    return Callback("on_train_start", f'setattr(trainer.model, "forward", {forward})')


def is_slow(found: Found) -> bool:
    """Whether torch has no fast kernels for bfloat16 where the model is."""
    return (told(found, NAME) or {}).get("slow_bfloat16") is True


KNOB = KnobSpec(
    name=NAME,
    layer="process",
    edit=AutocastBlock(),
    options=(
        "amp",
        "amp-dtype",
        "autocast",
        "bf16",
        "fp16",
        "half-precision",
        "mixed-precision",
        "precision",
        "use-amp",
    ),
    needs_settling=True,
    may_crash=True,
    shrinks=True,
    own=_own,
    of_trainer=_of_trainer,
    of_ultralytics=_of_ultralytics,
)
