"""`memory-growth`: the training process takes more and more memory."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from statistics import StatisticsError, correlation, linear_regression, median

from bottleneck_doctor.diagnose import _usage
from bottleneck_doctor.diagnose._evidence import Evidence
from bottleneck_doctor.diagnose._rule import CAUSE, Rule, Statement, Unjudged
from bottleneck_doctor.documents.labels import BASELINE
from bottleneck_doctor.wording import words

LEAST_BYTES = 64 << 20
"""Smaller growth within one session is ignored, because allocators may keep tens of megabytes."""
LEAST_SHARE = 0.05
"""The same, relative to what the process has."""
STEADY = 0.9
"""Memory grows steadily if its correlation with time is this or more. Ours: the curve of a cache that fills up
flattens, and falls below."""
STRAIGHT = 0.2
"""Memory that grows steadily is never off the straight line from its first size to its last by more than this part of
its growth. Ours: what takes memory once, as windows of another setting may in between, is off by up to a half."""
LEAST_WINDOWS = 3
LEAST_STEPS = 100
"""Steps that lie between the first of these windows and the last. Ours: in its first dozens of steps, a process still
takes memory for what it keeps, such as buffers of its largest tensors. A network that leaks nothing, with steps of
seconds, took 25 MiB a step over its first 23."""
LEAST_SAMPLES = 3
"""Samples of a window that say how its memory changed."""
WITHIN = 0.25
"""Part of the rate at which memory also has to grow within half of the windows as written. Ours: a leak that was tried
grew there by 70 to 120 % of its rate, and a network whose batches change their length by nothing on average."""
SERIES = "main_rss_bytes"
HOUR = 3600.0


def judge(evidence: Evidence) -> Statement | Unjudged | None:
    sessions: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for use in _usage.plain_windows(evidence):
        if not 0 <= use.window < len(evidence.windows):
            continue
        resident = [each.rss_bytes for each in use.processes if each.role == "main" and each.rss_bytes is not None]
        window = evidence.windows[use.window]
        if resident:
            sessions[window.session].append((window.started + window.seconds / 2, sum(resident)))
    enough = {session: sorted(points) for session, points in sessions.items() if len(points) >= LEAST_WINDOWS}
    if not enough:
        return Unjudged(
            f"no session has {LEAST_WINDOWS} windows of the training as written in which memory was sampled"
        )
    lasting = [points for session, points in enough.items() if _steps(evidence, session, points) >= LEAST_STEPS]
    if not lasting:
        return Unjudged(f"memory was watched over fewer than {LEAST_STEPS} steps, and a process takes more at first")
    slopes = [_slope(points) for points in lasting]
    if sum(1 for slope in slopes if slope > 0) * 2 <= len(slopes):
        return None
    rate = median(slopes)
    grown = max(points[-1][1] - points[0][1] for points in lasting)
    if rate <= 0 or not _also_within_windows(evidence, rate):
        return None
    step = evidence.step_ms
    left = _usage.mean(evidence, lambda use: use.memory_available_bytes)
    which = f"the {words.bytes_text(left)} that are free" if left else ""
    if left is None and evidence.environment is not None:
        left = float(evidence.environment.memory_bytes)
        which = f"all {words.bytes_text(left)} of the machine"
    figures = {"bytes_per_second": rate, "grown_bytes": grown}
    each = ""
    if step is not None:
        figures["bytes_per_step"] = rate * step / 1000
        each = f", {words.bytes_text(figures['bytes_per_step'])} a step"
    end = ""
    if left:
        figures["seconds_left"] = left / rate
        end = f" At this rate, {which} will last {words.duration_text(left / rate)}."
    return Statement(
        sentence=(
            f"The memory of the training process grew steadily, by up to {words.bytes_text(grown)} in one process: "
            f"{words.bytes_text(rate)} a second{each}.{end}"
        ),
        figures=figures,
        weight=min(1.0, rate * HOUR / left) if left else 0.0,
        measured=False,
        clause=f"takes {words.bytes_text(rate)} more memory every second",
    )


def _steps(evidence: Evidence, session: int, points: list[tuple[float, float]]) -> int:
    """Steps of a process from the first of these moments to the last."""
    (begun, _), (ended, _) = points[0], points[-1]
    return sum(
        window.steps + window.lead_in_steps
        for window in evidence.windows
        if window.session == session and begun <= window.started + window.seconds <= ended + window.seconds
    )


def _also_within_windows(evidence: Evidence, rate: float) -> bool:
    """Whether memory grows while training runs as written, too; True where it was not sampled often enough to tell.

    Between two such windows lie others, and memory that another setting takes may stay.
    """
    use = evidence.utilization
    sizes = None if use is None else use.series.get(SERIES)
    if use is None or sizes is None:
        return True
    rates: list[float] = []
    for span in use.spans:
        inside = [(at, size) for at, size in zip(use.times, sizes, strict=True) if span.start <= at <= span.end]
        known = [(at, size) for at, size in inside if size is not None]
        if span.label == BASELINE and len(known) >= LEAST_SAMPLES and known[-1][0] > known[0][0]:
            rates.append((known[-1][1] - known[0][1]) / (known[-1][0] - known[0][0]))
    return len(rates) < LEAST_WINDOWS or median(rates) >= WITHIN * rate


def _slope(points: list[tuple[float, float]]) -> float:
    """Bytes a second if memory grows steadily and by enough, else 0."""
    times, sizes = [time for time, _ in points], [size for _, size in points]
    grown = sizes[-1] - sizes[0]
    if grown < max(LEAST_BYTES, LEAST_SHARE * sizes[0]) or any(after <= before for before, after in pairwise(sizes)):
        return 0.0
    if any(abs(size - _between(points, time)) > STRAIGHT * grown for time, size in points):
        return 0.0
    try:
        return linear_regression(times, sizes).slope if correlation(times, sizes) >= STEADY else 0.0
    except StatisticsError:
        return 0.0


def _between(points: list[tuple[float, float]], time: float) -> float:
    """The size at a time, on the straight line from the first of the points to the last."""
    (start, before), (end, after) = points[0], points[-1]
    return before + (after - before) * (time - start) / (end - start) if end > start else before


RULE = Rule(
    id="memory-growth",
    title="Memory keeps growing",
    topic="memory",
    depth=CAUSE,
    needs=("utilization",),
    judge=judge,
    source="https://pytorch.org/docs/stable/notes/faq.html#my-model-reports-cuda-runtime-error-2-out-of-memory",
    advice="Look for what the loop keeps: losses and outputs with their graphs (use `.detach()` or `.item()`), lists "
    "that only grow, caches without a limit.",
)
