"""The machine: its use over time as small multiples, and means of it as written against the best setting."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

from bottleneck_doctor import knobs
from bottleneck_doctor.documents.report import DeviceUse, ProcessUse, Result, Setting, Utilization, WindowUse
from bottleneck_doctor.render import machine
from bottleneck_doctor.wording import ranking, words

MOST_DEVICES = 8

Reading = Callable[[WindowUse], "float | None"]


@dataclass(frozen=True)
class Mean:
    """One row of the table: what it is, and its means in words; a dash where the system does not say."""

    name: str
    baseline: str
    best: str


@dataclass(frozen=True)
class Gpu:
    """One GPU under one setting: its figures in the order of `DEVICE_ROWS`."""

    index: int
    name: str
    setting: str
    figures: list[str]


@dataclass(frozen=True)
class Use:
    """`explained`: the means had to be taken from windows that were slowed down by looking closely."""

    wide: Markup
    narrow: Markup
    means: list[Mean]
    devices: list[Gpu]
    best_setting: str
    explained: bool
    throttled: list[str]

    @property
    def device_columns(self) -> list[str]:
        return [name for name, _, _ in DEVICE_ROWS]


def use(result: Result) -> Use | None:
    """None where the machine was not watched."""
    utilization = result.utilization
    if utilization is None:
        return None
    panels = _panels(utilization)
    wide, narrow = (
        machine.chart(panels, utilization.times, utilization.spans, narrow=narrow) for narrow in (False, True)
    )
    baseline, explained = _windows(result, {})
    setting, best = _best(result)
    means = _means(baseline, best)
    devices = _devices(baseline, best)
    if not wide and not means:
        return None
    reasons = {reason for window in baseline + best for device in window.devices for reason in device.throttle_reasons}
    name = ranking.best_words(result, setting) if best else ""
    return Use(wide, narrow, means, devices, name, explained, sorted(reasons))


def _best(result: Result) -> tuple[Setting, list[WindowUse]]:
    """The best setting that was watched, and its windows."""
    assert result.utilization is not None
    watched = [result.windows[use.window].setting for use in result.utilization.windows if _known(result, use)]
    for setting in ranking.settings_by_worth(result) + [setting for setting in watched if setting]:
        uses, _ = _windows(result, setting)
        if uses:
            return setting, uses
    return {}, []


def _known(result: Result, use: WindowUse) -> bool:
    return 0 <= use.window < len(result.windows)


def _windows(result: Result, setting: Setting) -> tuple[list[WindowUse], bool]:
    """The uses of this setting's windows: of plain timed ones, else of those that explain (then True)."""
    assert result.utilization is not None
    found = [
        (use, result.windows[use.window]) for use in result.utilization.windows if 0 <= use.window < len(result.windows)
    ]
    # What windows of the training process can't have is a part of what is promised, and of no window.
    switched = knobs.switched(setting)
    of_setting = [(use, window) for use, window in found if window.setting == switched and window.status == "ok"]
    timed = [use for use, window in of_setting if window.mode == "timed"]
    return (timed, False) if timed else ([use for use, _ in of_setting], bool(of_setting))


# What the table says, in its order. A row that no window has a value for is left out.


def _of(role: str, value: Callable[[ProcessUse], float | None]) -> Reading:
    def read(use: WindowUse) -> float | None:
        return next((value(process) for process in use.processes if process.role == role), None)

    return read


def _cpu(process: ProcessUse) -> float | None:
    parts = [part for part in (process.cpu_user, process.cpu_system) if part is not None]
    return sum(parts) if parts else None


def _shared_once(process: ProcessUse) -> float | None:
    return process.pss_bytes


def _resident(process: ProcessUse) -> float | None:
    return process.rss_bytes


def _cores(value: float) -> str:
    return f"{words.amount_text(value)} cores"


def _rate(value: float) -> str:
    return f"{words.bytes_text(value)}/s"


def _per_second(value: float) -> str:
    return f"{words.number_text(value)} a second"


def _plain(value: float) -> str:
    return words.number_text(round(value, 1))


