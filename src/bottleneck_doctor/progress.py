"""What the terminal shows while an examination works.

In: stages, estimates and notes from the examination. Out: a live line on a terminal, plain lines with the time since
the start elsewhere, or nothing. Everything goes to stderr, so that stdout holds only the outcome.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TextIO

from bottleneck_doctor.duration import format_duration

if TYPE_CHECKING:
    from rich.status import Status

PLAIN_INTERVAL = 10.0
"""Seconds between two updates where every update is a line that stays."""


class Progress(Protocol):
    """What an examination tells while it works. Texts are one line, without a closing full stop."""

    def stage(self, text: str) -> None:
        """Say what begins now."""

    def update(self, text: str, spent: float, budget: float) -> None:
        """Say how the stage goes: what is measured or known so far, and seconds spent of the budget."""

    def note(self, text: str) -> None:
        """Say something that should stay on the screen."""

    def close(self) -> None:
        """Leave the terminal as it was. May be called twice."""


class SilentProgress:
    """Shows nothing."""

    def stage(self, text: str) -> None: ...

    def update(self, text: str, spent: float, budget: float) -> None: ...

    def note(self, text: str) -> None: ...

    def close(self) -> None: ...


class PlainProgress:
    """Lines for logs and pipes. Repeated updates are held back to one every `PLAIN_INTERVAL` seconds."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream: TextIO | None = stream
        self._clock = clock
        self._started = clock()
        self._last_update = float("-inf")

    def stage(self, text: str) -> None:
        self._last_update = self._clock()
        self._line(text)

    def update(self, text: str, spent: float, budget: float) -> None:
        now = self._clock()
        if now - self._last_update >= PLAIN_INTERVAL:
            self._last_update = now
            self._line(f"{text} ({_budget(spent, budget)})")

    def note(self, text: str) -> None:
        self._line(text)

    def close(self) -> None:
        self._stream = None

    def _line(self, text: str) -> None:
        if self._stream is None:
            return
        try:
            self._stream.write(f"[{self._clock() - self._started:7.1f} s] {text}\n")
            self._stream.flush()
        except (OSError, ValueError):
            # Whoever read the lines has gone; the measurement is worth finishing all the same.
            self._stream = None


class LiveProgress:
    """One line that is rewritten in place, on a terminal."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console

        self._console = Console(file=stream, highlight=False)
        self._status: Status | None = None
        self._stage = ""

    def stage(self, text: str) -> None:
        self._stage = text
        self._show(text)

    def update(self, text: str, spent: float, budget: float) -> None:
        stage = f"{self._stage}: " if self._stage else ""
        self._show(f"{stage}{text} ({_budget(spent, budget)})")

    def note(self, text: str) -> None:
        self._console.print(text, markup=False)

    def close(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None

    def _show(self, text: str) -> None:
        from rich.text import Text

        line = Text(text, overflow="ellipsis", no_wrap=True)
        if self._status is None:
            self._status = self._console.status(line)
            self._status.start()
        else:
            self._status.update(line)


def choose_progress(*, quiet: bool, verbose: bool, stream: TextIO | None = None) -> Progress:
    """Return what suits `stream` (default: stderr). With `verbose` the user's own output shares the terminal, and a
    line that is rewritten in place would tear it, so plain lines are used."""
    stream = sys.stderr if stream is None else stream
    if quiet or stream is None:
        return SilentProgress()
    if stream.isatty() and not verbose:
        return LiveProgress(stream)
    return PlainProgress(stream)


def _budget(spent: float, budget: float) -> str:
    return f"{format_duration(spent)} of {format_duration(budget)}"
