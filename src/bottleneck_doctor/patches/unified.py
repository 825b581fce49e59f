"""A file before and after in, the part of a patch that makes the one of the other out.

`git apply`, `patch -p1` and `applying` read it, and take it back. `difflib` finds what differs; it does not say where a
file ends without a line end, nor does it quote names.
"""

from __future__ import annotations

import difflib

from bottleneck_doctor.patches.lines import lines_of
from bottleneck_doctor.patches.names import quoted

CONTEXT = 3
"""Lines around a change, as `git diff` and `diff -u` have them."""
_NO_END = b"\n\\ No newline at end of file\n"


def unified(path: str, before: bytes, after: bytes, *, context: int = CONTEXT) -> bytes:
    """The patch of one file, with headers; nothing where nothing differs. `path`: relative to the project, with `/`."""
    old, new = lines_of(before), lines_of(after)
    groups = difflib.SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(context)
    hunks = []
    for group in groups:
        begin, end = group[0][1], group[-1][2]
        begin_new, end_new = group[0][3], group[-1][4]
        hunks.append(f"@@ -{_span(begin, end)} +{_span(begin_new, end_new)} @@\n".encode())
        for kind, i1, i2, j1, j2 in group:
            if kind == "equal":
                hunks += [_line(" ", line) for line in old[i1:i2]]
            else:
                hunks += [_line("-", line) for line in old[i1:i2]]
                hunks += [_line("+", line) for line in new[j1:j2]]
    if not hunks:
        return b""
    return b"".join([_header("---", f"a/{path}"), _header("+++", f"b/{path}"), *hunks])


def _span(begin: int, end: int) -> str:
    """Lines as a hunk's header names them: by the first, or with none by the one before them."""
    count = end - begin
    if count == 1:
        return str(begin + 1)
    return f"{begin + 1 if count else begin},{count}"


def _line(mark: str, line: str) -> bytes:
    content = f"{mark}{line}".encode("utf-8", "surrogateescape")
    return content if content.endswith(b"\n") else content + _NO_END


def _header(mark: str, name: str) -> bytes:
    """A tab ends a name with a space in it: without, `patch` would take the rest for a date."""
    return f"{mark} {quoted(name)}{chr(9) if ' ' in name else ''}\n".encode("utf-8", "surrogateescape")
