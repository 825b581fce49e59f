"""Several ranks as one: which ranks a session waits for, how all come to the same step, how their windows become one.

Messages of ranks go into a `RankGroup`. Messages to send come out and, once every rank has answered, one event for all.
Pure: the time comes in as a number. docs/architecture.md, "Several ranks", describes the protocol.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from bottleneck_doctor.runtime.wire.messages import Found, Grant, Hello, WindowDone

LEAST_PATIENCE = 2.0
"""Seconds that ranks which found the loop wait for the others. Then they run some steps on, so that the others can
continue and find it too."""
PATIENT_STEPS = 5
"""If steps are long, they wait for the time of this many steps instead."""
RUN_ON_PERIODS = 4
"""Periods that they run on each time."""
LONELY_SECONDS = 40.0
"""A rank that shows no loop in this time doesn't train, and the others are measured without it."""
APART_SECONDS = 60.0
"""A rank that needs longer than this for the few steps that bring it to the others is waiting for one of them."""
CLEARLY = 0.1
"""Part of the time by which a rank has to wait longer for data than the first one, so that its details are shown."""
FOR_EVER = 10**9


@dataclass(frozen=True)
class Together(WindowDone):
    """A window of all ranks as one. `slowest`: the rank whose time counts. `parts`: each rank's own figures."""

    slowest: int = 0
    parts: Mapping[int, WindowDone] | None = None


@dataclass(frozen=True)
class Apart:
    """The ranks can't be brought to one step. `text`: which ranks were waited for, and where they stood."""

    text: str


@dataclass
class _Member:
    hello: Hello
    found: Found
    position: int
    """Where it stands, or stood last, by its own count of batches."""
    offset: int = 0
    waits: bool = True
    """Whether it stands at a boundary and has no grant to run."""
    done: WindowDone | None = None

    @property
    def at(self) -> int:
        return self.position - self.offset


