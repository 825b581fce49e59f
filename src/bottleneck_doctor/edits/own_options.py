"""Options of the user's own program that are named after what an edit does, for the note beside that edit.

Under such an option, a program often does more than the edit would, such as scaling the loss. What it does is not known
here, so the note names the option and promises nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePath

import libcst as cst

from bottleneck_doctor.edits.origin.argparse_option import imported
from bottleneck_doctor.edits.origin.follower import Follower
from bottleneck_doctor.edits.origin.options import spelled
from bottleneck_doctor.edits.tree import last_name
from bottleneck_doctor.wording import words

DECLARES = ("add_argument", "option")
"""What argparse and click are asked for an option with."""
MOST_NAMED = 3


def note(names: Sequence[str], follower: Follower, said: str = "") -> str:
    """The sentence that names the options called so; "" where there are none but those that the command line gives, or
    that are named in what is `said` already.

    `names`: as in `KnobSpec.options`.
    """
    told = _named(names, follower, said)[:MOST_NAMED]
    if not told:
        return ""
    options, they = ("an option", "it brings") if len(told) == 1 else ("options", "they bring")
    return (
        f"The program has {options} of its own that may do this: {words.listed(told)}. `doctor try --args` measures "
        f"what {they}."
    )


def of_value(expression: cst.BaseExpression, follower: Follower) -> str:
    """The sentence that names the option which may give `args.workers` its value, because it is called so; "" where
    there is none, or more than one."""
    name = last_name(expression) if isinstance(expression, cst.Attribute) else ""
    told = _named([_plain(name)], follower) if name else []
    return f"{told[0]} may be that option." if len(told) == 1 else ""


def _named(names: Sequence[str], follower: Follower, said: str = "") -> list[str]:
    """The options called so, and where they are declared, but for those that the command line gives."""
    given = {word.partition("=")[0] for word in follower.command_line.behind}
    return [
        f"`{max(spellings, key=len)}` ({PurePath(file).name}, line {line})"
        for file in _files(follower)
        for line, spellings in _declared(file, follower)
        if any(_plain(each) in names for each in spellings)
        and given.isdisjoint(spellings)
        and not any(f"`{each}`" in said for each in spellings)
    ]


def _files(follower: Follower) -> Iterator[str]:
    """Where the program may declare options: in the file that is started, in the user's modules that this one imports,
    and in those that are known to run."""
    running = follower.running
    started = [] if running.script is None else [running.script, *imported(running.script, follower)]
    yield from dict.fromkeys([*started, *running.files])


def _declared(file: str, follower: Follower) -> Iterator[tuple[int, list[str]]]:
    """Each option that a file declares: its line, and its names."""
    text = follower.project.text(file) or ""
    tree = follower.tree(file) if any(f"{each}(" in text for each in DECLARES) else None
    for call in [] if tree is None else tree.nodes(cst.Call):
        if tree is not None and last_name(call.func) in DECLARES:
            # click has both ways of a switch in one word: `--amp/--no-amp`.
            given = [word.partition("/")[0].strip() for word in spelled(call)]
            spellings = [word for word in given if word.startswith("-")]
            if spellings:
                yield tree.lines(call)[0], spellings


def _plain(option: str) -> str:
    return option.lstrip("-").replace("_", "-").lower()
