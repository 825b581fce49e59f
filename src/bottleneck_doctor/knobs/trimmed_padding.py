"""`trimmed_padding`: whether batches end where their longest row does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bottleneck_doctor.knobs._edits import TrimmedBatches
from bottleneck_doctor.knobs._spec import KnobSpec, told
from bottleneck_doctor.runtime.wire.messages import Found

NAME = "trimmed_padding"


def seen(found: Found) -> dict[str, Any] | None:
    """What the guest saw of this loop's batches; None where they have no attention mask."""
    return told(found, NAME)


def names(found: Found) -> Sequence[str]:
    """The tensors of a batch that are as long as its rows."""
    shown = seen(found) or {}
    return [each for each in shown.get("names", []) if isinstance(each, str)]


KNOB = KnobSpec(
    name=NAME,
    layer="loader",
    edit=TrimmedBatches("collate_fn=to_longest", names),
    resizes=True,
    may_crash=True,
)
