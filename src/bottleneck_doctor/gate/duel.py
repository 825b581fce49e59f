"""Pairs of live processes, one of each revision, whose windows are granted in turn: the edge where a check measures.

Both processes stand at a step's boundary; only one of them trains at a time, so neither takes anything from the other
and drift of the machine meets both. A pair is one draw of luck, so each is started anew. What enters are two
`Contender`s, what leaves are `PairSample`s.
"""

from __future__ import annotations

import contextlib
import math
import os
import random
import re
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bottleneck_doctor.documents.labels import BASELINE
from bottleneck_doctor.documents.redaction import Discretion
from bottleneck_doctor.documents.report import Window
from bottleneck_doctor.errors import DoctorError, Exit
from bottleneck_doctor.examine import outcome
from bottleneck_doctor.examine.examination import (
    LONGEST_SETUP,
    SECONDS_BETWEEN_STARTS,
)
from bottleneck_doctor.gate import plan
from bottleneck_doctor.gate.metrics import PairSample, SideSample
from bottleneck_doctor.gate.plan import Name
from bottleneck_doctor.measure import burn_in, phases, schedule
from bottleneck_doctor.measure import pairing as ev
from bottleneck_doctor.measure.budget import Budget, OutOfTime
from bottleneck_doctor.measure.measurements import Measurements
from bottleneck_doctor.measure.outside import Outside
from bottleneck_doctor.measure.prober import BURN_IN, CAME_TO_ITS_END, Prober, SessionOver, ended
from bottleneck_doctor.measure.schedule import Plan, probe
from bottleneck_doctor.protection.keeper import Keeper
from bottleneck_doctor.runtime import messages
from bottleneck_doctor.session import launch
from bottleneck_doctor.session.session import Command, Session
from bottleneck_doctor.system.progress import Progress, SilentProgress

PHASE_WINDOW_SECONDS = 0.6
LEAST_KEPT_ROUNDS = 2
"""A pair that breaks keeps its rounds if there are so many."""
MOST_BROKEN_PAIRS = 3
_POLL = 0.1
_PORT_TAKEN = re.compile(
    r"EADDRINUSE|address already in use|Port `\d+` is already in use|on port `\d+`, but", re.IGNORECASE
)


@dataclass(frozen=True)
class Contender:
    """One revision, ready to be started. `said`: how it is called in sentences. `roots`: of its files, and of those
    that it shares with the other one."""

    name: Name
    said: str
    argv: tuple[str, ...]
    cwd: Path
    roots: tuple[Path, ...]
    environment: Mapping[str, str]
    keeper: Keeper
    launched: bool = False
    """A launcher stands in front, and gets time to clear up after itself."""
    listen: tuple[str, int] | None = None
    """Where ranks on other hosts reach this side's supervisor."""


@dataclass
class Corner:
    """One process of a live pair."""

    contender: Contender
    session: Session
    outside: Outside = field(default_factory=Outside, kw_only=True)
    found: messages.Found | None = None
    over: SessionOver | None = None
    prober: Prober | None = None
    windows: list[Window] = field(default_factory=list)
    trained: int = 0
    """Steps that it has made in windows, those that lead in among them."""
    own_bytes: int | None = None
    """The most that its training processes held, as long as they lived."""
    worker_bytes: int | None = None
    """The most that its loader workers had for themselves; None where that was not seen."""

    @property
    def loop(self) -> messages.Found:
        assert self.found is not None
        return self.found

    @property
    def measures(self) -> Prober:
        assert self.prober is not None
        return self.prober


class Broken(Exception):
    """One side's process ended before all was measured. `alone`: the other one's trains, for as long as was looked."""

    def __init__(self, corner: Corner, over: SessionOver, *, alone: bool = True) -> None:
        super().__init__(over.why)
        self.corner = corner
        self.over = over
        self.alone = alone


