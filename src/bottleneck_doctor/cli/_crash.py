"""Writes an unexpected exception to a file for a bug report: exception in, `DoctorError` that names the file out."""

from __future__ import annotations

import platform
import shlex
import sys
import tempfile
import traceback
from importlib import metadata

from bottleneck_doctor import __version__
from bottleneck_doctor.cli._secrets import gathered
from bottleneck_doctor.errors import DoctorError, Exit


def record_crash(error: Exception, arguments: list[str]) -> DoctorError:
    """Write traceback and versions to a file in the temporary folder, and return the error that names the file."""
    known = gathered(arguments)
    text = "\n".join(
        [
            f"bottleneck-doctor {__version__}",
            f"Python {sys.version}",
            f"torch {_version('torch')}, torchvision {_version('torchvision')}, py-spy {_version('py-spy')}",
            platform.platform(),
            f"doctor {shlex.join(known.words(arguments))}",
            "",
            known.output("".join(traceback.format_exception(error))),
        ]
    )
    kind = type(error).__name__
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="doctor-crash-", suffix=".txt", delete=False, encoding="utf-8", errors="backslashreplace"
        ) as stream:
            stream.write(text)
        where = f"The details are in {stream.name}; please report the bug with that file."
    except OSError:
        where = f"The details could not be written to a file; please report the bug with this: {error}"
    return DoctorError("bug", f"This is a bug in doctor: {kind}.", where, Exit.BUG)


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "missing"
