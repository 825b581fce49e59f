"""One step: its phases as written and at its best, how regular steps are, what an epoch's end costs, and a timeline."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

from markupsafe import Markup

from bottleneck_doctor.documents.report import EpochPause, Phases, Result, StepTimes
from bottleneck_doctor.render import bars
from bottleneck_doctor.render.sections.facts import Fact
from bottleneck_doctor.render.timeline import timeline
from bottleneck_doctor.wording import ranking, words

MOST_TIMELINES = 2
PAUSE_PARTS = {
    "evaluation": "Evaluation",
    "saving": "Saving checkpoints",
    "first_batch": "Waiting for the first batch",
    "collecting": "Collecting garbage",
    "rest": "The rest",
}


@dataclass(frozen=True)
class PhaseRow:
    """One phase: its share as written and under the best setting, and its seconds of a step as written."""

    key: str
    name: str
    baseline: float
    seconds: float | None
    best: float | None


@dataclass(frozen=True)
class Pause:
    bar: Markup
    parts: list[tuple[str, str, float]]
    pause: EpochPause


@dataclass(frozen=True)
class Picture:
    name: str
    setting: str
    drawing: Markup


@dataclass(frozen=True)
class Step:
    """`on_cpu`: no device was waited for between the phases."""

    bars: list[tuple[str, Markup]]
    rows: list[PhaseRow]
    best_setting: str
    step_seconds: float | None
    facts: list[Fact]
    pause: Pause | None
    timelines: list[Picture]
    on_cpu: bool


def step(result: Result) -> Step | None:
    """None where nothing is known of a step's parts."""
    pictures = _timelines(result)
    facts = _facts(result)
    pause = _pause(result.epoch_pause)
    if not (result.phases or facts or pause or pictures):
        return None
    table = result.phases
    return Step(
        bars=_bars(result),
        rows=_rows(result),
        best_setting=ranking.best_words(result, table.best_setting) if table and table.best else "",
        step_seconds=_step_seconds(result),
        facts=facts,
        pause=pause,
        timelines=pictures,
        on_cpu=ranking.on_cpu(result),
    )


def _step_seconds(result: Result) -> float | None:
    ms = result.baseline.step_ms if result.baseline else math.nan
    return ms / 1000 if math.isfinite(ms) and ms > 0 else None


def _rows(result: Result) -> list[PhaseRow]:
    if result.phases is None:
        return []
    best = asdict(result.phases.best) if result.phases.best else {}
    whole = _step_seconds(result)
    return [
        PhaseRow(key, words.PHASE_WORDS[key], share, share * whole if whole is not None else None, best.get(key))
        for key, share in asdict(result.phases.baseline).items()
        # A single process doesn't communicate; every other phase is told even where it costs nothing.
        if key != "communication" or share or best.get(key)
    ]


def _bars(result: Result) -> list[tuple[str, Markup]]:
    if result.phases is None:
        return []
    told: list[tuple[str, Phases | None]] = [("As written", result.phases.baseline), ("Best", result.phases.best)]
    return [(name, bars.phase_bar(asdict(phases), name)) for name, phases in told if phases is not None]


def _facts(result: Result) -> list[Fact]:
    facts = _step_facts(result.steps) if result.steps else []
    garbage = result.garbage
    if garbage is not None and garbage.collections:
        value = f"{words.milliseconds_text(garbage.ms_per_step)} a step, {words.share_text(garbage.share)} of the time"
        often = "once" if garbage.collections == 1 else f"{garbage.collections} times"
        facts.append(Fact("Garbage collection", value, f"Python's collector ran {often}"))
    return facts


def _step_facts(steps: StepTimes) -> list[Fact]:
    facts = [
        Fact("A step", words.milliseconds_text(steps.mean_ms), f"mean of {words.count_text(steps.steps, 'step')}"),
        Fact(
            "Slow steps",
            words.milliseconds_text(steps.p95_ms),
            f"one in twenty takes longer; {words.ratio_text(steps.jitter)} the median of "
            f"{words.milliseconds_text(steps.p50_ms)}",
        ),
        Fact(
            "Outliers",
            words.count_text(steps.outliers, "step"),
            "further than three standard deviations from the mean",
        ),
        Fact(
            "Waiting for a batch",
            words.milliseconds_text(steps.wait_mean_ms),
            f"mean; one in twenty waits longer than {words.milliseconds_text(steps.wait_p95_ms)}",
        ),
        Fact("Batches ready at once", words.share_text(steps.ready_share), "were ready when the loop asked for them"),
    ]
    if steps.first_step_seconds is not None:
        facts.append(
            Fact("First step", words.duration_text(steps.first_step_seconds), "after the start of the process")
        )
    return facts


def _pause(pause: EpochPause | None) -> Pause | None:
    if pause is None or not pause.seen or not math.isfinite(pause.seconds):
        return None
    values = pause.parts
    parts = [(key.replace("_", "-"), name, values[key]) for key, name in PAUSE_PARTS.items()]
    said = ", ".join(f"{name} {words.duration_text(seconds)}" for _, name, seconds in parts)
    bar = bars.stacked_bar({f"pause-{key}": seconds for key, _, seconds in parts}, f"Between two epochs: {said}")
    return Pause(bar, parts, pause)


def _timelines(result: Result) -> list[Picture]:
    pictures = []
    for each in result.timelines[:MOST_TIMELINES]:
        name = "As written" if not each.setting else "With " + words.setting_text(each.setting, ranking.device(result))
        drawing = timeline(each, name)
        if drawing:
            pictures.append(
                Picture(name, words.setting_code(each.setting, ranking.device(result)) if each.setting else "", drawing)
            )
    return pictures
