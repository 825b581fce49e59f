"""The edit to make in the user's own code, as a diff: source text and a line in, `ChangeText` or nothing out.

A figure is acted on when the line to change is beside it. Text is edited in place, so that comments, layout and
quotes stay the user's; what comes out always parses, and where no safe edit exists the note says what to do instead.
Nothing is read or written here.
"""

from __future__ import annotations

import ast
import difflib
import io
import re
import tokenize
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

LONGEST_LINE = 100
"""Characters up to which an argument is put on a line that holds others already."""

_POSITIONS = (
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

_NEED_WORKERS = ("prefetch_factor", "persistent_workers", "timeout", "multiprocessing_context")
"""What `DataLoader` refuses, or is pointless, with no workers."""

_LOADER_KEYWORDS = frozenset(_POSITIONS[1:]) | {"prefetch_factor", "persistent_workers", "pin_memory_device"}


@dataclass(frozen=True, kw_only=True)
class ChangeText:
    """An edit. `line` is the first line of the user's file that changes, counted from 1; `diff` is a unified diff with
    no file headers, "" where none fits; `edited` is the whole new source, "" with it."""

    line: int
    diff: str
    edited: str = ""
    note: str = ""


def loader_change(source: str, line: int, keywords: Mapping[str, object]) -> ChangeText | None:
    """Set `keywords` in the call that makes the loader.

    `line` is any line of the call, as a frame's line number has it. Values are bool, int, float, str or None. With
    `num_workers` 0, what needs workers is taken out of the call. Returns None where `source` has no call there.
    """
    text = _Text.parse(source)
    if text is None:
        return None
    calls = _loader_calls(text.tree, line)
    if not calls:
        return None
    first = calls[0].lineno
    wanted = dict(keywords)
    if wanted.get("num_workers", 1) == 0:
        wanted = {name: value for name, value in wanted.items() if name not in _NEED_WORKERS}
    if len(calls) > 1:
        return ChangeText(line=first, diff="", note=f"Several loaders are made on this line; set {_say(wanted)}.")
    key = _key(calls[0])
    notes = []
    for name, value in wanted.items():
        edit = _set_keyword(text, key, name, value)
        if isinstance(edit, _Refusal):
            return ChangeText(line=first, diff="", note=edit.reason.format(wanted=_say(wanted)))
        if edit is None:
            continue
        changed, note = edit
        notes += [note] if note else []
        after = _Text.parse(changed)
        if after is None:
            return None
        text = after
    if wanted.get("num_workers", 1) == 0:
        for name in _NEED_WORKERS:
            without = _remove_keyword(text, key, name)
            after = text if without is None else _Text.parse(without)
            if after is None:
                return None
            text = after
    if text.source == source:
        return ChangeText(line=first, diff="", note="The call has these values already.")
    if not _holds(text, key, wanted):
        return None
    return _as_change(source, text.source, first, " ".join(notes))


def autocast_change(source: str, forward_line: int, backward_line: int, device: str, dtype: str) -> ChangeText | None:
    """Put the forward pass and the loss, up to the backward pass, under `torch.autocast`.

    `forward_line` and `backward_line` are lines of the calls of the model and of `.backward()`; `device` is a device
    type such as `cuda`; `dtype` is `bfloat16` or `float16`, the second with a gradient scaler. Returns None where the
    two calls are not in one block of statements, or the edit can't be made safely.
    """
    text = _Text.parse(source)
    dtype = dtype.removeprefix("torch.")
    if text is None or dtype not in ("bfloat16", "float16"):
        return None
    found = _forward_to_backward(text.tree, forward_line, backward_line)
    if found is None:
        return None
    block, begin, end, outer = found
    first, backward = block[begin], block[end]
    # Gradients are often cleared between loss and backward pass; that has no place under autocast.
    last = next(each for each in reversed(block[begin:end]) if each is first or not _method(each, "zero_grad"))
    if _last_line(block[end - 1]) >= backward.lineno or block[block.index(last) + 1].lineno <= _last_line(last):
        return None
    indent = text.indent(first)
    if indent is None or text.indent(backward) != indent:
        return None
    torch = _torch_name(text.tree)
    quote = text.quote
    above: dict[int, list[str]] = {}
    replaced: dict[int, str] = {}
    notes = []
    if torch is None:
        torch = "torch"
        above.setdefault(_import_line(text.tree), []).append("import torch")
    if dtype == "float16":
        scaler = next((name for name in ("scaler", "grad_scaler") if not re.search(rf"\b{name}\b", source)), None)
        scaled = None if scaler is None else _scale(text, block, end, indent, scaler)
        start = text.indent(outer)
        if scaled is None or start is None:
            return None
        replaced = scaled
        made = f"{start}{scaler} = {torch}.amp.GradScaler({quote}{device}{quote})"
        above.setdefault(outer.lineno, []).append(made)
        notes.append("Keep one GradScaler for the whole training: make it where the optimizer is made.")
    head = f"{indent}with {torch}.autocast({quote}{device}{quote}, dtype={torch}.{dtype}):"
    above.setdefault(first.lineno, []).append(head)
    left_alone = text.inside_strings()
    written = [source[: text.starts[0]]]
    for number, line in enumerate(text.lines, 1):
        written += [f"{new}{text.newline}" for new in above.get(number, [])]
        wrapped = first.lineno <= number <= _last_line(last) and number not in left_alone and line.strip()
        written.append((text.unit if wrapped else "") + replaced.get(number, line))
    edited = "".join(written)
    if _Text.parse(edited) is None:
        return None
    return _as_change(source, edited, first.lineno, " ".join(notes))


# --- the text and its tokens


@dataclass(frozen=True)
class _Text:
    """Source with its tree and tokens, and offsets in characters, which is what edits are made of."""

    source: str
    lines: tuple[str, ...]
    starts: tuple[int, ...]
    tree: ast.Module
    tokens: tuple[tokenize.TokenInfo, ...]

    @classmethod
    def parse(cls, source: str) -> _Text | None:
        """None where `source` is not a program, or has line ends (a lone carriage return) that confuse editors too."""
        body = source.removeprefix("\ufeff")
        if re.search(r"\r(?!\n)", body):
            return None
        try:
            tree = ast.parse(body)
            # Not splitlines: it also breaks at form feeds and separators, which Python does not.
            lines = tuple(io.StringIO(body, newline=""))
            tokens = tuple(tokenize.generate_tokens(iter(lines).__next__))
        except (SyntaxError, ValueError, RecursionError, MemoryError, tokenize.TokenError):
            return None
        shift = len(source) - len(body)
        starts = [shift]
        for line in lines:
            starts.append(starts[-1] + len(line))
        return cls(source, lines, tuple(starts), tree, tokens)

    @property
    def newline(self) -> str:
        return "\r\n" if self.lines and self.lines[0].endswith("\r\n") else "\n"

    @property
    def quote(self) -> str:
        return "'" if self.source.count("'") > self.source.count('"') else '"'

    @property
    def unit(self) -> str:
        """One level of indentation, as this file has it."""
        return next((token.string for token in self.tokens if token.type == tokenize.INDENT), "    ")

    def at(self, position: tuple[int, int]) -> int:
        """Offset of a token's (line, column)."""
        return self.starts[position[0] - 1] + position[1]

    def offset(self, line: int, column: int) -> int:
        """Offset of a syntax node's line and column, which counts bytes of UTF-8."""
        return self.starts[line - 1] + len(self.lines[line - 1].encode()[:column].decode())

    def span(self, node: ast.expr | ast.keyword | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.offset(node.lineno, node.col_offset), self.offset(node.end_lineno, node.end_col_offset)

    def before(self, offset: int) -> str:
        """What stands before `offset` on its line."""
        return self.source[self.source.rfind("\n", 0, offset) + 1 : offset].removeprefix("\ufeff")

    def indent(self, statement: ast.stmt) -> str | None:
        """The white space before `statement`; None where something else shares its line."""
        decorators = getattr(statement, "decorator_list", [])
        if decorators:
            return None
        before = self.before(self.span(statement)[0])
        return None if before.strip() else before

    def inside_strings(self) -> set[int]:
        """Lines that begin inside a string of several lines, where white space is content."""
        inside: set[int] = set()
        opened: list[int] = []
        for token in self.tokens:
            name = tokenize.tok_name[token.type]
            if name == "STRING":
                inside.update(range(token.start[0] + 1, token.end[0] + 1))
            elif name in ("FSTRING_START", "TSTRING_START"):
                opened.append(token.start[0])
            elif name in ("FSTRING_END", "TSTRING_END"):
                inside.update(range(opened.pop() + 1, token.end[0] + 1))
        return inside


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


def _arguments(text: _Text, call: ast.Call) -> tuple[list[_Argument], int] | None:
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


# --- the loader's call


def _loader_calls(tree: ast.Module, line: int) -> list[ast.Call]:
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


def _find(text: _Text, key: _Key) -> ast.Call | None:
    return next((node for node in ast.walk(text.tree) if isinstance(node, ast.Call) and _key(node) == key), None)


def _holds(text: _Text, key: _Key, wanted: Mapping[str, object]) -> bool:
    """Whether the call says `wanted` now: the last check on an edit that somebody will copy."""
    call = _find(text, key)
    if call is None:
        return False
    said = {keyword.arg: keyword.value for keyword in call.keywords}
    said.update(zip(_POSITIONS, call.args, strict=False))
    return all(name in said and ast.dump(said[name]) == _dump(value) for name, value in wanted.items())


def _dump(value: object) -> str:
    return ast.dump(ast.parse(_literal(value, '"'), mode="eval").body)


def _set_keyword(text: _Text, key: _Key, name: str, value: object) -> tuple[str, str] | _Refusal | None:
    """New source and a note; None where the value is there already."""
    call = _find(text, key)
    if call is None:
        return _Refusal("Set {wanted} in this call.")
    written = _literal(value, text.quote)
    present = next((keyword.value for keyword in call.keywords if keyword.arg == name), None)
    if present is None:
        starred = next((number for number, node in enumerate(call.args) if isinstance(node, ast.Starred)), None)
        place = _POSITIONS.index(name) if name in _POSITIONS else len(_POSITIONS)
        known = _called(call) == "DataLoader"
        if starred is not None and starred <= place < len(_POSITIONS):
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
        note = f"`{ast.unparse(present)}` gives {name} now: if it is an option of yours, set it to {written} there."
    return text.source[:start] + written + text.source[end:], note


def _add_argument(text: _Text, call: ast.Call, name: str, written: str) -> str | None:
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


def _remove_keyword(text: _Text, key: _Key, name: str) -> str | None:
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


def _equals(text: _Text, call: ast.Call) -> str:
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


# --- autocast


def _blocks(tree: ast.AST, path: tuple[ast.stmt, ...] = ()) -> Iterator[tuple[list[ast.stmt], tuple[ast.stmt, ...]]]:
    """Every list of statements that are executed in a row, with the statements around it, outermost first."""
    for _, value in ast.iter_fields(tree):
        if not isinstance(value, list) or not value:
            continue
        if isinstance(value[0], ast.stmt):
            yield value, path
            for statement in value:
                yield from _blocks(statement, (*path, statement))
        elif isinstance(value[0], (ast.ExceptHandler, ast.match_case)):
            for part in value:
                yield from _blocks(part, path)


def _last_line(statement: ast.stmt) -> int:
    assert statement.end_lineno is not None
    return statement.end_lineno


def _forward_to_backward(
    tree: ast.Module, forward_line: int, backward_line: int
) -> tuple[list[ast.stmt], int, int, ast.stmt] | None:
    """The block, the places in it of the statements with the forward and the backward call, and the outermost loop
    around them within their function (or the first of the two statements where there is none)."""
    best = None
    for block, path in _blocks(tree):
        begin = _place(block, forward_line)
        end = _place(block, backward_line, "backward")
        if begin is not None and end is not None and begin < end and _wrappable(block[begin:end]):
            scope: tuple[ast.stmt, ...] = path
            for number, statement in enumerate(path):
                if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                    scope = path[number + 1 :]
            loops = [statement for statement in scope if isinstance(statement, (ast.For, ast.While, ast.AsyncFor))]
            best = block, begin, end, loops[0] if loops else block[begin]
    return best


def _place(block: list[ast.stmt], line: int, calling: str = "") -> int | None:
    """The statement on `line`; where several share it, the one that speaks of `calling`."""
    places = [number for number, each in enumerate(block) if each.lineno <= line <= _last_line(each)]
    speaking = [number for number in places if calling in ast.unparse(block[number])] if len(places) > 1 else places
    return next(iter(speaking or places), None)


def _wrappable(statements: list[ast.stmt]) -> bool:
    """Whether these may go under one `with`: a loop or a definition around the forward pass is more than that."""
    unsuitable = (ast.For, ast.While, ast.AsyncFor, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return not isinstance(statements[0], unsuitable)


def _scale(text: _Text, block: list[ast.stmt], end: int, indent: str, scaler: str) -> dict[int, str] | None:
    """New lines, by number, that scale the loss and step through the scaler; None where the shape is another."""
    backward = block[end]
    steps = [each for each in block[end + 1 :] if _method(each, "step") and "sched" not in ast.unparse(each).lower()]
    if not _method(backward, "backward") or len(steps) != 1:
        return None
    step = steps[0]
    changed: dict[int, str] = {}
    clips = [each for each in block[end + 1 : block.index(step)] if "clip_grad" in ast.unparse(each)]
    for statement in (backward, step, *clips[:1]):
        if text.indent(statement) != indent or statement.lineno != _last_line(statement):
            return None
        after = text.lines[statement.lineno - 1].rstrip("\r\n")[len(text.before(text.span(statement)[1])) :]
        if after.strip() and not after.strip().startswith("#"):
            return None
    assert isinstance(backward, ast.Expr)
    assert isinstance(step, ast.Expr)
    loss, optimizer = _receiver(text, backward), _receiver(text, step)
    if loss is None or optimizer is None:
        return None
    line = text.lines[backward.lineno - 1]
    changed[backward.lineno] = f"{indent}{scaler}.scale({loss}){line[len(indent) + len(loss) :]}"
    line = text.lines[step.lineno - 1]
    tail = text.source[text.span(step)[1] : text.starts[step.lineno]]
    changed[step.lineno] = f"{indent}{scaler}.step({optimizer}){tail}"
    if not tail.endswith("\n"):
        changed[step.lineno] += text.newline
    changed[step.lineno] += f"{indent}{scaler}.update(){text.newline}"
    for clip in clips[:1]:
        line = text.lines[clip.lineno - 1]
        changed[clip.lineno] = f"{indent}{scaler}.unscale_({optimizer}){text.newline}{line}"
    return changed


def _method(statement: ast.stmt, name: str) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Call)
        and isinstance(statement.value.func, ast.Attribute)
        and statement.value.func.attr == name
        and (name != "step" or not (statement.value.args or statement.value.keywords))
    )


def _receiver(text: _Text, statement: ast.Expr) -> str | None:
    call = statement.value
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    start, end = text.span(call.func.value)
    if start != text.span(statement)[0]:
        return None
    return text.source[start:end]


def _torch_name(tree: ast.Module) -> str | None:
    """What the file calls `torch`; None where it never imports it under a name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name == "torch":
                    return alias.asname or "torch"
                if alias.asname is None and alias.name.startswith("torch."):
                    return "torch"
    return None


def _import_line(tree: ast.Module) -> int:
    """The line before which `import torch` goes."""
    for statement in tree.body:
        docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
        if not docstring and not future:
            return statement.lineno
    return 1


# --- the diff


def _as_change(source: str, edited: str, line: int, note: str) -> ChangeText:
    old, new = source.removesuffix("\n").split("\n"), edited.removesuffix("\n").split("\n")
    opcodes = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    line = next((begin + 1 for kind, begin, *_ in opcodes if kind != "equal"), line)
    hunks = difflib.unified_diff(
        [each.rstrip("\r") for each in old], [each.rstrip("\r") for each in new], n=1, lineterm=""
    )
    return ChangeText(line=line, diff="".join(f"{each}\n" for each in list(hunks)[2:]), edited=edited, note=note)
