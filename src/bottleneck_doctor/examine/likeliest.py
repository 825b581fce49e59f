"""What is measured first where there is no time for all: what is the likeliest to pay. Pure.

Before anything was measured, the first look says what that is: where steps wait for batches it is loading, elsewhere
computing. Then it is what was the fastest so far, for a claim needs it in further processes, and a setting that was
measured in one process only is none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import IntEnum

from bottleneck_doctor import knobs
from bottleneck_doctor.documents import labels
from bottleneck_doctor.examine.evidence import Candidate
from bottleneck_doctor.knobs import num_workers
from bottleneck_doctor.measure.schedule import Probe
from bottleneck_doctor.measure.supply import Supply
from bottleneck_doctor.runtime.wire.messages import Found

WAITING = 0.15
"""Part of the time from which waiting for batches promises more than most of what computes faster brings."""
LOST = 0.93
"""Part of the speed as written below which a setting has lost in its first pair, and leaves its time to others."""

Place = tuple[float, ...]


class Turn(IntEnum):
    """Whose turn it is."""

    MEASURED = 0
    TOGETHER = 1
    """A combination of what was measured."""
    NEW = 2
    CEILING = 3
    LOST = 4


def in_turn(
    probes: Sequence[Probe],
    candidates: Sequence[Candidate],
    speeds: Mapping[str, float],
    supply: Supply | None,
    found: Found,
) -> list[Probe]:
    """`probes`, the likeliest to pay first, and none with the priority of another; without those that have lost, as
    long as there are others.

    `speeds`: so far, relative to the baseline, by key. `supply`: None where nobody looked, and then the catalogue's
    order says what is likely.
    """
    of = {labels.key_of({**each.base, **setting}): each for each in candidates for setting in each.settings}
    likely = likely_workers(candidates, supply, found)

    def place(each: Probe) -> Place:
        if not is_candidate(each):
            return (Turn.CEILING,)
        speed, candidate = speeds.get(each.key), of.get(each.key)
        if speed is not None:
            return (Turn.MEASURED if speed >= LOST else Turn.LOST, -speed)
        if candidate is None:
            return (Turn.TOGETHER,)
        count = num_workers.alone(each.as_setting())
        off = 0.0 if count is None or likely is None else abs(math.log2(max(1, count) / likely))
        return (Turn.NEW, _of_target(candidate, supply), float(off > 0), candidate.fix.order, off)

    ordered = sorted(probes, key=place)
    going = [each for each in ordered if place(each)[0] != Turn.LOST]
    if any(map(is_candidate, going)):
        ordered = going
    return [replace(each, priority=number) for number, each in enumerate(ordered)]


def all_lost(candidates: Sequence[Candidate], speeds: Mapping[str, float]) -> bool:
    """Whether every setting that was measured has lost."""
    keys = {labels.key_of({**each.base, **setting}) for each in candidates for setting in each.settings}
    return all(speed < LOST for key, speed in speeds.items() if key in keys)


def is_candidate(each: Probe) -> bool:
    """Whether it is a setting that a user could choose, and no ceiling."""
    return each.mode == "timed" and not knobs.is_ceiling(each.as_setting())


def _of_target(candidate: Candidate, supply: Supply | None) -> int:
    """Which half of the catalogue it is in: the one that the first look speaks for is the first."""
    if supply is None:
        return 0
    waits = supply.wait + supply.epoch_start >= WAITING
    return int((candidate.fix.target == "data") is not waits)


def likely_workers(candidates: Sequence[Candidate], supply: Supply | None, found: Found) -> int | None:
    """The number of workers to begin with, of those that are offered: the fewest that keep up, by how long a batch
    takes to be made, and no more than there are CPUs where that is computing; as many as there are CPUs where nobody
    saw it. None where none is offered."""
    counts = sorted(
        count
        for each in candidates
        if each.sweep
        for count in map(num_workers.alone, each.settings)
        if count is not None and count > 0
    )
    if not counts:
        return None
    known = supply is not None and supply.batch is not None and supply.computing > 0
    wanted = supply.use(1) if known and supply is not None else float(found.usable_cpus)
    bounded = supply is None or supply.computes
    within = [count for count in counts if not bounded or count <= found.usable_cpus] or counts[:1]
    return next((count for count in within if count >= wanted), within[-1])
