"""Keeps the user's files as they were, in the best way that this machine allows. It is chosen once, for all sessions.

That is a sandbox if possible, a guard for what the sandbox does not cover or if there is none, and nothing with
`--in-place`. Call `enter` before a process starts, `leave` once it and its children are gone, and `close` at the end.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bottleneck_doctor.documents.report import Protection
from bottleneck_doctor.errors import DoctorError
from bottleneck_doctor.protection import scratch
from bottleneck_doctor.protection.guarding import Guarding
from bottleneck_doctor.protection.retention import Moments, may_hinder
from bottleneck_doctor.protection.sandbox import Edits, Entered, NotHere, Sandbox

NETWORK = "what the script sends over the network, such as uploads by a logger that it configures itself"
NATIVE = "files that native libraries (HDF5, LMDB, OpenCV …) or other programs write"
MOST_NAMED = 5


class Protector:
    """Protects nothing, as with `--in-place`. The base class of what protects."""

    def __init__(self) -> None:
        self.lost: list[str] = []
        """Files that could not be restored."""

    def enter(self, argv: Sequence[str], folder: Path) -> Entered | None:
        """How to start the program in a sandbox, for the session with this `folder`; None: without one."""
        return None

    def invitation(self, folder: Path) -> dict[str, Any]:
        """What the guest has to know about the protection."""
        return {}

    def give_up(self, reason: str) -> None:
        """Call if the sandbox could not be entered."""

    def leave(self, folder: Path, moments: Moments | None) -> None:
        """Call when the session is over. `moments`: when it trained; None if it never did."""

    @property
    def may_hinder(self) -> bool:
        """Whether the next start finds files of an earlier one that it might not have begun with. If it never trains,
        the one behind it finds none."""
        return False

    def close(self) -> None:
        """Call when the examination is over."""

    def told(self) -> Protection:
        """Which protection was used, for the report."""
        return Protection(kind="none", reason="switched off by --in-place")


class FileProtector(Protector):
    """A sandbox if possible, and a guard. `known`: folders that the program is likely to use.

    `edits`: what the program alone sees changed, which may be nothing, and which only a sandbox can show: raises
    `NotHere` where there is none. `guarding`: shared with whoever stands beside it; None: it stands alone.
    """

    def __init__(
        self,
        cwd: Path,
        known: Sequence[Path],
        environment: Mapping[str, str],
        edits: Edits | None = None,
        guarding: Guarding | None = None,
    ) -> None:
        super().__init__()
        self._guarding = guarding or Guarding()
        self.lost = self._guarding.lost
        self._reason = ""
        self._trained, self._keeps = False, True
        """Note whether a start trained, and so whether the next one may find the caches that were built."""
        self._layered: frozenset[str] = frozenset()
        """What the next start finds in the sandbox."""
        self._sandbox: Sandbox | None = None
        self._has_edits = edits is not None
        try:
            self._sandbox = Sandbox(cwd, known, environment, edits)
        except NotHere as error:
            self._reason = str(error)
        except (OSError, ValueError) as error:
            self._reason = f"trying it failed: {error}"
        if self._has_edits and self._sandbox is None:
            raise NotHere(self._reason)

    def enter(self, argv: Sequence[str], folder: Path) -> Entered | None:
        # The journal's folder has to be there before: a sandbox lets our own folders through that are.
        self._guarding.place(folder)
        return self._sandbox.enter(argv, folder) if self._sandbox is not None else None

    def invitation(self, folder: Path) -> dict[str, Any]:
        place = self._guarding.place(folder)
        covered = [os.path.realpath(own) for own in scratch.own_folders()]
        covered += self._sandbox.covered if self._sandbox is not None else []
        renames = self._sandbox is not None and self._sandbox.own_user_namespace
        return {"guard": {"folder": str(place), "covered": covered, "renames": renames}}

    def give_up(self, reason: str) -> None:
        if self._has_edits:
            # Without it the program would run as written, and be taken for the edited one.
            raise DoctorError(
                "edit-not-shown",
                f"The edited program can't be started: {reason}.",
                "Give --in-place: then the edit is measured in a copy of the project.",
            )
        self._reason = reason
        if self._sandbox is not None:
            self._sandbox.close()
            self._sandbox, self._layered = None, frozenset()

    def leave(self, folder: Path, moments: Moments | None) -> None:
        if moments is None:
            # Perhaps this start never trained because of a file that an earlier start left.
            self._keeps = not self._trained
        self._trained = self._trained or moments is not None
        moments = moments if self._keeps else None
        if self._sandbox is not None:
            self._layered = self._sandbox.leave(moments, self._guarding.copies())
        self._guarding.leave(folder, moments)

    @property
    def may_hinder(self) -> bool:
        return may_hinder(self._layered | self._guarding.left)

    def close(self) -> None:
        self._guarding.close()
        if self._sandbox is not None:
            self._sandbox.close()

    def told(self) -> Protection:
        unprotected = []
        if self._sandbox is None:
            programs = f"; it started {_named(self._guarding.programs)}" if self._guarding.programs else ""
            unprotected.append(NATIVE + programs)
            if self._guarding.unsaved:
                large = _named(self._guarding.unsaved)
                unprotected.append(f"files too large to be copied before they were opened: {large}")
        else:
            unprotected.append("files outside the covered folders that native libraries or other programs write")
        return Protection(
            kind="sandbox" if self._sandbox is not None else "guard",
            reason=self._reason,
            covered=self._sandbox.covered if self._sandbox is not None else [],
            unprotected=[*unprotected, NETWORK],
        )


def _named(names: set[str]) -> str:
    first = sorted(names)[:MOST_NAMED]
    more = len(names) - len(first)
    return ", ".join(first) + (f" and {more} more" if more else "")


def protecting(
    cwd: Path, entrypoint: Sequence[str], edits: Edits | None = None, guarding: Guarding | None = None
) -> FileProtector:
    """Protection for an entrypoint: folders that its arguments name are taken for ones that it uses.

    `edits`, `guarding`: as for `FileProtector`; raises `NotHere` where edits can't be shown to the entrypoint alone.
    """
    known = []
    for word in entrypoint:
        for part in (word, word.partition("=")[2]):
            if part and not part.startswith("-"):
                with contextlib.suppress(OSError, ValueError):
                    path = cwd / os.path.expanduser(part)
                    known += [folder for folder in (path, path.parent) if folder.is_dir()][:1]
    return FileProtector(cwd, known, os.environ, edits, guarding)
