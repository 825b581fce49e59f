"""An edit of one of the user's files: where it lies, what patches call it, what it is and is to be. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from bottleneck_doctor.patches.unified import CONTEXT, unified
from bottleneck_doctor.system.editing import FileEdit


@dataclass(frozen=True)
class NamedEdit:
    """An edit of a file, which patches call `name`."""

    name: str
    edit: FileEdit

    def patch(self) -> bytes:
        """What the edit does, for people to read and for `git apply`."""
        return unified(self.name, self.edit.before, self.edit.after, context=CONTEXT)

    def reverse_patch(self, context: int) -> bytes:
        """What takes it back."""
        return unified(self.name, self.edit.after, self.edit.before, context=context)
