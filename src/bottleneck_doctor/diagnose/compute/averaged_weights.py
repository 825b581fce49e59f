"""`averaged-weights`: a running mean of the weights is brought up to date one tensor after another, in Python."""

from __future__ import annotations

import re

from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._places import hottest_between, listing_at
from bottleneck_doctor.diagnose._rule import CAUSE, MATTERS, Rule, Statement, at, milliseconds
from bottleneck_doctor.wording import words

AVERAGES = re.compile(r"\.lerp_\(|\.mul_\(.*\.add_\(|\.copy_\(.*\*|^\w+ \*= |\+= \(?1(\.0?)? - |\.data = .*\*.*\+")
"""How programs write that a mean moves towards the weights."""
OF_WEIGHTS = re.compile(r"for\b.*(param|state_dict|buffers|weights|zip\()")
"""The head of the loop that it stands in."""
UPDATES = re.compile(r"\.grad\b|\blr\b")
"""An optimizer written by hand looks much alike, and is none."""


def judge(evidence: Evidence) -> Statement | None:
    shares, hot = evidence.shares, hottest_between(evidence)
    if shares is None or hot is None or not hot.listed:
        return None
    listing = listing_at(evidence, hot.site)
    texts = {} if listing is None else {line.line: line.text.strip() for line in listing.lines}
    text = texts.get(hot.site.line, "")
    if not AVERAGES.search(text) or UPDATES.search(text):
        return None
    if not any(OF_WEIGHTS.match(each) for line, each in texts.items() if line < hot.site.line):
        return None
    share = shares.between * hot.share
    if share < MATTERS:
        return None
    figures = {"averaging_share": share}
    each = ""
    if evidence.step_ms is not None:
        figures["averaging_ms"] = share * evidence.step_ms
        each = f", {milliseconds(figures['averaging_ms'])} a step"
    return Statement(
        sentence=(
            f"A running mean of the weights is computed one tensor after another in Python{at(hot.site)}. That takes "
            f"{words.share_text(share)} of the time{each}."
        ),
        figures=figures,
        weight=share * evidence.in_steps,
        clause=f"spends {words.share_text(share)} of the time on a running mean of its weights{at(hot.site)}",
        site=hot.site,
    )


RULE = Rule(
    id="averaged-weights",
    title="Weights are averaged one tensor at a time",
    topic="host",
    depth=CAUSE,
    needs=("phases", "profile"),
    judge=judge,
    removable=True,
    source="https://docs.pytorch.org/docs/stable/optim.html#weight-averaging-swa-and-ema",
    advice="Move all tensors at once: `torch._foreach_lerp_(means, weights, 1 - decay)` with two lists of tensors, or "
    "`torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(decay))`. Averaging every few "
    "steps, with a decay to match, helps as well.",
    contradicts=("compute-bound",),
)
