"""What is said of the whole run: how long it takes as written, and with what the verdict promises."""

from __future__ import annotations

import math

from bottleneck_doctor.documents.report import Result, WholeRun
from bottleneck_doctor.wording import durations, ranking, words

BETWEEN_EPOCHS = "What happens between epochs is not in these figures: fewer than two ends of epochs were seen."
PAUSES = "Pauses for evaluating and saving are not in these figures."
OTHER_PAUSES = "Pauses other than these evaluations are not in these figures."

LONG_PAUSES = "Its long breaks are not in these figures: doctor did not wait until they were over."

SEEN_OFTEN = 2
"""How many ends of epochs have to be seen before anything is said of them."""
MUCH_BETWEEN = 0.1
"""From this part of the time on, what lies between epochs is told beside a promise, which is about steps."""


def sentence(result: Result) -> str:
    """What a promise is worth beside long pauses, and `The whole run, 20 epochs, takes about 6 h 10 min as written and
    about 3 h 45 min with the change.`; "" where nothing is known of either."""
    return " ".join(filter(None, (_beside_pauses(result), _whole_run(result))))


def _beside_pauses(result: Result) -> str:
    """`81 % of the time goes by between epochs …`, where something is promised and that is much of the time."""
    promised, share = ranking.promise(result), beside_share(result)
    if promised is None or promised.speedup is None or share is None or share < MUCH_BETWEEN:
        return ""
    ratio = promised.speedup.estimate
    if not math.isfinite(ratio) or ratio <= 1:
        return ""
    whole = words.at_most_text(1 / (share + (1 - share) / ratio))
    return (
        f"{words.share_text(share)} of the time goes by {_where(result)}, which was not measured. If that takes as "
        f"long as before, training as a whole is about {whole} as fast."
    )


def _where(result: Result) -> str:
    between, within = _between(result), _within(result)
    return "between epochs" if not within else "between epochs and in evaluations" if between else "in evaluations"


def beside_share(result: Result) -> float | None:
    """The part of the time that evaluating, saving and other work take, between epochs and within them, which is in no
    window; None where neither was seen often enough."""
    between, within, baseline = _between(result), _within(result), result.baseline
    if baseline is None or (between is None and not within):
        return None
    beside, step = (between or 0.0) + within, baseline.step_ms / 1000
    if baseline.collecting_seconds and baseline.epoch_batches:
        step += baseline.collecting_seconds / baseline.epoch_batches
    return beside / (beside + step) if step > 0 and math.isfinite(beside + step) else None


def _between(result: Result) -> float | None:
    """Seconds between epochs that no speedup is about, for each step; None where fewer than two ends of epochs were
    seen."""
    pause, baseline = result.epoch_pause, result.baseline
    if pause is None or pause.seen < SEEN_OFTEN or baseline is None or not baseline.epoch_batches:
        return None
    between = max(0.0, pause.evaluation) + max(0.0, pause.saving) + max(0.0, pause.rest)
    between = max(0.0, between - (baseline.collecting_seconds or 0.0))
    return between / baseline.epoch_batches


def _within(result: Result) -> float:
    """Seconds of evaluation in the midst of epochs, for each step; 0 where that was not seen twice."""
    return 0.0 if result.interruption is None else result.interruption.seconds_of_a_step


def _whole_run(result: Result) -> str:
    run = result.whole_run
    if run is None or not math.isfinite(seconds(run)):
        return ""
    count, noun = (run.steps, "step") if run.epochs is None else (run.epochs, "epoch")
    length = f"{words.number_text(count)} {words.plural(noun, count)}"
    said = f"The whole run, {length}, takes about {_text(seconds(run))} as written"
    promised = ranking.promise(result)
    ratio = promised.speedup.estimate if promised is not None and promised.speedup is not None else 1.0
    if math.isfinite(ratio) and ratio > 1:
        first = 0.0 if promised is None or promised.preparation is None else promised.preparation.seconds
        said += f", and about {_text(seconds(run, ratio) + first)} with the change"
    said += ", if it does not end sooner." if run.may_end_sooner else "."
    if run.evaluations:
        within = " within epochs" if run.epochs is not None else ""
        said += f" Of that, evaluations{within} take {_text(run.evaluations)}."
    if result.long_pause is not None:
        return f"{said} {LONG_PAUSES}"
    if run.between is None:
        said += f" {BETWEEN_EPOCHS if run.epochs is not None else OTHER_PAUSES if run.evaluations else PAUSES}"
    return said


def seconds(run: WholeRun, ratio: float = 1.0) -> float:
    """How long the run takes where training is `ratio` times as fast as it is written."""
    return run.start + run.training / ratio + (run.between or 0.0) + run.evaluations


def _text(length: float) -> str:
    """No more digits than such a figure has."""
    if length < 90:
        return durations.format_duration(length)
    step = 10.0 if length < 600 else 60.0 if length < 36_000 else 600.0
    return durations.format_duration(round(length / step) * step)
