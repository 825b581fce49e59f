"""The place of options on a command line: before the script, between it and a `--`, or in a place that is refused.

The words of a command go in. The same words come out in the order that click reads, or a `DoctorError` that shows the
right order as a command to copy. The options are read from click, so that a new one needs no change here.
"""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import click

from bottleneck_doctor.errors import DoctorError

_LIKE_AN_OPTION = re.compile(r"--|-[A-Za-z]")
"""How an option begins, and no value does. `-` is standard output, and `-3` a number."""
_MAY_BEGIN_WITH_A_DASH = ("FILE", "DIR", "PATH", "COMMAND", "CMD")
"""Values that may begin with a dash, by their names in `--help`. No revision, time, number or id of a fix does."""
_IS_WORDS = "ARGS"
"""A value that is a command line's own words, as `--help` calls it: it begins with a dash as a rule."""
_EXAMPLES = {
    "REF": "origin/main",
    "TIME": "5m",
    "PERCENT": "3%",
    "HOST:PORT": "10.0.0.1:0",
    "N": "3",
    "ARGS": "'--workers 8'",
    "NAME=VALUE": "OMP_NUM_THREADS=1",
}
"""Values that anybody might give, where their name in `--help` says less."""


class Command(click.Command):
    """A command that never takes one option as the value of another, as in `--base-ref --json x.json`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not ctx.resilient_parsing:
            _Reader(self, ctx).leading(args, interspersed=ctx.allow_interspersed_args)
        return super().parse_args(ctx, args)


class StartingCommand(Command):
    """A command that starts a script or module. If a `--` follows it, options between the two are doctor's."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, args if ctx.resilient_parsing else _ordered(self, ctx, args))


@dataclass(frozen=True)
class _Given:
    """One word that names options of doctor's, with the option's value if that is a separate word."""

    options: tuple[click.Option, ...]
    """More than one if short flags are written together: `-qv`."""
    words: tuple[str, ...]

    def names(self, *parameters: str) -> bool:
        return any(option.name in parameters for option in self.options)


class _Reader:
    """Reads words as click does, by the options of `command`."""

    def __init__(self, command: click.Command, ctx: click.Context) -> None:
        self.options: dict[str, click.Option] = {}
        for parameter in command.get_params(ctx):
            if isinstance(parameter, click.Option):
                self.options.update(dict.fromkeys((*parameter.opts, *parameter.secondary_opts), parameter))
        help_option = command.get_help_option(ctx)
        self.help = () if help_option is None else (str(help_option.name),)

    def leading(self, words: Sequence[str], *, interspersed: bool) -> list[_Given]:
        """The options that `words` begin with; if arguments may be `interspersed`, those anywhere before a `--`.

        An unknown option ends the search, because click refuses it. Raises `DoctorError` `value-missing`.
        """
        found: list[_Given] = []
        at = 0
        while at < len(words) and words[at] != "--":
            given = self.given(words[at:])
            if given is not None:
                found.append(given)
                at += len(given.words)
            elif interspersed and not _is_dashed(words[at]):
                at += 1
            else:
                break
        return found

    def given(self, words: Sequence[str]) -> _Given | None:
        """The options that the first of `words` names; None if it is another word. Raises `value-missing`."""
        word, following = words[0], words[1:2]
        option = self.options.get(word)
        if option is not None:
            return self._with_value((option,), word, word, following)
        if word.startswith("--"):
            name, equals, _ = word.partition("=")
            return _Given((self.options[name],), (word,)) if equals and name in self.options else None
        if not word.startswith("-"):
            return None
        together: list[click.Option] = []
        for at, letter in enumerate(word[1:], 2):
            if (short := self.options.get(f"-{letter}")) is None:
                return None
            together.append(short)
            if _takes_value(short):
                # The rest of the word is the option's value, as in `-oDIR`.
                ends = at == len(word)
                return self._with_value(tuple(together), f"-{letter}", word, following if ends else ())
        return _Given(tuple(together), (word,)) if together else None

    def exact(self, words: Sequence[str]) -> _Given | None:
        """The option whose whole name is the first of `words`, among arguments that may be the script's.

        If its value is missing, an example takes its place, because the result is shown as a command to copy.
        """
        name, equals, _ = words[0].partition("=")
        option = self.options.get(name if name.startswith("--") else words[0])
        if option is None or (equals and not _takes_value(option)):
            return None
        if equals or not _takes_value(option):
            return _Given((option,), (words[0],))
        has_value = len(words) > 1 and not self._ends_value(option, words[1])
        return _Given((option,), (name, words[1] if has_value else _stand_in(option)))

    def _with_value(self, options: tuple[click.Option, ...], name: str, word: str, following: Sequence[str]) -> _Given:
        option = options[-1]
        if not _takes_value(option) or not following:
            return _Given(options, (word,))  # A value that is missing at the end is told by click.
        if self._ends_value(option, following[0]):
            taken = following[0].partition("=")[0]
            long = next((each for each in option.opts if each.startswith("--")), name)
            joined = option.metavar == _IS_WORDS or (
                option.metavar in _MAY_BEGIN_WITH_A_DASH and taken not in ("--", *self.options)
            )
            raise DoctorError(
                "value-missing",
                f"{name} needs a value, but {'`--`' if taken == '--' else taken} follows it.",
                f"Write a value directly after {name}, as in {name} {_example(option)}."
                + (f" If the value itself begins with a dash, write {long}=VALUE." if joined else ""),
            )
        return _Given(options, (word, following[0]))

    def _ends_value(self, option: click.Option, word: str) -> bool:
        """Whether a word can't be the value of an option, because it looks like another one."""
        if option.metavar == _IS_WORDS:
            return word == "--" or word.partition("=")[0] in self.options
        return _LIKE_AN_OPTION.match(word) is not None