class Starts:
    """Starts contenders. `setup_seconds`: what the last start took until all loops were found."""

    def __init__(
        self,
        budget: Budget,
        progress: Progress,
        *,
        verbose: bool = False,
        discretion: Discretion | None = None,
        outside: Outside | None = None,
    ) -> None:
        self.setup_seconds = 0.0
        self.hello: messages.Hello | None = None
        self.found: messages.Found | None = None
        """Of the head, for what must be said of the machine and the loop."""
        self.missing_ranks: set[int] = set()
        """Ranks that showed no training loop, on either side."""
        self._budget = budget
        self._progress = progress
        self._verbose = verbose
        self._discretion = discretion
        self._outside = outside or Outside()
        self._starts = 0
        self._last_start = -math.inf

    @contextlib.contextmanager
    def live(self, contenders: Sequence[Contender], number: int, what: str) -> Iterator[dict[Name, Corner]]:
        """Started processes whose loops are found; ended whatever happens. `what`: `Pair`, in what is told meanwhile.

        Raises `Broken` where one of them does not get there, `OutOfTime` where the time ends before.
        """
        with contextlib.ExitStack() as stack:
            begun = self._budget.now()
            corners = [self._started(each, stack) for each in contenders]
            self._await_loops(corners, number, what)
            self.setup_seconds = self._budget.now() - begun
            by_name = {corner.contender.name: corner for corner in corners}
            self.hello, self.found = by_name["head"].session.hello, by_name["head"].found
            yield by_name

    def _started(self, contender: Contender, stack: contextlib.ExitStack) -> Corner:
        wait = SECONDS_BETWEEN_STARTS - (self._budget.now() - self._last_start)
        if wait > 0:
            self._outside.sleep(wait)
        self._last_start = self._budget.now()
        self._starts += 1
        command = Command(
            contender.argv,
            contender.cwd,
            {**_own_port(contender.environment), **contender.environment},
            launched=contender.launched,
            terminal=sys.stdout.isatty(),
        )
        session = self._outside.start_session(
            command,
            self._starts,
            verbose=self._verbose,
            listen=contender.listen or launch.slurm_address(os.environ),
            keeper=contender.keeper,
            discretion=self._discretion,
        )
        stack.callback(session.stop)
        try:
            session.start()
        except OSError as error:
            raise DoctorError(
                "entrypoint-unstartable",
                f"{contender.argv[0]} can't be started for {contender.said}: {error.strerror or error}.",
                "Check the interpreter given by --python, and that this machine can start more processes.",
                Exit.ENTRYPOINT_FAILED,
            ) from error
        return Corner(contender, session, outside=self._outside)

    def _await_loops(self, corners: list[Corner], number: int, what: str) -> None:
        """Wait until all stand at their loops. Where one fails, the other is waited for: who fails alone is told."""
        now = self._budget.now
        deadline = now() + (LONGEST_SETUP if number == 1 else max(60.0, 4 * self.setup_seconds))
        if self._budget.strict:
            deadline = min(deadline, now() + max(0.0, self._budget.left()))
        while waiting := [corner for corner in corners if corner.found is None and corner.over is None]:
            if now() > deadline:
                if any(corner.over is not None and corner.over.crashed for corner in corners):
                    break  # That says more than that the other one took too long.
                raise OutOfTime
            self._progress.update(
                f"{what} {number}: looking for the training loops", self._budget.spent(), self._budget.seconds
            )
            for corner in waiting:
                event = corner.session.event(_POLL)
                if isinstance(event, messages.Found):
                    corner.found = event
                elif event is not None and not isinstance(event, messages.Ended):
                    corner.over = ended(event)
            for corner in corners:
                self.missing_ranks.update(corner.session.company.missing)
        broken = [(corner, corner.over) for corner in corners if corner.over is not None]
        if not broken:
            return
        corner, over = broken[0]
        if len(broken) == len(corners) and all(each.crashed for _, each in broken):
            # Alike on all sides, so no revision is to blame.
            raise outcome.entrypoint_failed(over)
        raise Broken(corner, over, alone=any(each.found is not None for each in corners))


class Duel(Starts):
    """Starts pairs."""

    def __init__(
        self,
        base: Contender,
        head: Contender,
        budget: Budget,
        generator: random.Random,
        progress: Progress,
        *,
        verbose: bool = False,
        discretion: Discretion | None = None,
        outside: Outside | None = None,
    ) -> None:
        super().__init__(budget, progress, verbose=verbose, discretion=discretion, outside=outside)
        self._contenders = (base, head)
        self._generator = generator

    @contextlib.contextmanager
    def pair(self, number: int) -> Iterator[LivePair]:
        """Two started processes whose loops are found; ended whatever happens. Raises as `live` does."""
        contenders = list(self._contenders)
        self._generator.shuffle(contenders)
        with self.live(contenders, number, "Pair") as corners:
            yield LivePair(number, corners["base"], corners["head"], self._budget, self._generator, self.setup_seconds)


