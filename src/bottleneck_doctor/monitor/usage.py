"""Recordings and windows in, `Utilization` out: each window's samples are found, and series thinned for the report.

Pure. The times of windows are of the same clock as the samples, so the monitor needs to know no windows while it
samples: any interval can be looked up afterwards.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from statistics import median, median_high
from typing import Literal, Protocol

from bottleneck_doctor.documents.labels import BASELINE, CONTROL
from bottleneck_doctor.documents.report import DeviceUse, ProcessUse, Span, Utilization, Window, WindowUse
from bottleneck_doctor.knobs import is_ceiling
from bottleneck_doctor.monitor.gpu import throttle_reasons
from bottleneck_doctor.monitor.recording import UsageRecording

MOST_POINTS = 600
"""Points of a series in the document; neighbours are averaged into one."""
DIGITS = 4
"""Significant digits that the document keeps of a figure."""
INTERVAL = 0.1
SLOW_INTERVAL = 1.5
"""If samples came this many times less often than planned, the report says so."""

PRESENT = 0.05
"""A process that existed for a smaller share of a window belongs to the window before or after it."""

Role = Literal["main", "workers", "other"]
_PROCESS_FIELDS = (
    "cpu_user",
    "cpu_system",
    "threads",
    "voluntary_switches",
    "involuntary_switches",
    "minor_faults",
    "major_faults",
    "rss_bytes",
    "pss_bytes",
    "read_bytes",
    "written_bytes",
    "blocked_share",
)
_DEVICE_FIELDS = (
    "utilization",
    "memory_bytes",
    "memory_total_bytes",
    "power_watts",
    "sm_clock_mhz",
    "pcie_rx_bytes",
    "pcie_tx_bytes",
)
_PLAIN_SERIES = (
    "cores_busy",
    "memory_available_bytes",
    "page_cache_bytes",
    "read_bytes",
    "written_bytes",
    "io_pressure",
    "cpu_pressure",
    "memory_pressure",
    "steal_share",
    "throttled_share",
    "cpu_mhz",
)
_NOT_DRAWN = ("memory_total_bytes",)

Mean = Callable[[str], "float | None"]
"""Mean of a column over a time already chosen."""


class Watched(Protocol):
    """A `UsageWatch` that has ended."""

    @property
    def recording(self) -> UsageRecording | None: ...


def utilization(watches: Iterable[Watched], windows: Sequence[Window], best: str | None = None) -> Utilization | None:
    """The machine over all sessions. `windows` as they stand in the result: indices refer to them.

    Windows of the baseline and of `best` (a label; None: whichever setting was fastest) are given in detail. None where
    nothing was sampled.
    """
    return summarise([each.recording for each in watches if each.recording is not None], windows, best)


def summarise(
    recordings: Iterable[UsageRecording], windows: Sequence[Window], best: str | None = None
) -> Utilization | None:
    """As `utilization`, of what was recorded."""
    every = list(recordings)
    missing = list(dict.fromkeys(word for each in every for word in each.missing))
    sessions = sorted((each for each in every if each.times), key=lambda each: each.begun)
    if not sessions:
        return None
    seconds = sum(each.ended - each.begun for each in sessions)
    interval = seconds / sum(len(each.times) for each in sessions)
    if interval > SLOW_INTERVAL * INTERVAL:
        missing.append(
            f"Sampled every {interval:.2g} s on average and not every {INTERVAL} s, which would have cost too much."
        )
    zero = sessions[0].begun
    times, series = _series(sessions, zero)
    labels = {BASELINE, best if best is not None else fastest(windows)}
    return Utilization(
        interval_seconds=_short(interval),
        monitor_cpu=_short(sum(each.cpu_seconds for each in every) / seconds),
        times=times,
        series=series,
        windows=[
            use
            for index, window in enumerate(windows)
            if window.mode == "timed" and window.label in labels and window.status == "ok"
            if (use := _window_use(sessions, index, window)) is not None
        ],
        spans=[
            Span(start=_at(start - zero), end=_at(end - zero), label=_label(window), session=window.session)
            for window in windows
            if (start := timed(window)[0]) < (end := timed(window)[1]) and window.started >= zero
        ],
        missing=missing,
    )


def timed(window: Window) -> tuple[float, float]:
    """Start and end of a window's timed part. A pause inside it, such as an evaluation, lies between them too."""
    begun = window.started + window.lead_in_seconds
    if window.ended is None:
        return begun, begun + window.seconds
    if window.whole_epochs:
        return window.ended - window.seconds, window.ended
    # The timed part is the end of the window, after the lead-in.
    return max(window.started, min(begun, window.ended - window.seconds)), window.ended


def fastest(windows: Sequence[Window]) -> str | None:
    """Label of the setting whose windows had the highest throughput; None if none is higher than the baseline's."""
    speeds: dict[str, list[float]] = defaultdict(list)
    for window in windows:
        counts = window.mode == "timed" and window.status == "ok" and window.seconds > 0
        if counts and window.label != CONTROL and not is_ceiling(window.setting):
            speeds[window.label].append(window.samples / window.seconds)
    label = max(speeds, key=lambda each: median(speeds[each]), default=None)
    return None if label == BASELINE else label


def _label(window: Window) -> str:
    known = window.mode == "timed" or window.label.startswith(window.mode)
    return window.label if known else f"{window.mode}: {window.label}"


# -- one window --------------------------------------------------------------------------------------------------------


