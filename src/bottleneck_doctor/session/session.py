"""Starts one run of the entrypoint with a guest in it, talks to that guest, and ends everything it started.

What enters is a `Command` and the supervisor's grants; what leaves are events: messages of the guest, the end of the
process, or silence. One session is one process tree; `stop` leaves none of it behind. Where several ranks train in it,
each has a guest with a line of its own, and `ranks.RankGroup` makes one of them.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import os
import queue
import secrets
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

import psutil

from bottleneck_doctor.documents.redaction import Discretion
from bottleneck_doctor.errors import DoctorError
from bottleneck_doctor.monitor import LoadWatch, cpu_seconds
from bottleneck_doctor.protection import scratch
from bottleneck_doctor.protection.protector import Protector
from bottleneck_doctor.protection.retention import NEVER, Moments
from bottleneck_doctor.protection.sandbox import NotHere
from bottleneck_doctor.runtime.wire import channel, liveness, messages
from bottleneck_doctor.runtime.wire import seen as seen_so_far
from bottleneck_doctor.session import process_tree
from bottleneck_doctor.session.output_log import OutputLog, megabytes
from bottleneck_doctor.session.pseudo_terminal import PseudoTerminal, without_control
from bottleneck_doctor.session.ranks import FOR_EVER, RankGroup

_ENTRY_FOLDER = Path(__file__).parents[1] / "runtime" / "entry"
_TAIL_BYTES = 20_000
_HEAD_BYTES = 2_000
"""Of what a process wrote, the most that is told of its end, and before it of its beginning."""
_LONGEST_REASON = 500
"""Characters of why a window failed. The guest sends more, so that no half of a secret stands at the end."""
_TICK = 0.25
"""Seconds after which it is looked again whether ranks have waited for one another for too long."""
LAUNCHER_GRACE = 3.0
"""Seconds that a launcher gets to notice that its ranks have ended, and to take away what it made."""
_CLOCK_STEP = 1.0
"""Seconds by which a clock is set and not merely corrected."""
CRASH_GRACE = 2.0
LOST_GRACE = 5.0
"""Seconds that a launcher gets to end by itself after a rank crashed, or ended without a word."""

QUIET_VARIABLES = {
    "WANDB_MODE": "offline",
    "COMET_MODE": "disabled",
    "NEPTUNE_MODE": "offline",
    "CLEARML_OFFLINE_MODE": "1",
    "SWANLAB_MODE": "disabled",
    "MPLBACKEND": "Agg",
}
"""Put into the examined process only where the user has not set them: loggers stay offline, no window opens."""


@dataclass(frozen=True)
class Command:
    """The entrypoint as the user would start it: the interpreter and its arguments. `terminal`: with one around it."""

    argv: tuple[str, ...]
    cwd: Path
    environment: dict[str, str] = field(default_factory=dict)
    launched: bool = False
    """A launcher stands in front, and gets time to clear up after itself."""
    terminal: bool = False


@dataclass(frozen=True)
class Exited:
    """The process ended by itself. `code` as `subprocess` gives it: negative for a signal."""

    code: int
    tail: str
    """The end of what it wrote to standard error and output."""


@dataclass(frozen=True)
class _Lost:
    """A rank's line was cut, and it had not said that it would end."""


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
    ) -> None:
        self.number = number
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
        self._discretion = discretion if discretion is not None else Discretion()
        self._command = command
        self._verbose = verbose
        self._events: queue.Queue[Any] = queue.Queue()
        self._folder = _new_folder()
        self._token = secrets.token_hex(16)
        self._process: subprocess.Popen[bytes] | None = None
        self._lines: dict[int, socket.socket] = {}
        self._crash: tuple[str, float] | None = None
        """What a rank said of its crash, and until when the launcher may take to end."""
        self._lost: tuple[str, float] | None = None
        """The same of a rank that ended without a word."""
        self._listen = listen
        self._listeners: list[socket.socket] = []
        self._log = OutputLog(self._folder / "output.log")
        self._terminal: PseudoTerminal | None = None
        self._stopped = False
        self._launchers_folders: set[Path] = set()

    # -- life --------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the process. Raises `OSError` where it can't be started at all, and `DoctorError` `listen-failed`."""
        address = str(self._folder / "line")
        local = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        local.bind(address)
        self._listeners.append(local)
        if self._listen is not None:
            self._listeners.append(_tcp_listener(*self._listen))
        for listener in self._listeners:
            listener.listen(1024)
            threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        guests = self._folder / "scratch"
        guests.mkdir()
        invitation = {
            "address": address,
            "tcp": None if self._listen is None else _told_address(self._listen[0], self._listeners[1]),
            "host": socket.gethostname(),
            "token": self._token,
            "scratch": str(guests),
            "supervisor": os.getpid(),
        }
        environment = {**os.environ, **self._command.environment}
        # A tracking server that the user configured is theirs; a folder of records in theirs would be ours.
        if "MLFLOW_TRACKING_URI" not in environment:
            environment["MLFLOW_TRACKING_URI"] = f"file:{guests / 'mlruns'}"
            environment["MLFLOW_ALLOW_FILE_STORE"] = "true"  # From 3 on it refuses to keep records in a folder.
        # wandb's files are written by a program of its own, which no guard of ours sees.
        environment = {**QUIET_VARIABLES, "WANDB_DIR": str(guests), **environment}
        paths = [str(_ENTRY_FOLDER), environment.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
        self.started = time.monotonic()
        self._set_forward = _set_forward()
        try:
            self._start_process(environment, invitation)
        except NotHere as refused:
            self._protector.give_up(str(refused))
            self._start_process(environment, invitation)
        threading.Thread(target=self._await_end, daemon=True).start()
        threading.Thread(target=self._watch_log, daemon=True).start()
        self.load.start()

    def _start_process(self, environment: dict[str, str], invitation: dict[str, Any]) -> None:
        """Start the entrypoint, in a sandbox where there is one. Raises `NotHere` where that is refused."""
        entered = self._protector.enter(self._command.argv, self._folder)
        said = json.dumps({**invitation, **self._protector.invitation(self._folder)})
        with open(self._log.path, "wb") as log:
            self._terminal = terminal = PseudoTerminal(self._log.path) if self._command.terminal else None
            try:
                self._process = subprocess.Popen(
                    self._command.argv if entered is None else entered.argv,
                    cwd=self._command.cwd,
                    env={**environment, channel.VARIABLE: said},
                    stdin=subprocess.DEVNULL if terminal is None else terminal.end,
                    stdout=log if terminal is None else terminal.end,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    pass_fds=() if entered is None else entered.passed,
                )
            except OSError:
                if entered is not None:
                    entered.abandon()
                raise
            finally:
                if terminal is not None:
                    terminal.started()
        if entered is not None:
            try:
                entered.check()
            except (NotHere, OSError):
                self._process.wait()
                self._process = None
                raise

    def event(self, timeout: float) -> Any:
        """The next message of the guest, `Exited`, or None after `timeout` seconds of silence."""
        deadline = time.monotonic() + timeout
        while True:
            now = time.monotonic()
            self._clock_held = self._clock_held and abs(_set_forward() - self._set_forward) < _CLOCK_STEP
            sends, together = self.rank_group.settle(now)
            self._deliver(sends)
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
            self._lines[hello.rank] = connection
            self._moments = self._moments or Moments(message.first_batch, time.time())
            self._deliver(self.rank_group.found(hello, message, time.monotonic()))
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
        elif isinstance(message, _Lost):
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
            _send(connection, messages.Grant(-1, {}, "timed", 0, FOR_EVER))
            return None
        return Exited(0, self.tail())

    def grant(self, grant: messages.Grant) -> None:
        """Let all ranks run a window. A guest that is gone shows up as `Exited` at the next `event`."""
        self._deliver(self.rank_group.granted(grant))

    def stop(self) -> None:
        """End the guest and everything that it started, and remove the session's folder. Can be called twice."""
        if self._stopped:
            return
        self.seen = self._look_up()
        self._stopped = True
        if self._process is not None:
            family = process_tree.descendants(self._process.pid)
            orphans = cpu_seconds(family)
            waited = cpu_seconds(process_tree.children(self._process.pid))
            try:
                self._end(self._process)
            finally:
                if self._command.launched and (self._process.poll() or 0) >= 0:
                    orphans -= waited  # By a launcher that ended in peace: its own time holds theirs.
                process_tree.kill(self._process, family)
            self.load.finish(orphans)
        for line in (*self._lines.values(), *self._listeners):
            with contextlib.suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)  # A thread that waits on it wakes; closing alone does not do that.
            with contextlib.suppress(OSError):
                line.close()
        for folder in self._launchers_folders:
            scratch.remove(folder)
        self._protector.leave(self._folder, self._moments if self._clock_held else self._moments and NEVER)
        scratch.remove(self._folder)

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        """Tell every rank to end at once. A launcher then finds that all have succeeded, and clears up."""
        if process.poll() is not None:
            return
        for line in self._lines.values():
            _send(line, messages.End())
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(LAUNCHER_GRACE if self._command.launched and self._lines else 0.5)
        if self._command.launched and process.poll() is None:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(LAUNCHER_GRACE)

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    def is_away(self) -> bool:
        """Whether training stands still on this host for something of the user's own: an evaluation, a checkpoint."""
        with contextlib.suppress(OSError):
            return any(
                shown.away
                for shown in map(_liveness_of, (self._folder / "scratch").glob(liveness.PREFIX + "*"))
                if shown
            )
        return False

    def progress(self) -> dict[int, int]:
        """Steps that each rank has begun since its loop was found, by its number, of those on this host: while they
        grow, nothing hangs. Only what they differ by from one look to the next means anything."""
        shown = {
            rank: _liveness_of(self._folder / "scratch" / f"{liveness.PREFIX}{member.hello.pid}")
            for rank, member in self.rank_group.members.items()
        }
        return {rank: each.steps for rank, each in shown.items() if each is not None}

    def _look_up(self) -> seen_so_far.Counts | None:
        """What was seen so far by the process on this host that saw most; None where none has imported torch."""
        found = []
        with contextlib.suppress(OSError):
            for file in (self._folder / "scratch").glob(seen_so_far.PREFIX + "*"):
                found.append(seen_so_far.read(file.read_bytes()))
        known = [counts for counts in found if counts is not None]
        return max(known, key=lambda counts: (counts.optimizer_steps, counts.backwards, counts), default=None)

    def tail(self) -> str:
        """The end of what the process wrote, behind its first words where it wrote much, without what is secret."""
        try:
            # More than is told: half a secret at the beginning would not be known as one.
            words = self._log.words(_HEAD_BYTES, 2 * _TAIL_BYTES)
        except OSError:
            return ""
        last = self._readable(words.last)
        if not words.left_out:
            return last[-_TAIL_BYTES:]
        left_out = words.left_out + max(0, len(last) - _TAIL_BYTES)
        return f"{self._readable(words.first)}[... {megabytes(left_out)} left out ...]\n{last[-_TAIL_BYTES:]}"

    def _readable(self, words: bytes) -> str:
        text = words.decode(errors="replace")
        return self._discretion.output(text if self._terminal is None else without_control(text))

    # -- threads -----------------------------------------------------------------------------------------------------

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._read, args=(connection,), daemon=True).start()

    def _read(self, connection: socket.socket) -> None:
        hello: messages.Hello | None = None
        trains = False
        with connection:
            with contextlib.suppress(OSError, ValueError, messages.ProtocolError):
                reader: BinaryIO
                with connection.makefile("rb") as reader:
                    for line in reader:
                        try:
                            message = self._discreet(messages.decode(line))
                        except messages.ProtocolError as error:
                            if hello is not None:
                                text = f"The guest said what can't be read: {error}"
                                self._events.put((hello, connection, messages.Trouble(text=text)))
                            raise
                        if isinstance(message, messages.Hello):
                            if not hmac.compare_digest(message.token.encode(), self._token.encode()):
                                return
                            hello = message
                            self.hello = self.hello or hello
                            if self._command.launched and hello.host == socket.gethostname():
                                self._launchers_folders.update(_launchers_folder(hello.pid))
                        elif hello is not None:
                            trains = isinstance(message, (messages.Found, messages.WindowDone))
                            self._events.put((hello, connection, message))
            if trains and not self._stopped:
                self._events.put((hello, None, _Lost()))

    def _discreet(self, message: Any) -> Any:
        """The message without what is secret in the words of the script's that it carries."""
        if isinstance(message, (messages.Crashed, messages.Trouble)):
            return replace(message, text=self._discretion.output(message.text))
        if isinstance(message, messages.WindowDone) and message.reason:
            return replace(message, reason=self._discretion.output(message.reason)[:_LONGEST_REASON])
        return message

    def _await_end(self) -> None:
        assert self._process is not None
        code = self._process.wait()
        time.sleep(0.05)  # Its last words are still on the line.
        if self._terminal is not None:
            self._terminal.await_end(1.0)
        self._events.put((None, None, Exited(code, self.tail())))

    def _watch_log(self) -> None:
        self._log.watch(lambda: self._stopped, self._echo if self._verbose else None)

    def _echo(self, told: bytes) -> None:
        text = self._discretion.output(told.decode(errors="surrogateescape"))
        sys.stderr.buffer.write(text.encode(errors="surrogateescape"))
        sys.stderr.buffer.flush()

    def _deliver(self, sends: list[tuple[int, messages.Grant]]) -> None:
        for rank, grant in sends:
            if rank in self._lines:
                _send(self._lines[rank], grant)


