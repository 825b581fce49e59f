"""What the report's templates call: its filters and functions, and the user's diffs line by line."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import jinja2

from bottleneck_doctor import knobs
from bottleneck_doctor.documents.report import Change, Sources, Speedup
from bottleneck_doctor.render import svg
from bottleneck_doctor.render.engine import TEXT_LIMIT, engine, unbroken, with_code
from bottleneck_doctor.render.sections import links
from bottleneck_doctor.runtime.wire.notebooks import is_notebook
from bottleneck_doctor.wording import doubt, durations, memory_words, patch_words, promise_words, ranking, words

CODE_LIMIT = 300
"""Characters of one line of the user's code."""


def environment(cwd: str, device: str = "", sources: Sources | None = None) -> jinja2.Environment:
    """The template engine, with every filter and function that the report uses. `device`: what is trained on.
    `sources`: what the files of changes are called in patches."""
    made = engine()
    made.filters.update(
        amount=words.amount_text,
        bytes=words.bytes_text,
        below=lambda floor: unbroken(words.below_text(floor)),
        ceiling=words.ceiling_text,
        command=words.command_text,
        confirmation_label=promise_words.label,
        confirmation_memory=promise_words.memory,
        preparing=promise_words.preparing,
        memory_needs=memory_words.needs,
        date=words.date_text,
        diff_lines=diff_lines,
        duration=words.duration_text,
        estimate=words.estimate_text,
        evidence=words.evidence_text,
        has_interval=words.has_interval,
        interval=words.interval_text,
        protection=words.protection_text,
        setting=lambda setting: with_code(words.setting_code(setting, device)),
        whole_setting=lambda setting: with_code(words.setting_code(setting, device, whole=True)),
        milliseconds=words.milliseconds_text,
        window=lambda window: with_code(words.window_code(window, device)),
        number=words.number_text,
        speedup=_speedup,
        chance=doubt.chance_text,
        worth=words.worth_text,
        settle_time=lambda settle: with_code(doubt.settle_time_text(settle)),
        spoken=durations.spoken_duration,
    )
    made.globals.update(
        count=words.count_text,
        plural=words.plural,
        by_variables=knobs.is_by_variables,
        differs=words.differs,
        masked=words.has_masked,
        masked_note=words.MASKED_NOTE,
        copies=lambda change: copies(change, patch_words.name_of(change.file, sources, cwd)),
        changes_of=ranking.changes_of,
        ranks=words.ranks_text,
        short=lambda path: links.short(path, cwd),
        swatch=svg.swatch,
        clip=lambda text, limit=CODE_LIMIT: words.clipped(text, limit),
        risk_words=words.RISK_WORDS,
        finite=math.isfinite,
    )
    return made


def _speedup(speedup: Speedup | None, confidence: float) -> str:
    return unbroken(words.speedup_text(speedup, confidence))


@dataclass(frozen=True)
class DiffLine:
    """One line of a diff: `before`, `changed` and `after` make up its text; `changed` is what differs within it."""

    kind: Literal["added", "removed", "kept", "place"]
    before: str
    changed: str = ""
    after: str = ""


def diff_lines(diff: str) -> list[DiffLine]:
    """A unified diff, line by line, without the indentation that all its lines share.

    A single hunk's place is left out, since the caption names the line. Where one line takes the place of another,
    the part that changed is set apart: in a long call the new argument is what a reader looks for.
    """
    # Not splitlines: it also splits at characters that are part of a line of Python.
    lines = diff.rstrip("\n").split("\n")[:200]
    hunks = sum(line.startswith("@@") for line in lines)
    texts = [line[1:] for line in lines if not line.startswith("@@") and line[1:].strip()]
    indent = min((len(text) - len(text.lstrip(" ")) for text in texts), default=0)
    shown: list[DiffLine] = []
    for line in lines:
        text = words.clipped(line[1 + indent :], 500)
        if line.startswith("@@"):
            if hunks > 1:
                shown.append(DiffLine("place", line))
        elif line.startswith("+"):
            shown.append(DiffLine("added", text))
        elif line.startswith("-"):
            shown.append(DiffLine("removed", text))
        else:
            shown.append(DiffLine("kept", text))
    removed = [index for index, line in enumerate(shown) if line.kind == "removed"]
    added = [index for index, line in enumerate(shown) if line.kind == "added"]
    if len(removed) == len(added):
        for old, new in zip(removed, added, strict=True):
            shown[new] = _marked(shown[old].before, shown[new].before)
    return shown


def _marked(old: str, new: str) -> DiffLine:
    """The new line with what it has beyond the old one set apart."""
    start = _common_start(old, new)
    end = len(new) - _common_start(old[start:][::-1], new[start:][::-1])
    return DiffLine("added", new[:start], new[start:end], new[end:])


def _common_start(one: str, other: str) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(one), len(other)))


def copies(change: Change, path: str) -> tuple[str, str]:
    """What the copy buttons give: the new lines, and the patch of the file at `path`. Both empty where they could not
    be given in full; the patch, where the file is a notebook, whose lines no tool numbers as we do."""
    texts = words.added_lines(change.diff), "" if is_notebook(path) else words.patch_text(path, change.diff)
    return texts if all(len(text) <= TEXT_LIMIT and words.visible(text) == text for text in texts) else ("", "")
