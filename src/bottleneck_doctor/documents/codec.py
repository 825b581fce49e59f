"""Versioned documents as JSON: bytes and the class that they should hold in, the document or the reason why not out.

All documents of ours (a report, the outcome of a check, a stored baseline) are read here, so that each withstands the
same: files of another program, damage, formats that nobody ever wrote. What a reason is called is the caller's.
"""

from __future__ import annotations

import inspect
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
    """Indented UTF-8 JSON that ends in a newline. Bytes that are no text (in the name of a file, in the words of a
    commit) are replaced by a mark."""
    try:
        data = msgspec.json.encode(document)
    except UnicodeEncodeError:
        data = msgspec.json.encode(_readable(msgspec.to_builtins(document)))
    return msgspec.json.format(data, indent=1) + b"\n"


def _readable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    if isinstance(value, list):
        return [_readable(each) for each in value]
    if isinstance(value, dict):
        return {_readable(name): _readable(each) for name, each in value.items()}
    return value


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
    """JSON Schema of the documents of a class, generated from it.

    Every release of msgspec and of Python gives the same: some keep the indentation of docstrings, and some name the
    empty list that a field starts with.
    """
    made = _of_any_release(msgspec.json.schema(shape))
    made["title"] = title
    return msgspec.json.format(msgspec.json.encode(made), indent=1) + b"\n"


def _of_any_release(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_of_any_release(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    said = {name: _of_any_release(each) for name, each in schema.items()}
    # A field may be called "description" or "default" too, and what describes it is a schema.
    if isinstance(said.get("description"), str):
        said["description"] = inspect.cleandoc(said["description"])
    if said.get("default") in ([], {}) and "type" in said:
        del said["default"]
    return said
