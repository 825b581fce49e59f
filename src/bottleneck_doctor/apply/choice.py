"""Which changes of a report are to be made: ids of fixes in, changes out, or the sentence that says why there are none.
Pure."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from bottleneck_doctor.documents.report import Change, FixOutcome, Result
from bottleneck_doctor.errors import DoctorError
from bottleneck_doctor.patches.plan import Plan, plan
from bottleneck_doctor.wording import patch_words, ranking, words
from bottleneck_doctor.wording.command_words import measured_again


@dataclass(frozen=True)
class Choice:
    """`fixes`: ids as they were asked for; none for what the report promises. `plan` has at least one file."""

    fixes: list[str]
    changes: list[Change]
    plan: Plan


def choose(result: Result, ids: Sequence[str]) -> Choice:
    """The changes of the fixes with these ids, without any those that the report promises.

    Raises `DoctorError` `unknown-fix`, `nothing-faster`, `no-change` where there is nothing to edit, `report-too-old`,
    and `fixes-conflict` where fixes that were asked for make different things of the same lines.
    """
    wanted = list(dict.fromkeys(ids))
    fixes = [_fix(result, each) for each in wanted]
    changes = _together(result, fixes) if fixes else _promised(result)
    planned = plan(changes, result.sources)
    if len(fixes) > 1:
        _refuse_conflicts(result, fixes, planned)
    if not planned.files:
        raise _nothing_to_edit(result, fixes, changes)
    return Choice(wanted, changes, planned)


def _fix(result: Result, identifier: str) -> FixOutcome:
    by_id = {fix.id: fix for fix in result.fixes}
    if identifier in by_id:
        return by_id[identifier]
    near = difflib.get_close_matches(identifier.replace("_", "-").lower(), by_id, n=3)
    hint = f"Did you mean {' or '.join(near)}?" if near else _offered(result)
    raise DoctorError("unknown-fix", f"The report has no fix {identifier!r}.", hint)


def _promised(result: Result) -> list[Change]:
    promise = ranking.promise(result)
    if promise is None:
        raise DoctorError("nothing-faster", "Nothing in this report is known to be faster.", _offered(result))
    return promise.changes


def _together(result: Result, fixes: Sequence[FixOutcome]) -> list[Change]:
    """All changes of several fixes. One that another builds on is in that one's, and what was measured together has
    changes that were made to go together."""
    settings = [fix.setting for fix in fixes]
    whole = {name: value for setting in settings for name, value in setting.items()}
    together = result.combination
    if len(fixes) > 1 and together is not None and together.changes and together.setting == whole:
        return together.changes
    chosen = [
        fix
        for at, fix in enumerate(fixes)
        if not any(
            fix.setting.items() <= other.items() and (fix.setting != other or index < at)
            for index, other in enumerate(settings)
            if index != at
        )
    ]
    return [change for fix in chosen for change in ranking.changes_of(fix)]


def _refuse_conflicts(result: Result, fixes: Sequence[FixOutcome], planned: Plan) -> None:
    clash = next((each.change for each in planned.left_out if each.why == "conflict"), None)
    if clash is not None:
        named = words.listed([fix.id for fix in fixes])
        raise DoctorError(
            "fixes-conflict",
            f"{named} can't be made together: they make different things of {patch_words.place_of(clash, result)}.",
            f"Apply one of them, then examine again: {again(result)}",
        )


def _nothing_to_edit(result: Result, fixes: Sequence[FixOutcome], changes: Sequence[Change]) -> DoctorError:
    what = words.listed([fix.id for fix in fixes]) or "What this report promises"
    if not result.method.source:
        return DoctorError(
            "no-change",
            "The report was made with --no-source, so it holds no diffs.",
            f"Examine again: {again(result)}",
        )
    if any(change.diff for change in changes) and result.sources is None:
        release = result.tool.version
        return DoctorError(
            "report-too-old",
            f"Release {release} wrote this report, which kept nothing to hold your files against.",
            f"Examine again: {again(result)}",
        )
    todo = [*patch_words.left_out(plan(changes, result.sources), result), *patch_words.notes(changes, result)]
    if todo:
        todo += [f"Then measure again: {again(result, changes)}"] if any(each.words for each in changes) else []
        return DoctorError("no-change", f"{what} can't be made by editing a file.", " ".join(todo))
    kinds = words.listed(list(dict.fromkeys(words.STATUS_WORDS[fix.status].lower() for fix in fixes)))
    why = f" ({kinds})" if kinds else ""
    return DoctorError("no-change", f"The report holds no change for {what}{why}.", _offered(result))


def _offered(result: Result) -> str:
    """Which fixes could be applied instead."""
    offered = [fix.id for fix in result.fixes if plan(ranking.changes_of(fix), result.sources).files]
    if offered:
        return f"It holds changes for {words.listed(offered)}: name one with --fix."
    return f"Examine again: {again(result)}"


def again(result: Result, changes: Sequence[Change] = ()) -> str:
    """The command that examines again once the changes are made."""
    command = measured_again(result, changes)
    return f"{command} ({words.MASKED_NOTE})" if words.has_masked(result.method.command) else command