class Live:
    """Processes at their loops. `broken`: one of them is gone, and nothing more can be asked of them."""

    def __init__(self, number: int, corners: Sequence[Corner], budget: Budget, setup_seconds: float) -> None:
        self.number = number
        self.broken: Broken | None = None
        self._budget = budget
        self._setup_seconds = setup_seconds
        for corner in corners:
            _prepare(corner, budget)

    def _doing(self, corner: Corner, what: Any) -> Any:
        try:
            return what(corner)
        except SessionOver as over:
            raise Broken(corner, over) from over
        except OutOfTime as late:
            raise Broken(corner, SessionOver("a window took far longer than expected")) from late

    def _burn_in(self, corner: Corner) -> None:
        """Windows that are thrown away, until the speed is level."""
        if burn_in.needed(corner.loop, corner.measures):
            burn_in.burn_in(lambda: _thrown_away(corner, plan.WINDOW_SECONDS / 2))

    def _window_seconds(self, corner: Corner) -> float:
        """What a window takes with its lead-in, about, before the first was measured."""
        prober = corner.measures
        step = prober.expected_step({})
        if prober.epochs:
            return max(plan.WINDOW_SECONDS, 1.5 * prober.epoch_seconds)
        size = schedule.window_size(
            schedule.shape_of(corner.loop), {}, "timed", step, plan.WINDOW_SECONDS, epochs=False
        )
        return (size.lead_in + size.steps) * step

    def _window(self, corner: Corner, block: int) -> None:
        corner.measures.block = block
        window = corner.measures.measure(corner.session, probe(BASELINE, {}))
        corner.windows.append(window)
        corner.trained += window.lead_in_steps + window.steps
        # Of a process that has ended nothing can be read any more.
        _note_memory(corner)


class LivePair(Live):
    """Two processes at their loops, one of each revision."""

    def __init__(
        self, number: int, base: Corner, head: Corner, budget: Budget, generator: random.Random, setup_seconds: float
    ) -> None:
        super().__init__(number, (base, head), budget, setup_seconds)
        self.base = base
        self.head = head
        self._generator = generator
        # Both time whole epochs or neither does: what a window holds must be the same.
        whole = base.measures.epochs and head.measures.epochs
        base.measures.epochs = head.measures.epochs = whole

    def measure(self) -> PairSample:
        """Windows of both in turn, then phases and memory. Raises `Broken` where too little could be measured.

        The time that is left is no limit: a pair that was begun is ended, so that what came of it does not depend on
        how fast it was.
        """
        told: dict[Name, dict[str, float] | None] = {"base": None, "head": None}
        plain = True
        try:
            self._rounds()
            plain = False  # Whoever crashes under our timers may owe it to them.
            for corner in (self.base, self.head):
                told[corner.contender.name] = self._doing(corner, phases_of)
        except Broken as broken:
            self.broken = broken
            broken.alone &= plain
            # What only one side could still show is no difference between the revisions.
            told = {"base": None, "head": None}
        base, head = sample_of(self.base, told["base"]), sample_of(self.head, told["head"])
        if self.broken is not None and None in (base.peak_bytes, head.peak_bytes):
            base, head = replace(base, peak_bytes=None), replace(head, peak_bytes=None)
        sample = PairSample(number=self.number, base=base, head=head)
        if len(sample.rounds()) < LEAST_KEPT_ROUNDS:
            raise self.broken or Broken(self.head, SessionOver("no window could be timed"))
        return sample

    def _rounds(self) -> None:
        try:
            for corner in (self.base, self.head):
                self._doing(corner, self._burn_in)
            cost = max(self._window_seconds(corner) for corner in (self.base, self.head))
            count = plan.rounds(self._setup_seconds, cost, self._budget.seconds)
            for round_, names in enumerate(plan.order(count, self._generator), 1):
                for name in names:
                    self._doing(self._corner(name), lambda corner, block=round_: self._window(corner, block))
        except Broken as broken:
            if broken.over.crashed:
                broken.alone = self._outlived(broken.corner)
            raise

    def _outlived(self, failed: Corner) -> bool:
        """Whether the other side trains on beyond the step at which this one failed."""
        other = self.base if failed is self.head else self.head
        # How far it came in the window that it failed in is not known.
        sizes = [window.lead_in_steps + window.steps for each in (failed, other) for window in each.windows]
        goal = failed.trained + 2 * max(sizes, default=0)
        with contextlib.suppress(Broken):
            for _ in range(plan.MOST_ROUNDS):
                if other.trained > goal:
                    return True
                self._doing(other, lambda corner: _thrown_away(corner, plan.WINDOW_SECONDS))
        return False

    def _corner(self, name: Name) -> Corner:
        return self.base if name == "base" else self.head


def _own_port(environment: Mapping[str, str]) -> dict[str, str]:
    """A free port for the ranks of one side to meet at: both sides are alive at once, and can't meet at one.

    torch and its launcher read these (torchrun's options as PET_ and their name); of a port that was set for the other
    side as well only the number is another.
    """
    if any(name.startswith("PET_RDZV_") for name in (*environment, *os.environ)):
        return {}
    with socket.socket() as probe_:
        probe_.bind(("127.0.0.1", 0))
        port = str(probe_.getsockname()[1])
    return {"MASTER_PORT": port, "PET_MASTER_PORT": port}


def can_be_whole(corner: Corner) -> bool:
    """Whether windows can be whole epochs."""
    shape = schedule.shape_of(corner.loop)
    return shape.served and shape.epoch_batches is not None


