"""`batch-size`: batches of twice and four times as many samples."""

from __future__ import annotations

from bottleneck_doctor.fixes._fix import Fix, NotApplicable, Offer, knob_obstacle
from bottleneck_doctor.knobs import batch_size
from bottleneck_doctor.runtime.wire.messages import Found

TIMES = (2, 4)


def propose(found: Found) -> Offer | NotApplicable:
    if not found.has_loader:
        return NotApplicable("no torch DataLoader feeds this loop")
    obstacle = knob_obstacle(found, batch_size.NAME)
    if obstacle is not None:
        return obstacle
    if not found.batch_size:
        return NotApplicable("how many samples a batch of this loader has could not be seen")
    return Offer(tuple({batch_size.NAME: times * found.batch_size} for times in TIMES))


FIX = Fix(
    id="batch-size",
    title="Train on larger batches",
    why=(
        "What a step costs besides computing is shared by more samples, and large operations use a device or a "
        "processor better than small ones. A step takes more memory."
    ),
    source="https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
    risk="semantics",
    how=(
        "Pass a larger `batch_size` to the DataLoader, and tune the learning rate again: there are fewer steps in an "
        "epoch. In transformers, `TrainingArguments(per_device_train_batch_size=...)`."
    ),
    target="compute",
    propose=propose,
    on_request="larger batches change the training itself, so they are tried if `--only batch-size` asks for them",
    order=70,
)
