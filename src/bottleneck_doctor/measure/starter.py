"""Starts the processes that are measured, one alone or several side by side, brings them to their loops, records and
ends them."""

from __future__ import annotations

import contextlib
import math
import os
import shlex
import socket
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from bottleneck_doctor.documents.redaction import Discretion
from bottleneck_doctor.documents.report import SessionRecord, Setting
from bottleneck_doctor.errors import DoctorError, Exit
from bottleneck_doctor.knobs import num_workers
from bottleneck_doctor.measure import steps_left
from bottleneck_doctor.measure.budget import Budget, OutOfTime
from bottleneck_doctor.measure.outside import Outside
from bottleneck_doctor.measure.waiting import await_event
from bottleneck_doctor.protection import scratch
from bottleneck_doctor.protection.protector import Protector
from bottleneck_doctor.runtime.wire import messages
from bottleneck_doctor.runtime.wire import turn as whose_turn
from bottleneck_doctor.runtime.wire.expected import Expected
from bottleneck_doctor.runtime.wire.seen import Counts
from bottleneck_doctor.session import launch
from bottleneck_doctor.session.ending import Ending, SessionOver, ended
from bottleneck_doctor.session.failure import whereabouts
from bottleneck_doctor.session.session import Command, Session
from bottleneck_doctor.system.progress import Progress

LONGEST_SETUP = 600.0
"""Seconds that the first set-up may take when the user set no budget."""
SECONDS_BETWEEN_STARTS = 1.05
"""Programs that name folders by the second would collide if two starts fell into the same second."""
LONG_STEP = 1.0
"""Seconds of a step from which a process is told the loop of its side's last process, so that it finds it in fewer
steps. Shorter steps are over before a process has warmed up."""
_POLL = 0.1
"""Seconds to listen to one of several processes before the next one."""


@dataclass(frozen=True, kw_only=True)
class Side:
    """What is started. `name`: identifies the side. `said`: what sentences call it, if there are several sides."""

    name: str
    said: str = ""
    argv: tuple[str, ...]
    cwd: Path
    environment: Mapping[str, str]
    protector: Protector
    launched: bool = False
    """A launcher stands in front, and gets time to clear up after itself."""
    listen: tuple[str, int] | None = None
    """Where ranks on other hosts reach this side's supervisor."""
    setting: Setting = field(default_factory=dict)
    """What all of its windows are taken under; empty: what the script has."""
    tries: Mapping[str, Any] | None = field(default_factory=dict)
    """What an earlier process told of the knobs that its windows may have beside those of `setting`, by name, None
    where nothing is known; None: any knob."""


@dataclass
class Live:
    """One process. It stands at its loop once `found` is set."""

    side: Side
    session: Session
    found: messages.Found | None = None
    over: SessionOver | None = None
    """How it ended, if it ended by itself."""
    told: str = "told to end"
    """Why it was ended, if it did not end by itself."""
    trained: int = 0
    """Steps that it has made in windows, including lead-in."""
    steps_left: int | None = None
    """Steps that it had before it when it stood at its loop, by what the program says or an earlier process showed;
    None if nobody knows. Batches count, in a loop with a loader."""
    own_bytes: int | None = None
    """The most bytes of memory that its training processes held; None if that was not seen."""
    worker_bytes: int | None = None
    """The most bytes of memory that its loader workers had for themselves; None if that was not seen."""

    @property
    def loop(self) -> messages.Found:
        assert self.found is not None
        return self.found

    @property
    def num_workers(self) -> int:
        """How many workers make the batches of its windows."""
        return num_workers.under(self.side.setting, self.loop.num_workers)


class Broken(SessionOver):
    """A process ended before everything was measured. `alone`: the others still train, as far as was seen.
    `everywhere`: all of them failed before they stood at their loops."""

    def __init__(self, live: Live, over: SessionOver, *, alone: bool = True, everywhere: bool = False) -> None:
        super().__init__(over.ending, over.reason, tail=over.tail, hung=over.hung)
        self.live = live
        self.alone = alone
        self.everywhere = everywhere