def _prepare(corner: Corner, budget: Budget) -> None:
    found = corner.loop
    step = schedule.typical_step(found.step_seconds, found.num_workers, found.period)
    one = Plan(1, budget.seconds, plan.WINDOW_SECONDS)
    # Where nobody set a time, none is over: a window is waited for as long as its steps may take.
    shape, patient = schedule.shape_of(found), budget.patient()
    corner.prober = Prober(Measurements(found), shape, one, patient, SilentProgress(), step)


def _thrown_away(corner: Corner, seconds: float) -> Window:
    """A window that is not counted."""
    window = corner.measures.measure(corner.session, probe(BURN_IN, {}), seconds=seconds)
    corner.trained += window.lead_in_steps + window.steps
    return window


def phases_of(corner: Corner) -> dict[str, float] | None:
    """Seconds a step in each phase; None where they could not be told apart."""
    each = probe("phases:" + BASELINE, {}, mode="phases")
    # Nothing of this window is counted, so its workers may be looked at meanwhile.
    with corner.outside.workers_of(corner.session) as watch:
        window, detail = corner.measures.explain(corner.session, each, PHASE_WINDOW_SECONDS, {})
    corner.worker_bytes = watch.peak
    if window.status != "ok" or not window.steps:
        return None
    shares = phases.phases([detail])
    if shares is None:
        return None
    # The shares of a slowed loop, told as parts of a step as it is.
    usable = [window for window in corner.windows if ev.usable(window)]
    step = sum(window.seconds for window in usable) / max(1, sum(window.steps for window in usable))
    return {name: getattr(shares, name) * step for name in shares.__dataclass_fields__}


def sample_of(corner: Corner, told: dict[str, float] | None) -> SideSample:
    """What a process showed. `told`: its phases, None where they could not be seen."""
    _note_memory(corner)
    shape = schedule.shape_of(corner.loop)
    return SideSample(
        windows=corner.windows,
        has_loader=corner.loop.has_loader,
        epoch_batches=shape.epoch_batches if shape.served else None,
        first_step=corner.loop.setup_seconds or None,
        peak_bytes=_host_bytes(corner),
        device_bytes=corner.measures.device_bytes,
        device_reserved_bytes=corner.measures.device_reserved_bytes,
        phases=told,
    )


def _note_memory(corner: Corner) -> None:
    seen = corner.outside.memory_of(corner.session)
    if seen is not None:
        corner.own_bytes = max(seen, corner.own_bytes or 0)


def _host_bytes(corner: Corner) -> int | None:
    """The most memory that the training processes and their workers have had; None where it can't be told."""
    own, workers = corner.own_bytes, corner.worker_bytes
    if own is None or (workers is None and corner.loop.num_workers):
        return None
    return own + (workers or 0)


def failure(broken: Broken) -> DoctorError:
    """Why one side can't be measured."""
    contender, over = broken.corner.contender, broken.over
    if over.ours:
        return outcome.guest_failed(over)
    if over.apart:
        return outcome.ranks_apart(over)
    if over.why == CAME_TO_ITS_END or over.hung is not None:
        farewell = broken.corner.session.farewell
        hung = over.hung is not None
        plain = outcome.entrypoint_failed(over) if hung else outcome.no_training(farewell, over.tail)
        where = contender.said if broken.alone else "both revisions"
        told = f"{where[0].upper()}{where[1:]}: {plain.sentence}"
        return DoctorError(plain.slug, told, plain.next_step, plain.exit_code, detail=plain.detail)
    if over.crashed and _PORT_TAKEN.search(over.tail):
        return DoctorError(
            "port-taken",
            f"{contender.said[0].upper()}{contender.said[1:]} can't use the port at which its processes meet: "
            "both revisions are alive at once in a check.",
            "Use the port in MASTER_PORT, which differs between the two sides, or any free port: `torchrun "
            "--standalone`, `accelerate launch --main_process_port 0`.",
            Exit.ENTRYPOINT_FAILED,
            detail=over.tail,
        )
    reason = over.why.removeprefix("the script failed: ").rstrip(".")
    trains = "; the other one trains" if broken.alone else ""
    if contender.name == "base":
        return DoctorError(
            "base-failed",
            f"The script fails on {contender.said}{trains}: {reason}.",
            "If the base needs a build or other files, make them with --base-setup. The end of its output is below.",
            Exit.ENTRYPOINT_FAILED,
            detail=over.tail,
        )
    return DoctorError(
        "head-failed",
        f"The script fails on {contender.said}{trains}: {reason}.",
        "Correct it. The end of its output is below.",
        Exit.ENTRYPOINT_FAILED,
        detail=over.tail,
    )
