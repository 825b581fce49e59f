"""The outcome of one check, as one versioned, typed document: what every output of `doctor check` and of `doctor try`
is made from. In one that was made by `doctor try` the base is the program as written, and the head the edited one.

Units: seconds, bytes, shares from 0 to 1. A *change* of seconds or bytes is relative (0.05: five percent more than the
base); a change of a share is in points (0.05: from 0.10 to 0.15). More is always worse.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from bottleneck_doctor.documents.fingerprint import Difference
from bottleneck_doctor.documents.measured import Speedup
from bottleneck_doctor.documents.report import Entrypoint, Environment, Site, Tool, Warning

FORMAT = 1
"""Number of the document's shape. Raised when a reader of the old shape would misread the new one."""

STEP_TIME = "step_time"
DATA_WAIT = "data_wait"
HOST_MEMORY = "host_memory"
DEVICE_MEMORY = "device_memory"
DEVICE_RESERVED = "device_reserved"
FIRST_STEP = "first_step"
EPOCH_OVERHEAD = "epoch_turn"
LEAST_EPOCH_OVERHEAD = 0.05
"""Seconds below which the start and end of an epoch don't matter; shorter ones count as this."""
PHASE = "phase_"
"""Ids of phases begin with this."""

Unit = Literal["seconds", "bytes", "share"]
Level = Literal["off", "warn", "error"]
"""What a regression of a metric does: nothing, a line in the output, or exit code 1."""

Verdict = Literal["regression", "improvement", "unchanged", "cannot_tell", "gone", "new", "not_measured"]
"""`regression`: worse by more than the threshold. `unchanged`: not worse by as much as that. `improvement`: better for
certain. `cannot_tell`: not sure yet, which takes more than an interval of 95 %, for a check looks often. `gone`:
measured on the base only, which is a finding. `new`: on the head only. `not_measured`: on neither. Of the step time of
an edit `unchanged` is neither slower nor faster by as much as the threshold, and `regression` slower for certain."""

Status = Literal["passed", "regressed", "cannot_tell", "new"]
"""Of the whole. `new`: the script is not there on the base, and nothing could be compared."""


@dataclass(frozen=True, kw_only=True)
class StepPart:
    """A part of a step, in seconds a step on both sides, that has become worse for certain where the whole has not.

    `change`, `low`, `high` (95 %): by how much it grew, as a share of the base's whole step.
    """

    title: str
    base: float
    head: float
    change: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One figure on both sides. `change`, `low`, `high` (95 %) and `threshold` as the module says.

    `part`: what decided in the place of the whole, of a step that regressed by what it waits for data; the interval of
    the whole may hold the threshold then.

    `smallest`: the smallest change that this check would have called a regression of nine in ten times.
    `site`: where in the head's sources the change is explained, if it is.
    """

    id: str
    title: str
    unit: Unit
    base: float | None
    head: float | None
    change: float | None
    low: float | None
    high: float | None
    threshold: float
    level: Level
    verdict: Verdict
    smallest: float | None
    sentence: str
    site: Site | None = None
    part: StepPart | None = None


@dataclass(frozen=True, kw_only=True)
class Culprit:
    """Something that grew from base to head and explains a regression: first what was changed, the largest first.

    `base` and `head`: seconds per step. `changed_here`: the line lies in a hunk that differs between the revisions. Of
    a library's function `site` is the changed line that names it; None where no line of the user's own says anything.
    `low`, `high` (95 %): seconds a step by which it grew in the pair that was sampled, by the luck of samples alone;
    None where none were taken of it.
    """

    kind: Literal["phase", "function", "line"]
    name: str
    base: float
    head: float
    sentence: str
    site: Site | None = None
    changed_here: bool = False
    low: float | None = None
    high: float | None = None


LossVerdict = Literal["same", "alike", "moved", "not_finite", "unknown"]
"""`alike`: they differ by no more than chance and rounding do. `not_finite`: the head's are no numbers any more."""


@dataclass(frozen=True, kw_only=True)
class LossPoint:
    """The mean loss of some neighbouring steps, the first of them after `step` optimizer steps; None where it is no
    number."""

    step: int
    base: float | None
    head: float | None


@dataclass(frozen=True, kw_only=True)
class Losses:
    """What the losses of the training's own backward passes say, at equal numbers of optimizer steps.

    `steps`: how many were compared, over all pairs. `difference`: the mean of what the head's are larger by, as a part
    of the base's; None where they can't be compared. `curve`: those of one pair.
    """

    verdict: LossVerdict
    sentence: str
    steps: int
    difference: float | None = None
    curve: list[LossPoint] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class GrowthNode:
    """A function in the call trees of both revisions. `base`, `head`: seconds a step in it or below it.

    `path`: from the repository's root where the file lies there. `line`: the one with the most samples, on the head
    where it is there.
    """

    name: str
    path: str
    line: int
    base: float
    head: float
    own: bool = False
    children: list[GrowthNode] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class GrowthTree:
    """What one kind of process calls on both sides, as py-spy saw it. The root's seconds are those of a whole step."""

    role: Literal["main", "workers"]
    base_samples: int
    head_samples: int
    root: GrowthNode


