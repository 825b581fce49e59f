"""`fused_attention`: whether attention that the program writes out is computed by torch's one function for it."""

from __future__ import annotations

from collections.abc import Sequence

from bottleneck_doctor.knobs._edits import AttentionCall
from bottleneck_doctor.knobs._spec import KnobSpec, told
from bottleneck_doctor.runtime.wire.messages import Found, Site

NAME = "fused_attention"


def places(found: Found) -> Sequence[Site]:
    """The lines with the softmax of what looks like attention."""
    seen = (told(found, NAME) or {}).get("places")
    kept = []
    for each in seen if isinstance(seen, list) else ():
        match each:
            case [str(file), int(line)]:
                kept.append(Site(file=file, line=line))
    return kept


KNOB = KnobSpec(
    name=NAME,
    layer="process",
    may_crash=True,
    edit=AttentionCall(
        "F.scaled_dot_product_attention(q, k, v)",
        "put `torch.nn.functional.scaled_dot_product_attention(q, k, v)` in the place of the softmax here, of the "
        "product of queries and keys before it and of that with the values behind it, with the scale, mask and dropout "
        "that stand between them as `scale=`, `attn_mask=` (True keeps a place) and `dropout_p=`",
        places,
    ),
)
