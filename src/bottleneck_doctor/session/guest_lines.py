"""The connections (*lines*) to the guests of one session.

Bytes of sockets enter. Messages leave, with secrets masked, each with the `Hello` of the guest that sent it. Every
process with a guest has its own line. The session knows which line belongs to which rank.
"""

from __future__ import annotations

import contextlib
import hmac
import secrets
import socket
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

from bottleneck_doctor.documents.redaction import Discretion
from bottleneck_doctor.errors import DoctorError
from bottleneck_doctor.runtime.wire import messages

SOCKET = "line"
"""Name of the socket in the session's folder."""
_LONGEST_REASON = 500
"""Characters that are kept of the reason why a window failed. The guest sends more, so that no secret is cut in half
before it is masked."""


@dataclass(frozen=True)
class Lost:
    """A rank's line was closed although the rank had not said that it would end."""


class GuestLines:
    """Use `open`, then `connect` each process that trains, `deliver` its grants, and `close`.

    Threads call `met` with a guest's `Hello`, and `heard` with the `Hello`, the line and each message. `listen`: host
    and port for ranks on other hosts.
    """

    def __init__(
        self,
        folder: Path,
        listen: tuple[str, int] | None,
        discretion: Discretion,
        *,
        met: Callable[[messages.Hello], None],
        heard: Callable[[messages.Hello, socket.socket | None, Any], None],
    ) -> None:
        self.by_rank: dict[int, socket.socket] = {}
        """The lines of ranks that train."""
        self._folder = folder
        self._listen = listen
        self._discretion = discretion
        self._met = met
        self._heard = heard
        self._token = secrets.token_hex(16)
        self._listeners: list[socket.socket] = []
        self._over = False

    def open(self) -> dict[str, Any]:
        """Listen, and return what a guest must know to connect. Raises `OSError`, and `DoctorError` `listen-failed`."""
        address = str(self._folder / SOCKET)
        local = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        local.bind(address)
        self._listeners.append(local)
        if self._listen is not None:
            self._listeners.append(_tcp_listener(*self._listen))
        for listener in self._listeners:
            listener.listen(1024)
            threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        return {
            "address": address,
            "tcp": None if self._listen is None else _told_address(self._listen[0], self._listeners[1]),
            "host": socket.gethostname(),
            "token": self._token,
        }

    def connect(self, rank: int, line: socket.socket) -> None:
        """The process at the other end of this line trains as this rank."""
        self.by_rank[rank] = line

    def deliver(self, sends: Iterable[tuple[int, messages.Grant]]) -> None:
        """Send each grant to its rank. If a rank is gone, its end is reported anyway."""
        for rank, grant in sends:
            if rank in self.by_rank:
                send(self.by_rank[rank], grant)

    def expect_end(self) -> None:
        """The session ends: from now on, lines that close are no longer reported as `Lost`."""
        self._over = True

    def end(self) -> bool:
        """Tell every rank to end at once. Returns whether there are any."""
        for line in self.by_rank.values():
            send(line, messages.End())
        return bool(self.by_rank)

    def close(self) -> None:
        """Close all lines, and stop listening."""
        for line in (*self.by_rank.values(), *self._listeners):
            with contextlib.suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)  # This wakes a thread that waits on it, which closing alone does not.
            with contextlib.suppress(OSError):
                line.close()

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
                                self._heard(hello, connection, messages.Trouble(text=text))
                            raise
                        if isinstance(message, messages.Hello):
                            if not hmac.compare_digest(message.token.encode(), self._token.encode()):
                                return
                            hello = message
                            self._met(hello)
                        elif hello is not None:
                            trains = isinstance(message, (messages.Found, messages.WindowDone))
                            self._heard(hello, connection, message)
            if hello is not None and trains and not self._over:
                self._heard(hello, None, Lost())

    def _discreet(self, message: Any) -> Any:
        """The message with secrets masked in any output of the script that it carries."""
        if isinstance(message, (messages.Crashed, messages.Trouble)):
            return replace(message, text=self._discretion.output(message.text))
        if isinstance(message, messages.WindowDone) and message.reason:
            return replace(message, reason=self._discretion.output(message.reason)[:_LONGEST_REASON])
        return message


def send(line: socket.socket, message: Any) -> None:
    """Send a message to a guest; nothing happens if it is gone."""
    with contextlib.suppress(OSError):
        line.sendall(messages.encode(message))


def _tcp_listener(host: str, port: int) -> socket.socket:
    """A socket bound where ranks on other hosts can reach it. Raises `DoctorError` `listen-failed`."""
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise DoctorError(
            "listen-failed",
            f"Doctor can't listen at {host}:{port}: {error.strerror or error}.",
            "Give --listen a name or address at which the other hosts can reach this machine, and a free port (0 for "
            "any).",
        ) from error


def _told_address(host: str, listener: socket.socket) -> list[str | int]:
    """The address at which other hosts find a listener: this host's name if it listens on all addresses."""
    return [socket.gethostname() if host in ("0.0.0.0", "::") else host, listener.getsockname()[1]]
