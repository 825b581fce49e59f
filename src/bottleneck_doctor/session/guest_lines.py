"""The lines to the guests of one session: where guests connect, what they say, and what they are told.

Bytes of sockets enter; messages leave, without what is secret, each with the first words of the guest that sent it.
Every process with a guest has a line of its own: which of them is which rank, the session says.
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
"""Characters of why a window failed. The guest sends more, so that no half of a secret stands at the end."""


@dataclass(frozen=True)
class Lost:
    """A rank's line was cut, and it had not said that it would end."""


class GuestLines:
    """Use `open`, then `connect` whoever trains, `deliver` its grants, and `close`.

    Threads call `met` with a guest's first words, and `heard` with these, its line and each of its messages.
    `listen`: host and port for ranks on other hosts.
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
        """Lines of those that train."""
        self._folder = folder
        self._listen = listen
        self._discretion = discretion
        self._met = met
        self._heard = heard
        self._token = secrets.token_hex(16)
        self._listeners: list[socket.socket] = []
        self._over = False

    def open(self) -> dict[str, Any]:
        """Listen; what a guest must know to connect. Raises `OSError`, and `DoctorError` `listen-failed`."""
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
        """Whoever is at the other end of this line trains as this rank."""
        self.by_rank[rank] = line

    def deliver(self, sends: Iterable[tuple[int, messages.Grant]]) -> None:
        """Send each grant to its rank. One that is gone shows up by its end."""
        for rank, grant in sends:
            if rank in self.by_rank:
                send(self.by_rank[rank], grant)

    def expect_end(self) -> None:
        """The session ends: that a line is cut is no news from now on."""
        self._over = True

    def end(self) -> bool:
        """Tell every rank to end at once; whether there is any."""
        for line in self.by_rank.values():
            send(line, messages.End())
        return bool(self.by_rank)

    def close(self) -> None:
        """Close all lines, and listen no more."""
        for line in (*self.by_rank.values(), *self._listeners):
            with contextlib.suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)  # A thread that waits on it wakes; closing alone does not do that.
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
        """The message without what is secret in the words of the script's that it carries."""
        if isinstance(message, (messages.Crashed, messages.Trouble)):
            return replace(message, text=self._discretion.output(message.text))
        if isinstance(message, messages.WindowDone) and message.reason:
            return replace(message, reason=self._discretion.output(message.reason)[:_LONGEST_REASON])
        return message


def send(line: socket.socket, message: Any) -> None:
    """Say something to a guest, which may be gone."""
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
            "Give --listen a name or address of this machine that the other hosts reach, and a free port (0 for any).",
        ) from error


def _told_address(host: str, listener: socket.socket) -> list[str | int]:
    """Where others find a listener; one that listens everywhere is found by this host's name."""
    return [socket.gethostname() if host in ("0.0.0.0", "::") else host, listener.getsockname()[1]]
