"""`sync-points`: numbers that are only recorded are taken out of tensors once in many steps."""

from __future__ import annotations

from bottleneck_doctor.fixes._fix import Fix, NotApplicable, Offer, told_refusal
from bottleneck_doctor.knobs import late_values
from bottleneck_doctor.runtime.wire.messages import Found


def propose(found: Found) -> Offer | NotApplicable:
    if found.device.startswith("cpu"):
        return NotApplicable("on the CPU, a number of a tensor is there at once")
    unseen = "which numbers the training loop takes out of tensors could not be seen"
    return told_refusal(found, late_values.NAME, unseen) or Offer(({late_values.NAME: True},))


FIX = Fix(
    id="sync-points",
    title="Take numbers out of tensors once in many steps",
    why=(
        "`loss.item()` makes Python wait until the device has computed all that was asked of it, and the device then "
        "waits for Python. That costs nothing where the device is always busy. So it is measured: in some windows, "
        "such lines get the number of an earlier step. This is what the change is worth at most."
    ),
    source="https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#avoid-unnecessary-cpu-gpu-synchronization",
    risk="identical",
    how=(
        "Keep sums as tensors (`total += loss.detach()`), and call `.item()` after the loop or once in so many steps. "
        "In Lightning, pass tensors to `self.log`, and set `log_every_n_steps`; in transformers, `logging_steps`."
    ),
    target="compute",
    propose=propose,
    order=46,
)