def _tcp_listener(host: str, port: int) -> socket.socket:
    """A socket bound where ranks on other hosts can reach it. Raises `DoctorError` `listen-failed`."""
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise DoctorError(
            "listen-failed",
            f"Doctor can't listen at {host}:{port}: {error.strerror or error}.",
            "Give --listen a name or address of this machine that the other hosts reach, and a free port (0 for any).",
        ) from error


def _told_address(host: str, listener: socket.socket) -> list[str | int]:
    """Where others find a listener; one that listens everywhere is found by this host's name."""
    return [socket.gethostname() if host in ("0.0.0.0", "::") else host, listener.getsockname()[1]]


def _liveness_of(file: Path) -> liveness.Shown | None:
    """What a guest shows while it says nothing; None where that can't be had, as of one on another host."""
    try:
        return liveness.read(file.read_bytes())
    except OSError:
        return None


def _set_forward() -> float:
    """Seconds that the time of day is ahead of time that only goes on; they change where somebody sets the clock."""
    return time.time() - time.monotonic()


def _send(line: socket.socket, message: Any) -> None:
    with contextlib.suppress(OSError):
        line.sendall(messages.encode(message))


def _new_folder() -> Path:
    """A new temporary folder whose path leaves room for a socket's name: 104 bytes is all that some kernels take."""
    folder = scratch.new_folder()
    if len(os.fsencode(folder / "line")) < 104:
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
