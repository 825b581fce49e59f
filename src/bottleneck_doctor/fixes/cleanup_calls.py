"""`cleanup-calls`: train without `gc.collect()` and `empty_cache()` in every step."""

from __future__ import annotations

from bottleneck_doctor.fixes._fix import Fix, NotApplicable, Offer
from bottleneck_doctor.knobs import cleanup_calls
from bottleneck_doctor.runtime.wire.messages import Found


def propose(found: Found) -> Offer | NotApplicable:
    if not cleanup_calls.calls(found):
        return NotApplicable("no line of the script called `gc.collect()` or `empty_cache()` in the steps watched")
    return Offer(({cleanup_calls.NAME: False},))


FIX = Fix(
    id="cleanup-calls",
    title="Train without clean-up calls in the steps",
    why=(
        "`gc.collect()` walks every object that the process has, and after `torch.cuda.empty_cache()` the next step "
        "asks the driver for the same memory again, which waits for the device."
    ),
    source="https://pytorch.org/docs/stable/notes/cuda.html#memory-management",
    risk="identical",
    how=(
        "Take `gc.collect()` and `torch.cuda.empty_cache()` out of the training loop; call them between epochs, or "
        "where memory really runs short. In transformers' Trainer leave `torch_empty_cache_steps` out."
    ),
    target="compute",
    propose=propose,
    order=44,
)
