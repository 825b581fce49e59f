"""Files that appear whole or not at all.

The file that a link leads to is replaced, not the link. What is made is as readable as any file of the user's:
`tempfile` would make it private to its owner.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A stream whose bytes become the file `path` at the end of the block; if that raises, nothing changes.

    Raises `OSError`.
    """
    whole = Path(os.path.realpath(path))
    # Its length does not depend on the name's, which may be the longest that the file system takes.
    temporary = whole.with_name(f".doctor-{secrets.token_hex(8)}")
    try:
        with temporary.open("xb") as stream:
            yield stream
        os.replace(temporary, whole)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_whole(files: Mapping[Path, bytes]) -> None:
    """Write all files, or none where the bytes of one could not be written. Raises `OSError`."""
    with contextlib.ExitStack() as streams:
        for path, content in files.items():
            stream = streams.enter_context(replacing(path))
            stream.write(content)
            stream.flush()  # A full disk shows here at the latest, before any file is replaced.


def check_replaceable(path: Path) -> None:
    """Check that a file could be made in the place of `path`. Raises `OSError`."""
    with tempfile.NamedTemporaryFile(dir=os.path.dirname(os.path.realpath(path)), prefix=".doctor-"):
        pass
