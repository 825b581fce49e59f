"""Files that appear whole or not at all.

If the path is a link, the file that it leads to is replaced, not the link. The new file has the usual permissions:
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
    # The temporary name is short, because the file's own name may already be as long as the file system allows.
    temporary = whole.with_name(f".doctor-{secrets.token_hex(8)}")
    try:
        with temporary.open("xb") as stream:
            yield stream
        os.replace(temporary, whole)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_whole(files: Mapping[Path, bytes]) -> None:
    """Write all files, or none if the bytes of one could not be written. Raises `OSError`."""
    with contextlib.ExitStack() as streams:
        for path, content in files.items():
            stream = streams.enter_context(replacing(path))
            stream.write(content)
            stream.flush()  # A full disk raises here at the latest, before any file is replaced.


def check_replaceable(path: Path) -> None:
    """Check that a file could be written at `path`. Raises `OSError`."""
    with tempfile.NamedTemporaryFile(dir=os.path.dirname(os.path.realpath(path)), prefix=".doctor-"):
        pass
