"""`cached-samples`: prepare each sample once, in place of once an epoch, where it is the same each time."""

from __future__ import annotations

from bottleneck_doctor.fixes._fix import Fix, NotApplicable, Offer
from bottleneck_doctor.fixes._kept import offered, refusal
from bottleneck_doctor.knobs import cached_samples
from bottleneck_doctor.runtime.wire.messages import Found


def propose(found: Found) -> Offer | NotApplicable:
    refused = refusal(found, cached_samples.NAME, cached_samples.obstacle(found), "prepares its samples", "prepare")
    return refused or offered(found, {cached_samples.NAME: True})


FIX = Fix(
    id="cached-samples",
    title="Prepare each sample once",
    why=(
        "Every epoch reads and transforms the same samples again, with the same result. A list of prepared samples "
        "needs memory, and saves that time from the second epoch on."
    ),
    source="https://pytorch.org/docs/stable/data.html#map-style-datasets",
    risk="identical",
    how=(
        "`DataLoader([dataset[index] for index in range(len(dataset))], ...)`. In Lightning, return that loader from "
        "`train_dataloader`; give transformers' `Trainer` that list as its `train_dataset`. Give another library that "
        "makes the loader a dataset of it: `Subset(samples, range(len(samples)))`. Leave it if you add random "
        "transforms, or if your data set changes from epoch to epoch by itself."
    ),
    target="data",
    propose=propose,
    frees_cpus=True,
    order=8,
)
