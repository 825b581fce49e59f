"""Several ranks as one: whom a session waits for, how they come to stand at one step, what their windows make together.

Messages of ranks go into a `RankGroup`, and out come messages to send and, once every rank has spoken, one event for
all. Pure: the time comes in as a number. The protocol is told in docs/architecture.md, "Several ranks".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from bottleneck_doctor.runtime.wire.messages import Found, Grant, Hello, WindowDone

LEAST_PATIENCE = 2.0
"""Seconds that ranks which found the loop wait for another, before they run some steps on so that it can see more."""
PATIENT_STEPS = 5
"""As many steps as this may pass meanwhile, where those are long."""
RUN_ON_PERIODS = 4
LONELY_SECONDS = 40.0
"""After this time a rank that shows no loop is one that doesn't train; the others are measured without it."""
APART_SECONDS = 60.0
"""A rank that does not come back from the few steps that bring it to the others waits for one of them."""
CLEARLY = 0.1
FOR_EVER = 10**9


@dataclass(frozen=True)
class Together(WindowDone):
    """A window of all ranks as one. `slowest` is the rank whose time it is; `parts` are the ranks' own figures."""

    slowest: int = 0
    parts: Mapping[int, WindowDone] | None = None


@dataclass(frozen=True)
class Apart:
    """The ranks can't be brought to one step. `text`: who was waited for, and where."""

    text: str


@dataclass
class _Member:
    hello: Hello
    found: Found
    position: int
    """Where it stands, or stood last, as it counts itself."""
    offset: int = 0
    waits: bool = True
    """It stands at a boundary and has been given nothing to run."""
    done: WindowDone | None = None

    @property
    def at(self) -> int:
        return self.position - self.offset


class RankGroup:
    """The ranks of one session. One process that trains alone is a group of one.

    `host` is the supervisor's. Call `found` and `done` as messages come in, and `settle` then and now and again.
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
        """What the ranks said of themselves, in order; nothing of a process that trains alone."""
        return [self.members[rank].hello for rank in sorted(self.members)] if self._world > 1 or self.missing else []

    def found(self, hello: Hello, found: Found, now: float) -> list[tuple[int, Grant]]:
        """A rank found its loop and stands at a boundary. What to send to whom at once: one that comes too late, when
        the others have been measured without it, is let go, since they would wait for it for ever."""
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
        """A rank ended a window, or the steps by which it was brought to the others."""
        member = self.members.get(rank)
        if member is None:
            return
        member.waits = True
        member.position = done.position
        if self._grant is not None and done.window == self._grant.window:
            member.done = done

    def granted(self, grant: Grant) -> list[tuple[int, Grant]]:
        """Have all ranks run a window. What to send to whom."""
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
        """The lowest rank on the supervisor's host: what can be asked of one only is asked of it."""
        return min(self.members, key=lambda rank: (self.members[rank].hello.host != self._host, rank), default=0)

    def settle(self, now: float) -> tuple[list[tuple[int, Grant]], Any]:
        """What to send to whom, and the event that all ranks make together (None until they do)."""
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
        """Some ranks stand and wait. One that sees its loop later may itself be waiting for them, in a collective."""
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
        """Why a window that was waited for in vain has not ended, where ranks take different numbers of batches: some
        have ended it, and stand, while others wait for them in a step that they were not granted. `hung`: it was
        waited for so long that all of them may hang, and not only be cut short."""
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
        """Ranks count alike, unless one took a batch before training began. Where every step ends in an optimizer's and
        all have made as many, ranks that stand still are at one step, whatever they count."""
        members = list(self.members.values())
        alike = len({member.found.optimizer_steps for member in members}) == 1
        if alike and all(member.found.period == 1 for member in members) and not self._run_ons:
            for member in members:
                member.offset = member.position

    def _behind(self) -> list[tuple[int, Grant]]:
        """Steps for those that are not where the foremost is."""
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
    """What the other ranks run while the first one does this: traces and line timers write files that only one can."""
    if grant.mode in ("trace", "lines"):
        return replace(grant, mode="timed", options={})
    return grant


def _told_by(parts: Mapping[int, WindowDone], first: WindowDone) -> int:
    """The rank whose details stand for all: the first, unless another waits clearly longer for its data."""
    waits = {rank: part.wait_seconds / part.seconds if part.seconds > 0 else 0.0 for rank, part in parts.items()}
    lead = next(rank for rank, part in parts.items() if part is first)
    longest = max(waits, key=lambda rank: waits[rank])
    return longest if waits[longest] - waits[lead] > CLEARLY and parts[longest].detail else lead


def merged_found(founds: Mapping[int, Found]) -> Found:
    """The loop as all ranks show it: as the lowest of them does, with the least room for workers."""
    first = founds[min(founds)]
    return replace(
        first,
        usable_cpus=min(found.usable_cpus for found in founds.values()),
        setup_seconds=max(found.setup_seconds for found in founds.values()),
        samples_per_step=sum(found.samples_per_step for found in founds.values()),
        workers_unsafe=next((found.workers_unsafe for found in founds.values() if found.workers_unsafe), ""),
    )


def merged_done(parts: Mapping[int, WindowDone], lead: int | None = None) -> Together:
    """One window of all ranks. `lead`: the rank by whose clock it is dated and whose details are told; the lowest.

    Its time is that of the slowest rank: of those that timed the fewest steps (one that alone evaluates leaves that
    out, while the others time their waiting for it) the one that took longest. Samples are summed over ranks. Ranks
    keep step, so training waits for data as long as the rank that waits longest. It fails where one rank fails.
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
    wait = max((part.wait_seconds / part.seconds for part in parts.values() if part.seconds > 0), default=0.0)
    overheads = [part.epoch_overhead_seconds for part in parts.values() if part.epoch_overhead_seconds is not None]
    told = {field.name: getattr(base, field.name) for field in fields(WindowDone)}
    told.update(
        # Clocks of several hosts have nothing in common.
        started=first.started,
        ended=first.ended,
        lead_in_seconds=first.lead_in_seconds,
        samples=per_step * base.steps,
        wait_seconds=wait * base.seconds,
        ready_batches=min(part.ready_batches for part in parts.values()),
        epoch_overhead_seconds=max(overheads) if overheads else None,
        device_bytes=_most(part.device_bytes for part in parts.values()),
        device_reserved_bytes=_most(part.device_reserved_bytes for part in parts.values()),
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


def _most(values: Iterable[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)