class RankGroup:
    """The ranks of one session. A process that trains alone is a group of one.

    `host`: the supervisor's host. Call `found` and `done` as messages come in, and `settle` after that and regularly.
    """

    def __init__(self, host: str = "") -> None:
        self._host = host
        self.members: dict[int, _Member] = {}
        self.missing: list[int] = []
        """Ranks that never showed a training loop."""
        self._world = 1
        self._complete = False
        self._first = 0.0
        self._latest = 0.0
        self._grant: Grant | None = None
        self._told = True
        self._run_ons = 0
        self._running_on_since: float | None = None

    @property
    def size(self) -> int:
        return len(self.members)

    def hellos(self) -> list[Hello]:
        """The `Hello` of each rank, in order; empty if a process trains alone."""
        return [self.members[rank].hello for rank in sorted(self.members)] if self._world > 1 or self.missing else []

    def found(self, hello: Hello, found: Found, now: float) -> list[tuple[int, Grant]]:
        """A rank found its loop and stands at a boundary. Returns the grants to send at once, by rank.

        A rank that comes too late, when the others are already measured without it, gets an endless grant: otherwise
        the others would wait for it forever.
        """
        if self._complete and (self._world > 1 or self.missing):
            return [(hello.rank, Grant(-1, {}, "timed", 0, FOR_EVER, together=True))]
        self._first = self._first if self.members else now
        self._latest = now
        self._world = max(self._world, hello.world)
        self.members[hello.rank] = _Member(hello, found, found.position)
        self._complete = False
        self._grant = None
        self._told = False
        return []

    def done(self, rank: int, done: WindowDone) -> None:
        """A rank ended a window, or the steps that bring it to the others."""
        member = self.members.get(rank)
        if member is None:
            return
        member.waits = True
        member.position = done.position
        if self._grant is not None and done.window == self._grant.window:
            member.done = done

    def granted(self, grant: Grant) -> list[tuple[int, Grant]]:
        """Have all ranks run a window. Returns the grants to send, by rank."""
        self._grant = grant if self.size == 1 else replace(grant, together=True)
        self._told = False
        sends = []
        for rank, member in self.members.items():
            member.done = None
            member.waits = False
            sends.append((rank, self._grant if rank == self.first else _for_others(self._grant)))
        return sends

    @property
    def first(self) -> int:
        """The lowest rank on the supervisor's host. It does what only one rank can do."""
        return min(self.members, key=lambda rank: (self.members[rank].hello.host != self._host, rank), default=0)

    def settle(self, now: float) -> tuple[list[tuple[int, Grant]], Any]:
        """The grants to send, by rank, and the event of all ranks together (None until every rank has answered)."""
        if self._told or not self.members:
            return [], None
        if not all(member.waits for member in self.members.values()):
            return [], self._given_up(now)
        if not self._complete:
            if len(self.members) < self._world:
                return self._wait_for_others(now), None
            self._complete = True
            self._take_bearings()
        behind = self._behind()
        if behind:
            self._running_on_since = now
            return behind, None
        self._running_on_since = None
        if self._grant is None:
            self._told = True
            return [], merged_found({rank: member.found for rank, member in self.members.items()})
        parts = {rank: member.done for rank, member in self.members.items() if member.done is not None}
        if len(parts) < len(self.members):
            return [], None
        self._told = True
        return [], next(iter(parts.values())) if self._world == 1 else merged_done(parts, self.first)

    def _wait_for_others(self, now: float) -> list[tuple[int, Grant]]:
        """Some ranks stand and wait for others. A rank that has not found its loop yet may be waiting for them, in a
        collective."""
        steps = [second for member in self.members.values() for second in member.found.step_seconds[-8:]]
        patience = max(LEAST_PATIENCE, PATIENT_STEPS * max(steps, default=0.0))
        if now - self._latest < patience:
            return []
        self._latest = now
        if now - self._first > max(LONELY_SECONDS, 4 * patience):
            self.missing = sorted(set(range(self._world)) - set(self.members))
            self._world = len(self.members)
            return []
        period = max(member.found.period for member in self.members.values())
        self._running_on_since = now
        return [self._run_on(rank, RUN_ON_PERIODS * period) for rank in self.members]

    def _given_up(self, now: float) -> Apart | None:
        since = self._running_on_since
        if since is None or now - since < APART_SECONDS:
            return None
        self._told = True
        places = ", ".join(f"rank {rank} at step {member.at}" for rank, member in sorted(self.members.items()))
        return Apart(places)

    def parted(self, *, hung: bool) -> Apart | None:
        """Why a window has not ended, if the reason is that ranks take different numbers of batches; None otherwise.
        Then some ranks have ended the window and stand, while others wait for them in a step that was not granted.
        `hung`: the wait was so long that all ranks may hang; otherwise the time was merely over."""
        if self._told or self.size < 2:
            return None
        ended = [rank for rank, member in sorted(self.members.items()) if member.waits]
        still = [rank for rank in sorted(self.members) if rank not in ended]
        lengths = {rank: member.found.epoch_batches for rank, member in sorted(self.members.items())}
        unequal = len(set(lengths.values())) > 1
        if not still or not (ended or (hung and unequal)):
            return None
        text = f"{_ranks(still)} did not come to the end of a window"
        if ended:
            text += f" that {_ranks(ended)} ended"
        if unequal and None not in lengths.values():
            counts = ", ".join(f"{length} in rank {rank}" for rank, length in lengths.items())
            text += f" (batches of an epoch: {counts})"
        return Apart(text)

    def _take_bearings(self) -> None:
        """Make the ranks' positions comparable. They are already, unless a rank took a batch before training began. If
        every step ends in an optimizer step and all ranks have made the same number of these, ranks that stand still
        are at the same step, whatever their counts of batches are."""
        members = list(self.members.values())
        alike = len({member.found.optimizer_steps for member in members}) == 1
        if alike and all(member.found.period == 1 for member in members) and not self._run_ons:
            for member in members:
                member.offset = member.position

    def _behind(self) -> list[tuple[int, Grant]]:
        """Grants with the missing steps for the ranks that are behind the foremost one."""
        foremost = max(member.at for member in self.members.values())
        return [
            self._run_on(rank, foremost - member.at) for rank, member in self.members.items() if member.at < foremost
        ]

    def _run_on(self, rank: int, steps: int) -> tuple[int, Grant]:
        self.members[rank].waits = False
        self._run_ons += 1
        return rank, Grant(-self._run_ons - 1, {}, "timed", 0, steps, together=True)


def _ranks(numbers: Sequence[int]) -> str:
    return ("rank " if len(numbers) == 1 else "ranks ") + ", ".join(map(str, numbers))


def _for_others(grant: Grant) -> Grant:
    """The grant for the other ranks: a plain window if the first one traces or times lines, since only one rank can
    write those files."""
    if grant.mode in ("trace", "lines"):
        return replace(grant, mode="timed", options={})
    return grant


