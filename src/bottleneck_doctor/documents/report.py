"""The outcome of one examination, as one versioned, typed document.

Everything that a report, the terminal, a comparison or the gate may say comes from a `Result`; `report.json` is its
JSON form and its shape is a promise to other programs. Units: seconds, bytes, shares from 0 to 1, ratios to the
baseline (above 1 is faster). `docs/report.schema.json` is generated from these classes by `python -m
bottleneck_doctor.documents.report`.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Union

from bottleneck_doctor.documents import codec
from bottleneck_doctor.errors import DoctorError

FORMAT = 1
"""Number of the document's shape. Raised when a reader of the old shape would misread the new one."""

SettingValue = Union[bool, int, float, str]
Setting = dict[str, SettingValue]
"""Values for some knobs, by knob name; the empty setting is the baseline: what the user wrote."""

Status = Literal["faster", "slower", "no_difference", "cannot_tell", "not_applicable", "failed"]
Risk = Literal["identical", "numerics", "semantics"]


@dataclass(frozen=True, kw_only=True)
class Speedup:
    """A measured ratio to the baseline with its 95 % interval. `pairs` counts window pairs, `sessions` processes."""

    estimate: float
    low: float
    high: float
    pairs: int
    sessions: int


@dataclass(frozen=True, kw_only=True)
class Tool:
    name: str
    version: str


@dataclass(frozen=True, kw_only=True)
class Entrypoint:
    """What the user asked to run, as they wrote it."""

    argv: list[str]
    cwd: str


@dataclass(frozen=True, kw_only=True)
class Environment:
    """The machine and the libraries, as the user's own process saw them."""

    python: str
    torch: str
    platform: str
    cpu: str
    usable_cpus: int
    total_cpus: int
    memory_bytes: int
    devices: list[str]
    variables: dict[str, str]
    fingerprint: str


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """One sentence with figures, and the fix it speaks of (None where nothing is faster).

    `together`: the sentence promises the combination, and `fix` is the best single one."""

    sentence: str
    finding: str | None = None
    fix: str | None = None
    together: bool = False


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """The user's own setting, measured. `data_wait_share`: part of a step spent waiting for the next batch.

    `batch_size`: mean samples a step; None where nobody counts samples, without a loader for one. There
    `samples_per_second` is steps a second."""

    samples_per_second: float
    steps_per_second: float
    step_ms: float
    windows: int
    sessions: int
    data_wait_share: float | None
    settings: Setting
    rung: str
    period: int
    batch_size: float | None
    epoch_batches: int | None
    epoch_turn_seconds: float | None
    device: str


@dataclass(frozen=True, kw_only=True)
class Noise:
    """The baseline measured a second time as if it were a fix, and the ratio below which nothing is claimed."""

    aa_ratio: Speedup | None
    floor: float


@dataclass(frozen=True, kw_only=True)
class Change:
    """The edit to make in the user's own code. `diff` is a unified diff without file headers; "" where none fits."""

    file: str
    line: int
    diff: str
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class FixOutcome:
    """What became of one fix.

    `speedup` is the promise: whole epochs of the user's own length, against the baseline. `steady` leaves the epoch's
    start and end out. `over` is the setting that this fix builds on (empty: the baseline) and `added` its own worth
    on top of that. `confirmed` uses only processes started after the fix was chosen. `memory` and `numerics` are None:
    no release has written them, and no page draws them.
    """

    id: str
    title: str
    why: str
    setting: Setting
    status: Status
    risk: Risk
    reason: str
    speedup: Speedup | None = None
    steady: Speedup | None = None
    over: Setting = field(default_factory=dict)
    added: Speedup | None = None
    confirmed: Speedup | None = None
    change: Change | None = None
    memory: dict[str, int] | None = None
    numerics: dict[str, list[float]] | None = None
    more_blocks: int | None = None


@dataclass(frozen=True, kw_only=True)
class LadderStep:
    """One rung of the combination: the fix added last, everything set by then, and the speedup so far."""

    fix: str
    setting: Setting
    speedup: Speedup


