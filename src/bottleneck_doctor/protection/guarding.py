"""What guards wrote down of sessions that stand at once, and undoing it when the last of them is over.

Several sessions may change the same file: two sides that are compared write their checkpoints into one folder. If each
put back what it had found itself, it might put back what the other one wrote. So all of them write into one journal,
which is undone backwards as a whole: what was there before anybody came is what stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bottleneck_doctor.errors import DoctorError
from bottleneck_doctor.protection import journal, scratch
from bottleneck_doctor.protection.retention import Moments, kept


class Guarding:
    """The journal of the sessions that stand, and the files that later ones may find."""

    def __init__(self) -> None:
        self.lost: list[str] = []
        """Files that could not be put back."""
        self.unsaved: set[str] = set()
        """Files that were not copied before they were changed."""
        self.programs: set[str] = set()
        """Other programs that were started."""
        self._folder: Path | None = None
        """Of the journal; None where no session stands."""
        self._standing: set[Path] = set()
        """The sessions, by their own folders."""
        self._moments: list[Moments | None] = []
        """Of those that are over, when each trained."""
        self._kept: Path | None = None
        self.left: frozenset[str] = frozenset()
        """The files that the next session finds."""

    def place(self, session: Path) -> Path:
        """Where the guests of a session write their journal, which stands from now on. `session`: its own folder.

        Raises `DoctorError` `temporary-unwritable`.
        """
        if self._folder is None:
            self._folder = scratch.new_folder()
        self._standing.add(session)
        place = self._folder / journal.FOLDER
        place.mkdir(exist_ok=True)
        return place

    def copies(self) -> list[str]:
        """Folders of the user's that lie by another name, as the sessions that stand have said."""
        return [record["path"] for record in self._records() if record.get("op") == "copied"]

    def leave(self, session: Path, moments: Moments | None) -> None:
        """A session is over. `moments`: when it trained; None where nothing that it made may be kept."""
        if session not in self._standing:
            # It was never started.
            self._drop_kept()
            return
        self._standing.remove(session)
        self._moments.append(moments)
        if not self._standing:
            self._finish()

    def close(self) -> None:
        """No more sessions will stand."""
        self._standing.clear()
        self._moments.append(None)
        self._finish()
        self._drop_kept()

    def _finish(self) -> None:
        records, moments = self._records(), _together(self._moments)
        self._moments = []
        if moments is None:
            self._drop_kept()
        keep = kept(journal.made(records), moments) if records else frozenset()
        if keep:
            try:
                self._kept = self._kept or scratch.new_folder()
                journal.append(self._kept / journal.FOLDER, journal.removals(sorted(keep), records))
            except (DoctorError, OSError):  # A full disk: what can't be written down can't be kept.
                keep = frozenset()
        self.left |= keep
        self._undo(records, keep)
        if self._folder is not None:
            scratch.remove(self._folder)
            self._folder = None

    def _records(self) -> list[journal.Record]:
        return [] if self._folder is None else journal.read(self._folder / journal.FOLDER)

    def _drop_kept(self) -> None:
        self.left = frozenset()
        if self._kept is not None:
            self._undo(journal.read(self._kept / journal.FOLDER), frozenset())
            scratch.remove(self._kept)
            self._kept = None

    def _undo(self, records: Sequence[journal.Record], keep: frozenset[str]) -> None:
        undone = journal.undo(records, keep)
        self.lost += undone.left
        self.unsaved.update(undone.unsaved)
        self.programs.update(undone.programs)


def _together(moments: Sequence[Moments | None]) -> Moments | None:
    """When all of several sessions had not trained yet: nothing is a cache that one of them made while it trained."""
    known = [each for each in moments if each is not None]
    if len(known) < len(moments) or not known:
        return None
    return Moments(min(each.first_batch for each in known), min(each.found for each in known))
