"""`cached-samples`: prepare each sample once, in place of once an epoch, where it is the same each time."""

from __future__ import annotations

from bottleneck_doctor.documents.report import Setting
from bottleneck_doctor.fixes._fix import Fix, NotApplicable, Offer
from bottleneck_doctor.knobs import cached_samples
from bottleneck_doctor.runtime.wire.messages import Found

LARGEST_PART = 0.2
"""Preparing all samples first may take this part of the whole run as it is written. If it takes more, the user gains
much less than the figure of a step says."""


def propose(found: Found) -> Offer | NotApplicable:
    if not found.has_loader:
        return NotApplicable("no torch DataLoader feeds this loop")
    obstacle = cached_samples.obstacle(found)
    if obstacle is None:
        return NotApplicable("how this dataset prepares its samples could not be seen")
    if obstacle:
        return NotApplicable(obstacle)
    if found.made_anew:
        return NotApplicable("the script makes a new loader for every epoch, and would prepare all samples each time")
    epochs, in_epochs = _epochs(found), _in_epochs(found)
    if epochs is not None and epochs < 2:
        return NotApplicable("the run is over before any sample is needed again")
    if epochs is not None and in_epochs > LARGEST_PART * epochs:
        return NotApplicable(
            f"the run has {epochs:.0f} epochs, and preparing all samples first would take as long as {in_epochs:.1f}"
        )
    here: Setting = {cached_samples.NAME: True}
    if found.num_workers == 0:
        return Offer((here,))
    in_main: Setting = {**here, "num_workers": 0}
    # Workers that are forked share the list. Others would get a copy each.
    return Offer((in_main, here) if found.start_method == "fork" else (in_main,))


def _epochs(found: Found) -> float | None:
    """How many epochs the run has, where the program says so."""
    if found.run_epochs is not None:
        return found.run_epochs
    return found.run_steps / found.epoch_batches if found.run_steps is not None and found.epoch_batches else None


def _in_epochs(found: Found) -> float:
    """How many epochs as written preparing all samples takes."""
    preparation, steps = cached_samples.KNOB.prepares(found), found.step_seconds[len(found.step_seconds) // 2 :]
    if preparation is None or not found.epoch_batches or not sum(steps):
        return 1.0
    return preparation.seconds / (found.epoch_batches * sum(steps) / len(steps))


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
        "`train_dataloader`; give transformers' `Trainer` that list as its `train_dataset`. Leave it if you add random "
        "transforms, or if your data set changes from epoch to epoch by itself."
    ),
    target="data",
    propose=propose,
    frees_cpus=True,
    order=8,
)
