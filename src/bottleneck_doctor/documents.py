"""Versioned documents as JSON: bytes and the class that they should hold in, the document or the reason why not out.

All documents of ours (a report, the outcome of a check, a stored baseline) are read here, so that each withstands the
same: files of another program, damage, formats that nobody ever wrote. What a reason is called is the caller's.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

_NO_FORMAT = 1 << 31
"""No document's number, whatever release wrote it."""

Document = TypeVar("Document")


class Unreadable(Exception):
    """The bytes are no such document; the text says where they differ."""


class OtherFormat(Exception):
    """The document has a format that this release does not read. `found` is its number."""

    def __init__(self, found: int) -> None:
        super().__init__(f"format {found}")
        self.found = found


def encode(document: Any) -> bytes:
    """Indented UTF-8 JSON that ends in a newline."""
    return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"


def plain(data: bytes) -> Any:
    """What the JSON in `data` holds. Raises `Unreadable`."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise Unreadable(str(error)) from error


def decode(data: bytes, shape: type[Document], *, newest: int, oldest: int = 1) -> Document:
    """The document of the class `shape` in `data`, whose field `format` is `oldest` to `newest`.

    Raises `OtherFormat` and `Unreadable`.
    """
    head = plain(data)
    found = head.get("format") if isinstance(head, dict) else None
    if isinstance(found, int) and not isinstance(found, bool):
        if newest < found < _NO_FORMAT or 0 < found < oldest:
            raise OtherFormat(found)
        if not oldest <= found <= newest:
            raise Unreadable(f"no release has written a format {found}")
    try:
        return msgspec.convert(head, shape)
    except (msgspec.ValidationError, ValueError, RecursionError) as error:
        raise Unreadable(str(error)) from error


def schema(shape: type, title: str) -> bytes:
    """JSON Schema of the documents of a class, generated from it."""
    made = msgspec.json.schema(shape)
    made["title"] = title
    return msgspec.json.format(msgspec.json.encode(made), indent=1) + b"\n"
