"""What was measured: windows, the baseline with its noise and its phases, and the speedups that come out of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Union

SettingValue = Union[bool, int, float, str]
Setting = dict[str, SettingValue]
"""Values for some knobs, by knob name; the empty setting is the baseline: what the user wrote."""


@dataclass(frozen=True, kw_only=True)
class Speedup:
    """A measured ratio to the baseline with its 95 % interval. `pairs` counts window pairs, `sessions` processes."""

    estimate: float
    low: float
    high: float
    pairs: int
    sessions: int


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """The user's own setting, measured. `data_wait_share`: part of a step spent waiting for the next batch.

    `batch_size`: mean samples a step; None where nobody counts samples, without a loader for one. There
    `samples_per_second` is steps a second, or calls of the model where these differ from step to step. A step is one of
    average size."""

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
    collecting_seconds: float | None = None
    """For how long Python's garbage collector runs between two epochs: a part of what speedups are about. None where no
    window showed it, and in reports of earlier releases."""


@dataclass(frozen=True, kw_only=True)
class Noise:
    """The baseline measured a second time as if it were a fix, and the ratio below which nothing is claimed."""

    aa_ratio: Speedup | None
    floor: float


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
class Surroundings:
    """What the machine did during the timed part of a window, from counters read just before and just after it.

    Cores are CPU seconds a second. None is what this system does not tell. `cpus`: how many the machine has.
    """

    cpus: float | None = None
    own_cpu: float | None = None
    """Cores that the processes which train, their workers and we ourselves used."""
    others_cpu: float | None = None
    """Cores that all other programs kept busy."""
    steal_share: float | None = None
    """Part of the time of all CPUs that the host of this virtual machine gave to others."""
    throttled_share: float | None = None
    """Part of the periods of a CPU quota in which it was used up; None without a quota."""
    cpu_pressure: float | None = None
    """Part of the time in which any task of the machine, ours included, waited for a CPU."""
    io_pressure: float | None = None
    """The same of waiting for a disk."""
    own_queued: float | None = None
    """Threads of ours that were ready to run and had no CPU, on average."""
    others_wanted: float | None = None
    """Threads of other programs that ran or were ready to, on average: what others wanted of the CPUs, whatever we left
    them of it. No counter tells it: this is the smaller one of what was seen in samples and of what others got, at a
    fair share."""
    faults: float | None = None
    """Pages of memory a second that the kernel gave to the process that trains. None in reports of earlier releases."""
    kernel_cpu: float | None = None
    """Cores that the kernel used for the process that trains, as for clearing these pages."""


@dataclass(frozen=True, kw_only=True)
class WindowMemory:
    """Memory as it was at the end of a window, in bytes, of all ranks together. None is what this system does not tell.

    `peak` and `device_peak` are the most that was held since the process began: they tell what a window needs only if
    it raises them.
    """

    peak: int | None
    """Of the processes that train."""
    workers: int | None
    """What the loader's workers share with no other process. None also where they had ended by then."""
    device_peak: int | None = None
    """On the device that holds most; None without a device."""


@dataclass(frozen=True, kw_only=True)
class Exchanges:
    """How often processes that train together exchanged gradients: backward `passes`, those that `exchanged` them, and
    `updates` of optimizers."""

    passes: int
    exchanged: int
    updates: int


@dataclass(frozen=True, kw_only=True)
class WindowLoss:
    """The losses of a window's steps, those of its lead-in included. `mean` and `scatter`, a standard deviation from
    step to step, are those of the finite ones; None where there is none."""

    steps: int
    not_finite: int
    mean: float | None
    scatter: float | None


@dataclass(frozen=True, kw_only=True)
class Window:
    """One window as measured. `seconds` is the timed part; `turn_seconds` what an epoch's start and end cost.
    A window that warmed a process up, or was disturbed and taken again, is `discarded`: it counts for nothing.

    Without a loader, `samples` are steps, or calls of the model where these differ from step to step.
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
    around: Surroundings | None = None
    """What the machine did meanwhile. None where nothing was timed or told, and in reports of earlier releases."""

    loss: WindowLoss | None = None
    """None where no loss was seen, and in reports of earlier releases."""

    memory: WindowMemory | None = None
    """None where the window failed, and in reports of earlier releases."""

    elements: int | None = None
    """Elements of the tensors in the batches of its timed part, of all ranks together. None where nobody counts them,
    and in reports of earlier releases."""

    turns: int = 0
    """Epochs that ended in it, and were followed by the next one in it. 0 in reports of earlier releases."""

    turns_collecting: float = 0.0
    """For how long Python's garbage collector ran between these epochs, in seconds."""