@dataclass(frozen=True, kw_only=True)
class Combination:
    """The fixes together. `risk` is the gravest of theirs, `changes` are the edits that make all of them."""

    setting: Setting
    speedup: Speedup
    confirmed: Speedup | None
    ladder: list[LadderStep]
    risk: Risk = "identical"
    changes: list[Change] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class WorkerPoint:
    num_workers: int
    samples_per_second: float
    speedup: Speedup
    steady: Speedup
    is_baseline: bool = False


@dataclass(frozen=True, kw_only=True)
class Workers:
    """Measured speed against number of loader workers."""

    curve: list[WorkerPoint]
    usable_cpus: int


@dataclass(frozen=True, kw_only=True)
class Site:
    """A place in the user's code: a file and a line counted from 1."""

    file: str
    line: int


@dataclass(frozen=True, kw_only=True)
class Warning:
    """Something that makes the figures weaker. `slug` has a section in docs/messages.md."""

    slug: str
    sentence: str


@dataclass(frozen=True, kw_only=True)
class Phases:
    """Shares of wall time, summing to 1: what one step of the user's loop is made of.

    `between` is everything else that the loop does: losses computed by plain functions, logging, metrics, callbacks.
    `communication` is 0 with one process.
    """

    data_wait: float
    host_to_device: float
    forward: float
    backward: float
    optimizer: float
    zero_grad: float
    between: float
    communication: float = 0.0


@dataclass(frozen=True, kw_only=True)
class PhaseTable:
    """Phases as written, and under `best_setting` where something was faster. Measured with synchronisation."""

    baseline: Phases
    best: Phases | None = None
    best_setting: Setting = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class StepTimes:
    """How regular the steps as written are. Milliseconds; `jitter` is p95 over p50; `outliers` lie over 3 sigma.

    `ready_share`: part of the batches that lay ready when asked for. `first_step_seconds`: from the start of the
    process to the first step.
    """

    steps: int
    mean_ms: float
    p50_ms: float
    p95_ms: float
    jitter: float
    outliers: int
    wait_mean_ms: float
    wait_p95_ms: float
    ready_share: float
    first_step_seconds: float | None


@dataclass(frozen=True, kw_only=True)
class EpochPause:
    """Mean seconds from an epoch's last step to the next one's first batch, and their parts; `seen` epochs.

    `first_batches_seen`: how many first batches were timed in the training's own pauses. Where it is 0, `first_batch`
    is what starting an epoch cost in windows.
    """

    seen: int
    seconds: float
    evaluation: float
    saving: float
    first_batch: float
    rest: float
    first_batches_seen: int = 0


@dataclass(frozen=True, kw_only=True)
class TransformCost:
    """One transform, in a chain or alone: milliseconds a sample, and its share of the time to fetch a sample.

    Time that goes by in another transform that it calls counts for that one alone. `file`, `line`: where its own code
    begins if that is the user's. `made_file`, `made_line`: the user's line that makes it, where that is known.
    """

    name: str
    ms_per_sample: float
    share_of_fetch: float
    file: str = ""
    line: int = 0
    made_file: str = ""
    made_line: int = 0


@dataclass(frozen=True, kw_only=True)
class WorkerActivity:
    """What one loader worker did. Seconds a batch; `idle_share` is the part of the time in which it made no batch."""

    worker: int
    batches: int
    fetch_seconds: float
    collate_seconds: float
    idle_share: float


@dataclass(frozen=True, kw_only=True)
class FileUse:
    """Files that loading opened: how many a batch, their mean size in bytes, and the file system they lie on."""

    per_batch: float
    mean_bytes: float
    file_system: str
    remote: bool