@dataclass(frozen=True, kw_only=True)
class Side:
    """One of the two sides: a revision, or a program as written or edited. `commit` is None for a stored baseline
    without one, and for what is no revision; `dirty`: with uncommitted changes.

    `result`: the stored baseline's file, if this side is one.
    """

    name: str
    commit: str | None
    dirty: bool = False
    result: str | None = None


@dataclass(frozen=True, kw_only=True)
class PairRecord:
    """One pair of processes, a process of each side, with windows in turn.

    `step_seconds` are pooled over the pair's windows; `log_ratio` is head over base of what a step of the user's loop
    costs, epochs included, by the means over all rounds. `log_error`: its standard error by the pair's rounds alone,
    by which it weighs; None where there was but one.
    """

    number: int
    base_step_seconds: float
    head_step_seconds: float
    log_ratio: float
    windows: int
    log_error: float | None = None


@dataclass(frozen=True, kw_only=True)
class ProcessRecord:
    """One process of the head, where the base is a stored baseline. `step_seconds`: in the mean over its windows."""

    number: int
    step_seconds: float
    windows: int


@dataclass(frozen=True, kw_only=True)
class StoredBase:
    """The stored baseline that a check was held against.

    `taken`: when each of its times began, oldest first; what lies less than an hour apart is one time. `processes`: in
    all. `different`: in what this machine is another one; not empty only where that was allowed.
    """

    file: str
    taken: list[str]
    processes: int
    different: list[Difference] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class TriedEdit:
    """What was tried. `files`: those that differ, by path from the project's root. `diff`: what they differ in, as a
    patch; empty where it can't be told. `arguments`: the program's, in place of those that it was given; None: the
    same. `variables`: of the environment, by name."""

    files: list[str] = field(default_factory=list)
    diff: str = ""
    arguments: list[str] | None = None
    variables: dict[str, str] = field(default_factory=dict)
    speedup: Speedup | None = None
    """How many times as fast the edited program is, by the step time; above 1 is faster. None where too little could be
    measured. Its sessions are processes of the edited program."""


@dataclass(frozen=True, kw_only=True)
class RacedEdit:
    """One of several edits that were compared in one race, each with the program as written. `verdict`: on its step
    time. `sentence`: as of a check of it alone. `pairs`: of processes. `failed`: its program did not train, and
    `sentence` says how."""

    name: str
    verdict: Verdict
    sentence: str
    edit: TriedEdit
    pairs: int
    losses: LossVerdict | None = None
    failed: bool = False


@dataclass(frozen=True, kw_only=True)
class LentSpread:
    """What earlier checks said of how much pairs differ: how many they were, the standard deviation of one pair's
    `log_ratio`, and for how many degrees of freedom it counts."""

    checks: int
    spread: float
    degrees_of_freedom: float


@dataclass(frozen=True, kw_only=True)
class Check:
    """A whole check. `error_rate`: the promised share of identical revisions that are called regressed; of edits that
    change nothing, of those that are called faster or slower.

    `budget`: seconds, 0 where a number of pairs was asked for and no time set.
    """

    format: int = FORMAT
    tool: Tool
    created: str
    entrypoint: Entrypoint
    base: Side
    head: Side
    status: Status
    sentence: str
    metrics: list[Metric]
    pairs: list[PairRecord]
    error_rate: float
    seconds: float
    budget: float
    steady: bool
    commits: list[str] = field(default_factory=list)
    """Commits from base to head, newest first, as `git log --oneline` prints them."""
    culprits: list[Culprit] = field(default_factory=list)
    suspects: list[Culprit] = field(default_factory=list)
    """Functions that were changed and grew in the last pair, the largest first, where the check can't tell whether a
    step did: not yet sure to be the reason of anything."""
    growth: list[GrowthTree] = field(default_factory=list)
    """Where a step grew, call by call; empty where nothing did, or it could not be sampled."""
    warnings: list[Warning] = field(default_factory=list)
    environment: Environment | None = None
    command: list[str] = field(default_factory=list)
    """What does the same again."""
    stored: StoredBase | None = None
    """None where the base is a revision."""
    processes: list[ProcessRecord] = field(default_factory=list)
    """Of the head, against a stored baseline; then there are no pairs."""
    edit: TriedEdit | None = None
    """None where the sides are no program as written and edited."""
    losses: Losses | None = None
    """None where no losses were seen, and in documents of earlier releases."""
    lent: LentSpread | None = None
    """None where no earlier checks were given, or too few that are like this one."""
    race: list[RacedEdit] = field(default_factory=list)
    """Several edits that were compared at once, best first; the document is about the first of them. Empty where there
    was but one."""
