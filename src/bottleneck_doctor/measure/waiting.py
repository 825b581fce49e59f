"""Waits for what a session says next, tells a hang from slow steps, and says how a session ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bottleneck_doctor.measure.budget import OutOfTime
from bottleneck_doctor.runtime import messages
from bottleneck_doctor.session.failure import Stack, signal_name
from bottleneck_doctor.session.ranks import Apart
from bottleneck_doctor.session.session import Exited, Session

CAME_TO_ITS_END = "the script came to its end"
"""Why a session ended, where the script did."""
RANKS_APART = "its ranks did not come to one step"
LOOKS_EVERY = 1.0
"""Seconds after which it is looked again whether steps are made."""
AWAY_SECONDS = 120.0
"""How long beyond that an evaluation, or whatever else lies between steps, is waited for."""


@dataclass(frozen=True)
class Hung:
    """No step was made for so many seconds. `tail`: the end of what the script wrote. `changed`: whether any setting
    was on in its process by then."""

    seconds: float
    stacks: Sequence[Stack] = ()
    tail: str = ""
    changed: bool = False


@dataclass(frozen=True)
class TooSlow:
    """Steps are made, and after so many seconds their window had not ended."""

    seconds: float


class SessionOver(Exception):
    """The session ended by itself, by a crash or by a hang.

    `crashed`: it hung, or ended with an exit code that is not 0. `hung`: how, where it did. `ours`: the guest itself
    failed, and `tail` is its traceback. `apart`: its ranks could not be brought to one step.
    """

    def __init__(
        self,
        why: str,
        *,
        crashed: bool = False,
        hung: Hung | None = None,
        tail: str = "",
        ours: bool = False,
        apart: bool = False,
    ) -> None:
        super().__init__(why)
        self.why = why
        self.crashed = crashed
        self.hung = hung
        self.ours = ours
        self.apart = apart
        self.tail = tail


def await_event(session: Session, seconds: float, now: Callable[[], float] = time.monotonic) -> Any:
    """The next event of the session that is not its farewell, or None after `seconds`."""
    deadline = now() + seconds
    while True:
        left = deadline - now()
        if left <= 0:
            return None
        event = session.event(min(left, 1.0))
        if event is not None and not isinstance(event, messages.Ended):
            return event


def awaited(session: Session, limit: float, until: float, patience: float, now: Callable[[], float]) -> Any:
    """The next event; `Hung` where no step was made for `limit` seconds, `TooSlow` where steps are made and none came
    within `patience`, None where the time is over (`until`). What the user does between steps is no part of them.

    Where steps can't be seen, as on other hosts, `limit` is that of the whole window. Raises `OutOfTime`, and
    `SessionOver` where the user's own work takes too long to be waited for.
    """
    begun = since = now()
    steps = session.progress()
    while True:
        hangs = since + limit
        left = min(hangs, until) - now()
        event = await_event(session, min(left, LOOKS_EVERY) if steps else left, now)
        if event is not None:
            return event
        seen, steps = steps, session.progress()
        if steps != seen:
            since = now()
            if since - begun > patience:
                return TooSlow(since - begun)
        elif now() >= min(hangs, until):
            if until < hangs:
                return None
            if not session.is_away():
                return Hung(limit)
            event = _await_return(session, until, now)
            if event is not None:
                return event
            begun, since = begun + now() - since, now()
        if now() >= until:
            return None


def _await_return(session: Session, until: float, now: Callable[[], float]) -> Any:
    """Wait until the training goes on. What happens meanwhile is returned, such as the end of the process."""
    back_by = now() + AWAY_SECONDS
    while session.is_away():
        event = await_event(session, 0.2, now)
        if event is not None:
            return event
        if now() > until:
            raise OutOfTime
        if now() > back_by:
            # Another process begins with training.
            raise SessionOver("the script was at something else than training for minutes")
    return None


def ended(event: Any) -> SessionOver:
    """How a session ended, from what came instead of the message expected."""
    if isinstance(event, Hung):
        return SessionOver("a window hung", crashed=True, hung=event, tail=event.tail)
    if isinstance(event, TooSlow):
        return SessionOver(f"a window had not ended after {event.seconds:.0f} s, though steps were made")
    if isinstance(event, Exited):
        if event.code == 0:
            return SessionOver(CAME_TO_ITS_END, tail=event.tail)
        return SessionOver(f"the script failed: {last_words(event)}", crashed=True, tail=event.tail)
    if isinstance(event, messages.Trouble):
        return SessionOver("a bug of doctor's own ended it", tail=event.text, ours=True)
    if isinstance(event, Apart):
        return SessionOver(f"{RANKS_APART}: {event.text}", apart=True)
    return SessionOver(f"unexpected message {type(event).__name__}", ours=True)


def last_words(event: Exited) -> str:
    """Why a process ended, in one line: its signal, or the last line that it wrote."""
    name = signal_name(event.code)
    if name:
        return f"killed by {name}" + (" (out of memory?)" if name == "SIGKILL" else "")
    lines = [line.strip() for line in event.tail.splitlines() if line.strip()]
    return lines[-1][:300] if lines else f"exit code {event.code}"
