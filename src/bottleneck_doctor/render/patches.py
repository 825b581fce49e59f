"""The patches that lie beside a report: a `Result` and the files as they are in, patches out.

Each is for `git apply` and `patch -p1`. Of a file that is no longer as the report knows it, none is made.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from bottleneck_doctor.documents.report import Change, Result, SourceFile
from bottleneck_doctor.patches.kept import is_as_kept
from bottleneck_doctor.patches.plan import Plan, after, plan
from bottleneck_doctor.patches.unified import CONTEXT, unified
from bottleneck_doctor.wording import patch_words, promise_words, ranking, words

HEADLINE = "fix.patch"
"""What the report promises."""
FIXES = "fixes"
"""The folder of those of single fixes."""

_NO_NAME = re.compile(r"[^\w-]+")


def name_of(fix: str) -> str:
    """Where a single fix's patch lies."""
    return f"{FIXES}/{_NO_NAME.sub('-', fix)}.patch"


@dataclass(frozen=True)
class Patches:
    """Patches by their names, and a sentence for each that there should be and is not."""

    files: dict[str, bytes] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def patches(result: Result, read: Callable[[SourceFile], bytes | None], shows: Callable[[str], bool]) -> Patches:
    """The patches of a report. `read`: a file as it is now, None where it is gone. `shows`: whether a text may be
    shown. A patch has lines around a change that the report has not; where these may not be shown, it has fewer."""
    made = Patches()
    promise = ranking.promise(result)
    if promise is not None:
        figure, confirmation = promise.speedup, result.confirmation
        worth = "" if figure is None else words.speedup_text(figure)
        if figure is not None and confirmation is not None and figure is confirmation.speedup:
            worth = promise_words.in_pairs(figure, "as fast")
        title = _title(words.setting_text(promise.setting, ranking.device(result)), worth)
        _add(made, HEADLINE, title, promise.changes, result, read, shows)
    for fix in result.fixes:
        title = _title(fix.title, words.speedup_text(fix.speedup) if fix.status == "faster" else "")
        _add(made, name_of(fix.id), title, ranking.changes_of(fix), result, read, shows)
    return made


def _title(what: str, worth: str) -> str:
    return " ".join(words.visible(f"{what}: {worth}" if worth else what).split())


def _add(
    made: Patches,
    name: str,
    title: str,
    changes: Sequence[Change],
    result: Result,
    read: Callable[[SourceFile], bytes | None],
    shows: Callable[[str], bool],
) -> None:
    planned = plan(changes, result.sources)
    if not planned.files:
        return
    texts: list[tuple[str, bytes, bytes]] = []
    for file in planned.files:
        content = read(file.source)
        if content is None or not is_as_kept(file.source, content):
            made.problems.append(f"{name} was not written: {file.source.path} changed meanwhile.")
            return
        edited = after(file, content)
        if edited is None:
            made.problems.append(f"{name} was not written: together, its changes would break {file.source.path}.")
            return
        texts.append((file.source.path, content, edited))
    head = _head(title, planned, changes, result)
    for context in (CONTEXT, 1):
        patch = head + b"".join(unified(*each, context=context) for each in texts)
        if shows(patch.decode("utf-8", "replace")):
            made.files[name] = patch
            return
    made.problems.append(f"{name} was not written: it would show what is kept secret.")


def _head(title: str, planned: Plan, changes: Sequence[Change], result: Result) -> bytes:
    """Words before the patch, which `git apply` and `patch` pass over: no line of them looks like one of a patch's."""
    project = result.sources.project if result.sources is not None else ""
    lines = [f"bottleneck-doctor: {title}", ""]
    lines.append(f"Apply it in {project} with `git apply` or `patch -p1`, or use `doctor apply`.")
    rest = [*patch_words.left_out(planned, result), *patch_words.notes(changes, result)]
    lines += [f"Note: {sentence}" for sentence in rest]
    shown = "".join(f"{' '.join(words.visible(line).split())}\n" for line in lines)
    return f"{shown}\n".encode("utf-8", "replace")
