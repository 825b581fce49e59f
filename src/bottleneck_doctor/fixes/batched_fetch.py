"""`batched-fetch`: take whole batches out of a dataset in memory, in place of row by row."""

from __future__ import annotations

from bottleneck_doctor.fixes._fix import Fix, NotApplicable, Offer, knob_obstacle
from bottleneck_doctor.knobs import batched_fetch
from bottleneck_doctor.runtime.wire.messages import Found


def propose(found: Found) -> Offer | NotApplicable:
    if not found.has_loader:
        return NotApplicable("no torch DataLoader feeds this loop")
    return knob_obstacle(found, batched_fetch.NAME) or Offer(({batched_fetch.NAME: True},))


FIX = Fix(
    id="batched-fetch",
    title="Fetch whole batches at once",
    why=(
        "A dataset of tensors or arrays can return a whole batch for a list of indices. Row by row, it is called once "
        "for each sample, and the collate function has to stack all the small tensors."
    ),
    source="https://pytorch.org/docs/stable/data.html#disable-automatic-batching",
    risk="identical",
    how=(
        "`DataLoader(dataset, sampler=BatchSampler(RandomSampler(dataset), batch_size=64, drop_last=False), "
        "batch_size=None)` for one with `batch_size=64, shuffle=True`; `SequentialSampler` without `shuffle`. "
        "In Lightning, return that loader from `train_dataloader`; in transformers, from `get_train_dataloader`."
    ),
    target="data",
    propose=propose,
    order=12,
)
