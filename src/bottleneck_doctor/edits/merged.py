"""Several edits at once: a setting in, the changes that a report shows and the texts that a patch is made of out."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bottleneck_doctor import knobs
from bottleneck_doctor.documents.redaction import Discretion
from bottleneck_doctor.documents.report import Change, Setting
from bottleneck_doctor.edits.advice import given_to_loader
from bottleneck_doctor.edits.diff import ChangeText, as_change
from bottleneck_doctor.edits.drafts import Drafts, Told
from bottleneck_doctor.edits.origin.command_line import CommandLine
from bottleneck_doctor.edits.origin.running import Running
from bottleneck_doctor.edits.project import Project
from bottleneck_doctor.edits.step import Outcome, Step, Steps, sites
from bottleneck_doctor.edits.steps import steps_of
from bottleneck_doctor.runtime.wire.messages import Found
from bottleneck_doctor.runtime.wire.notebooks import SOURCES
from bottleneck_doctor.wording import words


def changes(setting: Setting, found: Found, entrypoint: Sequence[str], project: Project) -> list[Change]:
    """`advice.changes_for`."""
    if knobs.is_by_variables(setting):
        # No line of the user's says how it is started.
        note = (
            f"Put {words.setting_code(setting, found.device, whole=True)} before the command that starts the training."
        )
        return [Change(file=site.file, line=0, diff="", note=note) for site in sites(found)[:1]]
    made = _steps(setting, found, entrypoint, project)
    groups = _apart(made.steps, project)
    outcomes = [outcome for done in groups for outcome in done.outcomes]
    return _with_the_rest([change for done in groups for change in done.changes()], outcomes, made, found)


def files(setting: Setting, found: Found, entrypoint: Sequence[str], project: Project) -> dict[str, tuple[str, str]]:
    """`advice.edited_files`."""
    return _run(tuple(_steps(setting, found, entrypoint, project).steps), project).drafts.changed()


def _steps(setting: Setting, found: Found, entrypoint: Sequence[str], project: Project) -> Steps:
    command_line = CommandLine(tuple(entrypoint))
    script = command_line.script
    if script is None and command_line.module is not None:
        started = project.module(command_line.module, project.file("beside"))
    else:
        started = None if script is None else project.file(script)
    known = [*(site.file for site in sites(found)), *([] if started is None else [started])]
    own = given_to_loader(setting, found)
    running = Running(command_line, tuple(dict.fromkeys(known)), started, own, found.loader_takers)
    return steps_of(setting, found, running)


def _with_the_rest(made: list[Change], outcomes: Sequence[Outcome], steps: Steps, found: Found) -> list[Change]:
    """The changes, and what has no line of its own in the note of the first, or beside the first line that is known."""
    elsewhere = [sentence for outcome in outcomes for sentence in outcome.elsewhere]
    codes = [code for outcome in outcomes for code in outcome.codes]
    rest = [*steps.notes, *steps.by_hand]
    unfinished = bool(steps.by_hand or elsewhere or codes)
    if elsewhere and not made:
        made = _beside(f"{elsewhere[0][:1].upper()}{elsewhere.pop(0)[1:]}.", found)
    rest += [f"And {sentence}." for sentence in elsewhere]
    if codes and not made:
        code = " and ".join(f"`{each}`" for each in codes)
        made = _beside(f"Write {code} before training begins, or remove what switches it on.", found)
    else:
        rest += [f"And write `{code}` before training begins." for code in codes]
    if made and rest:
        note = " ".join([made[0].note, *rest]).strip()
        made = [replace(made[0], note=note, unfinished=unfinished or made[0].unfinished), *made[1:]]
    return made


def _beside(note: str, found: Found) -> list[Change]:
    """A note at the first line that is known, if there is one."""
    return [Change(file=site.file, line=site.line, diff="", note=note) for site in sites(found)[:1]]


# -- which edits can be shown apart ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Done:
    """Steps that were run one after another on the files as they are."""

    steps: tuple[Step, ...]
    drafts: Drafts
    outcomes: tuple[Outcome, ...]

    @property
    def told(self) -> list[Told]:
        return [told for outcome in self.outcomes for told in outcome.told]

    def changes(self) -> list[Change]:
        """One change a file, in the order in which the steps speak of them."""
        changed = self.drafts.changed()
        made = []
        for file in dict.fromkeys([*(each.file for each in self.told), *changed]):
            told = [each for each in self.told if each.file == file]
            note = " ".join(dict.fromkeys(each.note for each in told if each.note))
            line, diff = next((each.line for each in told if each.note), 1), ""
            if file in changed:
                shown = _shown(file, as_change(*changed[file], told[0].line if told else 1, note))
                line, diff, note = shown.line, shown.diff, shown.note
            if diff or note:
                unfinished = any(each.unfinished for each in told)
                on_command_line = [words for each in told for words in each.words]
                made.append(
                    Change(file=file, line=line, diff=diff, note=note, unfinished=unfinished, words=on_command_line)
                )
        return made

    def places(self) -> dict[str, list[tuple[int, int]]]:
        """By file, the lines that the steps change or speak of: the first, and the one behind the last, from 0."""
        found: dict[str, list[tuple[int, int]]] = {}
        for told in self.told:
            if told.note:
                found.setdefault(told.file, []).append((told.line - 1, told.line))
        for file, (before, after) in self.drafts.changed().items():
            matcher = difflib.SequenceMatcher(None, before.split("\n"), after.split("\n"), autojunk=False)
            found[file] = [(begin, end) for kind, begin, end, *_ in matcher.get_opcodes() if kind != "equal"]
        return found


def _shown(file: str, text: ChangeText) -> ChangeText:
    """The change as a report may show it: a configuration can have a password in the lines beside."""
    if file.endswith(SOURCES) or Discretion().output(text.diff) == text.diff:
        return text
    added = words.listed([f"`{line[1:].strip()}`" for line in text.diff.split("\n") if line.startswith("+")])
    note = f"{text.note} Write {added} in line {text.line}: the lines beside it may be secret, and are not shown."
    return replace(text, diff="", note=Discretion().output(note.strip()))


def _run(steps: tuple[Step, ...], project: Project) -> _Done:
    drafts = Drafts(project)
    return _Done(steps, drafts, tuple(_made(step, drafts) for step in steps))


def _made(step: Step, drafts: Drafts) -> Outcome:
    """What a step says, once it is made. If it edits nothing, what it says is to be done by hand, but for words of the
    command line."""
    before = drafts.changed()
    outcome = step(drafts)
    if drafts.changed() != before:
        return outcome
    told = [replace(each, unfinished=bool(each.note) and not each.words) for each in outcome.told]
    return replace(outcome, told=told)


def _apart(steps: Sequence[Step], project: Project) -> list[_Done]:
    """The steps, each on the files as they are. Those that lie so close together that the diff of one shows lines which
    another changes are made one after the other, and are one change."""
    groups = [_run((step,), project) for step in steps]
    while (pair := _touching(groups)) is not None:
        first, second = pair
        groups[first] = _run((*groups[first].steps, *groups[second].steps), project)
        del groups[second]
    return groups


def _touching(groups: Sequence[_Done]) -> tuple[int, int] | None:
    places = [done.places() for done in groups]
    for second in range(len(groups)):
        for first in range(second):
            for file in places[first].keys() & places[second].keys():
                if any(_touch(one, other) for one in places[first][file] for other in places[second][file]):
                    return first, second
    return None


def _touch(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]
