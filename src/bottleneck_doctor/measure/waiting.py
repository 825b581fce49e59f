"""Waits for what a session says next, and tells a hang from slow steps."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from bottleneck_doctor.measure.budget import OutOfTime
from bottleneck_doctor.runtime.wire import messages
from bottleneck_doctor.session.ending import Ending, Hung, SessionOver, TooSlow
from bottleneck_doctor.session.session import Session

LOOKS_EVERY = 1.0
"""Seconds after which it is looked again whether steps are made."""
AWAY_SECONDS = 120.0
"""How long beyond that an evaluation, or whatever else lies between steps, is waited for."""


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
            raise SessionOver(Ending.AWAY)
    return None
