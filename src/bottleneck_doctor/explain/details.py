"""The shapes of what windows that explain found, checked where it enters: it was written in somebody else's process.

What fits its shape can be read; an error in reading it is a bug of ours, and nothing here hides it. Pure.
"""

from __future__ import annotations

from typing import Any, TypedDict

import msgspec


class Unreadable(Exception):
    """What a window found has another shape; the text says where."""


class Place(TypedDict):
    """A place in the user's code."""

    file: str
    line: int


class Synchronising(TypedDict):
    """Calls that take values out of tensors, at one place. `library`: whose code does it, "" where the line itself
    does. Seconds over all of them."""

    name: str
    file: str
    line: int
    library: str
    count: int
    seconds: float


class Garbage(TypedDict):
    """Runs of Python's collector, and their seconds."""

    collections: int
    seconds: float


class _Transform(TypedDict):
    name: str
    site: Place | None
    seconds: float


class Transform(_Transform, total=False):
    """One transform. `made`: the line that makes it; `holds`: whether it calls others."""

    made: Place | None
    holds: bool


class Worker(TypedDict):
    """What one loader worker did."""

    worker: int
    batches: int
    fetch_seconds: float
    collate_seconds: float
    busy_seconds: float


class Files(TypedDict):
    """Files that loading opened, and those of them whose size is known, with the sum of their bytes."""

    opened: int
    sized: int
    bytes: float
    file_system: str
    remote: bool


class Padding(TypedDict):
    """Places of the rows of batches: all, those that hold something, and those that are left without needless
    padding."""

    places: int
    filled: int
    needed: int


class _Loading(TypedDict):
    num_workers: int
    fetch_seconds: list[float]
    collate_seconds: float
    samples: float
    bytes: float
    hand_over_seconds: list[float]
    delivered: int
    out_of_order: int
    span: float
    workers: list[Worker]
    files: Files | None
    fetch_site: Place | None
    collate_site: Place | None
    transforms: list[Transform]


class Loading(_Loading, total=False):
    """How batches were made. See `runtime/modes/loading.py`."""

    padding: Padding | None
    computed_seconds: float | None
    delayed_seconds: float | None
    collate_name: str
    collate_module: str


class Timeline(TypedDict):
    """Events of some steps: lane, kind, start, seconds, batch."""

    seconds: float
    events: list[tuple[str, str, float, float, int | None]]


class Waited(TypedDict):
    """Seconds for which an evaluation waited for one loader, its workers, and where it is made."""

    seconds: float
    workers: int
    file: str
    line: int


class Collected(TypedDict):
    """Seconds of garbage collection that one line asked for; "" and 0 where none did."""

    seconds: float
    file: str
    line: int


class Pauses(TypedDict):
    """Totals since the process began: epochs that ended, and seconds of what lies between them."""

    seen: int
    evaluation: float
    of_training: float
    waiting: list[Waited]
    saving: float
    rest: float
    in_mode: float
    first_batch: float
    first_batches: int
    collecting: list[Collected]
    passes: int
    with_graph: int


class Interrupted(TypedDict):
    """Evaluations in the midst of epochs: how many since the process began, how many of these are only known by the
    model's evaluation mode, the batches from the first to the last, and seconds of the latest."""

    seen: int
    by_mode: int
    batches: int
    seconds: list[float]
    passes: int
    with_graph: int


class PhaseSeconds(TypedDict):
    """Seconds of each phase, which exclude one another."""

    data_wait: float
    host_to_device: float
    forward: float
    backward: float
    optimizer: float
    zero_grad: float
    between: float
    communication: float


class Exchanges(TypedDict):
    """Backward passes, those of them that exchanged gradients with other processes, and updates of optimizers."""

    passes: int
    exchanged: int
    updates: int


class StepEvaluations(TypedDict):
    """How often the model was in evaluation mode within steps, and the seconds of that. See `runtime/loop/evaluated.py`
    for `passes` and `with_graph`."""

    times: int
    seconds: float
    passes: int
    with_graph: int


class TimedPart(TypedDict):
    """Seconds in the calls of one module."""

    name: str
    seconds: float


class Frozen(TypedDict):
    """Frozen parts that one line of the user's leads to. See `runtime/modes/frozen.py`."""

    file: str
    line: int
    seconds: float
    parts: list[TimedPart]
    batch: bool
    random: bool


class PhasesDetail(TypedDict):
    """What a window of phases found. See `runtime/modes/phases.py`."""

    phases: PhaseSeconds
    seconds: float
    step_seconds: list[float]
    wait_seconds: list[float]
    ready: int
    synchronising: list[Synchronising]
    garbage: Garbage
    exchanges: Exchanges | None
    evaluations: StepEvaluations
    frozen: list[Frozen]
    loading: Loading | None
    loading_missing: str
    timeline: Timeline | None


class PausesTold(TypedDict):
    """`WindowDone.pauses`, where anything was seen."""

    epoch_pause: Pauses
    interruptions: Interrupted


class Function(TypedDict):
    """One function that was timed; `lines` holds line, hits and seconds."""

    name: str
    path: str
    first_line: int
    end_line: int
    seconds: float
    lines: list[tuple[int, int, float]]


class LinesDetail(TypedDict):
    """What a window of lines found. See `runtime/modes/lines.py`."""

    steps: int
    functions: list[Function]


class TraceDetail(TypedDict):
    """What a traced window found. `operators` holds name, calls, and microseconds on the host and on the device."""

    steps: int
    seconds: float
    device: bool
    operators: list[tuple[str, int, float, float]]
    waiting: str


def check(detail: dict[str, Any], shape: type) -> None:
    """Raise `Unreadable` where `detail` is not of this shape; it may hold more."""
    try:
        msgspec.convert(detail, shape)
    except msgspec.ValidationError as error:
        raise Unreadable(str(error)) from error
