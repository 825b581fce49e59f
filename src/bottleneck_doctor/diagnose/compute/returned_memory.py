"""`returned-memory`: memory of large tensors goes back to the kernel at every step, and is cleared when it is asked for
again."""

from __future__ import annotations

from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._rule import LARGE, ROOT, Rule, Statement
from bottleneck_doctor.diagnose._worth import measured_gain, surely_lost
from bottleneck_doctor.knobs import kept_memory
from bottleneck_doctor.measure import kernel_time
from bottleneck_doctor.wording import words

PAGE = 4096
"""Bytes of a page as Linux counts them on most machines."""


def judge(evidence: Evidence) -> Statement | None:
    gain = measured_gain(evidence, kept_memory.alone)
    lost = surely_lost(gain)
    if gain is None or lost < LARGE:
        return None
    told, pages = kernel_time.of(evidence.windows), kernel_time.pages_a_step(evidence.windows)
    size = words.bytes_text(pages * PAGE) if pages else "memory"
    busy = "" if told is None else f", which takes {words.share_text(told.share)} of the processor's time"
    figures = {"lost_share": lost, "speedup": gain.estimate, "pages_a_step": pages or 0.0}
    return Statement(
        sentence=(
            "Memory of large tensors goes back to the system when they are freed. So each step asks for "
            f"{size} anew{busy}. Where memory is kept, training is {words.speedup_text(gain)} as fast."
        ),
        figures=figures if told is None else {**figures, "kernel_share": told.share},
        weight=lost * evidence.in_steps,
        measured=False,
        clause=f"loses {words.share_text(lost)} of the time or more to memory that it gives back and asks for again",
    )


RULE = Rule(
    id="returned-memory",
    title="Memory is given back and asked for again",
    topic="host",
    depth=ROOT,
    needs=("phases",),
    judge=judge,
    source="https://man7.org/linux/man-pages/man3/mallopt.3.html",
    advice="Set `MALLOC_MMAP_THRESHOLD_`, `MALLOC_TRIM_THRESHOLD_` and `MALLOC_TOP_PAD_` before the command that "
    "starts the training. The process then keeps as much memory as it ever needed.",
    fixes=("allocator",),
    contradicts=("compute-bound",),
)