def _told_by(parts: Mapping[int, WindowDone], first: WindowDone) -> int:
    """The rank whose details represent all: the first one, unless another one waits clearly longer for its data."""
    waits = {rank: part.wait_seconds / part.seconds if part.seconds > 0 else 0.0 for rank, part in parts.items()}
    lead = next(rank for rank, part in parts.items() if part is first)
    longest = max(waits, key=lambda rank: waits[rank])
    return longest if waits[longest] - waits[lead] > CLEARLY and parts[longest].detail else lead


def merged_found(founds: Mapping[int, Found]) -> Found:
    """The loop of all ranks: that of the lowest rank, with the smallest number of usable CPUs of any rank. What one of
    them can't have, none can have: a rank that trains in another way than the rest would wait for them forever."""
    first = founds[min(founds)]
    refused = {
        name: text
        for _, found in sorted(founds.items(), reverse=True)
        for name, text in found.obstacles.items()
        if text
    }
    return replace(
        first,
        usable_cpus=min(found.usable_cpus for found in founds.values()),
        setup_seconds=max(found.setup_seconds for found in founds.values()),
        samples_per_step=sum(found.samples_per_step for found in founds.values()),
        obstacles={**first.obstacles, **refused},
        workers_unsafe=next((found.workers_unsafe for found in founds.values() if found.workers_unsafe), ""),
    )


def merged_done(parts: Mapping[int, WindowDone], lead: int | None = None) -> Together:
    """One window of all ranks. `lead`: the rank whose clock dates it, and whose details are shown unless another rank
    waits clearly longer for its data; by default the lowest.

    Its time is that of the slowest rank: of the ranks that timed the fewest steps, the one that took longest. (If one
    rank alone evaluates, it leaves that out, while the others time their waiting for it.) Samples are summed over
    ranks. Ranks keep step, so training waits for data as long as the rank that waits longest. If one rank fails, the
    window fails.
    """
    failed = {rank: part for rank, part in parts.items() if part.status != "ok"}
    fewest = min(part.steps for part in parts.values())
    slowest = max(
        (rank for rank, part in parts.items() if part.steps == fewest),
        key=lambda rank: (parts[rank].seconds, parts[rank].wait_seconds, -rank),
    )
    base = parts[slowest]
    first = parts[min(parts) if lead is None else lead]
    per_step = sum(part.samples / part.steps for part in parts.values() if part.steps)
    elements = sum(part.elements / part.steps for part in parts.values() if part.steps)
    wait = max((part.wait_seconds / part.seconds for part in parts.values() if part.seconds > 0), default=0.0)
    overheads = [part.epoch_overhead_seconds for part in parts.values() if part.epoch_overhead_seconds is not None]
    told = {field.name: getattr(base, field.name) for field in fields(WindowDone)}
    told.update(
        # Clocks of several hosts have nothing in common.
        started=first.started,
        ended=first.ended,
        lead_in_seconds=first.lead_in_seconds,
        samples=per_step * base.steps,
        elements=round(elements * base.steps),
        wait_seconds=wait * base.seconds,
        ready_batches=min(part.ready_batches for part in parts.values()),
        epoch_overhead_seconds=max(overheads) if overheads else None,
        device_bytes=_most(part.device_bytes for part in parts.values()),
        device_reserved_bytes=_most(part.device_reserved_bytes for part in parts.values()),
        peak_bytes=_sum(part.peak_bytes for part in parts.values()),
        workers_bytes=_sum(part.workers_bytes for part in parts.values()),
        queue_change=min(part.queue_change for part in parts.values()),
        effect={name: all(part.effect.get(name, True) for part in parts.values()) for name in first.effect},
        detail=parts[_told_by(parts, first)].detail,
    )
    if failed:
        rank = min(failed, key=lambda each: (failed[each].status != "failed", each))
        reason = failed[rank].reason
        everywhere = len(failed) == len(parts) and len({part.reason for part in failed.values()}) == 1
        told.update(status=failed[rank].status, reason=reason if everywhere else f"rank {rank}: {reason}")
        if failed[rank].status == "failed":
            told.update(steps=0, samples=0.0, seconds=0.0)
    return Together(slowest=slowest, parts=dict(parts), **told)


def _sum(values: Iterable[int | None]) -> int | None:
    """None if one of them is not known."""
    known = list(values)
    return None if None in known else sum(filter(None, known))


def _most(values: Iterable[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)
