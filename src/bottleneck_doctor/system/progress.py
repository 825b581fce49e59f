"""What the terminal shows while an examination works.

In: stages, updates and notes from the examination. Out: a live line on a terminal, plain lines with the time since the
start elsewhere, or nothing. Everything goes to stderr, so that stdout holds only the result.

The user never waits longer than ten seconds for a line: if nothing new is said, a thread repeats what is going on and
for how long.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TextIO

from bottleneck_doctor.wording.durations import format_duration

if TYPE_CHECKING:
    from rich.status import Status

PLAIN_INTERVAL = 8.0
"""Seconds between two updates if every update is a line of its own. With the thread's beat this stays below ten."""
BEAT_SECONDS = 1.0
LONG = 5.0
"""After this many seconds, the line also says how long something has been going on."""


class Progress(Protocol):
    """Shows what an examination is doing. Texts are one line, without a full stop at the end."""

    def stage(self, text: str) -> None:
        """Show what begins now."""

    def update(self, text: str, spent: float, budget: float | None) -> None:
        """Show what goes on (what is measured, waited for or known so far), with the seconds spent and the budget, if
        it is known. The text is repeated, with the current time, until the next call."""

    def note(self, text: str) -> None:
        """Show something that should stay on the screen."""

    def close(self) -> None:
        """Leave the terminal as it was. May be called twice."""


class SilentProgress:
    """Shows nothing."""

    def stage(self, text: str) -> None: ...

    def update(self, text: str, spent: float, budget: float | None) -> None: ...

    def note(self, text: str) -> None: ...

    def close(self) -> None: ...


class _Beating:
    """Keeps what goes on and since when, and a thread that calls `beat` every second to show it again."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.RLock()
        self._over = threading.Event()
        self._text = ""
        self._since = clock()
        self._began = 0.0
        """When the budget's time began, by this clock."""
        self._budget: float | None = None

    def start(self) -> None:
        """Start the thread, which runs until `close`."""
        threading.Thread(target=self._beats, daemon=True).start()

    def _beats(self) -> None:
        while not self._over.wait(BEAT_SECONDS):
            self.beat()

    def beat(self) -> None:
        raise NotImplementedError

    def _goes_on(self, text: str) -> None:
        if text != self._text:
            self._text, self._since = text, self._clock()

    def _budgeted(self, spent: float, budget: float | None) -> None:
        self._began, self._budget = self._clock() - spent, budget

    def _told(self) -> str:
        """`Process 1: measuring num_workers=2, 35 s (1 min 5 s of 3 min)`"""
        now = self._clock()
        lasted = now - self._since
        text = self._text + (f", {format_duration(lasted)}" if lasted >= LONG else "")
        if self._budget is None:
            return text
        return f"{text} ({format_duration(min(now - self._began, self._budget))} of {format_duration(self._budget)})"


class PlainProgress(_Beating):
    """Lines for logs and pipes. There is at most one update every `PLAIN_INTERVAL` seconds."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(clock)
        self._stream: TextIO | None = stream
        self._started = clock()
        self._last_line = float("-inf")

    def stage(self, text: str) -> None:
        with self._lock:
            self._goes_on(text)
            self._line(text)

    def update(self, text: str, spent: float, budget: float | None) -> None:
        with self._lock:
            self._goes_on(text)
            self._budgeted(spent, budget)
            self.beat()

    def note(self, text: str) -> None:
        with self._lock:
            self._line(text)

    def beat(self) -> None:
        with self._lock:
            if self._text and self._clock() - self._last_line >= PLAIN_INTERVAL:
                self._line(self._told())

    def close(self) -> None:
        self._over.set()
        with self._lock:
            self._stream = None

    def _line(self, text: str) -> None:
        self._last_line = self._clock()
        if self._stream is None:
            return
        try:
            self._stream.write(f"[{self._last_line - self._started:7.1f} s] {text}\n")
            self._stream.flush()
        except (OSError, ValueError):
            # Nobody reads the lines any more, but the measurement is still worth finishing.
            self._stream = None


class LiveProgress(_Beating):
    """One line that is rewritten in place, on a terminal."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        from rich.console import Console

        super().__init__(clock)
        self._console = Console(file=stream, highlight=False)
        self._status: Status | None = None
        self._closed = False

    def stage(self, text: str) -> None:
        with self._lock:
            self._goes_on(text)
            self.beat()

    def update(self, text: str, spent: float, budget: float | None) -> None:
        with self._lock:
            self._goes_on(text)
            self._budgeted(spent, budget)
            self.beat()

    def note(self, text: str) -> None:
        with self._lock:
            self._console.print(text, markup=False)

    def beat(self) -> None:
        from rich.text import Text

        with self._lock:
            if self._closed or not self._text:
                return
            line = Text(self._told(), overflow="ellipsis", no_wrap=True)
            if self._status is None:
                self._status = self._console.status(line)
                self._status.start()
            else:
                self._status.update(line)

    def close(self) -> None:
        self._over.set()
        with self._lock:
            self._closed = True
            if self._status is not None:
                self._status.stop()
                self._status = None


def choose_progress(*, quiet: bool, verbose: bool, stream: TextIO | None = None) -> Progress:
    """Return the kind of progress that suits `stream` (default: stderr). With `verbose`, the script's output shares the
    terminal and would mix with a line that is rewritten in place, so plain lines are used."""
    stream = sys.stderr if stream is None else stream
    if quiet or stream is None:
        return SilentProgress()
    progress = LiveProgress(stream) if stream.isatty() and not verbose else PlainProgress(stream)
    progress.start()
    return progress