ROWS: list[tuple[str, Callable[[float], str], Reading]] = [
    ("CPU, main process", _cores, _of("main", _cpu)),
    ("CPU, workers", _cores, _of("workers", _cpu)),
    ("CPU, other processes of the run", _cores, _of("other", _cpu)),
    ("CPU, other programs", _cores, lambda use: use.others_cpu),
    ("Cores busy", _cores, lambda use: use.cores_busy),
    ("Threads, main process", _plain, _of("main", lambda process: process.threads)),
    ("Threads, workers", _plain, _of("workers", lambda process: process.threads)),
    ("Main process waiting for a disk", words.share_text, _of("main", lambda process: process.blocked_share)),
    ("Workers waiting for a disk", words.share_text, _of("workers", lambda process: process.blocked_share)),
    ("Read from disk, main process", _rate, _of("main", lambda process: process.read_bytes)),
    ("Read from disk, workers", _rate, _of("workers", lambda process: process.read_bytes)),
    ("Written, main process", _rate, _of("main", lambda process: process.written_bytes)),
    ("Memory, main process", words.bytes_text, _of("main", _shared_once)),
    ("Memory, workers", words.bytes_text, _of("workers", _shared_once)),
    ("Memory still free", words.bytes_text, lambda use: use.memory_available_bytes),
    (
        "Involuntary context switches, main process",
        _per_second,
        _of("main", lambda process: process.involuntary_switches),
    ),
    (
        "Involuntary context switches, workers",
        _per_second,
        _of("workers", lambda process: process.involuntary_switches),
    ),
    ("Page faults from disk, main process", _per_second, _of("main", lambda process: process.major_faults)),
    ("Some task waits for a CPU", words.share_text, lambda use: use.cpu_pressure),
    ("Some task waits for a disk", words.share_text, lambda use: use.io_pressure),
    ("CPU time taken by other virtual machines", words.share_text, lambda use: use.steal_share),
    ("Periods in which the container's CPU limit was used up", words.share_text, lambda use: use.throttled_share),
    ("CPU clock", lambda value: f"{words.amount_text(value)} MHz", lambda use: use.cpu_mhz),
]

INSTEAD = {"Memory, main process": _of("main", _resident), "Memory, workers": _of("workers", _resident)}
"""What such a row says if no window of a side says the other. Memory that processes share counts once there, and for
each of them here, so the two are never mixed."""

DEVICE_ROWS: list[tuple[str, Callable[[float], str], Callable[[DeviceUse], float | None]]] = [
    ("Busy", words.share_text, lambda device: device.utilization),
    ("Memory", words.bytes_text, lambda device: device.memory_bytes),
    ("Power", lambda value: f"{value:.0f} W", lambda device: device.power_watts),
    ("Clock", lambda value: f"{value:.0f} MHz", lambda device: device.sm_clock_mhz),
    ("PCIe in", _rate, lambda device: device.pcie_rx_bytes),
    ("PCIe out", _rate, lambda device: device.pcie_tx_bytes),
]


def _of_device(index: int, value: Callable[[DeviceUse], float | None]) -> Reading:
    def read(use: WindowUse) -> float | None:
        return next((value(device) for device in use.devices if device.index == index), None)

    return read


def _devices(baseline: list[WindowUse], best: list[WindowUse]) -> list[Gpu]:
    """Every GPU as written, and below it under the best setting."""
    names = {device.index: device.name for use in best + baseline for device in use.devices}
    rows = []
    for index, name in sorted(names.items())[:MOST_DEVICES]:
        for setting, uses in (("As written", baseline), ("Best", best)):
            means = [(text, _mean(uses, _of_device(index, value))) for _, text, value in DEVICE_ROWS]
            if any(value is not None for _, value in means):
                figures = [text(value) if value is not None else words.DASH for text, value in means]
                rows.append(Gpu(index, name, setting, figures))
    return rows


def _means(baseline: list[WindowUse], best: list[WindowUse]) -> list[Mean]:
    means = []
    for name, text, reading in ROWS:
        one, other = _mean(baseline, reading), _mean(best, reading)
        if name in INSTEAD:
            rough = [_mean(uses, INSTEAD[name]) for uses in (baseline, best)]
            if any(exact is None and found is not None for exact, found in zip((one, other), rough, strict=True)):
                one, other = rough
        # Nothing of something on both sides is no news.
        if one or other:
            said = [text(value) if value is not None else words.DASH for value in (one, other)]
            means.append(Mean(name, *said))
    return means


