"""Results side by side: reports in, one table of figures with their ratios to the first report out. Pure.

What is compared is the training as written. A ratio has an interval where both sides were measured in two processes or
more: it comes from the spread between processes, as every interval here does. What happened to the machine between two
reports is in no interval, so the comparison names every difference of the environments that it can see.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from statistics import fmean
from typing import Literal

from bottleneck_doctor.documents.held_memory import most_bytes
from bottleneck_doctor.documents.labels import BASELINE
from bottleneck_doctor.documents.report import Phases, Result
from bottleneck_doctor.measure import pairing
from bottleneck_doctor.statistics import speedups
from bottleneck_doctor.wording import run_words, words

Unit = Literal["per_second", "seconds", "share", "bytes"]
MEMORY_TOLERANCE = 0.02
"""Memory that differs by less is the same machine's: firmware takes a little more or less of it at every start."""


@dataclass(frozen=True)
class Named:
    """A result, and what it is called in the comparison."""

    name: str
    result: Result


@dataclass(frozen=True)
class Ratio:
    """A figure relative to the first report's, with its interval (None where there is none)."""

    estimate: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Row:
    """One figure of every report; None where a report has none. `ratios` belong to the second report and later ones."""

    title: str
    unit: Unit
    values: tuple[float | None, ...]
    ratios: tuple[Ratio | None, ...]
    more_is_better: bool = False


@dataclass(frozen=True)
class DifferingValues:
    """Something that is not alike in all reports: a key of the environment or of the training, and its values."""

    key: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class Comparison:
    """All that may be said of some reports side by side. `sentences`: one for each report after the first."""

    names: tuple[str, ...]
    created: tuple[str, ...]
    sentences: tuple[str, ...]
    rows: tuple[Row, ...]
    environment: tuple[DifferingValues, ...]
    training: tuple[DifferingValues, ...]


def compare(reports: Sequence[Named]) -> Comparison:
    """Compare two reports or more; the first is what the others are held against."""
    results = [each.result for each in reports]
    rows = [_speed(results)]
    for title, unit, figure in _FIGURES:
        values = tuple(figure(result) for result in results)
        if any(value is not None for value in values):
            rows.append(Row(title, unit, values, tuple(_plain_ratio(values[0], value) for value in values[1:])))
    return Comparison(
        names=tuple(each.name for each in reports),
        created=tuple(words.date_text(result.created) for result in results),
        sentences=tuple(
            _sentence(reports[0], other, ratio) for other, ratio in zip(reports[1:], rows[0].ratios, strict=True)
        ),
        rows=tuple(rows),
        environment=tuple(_differences(results, _ENVIRONMENT)),
        training=tuple(_differences(results, _TRAINING)),
    )


# -- figures -----------------------------------------------------------------------------------------------------------


def _speed(results: Sequence[Result]) -> Row:
    first, by_sample = results[0], _samples_known(results)
    return Row(
        "Samples a second" if by_sample else "Steps a second",
        "per_second",
        tuple(_rate(result, by_sample=by_sample) for result in results),
        tuple(_speed_ratio(first, other, by_sample=by_sample) for other in results[1:]),
        more_is_better=True,
    )


def _samples_known(results: Sequence[Result]) -> bool:
    return all(result.baseline is None or result.baseline.batch_size is not None for result in results)


def _rate(result: Result, *, by_sample: bool) -> float | None:
    if result.baseline is None:
        return None
    rate = result.baseline.samples_per_second if by_sample else result.baseline.steps_per_second
    return rate if math.isfinite(rate) else None


def _speed_ratio(first: Result, other: Result, *, by_sample: bool) -> Ratio | None:
    ours, theirs = (_session_logs(result, by_sample=by_sample) for result in (first, other))
    if not ours or not theirs:
        return None
    # These are logs of costs: a speed is their inverse.
    interval = speedups.difference(ours, theirs)
    if interval is None:
        return Ratio(math.exp(fmean(ours) - fmean(theirs)))
    middle, half_width = interval
    return Ratio(math.exp(middle), math.exp(middle - half_width), math.exp(middle + half_width))


def _session_logs(result: Result, *, by_sample: bool) -> list[float]:
    """Log of the seconds that a sample takes as written, or a step, one for each process."""
    logs: dict[int, list[float]] = {}
    for window in result.windows:
        if pairing.usable(window) and window.label == BASELINE and window.mode == "timed":
            size = 1.0 if by_sample else window.samples / window.steps
            logs.setdefault(window.session, []).append(math.log(pairing.step_cost(window, size)))
    return [fmean(each) for each in logs.values()]


def _plain_ratio(first: float | None, other: float | None) -> Ratio | None:
    return Ratio(other / first) if first and other is not None else None


def _phase_seconds(name: str) -> Callable[[Result], float | None]:
    def figure(result: Result) -> float | None:
        if result.phases is None or result.steps is None:
            return None
        share: float = getattr(result.phases.baseline, name)
        return share * result.steps.mean_ms / 1000 if share else None

    return figure