def _is_dashed(word: str) -> bool:
    return word.startswith("-") and word != "-"


def _takes_value(option: click.Option) -> bool:
    return not option.is_flag and not option.count


def _example(option: click.Option) -> str:
    return _EXAMPLES.get(option.metavar or "", _stand_in(option))


def _stand_in(option: click.Option) -> str:
    if isinstance(option.type, click.Choice):
        return str(option.type.choices[0])
    return option.metavar or option.type.name.upper()


def _ordered(command: click.Command, ctx: click.Context, args: list[str]) -> list[str]:
    """`args` with doctor's options before the script, and one `--` between a module and its arguments.

    Raises `click.UsageError`, and `DoctorError` `value-missing`, `option-misplaced` and `not-an-option`.
    """
    line = _Line.read(command, ctx, args)
    # With `--exec`, a script or module is refused later (`_start.start`).
    if line is None or any(given.names("line") for given in line.before):
        return args
    if "--" not in line.after:
        line.refuse_ours()
        return [*line.before_words, *line.target, "--", *line.after] if line.is_module else args
    cut = line.after.index("--")
    ours = line.between(cut)
    rest = line.after[cut:]
    if line.is_module:
        return [*line.before_words, *line.target, *_flat(ours), *rest]
    if any(given.names("module") for given in ours):
        raise click.UsageError(f"Give either {line.name} or -m MODULE, not both.", ctx)
    return [*line.before_words, *_flat(ours), *line.target, *rest]


