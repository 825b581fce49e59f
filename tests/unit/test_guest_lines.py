"""Lines of guests without a process behind them: who is heard, and what a cut line says."""

from __future__ import annotations

import queue
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.test_selection import FOUND

from bottleneck_doctor.documents.redaction import Discretion
from bottleneck_doctor.runtime.wire import messages
from bottleneck_doctor.session.guest_lines import GuestLines, Lost


class Session:
    """Open lines, and what came over them."""

    def __init__(self, folder: Path) -> None:
        self.met: queue.Queue[messages.Hello] = queue.Queue()
        self.heard: queue.Queue[Any] = queue.Queue()
        self.lines = GuestLines(
            folder,
            None,
            Discretion(),
            met=self.met.put,
            heard=lambda hello, line, message: self.heard.put((hello, line, message)),
        )
        self.invitation = self.lines.open()

    def guest(self, token: str | None = None) -> socket.socket:
        """A guest that has said its first words."""
        line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        line.connect(self.invitation["address"])
        token = self.invitation["token"] if token is None else token
        line.sendall(messages.encode(messages.Hello(token=token, pid=7, python="3", torch="2")))
        return line

    def trained(self) -> socket.socket:
        """A guest that found its loop, and is rank 0 from now on."""
        line = self.guest()
        line.sendall(messages.encode(FOUND))
        _, connection, message = self.heard.get(timeout=10)
        assert isinstance(message, messages.Found)
        self.lines.connect(0, connection)
        return line


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    made = Session(tmp_path)
    yield made
    made.lines.expect_end()
    made.lines.close()


def test_a_guest_is_met_heard_and_spoken_to(session: Session) -> None:
    with session.trained() as line:
        assert session.met.get(timeout=10).pid == 7
        session.lines.deliver([(0, messages.Grant(3, {}, "timed", 1, 2)), (1, messages.Grant(4, {}, "timed", 1, 2))])
        assert session.lines.end()
        with line.makefile("rb") as told:
            grant, end = (messages.decode(told.readline()) for _ in range(2))
    assert (grant.window, type(end)) == (3, messages.End), "rank 1 never came, so nobody was told its window"


def test_a_stranger_is_not_heard(session: Session) -> None:
    with session.guest(token="guess") as line:
        assert line.recv(1) == b"", "the line is cut"
    assert session.met.empty()
    assert session.heard.empty()


def test_a_line_that_is_cut_is_news(session: Session) -> None:
    session.trained().close()
    hello, connection, message = session.heard.get(timeout=10)
    assert (hello.pid, connection, message) == (7, None, Lost())


def test_a_line_that_is_cut_at_the_end_is_none(session: Session) -> None:
    line = session.trained()
    session.lines.expect_end()
    line.close()
    with pytest.raises(queue.Empty):
        session.heard.get(timeout=0.3)


def test_nobody_is_told_the_end_where_nobody_trains(session: Session) -> None:
    with session.guest():
        assert session.met.get(timeout=10)
        assert not session.lines.end()
