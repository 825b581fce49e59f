"""A terminal for a script whose user has one: what it writes goes to a log, and what it reads is at its end.

Progress bars, colours and `os.get_terminal_size` depend on it, and some scripts die without.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import shutil
import struct
import termios
import threading
from pathlib import Path

_ENDS = 32
"""Ends of input that lie ready: a script that asks is answered as by `</dev/null`, every time that it asks."""
_CONTROL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[()][0-9A-B]")


class PseudoTerminal:
    """Open from the start; `started` once the process holds `end`, or was not started at all."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._ours, self.end = pty.openpty()
        attributes = termios.tcgetattr(self.end)
        attributes[1] &= ~termios.OPOST  # Lines end as they were written.
        attributes[3] &= ~termios.ECHO
        termios.tcsetattr(self.end, termios.TCSANOW, attributes)
        size = shutil.get_terminal_size()
        with contextlib.suppress(OSError):
            fcntl.ioctl(self.end, termios.TIOCSWINSZ, struct.pack("HHHH", size.lines, size.columns, 0, 0))
        os.write(self._ours, b"\x04" * _ENDS)
        self._thread = threading.Thread(target=self._drain, daemon=True)

    def started(self) -> None:
        """Leave the script's end to the script, and read along."""
        os.close(self.end)
        self._thread.start()

    def await_end(self, seconds: float) -> None:
        """Wait until all that was written is in the log, `seconds` at most: others may hold the terminal still."""
        self._thread.join(seconds)

    def _drain(self) -> None:
        with open(self._log, "ab", buffering=0) as log:
            try:
                while block := os.read(self._ours, 65536):
                    log.write(block)
            except OSError:  # Nobody holds the other end any more.
                pass
            finally:
                os.close(self._ours)


def without_control(text: str) -> str:
    """The text without colours and movements of the cursor."""
    return _CONTROL.sub("", text)
