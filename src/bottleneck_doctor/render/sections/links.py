"""Where things are on the page, so that fixes, findings and lines can point at each other."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from bottleneck_doctor.documents.report import Finding, FixOutcome, Result, Site
from bottleneck_doctor.render.flame import short_path
from bottleneck_doctor.system.paths import same_file
from bottleneck_doctor.wording import doubt, words


@dataclass(frozen=True)
class Link:
    """A link to another part of the page: its words, and what is said after it. `anchor`: None where it is nowhere."""

    anchor: str | None
    text: str
    note: str = ""


def anchors(kind: str, identifiers: Iterable[str]) -> list[str]:
    """An anchor for each: `fix-workers`; numbered where two would be alike."""
    made: list[str] = []
    for index, identifier in enumerate(identifiers):
        anchor = f"{kind}-" + (re.sub(r"[^a-z0-9]+", "-", identifier.lower()).strip("-")[:60] or str(index))
        made.append(f"{anchor}-{index}" if anchor in made else anchor)
    return made


def fix_anchors(result: Result) -> list[str]:
    """By the fix's place in the result."""
    return anchors("fix", (fix.id for fix in result.fixes))


def finding_anchors(result: Result) -> list[str]:
    """By the finding's place in the result."""
    return anchors("finding", (finding.id for finding in result.findings))


def answers(result: Result, finding: Finding) -> list[Link]:
    """The fixes that answer a finding, each with what it was measured to be worth; faster ones first."""
    placed = list(zip(fix_anchors(result), result.fixes, strict=True))
    found = []
    for wanted in dict.fromkeys(finding.fixes):
        found += [
            (fix.status != "faster", Link(anchor, fix.title, _worth(fix))) for anchor, fix in placed if fix.id == wanted
        ][:1]
    return [link for _, link in sorted(found, key=lambda pair: pair[0])]


def reasons(result: Result, fix: FixOutcome) -> list[Link]:
    """The findings that a fix answers."""
    placed = zip(finding_anchors(result), result.findings, strict=True)
    return [Link(anchor, title(finding)) for anchor, finding in placed if fix.id in finding.fixes]


def title(finding: Finding) -> str:
    """A finding's title; its id in words where an older release gave it none."""
    return finding.title or finding.id.replace("-", " ").capitalize()


def _worth(fix: FixOutcome) -> str:
    if fix.status == "faster" and fix.speedup is not None:
        return f"{words.estimate_text(fix.speedup)} faster"
    if fix.status == "cannot_tell" and fix.chance is not None:
        return doubt.chance_text(fix).lower()
    return words.STATUS_WORDS[fix.status].lower()


def short(path: str, cwd: str) -> str:
    """A path as its owner says it: from the folder of the run or the library's own; of any other its last parts."""
    known = short_path(path, cwd)
    parts = known.split("/")
    return known if known != path or len(parts) <= 4 else "…/" + "/".join(parts[-3:])


def source_line(result: Result, site: Site) -> str:
    """The text of that line of the user's, where a line listing holds it; else nothing."""
    listings = result.profiles.lines.listings if result.profiles and result.profiles.lines else []
    for listing in listings:
        if same_file(listing.path, site.file):
            for line in listing.lines:
                if line.line == site.line:
                    return line.text.strip()
    return ""
