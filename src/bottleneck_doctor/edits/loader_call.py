"""The edit that sets arguments in the call that makes a loader: source text and a line in, `ChangeText` or nothing out.

A figure is acted on when the line to change is beside it. What comes out always parses, and where no safe edit exists
the note says what to do instead. Nothing is read or written here.
"""

from __future__ import annotations

import ast
import tokenize
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bottleneck_doctor.edits.diff import ChangeText, as_change
from bottleneck_doctor.edits.source import SourceText

LONGEST_LINE = 100
"""Characters up to which an argument is put on a line that holds others already."""

POSITIONS = (
    "dataset",
    "batch_size",
    "shuffle",
    "sampler",
    "batch_sampler",
    "num_workers",
    "collate_fn",
    "pin_memory",
    "drop_last",
    "timeout",
    "worker_init_fn",
    "multiprocessing_context",
    "generator",
)
"""Order of positional parameters of `torch.utils.data.DataLoader`, from torch 1.0 to now."""

_LOADER_KEYWORDS = frozenset(POSITIONS[1:]) | {"prefetch_factor", "persistent_workers", "pin_memory_device"}


def loader_change(
    source: str, line: int, keywords: Mapping[str, object], without: Sequence[str] = ()
) -> ChangeText | None:
    """Set `keywords` in the call that makes the loader.

    `line` is any line of the call, as a frame's line number has it. Values are bool, int, float, str or None.
    `without`: arguments that are taken out of the call, in `keywords` or not. Returns None where `source` has no call
    there.
    """
    text = SourceText.parse(source)
    if text is None:
        return None
    calls = loader_calls(text.tree, line)
    if not calls:
        return None
    if len(calls) > 1:
        wanted = {name: value for name, value in keywords.items() if name not in without}
        note = f"Several loaders are made on this line. Set {_say(wanted)} in the training loader."
        return ChangeText(line=calls[0].lineno, diff="", note=note)
    return call_change(text, calls[0], keywords, without)


def call_change(
    text: SourceText, call: ast.Call, keywords: Mapping[str, object], without: Sequence[str] = ()
) -> ChangeText | None:
    """Set `keywords` in `call`, which is one of `text`'s; see `loader_change`. None where no safe edit exists."""
    source = text.source
    first = call.lineno
    wanted = {name: value for name, value in keywords.items() if name not in without}
    key = _key(call)
    notes = []
    for name, value in wanted.items():
        edit = _set_keyword(text, key, name, value)
        if isinstance(edit, _Refusal):
            return ChangeText(line=first, diff="", note=edit.reason.format(wanted=_say(wanted)))
        if edit is None:
            continue
        changed, note = edit
        notes += [note] if note else []
        after = SourceText.parse(changed)
        if after is None:
            return None
        text = after
    for name in without:
        removed = _remove_keyword(text, key, name)
        after = text if removed is None else SourceText.parse(removed)
        if after is None:
            return None
        text = after
    if text.source == source:
        return ChangeText(line=first, diff="", note="The call has these values already.")
    if not _holds(text, key, wanted):
        return None
    return as_change(source, text.source, first, " ".join(notes))


@dataclass(frozen=True)
class _Argument:
    """One argument of a call, without its comma: offsets, and where the comma after it ends (None: there is none)."""

    start: int
    end: int
    comma: int | None


@dataclass(frozen=True)
class _Refusal:
    """Why a keyword can't be set in the call; `{wanted}` is filled in."""

    reason: str


