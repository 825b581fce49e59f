"""Starts one run of the entrypoint with a guest in it, talks to that guest, and ends everything that was started.

A `Command` and the supervisor's grants go in. Events come out: messages of the guest, the end of the process, or
silence. One session is one process tree, and `stop` leaves none of it behind. If several ranks train in it, each has a
guest with its own line, and `ranks.RankGroup` makes one of them all.
"""

from __future__ import annotations

import contextlib
import os
import queue
import socket
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from bottleneck_doctor.documents.redaction import Discretion
from bottleneck_doctor.monitor import LoadWatch
from bottleneck_doctor.protection import scratch
from bottleneck_doctor.protection.protector import Protector
from bottleneck_doctor.protection.retention import NEVER, Moments
from bottleneck_doctor.runtime.wire import expected as expected_loop
from bottleneck_doctor.runtime.wire import messages
from bottleneck_doctor.runtime.wire import seen as seen_so_far
from bottleneck_doctor.runtime.wire import tried as what_is_tried
from bottleneck_doctor.runtime.wire import turn as whose_turn
from bottleneck_doctor.session import process_tree, shown
from bottleneck_doctor.session.entrypoint_process import Command as Command
from bottleneck_doctor.session.entrypoint_process import EntrypointProcess
from bottleneck_doctor.session.guest_lines import SOCKET, GuestLines, Lost, send
from bottleneck_doctor.session.ranks import FOR_EVER, RankGroup
from bottleneck_doctor.session.script_output import ScriptOutput

_TICK = 0.25
"""Seconds between two looks at whether ranks have waited for one another for too long."""
_CLOCK_STEP = 1.0
"""A change of the clock by this many seconds or more was set by somebody; a smaller one is a correction."""
CRASH_GRACE = 2.0
LOST_GRACE = 5.0
"""Seconds that a launcher gets to end by itself, after a rank crashed, and after a rank ended without a message."""


@dataclass(frozen=True)
class Exited:
    """The process ended by itself. `code`: as `subprocess` gives it, negative for a signal."""

    code: int
    tail: str
    """The end of what it wrote to standard error and output."""