@dataclass(frozen=True, kw_only=True)
class Loading:
    """How batches are made under a setting, measured where they are made. Milliseconds a batch.

    `hand_over_ms`: waited for a batch that a worker had finished, until it arrived in the main process; None without
    workers. `out_of_order_share`: batches that were finished before an earlier one.
    """

    setting: Setting
    num_workers: int
    batches: int
    samples_per_batch: float
    bytes_per_batch: float
    fetch_ms: float
    fetch_p95_ms: float
    collate_ms: float
    hand_over_ms: float | None
    out_of_order_share: float
    transforms: list[TransformCost] = field(default_factory=list)
    workers: list[WorkerActivity] = field(default_factory=list)
    files: FileUse | None = None
    fetch_site: Site | None = None
    """Where the user's `__getitem__` (or `__iter__`) begins; of several, one in another, that which does most."""
    collate_site: Site | None = None
    """Where the user's own collate function begins; None for torch's or another library's."""
    collate_name: str = ""
    """The collate function, or the class of an object that is called as one; "" where it isn't known."""
    collate_module: str = ""
    """The module that it is defined in."""
    computing: float | None = None
    """Cores that whoever makes a batch keeps busy meanwhile: well below 1, it waits for something."""
    delayed: float | None = None
    """The part of the time of making a batch in which its maker stood ready and others had the cores."""


@dataclass(frozen=True, kw_only=True)
class Event:
    """A stretch of one lane of the timeline. `lane`: "main" or "worker 0" …; seconds from the timeline's start.

    `kind`: a phase's name in the main lane, "fetch" or "collate" in a worker's.
    """

    lane: str
    kind: str
    start: float
    seconds: float
    batch: int | None = None


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """Some consecutive steps under a setting, with each worker's batches."""

    setting: Setting
    seconds: float
    events: list[Event]


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
class SynchronisingCall:
    """A place in the user's code that takes a value out of a tensor (`.item()`, `.cpu()`, `print` …), which makes the
    host wait for the device where there is one: how often a step, and milliseconds a step."""

    name: str
    path: str
    line: int
    per_step: float
    ms_per_step: float


@dataclass(frozen=True, kw_only=True)
class GarbageCollection:
    """Python's collector during timed steps of the main process: runs, their milliseconds a step, share of the time."""

    collections: int
    ms_per_step: float
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


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A statement drawn from the evidence by one rule.

    `weight`, from 0 to 1: what findings are ordered by; a cause takes over that of what it explains. `share`: the share
    of the training's time that was measured for it; None where none was. `evidence`: the figures of the sentence.
    `fixes`: ids of the fixes that answer it.
    """

    id: str
    sentence: str
    evidence: dict[str, float]
    fixes: list[str]
    title: str = ""
    weight: float = 0.0
    site: Site | None = None
    advice: str = ""
    share: float | None = None


@dataclass(frozen=True, kw_only=True)
class NotJudged:
    """A rule that could not be applied, and what was missing. Not the same as "fine"."""

    id: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class RankPart:
    """What one of several ranks measured in a window."""

    rank: int
    steps: int
    samples: float
    seconds: float
    wait_seconds: float
    status: Literal["ok", "failed", "no_effect"] = "ok"
    reason: str = ""
    phases: Phases | None = None
    """Of a window that looked for them; waiting for other ranks is in `backward`, where they meet."""


@dataclass(frozen=True, kw_only=True)
class Window:
    """One window as measured. `seconds` is the timed part; `turn_seconds` what an epoch's start and end cost.

    Of several ranks `seconds` is the time of the slowest, which is `rank`, and `samples` are those of all; `parts` are
    the ranks' own figures (empty with one process).
    """

    session: int
    rank: int
    block: int
    setting: Setting
    mode: str
    steps: int
    samples: float
    seconds: float
    lead_in_steps: int
    lead_in_seconds: float
    wait_seconds: float
    turn_seconds: float | None
    whole_epochs: int
    queue_change: int
    ready_share: float | None
    effect: dict[str, bool]
    started: float
    status: Literal["ok", "failed", "no_effect", "discarded"] = "ok"
    reason: str = ""
    label: str = ""
    ended: float | None = None
    """When it was over, by the clock of `started`. None in reports of earlier releases."""
    parts: list[RankPart] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class SessionRecord:
    """One start of the entrypoint: how long set-up took, why it ended, and the load of others meanwhile.

    `log` is "": no release has written it, and no page shows it.
    """

    number: int
    setup_seconds: float
    seconds: float
    ended: str
    other_load: float | None = None
    log: str = ""


@dataclass(frozen=True, kw_only=True)
class Rank:
    """One of the processes that train together, and the host it ran on."""

    rank: int
    local_rank: int
    host: str


@dataclass(frozen=True, kw_only=True)
class Protection:
    """How the user's files were kept as they were.

    `sandbox`: changes went into a layer that was thrown away. `guard`: what was changed was put back, what was new was
    removed. `reason`: why there was no sandbox. `covered`: folders of the sandbox; a guard stood over all others.
    `unprotected`: what neither holds, in words.
    """

    kind: Literal["sandbox", "guard", "none"]
    reason: str = ""
    covered: list[str] = field(default_factory=list)
    unprotected: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Method:
    """How the figures were made: enough to repeat them."""

    command: list[str]
    seed: int
    budget_seconds: float
    seconds: float
    ways: Literal["windows", "fresh-runs"]
    sessions: list[SessionRecord]
    confidence: float = 0.95
    equivalence: float = 0.02
    protection: Protection | None = None
    """None in reports of earlier releases."""
    source: bool = True
    """Whether lines of the user's code are in the report; with `--no-source` their texts and all diffs are empty."""


