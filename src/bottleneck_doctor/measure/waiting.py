"""Waits for a session's next event, and tells a hang from slow steps and from an evaluation."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

from bottleneck_doctor.measure.budget import OutOfTime
from bottleneck_doctor.runtime.wire import messages
from bottleneck_doctor.session.ending import Ending, Hung, SessionOver, TooSlow
from bottleneck_doctor.session.session import Session

LOOKS_EVERY = 1.0
"""Seconds between two looks at whether steps are made."""
AWAY_SECONDS = 120.0
"""Seconds to wait beyond that limit for an evaluation, or for other work between steps."""


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


def awaited(
    session: Session,
    limit: float,
    until: float,
    patience: float,
    now: Callable[[], float],
    *,
    last: float = math.inf,
    pause: float = math.inf,
) -> Any:
    """The next event of a session. `Hung` if no step was made for `limit` seconds. `TooSlow` if steps are made, but no
    event came within `patience` seconds. None if the time is over (`until`). Work of the user's between steps, such as
    an evaluation, counts for neither.

    If steps can't be seen, as on other hosts, `limit` applies to the whole window. Raises `OutOfTime`, and
    `SessionOver` if the user's work between steps takes longer than `pause` seconds, or too long in any case, or if
    nothing but such work is seen for `last` seconds after the last step that the program says it makes.
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
        elif now() >= since + last and session.has_last_step():
            # What a script does after training, such as a long test, tells nothing here.
            raise SessionOver(Ending.END, "it had made all of its steps")
        elif now() >= since + pause and session.is_away():
            raise SessionOver(Ending.AWAY, still=now() - since)
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
    """Wait until the training goes on. Returns an event that comes meanwhile, such as the end of the process."""
    back_by = now() + AWAY_SECONDS
    while session.is_away():
        event = await_event(session, 0.2, now)
        if event is not None:
            return event
        if now() > until:
            raise OutOfTime
        if now() > back_by:
            # A new process begins with training, not with an evaluation.
            raise SessionOver(Ending.AWAY)
    return None
