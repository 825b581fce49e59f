"""The arguments of a call, or the entries of a dict: one more or one less, laid out as the others are. Pure.

What lies between two of them belongs to a comma in libcst's tree, and what follows the last one to its comma, to itself
or to the bracket. Here they are one row: entries, with white space in front of, between and behind them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Union

import libcst as cst

from bottleneck_doctor.edits.tree import SourceTree, code, written

LONGEST_LINE = 100
"""Characters up to which something is put on a line that holds other arguments already."""
NOTHING = cst.SimpleWhitespace("")

Holder = Union[cst.Call, cst.Dict]
"""What arguments, or entries, are in."""
Entry = Union[cst.Arg, cst.BaseDictElement]
_Space = cst.BaseParenthesizableWhitespace


def with_more(tree: SourceTree, holder: Holder, more: Mapping[str, object], place: Holder | None = None) -> Holder:
    """`holder` with arguments of these names and values at its end. Values are literals or expressions of libcst's.

    `place`: the node of the tree that `holder` was made of, where that is another one.
    """
    row = _row(holder)
    line = _last_line(tree, holder if place is None else place)
    for name, value in more.items():
        entry = _entry(tree, holder, name, value)
        row, line = row.added(entry, len(code(entry)), line)
    return _with_row(holder, row)


def with_behind(tree: SourceTree, unpacked: cst.BaseExpression, more: Mapping[str, object], call: cst.Call) -> cst.Dict:
    """What a `call` unpacks with entries behind it, which win over those that it holds: `{**options, "a": 1}`."""
    made = with_more(tree, cst.Dict([cst.StarredDictElement(unpacked)]), more, place=call)
    return cst.ensure_type(made, cst.Dict)


def without(holder: Holder, gone: Sequence[str]) -> Holder:
    """`holder` without the arguments of these names."""
    row = _row(holder)
    for name in gone:
        place = next((number for number, each in enumerate(row.entries) if name_of(each) == name), None)
        row = row if place is None else row.without(place)
    return _with_row(holder, row)


def without_places(holder: Holder, places: Iterable[int]) -> Holder:
    """`holder` without the arguments at these places, counted from 0 and given from the last to the first."""
    row = _row(holder)
    for place in places:
        row = row.without(place)
    return _with_row(holder, row)


def name_of(entry: cst.CSTNode) -> str | None:
    """The name of an argument, or the key of an entry where it is a string written out."""
    if isinstance(entry, cst.Arg):
        return entry.keyword.value if entry.keyword is not None else None
    if isinstance(entry, cst.DictElement) and isinstance(entry.key, cst.SimpleString):
        return str(entry.key.evaluated_value)
    return None


def _entry(tree: SourceTree, holder: Holder, name: str, value: object) -> Entry:
    expression = value if isinstance(value, cst.BaseExpression) else tree.literal(value)
    if isinstance(holder, cst.Dict):
        return cst.DictElement(cst.parse_expression(written(name, tree.quote)), expression)
    return cst.Arg(expression, keyword=cst.Name(name), equal=_equal_sign(holder))


def _equal_sign(call: cst.Call) -> cst.AssignEqual:
    """The sign between name and value, as the call's other arguments have it."""
    sign = next((each.equal for each in call.args if isinstance(each.equal, cst.AssignEqual)), None)
    spaced = sign is not None and sign.whitespace_before.empty is False and sign.whitespace_after.empty is False
    space = cst.SimpleWhitespace(" " if spaced else "")
    return cst.AssignEqual(whitespace_before=space, whitespace_after=space)


@dataclass(frozen=True)
class _LastLine:
    """The line on which the last entry ends: its characters up to there, its indentation, and whether the call begins
    on an earlier one."""

    width: int
    indent: str
    continued: bool


def _last_line(tree: SourceTree, holder: Holder) -> _LastLine:
    entries = holder.args if isinstance(holder, cst.Call) else holder.elements
    first, column = tree.place(holder) if not entries else tree.end(entries[-1])
    text = tree.text_of_line(first)
    return _LastLine(column, text[: len(text) - len(text.lstrip())], first > tree.lines(holder)[0])