@dataclass(frozen=True, kw_only=True)
class Result:
    tool: Tool
    created: str
    entrypoint: Entrypoint
    environment: Environment
    verdict: Verdict
    baseline: Baseline | None
    noise: Noise | None
    ceilings: dict[str, Speedup]
    fixes: list[FixOutcome]
    combination: Combination | None
    workers: Workers | None
    phases: PhaseTable | None
    utilization: Utilization | None
    profiles: Profiles | None
    findings: list[Finding]
    warnings: list[Warning]
    windows: list[Window]
    method: Method
    steps: StepTimes | None = None
    epoch_pause: EpochPause | None = None
    loading: list[Loading] = field(default_factory=list)
    timelines: list[Timeline] = field(default_factory=list)
    synchronising: list[SynchronisingCall] = field(default_factory=list)
    garbage: GarbageCollection | None = None
    not_judged: list[NotJudged] = field(default_factory=list)
    ranks: list[Rank] = field(default_factory=list)
    """Empty where one process trains."""
    format: int = FORMAT


def to_json(result: Result) -> bytes:
    """Encode as indented UTF-8 JSON that ends in a newline."""
    return codec.encode(result)


def from_json(data: bytes, *, source: str) -> Result:
    """Decode a `report.json`. `source` names it in messages.

    Raises `DoctorError` `report-unreadable` where it is not such a document and `report-too-new` where its format is
    newer than this release reads.
    """
    try:
        return codec.decode(data, Result, newest=FORMAT)
    except codec.OtherFormat as other:
        if other_kind := _other_kind(data):
            raise _unreadable(source, other_kind) from other
        raise DoctorError(
            "report-too-new",
            f"{source} has format {other.found}; this release reads up to {FORMAT}.",
            "Install a newer bottleneck-doctor.",
        ) from other
    except codec.Unreadable as error:
        raise _unreadable(source, _other_kind(data) or str(error)) from error


def _unreadable(source: str, why: str) -> DoctorError:
    return DoctorError(
        "report-unreadable",
        f"{source} is not a report.json of bottleneck-doctor: {why}.",
        "Give the report.json that `doctor run` wrote.",
    )


def _other_kind(data: bytes) -> str:
    """What another document of ours is; "" of all else."""
    with contextlib.suppress(codec.Unreadable):
        head = codec.plain(data)
        if isinstance(head, dict) and head.get("kind") == "bottleneck-doctor baseline":
            return "it is what `doctor baseline` wrote, for `doctor check --baseline`"
        if isinstance(head, dict) and {"base", "head", "metrics"} <= head.keys():
            return "it is what `doctor check` wrote, which holds two revisions already"
    return ""


def json_schema() -> bytes:
    """JSON Schema of `report.json`, generated from the classes above."""
    return codec.schema(Result, "bottleneck-doctor report")


if __name__ == "__main__":
    Path("docs/report.schema.json").write_bytes(json_schema())
