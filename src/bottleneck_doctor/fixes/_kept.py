"""What fixes have in common that keep a data set in memory, for which all of its samples are read before training."""

from __future__ import annotations

from bottleneck_doctor import knobs
from bottleneck_doctor.documents.report import Setting
from bottleneck_doctor.fixes._fix import NotApplicable, Offer
from bottleneck_doctor.runtime.wire.messages import Found

LARGEST_PART = 0.4
"""Preparing all samples first may take this part of the whole run as it is written, so a run of three epochs that only
waits for data still gains. How long the whole run takes, with that, is told beside what a step gains."""


def refusal(found: Found, name: str, obstacle: str | None, how: str, prepare: str) -> NotApplicable | None:
    """Why the knob of this name is not tried; None where it is. `obstacle`: what the guest saw. `how`, `prepare`: what
    is done with samples, as a verb."""
    if not found.has_loader:
        return NotApplicable("no torch DataLoader feeds this loop")
    if obstacle is None:
        return NotApplicable(f"how this dataset {how} could not be seen")
    if obstacle:
        return NotApplicable(obstacle)
    if found.made_anew:
        return NotApplicable(
            f"the script makes a new loader for every epoch, and would {prepare} all samples each time"
        )
    epochs, in_epochs = _epochs(found), _in_epochs(found, name)
    if epochs is not None and epochs < 2:
        return NotApplicable("the run is over before any sample is needed again")
    if epochs is not None and in_epochs > LARGEST_PART * epochs:
        doing = f"{prepare.removesuffix('e')}ing"
        return NotApplicable(
            f"the run has {epochs:.0f} epochs, and {doing} all samples first would take as long as {in_epochs:.1f}"
        )
    return None


def offered(found: Found, here: Setting) -> Offer:
    """The settings that are tried: in this process, and in workers if these can share the memory."""
    if found.num_workers == 0:
        return Offer((here,))
    in_main: Setting = {**here, "num_workers": 0}
    # Workers that are forked share the list. Others would get a copy each.
    return Offer((in_main, here) if found.start_method == "fork" else (in_main,))


def _epochs(found: Found) -> float | None:
    """How many epochs the run has, where the program says so."""
    if found.run_epochs is not None:
        return found.run_epochs
    return found.run_steps / found.epoch_length if found.run_steps is not None and found.epoch_length else None


def _in_epochs(found: Found, name: str) -> float:
    """How many epochs as written preparing all samples takes."""
    preparation = knobs.preparation({name: True}, found)
    steps = found.step_seconds[len(found.step_seconds) // 2 :]
    if preparation is None or not found.epoch_length or not sum(steps):
        return 1.0
    return preparation.seconds / (found.epoch_length * sum(steps) / len(steps))