def _window_use(sessions: Sequence[UsageRecording], index: int, window: Window) -> WindowUse | None:
    start, end = timed(window)
    session = max(sessions, key=lambda each: min(end, each.ended) - max(start, each.begun))
    if min(end, session.ended) <= max(start, session.begun):
        return None

    def mean(name: str) -> float | None:
        return session.mean(name, start, end)

    def short(name: str) -> float | None:
        value = mean(name)
        return None if value is None else _short(value)

    return WindowUse(
        window=index,
        label=window.label,
        samples=session.samples(start, end),
        processes=[use for role in _ROLES if (use := _process_use(session, role, start, end, short)) is not None],
        devices=[
            DeviceUse(
                index=each.index,
                name=each.name,
                throttle_reasons=throttle_reasons(session.values(f"gpu{each.index}.throttle_mask", start, end)),
                **{field: short(f"gpu{each.index}.{field}") for field in _DEVICE_FIELDS},
            )
            for each in session.devices
        ],
        cores_busy=short("cores_busy"),
        others_cpu=_optional(_others(mean)),
        memory_available_bytes=short("memory_available_bytes"),
        io_pressure=short("io_pressure"),
        cpu_pressure=short("cpu_pressure"),
        steal_share=short("steal_share"),
        throttled_share=short("throttled_share"),
        cpu_mhz=short("cpu_mhz"),
    )


_ROLES: tuple[Role, ...] = ("main", "workers", "other")


def _process_use(session: UsageRecording, role: Role, start: float, end: float, short: Mean) -> ProcessUse | None:
    counts = [count for count in session.values(f"{role}.processes", start, end) if count > 0]
    if session.presence(f"{role}.processes", start, end) < PRESENT:
        return None if role == "other" else ProcessUse(role=role, processes=0)
    # If epochs are short, workers start and end all the time: count them only while there are any.
    processes = median_high(round(count) for count in counts)
    return ProcessUse(role=role, processes=processes, **{field: short(f"{role}.{field}") for field in _PROCESS_FIELDS})


def _cpu(mean: Mean, role: str) -> float | None:
    return _sum(mean(f"{role}.cpu_user"), mean(f"{role}.cpu_system"))


def _others(mean: Mean) -> float | None:
    """Cores kept busy by programs that belong neither to the session nor to doctor."""
    busy = mean("cores_busy")
    if busy is None:
        return None
    return max(0.0, busy - sum(_cpu(mean, role) or 0.0 for role in (*_ROLES, "doctor")))


# -- series ------------------------------------------------------------------------------------------------------------


def _series(sessions: Sequence[UsageRecording], zero: float) -> tuple[list[float], dict[str, list[float | None]]]:
    """Points of all sessions on one axis; between two of them a point of gaps, so that no line joins them."""
    rows = sum(len(each.times) for each in sessions)
    group = math.ceil(rows / max(1, MOST_POINTS - 2 * len(sessions)))
    drawn = _drawn(sessions)
    times: list[float] = []
    series: dict[str, list[float | None]] = {name: [] for name in drawn}
    for number, session in enumerate(sessions):
        if number:
            times.append(_at((sessions[number - 1].ended + session.begun) / 2 - zero))
            for values in series.values():
                values.append(None)
        for first in range(0, len(session.times), group):
            start = session.times[first - 1] if first else session.begun
            end = session.times[min(first + group, len(session.times)) - 1]
            times.append(_at((start + end) / 2 - zero))
            for name, figure in drawn.items():
                series[name].append(_optional(figure(_over(session, start, end))))
    return times, {name: values for name, values in series.items() if any(value is not None for value in values)}


def _over(session: UsageRecording, start: float, end: float) -> Mean:
    return lambda name: session.mean(name, start, end)


def _drawn(sessions: Sequence[UsageRecording]) -> dict[str, Callable[[Mean], float | None]]:
    """Names of the series, and how each is made of columns."""
    drawn: dict[str, Callable[[Mean], float | None]] = {
        "main_cpu": lambda mean: _cpu(mean, "main"),
        "workers_cpu": lambda mean: _cpu(mean, "workers"),
        "other_processes_cpu": lambda mean: _cpu(mean, "other"),
        "others_cpu": _others,
        "workers": lambda mean: mean("workers.processes"),
        "main_rss_bytes": lambda mean: mean("main.rss_bytes"),
        "workers_rss_bytes": lambda mean: mean("workers.rss_bytes"),
        "workers_blocked_share": lambda mean: mean("workers.blocked_share"),
        "session_read_bytes": lambda mean: _sum(*(mean(f"{role}.read_bytes") for role in _ROLES)),
        "session_written_bytes": lambda mean: _sum(*(mean(f"{role}.written_bytes") for role in _ROLES)),
    }
    for name in _PLAIN_SERIES:
        drawn[name] = _column(name)
    for index in sorted({device.index for each in sessions for device in each.devices}):
        for field in _DEVICE_FIELDS:
            if field not in _NOT_DRAWN:
                drawn[f"gpu{index}_{field}"] = _column(f"gpu{index}.{field}")
    return drawn


def _column(name: str) -> Callable[[Mean], float | None]:
    return lambda mean: mean(name)


def _sum(*values: float | None) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _optional(value: float | None) -> float | None:
    return None if value is None else _short(value)


def _short(value: float) -> float:
    """To a few significant digits: a report is read by people, and sent by mail."""
    return float(f"{value:.{DIGITS}g}")


def _at(seconds: float) -> float:
    return round(seconds, 3)
