"""How the change that a report promises can be made for a trial: a `Result` in, its edits and variables out, or what is
switched instead of an edit. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bottleneck_doctor import knobs
from bottleneck_doctor.documents.report import ConfirmedBy, Result, Setting
from bottleneck_doctor.patches.plan import PlannedFile, plan
from bottleneck_doctor.runtime.wire.messages import Found
from bottleneck_doctor.wording import patch_words, words
from bottleneck_doctor.wording.command_words import with_words
from bottleneck_doctor.wording.ranking import Promise


@dataclass(frozen=True)
class Way:
    """`files` are edited, the program is started with `arguments` (None: as before), and `variables` are set around the
    process. Where not all of it is an edit that doctor can make, nothing is edited: `setting` is switched in the
    process as soon as it stands at its loop, and `why` is a sentence that says so."""

    files: list[PlannedFile] = field(default_factory=list)
    arguments: tuple[str, ...] | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    setting: Setting = field(default_factory=dict)
    why: str = ""

    @property
    def by(self) -> ConfirmedBy:
        """What is done to the program."""
        edited = self.files or self.arguments is not None
        return "edit" if edited else "setting" if self.setting else "variables"


def way(result: Result, promise: Promise, arguments: Sequence[str] = ()) -> Way | str:
    """How all of the promise can be made without the user; else a sentence that says why it can't. `arguments`: the
    program's own."""
    started = knobs.by_variables(promise.setting)
    variables = knobs.variables(started)
    if started and not variables:
        return "No variable is known that brings it here."
    if started == promise.setting:
        return Way(variables=variables)
    switched = {name: value for name, value in promise.setting.items() if name not in started}
    if not result.method.source:
        why = "With --no-source, the report has no edit that could be tried."
        return _by_setting(variables, switched, why)
    planned = plan(promise.changes, result.sources)
    changed = [each for change in promise.changes for each in change.words]
    by_hand = [change for change in promise.changes if change.unfinished or not (change.diff or change.words)]
    left_out = patch_words.left_out(planned, result)
    started_with = with_words(arguments, changed) if changed else None
    is_known = started_with is not None or (planned.files and not changed)
    if is_known and not by_hand and not left_out:
        return Way(planned.files, started_with, variables)
    place = f" ({patch_words.place_of(by_hand[0], result)})" if by_hand else ""
    why = left_out[0] if left_out and not by_hand else f"Not all of it is an edit that doctor can make{place}."
    return _by_setting(variables, switched, why)


def _by_setting(variables: Mapping[str, str], switched: Setting, why: str) -> Way | str:
    if knobs.in_part(switched):
        return f"{why} And a process in which it is switched keeps a part of the samples only."
    return Way(variables=variables, setting=switched, why=why)


def not_in_effect(setting: Setting, found: Found) -> str:
    """What the changed program does not have of a setting, as far as its own values are known: `num_workers=2`; ""
    where it has all of it."""
    own = knobs.own_settings(found)
    lacking = {name: value for name, value in setting.items() if name in own and own[name] != value}
    return words.setting_code(lacking, found.device) if lacking else ""