@dataclass(frozen=True)
class _Row:
    """Entries without their commas. `before`: what stands in front of each one's comma. `gaps`: what follows each one
    and its comma; that of the last one stands in front of the closing bracket. `trailing`: the last has a comma too."""

    opening: _Space
    entries: tuple[Entry, ...]
    before: tuple[_Space, ...]
    gaps: tuple[_Space, ...]
    trailing: bool

    def added(self, entry: Entry, length: int, line: _LastLine) -> tuple[_Row, _LastLine]:
        """One more of so many characters at the end, and the line on which it ends."""
        if not self.entries:
            return replace(self, opening=NOTHING, entries=(entry,), before=(NOTHING,), gaps=(self.opening,)), line
        closing, last = self.gaps[-1], (self.opening, *self.gaps)[-2]
        width = line.width + len(", ") + length
        gap: _Space = cst.SimpleWhitespace(" ")
        if isinstance(last, cst.ParenthesizedWhitespace):
            if isinstance(closing, cst.ParenthesizedWhitespace):
                # What stands behind the last one on its line stays there; what stands below it goes below the new one.
                gap = last.with_changes(first_line=closing.first_line, empty_lines=())
                closing = closing.with_changes(first_line=cst.TrailingWhitespace())
            else:
                gap = last.with_changes(first_line=cst.TrailingWhitespace(), empty_lines=())
        elif width + len(")") > LONGEST_LINE and line.continued:
            gap = cst.ParenthesizedWhitespace(last_line=cst.SimpleWhitespace(line.indent))
            width = len(line.indent) + length
        entries, before = (*self.entries, entry), (*self.before, NOTHING)
        row = replace(self, entries=entries, before=before, gaps=(*self.gaps[:-1], gap, closing))
        return row, replace(line, width=width)

    def without(self, place: int) -> _Row:
        """One less. A comment behind one that has its line alone goes with it."""
        count = len(self.entries)
        ahead, here = self.opening if place == 0 else self.gaps[place - 1], self.gaps[place]
        left = [number for number in range(count) if number != place]
        spaces = [self.opening, *self.gaps]
        trailing = self.trailing
        if not left:
            spaces = [here]
            trailing = False
        elif place == count - 1:
            merged = _at_end(ahead, here)
            # A comment stays on its line, and the comma in front of it.
            trailing = trailing or (_breaks(merged) and not _breaks(here))
            spaces[place : place + 2] = [merged]
        else:
            spaces[place : place + 2] = [_between(ahead, here, first=place == 0)]
        return _Row(
            opening=spaces[0],
            entries=tuple(self.entries[number] for number in left),
            before=tuple(self.before[number] for number in left),
            gaps=tuple(spaces[1:]),
            trailing=trailing,
        )


def _breaks(space: _Space) -> bool:
    return isinstance(space, cst.ParenthesizedWhitespace)


def _between(ahead: _Space, here: _Space, first: bool) -> _Space:
    """What stands between the neighbours of an entry that is gone."""
    if isinstance(ahead, cst.ParenthesizedWhitespace):
        if isinstance(here, cst.ParenthesizedWhitespace):
            return ahead.with_changes(empty_lines=(*ahead.empty_lines, *here.empty_lines))
        return ahead
    return ahead if first else here


def _at_end(ahead: _Space, here: _Space) -> _Space:
    """What stands in front of the bracket where the last entry is gone."""
    if not isinstance(ahead, cst.ParenthesizedWhitespace):
        return here
    if isinstance(here, cst.ParenthesizedWhitespace):
        return here.with_changes(first_line=ahead.first_line, empty_lines=(*ahead.empty_lines, *here.empty_lines))
    commented = ahead.first_line.comment is not None or any(each.comment is not None for each in ahead.empty_lines)
    return ahead if commented else here


def _row(holder: Holder) -> _Row:
    entries: Sequence[Entry] = holder.args if isinstance(holder, cst.Call) else holder.elements
    commas = [each.comma if isinstance(each.comma, cst.Comma) else None for each in entries]
    gaps = [NOTHING if comma is None else comma.whitespace_after for comma in commas]
    if isinstance(holder, cst.Dict):
        opening = holder.lbrace.whitespace_after
        gaps[-1:] = [holder.rbrace.whitespace_before] if entries else []
    else:
        opening = holder.whitespace_before_args
        if entries and commas[-1] is None:
            gaps[-1:] = [holder.args[-1].whitespace_after_arg]
    return _Row(
        opening=opening,
        entries=tuple(entries),
        before=tuple(NOTHING if comma is None else comma.whitespace_before for comma in commas),
        gaps=tuple(gaps),
        trailing=bool(commas) and commas[-1] is not None,
    )


def _with_row(holder: Holder, row: _Row) -> Holder:
    entries = []
    last = len(row.entries) - 1
    for number, (entry, before, gap) in enumerate(zip(row.entries, row.before, row.gaps, strict=True)):
        in_brace = isinstance(holder, cst.Dict) and number == last
        comma = cst.Comma(whitespace_before=before, whitespace_after=NOTHING if in_brace else gap)
        has_comma = number < last or row.trailing
        entry = entry.with_changes(comma=comma if has_comma else cst.MaybeSentinel.DEFAULT)
        if isinstance(entry, cst.Arg):
            entry = entry.with_changes(whitespace_after_arg=NOTHING if has_comma else gap)
        entries.append(entry)
    if isinstance(holder, cst.Call):
        return holder.with_changes(whitespace_before_args=row.opening, args=entries)
    closing = row.gaps[-1] if row.gaps else NOTHING
    return holder.with_changes(
        elements=entries,
        lbrace=holder.lbrace.with_changes(whitespace_after=row.opening),
        rbrace=holder.rbrace.with_changes(whitespace_before=closing),
    )
