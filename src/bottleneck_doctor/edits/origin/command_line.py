"""The words behind the user's program, and what stands among them: an option, a Hydra override, a file."""

from __future__ import annotations

import operator
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bottleneck_doctor.runtime.wire.notebooks import SOURCES


@dataclass(frozen=True)
class Given:
    """An option as the command line gives it: `words` as they stand there, `value` of the last of them, "" for one that
    has none."""

    words: str
    value: str
    joined: str
    """What stands between name and value: a space, `=`, or nothing (`-j8`)."""


@dataclass(frozen=True)
class CommandLine:
    """`words`: what the user starts, the script or module first, without the interpreter."""

    words: Sequence[str] = ()

    @property
    def script(self) -> str | None:
        """The script that is started; None where it is a module or a command."""
        start = self._start
        return self.words[start - 1] if start is not None and self.words[start - 1].endswith(SOURCES) else None

    @property
    def module(self) -> str | None:
        """The module that is started by `-m`."""
        start = self._start
        return self.words[start - 1] if start is not None and self.script is None else None

    @property
    def behind(self) -> Sequence[str]:
        """The program's own words."""
        return self.words[1 if self._start is None else self._start :]

    @property
    def _start(self) -> int | None:
        """The place of the first of the program's own words, behind the script or module."""
        for number, word in enumerate(self.words):
            if word.endswith(SOURCES):
                return number + 1
            if word == "-m" and number + 1 < len(self.words):
                return number + 2
        return None

    def option(self, names: Sequence[str], *, flag: bool = False) -> Given | None:
        """The last use of an option of one of these names."""
        return next((given for _, given in reversed(list(self.uses(names, flag=flag)))), None)

    def uses(self, names: Sequence[str], *, flag: bool = False) -> Iterator[tuple[int, Given]]:
        """Each use of an option of one of these names, with its place in `behind`. The program takes long names
        abbreviated."""
        words = self.behind
        for number, word in enumerate(words):
            head, sign, tail = word.partition("=")
            if word == "--":
                break
            if head in names or (len(head) > 3 and head.startswith("--") and _abbreviates(head, names)):
                if flag or sign:
                    yield number, Given(word, tail, "=")
                else:
                    value = words[number + 1] if number + 1 < len(words) else ""
                    bare = value.startswith("--")
                    yield number, Given(word, "", "") if bare else Given(shlex.join([word, value]), value, " ")
            elif not flag and len(word) > 2 and word[:2] in names and word[1] != "-":
                yield number, Given(word, word[2:], "")

    def says(self, test: str) -> bool | None:
        """Whether a condition on `sys.argv` holds; None where it is another one, or nobody knows the words."""
        counted = re.fullmatch(r"len\(sys\.argv\)\s*(==|!=|>=|<=|>|<)\s*(\d)", test)
        if not self.words or (counted is None and test not in ("sys.argv[1:]", "bool(sys.argv[1:])")):
            return None
        count = 1 + len(self.behind)
        return count > 1 if counted is None else _COMPARES[counted[1]](count, int(counted[2]))

    def override(self, key: str) -> str | None:
        """Hydra's `loader.num_workers=8`, with or without a `+` in front; None where it is not there."""
        for word in reversed(self.behind):
            head, sign, _ = word.partition("=")
            if sign and head.lstrip("+") == key:
                return word
        return None


_COMPARES = {
    "==": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}


def _abbreviates(word: str, names: Sequence[str]) -> bool:
    """Whether a word is short for one of the names. None is with a dot: `--data` names a part of its own there."""
    return any(each.startswith("--") and each.startswith(word) and "." not in each for each in names)
