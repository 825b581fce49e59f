"""`float32-precision`: products of float32 matrices in TensorFloat32 on a GPU, in bfloat16 on a CPU with AMX."""

from __future__ import annotations

from bottleneck_doctor.documents.report import Setting
from bottleneck_doctor.fixes._fix import Fix, NotApplicable, Offer
from bottleneck_doctor.knobs import cudnn_allow_tf32, float32_precision
from bottleneck_doctor.runtime.wire.messages import Found

ORDER = ("highest", "high", "medium")
"""Precisions as torch calls them, each computed in fewer bits than the one before."""


def propose(found: Found) -> Offer | NotApplicable:
    facts = found.facts.get(float32_precision.NAME)
    if facts is None:
        return NotApplicable("the precision of float32 products could not be read")
    if found.autocast:
        return NotApplicable(f"already on: the forward pass runs under autocast ({found.autocast})")
    levels = facts["levels"]
    if not levels:
        units = "TensorFloat32 (compute capability 8.0 and above)" if _on_gpu(found) else "bfloat16 or TensorFloat32"
        return NotApplicable(f"the {_place(found)} has no units with which torch could multiply in {units}")
    if facts["contradictory"]:
        return NotApplicable("the script itself sets the precision of one backend, with `fp32_precision`")
    own = str(float32_precision.KNOB.own(found) or ORDER[0])
    lower = [level for level in levels if ORDER.index(level) > ORDER.index(own)]
    extra: Setting = {cudnn_allow_tf32.NAME: True} if cudnn_allow_tf32.KNOB.own(found) is False else {}
    if not lower and not extra:
        return NotApplicable(f'already on: `torch.set_float32_matmul_precision("{own}")`')
    if not facts["matrices"] and not extra:
        return NotApplicable("no layer of the model multiplies float32 matrices")
    return Offer(tuple({float32_precision.NAME: level, **extra} for level in lower) or (extra,))


def _on_gpu(found: Found) -> bool:
    return found.device.startswith("cuda")


def _place(found: Found) -> str:
    return "GPU" if _on_gpu(found) else "processor" if found.device.startswith("cpu") else "device"


FIX = Fix(
    id="float32-precision",
    title="Multiply float32 matrices with less precision",
    why=(
        "GPUs since Ampere multiply float32 matrices several times as fast in TensorFloat32, and so do processors with "
        "AMX in bfloat16. torch uses neither unless you ask for it."
    ),
    source="https://docs.pytorch.org/docs/stable/generated/torch.set_float32_matmul_precision.html",
    risk="numerics",
    how=(
        'Call `torch.set_float32_matmul_precision("high")` before training begins (on a CPU `"medium"`), and leave '
        "`torch.backends.cudnn.allow_tf32` on."
    ),
    target="compute",
    propose=propose,
    order=50,
    device_order=39,
)
