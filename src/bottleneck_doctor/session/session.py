"""Starts one run of the entrypoint with a guest in it, talks to that guest, and ends everything it started.

What enters is a `Command` and the supervisor's grants; what leaves are events: messages of the guest, the end of the
process, or silence. One session is one process tree; `stop` leaves none of it behind. Where several ranks train in it,
each has a guest with a line of its own, and `ranks.RankGroup` makes one of them.
"""

from __future__ import annotations

import contextlib
import os
import queue
import socket
import threading
import time
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
from bottleneck_doctor.session import process_tree, shown
from bottleneck_doctor.session.entrypoint_process import Command as Command
from bottleneck_doctor.session.entrypoint_process import EntrypointProcess
from bottleneck_doctor.session.guest_lines import SOCKET, GuestLines, Lost, send
from bottleneck_doctor.session.ranks import FOR_EVER, RankGroup
from bottleneck_doctor.session.script_output import ScriptOutput

_TICK = 0.25
"""Seconds after which it is looked again whether ranks have waited for one another for too long."""
_CLOCK_STEP = 1.0
"""Seconds by which a clock is set and not merely corrected."""
CRASH_GRACE = 2.0
LOST_GRACE = 5.0
"""Seconds that a launcher gets to end by itself after a rank crashed, or ended without a word."""


@dataclass(frozen=True)
class Exited:
    """The process ended by itself. `code` as `subprocess` gives it: negative for a signal."""

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
    ) -> None:
        self.number = number
        self._expected = expected
        self._protector = protector if protector is not None else Protector()
        self._moments: Moments | None = None
        self.started = 0.0
        self._set_forward = 0.0
        self._clock_held = True
        """Whether the time of day went on as time did: else times of files say nothing of what was made when."""
        self.hello: messages.Hello | None = None
        self.farewell: messages.Ended | None = None
        self.seen: seen_so_far.Counts | None = None
        """Once it has ended: what was seen in it, of which no loop may have been made."""
        self.load = LoadWatch()
        self.rank_group = RankGroup(socket.gethostname())
        self.ranks: list[messages.Hello] = []
        """Of several ranks, what each said of itself; empty with one process."""
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
        """What a rank said of its crash, and until when the launcher may take to end."""
        self._lost: tuple[str, float] | None = None
        """The same of a rank that ended without a word."""
        self._stopped = False
        self._launchers_folders: set[Path] = set()

    # -- life --------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the process. Raises `OSError` where it can't be started at all, and `DoctorError` `listen-failed`."""
        invitation = self._lines.open()
        if self._expected is not None:
            invitation[expected_loop.NAME] = self._expected.told()
        self._scratch.mkdir()
        self.started = time.monotonic()
        self._set_forward = _set_forward()
        self._process.start({**invitation, "scratch": str(self._scratch), "supervisor": os.getpid()})
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
            try:
                hello, connection, message = self._events.get(timeout=min(deadline - now, _TICK))
            except queue.Empty:
                continue
            if isinstance(message, Exited) and not self._events.empty():
                # Its last words may have come in behind the news of its end.
                self._events.put((hello, connection, message))
                continue
            happened = self._heard(hello, connection, message)
            if happened is not None:
                return happened

    def _heard(self, hello: messages.Hello | None, connection: socket.socket | None, message: Any) -> Any:
        """Take note of what one process said. What is an event by itself, whatever other ranks say, is returned."""
        if isinstance(message, Exited):
            failure = self._crash or (self._lost if message.code else None)
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
            # Those that were waiting for it in a collective crash too, and later.
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

    def _met_another(self, first: messages.Hello, connection: socket.socket) -> Any:
        """A second process trains by itself, and is no rank of one training. It runs as it would alone; where the first
        one is over, so is what can be measured."""
        if process_tree.lives(first.pid):
            send(connection, messages.Grant(-1, {}, "timed", 0, FOR_EVER))
            return None
        return Exited(0, self.tail())

    def grant(self, grant: messages.Grant) -> None:
        """Let all ranks run a window. A guest that is gone shows up as `Exited` at the next `event`."""
        self._lines.deliver(self.rank_group.granted(grant))

    def stop(self) -> None:
        """End the guest and everything that it started, and remove the session's folder. Can be called twice."""
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
        """Whether training stands still on this host for something of the user's own: an evaluation, a checkpoint."""
        return shown.is_away(self._scratch)

    def progress(self) -> dict[int, int]:
        """Steps that each rank has begun since its loop was found, by its number, of those on this host: while they
        grow, nothing hangs. Only what they differ by from one look to the next means anything."""
        return shown.steps(self._scratch, {rank: each.hello.pid for rank, each in self.rank_group.members.items()})

    def tail(self) -> str:
        """The end of what the process wrote, behind its first words where it wrote much, without what is secret."""
        return self._output.tail()

    # -- threads -----------------------------------------------------------------------------------------------------

    def _met(self, hello: messages.Hello) -> None:
        """A guest said its first words."""
        self.hello = self.hello or hello
        if self._command.launched and hello.host == socket.gethostname():
            self._launchers_folders.update(_launchers_folder(hello.pid))

    def _await_end(self) -> None:
        code = self._process.wait()
        time.sleep(0.05)  # Its last words are still on the line.
        self._output.await_end(1.0)
        self._events.put((None, None, Exited(code, self.tail())))


def _set_forward() -> float:
    """Seconds that the time of day is ahead of time that only goes on; they change where somebody sets the clock."""
    return time.time() - time.monotonic()


def _new_folder() -> Path:
    """A new temporary folder whose path leaves room for a socket's name: 104 bytes is all that some kernels take."""
    folder = scratch.new_folder()
    if len(os.fsencode(folder / SOCKET)) < 104:
        return folder
    scratch.remove(folder)
    return scratch.new_folder(Path("/tmp"))


def _launchers_folder(pid: int) -> set[Path]:
    """The temporary folder that torchrun made for errors of this rank, and leaves behind even where there are none."""
    with contextlib.suppress(psutil.Error, IndexError):
        file = psutil.Process(pid).environ().get("TORCHELASTIC_ERROR_FILE", "")
        folder = Path(file).parents[3]
        if folder.name.startswith("torchelastic_"):
            return {folder}
    return set()