@dataclass(frozen=True)
class _Line:
    """A command line, cut after the script or module."""

    reader: _Reader
    path: str
    """`doctor run`"""
    args: list[str]
    before: list[_Given]
    target: tuple[str, ...]
    """`train.py`, or `-m` and its module."""
    is_module: bool
    after: list[str]

    @classmethod
    def read(cls, command: click.Command, ctx: click.Context, args: list[str]) -> _Line | None:
        """None if there is no script or module with words after it to sort: click then reads `args` as they are."""
        reader = _Reader(command, ctx)
        before: list[_Given] = []
        at = 0
        for given in reader.leading(args, interspersed=False):
            if given.names(*reader.help):
                return None
            at += len(given.words)
            if given.names("module"):
                return cls(reader, ctx.command_path, args, before, given.words, True, args[at:])
            before.append(given)
        # After a `--` before the script, every word is an argument, and the first one is the script.
        if at == len(args) or _is_dashed(args[at]):
            return None
        return cls(reader, ctx.command_path, args, before, (args[at],), False, args[at + 1 :])

    @property
    def before_words(self) -> list[str]:
        return _flat(self.before)

    @property
    def name(self) -> str:
        """The script or module, as a sentence names it."""
        return shlex.join(self.target)

    @property
    def noun(self) -> str:
        return "module" if self.is_module else "script"

    def refuse_ours(self) -> None:
        """Raise `option-misplaced` if an option of doctor's stands among arguments that no `--` precedes."""
        ours: list[_Given] = []
        theirs: list[str] = []
        at = 0
        while at < len(self.after):
            given = self.reader.exact(self.after[at:])
            if given is None:
                theirs.append(self.after[at])
                at += 1
                continue
            ours.append(given)
            # An example that takes the place of a missing value is not in `after`.
            at += len(given.words) if self.after[at : at + 2] == [*given.words] else 1
        if not ours:
            return
        names = list(dict.fromkeys(given.words[0].partition("=")[0] for given in ours))
        stands, they, are, option = "comes", "it", "is", "an option"
        if len(names) > 1:
            stands, they, are, option = "come", "they", "are", "options"
        raise DoctorError(
            "option-misplaced",
            f"{_listed(names)} {stands} after {self.name}. There {they} could be {option} of the {self.noun} or of "
            f"{self.path}.",
            f"If {they} {are} meant for doctor: {self._shown(self._as_ours(ours, theirs))}\n"
            f"    If {they} {are} meant for the {self.noun}: "
            + self._shown([*self.before_words, *self.target, "--", *self.after]),
        )

    def between(self, cut: int) -> list[_Given]:
        """The options between the script or module and the `--` at `cut`. Raises `not-an-option` for other words."""
        ours: list[_Given] = []
        others: list[str] = []
        at = 0
        while at < cut:
            # The `--` is read too, so that no option takes a word after it as its value.
            given = self.reader.given(self.after[at : cut + 1])
            if given is None:
                others.append(self.after[at])
            else:
                ours.append(given)
            at += 1 if given is None else len(given.words)
        if not others:
            return ours
        dashed = _is_dashed(others[0])
        first = others[0].partition("=")[0] if dashed else self._masked([others[0]])
        known = [name for name in self.reader.options if name.startswith("--")] if dashed else []
        near = difflib.get_close_matches(first, known, n=1, cutoff=0.8)
        behind = self.after[cut + 1 :]
        start = [*self.before_words, *(self.target if self.is_module else ()), *_flat(ours)]
        start += () if self.is_module else self.target
        steps = [f"If it is meant for the {self.noun}: {self._shown([*start, '--', *others, *behind])}"]
        if behind:
            own = self._shown([*start, "--", *others, "--", *behind])
            steps.append(f"If the {self.noun} itself takes a `--`: {own}")
        raise DoctorError(
            "not-an-option",
            f"Only options of {self.path} belong between {self.name} and `--`, and {first} is not one"
            + (f"; did you mean {near[0]}?" if near else "."),
            "\n    ".join(steps),
        )

    def _as_ours(self, ours: list[_Given], theirs: list[str]) -> list[str]:
        """The command with `ours` before the script or module. `--exec` or `-m` among them replaces it."""
        if any(given.names(*self.reader.help) for given in ours):
            return ["--help"]
        again = {option for given in ours for option in given.options if not option.multiple}
        before = [given for given in self.before if not again.issuperset(given.options)]
        if any(given.names("line") for given in ours):
            return _flat([*before, *(given for given in ours if not given.names("module"))])
        modules = [given for given in ours if given.names("module")]
        target = modules[-1].words if modules else self.target
        moved = [given for given in ours if given not in modules]
        return [*_flat([*before, *moved]), *target, *(["--", *theirs] if theirs else [])]

    def _shown(self, words: Sequence[str]) -> str:
        """A command to copy."""
        return f"{self.path} {self._masked(words)}"

    def _masked(self, words: Sequence[str]) -> str:
        """Words quoted for a shell, with secrets masked."""
        from bottleneck_doctor.cli._secrets import gathered

        return shlex.join(gathered(self.args).words(words))


def _flat(given: Iterable[_Given]) -> list[str]:
    return [word for each in given for word in each.words]


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
