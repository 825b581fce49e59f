"""`grouped-lengths`: rows of similar length in one batch, in place of short rows that are padded beside long ones."""

from __future__ import annotations

from bottleneck_doctor.fixes._fix import Fix, NotApplicable, Offer, knob_obstacle
from bottleneck_doctor.knobs import grouped_lengths
from bottleneck_doctor.knobs._spec import told_obstacle
from bottleneck_doctor.runtime.wire.messages import Found


def propose(found: Found) -> Offer | NotApplicable:
    if not found.has_loader:
        return NotApplicable("no torch DataLoader feeds this loop")
    obstacle = knob_obstacle(found, grouped_lengths.NAME)
    if obstacle is not None:
        return obstacle
    reason = told_obstacle(found, grouped_lengths.NAME)  # None where nobody asked for it: then no row is looked at.
    return NotApplicable(reason) if reason else Offer(({grouped_lengths.NAME: True},))


FIX = Fix(
    id="grouped-lengths",
    title="Put rows of similar length into one batch",
    why=(
        "A batch is as long as its longest row, and the model computes on the padding behind all others. Among rows of "
        "similar length, there is hardly any."
    ),
    source="https://huggingface.co/docs/transformers/main_classes/trainer",
    risk="semantics",
    how=(
        "Sort some batches' rows by their length, make batches of rows that are neighbours then, and shuffle the "
        "batches: a `batch_sampler` for the DataLoader. In transformers, "
        '`TrainingArguments(train_sampling_strategy="group_by_length")`, and before version 5 `group_by_length=True`.'
    ),
    target="compute",
    propose=propose,
    on_request=(
        "it changes which rows come together, and so the training itself; it is tried if `--only grouped-lengths` asks "
        "for it"
    ),
    order=71,
    acts_on=("forward", "backward"),
)
