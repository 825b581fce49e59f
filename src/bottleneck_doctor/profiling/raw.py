"""Reads what `py-spy record -f raw` writes: files of collapsed stacks go in, one call tree by process comes out.

A line is `process 12:"python train.py";thread (12): MainThread;main (train.py:9);step (train.py:30) 41`: processes
from the outermost in, the thread, frames from the outermost in, and the number of samples. Processes and threads are
there only with `--subprocesses` and `--threads`. Files may have several hundred megabytes, so they are read line by
line, and the text of a frame is parsed only once.

Only stacks that train or load are kept: the main thread of each process, and of a loader worker the part inside its
loop. The rest of a forked worker's stack is that of the process that forked it, which says nothing about the worker.
Frames of doctor's own guest and of the import system are removed.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from bottleneck_doctor.errors import DoctorError, reason_of
from bottleneck_doctor.profiling.tree import CallTree, Frames
from bottleneck_doctor.system.atomic import replacing

_MOST_DIGITS = 12
"""Digits of a count of samples: a sampler that ran for years would write no more."""
_PROCESS = re.compile(r'process (\d{1,12})(?::"(.*)")?', re.DOTALL)
_PROCESS_BEGUN = re.compile(rb'process \d+:"')
_THREAD = re.compile(r"thread \((0x[0-9a-fA-F]+|\d{1,20})\)(?:: \"?(.*?)\"?)?")
_FRAME = re.compile(r"([^\s()]+|.+) \((.*?)(?::(\d{1,9}))?\)", re.DOTALL)
_CHAINED = re.compile(rb";(?=process \d+(?::\"|;|$))")
_COMMANDED = re.compile(rb'(process \d+)(?::"(.*)"?)?', re.DOTALL)
_THREADED = b";thread ("
_COUNTED = re.compile(rb" \d+\s*$")
_BARE = re.compile(rb"process \d+(;process \d+)*$")
_STARTS = re.compile(rb"\s(?:(?:-m\s+)?[\w./\\-]+\.py|-m\s+[\w.]+|-c)(?=\s|$)")
"""The part of a command that is shown: the interpreter, and the script, module or `-c` that it runs."""
_GUEST = re.compile(r"(^|[/\\])bottleneck_doctor[/\\]runtime[/\\]")

_LINE_LIMIT = 1 << 20
_JOIN_LIMIT = 256
"""At most this many pieces or lines are joined again if a name contains the separator."""

_FRAME_KIND, _FOLDED, _PROCESS_KIND, _THREAD_KIND, _LOOP, _HELPER, _NOT_THEIRS = range(7)


@dataclass
class Process:
    """One process of one file. `root` holds the stacks of its main thread, `loop_root` those in a worker's loop."""

    pid: int | None
    parent: Process | None = None
    command: str = ""
    root: int | None = None
    loop_root: int | None = None

    @property
    def is_worker(self) -> bool:
        """Whether it was seen in the loop of a loader worker."""
        return self.loop_root is not None


@dataclass(frozen=True)
class _Thread:
    number: int | None
    name: str


@dataclass
class RawProfile:
    """What was read. `malformed`: number of lines that are no stacks; `helper_samples`: those of threads left out."""

    frames: Frames = field(default_factory=Frames)
    tree: CallTree = field(default_factory=CallTree)
    processes: list[Process] = field(default_factory=list)
    samples: int = 0
    waiting_samples: int = 0
    """Samples of workers that waited for the order to load a batch."""
    helper_samples: int = 0
    malformed: int = 0
    first_malformed: str = ""


def read(files: Sequence[Path]) -> RawProfile:
    """Read and merge files. Processes of different files are never taken for the same one.

    Raises `DoctorError`: `raw-missing` for a file that can't be read, `raw-unreadable` for one without a single stack,
    `raw-empty` where py-spy recorded nothing.
    """
    profile = RawProfile()
    for path in files:
        reader = _Reader(profile, path.name)
        try:
            with path.open("rb") as stream:
                reader.read(stream)
        except OSError as error:
            raise DoctorError(
                "raw-missing",
                f"{path} can't be read: {reason_of(error)}.",
                "Give a file that `py-spy record -f raw -o FILE` wrote.",
            ) from error
        if not reader.stacks:
            raise _nothing_in(path, reader)
    return profile


