"""`double-precision`: the model computes in float64."""

from __future__ import annotations

from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._rule import CAUSE, MATTERS, Rule, Statement
from bottleneck_doctor.knobs import float32_precision
from bottleneck_doctor.wording import words

MOSTLY = 0.5
"""Part of the model's weights. A few in float64 are wanted as such, as those of a last layer or of a running mean."""
SAVES = 0.5
"""Part of the passes' time that counts as saved: a register holds twice as many float32 numbers, and they are half as
large to move. Most GPUs gain far more (CUDA C++ Programming Guide, Arithmetic Instructions)."""


def judge(evidence: Evidence) -> Statement | None:
    double = float32_precision.in_float64(evidence.found)
    shares = evidence.shares
    if double is None or shares is None or double < MOSTLY:
        return None
    passes = (shares.forward + shares.backward) * evidence.in_steps
    if passes * SAVES < MATTERS:
        return None
    return Statement(
        sentence=(
            f"{words.share_text(double)} of the model's weights are in double precision (`torch.float64`), and forward "
            f"and backward take {words.share_text(passes)} of the time. In single precision, a processor computes "
            "twice as many numbers at once, and most GPUs far more."
        ),
        figures={"double_share": double, "passes_share": passes},
        weight=passes * SAVES,
        measured=False,
        clause="computes in double precision",
    )


RULE = Rule(
    id="double-precision",
    title="The model computes in double precision",
    topic="rest",
    depth=CAUSE,
    needs=("phases",),
    judge=judge,
    fixes=("single-precision",),
    source="https://docs.nvidia.com/cuda/cuda-c-programming-guide/#arithmetic-instructions",
    advice="Train in `torch.float32`, unless your problem needs more digits: leave out `.double()` and "
    "`torch.set_default_dtype(torch.float64)`, and make tensors of NumPy's arrays with "
    "`torch.from_numpy(array).float()`, because these are float64 by default. Compare the loss.",
)
