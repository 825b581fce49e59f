"""How the change that a report promises can be made for a trial: a `Result` in, its edits and variables out. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bottleneck_doctor import knobs
from bottleneck_doctor.documents.report import Result, Setting
from bottleneck_doctor.patches.plan import PlannedFile, plan
from bottleneck_doctor.runtime.wire.messages import Found
from bottleneck_doctor.wording import patch_words, words
from bottleneck_doctor.wording.ranking import Promise


@dataclass(frozen=True)
class Way:
    """`files` are edited, and `variables` set around the process."""

    files: list[PlannedFile] = field(default_factory=list)
    variables: Mapping[str, str] = field(default_factory=dict)


def way(result: Result, promise: Promise) -> Way | str:
    """How all of the promise can be made without the user; else a sentence that says why it can't."""
    started = knobs.of_layer(promise.setting, "session")
    if started == promise.setting:
        variables = knobs.variables(started)
        return Way(variables=variables) if variables else "No variable is known that brings it here."
    if not result.method.source:
        return "With --no-source, the report has no edit that could be tried."
    planned = plan(promise.changes, result.sources)
    by_hand = [change for change in promise.changes if not change.diff]
    if not planned.files or by_hand:
        place = f" ({patch_words.place_of(by_hand[0], result)})" if by_hand else ""
        return f"Not all of it is an edit that doctor can make{place}."
    left_out = patch_words.left_out(planned, result)
    return left_out[0] if left_out else Way(planned.files, knobs.variables(started))


def not_in_effect(setting: Setting, found: Found) -> str:
    """What the changed program does not have of a setting, as far as its own values are known: `num_workers=2`; ""
    where it has all of it."""
    own = knobs.own_settings(found)
    lacking = {name: value for name, value in setting.items() if name in own and own[name] != value}
    return words.setting_code(lacking, found.device) if lacking else ""
