"""`attention_weights`: whether `nn.MultiheadAttention` returns its attention weights where nothing of the user's reads
them. Without them, torch computes attention in one kernel, which need not keep them."""

from __future__ import annotations

from collections.abc import Sequence

from bottleneck_doctor.knobs._edits import GivenArgument
from bottleneck_doctor.knobs._spec import KnobSpec, told_calls
from bottleneck_doctor.runtime.wire.messages import Found, Site

NAME = "attention_weights"


def calls(found: Found) -> Sequence[tuple[str, Site]]:
    """The calls whose weights nothing reads: by what name, and where."""
    return told_calls(found, NAME)


KNOB = KnobSpec(
    name=NAME,
    layer="process",
    edit=GivenArgument("need_weights", False, position=4, calls=calls),
)