def without_arguments(path: Path) -> None:
    """Rewrite a file that was recorded with `--subprocesses` and `--threads` so that commands end at the script.

    The arguments after it may hold secrets. Raises `OSError`.
    """
    with path.open("rb") as stream, replacing(path) as kept:
        for line in _whole_lines(stream):
            head, thread, rest = line.rpartition(_THREADED)
            # A line that is no stack may be a part of a command, so it is dropped.
            if thread and _PROCESS_BEGUN.match(line) and _COUNTED.search(rest):
                kept.write(b";".join(_named(piece) for piece in _CHAINED.split(head)) + thread + rest)
            elif thread and _BARE.match(head):
                kept.write(line)


def _named(piece: bytes) -> bytes:
    """`process 12:"python train.py --token x"` up to the script, without the interpreter's own options."""
    read = _COMMANDED.fullmatch(piece)
    if read is None or read[2] is None:
        return piece.partition(b":")[0]
    program = read[2].split()[:1]
    start = _STARTS.search(read[2])
    return read[1] + b':"' + b" ".join([*program, *([start[0].strip()] if start else [])]) + b'"'


def _nothing_in(path: Path, reader: _Reader) -> DoctorError:
    if not reader.lines:
        return DoctorError(
            "raw-empty",
            f"{path} is empty: py-spy saw no stack.",
            "Record longer, add --idle if the program mostly waits, and read what py-spy printed.",
        )
    kind = f", but looks like {reader.looks_like}" if reader.looks_like else ""
    return DoctorError(
        "raw-unreadable",
        f"{path} is not a raw recording of py-spy{kind}.",
        "Record with `py-spy record --format raw`; its other formats can't be read back.",
    )


class _Reader:
    """Reads one file into a profile."""

    def __init__(self, profile: RawProfile, name: str) -> None:
        self._profile = profile
        self._name = name
        self._numbers: dict[bytes, int] = {}
        self._kinds = bytearray()
        self._frames = array("i")
        self._threads: dict[int, _Thread] = {}
        self._commands: dict[int, tuple[int, str]] = {}
        self._processes: dict[tuple[int, ...], Process] = {}
        self.lines = 0
        self.stacks = 0
        self.looks_like = ""

    def read(self, stream: BinaryIO) -> None:
        head = stream.read(4096)
        stream.seek(0)
        self.looks_like = _other_format(head)
        if b"\0" in head:
            self.lines = 1
            return
        for line in _whole_lines(stream):
            self.lines += 1
            if not self._line(line):
                self._profile.malformed += 1
                if not self._profile.first_malformed:
                    self._profile.first_malformed = f"{self._name}, line {self.lines}"

    def _line(self, line: bytes) -> bool:
        """Count one line. False if it is no stack."""
        text, _, tail = line.rpartition(b" ")
        tail = tail.strip()
        if not tail.isdigit() or len(tail) > _MOST_DIGITS:
            return not line.strip()
        pieces = text.split(b";")
        numbers = self._numbers
        try:
            found = [numbers[piece] for piece in pieces]
        except KeyError:
            looked = self._look_at(pieces)
            if looked is None:
                return False
            found = looked
        self.stacks += 1
        self._stack(found, int(tail))
        return True

    def _stack(self, found: Sequence[int], count: int) -> None:
        kinds, frames, profile = self._kinds, self._frames, self._profile
        chain: tuple[int, ...] = ()
        stack: list[int] = []
        thread: _Thread | None = None
        in_loop = helper = False
        for each in found:
            kind = kinds[each]
            if kind == _FRAME_KIND:
                stack.append(frames[each])
            elif kind == _PROCESS_KIND:
                chain = (*chain, each)
            elif kind == _LOOP:
                stack = [frames[each]]
                in_loop = True
            elif kind == _HELPER:
                helper = True
            elif kind == _THREAD_KIND:
                thread = self._threads[each]
            elif kind == _NOT_THEIRS:
                return
        process = self._process(chain)
        if in_loop:
            if len(stack) > 1 and self._waits_for_work(stack[1]):
                profile.waiting_samples += count
                return
            if process.loop_root is None:
                process.loop_root = profile.tree.root()
            root = process.loop_root
        elif helper or (thread is not None and not _is_main(thread, process.pid)):
            profile.helper_samples += count
            return
        else:
            if process.root is None:
                process.root = profile.tree.root()
            root = process.root
        if stack:
            profile.samples += count
            profile.tree.add(root, stack, count)

    def _waits_for_work(self, frame: int) -> bool:
        called = self._profile.frames[frame]
        return called.name.rpartition(".")[2] == "get" and called.path.endswith("queues.py")

    def _process(self, chain: tuple[int, ...]) -> Process:
        known = self._processes.get(chain)
        if known is not None:
            return known
        if chain:
            pid, command = self._commands[chain[-1]]
            process = Process(pid, self._process(chain[:-1]) if chain[:-1] else None, command)
        else:
            process = Process(None)
        self._processes[chain] = process
        self._profile.processes.append(process)
        return process

    # -- pieces --------------------------------------------------------------------------------------------------------

    def _look_at(self, pieces: Sequence[bytes]) -> list[int] | None:
        """The numbers of pieces some of which are new; None where one can't be read.

        A piece that can't be read alone is the beginning of a command or a path with a semicolon in it.
        """
        found = []
        at = 0
        while at < len(pieces):
            begun = _PROCESS_BEGUN.match(pieces[at]) or b" (" in pieces[at]
            for end in range(at + 1, min(len(pieces), at + (_JOIN_LIMIT if begun else 1)) + 1):
                number = self._number(b";".join(pieces[at:end]))
                if number is not None:
                    found.append(number)
                    at = end
                    break
            else:
                return None
        return found

    def _number(self, piece: bytes) -> int | None:
        known = self._numbers.get(piece)
        if known is not None:
            return known
        number = len(self._kinds)
        text = piece.decode(errors="replace")
        frame = 0
        if process := _PROCESS.fullmatch(text):
            kind = _PROCESS_KIND
            self._commands[number] = int(process[1]), process[2] or ""
        elif _PROCESS_BEGUN.match(piece):
            return None
        elif thread := _THREAD.fullmatch(text):
            kind = _THREAD_KIND
            self._threads[number] = _Thread(None if thread[1].startswith("0x") else int(thread[1]), thread[2] or "")
        elif read := _FRAME.fullmatch(text):
            kind = _kind(read[1], read[2])
            frame = self._profile.frames.number(read[1], read[2], int(read[3] or 0))
        else:
            return None
        self._kinds.append(kind)
        self._frames.append(frame)
        self._numbers[piece] = number
        return number


