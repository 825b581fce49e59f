"""A terminal for a script whose user has one. What the script writes goes to a log; reading gives the end of input.

Progress bars, colours and `os.get_terminal_size` depend on a terminal, and some scripts fail without one.
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
"""Ends of input that are prepared: every time the script reads, it gets the end of input, as from `/dev/null`."""
_CONTROL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[()][0-9A-B]")


class PseudoTerminal:
    """A terminal that is open from the start. Call `started` once the process holds `end`, or could not be started."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._ours, self.end = pty.openpty()
        attributes = termios.tcgetattr(self.end)
        attributes[1] &= ~termios.OPOST  # Line ends stay as they were written.
        attributes[3] &= ~termios.ECHO
        termios.tcsetattr(self.end, termios.TCSANOW, attributes)
        size = shutil.get_terminal_size()
        with contextlib.suppress(OSError):
            fcntl.ioctl(self.end, termios.TIOCSWINSZ, struct.pack("HHHH", size.lines, size.columns, 0, 0))
        os.write(self._ours, b"\x04" * _ENDS)
        self._thread = threading.Thread(target=self._drain, daemon=True)

    def started(self) -> None:
        """Close our copy of the script's end, and begin to read."""
        os.close(self.end)
        self._thread.start()

    def await_end(self, seconds: float) -> None:
        """Wait until everything that was written is in the log, but at most `seconds`, since other processes may still
        hold the terminal."""
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
