"""The machine as it was sampled, and the profiles: where the code spends its time, by function, line and operator."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from bottleneck_doctor.documents.measured import Warning


@dataclass(frozen=True, kw_only=True)
class ProcessUse:
    """Means over one window of one process, or of all workers together. None is a gap: the system does not say.

    `cpu_user`, `cpu_system`: cores. `blocked_share`: part of the time that it waited for a disk. Rates are a second.
    """

    role: Literal["main", "workers", "other"]
    processes: int
    cpu_user: float | None = None
    cpu_system: float | None = None
    threads: float | None = None
    voluntary_switches: float | None = None
    involuntary_switches: float | None = None
    minor_faults: float | None = None
    major_faults: float | None = None
    rss_bytes: float | None = None
    pss_bytes: float | None = None
    read_bytes: float | None = None
    written_bytes: float | None = None
    blocked_share: float | None = None


@dataclass(frozen=True, kw_only=True)
class DeviceUse:
    """One GPU over one window, by NVML: shares from 0 to 1, bytes, watts, megahertz, bytes a second."""

    index: int
    name: str
    utilization: float | None = None
    memory_bytes: float | None = None
    memory_total_bytes: float | None = None
    power_watts: float | None = None
    sm_clock_mhz: float | None = None
    throttle_reasons: list[str] = field(default_factory=list)
    pcie_rx_bytes: float | None = None
    pcie_tx_bytes: float | None = None


@dataclass(frozen=True, kw_only=True)
class WindowUse:
    """The machine during one window (an index into `Result.windows`)."""

    window: int
    label: str
    samples: int
    processes: list[ProcessUse]
    devices: list[DeviceUse] = field(default_factory=list)
    cores_busy: float | None = None
    others_cpu: float | None = None
    """Cores kept busy by programs that are neither the session's nor the doctor's."""
    memory_available_bytes: float | None = None
    io_pressure: float | None = None
    cpu_pressure: float | None = None
    steal_share: float | None = None
    throttled_share: float | None = None
    cpu_mhz: float | None = None


@dataclass(frozen=True, kw_only=True)
class Span:
    """A window's place on the time axis of `Utilization`."""

    start: float
    end: float
    label: str
    session: int


@dataclass(frozen=True, kw_only=True)
class Utilization:
    """The machine as sampled from outside. `times` are seconds since the first sample; series by name, None is a gap.

    `monitor_cpu`: cores that the sampling itself took.
    """

    interval_seconds: float
    monitor_cpu: float
    times: list[float]
    series: dict[str, list[float | None]]
    windows: list[WindowUse]
    spans: list[Span] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    """What could not be read here, in words."""


@dataclass(frozen=True, kw_only=True)
class HotFunction:
    """A deepest function of the sampled stacks, and the user's own line that led there ("" and 0 where none did)."""

    role: Literal["main", "workers"]
    name: str
    path: str
    line: int
    own_name: str
    own_path: str
    own_line: int
    share: float
    count: int


@dataclass(frozen=True, kw_only=True)
class CallNode:
    """A function in the call tree, by where it was called from; `count` samples in it or below it."""

    name: str
    path: str
    line: int
    count: int
    own: bool = False
    children: list[CallNode] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class SamplingProfile:
    """What py-spy saw during windows of the training as written. Trees by role: "main" and "workers"."""

    rate: int
    seconds: float
    samples: dict[str, int]
    functions: list[HotFunction]
    trees: dict[str, CallNode]
    files: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class LineCost:
    """One line of a listing: how often it ran, its seconds, and its share of the function. None where it never ran."""

    line: int
    text: str
    hits: int | None = None
    seconds: float | None = None
    share: float | None = None


@dataclass(frozen=True, kw_only=True)
class LineListing:
    """One function (or a module's top level) line by line."""

    name: str
    path: str
    first_line: int
    seconds: float
    lines: list[LineCost]


@dataclass(frozen=True, kw_only=True)
class LineProfile:
    """What line_profiler measured with 0 workers in a process of its own."""

    steps: int
    listings: list[LineListing]
    files: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Operator:
    """One operator or kernel over the traced steps. Milliseconds of its own, without what it calls."""

    name: str
    calls: int
    cpu_ms: float
    device_ms: float
    share: float


@dataclass(frozen=True, kw_only=True)
class DeviceProfile:
    """What torch.profiler measured over a few steps. Device figures are None on a machine without one."""

    steps: int
    seconds: float
    operators: list[Operator]
    kernels: list[Operator] = field(default_factory=list)
    utilization: float | None = None
    sm_efficiency: float | None = None
    occupancy: float | None = None
    tensor_core_share: float | None = None
    tensor_core_eligible_share: float | None = None
    memcpy_share: float | None = None
    pageable_copies: int | None = None
    idle_share: float | None = None
    idle_cause: str = ""
    kernels_per_step: float | None = None
    kernel_mean_us: float | None = None
    files: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Profiles:
    """Where the code spends its time. A part that could not be had is None and has its reason in `missing`."""

    sampling: SamplingProfile | None = None
    lines: LineProfile | None = None
    device: DeviceProfile | None = None
    missing: list[Warning] = field(default_factory=list)
