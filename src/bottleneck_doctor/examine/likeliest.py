"""The order of settings if there is no time for all of them: the likeliest to pay first. Pure.

Before anything was measured, the first look decides: loading if steps wait for batches, otherwise computing. After
that, the fastest settings so far come first, because a claim needs them in more than one process.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import IntEnum

from bottleneck_doctor import knobs
from bottleneck_doctor.documents import labels
from bottleneck_doctor.examine.evidence import Candidate
from bottleneck_doctor.examine.ladder import WORTH_TRYING
from bottleneck_doctor.knobs import intra_op_threads, num_workers
from bottleneck_doctor.measure.schedule import Probe
from bottleneck_doctor.measure.supply import WAITING, Supply
from bottleneck_doctor.runtime.wire.messages import Found

LARGE = 1.3
"""If a setting looks so many times as fast as the training as written, it is confirmed before all else is decided."""
STAYS = 0.5
"""Other programs that want so many CPUs all the time leave too few for all of torch's threads. One that has to wait for
its CPU holds up all others in every operation, so fewer threads are the likeliest to pay of all."""
MOSTLY = 0.5
"""If waiting for batches takes this part of the time or more, faster computing can bring little until that is over.
If it takes less, and `WAITING` or more, nobody knows which of them brings more, so they take turns. Ours."""
LITTLE = 0.15
"""A fix that acts on less of the time can't bring 1.2 times the speed, so it waits for those that may. Ours."""
LOST = 0.93
"""A setting that is below this part of the speed as written in its first pair has lost: others get its time."""

Place = tuple[float, ...]


UP_TO_TARGET = 3
"""So many parts of a place of something new come before its target."""


class Turn(IntEnum):
    """Groups of probes, in the order of their turns."""

    LEADING = 0
    """The fastest so far, and then what changes a part of it: that may be as fast, and is the smaller change."""
    TOGETHER = 1
    """A combination of what was measured: the only one that may be faster by a lot."""
    LATE = 2
    """What was left to later processes, because something leads by far."""
    MEASURED = 3
    NEW = 4
    IDLE = 5
    """What seems to bring nothing."""
    CEILING = 6
    LOST = 7


def in_turn(
    probes: Sequence[Probe],
    candidates: Sequence[Candidate],
    speeds: Mapping[str, float],
    supply: Supply | None,
    found: Found,
    *,
    fed: bool = False,
    others: float = 0.0,
) -> list[Probe]:
    """`probes`, the likeliest to pay first, each with its own priority. Probes that have lost are left out as long as
    there are others.

    `speeds`: so far, relative to the baseline, by key. `supply`: None if there was no first look; then the catalogue's
    order decides. `fed`: whether a setting is known under which steps wait little; then faster computing promises more.
    `others`: threads of other programs that want to run all the time.
    """
    of = {labels.key_of({**each.base, **setting}): each for each in candidates for setting in each.settings}
    likely = likely_workers(candidates, supply, found)
    known = [each for each in probes if is_candidate(each) and each.key in speeds]
    fastest = max(known, key=lambda each: speeds[each.key], default=None)
    leading = fastest.as_setting() if fastest is not None and speeds[fastest.key] >= WORTH_TRYING else {}
    # Of a combination, each part was chosen because it was faster by itself.
    whole = leading if labels.key_of(leading) in of else {}
    by_far = any(speed > LARGE for key, speed in speeds.items() if key in of)

    left = found.usable_cpus - others if others >= STAYS else math.inf

    def place(each: Probe) -> Place:
        if not is_candidate(each):
            return (Turn.CEILING,)
        speed, candidate = speeds.get(each.key), of.get(each.key)
        if each.as_setting() == leading:
            return (Turn.LEADING,)
        if each.as_setting().items() < whole.items() and (speed or WORTH_TRYING) >= WORTH_TRYING:
            return (Turn.LEADING, 1.0)
        if speed is not None:
            return (Turn.MEASURED if speed >= WORTH_TRYING else Turn.IDLE if speed >= LOST else Turn.LOST, -speed)
        if candidate is None:
            return (Turn.TOGETHER,)
        count = num_workers.alone(each.as_setting())
        off = 0.0 if count is None or likely is None else abs(math.log2(max(1, count) / likely))
        order: float = candidate.fix.order_on(found.device)
        target = _of_target(candidate, supply, fed=fed)
        threads = intra_op_threads.alone(each.as_setting())
        if threads is not None and threads < found.threads and found.threads > left + STAYS:
            target, off = -1, abs(threads - left)
        # What builds on a setting that doesn't lead waits until more is known of that setting.
        leads = candidate.base.items() <= leading.items()
        turn = Turn.LATE if by_far and leads and not is_dear(each) else Turn.NEW
        # Another number of workers may refine a large gain; another fix may add to it.
        refines = by_far and off > 0
        saves_little = candidate.share is not None and candidate.share < LITTLE
        return (turn, is_dear(each), refines, target, float(off > 0), saves_little, order, off)

    ordered = sorted(probes, key=place)
    if supply is not None and not fed and WAITING <= supply.waiting < MOSTLY:
        ordered = _alternating(ordered, {each.key: place(each) for each in ordered})
    going = [each for each in ordered if place(each)[0] != Turn.LOST]
    if any(map(is_candidate, going)):
        ordered = going
    return [replace(each, priority=number) for number, each in enumerate(ordered)]


def _alternating(ordered: Sequence[Probe], places: Mapping[str, Place]) -> list[Probe]:
    """The same, but what was not tried yet of each target comes in turn with that of the other."""
    seen: dict[Place, int] = {}

    def rank(each: Probe) -> Place:
        place = places[each.key]
        if place[0] not in (Turn.LATE, Turn.NEW):
            return place
        alike = place[: UP_TO_TARGET + 1]
        seen[alike] = seen.get(alike, -1) + 1
        return (*place[:UP_TO_TARGET], seen[alike], *place[UP_TO_TARGET:])

    ranks = {each.key: rank(each) for each in ordered}
    return sorted(ordered, key=lambda each: ranks[each.key])


def is_candidate(each: Probe) -> bool:
    """Whether it is a setting that a user could choose, and not a ceiling."""
    return each.mode == "timed" and not knobs.is_ceiling(each.as_setting())


def is_dear(each: Probe) -> bool:
    """Whether its first window in a process takes much longer than others."""
    return knobs.is_dear(each.as_setting())


def _of_target(candidate: Candidate, supply: Supply | None, *, fed: bool) -> int:
    """0 if its target (loading or computing) is the one that the first look suggests, or nothing is known; else 1."""
    if supply is None:
        return 0
    waits = not fed and supply.waiting >= WAITING
    return int((candidate.fix.target == "data") is not waits)


def likely_workers(candidates: Sequence[Candidate], supply: Supply | None, found: Found) -> int | None:
    """The number of workers to begin with, out of those offered: the fewest that keep up, by the time that making a
    batch takes. If making batches is computing, it is no more than there are CPUs. If that time is not known, it is the
    number of CPUs. None if no number is offered."""
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
