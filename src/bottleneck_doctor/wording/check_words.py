"""Words for a check's figures: all of its outputs share them, so that a figure reads the same in each."""

from __future__ import annotations

import math
import os.path
import re
from dataclasses import dataclass
from pathlib import Path

from bottleneck_doctor.documents.check import (
    EPOCH_OVERHEAD,
    LEAST_EPOCH_OVERHEAD,
    PHASE,
    STEP_TIME,
    Check,
    Culprit,
    Losses,
    Metric,
    Side,
    Status,
    Unit,
    Verdict,
)
from bottleneck_doctor.documents.report import Site
from bottleneck_doctor.runtime.wire.notebooks import SOURCES
from bottleneck_doctor.wording import words

VERDICT_WORDS: dict[Verdict, str] = {
    "regression": "worse",
    "improvement": "better",
    "unchanged": "not worse",
    "cannot_tell": "cannot tell",
    "gone": "gone",
    "new": "new",
    "not_measured": "not measured",
}

STATUS_WORDS: dict[Status, str] = {
    "passed": "Passed",
    "regressed": "Regressed",
    "cannot_tell": "Cannot tell",
    "new": "New script",
}

EDIT_VERDICT_WORDS: dict[Verdict, str] = {
    **VERDICT_WORDS,
    "regression": "slower",
    "improvement": "faster",
    "unchanged": "no difference",
}
"""Of the step time of an edit, which is asked about in both directions."""


@dataclass(frozen=True)
class SideWords:
    """How the two sides are called. `base`, `head`, `both`: as the subject of a sentence. `on_base`, `on_head`: where
    something was seen. `base_title`, `head_title`: of a column."""

    base: str
    head: str
    both: str
    on_base: str
    on_head: str
    base_title: str
    head_title: str


REVISIONS = SideWords("the base", "the head", "both revisions", "on the base", "on the head", "Base", "Head")
EDITED = SideWords(
    "the program as written",
    "the edited program",
    "both, as written and edited,",
    "as written",
    "with the edit",
    "As written",
    "Edited",
)


def side_words(check: Check) -> SideWords:
    """How its sides are called."""
    return REVISIONS if check.edit is None else EDITED


def verdict_text(check: Check, metric: Metric) -> str:
    """The verdict on a metric: `worse`, `not worse`; of an edit's step time `faster`, `no difference`."""
    both_ways = check.edit is not None and metric.id == STEP_TIME
    return (EDIT_VERDICT_WORDS if both_ways else VERDICT_WORDS)[metric.verdict]


def status_text(check: Check) -> str:
    """The outcome in a word or two: `Passed`, `Regressed`; of an edit `Faster`, `No difference`, `Slower`."""
    step = next((metric for metric in check.metrics if metric.id == STEP_TIME), None)
    if loss_fails(check):
        return "Another loss"
    if check.edit is None or step is None or check.status in ("cannot_tell", "new"):
        return STATUS_WORDS[check.status]
    if check.status == "regressed" and step.verdict != "regression":
        return STATUS_WORDS[check.status]
    return EDIT_VERDICT_WORDS[step.verdict].capitalize()


def loss_fails(check: Check) -> bool:
    """Whether an edit is refused because of the losses. Between revisions, another loss may be what was wanted."""
    return check.edit is not None and check.losses is not None and loss_moved(check.losses)


def loss_moved(losses: Losses) -> bool:
    """Whether the head surely trains to another loss."""
    return losses.verdict in ("moved", "not_finite")


MOST_TIMES = 5
"""Times of a baseline that are named; the last."""

SENTENCE_LIMIT = 1_000
"""Characters of one sentence: names from the user's side have no length of their own."""


def is_finding(metric: Metric) -> bool:
    """Whether this metric is to be reported as worse: by its figures, or because it is no longer there."""
    return metric.level != "off" and metric.verdict in ("regression", "gone")


def fails(metric: Metric) -> bool:
    """Whether this metric makes the check fail."""
    return metric.level == "error" and is_finding(metric)


def is_shown(metric: Metric) -> bool:
    """Whether a metric is worth a row: one that was measured or may fail the check, but for phases of which there is
    nothing to say."""
    if metric.level == "off" or (metric.verdict == "not_measured" and metric.level != "error"):
        return False
    return not metric.id.startswith(PHASE) or metric.verdict in ("regression", "improvement", "gone", "new")


def value_text(metric: Metric, value: float | None) -> str:
    """A figure with its unit; a dash where there is none. What counts as more than it is gets the words `under 50 ms`,
    since the change beside it is that from 50 ms."""
    if value is None or not math.isfinite(value):
        return words.DASH
    if metric.id == EPOCH_OVERHEAD and value < LEAST_EPOCH_OVERHEAD:
        return f"under {words.duration_text(LEAST_EPOCH_OVERHEAD)}"
    if metric.unit == "seconds":
        return words.duration_text(value)
    return words.share_text(value) if metric.unit == "share" else words.bytes_text(value)


def amount_text(unit: Unit, amount: float | None, *, sign: bool = False) -> str:
    """A change without its interval: `5 %` of seconds or bytes, `5 points` of a share."""
    if amount is None or not math.isfinite(amount):
        return words.DASH
    text = words.share_text(abs(amount))
    if unit == "share":
        # Points of a hundred: a share that rose from 10 % to 15 % rose by 5 points, and by half.
        text = text.removesuffix("%") + ("point" if text == "1 %" else "points")
    mark = "" if text.startswith("0 ") else "\N{MINUS SIGN}" if amount < 0 else "+" if sign else ""
    return mark + text


