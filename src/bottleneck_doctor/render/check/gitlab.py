"""A check as GitLab's Code Quality report: a `Check` in, a JSON list of findings out.

Of GitLab's reports this one fits. A metrics report holds one value a name, which GitLab compares with that of an
earlier pipeline on another machine: what the gate exists to avoid, and only in paid tiers. Code Quality takes findings
as they are, beside their line in the merge request's changes, in every tier. Test reports are what `--junit` is for.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import PurePosixPath
from typing import Any

from bottleneck_doctor.documents.check import Check, Metric
from bottleneck_doctor.wording import check_words
from bottleneck_doctor.wording.check_words import one_line

CHECK_NAME = "bottleneck-doctor"


def render(check: Check, script: str | None = None) -> str:
    """The whole report; an empty list where nothing is worse. `script`: its path from the repository's root."""
    script = script or check_words.script(check)
    found = [_entry(check, each, script) for each in check.metrics if check_words.is_finding(each)]
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def _entry(check: Check, metric: Metric, script: str) -> dict[str, Any]:
    site = check_words.place_of(check, metric)
    grown = check_words.grown(check, metric)
    path = PurePosixPath(script if site is None else site.file).as_posix()
    # Without figures and lines, which differ from run to run: GitLab knows a finding again by this.
    identity = f"{script}\0{metric.id}".encode("utf-8", "replace")
    return {
        "type": "issue",
        "check_name": f"{CHECK_NAME}/{metric.id}",
        "description": one_line(" ".join([metric.sentence, *(each.sentence for each in grown)])),
        "fingerprint": hashlib.sha256(identity).hexdigest()[:32],
        "severity": "major" if check_words.fails(metric) else "minor",
        "location": {"path": one_line(path), "lines": {"begin": max(1, 1 if site is None else site.line)}},
    }
