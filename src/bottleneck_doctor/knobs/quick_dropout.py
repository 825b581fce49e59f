"""`quick_dropout`: whether dropout on the CPU draws 16 random bits for each value, in place of torch's 64."""

from __future__ import annotations

from bottleneck_doctor.knobs._edits import OwnFunction
from bottleneck_doctor.knobs._spec import KnobSpec

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

KNOB = KnobSpec(
    name=NAME,
    layer="process",
    edit=OwnFunction(NAME, FUNCTION, "torch.nn.functional.dropout = quick_dropout"),
)