def _kind(name: str, path: str) -> int:
    short = name.rpartition(".")[2]
    if _GUEST.search(path):
        # There it waits for the supervisor: no time of the user's program.
        return _NOT_THEIRS if short == "_ask" else _FOLDED
    if "importlib" in path and (path.startswith("<frozen") or re.search(r"(^|[/\\])importlib[/\\]", path)):
        return _FOLDED
    if short == "_worker_loop" and path.endswith("worker.py"):
        return _LOOP
    if short == "_bootstrap" and re.search(r"(^|[/\\])threading\.py$", path):
        return _HELPER
    return _FRAME_KIND


def _is_main(thread: _Thread, pid: int | None) -> bool:
    """Whether this is its process's main thread; where the file does not say, it is taken for it."""
    if thread.name == "MainThread" or (thread.number is not None and thread.number == pid):
        return True
    return not thread.name and (thread.number is None or pid is None)


def _whole_lines(stream: BinaryIO) -> Iterator[bytes]:
    """Lines. Those that a line break inside a process's command split are joined again."""
    begun: list[bytes] = []
    while True:
        line = stream.readline(_LINE_LIMIT)
        if not line:
            break
        if begun or (line.startswith(b"process ") and _is_torn(line)):
            begun.append(line)
            whole = b"".join(begun)
            if not _is_torn(whole):
                begun = []
                yield whole
            elif len(begun) >= _JOIN_LIMIT or len(whole) > _LINE_LIMIT:
                yield from begun
                begun = []
        else:
            yield line
    yield from begun


def _is_torn(line: bytes) -> bool:
    """Whether the line ends inside a command: the last command in it has no closing quote."""
    begins = line.rfind(b";process ") + 1
    opened = _PROCESS_BEGUN.match(line, begins)
    if opened is None:
        return False
    return line.find(b'";', opened.end()) < 0 and re.search(rb'" \d+\s*$', line[opened.end() :]) is None


def _other_format(head: bytes) -> str:
    """What a file is instead, if its beginning shows it."""
    begin = head.lstrip()[:200]
    if b"\0" in head:
        return "a binary file"
    if begin.startswith((b"<?xml", b"<svg", b"<!DOCTYPE svg")):
        return "a flame graph (SVG)"
    if begin.startswith((b"{", b"[")):
        return "speedscope or Chrome trace (JSON)"
    return ""
