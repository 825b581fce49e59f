"""The processes of an examination, one after another: started, brought to their loop, recorded, ended.

The edge where processes are.
"""

from __future__ import annotations

import contextlib
import math
import os
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from bottleneck_doctor.documents.report import Rank, SessionRecord
from bottleneck_doctor.errors import DoctorError, Exit
from bottleneck_doctor.examine.request import Request
from bottleneck_doctor.measure.budget import Budget, OutOfTime
from bottleneck_doctor.measure.outside import Outside
from bottleneck_doctor.measure.prober import await_event, ended
from bottleneck_doctor.monitor import Watch
from bottleneck_doctor.protection.keeper import Keeper
from bottleneck_doctor.runtime import messages
from bottleneck_doctor.runtime.seen import Counts
from bottleneck_doctor.session import launch
from bottleneck_doctor.session.session import Command, Session
from bottleneck_doctor.system.progress import Progress

LONGEST_SETUP = 600.0
"""Seconds that the first set-up may take when the user set no budget."""
SECONDS_BETWEEN_STARTS = 1.05
"""Programs that name folders by the second collide when two starts fall into one."""


class Processes:
    """Starts them. `setups`: seconds that each took until its loop was found, by its number. `why` the one that runs
    ended, or the last one did."""

    def __init__(self, request: Request, budget: Budget, progress: Progress, outside: Outside) -> None:
        self.number = 0
        self.why = ""
        self.setups: dict[int, float] = {}
        self.records: list[SessionRecord] = []
        self.hello: messages.Hello | None = None
        self.farewell: messages.Ended | None = None
        self.seen: Counts | None = None
        self.ranks: list[Rank] = []
        self.missing_ranks: list[int] = []
        self.keeper: Keeper | None = None
        self.watch: Callable[[Session], Watch | None] = lambda session: None
        """Starts watching a process that stands at its loop."""
        self._request = request
        self._budget = budget
        self._progress = progress
        self._outside = outside
        self._watching: Watch | None = None
        self._last_start = -math.inf

    def setup(self) -> float:
        """Seconds that another start takes until its loop is found, about. The first may have had caches to make."""
        return min(list(self.setups.values())[-3:])

    @contextlib.contextmanager
    def one(self) -> Iterator[Session]:
        """A started session, ended and recorded whatever happens. Raises `DoctorError` where it can't be started."""
        wait = SECONDS_BETWEEN_STARTS - (self._budget.now() - self._last_start)
        if wait > 0:
            self._outside.sleep(wait)
        self._last_start = self._budget.now()
        self.number += 1
        self.why = "told to end"
        self._progress.stage(f"Starting the script (process {self.number})")
        session, command = self._made()
        try:
            session.start()
            yield session
        except OSError as error:
            shown = shlex.join(self._request.discretion.words(command.argv))
            raise DoctorError(
                "entrypoint-unstartable",
                f"{shown} can't be started: {error.strerror or error}.",
                "Check the interpreter given by --python, and that this machine can start more processes.",
                Exit.ENTRYPOINT_FAILED,
            ) from error
        except OutOfTime:
            self.why = "the time was over"
            raise
        except KeyboardInterrupt:
            self.why = "interrupted"
            raise
        finally:
            if self._watching is not None:
                self._watching.stop()
                self._watching = None
            session.stop()
            self.farewell = session.farewell or self.farewell
            self.seen = session.seen or self.seen
            self.records.append(
                SessionRecord(
                    number=session.number,
                    setup_seconds=self.setups.get(session.number, 0.0),
                    seconds=self._budget.now() - session.started,
                    ended=self.why,
                    other_load=session.load.mean(),
                )
            )

    def _made(self) -> tuple[Session, Command]:
        request, start = self._request, self._request.start
        command = Command(
            start.argv(),
            Path.cwd(),
            dict(start.environment),
            launched=bool(start.launcher),
            terminal=sys.stdout.isatty(),
        )
        session = self._outside.start_session(
            command,
            self.number,
            verbose=request.verbose,
            listen=start.listen or launch.slurm_address(os.environ),
            keeper=self.keeper,
            discretion=request.discretion,
        )
        return session, command

    def found(self, session: Session) -> messages.Found:
        """Wait until the guest has found the loop. Raises `OutOfTime`, and `SessionOver` where it ends before."""
        self._progress.update(
            f"Process {self.number}: waiting for the script's first training steps",
            self._budget.elapsed(),
            self._budget.total,
        )
        patient = not self.setups and not self._budget.strict
        seconds = LONGEST_SETUP if patient else max(0.0, self._budget.left())
        event = await_event(session, seconds, self._budget.now)
        if event is None:
            raise OutOfTime
        if not isinstance(event, messages.Found):
            self.farewell = session.farewell
            raise ended(event)
        self.hello = session.hello or self.hello
        self.ranks = self.ranks or [
            Rank(rank=each.rank, local_rank=each.local_rank, host=each.host) for each in session.ranks
        ]
        self.missing_ranks = session.company.missing
        self.setups[session.number] = self._budget.now() - session.started
        return event

    def look_at(self, session: Session) -> None:
        """Watch the machine beside this session until it ends."""
        self._watching = self.watch(session)
