"""The guest's end of the connection to its supervisor: a stream socket with one message in each line.

On the supervisor's own host this is a local socket. A rank on another host connects by TCP, if the supervisor listens
there too.
"""

from __future__ import annotations

import json
import queue
import socket
import threading
from typing import Any, Callable, Optional

from . import messages

VARIABLE = "BOTTLENECK_DOCTOR"
"""The one environment variable that invites a guest: JSON with `address`, `token` and `host`, and with `tcp` (a host
and a port) if ranks on other hosts are expected."""


def invited_from_here(invitation: str) -> bool:
    """Whether the supervisor that sent `invitation` runs on this host: only then its process ids mean anything here.

    Raises `ValueError`.
    """
    return bool(json.loads(invitation).get("host", "") in ("", socket.gethostname()))


class Channel:
    """A connected line. `receive` returns None once the supervisor is gone."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._reader: Any = None
        self._heard: Optional["queue.SimpleQueue[Any]"] = None

    @classmethod
    def connect(cls, invitation: str) -> "Channel":
        """Connect as `invitation` (the variable's text) says. Raises `OSError` or `ValueError`."""
        told = json.loads(invitation)
        if told.get("tcp") and not invited_from_here(invitation):
            host, port = told["tcp"]
            connection = socket.create_connection((host, port), timeout=10)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        else:
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            connection.settimeout(10)
            connection.connect(told["address"])
        connection.set_inheritable(False)
        connection.settimeout(None)
        return cls(connection)

    def send(self, message: Any) -> None:
        self._connection.sendall(messages.encode(message))

    def receive(self) -> Optional[Any]:
        if self._heard is not None:
            return self._heard.get()
        if self._reader is None:
            self._reader = self._connection.makefile("rb")
        line = self._reader.readline()
        return messages.decode(line) if line else None

    def listen(self, on_end: Callable[[], None]) -> None:
        """Start a thread that reads from now on. It calls `on_end` at an `End`, or once the supervisor is gone.

        A rank may wait in a collective for another rank that has ended. Then only a thread can end it.
        """
        self._heard = queue.SimpleQueue()
        threading.Thread(target=self._listen, args=(self._heard, on_end), daemon=True).start()

    def _listen(self, heard: "queue.SimpleQueue[Any]", on_end: Callable[[], None]) -> None:
        # A buffered reader would hold a lock while it waits, which a child forked meanwhile could never take.
        rest = b""
        while True:
            try:
                block = self._connection.recv(65536)
            except OSError:
                block = b""
            *lines, rest = (rest + block).split(b"\n")
            try:
                told = [messages.decode(line) for line in lines]
            except messages.ProtocolError:
                block = b""
                told = []
            if not block or any(isinstance(each, messages.End) for each in told):
                on_end()
                heard.put(None)
                return
            for each in told:
                heard.put(each)

    def close_in_child(self) -> None:
        """Close the connection in a forked child without sending anything."""
        try:
            self._connection.close()
        except OSError:
            pass