@dataclass
class Starter:
    """Starts sides. Its records cover all processes that it started, in order."""

    budget: Budget
    progress: Progress
    outside: Outside
    verbose: bool = False
    discretion: Discretion | None = None
    number: int = 0
    """The number of the process that was started last, from 1."""
    setups: dict[int, float] = field(default_factory=dict)
    """Seconds that each process took until its loop was found, by its number."""
    setup_seconds: float = 0.0
    """Seconds that the last start took until all of its processes stood at their loops."""
    records: list[SessionRecord] = field(default_factory=list)
    endings: dict[int, Ending] = field(default_factory=dict)
    """How processes ended that ended by themselves, by their number."""
    known: messages.Found | None = None
    """The loop that sides have which were not started yet, if somebody has seen it."""
    last: dict[str, Live] = field(default_factory=dict)
    """The last process of each side for which all sides stood at their loops, by the side's name."""
    farewell: messages.Ended | None = None
    seen: Counts | None = None
    """What was seen in the last process that has ended, even if it was not enough to find a loop."""
    stood: str = ""
    """The sentence that says where a process stood that had not come to its loop as the time for that was over."""
    fewest_steps: int | None = None
    """The fewest steps that a process made from its loop to the end of the script; None if none came to its end."""
    missing_ranks: set[int] = field(default_factory=set)
    """Ranks that showed no training loop, on any side."""
    _last_start: float = -math.inf

    def setup(self) -> float:
        """About how many seconds another start takes until its loop is found: the shortest of the last three, because
        the first may have built caches. The first had to see more steps than those that know its loop."""
        known = list(self.setups.values())[-3:]
        return min(known) if len(known) > 1 else max(0.0, known[0] - self._found_sooner())

    def _found_sooner(self) -> float:
        """Seconds of steps that the next process need not make until its loop is found."""
        live = next(iter(self.last.values()), None)
        expected = None if live is None else self._expected(live.side)
        if live is None or expected is None:
            return 0.0
        steps = live.loop.step_seconds
        return max(0, len(steps) - expected.least_steps) * median(steps)

    @contextlib.contextmanager
    def live(self, sides: Sequence[Side], *, what: str, patience: Callable[[], float]) -> Iterator[list[Live]]:
        """A process of each side that stands at its loop, in the order of `sides`; ended and recorded whatever happens.

        `what`: what the progress line calls it (`Process 1`). `patience`: seconds to wait for the loops, asked once all
        are started. Raises `Broken` if a process does not get to its loop, `OutOfTime` if that takes too long, and
        `DoctorError` `entrypoint-unstartable` if a process can't be started.
        """
        lives: list[Live] = []
        with contextlib.ExitStack() as stack:
            try:
                begun = self.budget.now()
                if not self._stands(sides, lives, stack, what, patience):
                    self._stands(sides, lives, stack, what, patience)
                self._have_like_steps(lives)
                self.setup_seconds = self.budget.now() - begun
                self.last.update({live.side.name: live for live in lives})
                yield lives
            except OutOfTime:
                _tell(lives, "the time was over")
                for live in [live for live in lives if live.found is None][:1]:
                    self.stood = whereabouts(self.outside.stacks_of(live.session))
                raise
            except KeyboardInterrupt:
                _tell(lives, "interrupted")
                raise
            except SessionOver as over:
                broken = over.live if isinstance(over, Broken) else lives[0]
                broken.over = broken.over or over
                raise

    def _stands(
        self,
        sides: Sequence[Side],
        lives: list[Live],
        stack: contextlib.ExitStack,
        what: str,
        patience: Callable[[], float],
    ) -> bool:
        """Start all, and wait until they stand at their loops. Returns False, with nothing left of them, where one ends
        before that and it may be because of what earlier processes wrote. Whoever starts next finds none of it.

        A program may say that it was run already where it finds its own files, such as the configuration that it
        writes before it trains.
        """
        may_hinder = any(side.protector.may_hinder for side in sides)
        lives.clear()
        starting = stack.enter_context(contextlib.ExitStack())
        turn = _turn(starting) if len(sides) > 1 else None
        for side in sides:
            self._start(side, lives, starting, turn)
        try:
            self._await_loops(lives, what, patience())
        except Broken as broken:
            if not (may_hinder and broken.ending in (Ending.CRASH, Ending.END)):
                raise
            _tell(lives, f"started again without the files of earlier processes, because {broken.why}")
            for live in lives:
                live.over = None
            starting.close()
            return False
        return True

    def _start(self, side: Side, lives: list[Live], stack: contextlib.ExitStack, turn: Path | None) -> None:
        """Start a process of `side`. `turn`: what processes lock that are started at once; None if it is alone."""
        wait = SECONDS_BETWEEN_STARTS - (self.budget.now() - self._last_start)
        if wait > 0:
            self.outside.sleep(wait)
        self._last_start = self.budget.now()
        self.number += 1
        environment = {**side.environment}
        if turn is not None:
            environment = {**_own_port(environment), **environment}
        session = self.outside.start_session(
            Command(side.argv, side.cwd, environment, launched=side.launched, terminal=sys.stdout.isatty()),
            self.number,
            verbose=self.verbose,
            listen=side.listen or launch.slurm_address(os.environ),
            protector=side.protector,
            discretion=self.discretion,
            expected=self._expected(side),
            tried=None if side.tries is None else {**dict.fromkeys(side.setting), **side.tries},
            turn=turn,
        )
        live = Live(side, session)
        lives.append(live)
        stack.callback(self._end, live, alone=turn is None)
        try:
            session.start()
        except OSError as error:
            shown = shlex.join((self.discretion or Discretion()).words(side.argv))
            where = f" for {side.said}" if side.said else ""
            raise DoctorError(
                "entrypoint-unstartable",
                f"{shown} can't be started{where}: {error.strerror or error}.",
                "Check the interpreter given with --python, and whether this machine can start more processes.",
                Exit.ENTRYPOINT_FAILED,
            ) from error

    def _expected(self, side: Side) -> Expected | None:
        """The loop that the side's last process had, where finding it again takes time: steps are long, or no loader
        says what a step is."""
        last = self.last.get(side.name)
        found = self.known if last is None else last.found
        if found is None or (last is not None and last.session.ranks):
            return None
        steps = found.step_seconds
        takes_time = not found.has_loader or (steps and median(steps) >= LONG_STEP)
        return Expected.of(found) if takes_time else None

    def _await_loops(self, lives: Sequence[Live], what: str, patience: float) -> None:
        """Wait until all stand at their loops. If one fails, wait for the others, to know whether it failed alone."""
        now, progress = self.budget.now, f"{what}: waiting for the script's first training steps"
        self.progress.update(progress, self.budget.elapsed(), self.budget.total)
        deadline = now() + patience
        while waiting := [live for live in lives if live.found is None and live.over is None]:
            left = deadline - now()
            if left <= 0:
                if any(live.over is not None and live.over.crashed for live in lives):
                    break  # A crash says more than a timeout.
                raise OutOfTime
            for live in waiting:
                event = await_event(live.session, left if len(lives) == 1 else min(left, _POLL), now)
                if isinstance(event, messages.Found):
                    live.found = event
                    live.steps_left = steps_left.least(steps_left.told(event), self.fewest_steps)
                    self.setups[live.session.number] = now() - live.session.started
                elif event is not None:
                    live.over = ended(event)
            for live in lives:
                self.missing_ranks.update(live.session.rank_group.missing)
        failed = [(live, live.over) for live in lives if live.over is not None]
        if failed:
            live, over = failed[0]
            # All sides failed in the same way, so no side is to blame.
            everywhere = len(failed) == len(lives) and all(each.crashed for _, each in failed)
            raise Broken(live, over, alone=any(each.found is not None for each in lives), everywhere=everywhere)

    def _have_like_steps(self, lives: Sequence[Live]) -> None:
        """Raise `Broken` if a step is one call of an optimizer's closure for some, and many calls for others: these
        can't be compared. The next processes are told of the calls, so that all look for them."""
        by_calls = [live for live in lives if live.loop.of_closure]
        others = [live for live in lives if not live.loop.of_closure]
        if by_calls and others:
            self.last.update({live.side.name: by_calls[0] for live in lives})
            raise Broken(others[0], SessionOver(Ending.UNLIKE), alone=False)

    def _end(self, live: Live, *, alone: bool) -> None:
        session = live.session
        session.stop()
        self.farewell = session.farewell or self.farewell
        self.seen = session.seen or self.seen
        if live.over is not None:
            self.endings[session.number] = live.over.ending
            if live.over.ending is Ending.END and live.found is not None and session.farewell is not None:
                self.fewest_steps = steps_left.least(self.fewest_steps, steps_left.seen(live.found, session.farewell))
        self.records.append(
            SessionRecord(
                number=session.number,
                setup_seconds=self.setups.get(session.number, 0.0),
                seconds=self.budget.now() - session.started,
                ended=live.told if live.over is None else live.over.why,
                # Processes side by side would count each other as other programs.
                other_load=session.load.mean() if alone else None,
            )
        )


def _turn(stack: contextlib.ExitStack) -> Path:
    """A new file by which processes take turns until they stand at their loops. If there is no room for it, they train
    at once."""
    file = stack.enter_context(scratch.borrowed()) / whose_turn.NAME
    with contextlib.suppress(OSError):
        file.touch()
    return file


def _tell(lives: Sequence[Live], why: str) -> None:
    for live in lives:
        live.told = why


def _own_port(environment: Mapping[str, str]) -> dict[str, str]:
    """Variables with a free port at which the ranks of one side meet. All sides run at once and need different ports.

    torch and its launcher read these variables; torchrun reads its options from `PET_` and the option's name. If the
    user has set such a port already, only its number changes. If they have set a rendezvous (`PET_RDZV_...`), nothing
    is set.
    """
    if any(name.startswith("PET_RDZV_") for name in (*environment, *os.environ)):
        return {}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    return {"MASTER_PORT": port, "PET_MASTER_PORT": port}
