"""Secrets that no output may show: reads them from the command's arguments, its environment and the configuration files
that it names."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from bottleneck_doctor.documents.redaction import Discretion, discretion

_CONFIGURATION = re.compile(r"\.(ya?ml|json|toml|ini|cfg|conf|env)$|(^|[/\\])\.env$", re.IGNORECASE)
_LARGEST = 256 * 1024
"""Bytes. Nobody writes more settings by hand; a larger file is data."""
_MOST = 20


def gathered(arguments: Sequence[str], *, source: bool = True) -> Discretion:
    """What to mask in the outputs of a command with these `arguments`. Files that can't be read are skipped."""
    texts = []
    for path in list(dict.fromkeys(_configurations(arguments)))[:_MOST]:
        try:
            if path.is_file() and path.stat().st_size <= _LARGEST:
                texts.append(path.read_text(encoding="utf-8", errors="replace"))
        except (OSError, ValueError):
            continue
    return discretion(arguments, os.environ, texts, source=source)


def _configurations(words: Sequence[str], depth: int = 0) -> Iterator[Path]:
    for word in words:
        if depth < 2 and re.search(r"\s", word):
            try:
                yield from _configurations(shlex.split(word), depth + 1)
            except ValueError:
                continue
        for part in (word, word.partition("=")[2]):
            if _CONFIGURATION.search(part):
                yield Path(part)
