"""Errors that a user can cause or meet: one slug, one sentence, what to do next, and the exit code.

Every slug has a section in docs/messages.md; a test holds the two together.
"""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """Exit codes of `doctor`, as published in docs/commands.md."""

    DONE = 0
    REGRESSION = 1
    WOULD_CHANGE = 1
    USAGE = 2
    CANNOT_TELL = 3
    ENTRYPOINT_FAILED = 4
    NO_TRAINING = 5
    BUG = 70
    OUT_OF_TIME = 124
    INTERRUPTED = 130


class DoctorError(Exception):
    """Ends a command with `exit_code` after printing the sentence and the next step. `detail`: text shown verbatim."""

    def __init__(
        self, slug: str, sentence: str, next_step: str, exit_code: Exit = Exit.USAGE, *, detail: str = ""
    ) -> None:
        super().__init__(sentence)
        self.slug = slug
        self.sentence = sentence
        self.next_step = next_step
        self.exit_code = exit_code
        self.detail = detail


def reason_of(error: OSError) -> str:
    """Why the system refused something, in the system's own words."""
    return error.strerror or type(error).__name__


def stdout_failed(error: OSError) -> DoctorError:
    """The error for standard output that can't be written, such as a file on a full disk."""
    return DoctorError(
        "output-failed",
        f"Standard output could not be written: {reason_of(error)}.",
        "Free some space, or send the output elsewhere.",
    )
