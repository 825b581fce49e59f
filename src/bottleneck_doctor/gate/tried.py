"""What is said of an edit as a whole: the verdict on its step time and what else changed in, sentences out. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

from bottleneck_doctor.documents.check import STEP_TIME, Culprit, Losses, Metric
from bottleneck_doctor.documents.measured import Speedup
from bottleneck_doctor.gate import decide, faster, plan, verdict
from bottleneck_doctor.gate import metrics as figures
from bottleneck_doctor.gate.metrics import Judging
from bottleneck_doctor.measure.side_pairs import PairSample
from bottleneck_doctor.statistics.speedups import EQUIVALENCE
from bottleneck_doctor.wording import words
from bottleneck_doctor.wording.check_words import amount_text, fails, is_finding, loss_moved

THRESHOLD = EQUIVALENCE
"""Of the step time, where neither the user nor the project says another one: no more than this is no difference."""


def speedup(step: Metric | None, pairs: Sequence[PairSample]) -> Speedup | None:
    """How many times as fast the edited program is; None where no interval is known."""
    if step is None or step.change is None or step.low is None or step.high is None:
        return None
    estimate, low, high = (1 / (1 + each) if each > -1 else math.inf for each in (step.change, step.high, step.low))
    windows = sum(len(pair.rounds()) for pair in pairs)
    return Speedup(estimate=estimate, low=low, high=high, pairs=windows, sessions=len(pairs))


def progress_text(step: Metric, pairs: Sequence[PairSample]) -> str:
    """What is known meanwhile: `3 pairs: 1.32× as fast (1.21–1.44)`."""
    counted, found = words.count_text(len(pairs), "pair"), speedup(step, pairs)
    if found is not None:
        return f"{counted}: {words.estimate_text(found)} as fast ({words.interval_text(found)})"
    return f"{counted}: {words.ratio_text(1 / (1 + (step.change or 0.0)))} as fast"


def sentence(
    metrics: Sequence[Metric],
    pairs: Sequence[PairSample],
    culprits: Sequence[Culprit],
    settled_by: str = "",
    losses: Losses | None = None,
) -> str:
    """The outcome in a sentence or two, with figures. `settled_by`: what would settle it where nobody can tell."""
    step = next((metric for metric in metrics if metric.id == STEP_TIME), None)
    said = [_of_steps(step, pairs)]
    if losses is not None and loss_moved(losses):
        said.insert(0, losses.sentence)
    if step is not None and step.verdict == "cannot_tell" and settled_by:
        said.append(settled_by)
    said += [metric.sentence for metric in metrics if metric.id != STEP_TIME and is_finding(metric)]
    untold = [metric for metric in verdict.deciding(metrics) if metric.id != STEP_TIME]
    said += [metric.sentence for metric in untold if metric.verdict in verdict.UNTOLD]
    if step is not None and fails(step):
        said += verdict.what_grew(culprits)
    return " ".join(said)


def _of_steps(step: Metric | None, pairs: Sequence[PairSample]) -> str:
    found = speedup(step, pairs)
    counted = f"{words.count_text(len(pairs), 'pair')} of processes"
    if step is None or found is None:
        return f"Cannot tell after {counted} what the edit is worth."
    speed, interval = words.estimate_text(found), words.interval_text(found)
    if step.verdict == "improvement":
        return f"The edit makes training {speed} as fast ({interval}, {counted})."
    if step.verdict == "regression":
        return f"The edit makes training slower: {speed} as fast ({interval}, {counted})."
    if step.verdict == "unchanged":
        least = amount_text(step.unit, step.threshold)
        return f"The edit makes no difference larger than {least}: {speed} as fast ({interval}, {counted})."
    return (
        f"Cannot tell after {counted} whether the edit makes a difference: it seems to make training {speed} as fast "
        f"({interval}), but that may be chance."
    )


def settled_by(
    pairs: Sequence[PairSample], how: Judging, metrics: Sequence[Metric], pair_seconds: float, *, given_up: bool
) -> str:
    """What would settle whether the edit makes a difference, in a sentence or two; empty where nobody knows.

    `given_up`: measuring ended because no pair that there was time for would have told.
    """
    step = next((metric for metric in metrics if metric.id == STEP_TIME), None)
    series = next((each for each in figures.series(pairs, how.lent) if each.id == STEP_TIME), None)
    if step is None or series is None or step.verdict != "cannot_tell" or len(series.differences) < 2:
        return ""
    threshold = math.log1p(step.threshold)
    told = ["No pair that there was time for would have told."] if given_up else []
    wanted = faster.pairs_wanted(series.known(), threshold, fixed=how.fixed, error_rate=how.rate(STEP_TIME))
    if wanted is not None:
        option = f"`--pairs {wanted}`" if how.fixed else f"`--budget {plan.minutes_for(wanted, pair_seconds)}m`"
        return " ".join([*told, f"About {wanted} pairs would tell: {option}."])
    told.append(f"Not even {decide.most_looked_at()} pairs would tell, so much do processes differ here.")
    return " ".join([*told, "Run it on a machine where nothing else runs, or give a larger `--threshold`."])
