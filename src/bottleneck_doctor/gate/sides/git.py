"""Runs git: its arguments in, its output out. No other module starts it.

Nothing in the user's configuration may act by itself: no hook, no pager, no question on a terminal, no download of
large files. The variables by which a hook tells git its repository are removed, so that a check may run inside a hook.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from bottleneck_doctor.errors import DoctorError, reason_of
from bottleneck_doctor.gate.sides.program import finished

_PLACE = (
    *("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR"),
    *("GIT_NAMESPACE", "GIT_ALTERNATE_OBJECT_DIRECTORIES"),
)


def placeless(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables without those by which a hook tells git its repository and index."""
    return {name: value for name, value in environment.items() if name not in _PLACE}


class GitFailed(Exception):
    """Git failed; the text is what it wrote."""


class Git:
    """Git in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *words: str, index: Path | None = None) -> str:
        """What `git WORDS` prints, without the last newline. `index`: a file to use in place of the repository's index.

        Raises `GitFailed`, and `DoctorError` `git-missing` where there is no git.
        """
        tool = shutil.which("git")
        if tool is None:
            raise DoctorError(
                "git-missing", "git was not found, and a check needs it to find the base.", "Install git."
            )
        environment = placeless(os.environ) | {"GIT_TERMINAL_PROMPT": "0", "GIT_LFS_SKIP_SMUDGE": "1", "LC_ALL": "C"}
        if index is not None:
            environment["GIT_INDEX_FILE"] = str(index)
        try:
            done = finished([tool, "-c", "core.hooksPath=/dev/null", *words], cwd=self.folder, environment=environment)
        except OSError as error:
            raise GitFailed(f"{self.folder}: {reason_of(error)}") from error
        if done.returncode:
            raise GitFailed(done.stderr.decode(errors="replace").strip())
        return done.stdout.decode(errors="surrogateescape").removesuffix("\n")

    def paths(self, *words: str) -> list[str]:
        """The entries that a command with `-z` lists."""
        return [path for path in self(*words).split("\0") if path]
