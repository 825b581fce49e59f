"""How a session ended, as a type: the event that came instead of the expected message goes in. Words are made later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from bottleneck_doctor.runtime.wire import messages
from bottleneck_doctor.session.failure import Stack, error_in, signal_name
from bottleneck_doctor.session.ranks import Apart
from bottleneck_doctor.session.session import Exited


class Ending(Enum):
    """How a session ended. The value says it in words."""

    END = "the script came to its end"
    CRASH = "the script failed"
    HANG = "a window hung"
    SLOW = "a window took far longer than expected"
    AWAY = "the script did something other than training for long"
    APART = "its ranks could not be stopped at the same step"
    OURS = "a bug in doctor ended it"
    UNTIMED = "no window could be timed"
    UNLIKE = "its steps are not those of the other side"


@dataclass(frozen=True)
class Hung:
    """No step was made for `seconds`. `tail`: the end of what the script wrote. `changed`: whether any setting had been
    applied in its process by then."""

    seconds: float
    stacks: Sequence[Stack] = ()
    tail: str = ""
    changed: bool = False


@dataclass(frozen=True)
class TooSlow:
    """Steps were made, but their window had not ended after `seconds`."""

    seconds: float

    def __str__(self) -> str:
        return f"had not ended after {self.seconds:.0f} s, though steps were made"


class SessionOver(Exception):
    """The session ended by itself, or can't be asked for anything more.

    `reason`: more about that, in one line. `tail`: the end of what the script wrote, or the guest's traceback if the
    guest failed. `hung`: details, if it hung. `still`: seconds at its end in which it was known to make no step.
    """

    def __init__(
        self, ending: Ending, reason: str = "", *, tail: str = "", hung: Hung | None = None, still: float = 0.0
    ) -> None:
        self.ending = ending
        self.still = still
        self.reason = reason
        self.tail = tail
        self.hung = hung
        super().__init__(self.why)

    @property
    def why(self) -> str:
        """How it ended, in words."""
        return f"{self.ending.value}: {self.reason}" if self.reason else self.ending.value

    @property
    def crashed(self) -> bool:
        """Whether it hung, or ended with an exit code that is not 0."""
        return self.ending in (Ending.CRASH, Ending.HANG)

    @property
    def ours(self) -> bool:
        """Whether the guest itself failed."""
        return self.ending is Ending.OURS

    @property
    def apart(self) -> bool:
        """Whether its ranks could not be brought to one step."""
        return self.ending is Ending.APART


def ended(event: Any) -> SessionOver:
    """How a session ended, from the event that came instead of the expected message."""
    if isinstance(event, Hung):
        return SessionOver(Ending.HANG, tail=event.tail, hung=event)
    if isinstance(event, TooSlow):
        return SessionOver(Ending.SLOW, f"it {event}")
    if isinstance(event, Exited):
        if event.code == 0:
            return SessionOver(Ending.END, tail=event.tail)
        return SessionOver(Ending.CRASH, last_words(event), tail=event.tail)
    if isinstance(event, messages.Trouble):
        return SessionOver(Ending.OURS, tail=event.text)
    if isinstance(event, Apart):
        return SessionOver(Ending.APART, event.text)
    return SessionOver(Ending.OURS, f"unexpected message {type(event).__name__}")


def last_words(event: Exited) -> str:
    """Why a process ended, in one line: its signal, the error that it wrote, its last line, or its exit code."""
    name = signal_name(event.code)
    if name:
        return f"killed by {name}" + (" (out of memory?)" if name == "SIGKILL" else "")
    return error_in(event.tail) or f"exit code {event.code}"
