"""A check in GitHub Actions: a `Check` in, annotations and a step summary out.

Annotations are commands on the job's output (https://docs.github.com/actions/reference/workflow-commands-for-github-actions);
GitHub keeps ten errors and ten warnings of a step, and a summary of up to 1 MiB. Ten annotations in all leave room for
other tools in the step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bottleneck_doctor.documents.check import Check
from bottleneck_doctor.documents.report import Site
from bottleneck_doctor.render.check import markdown
from bottleneck_doctor.wording import check_words
from bottleneck_doctor.wording.check_words import one_line

ANNOTATIONS = 10
"""The most that are made."""

SUMMARY_BYTES = 1024 * 1024
"""What GitHub takes of a step's summary; a longer one is refused as a whole."""

_CUT = "\n\nThe rest was too long for a summary; it is in the other reports of this check.\n"


@dataclass(frozen=True)
class _Annotation:
    level: Literal["error", "warning", "notice"]
    title: str
    message: str
    site: Site | None


def commands(check: Check) -> str:
    """Commands for the job's output, one a line; "" where there is nothing to say.

    First what fails, then what warns, then the changed lines that grew, each where it belongs.
    """
    found = [
        _Annotation(
            "error" if check_words.fails(each) else "warning",
            f"{each.title}: {check_words.verdict_text(check, each)}",
            each.sentence,
            check_words.place_of(check, each),
        )
        for each in sorted(filter(check_words.is_finding, check.metrics), key=lambda each: not check_words.fails(each))
    ]
    if check.status == "cannot_tell":
        found.append(_Annotation("warning", "bottleneck-doctor can't tell", check.sentence, None))
    if check.status == "regressed":
        taken = {(each.site.file, each.site.line) for each in found if each.site is not None}
        for culprit in check_words.changed_lines(check):
            site = culprit.site
            if site is not None and (site.file, site.line) not in taken:
                taken.add((site.file, site.line))
                found.append(_Annotation("notice", f"{culprit.name} takes longer", culprit.sentence, site))
    return "".join(_command(each) for each in found[:ANNOTATIONS])


def summary(check: Check, room: int = SUMMARY_BYTES) -> str:
    """Markdown for the step's summary, of at most `room` bytes; "" where nothing sensible fits."""
    text = markdown.render(check)
    if len(text.encode()) <= room:
        return text
    # What is folded goes first: it explains, and the sentence and its table stand above it.
    text = text.partition("<details>")[0].rstrip() + _CUT
    if len(text.encode()) <= room:
        return text
    lines = []
    left = room - len(_CUT.encode())
    for line in text.splitlines(keepends=True):
        left -= len(line.encode())
        if left < 0:
            break
        lines.append(line)
    return "".join(lines).rstrip() + _CUT if lines else ""


def _command(annotation: _Annotation) -> str:
    place = {}
    site = annotation.site
    # A path from elsewhere would be shown as a file of the repository that does not exist.
    if site is not None and not site.file.startswith(("/", "..")):
        place = {"file": site.file} | ({"line": str(site.line)} if site.line > 0 else {})
    properties = ",".join(f"{name}={_property(value)}" for name, value in (place | {"title": annotation.title}).items())
    return f"::{annotation.level} {properties}::{_data(one_line(annotation.message))}\n"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(one_line(text, 300)).replace(":", "%3A").replace(",", "%2C")
