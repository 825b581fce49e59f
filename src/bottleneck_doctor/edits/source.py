"""The user's source with its tree and tokens, and where in the text each part of it lies. Pure.

Edits are made in the text, so that comments, layout and quotes stay the user's.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from dataclasses import dataclass


@dataclass(frozen=True)
class SourceText:
    """Source with its tree and tokens, and offsets in characters, which is what edits are made of."""

    source: str
    lines: tuple[str, ...]
    starts: tuple[int, ...]
    tree: ast.Module
    tokens: tuple[tokenize.TokenInfo, ...]

    @classmethod
    def parse(cls, source: str) -> SourceText | None:
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

    def torch_name(self) -> str | None:
        """What the file calls `torch`; None where it never imports it under a name."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.name == "torch":
                        return alias.asname or "torch"
                    if alias.asname is None and alias.name.startswith("torch."):
                        return "torch"
        return None

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