class Session:
    """One start of the entrypoint. Use `start`, then `event` and `grant` in turn, then `stop`."""

    def __init__(
        self,
        command: Command,
        number: int,
        *,
        verbose: bool = False,
        listen: tuple[str, int] | None = None,
        protector: Protector | None = None,
        discretion: Discretion | None = None,
        expected: expected_loop.Expected | None = None,
        tried: Mapping[str, Any] | None = None,
        turn: Path | None = None,
    ) -> None:
        self.number = number
        self._expected = expected
        self._tried = tried
        self._turn = turn
        self._protector = protector if protector is not None else Protector()
        self._moments: Moments | None = None
        self.started = 0.0
        self._set_forward = 0.0
        self._clock_held = True
        """Whether nobody has set the clock: if somebody did, the times of files don't say when they were made."""
        self.hello: messages.Hello | None = None
        self.farewell: messages.Ended | None = None
        self.seen: seen_so_far.Counts | None = None
        """What was seen in it, known once it has ended, even if it was not enough to find a loop."""
        self.load = LoadWatch()
        self.rank_group = RankGroup(socket.gethostname())
        self.ranks: list[messages.Hello] = []
        """The `Hello` of each of several ranks; empty with one process."""
        self._command = command
        self._verbose = verbose
        self._events: queue.Queue[tuple[messages.Hello | None, socket.socket | None, Any]] = queue.Queue()
        self._folder = _new_folder()
        self._scratch = self._folder / "scratch"
        discretion = discretion if discretion is not None else Discretion()
        self._lines = GuestLines(
            self._folder,
            listen,
            discretion,
            met=self._met,
            heard=lambda hello, line, message: self._events.put((hello, line, message)),
        )
        self._output = ScriptOutput(self._folder / "output.log", discretion, terminal=command.terminal)
        self._process = EntrypointProcess(command, self._folder, self._scratch, self._protector, self._output)
        self._crash: tuple[str, float] | None = None
        """What a rank said about its crash, and the time by which the launcher has to end."""
        self._lost: tuple[str, float] | None = None
        """The same for a rank that ended without a message."""
        self._stopped = False
        self._launchers_folders: set[Path] = set()

    # -- life --------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the process. Raises `OSError` if it can't be started at all, and `DoctorError` `listen-failed`."""
        invitation = self._lines.open()
        if self._expected is not None:
            invitation[expected_loop.NAME] = self._expected.told()
        if self._tried is not None:
            invitation[what_is_tried.NAME] = dict(sorted(self._tried.items()))
        if self._turn is not None:
            invitation[whose_turn.NAME] = str(self._turn)
        self._scratch.mkdir()
        self.started = time.monotonic()
        self._set_forward = _set_forward()
        told = {"scratch": str(self._scratch), "failed": str(self._scratch / shown.FAILED), "supervisor": os.getpid()}
        self._process.start({**invitation, **told})
        threading.Thread(target=self._await_end, daemon=True).start()
        threading.Thread(
            target=self._output.watch, args=(lambda: self._stopped,), kwargs={"show": self._verbose}, daemon=True
        ).start()
        self.load.start()

    def event(self, timeout: float) -> Any:
        """The next message of the guest, `Exited`, or None after `timeout` seconds of silence."""
        deadline = time.monotonic() + timeout
        while True:
            now = time.monotonic()
            self._clock_held = self._clock_held and abs(_set_forward() - self._set_forward) < _CLOCK_STEP
            sends, together = self.rank_group.settle(now)
            self._lines.deliver(sends)
            if together is not None:
                self.hello = self.rank_group.members[self.rank_group.first].hello
                self.ranks = self.rank_group.hellos()
                return together
            failure = self._crash or self._lost
            if failure is not None and now > failure[1]:
                return Exited(1, failure[0])
            if deadline <= now:
                return None
            trouble = self._cannot_begin(self.pid)
            if trouble is not None:
                return trouble
            try:
                hello, connection, message = self._events.get(timeout=min(deadline - now, _TICK))
            except queue.Empty:
                continue
            if isinstance(message, Exited) and not self._events.empty():
                # Its last messages may come after the news of its end.
                self._events.put((hello, connection, message))
                continue
            happened = self._heard(hello, connection, message)
            if happened is not None:
                return happened

    def _heard(self, hello: messages.Hello | None, connection: socket.socket | None, message: Any) -> Any:
        """Handle a message of one process. Returns the event if the message is one by itself, whatever other ranks say;
        otherwise None."""
        if isinstance(message, Exited):
            failure = self._crash or (self._lost if message.code else None)
            if message.code == 0 and self.farewell is None:
                # A launcher has no guest of its own, and a program that only calls others needs none.
                return self._cannot_begin(None) or message
            return message if failure is None else Exited(message.code or 1, failure[0])
        assert hello is not None
        if isinstance(message, messages.Found):
            assert connection is not None
            first = self.rank_group.members.get(hello.rank)
            if first is not None and hello.world == 1 and first.hello.pid != hello.pid:
                return self._met_another(first.hello, connection)
            self._lines.connect(hello.rank, connection)
            self._moments = self._moments or Moments(message.first_batch, time.time())
            self._lines.deliver(self.rank_group.found(hello, message, time.monotonic()))
        elif isinstance(message, messages.WindowDone):
            self.rank_group.done(hello.rank, message)
        elif isinstance(message, messages.Ended):
            if self.farewell is None or message.batches >= self.farewell.batches:
                self.farewell = message
            return message
        elif isinstance(message, messages.Crashed):
            # Ranks that were waiting for it in a collective crash too, but later.
            if self._crash is None and self._lost is None:
                text = f"Rank {hello.rank} of {hello.world} on {hello.host}:\n\n{message.text}"
                self._crash = (text, time.monotonic() + CRASH_GRACE)
        elif isinstance(message, Lost):
            if self._crash is None and self._lost is None and hello.world > 1:
                text = f"{self.tail()}\nrank {hello.rank} of {hello.world} on {hello.host} was killed"
                self._lost = (text, time.monotonic() + LOST_GRACE)
        else:
            return message
        return None

    def _cannot_begin(self, pid: int | None) -> messages.Trouble | None:
        """The message that the guest of this process, or of any, could not begin; None if none has said so, or one was
        met all the same."""
        text = "" if self.hello is not None else shown.failure(self._scratch, pid)
        return messages.Trouble(text=text) if text else None

    def _met_another(self, first: messages.Hello, connection: socket.socket) -> Any:
        """A second process trains by itself, not as a rank of the same training. It runs on as it would without doctor.
        If the first one has ended, nothing more can be measured."""
        if process_tree.lives(first.pid):
            send(connection, messages.Grant(-1, {}, "timed", 0, FOR_EVER))
            return None
        return Exited(0, self.tail())

    def grant(self, grant: messages.Grant) -> None:
        """Have all ranks run a window. If a guest is gone, the next `event` is `Exited`."""
        self._lines.deliver(self.rank_group.granted(grant))

    def stop(self) -> None:
        """End the guest and everything that was started, and remove the session's folder. May be called twice."""
        if self._stopped:
            return
        self.seen = shown.most_seen(self._scratch)
        self._stopped = True
        self._lines.expect_end()
        orphans = self._process.end(self._lines.end)
        if orphans is not None:
            self.load.finish(orphans)
        self._lines.close()
        for folder in self._launchers_folders:
            scratch.remove(folder)
        self._protector.leave(self._folder, self._moments if self._clock_held else self._moments and NEVER)
        scratch.remove(self._folder)

    @property
    def pid(self) -> int | None:
        return self._process.pid

    def is_away(self) -> bool:
        """Whether training on this host stands still for other work of the user's, such as an evaluation."""
        return shown.is_away(self._scratch)

    def has_last_step(self) -> bool:
        """Whether the last step has begun that the program says it will make."""
        return shown.has_last_step(self._scratch)

    def progress(self) -> dict[int, int]:
        """Steps that each rank on this host has begun since its loop was found, by rank. While they grow, nothing
        hangs. Only the difference between two looks means anything."""
        return shown.steps(self._scratch, {rank: each.hello.pid for rank, each in self.rank_group.members.items()})

    def tail(self) -> str:
        """The end of what the process wrote, with secrets masked. If it wrote much, its beginning comes first."""
        return self._output.tail()

    # -- threads -----------------------------------------------------------------------------------------------------

    def _met(self, hello: messages.Hello) -> None:
        """A guest said `Hello`."""
        self.hello = self.hello or hello
        if self._command.launched and hello.host == socket.gethostname():
            self._launchers_folders.update(_launchers_folder(hello.pid))

    def _await_end(self) -> None:
        code = self._process.wait()
        time.sleep(0.05)  # Its last messages are still on the line.
        self._output.await_end(1.0)
        self._events.put((None, None, Exited(code, self.tail())))


def _set_forward() -> float:
    """Seconds by which the time of day is ahead of the monotonic clock. They change if somebody sets the clock."""
    return time.time() - time.monotonic()


def _new_folder() -> Path:
    """A new temporary folder whose path is short enough for a socket: some kernels take only 104 bytes."""
    folder = scratch.new_folder()
    if len(os.fsencode(folder / SOCKET)) < 104:
        return folder
    scratch.remove(folder)
    return scratch.new_folder(Path("/tmp"))


def _launchers_folder(pid: int) -> set[Path]:
    """The temporary folder that torchrun made for errors of this rank. It leaves the folder behind even without any."""
    with contextlib.suppress(psutil.Error, IndexError):
        file = psutil.Process(pid).environ().get("TORCHELASTIC_ERROR_FILE", "")
        folder = Path(file).parents[3]
        if folder.name.startswith("torchelastic_"):
            return {folder}
    return set()
