"""`occasional-work`: what the loop does once in several steps, such as an evaluation, a picture or a checkpoint, takes
much of the time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._places import LOOP_HEAD, STEP_CALL, training_listing
from bottleneck_doctor.diagnose._rule import CAUSE, LARGE, TUNING_GUIDE, Rule, Statement, place
from bottleneck_doctor.documents.report import LineCost, LineListing, Site
from bottleneck_doctor.wording import words

SEEN = 2
"""Times that it was seen: how often something happens can't be told from one."""
RARE = 1.5
"""Steps to one of these times, at least. What is done in nearly all steps is a part of them."""
LONGEST_CONDITION = 60
COMMENT = re.compile(r":\s*#.*$")


@dataclass(frozen=True)
class _Branch:
    """The lines under an `if` of the loop: the line of the `if`, how often it was reached and they ran, their
    seconds."""

    head: LineCost
    reached: int
    ran: int
    seconds: float


def judge(evidence: Evidence) -> Statement | None:
    listing = training_listing(evidence)
    # Evaluations that the steps don't hold, and those that change the model's mode, have a finding of their own.
    told = evidence.interruption is not None or (evidence.steps is not None and evidence.steps.evaluations > 0)
    if listing is None or told:
        return None
    waiting = sum(line.seconds or 0.0 for line in listing.lines if LOOP_HEAD.match(line.text.strip()))
    branches = [each for each in _branches(listing) if each.ran >= SEEN and each.reached >= RARE * each.ran]
    if not branches or listing.seconds <= waiting:
        return None
    branch = max(branches, key=lambda each: (each.seconds, each.head.line))
    # Lines are timed in a process that makes its batches itself, so waiting is taken from the training as written.
    share = branch.seconds / (listing.seconds - waiting) * (1 - (evidence.wait or 0.0))
    if share < LARGE:
        return None
    site = Site(file=listing.path, line=branch.head.line)
    every, long = branch.reached / branch.ran, branch.seconds / branch.ran
    steps = words.count_text(round(every), "step")
    condition = words.clipped(
        COMMENT.sub("", branch.head.text.strip()).partition(" ")[2].rstrip(": "), LONGEST_CONDITION
    )
    part = words.share_text(share * evidence.in_steps)
    return Statement(
        sentence=(
            f"About once in {steps}, the loop does more, for {words.duration_text(long)}: what stands under "
            f"`if {condition}` at {place(site)}. That is {part} of the time."
        ),
        figures={"occasional_share": share, "occasional_seconds": long, "steps_between": every},
        weight=share * evidence.in_steps,
        clause=f"spends {part} of the time on what {place(site)} has it do once in {steps}",
        site=site,
    )


def _branches(listing: LineListing) -> Iterator[_Branch]:
    """What stands under each `if` that makes no step. A branch that is a part of another one comes after it."""
    lines = [each for each in listing.lines if each.text.strip() and not each.text.strip().startswith("#")]
    for at, head in enumerate(lines):
        if head.text.split()[0] not in ("if", "elif") or not head.hits:
            continue
        body = _below(lines, at)
        ran = _ran(body)
        if ran and not any(STEP_CALL.search(each.text.strip()) for each in body):
            yield _Branch(head, head.hits, ran, sum(each.seconds or 0.0 for each in body))


def _ran(body: Sequence[LineCost]) -> int:
    """How often a block ran; 0 if that can't be told. A `with` counts when it is left, too, and the head of a loop each
    time that it asks for more."""
    indent = min(map(_indent, body), default=0)
    heads = ("with", "async", "for", "while")
    plain = [each.hits for each in body if each.hits and _indent(each) == indent and each.text.split()[0] not in heads]
    if plain or not body:
        return max(plain, default=0)
    first = body[0].text.split()
    inner = _ran(_below(body, 0))
    return inner if "with" in first[:2] else max(0, (body[0].hits or 0) - inner)


def _below(lines: Sequence[LineCost], at: int) -> list[LineCost]:
    """The lines that are indented more than the one at a place, up to the first that is not."""
    body = []
    for each in lines[at + 1 :]:
        if _indent(each) <= _indent(lines[at]):
            break
        body.append(each)
    return body


def _indent(line: LineCost) -> int:
    return len(line.text) - len(line.text.lstrip())


RULE = Rule(
    id="occasional-work",
    title="Work of every few steps takes much of the time",
    topic="host",
    depth=CAUSE,
    needs=("step", "profile"),
    judge=judge,
    removable=True,
    source=TUNING_GUIDE,
    advice="Do this after more steps, or on less data. What is only looked at now and then needs no more.",
    contradicts=("compute-bound",),
)