def _mean(uses: Iterable[WindowUse], reading: Reading) -> float | None:
    """Weighed by samples: a long window says more."""
    known = [(value, max(use.samples, 1)) for use in uses if (value := reading(use)) is not None]
    known = [(value, weight) for value, weight in known if math.isfinite(value)]
    return sum(value * weight for value, weight in known) / sum(weight for _, weight in known) if known else None


# Which series belong together, by the names that the monitor gives them.


@dataclass(frozen=True)
class _Quantity:
    """A panel: its series by name, with their words; or a field of every GPU. `quiet`: left out where it stays 0."""

    title: str
    unit: Callable[[float], str]
    least: float
    series: Mapping[str, str] = field(default_factory=dict)
    gpu: str = ""
    binary: bool = False
    quiet: bool = False


def _watts(value: float) -> str:
    return f"{value:.0f} W"


def _megahertz(value: float) -> str:
    return f"{value:.0f} MHz"


CPU = {
    "main_cpu": "main process",
    "workers_cpu": "workers",
    "other_processes_cpu": "other processes of the run",
    "others_cpu": "other programs",
}
DELAYS = {
    "cpu_pressure": "some task waits for a CPU",
    "io_pressure": "some task waits for a disk",
    "memory_pressure": "some task waits for memory",
    "workers_blocked_share": "workers wait for a disk",
    "steal_share": "other virtual machines",
    "throttled_share": "CPU limit used up",
}
RESIDENT = {"main_rss_bytes": "main process", "workers_rss_bytes": "workers"}
FREE = {"memory_available_bytes": "still free", "page_cache_bytes": "files kept in memory"}
DISK = {
    "session_read_bytes": "read by the run",
    "session_written_bytes": "written by the run",
    "read_bytes": "read, whole machine",
    "written_bytes": "written, whole machine",
}
QUANTITIES = [
    _Quantity("GPU busy", words.share_text, 1.0, gpu="utilization"),
    _Quantity("GPU memory", words.bytes_text, 1024.0, gpu="memory_bytes", binary=True),
    _Quantity("GPU power", _watts, 1.0, gpu="power_watts"),
    _Quantity("CPU, in cores", lambda value: f"{value:g}", 1.0, CPU),
    _Quantity("Memory of the run", words.bytes_text, 1024.0, RESIDENT, binary=True),
    _Quantity("Memory of the machine", words.bytes_text, 1024.0, FREE, binary=True),
    _Quantity("Disk", _rate, 1024.0, DISK, binary=True, quiet=True),
    _Quantity("Delays", words.share_text, 0.1, DELAYS, quiet=True),
    _Quantity("CPU clock", _megahertz, 1.0, {"cpu_mhz": "mean of all cores"}),
    _Quantity("GPU clock", _megahertz, 1.0, gpu="sm_clock_mhz"),
    _Quantity("PCIe, to the GPU", _rate, 1024.0, gpu="pcie_rx_bytes", binary=True, quiet=True),
]


def _panels(utilization: Utilization) -> list[machine.Panel]:
    panels = []
    for quantity in QUANTITIES:
        found = [(said, utilization.series[name]) for name, said in _names(quantity, utilization)]
        lines = [machine.Line(said, values) for said, values in found if _worth_drawing(values, quantity.quiet)]
        lines = lines[: machine.LINE_KINDS]
        if lines:
            title = quantity.title if len(lines) > 1 else f"{quantity.title}: {lines[0].name}"
            panels.append(machine.Panel(title, lines, quantity.unit, quantity.least, quantity.binary))
    return panels


def _names(quantity: _Quantity, utilization: Utilization) -> list[tuple[str, str]]:
    """The series of a panel that are there, in order, with their words."""
    if not quantity.gpu:
        return [(name, said) for name, said in quantity.series.items() if name in utilization.series]
    found = (re.fullmatch(rf"gpu(\d+)_{quantity.gpu}", name) for name in utilization.series)
    return [(each[0], f"GPU {each[1]}") for each in sorted(filter(None, found), key=lambda each: int(each[1][:9]))]


def _worth_drawing(values: Sequence[float | None], quiet: bool) -> bool:
    known = [value for value in values if value is not None and math.isfinite(value)]
    return any(known) if quiet else bool(known)
