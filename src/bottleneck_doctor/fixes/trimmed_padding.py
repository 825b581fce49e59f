"""`trimmed-padding`: end each batch where its longest row ends, in place of padding all rows to one length."""

from __future__ import annotations

from bottleneck_doctor.fixes._fix import Fix, NotApplicable, Offer
from bottleneck_doctor.knobs import trimmed_padding
from bottleneck_doctor.runtime.wire.messages import Found

LEAST_SHARE = 0.1
"""This part of a batch's places has to lie behind its longest row. Ours: computing takes at least as much less, and
with less than this the gain would hardly be told from noise."""


def propose(found: Found) -> Offer | NotApplicable:
    if not found.has_loader:
        return NotApplicable("no torch DataLoader feeds this loop")
    seen = trimmed_padding.seen(found)
    if seen is None:
        return NotApplicable("its batches have no attention mask that says what is padding")
    share, obstacle = seen.get("share"), seen.get("obstacle")
    if share == 0:
        return NotApplicable("already on: each batch ends where its longest row ends")
    if not isinstance(share, float) or share < LEAST_SHARE:
        return NotApplicable("its batches hardly go on behind their longest row")
    if obstacle:
        return NotApplicable(str(obstacle))
    return Offer(({trimmed_padding.NAME: True},))


FIX = Fix(
    id="trimmed-padding",
    title="Pad to the longest row of each batch",
    why=(
        "Where all rows are padded to one fixed length, the model computes on columns that hold padding alone. Cut to "
        "its longest row, a batch holds the same rows and takes less time."
    ),
    source="https://huggingface.co/docs/transformers/pad_truncation",
    risk="numerics",
    how=(
        "Cut batches to their longest row in the loader's `collate_fn`. In transformers, call the tokenizer without "
        '`padding="max_length"`, and give the `Trainer` `data_collator=DataCollatorWithPadding(tokenizer)`.'
    ),
    target="compute",
    propose=propose,
    order=14,
    acts_on=("forward", "backward"),
)
