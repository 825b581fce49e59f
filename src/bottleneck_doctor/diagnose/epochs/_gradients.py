"""Whether evaluations keep what only a backward pass would need, and what is said of that."""

from __future__ import annotations

from bottleneck_doctor.diagnose._evidence import SEEN_OFTEN
from bottleneck_doctor.documents.report import EpochPause, Interruption, StepTimes

_KEPT = " The evaluation keeps what a backward pass would need, and none comes."
_WITHOUT = (
    "Evaluate under `with torch.inference_mode():`. This saves memory, and the time that keeping intermediate results "
    "takes."
)


def gradients_kept(seen: EpochPause | Interruption | StepTimes) -> tuple[str, str]:
    """What a finding says of it behind its sentence and before its advice, where all of the model's passes that were
    looked at kept it, and more than one was; "" each elsewhere."""
    kept = seen.passes >= SEEN_OFTEN and seen.with_graph == seen.passes
    return (_KEPT, f"{_WITHOUT} ") if kept else ("", "")