_SILENT = frozenset(
    {tokenize.NL, tokenize.NEWLINE, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
)


def _arguments(text: SourceText, call: ast.Call) -> tuple[list[_Argument], int] | None:
    """The arguments of `call` in order, and the offset of its closing parenthesis."""
    close = text.span(call)[1] - 1
    tokens = [token for token in text.tokens if token.type not in _SILENT]
    last = bisect_left([text.at(token.start) for token in tokens], close)
    if last == len(tokens) or text.at(tokens[last].start) != close or tokens[last].string != ")":
        return None
    depth, first = 0, last
    while True:
        string = tokens[first].string if tokens[first].type == tokenize.OP else ""
        depth += (string in (")", "]", "}")) - (string in ("(", "[", "{"))
        if depth == 0:
            break
        first -= 1
        if first < 0:
            return None
    arguments: list[_Argument] = []
    group: list[tokenize.TokenInfo] = []
    depth = 0
    lambdas = 0
    for token in tokens[first + 1 : last]:
        string = token.string
        if token.type == tokenize.OP:
            depth += (string in ("(", "[", "{")) - (string in (")", "]", "}"))
        if depth == 0:
            # The commas between a lambda's parameters are not between arguments.
            if token.type == tokenize.NAME and string == "lambda":
                lambdas += 1
            elif string == ":" and lambdas:
                lambdas -= 1
            elif string == "," and token.type == tokenize.OP and not lambdas:
                arguments.append(_Argument(text.at(group[0].start), text.at(group[-1].end), text.at(token.end)))
                group = []
                continue
        group.append(token)
    if group:
        arguments.append(_Argument(text.at(group[0].start), text.at(group[-1].end), None))
    if len(arguments) != len(call.args) + len(call.keywords):
        return None
    return arguments, close


def loader_calls(tree: ast.Module, line: int) -> list[ast.Call]:
    """The call on `line` that makes a loader; several where the line alone can't tell them apart."""
    calls = [
        node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    aliases = {
        alias.asname
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname and alias.name.endswith("DataLoader")
    }
    named = [call for call in calls if _called(call).endswith("DataLoader") or _called(call) in aliases]
    if named:
        return _innermost([call for call in named if call.lineno == line] or named)
    alike = [call for call in calls if any(keyword.arg in _LOADER_KEYWORDS for keyword in call.keywords)]
    if alike:
        return _innermost([call for call in alike if call.lineno == line] or alike)
    outermost = [call for call in calls if call.lineno == line] or calls
    return sorted(outermost, key=_size, reverse=True)[:1]


def _innermost(calls: list[ast.Call]) -> list[ast.Call]:
    return [call for call in calls if not any(other is not call and other in ast.walk(call) for other in calls)]


def _size(node: ast.Call) -> tuple[int, int]:
    return ((node.end_lineno or 0) - node.lineno, (node.end_col_offset or 0) - node.col_offset)


def _called(call: ast.Call) -> str:
    function = call.func
    if isinstance(function, ast.Subscript):
        function = function.value
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


_Key = tuple[int, int, int, int]


def _key(call: ast.Call) -> _Key:
    """Where the call begins and its function ends: what no edit of its arguments moves."""
    return call.lineno, call.col_offset, call.func.end_lineno or 0, call.func.end_col_offset or 0


def _find(text: SourceText, key: _Key) -> ast.Call | None:
    return next((node for node in ast.walk(text.tree) if isinstance(node, ast.Call) and _key(node) == key), None)


def _holds(text: SourceText, key: _Key, wanted: Mapping[str, object]) -> bool:
    """Whether the call says `wanted` now: the last check on an edit that somebody will copy."""
    call = _find(text, key)
    if call is None:
        return False
    said = {keyword.arg: keyword.value for keyword in call.keywords}
    said.update(zip(POSITIONS, call.args, strict=False))
    return all(name in said and ast.dump(said[name]) == _dump(value) for name, value in wanted.items())


def _dump(value: object) -> str:
    return ast.dump(ast.parse(_literal(value, '"'), mode="eval").body)


def _set_keyword(text: SourceText, key: _Key, name: str, value: object) -> tuple[str, str] | _Refusal | None:
    """New source and a note; None where the value is there already."""
    call = _find(text, key)
    if call is None:
        return _Refusal("Set {wanted} in this call.")
    written = _literal(value, text.quote)
    present = next((keyword.value for keyword in call.keywords if keyword.arg == name), None)
    if present is None:
        starred = next((number for number, node in enumerate(call.args) if isinstance(node, ast.Starred)), None)
        place = POSITIONS.index(name) if name in POSITIONS else len(POSITIONS)
        known = _called(call) == "DataLoader"
        if starred is not None and starred <= place < len(POSITIONS):
            return _Refusal(f"`{ast.unparse(call.args[starred])}` may hold {name}; set {{wanted}} where it is made.")
        if place < len(call.args):
            if not known:
                return _Refusal("Set {wanted} in this call.")
            present = call.args[place]
    if present is None:
        for keyword in call.keywords:
            if keyword.arg is None:
                unpacked = ast.unparse(keyword.value).replace("{", "{{").replace("}", "}}")
                return _Refusal(f"`**{unpacked}` may hold {name}; set {{wanted}} where it is made.")
        added = _add_argument(text, call, name, written)
        return _Refusal("Set {wanted} in this call.") if added is None else (added, "")
    if isinstance(present, ast.Constant) and type(present.value) is type(value) and present.value == value:
        return None
    start, end = text.span(present)
    if any(token.type == tokenize.COMMENT and start <= text.at(token.start) < end for token in text.tokens):
        return _Refusal("Set {wanted} in this call.")
    note = ""
    if not isinstance(present, ast.Constant):
        note = (
            f"`{ast.unparse(present)}` sets {name} now. If it is an option of your program, set it to {written} there."
        )
    return text.source[:start] + written + text.source[end:], note


def _add_argument(text: SourceText, call: ast.Call, name: str, written: str) -> str | None:
    """`call` with one more argument at its end, laid out as the others are."""
    found = _arguments(text, call)
    if found is None:
        return None
    arguments, close = found
    source = text.source
    argument = f"{name}{_equals(text, call)}{written}"
    if not arguments:
        opening = source.rfind("(", 0, close) + 1
        return source[:opening] + argument + source[opening:]
    last = arguments[-1]
    end = last.comma or last.end
    own_lines = all(not text.before(each.start).strip() for each in (arguments[1:] or arguments))
    indent = text.before(last.start)
    eol = source.find("\n", end)
    if own_lines and -1 < eol < close:
        comma, trailing = ("", ",") if last.comma else (",", "")
        return (
            source[: last.end]
            + comma
            + source[last.end : eol + 1]
            + f"{indent}{argument}{trailing}{text.newline}"
            + source[eol + 1 :]
        )
    line = text.before(last.end)
    full = len(line) + 2 + len(argument) + 1 > LONGEST_LINE
    later = source.count("\n", text.span(call)[0], last.end) > 0
    if own_lines or (full and later and not line[: len(line) - len(line.lstrip())].strip()):
        if not own_lines:
            indent = line[: len(line) - len(line.lstrip())]
        return source[: last.end] + f",{text.newline}{indent}{argument}" + source[last.end :]
    return source[: last.end] + f", {argument}" + source[last.end :]


def _remove_keyword(text: SourceText, key: _Key, name: str) -> str | None:
    """New source; None where the call has no such keyword or it can't be taken out."""
    call = _find(text, key)
    keyword = None if call is None else next((each for each in call.keywords if each.arg == name), None)
    if call is None or keyword is None:
        return None
    found = _arguments(text, call)
    if found is None:
        return None
    arguments, _ = found
    source = text.source
    start = text.span(keyword)[0]
    place = next((number for number, each in enumerate(arguments) if each.start == start), None)
    if place is None:
        return None
    this = arguments[place]
    end = this.comma or this.end
    eol = source.find("\n", end)
    rest = source[end:eol].strip() if eol > -1 else ")"
    if not text.before(start).strip() and (not rest or rest.startswith("#")):
        return source[: start - len(text.before(start))] + source[eol + 1 :]
    if place + 1 < len(arguments):
        following = arguments[place + 1].start
        return source[:start] + source[following if "#" not in source[end:following] else end :]
    if place > 0:
        previous = arguments[place - 1].end
        if "#" in source[previous:start]:
            return source[:start] + source[end:]
        return source[:previous] + source[this.end :]
    return source[:start] + source[end:]


def _equals(text: SourceText, call: ast.Call) -> str:
    """The sign between name and value, as the call's other keywords have it."""
    for keyword in call.keywords:
        if keyword.arg is not None:
            start = text.span(keyword)[0] + len(keyword.arg)
            between = text.source[start : text.span(keyword.value)[0]]
            return between if between == " = " else "="
    return "="


def _literal(value: object, quote: str) -> str:
    if isinstance(value, str):
        return quote + value.replace("\\", "\\\\").replace(quote, "\\" + quote) + quote
    return repr(value)


def _say(wanted: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={_literal(value, chr(34))}" for name, value in wanted.items())
