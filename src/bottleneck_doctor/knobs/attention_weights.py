"""`attention_weights`: whether `nn.MultiheadAttention` returns its attention weights where nothing of the user's reads
them. Without them, torch computes attention in one kernel, which need not keep them."""

from __future__ import annotations

from collections.abc import Sequence

from bottleneck_doctor.knobs._edits import GivenArgument
from bottleneck_doctor.knobs._spec import KnobSpec, told
from bottleneck_doctor.runtime.wire.messages import Found, Site

NAME = "attention_weights"


def calls(found: Found) -> Sequence[tuple[str, Site]]:
    """The calls whose weights nothing reads: by what name, and where."""
    seen = (told(found, NAME) or {}).get("calls")
    kept = []
    for each in seen if isinstance(seen, list) else ():
        match each:
            case [str(name), str(file), int(line)]:
                kept.append((name, Site(file=file, line=line)))
    return kept


KNOB = KnobSpec(
    name=NAME,
    layer="process",
    edit=GivenArgument("need_weights", False, position=4, calls=calls),
)
