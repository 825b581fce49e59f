"""`quick_dropout`: whether dropout on the CPU draws 16 random bits for each value, in place of torch's 64; as
`attention`, that inside of `scaled_dot_product_attention`, too."""

from __future__ import annotations

from bottleneck_doctor.documents.report import SettingValue
from bottleneck_doctor.knobs._edits import OwnFunction
from bottleneck_doctor.knobs._spec import KnobSpec, told
from bottleneck_doctor.runtime.wire.messages import Found

NAME = "quick_dropout"
FUNCTION = '''\
def quick_dropout(input, p=0.5, training=True, inplace=False, dropout=torch.nn.functional.dropout):
    """Draw 16 random bits for each value: torch draws 64, one value after the other."""
    if not training or not 0 < p < 1 or input.device.type != "cpu" or input.numel() < 4096:
        return dropout(input, p, training, inplace)
    bits = torch.empty(input.numel() // 4 + 1, dtype=torch.int64).random_(-(2**63), None).view(torch.int16)
    keep = bits[: input.numel()].view(input.shape) >= min(round(p * 65536), 65535) - 32768
    mask = keep.to(input.dtype).div_(1 - p)
    return input.mul_(mask) if inplace else input * mask
'''
ATTENTION = "attention"
"""The value under which attention drops so, too."""
OF_ATTENTION = (
    '''\
def quick_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None,
                    attention=torch.nn.functional.scaled_dot_product_attention, **more):
    """Attention in single steps, as torch computes it on a CPU where it drops, with quick dropout."""
    if not 0 < dropout_p < 1 or query.device.type != "cpu" or query.is_nested or more:
        return attention(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, **more)
    scores = query @ key.transpose(-2, -1) * (query.size(-1) ** -0.5 if scale is None else scale)
    least = torch.finfo(scores.dtype).min
    if is_causal:
        attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    if attn_mask is not None and attn_mask.dtype is torch.bool:
        scores = scores.masked_fill(~attn_mask, least)
    elif attn_mask is not None:
        scores = (scores + attn_mask.to(scores.dtype)).clamp_min(least)
    return torch.nn.functional.dropout(scores.softmax(-1), dropout_p) @ value
''',
    "torch.nn.functional.scaled_dot_product_attention = quick_attention",
)


def _of_attention(value: SettingValue) -> tuple[str, ...]:
    return OF_ATTENTION if value == ATTENTION else ()


KNOB = KnobSpec(
    name=NAME,
    layer="process",
    edit=OwnFunction(NAME, FUNCTION, "torch.nn.functional.dropout = quick_dropout", _of_attention),
)


def of_attention(found: Found) -> bool:
    """Whether the model may drop inside of torch's attention."""
    return bool((told(found, NAME) or {}).get("attention"))
