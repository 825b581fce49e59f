"""What a fix is: what it says of itself, and which settings it would try on a loop."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from bottleneck_doctor.documents.report import Risk, Setting
from bottleneck_doctor.knobs import allocator
from bottleneck_doctor.knobs._spec import told_obstacle
from bottleneck_doctor.runtime.wire.messages import Found

Target = Literal["data", "compute", "transfer"]
Part = Literal[
    "data_wait", "host_to_device", "forward", "backward", "optimizer", "zero_grad", "between", "communication"
]
"""A part of a step, called as in the report's phases."""


Function = tuple[str, str]
"""How the path of a function's file ends, and the function's name."""


@dataclass(frozen=True)
class NotApplicable:
    """Why a fix is not tried on this loop; a sentence's end that can stand alone."""

    reason: str


@dataclass(frozen=True)
class Offer:
    """Settings to try. `with_workers`: they ride on the best number of workers, once that is known. `sweep`: they are
    numbers of workers to begin with, and more are tried around the best of them."""

    settings: tuple[Setting, ...]
    with_workers: bool = False
    sweep: bool = False
    of_kernel: bool = False
    """They save time in which the kernel works for the process, and can't save more."""
    within: tuple[Function, ...] = ()
    """The functions out of whose time everything comes that the settings can save; empty if that is not known."""
    risk: Risk | None = None
    """The risk of what is offered here, where it is another than the fix has in general."""
    on_request: str = ""
    """Why it is not tried here unless the fix is named; "" if it is tried."""


@dataclass(frozen=True)
class Fix:
    """One entry of the catalogue. `target` names the ceiling that bounds it; `propose` looks at the loop as found.

    `acts_on`: the parts of a step out of whose time everything comes that it can save, so that it is not tried where
    they take too little of it. Empty: it may act on all of them, or two ways of knowing must agree on what bounds it.
    """

    id: str
    title: str
    why: str
    source: str
    risk: Risk
    how: str
    target: Target
    propose: Callable[[Found], Offer | NotApplicable] = field(repr=False)
    frees_cpus: bool = False
    """Whether it may pay where no step waits for its batch: it keeps workers out of the way of what computes."""
    on_request: str = ""
    """Why it is not tried unless it is named; "" if it is tried wherever it applies."""
    order: int = 50
    device_order: int | None = None
    """The order where the model computes on a GPU; None if it is the same there."""
    acts_on: tuple[Part, ...] = ()
    undoes: tuple[str, ...] = ()
    """Ids of fixes that are on already where this one applies. What it costs is what they are worth."""
    propose_between: Callable[[Found, float], Offer | NotApplicable] | None = field(default=None, repr=False)
    """As `propose`, once windows have shown which part of the time, 0 to 1, Python's garbage collector runs between
    epochs. None for a fix that does not act on that."""

    def order_on(self, device: str) -> int:
        """Its place among others where the model computes on this device."""
        return self.order if self.device_order is None or not device.startswith("cuda") else self.device_order

    def proposed(self, found: Found, *, named: bool) -> Offer | NotApplicable:
        """What is tried on this loop. `named`: whether the user asked for this fix by its id."""
        proposal = self.propose(found)
        if named or isinstance(proposal, NotApplicable):
            return proposal
        asked_for = self.on_request or proposal.on_request
        return NotApplicable(asked_for) if asked_for else proposal


def knob_obstacle(found: Found, knob: str) -> NotApplicable | None:
    """Why the guest could not apply this knob to the loop, if it couldn't."""
    reason = found.obstacles.get(knob)
    if reason is None:
        return NotApplicable("what it would change was not seen in this loop")
    return NotApplicable(reason) if reason else None


def told_refusal(found: Found, knob: str, unseen: str) -> NotApplicable | None:
    """Why this knob is not tried, if the guest told a reason among what it saw of the loop; `unseen` where it told
    nothing."""
    obstacle = told_obstacle(found, knob)
    if obstacle is None:
        return NotApplicable(unseen)
    return NotApplicable(obstacle) if obstacle else None


def host_memory_obstacle(found: Found) -> NotApplicable | None:
    """Why what gives the process its memory can't be changed for this loop, if it can't."""
    if not found.device.startswith("cpu"):
        return NotApplicable("the model computes on a device, and torch keeps the device's memory by itself")
    if not sys.platform.startswith("linux"):
        return NotApplicable("it works on Linux only")
    chosen = allocator.chosen(os.environ)
    return NotApplicable(f"already on: `{chosen}` is set") if chosen else None


def copies_obstacle(found: Found) -> NotApplicable | None:
    """Why no loader's batches are copied to a CUDA device in this loop, if none are."""
    if not found.has_loader:
        return NotApplicable("no torch DataLoader feeds this loop")
    if not found.device.startswith("cuda"):
        return NotApplicable(f"the model trains on the {found.device.upper()}, and nothing is copied to a device")
    return None


def is_endless(found: Found) -> bool:
    """Whether no end of an epoch is known or was seen, so that the loader's workers start only once."""
    return found.epoch_batches is None and found.epoch_batches_seen is None


def workers_obstacle(found: Found) -> NotApplicable | None:
    """Why workers can't be added to this loop at all, if they can't."""
    if not found.has_loader:
        return NotApplicable("no torch DataLoader feeds this loop")
    if found.num_workers == 0 and found.workers_unsafe:
        return NotApplicable(found.workers_unsafe)
    return None
