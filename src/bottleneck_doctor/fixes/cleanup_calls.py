"""`cleanup-calls`: train without `gc.collect()` and `empty_cache()` in every step."""

from __future__ import annotations

from bottleneck_doctor.fixes._fix import Fix, NotApplicable, Offer
from bottleneck_doctor.knobs import cleanup_calls
from bottleneck_doctor.runtime.wire.messages import Found


def propose(found: Found) -> Offer | NotApplicable:
    if not cleanup_calls.calls(found):
        return NotApplicable("no line of the script called `gc.collect()` or `empty_cache()` in the watched steps")
    return Offer(({cleanup_calls.NAME: False},))


FIX = Fix(
    id="cleanup-calls",
    title="Train without clean-up calls in the steps",
    why=(
        "`gc.collect()` goes through every object of the process. After `torch.cuda.empty_cache()`, the next step asks "
        "the driver for the same memory again, and that waits for the device."
    ),
    source="https://pytorch.org/docs/stable/notes/cuda.html#memory-management",
    risk="identical",
    how=(
        "Remove `gc.collect()` and `torch.cuda.empty_cache()` from the training loop. Call them between epochs, or "
        "where memory really runs short. In transformers' Trainer, leave out `torch_empty_cache_steps`."
    ),
    target="compute",
    propose=propose,
    order=44,
)