def change_text(metric: Metric) -> str:
    """From base to head, with its interval where there is one: `+6.1 % (+4.2 to +8.0)`."""
    change = amount_text(metric.unit, metric.change, sign=True)
    low, high = (amount_text(metric.unit, end, sign=True) for end in (metric.low, metric.high))
    if words.DASH in (change, low, high):
        return change
    # The unit once: every other word of a table's cell is one too many.
    return f"{change} ({low.rpartition(' ')[0]} to {high.rpartition(' ')[0]})"


def side_text(side: Side) -> str:
    """`origin/main (1a2b3c4)`, `the working tree (1a2b3c4, with uncommitted changes)`."""
    details = [] if side.commit is None or side.name == side.commit else [side.commit[:9]]
    if side.dirty:
        details.append("with uncommitted changes")
    if side.result is not None and side.result not in side.name:
        details.append(f"stored in {side.result}")
    return f"{side.name} ({', '.join(details)})" if details else side.name


def time_text(check: Check) -> str:
    """`2 min 10 s of 5 min`; the time alone where none was set."""
    taken = words.duration_text(check.seconds)
    return f"{taken} of {words.duration_text(check.budget)}" if check.budget > 0 else taken


def effort_text(check: Check) -> str:
    """What the check rests on: `8 pairs of processes in 2 min`, or `8 processes against 24 stored ones (measured at 3
    times), in 2 min`."""
    seconds = words.duration_text(check.seconds)
    if check.stored is not None:
        own, times = len(check.processes), words.count_text(len(check.stored.taken), "time")
        stored = "1 stored one" if check.stored.processes == 1 else f"{check.stored.processes} stored ones"
        return f"{words.count_text(own, 'process')} against {stored} (measured at {times}), in {seconds}"
    return f"{words.count_text(len(check.pairs), 'pair')} of processes in {seconds}"


def lent_text(check: Check) -> str:
    """What earlier checks lent, in a sentence; "" where they lent nothing."""
    if check.lent is None:
        return ""
    vary = words.share_text(check.lent.spread)
    return (
        f"How much pairs of processes differ was judged together with {words.count_text(check.lent.checks, 'check')} "
        f"of before, in which they typically differed by {vary}."
    )


def stored_text(check: Check) -> str:
    """What is known of the stored baseline, in a sentence; "" where the base is a revision."""
    if check.stored is None:
        return ""
    dates = "; ".join(words.date_text(moment) for moment in check.stored.taken[-MOST_TIMES:])
    earlier = len(check.stored.taken) - MOST_TIMES
    more = f", and {words.count_text(earlier, 'earlier time')}" if earlier > 0 else ""
    same = "another machine" if check.stored.different else "this machine"
    return f"{check.stored.file} was measured on {same}: {dates}{more}."


def script(check: Check) -> str:
    """The script's path as it was given, or what stands in its place: a module, a command."""
    argv = check.entrypoint.argv
    named = next((word for word in argv if word.endswith(SOURCES)), None)
    if named is None and "-m" in argv[:-1]:
        named = argv[argv.index("-m") + 1]
    return named or (argv[0] if argv else "training")


def site_text(site: Site) -> str:
    """`train.py:42`, as editors and terminals read it."""
    return words.site_text(site.file, site.line)


def place_of(check: Check, metric: Metric) -> Site | None:
    """Where a finding belongs: its own line, else that of the largest thing that grew in lines that changed.

    What grew is seconds of a step, so it says nothing of memory or of start-up, and of a phase not for certain.
    """
    if metric.site is not None or metric.id != STEP_TIME or metric.verdict != "regression":
        return metric.site
    return next((each.site for each in check.culprits if each.changed_here and each.site is not None), None)


def grown(check: Check, metric: Metric) -> list[Culprit]:
    """What grew in a step, for the metric that it explains."""
    return list(check.culprits) if metric.id == STEP_TIME and metric.verdict == "regression" else []


def changed_lines(check: Check) -> list[Culprit]:
    """What grew and lies in lines that differ between the revisions, the largest first."""
    return [each for each in check.culprits if each.changed_here and each.site is not None and each.site.line > 0]


def one_line(text: str, limit: int = SENTENCE_LIMIT) -> str:
    """Text of the user's side on one line, without hidden characters, and no longer than `limit`."""
    return words.clipped(re.sub(r"\s+", " ", words.visible(text)).strip(), limit)


def inside(file: str, cwd: str, root: Path) -> str | None:
    """`file` as a path from `root` with forward slashes, None where it lies elsewhere. No disk is read."""
    whole = os.path.normpath(os.path.join(cwd, file))
    try:
        relative = Path(whole).relative_to(os.path.normpath(root)).as_posix()
    except ValueError:
        return None
    return relative if relative != "." else None


def promise_text(check: Check) -> str:
    """What the error rate promises, in a sentence that begins in the middle."""
    rate = words.share_text(check.error_rate)
    if check.edit is None:
        return f"designed so that of checks of identical revisions, at most {rate} find a regression."
    return f"designed so that of edits that change nothing, at most {rate} are called faster or slower."


def tried_texts(check: Check) -> list[str]:
    """What an edit consists of, one sentence each: files, arguments, variables; none of two revisions."""
    edit = check.edit
    if edit is None:
        return []
    told = [f"Files: {words.listed([f'`{each}`' for each in edit.files])}."] if edit.files else []
    if edit.arguments is not None:
        told.append(f"Arguments: `{words.command_text(edit.arguments)}`." if edit.arguments else "Without arguments.")
    variables = [f"`{name}={value}`" for name, value in edit.variables.items()]
    return told + ([f"Variables: {words.listed(variables)}."] if variables else [])