def _highest(*series: str) -> Callable[[Result], float | None]:
    """The most that these series of the monitor reached together."""

    def figure(result: Result) -> float | None:
        if result.utilization is None:
            return None
        columns = [result.utilization.series[name] for name in series if name in result.utilization.series]
        sums = [sum(value or 0.0 for value in point) for point in zip(*columns, strict=True)]
        return max(sums, default=0.0) or None

    return figure


def _whole_run(result: Result) -> float | None:
    seconds = math.inf if result.whole_run is None else run_words.seconds(result.whole_run)
    return seconds if math.isfinite(seconds) else None


_FIGURES: tuple[tuple[str, Unit, Callable[[Result], float | None]], ...] = (
    ("A step", "seconds", lambda result: result.baseline.step_ms / 1000 if result.baseline else None),
    ("Waiting for data", "share", lambda result: result.baseline.data_wait_share if result.baseline else None),
    *((words.PHASE_WORDS[each.name] + ", a step", "seconds", _phase_seconds(each.name)) for each in fields(Phases)),
    ("One step in twenty exceeds", "seconds", lambda result: result.steps.p95_ms / 1000 if result.steps else None),
    ("Between two epochs", "seconds", lambda result: result.epoch_pause.seconds if result.epoch_pause else None),
    ("Start to first step", "seconds", lambda result: result.steps.first_step_seconds if result.steps else None),
    ("The whole run", "seconds", _whole_run),
    ("Peak memory, main process and workers", "bytes", most_bytes),
    ("Peak memory of the device", "bytes", _highest("gpu0_memory_bytes")),
    ("Noise floor", "share", lambda result: result.noise.floor if result.noise else None),
)  # fmt: skip


def _sentence(first: Named, other: Named, ratio: Ratio | None) -> str:
    if ratio is None:
        return f"{other.name} and {first.name} can't be compared: one of them did not measure the training as written."
    if ratio.low is None or ratio.high is None:
        return (
            f"{other.name} trains {words.ratio_text(ratio.estimate)} as fast as {first.name}, but that may be chance: "
            "one of them was measured in a single process."
        )
    interval = f"95 % {ratio.low:.2f}{words.DASH}{ratio.high:.2f}"
    if ratio.low <= 1 <= ratio.high:
        return (
            f"No difference between {other.name} and {first.name} was seen: {words.ratio_text(ratio.estimate)} as fast "
            f"({interval})."
        )
    how = "faster than" if ratio.estimate > 1 else "slower than"
    times = ratio.estimate if ratio.estimate > 1 else 1 / ratio.estimate
    return f"{other.name} is {words.ratio_text(times)} {how} {first.name} ({interval} as fast)."


# -- what differs ------------------------------------------------------------------------------------------------------

Reading = Callable[[Result], object]

_ENVIRONMENT: tuple[tuple[str, Reading], ...] = (
    ("processor", lambda result: result.environment.cpu),
    ("cores that may be used", lambda result: result.environment.usable_cpus),
    ("cores", lambda result: result.environment.total_cpus),
    ("devices", lambda result: ", ".join(result.environment.devices) or "none"),
    ("system", lambda result: result.environment.platform),
    ("Python", lambda result: result.environment.python),
    ("torch", lambda result: result.environment.torch),
    ("bottleneck-doctor", lambda result: result.tool.version),
)

_TRAINING: tuple[tuple[str, Reading], ...] = (
    ("command", lambda result: words.command_text(result.entrypoint.argv)),
    ("settings", lambda result: _settings(result)),
    ("batch size", lambda result: _number(result.baseline.batch_size) if result.baseline else words.DASH),
    ("batches an epoch", lambda result: _number(result.baseline.epoch_batches) if result.baseline else words.DASH),
    ("device", lambda result: result.baseline.device if result.baseline else words.DASH),
)


def _differences(results: Sequence[Result], readings: Sequence[tuple[str, Reading]]) -> list[DifferingValues]:
    found = []
    for key, read in readings:
        values = tuple(str(read(result)) for result in results)
        if len(set(values)) > 1:
            found.append(DifferingValues(key, values))
    if readings is _ENVIRONMENT:
        found += _memory(results) + _variables(results)
    return found


def _memory(results: Sequence[Result]) -> list[DifferingValues]:
    sizes = [result.environment.memory_bytes for result in results]
    if max(sizes) - min(sizes) <= MEMORY_TOLERANCE * max(sizes):
        return []
    return [DifferingValues("memory", tuple(words.bytes_text(size) for size in sizes))]


def _variables(results: Sequence[Result]) -> list[DifferingValues]:
    names = sorted({name for result in results for name in result.environment.variables})
    rows = [
        DifferingValues(name, tuple(result.environment.variables.get(name, "not set") for result in results))
        for name in names
    ]
    return [row for row in rows if len(set(row.values)) > 1]


def _settings(result: Result) -> str:
    baseline = result.baseline
    return words.DASH if baseline is None else words.setting_text(baseline.settings, baseline.device)


def _number(value: float | None) -> str:
    return words.DASH if value is None else f"{value:g}"
