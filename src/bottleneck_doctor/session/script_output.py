"""The script's output and input: a log or a terminal for the process, text without secrets for people."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from bottleneck_doctor.documents.redaction import Discretion
from bottleneck_doctor.session.output_log import OutputLog, megabytes
from bottleneck_doctor.session.pseudo_terminal import PseudoTerminal, without_control

_TAIL_BYTES = 20_000
_HEAD_BYTES = 2_000
"""Most bytes of a process's output that are shown: of its end, and of its beginning."""


class ScriptOutput:
    """The output of one start of the script. `path`: its log. `terminal`: whether the script gets a terminal."""

    def __init__(self, path: Path, discretion: Discretion, *, terminal: bool) -> None:
        self.log = OutputLog(path)
        self._discretion = discretion
        self._wants_terminal = terminal
        self._terminal: PseudoTerminal | None = None

    @contextlib.contextmanager
    def streams(self) -> Iterator[tuple[int, int | IO[bytes]]]:
        """Standard input and standard output for a process that is started inside this context."""
        with open(self.log.path, "wb") as log:
            if not self._wants_terminal:
                yield subprocess.DEVNULL, log
                return
            self._terminal = terminal = PseudoTerminal(self.log.path)
            try:
                yield terminal.end, terminal.end
            finally:
                terminal.started()

    def await_end(self, seconds: float) -> None:
        """Wait until the last output of a process that has ended is in the log, at most `seconds`."""
        if self._terminal is not None:
            self._terminal.await_end(seconds)

    def watch(self, over: Callable[[], bool], *, show: bool) -> None:
        """Keep the log short until `over`. `show`: also write new output to standard error."""
        self.log.watch(over, self._echo if show else None)

    def tail(self) -> str:
        """The end of what the process wrote, with secrets masked. If it wrote much, its beginning comes first."""
        try:
            # Read more than is shown: a secret cut in half at the beginning would not be recognised.
            words = self.log.words(_HEAD_BYTES, 2 * _TAIL_BYTES)
        except OSError:
            return ""
        last = self._readable(words.last)
        if not words.left_out:
            return last[-_TAIL_BYTES:]
        left_out = words.left_out + max(0, len(last) - _TAIL_BYTES)
        return f"{self._readable(words.first)}[... {megabytes(left_out)} left out ...]\n{last[-_TAIL_BYTES:]}"

    def _readable(self, words: bytes) -> str:
        text = words.decode(errors="replace")
        return self._discretion.output(without_control(text))

    def _echo(self, told: bytes) -> None:
        text = self._discretion.output(told.decode(errors="surrogateescape"))
        sys.stderr.buffer.write(text.encode(errors="surrogateescape"))
        sys.stderr.buffer.flush()
