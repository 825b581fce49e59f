"""Whether evaluations keep what only a backward pass would need, and what is said of that."""

from __future__ import annotations

from bottleneck_doctor.diagnose._evidence import SEEN_OFTEN
from bottleneck_doctor.documents.report import EpochPause, Interruption, StepTimes

KEPT = " The evaluation keeps what a backward pass would need, and none comes."
WITHOUT_GRADIENTS = (
    "Evaluate under `with torch.inference_mode():`. This saves memory, and the time that keeping intermediate results "
    "takes."
)


def keeps_graphs(seen: EpochPause | Interruption | StepTimes) -> bool:
    """Whether all of the model's passes that were looked at kept it, and more than one was."""
    return seen.passes >= SEEN_OFTEN and seen.with_graph == seen.passes
