"""`garbage-collection`: Python's collector runs during steps and takes long."""

from __future__ import annotations

import re

from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._places import line_with
from bottleneck_doctor.diagnose._rule import CAUSE, MATTERS, Rule, Statement, at, milliseconds, often
from bottleneck_doctor.wording import words

COLLECTS = re.compile(r"\bgc\.collect\(")


def judge(evidence: Evidence) -> Statement | None:
    garbage = evidence.garbage
    if garbage is None or garbage.share < MATTERS:
        return None
    site = line_with(evidence, COLLECTS)
    return Statement(
        sentence=(
            f"Python's garbage collector ran {often(garbage.collections)} during the steps that were "
            f"watched{at(site)}. It took {milliseconds(garbage.ms_per_step)} a step, "
            f"{words.share_text(garbage.share)} of the time."
        ),
        figures={
            "collections": float(garbage.collections),
            "ms_per_step": garbage.ms_per_step,
            "share": garbage.share,
        },
        weight=garbage.share * evidence.in_steps,
        clause=f"spends {words.share_text(garbage.share)} of the time in Python's garbage collector{at(site)}",
        site=site,
    )


RULE = Rule(
    id="garbage-collection",
    title="Python's garbage collector takes long",
    topic="host",
    depth=CAUSE,
    needs=("garbage",),
    judge=judge,
    removable=True,
    source="https://docs.python.org/3/library/gc.html",
    advice="Call `gc.freeze()` after set-up, so that the collector does not go through the whole data set each time. "
    "Call `gc.collect()` at the end of an epoch at most, and not in every step.",
    fixes=("cleanup-calls", "gc-freeze"),
    contradicts=("compute-bound",),
)
