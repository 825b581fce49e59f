"""Why the training takes as long as it does: phases, steps, pauses, loading, and the findings drawn from them."""

from __future__ import annotations

from dataclasses import dataclass, field

from bottleneck_doctor.documents.measured import Phases, Setting


@dataclass(frozen=True, kw_only=True)
class Site:
    """A place in the user's code: a file and a line counted from 1."""

    file: str
    line: int


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
    process to the first step, and `first_batch_seconds`: the part of it in which training waited for its first batch;
    None where nothing loads, and in reports of earlier releases. `evaluations`: how often the model was in evaluation
    mode within these steps, and `evaluation_share`: the part of their time that this took. `passes` and `with_graph`
    are those of an `EpochPause`, of the model in that mode.
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
    evaluations: int = 0
    evaluation_share: float = 0.0
    passes: int = 0
    with_graph: int = 0
    first_batch_seconds: float | None = None


@dataclass(frozen=True, kw_only=True)
class EvaluationLoader:
    """A loader of an evaluation: how many workers it has, and where it is made; None if nobody knows."""

    workers: int
    site: Site | None


@dataclass(frozen=True, kw_only=True)
class EpochPause:
    """Mean seconds from an epoch's last step to the next one's first batch, and their parts; `seen` epochs.

    `first_batches_seen`: how many first batches were timed in the training's own pauses. Where it is 0, `first_batch`
    is what starting an epoch cost in windows. `in_mode`: the part of `rest` in which the model was in evaluation mode,
    although no other loader was asked, as to generate samples. `of_training`: the part of `evaluation` that goes
    through the training data once more. `waiting`: the part of `evaluation` in which it waits for its loaders;
    `waited_for`: the one that it waits for longest. `passes`: how many of the model's passes between epochs were looked
    at; the output of `with_graph` of them could be differentiated, and nothing did so. `collecting`: for how long
    Python's garbage collector ran in all of that; `collected_at`: the call of `gc.collect()` that took most of it.
    """

    seen: int
    seconds: float
    evaluation: float
    saving: float
    first_batch: float
    rest: float
    first_batches_seen: int = 0
    of_training: float = 0.0
    waiting: float = 0.0
    waited_for: EvaluationLoader | None = None
    passes: int = 0
    with_graph: int = 0
    in_mode: float = 0.0
    collecting: float = 0.0
    collected_at: Site | None = None

    @property
    def parts(self) -> dict[str, float]:
        """Seconds by part, which exclude one another: garbage collection is taken out of the rest, unless evaluation
        asked for it."""
        collecting = min(self.collecting, self.rest)
        return {
            "evaluation": self.evaluation,
            "saving": self.saving,
            "first_batch": self.first_batch,
            "collecting": collecting,
            "rest": self.rest - collecting,
        }


@dataclass(frozen=True, kw_only=True)
class LongPause:
    """Work of the script's other than training, such as an evaluation, whose end was not awaited: a new process shows
    more in that time. `seen`: how often; `seconds`: for how long it was seen at least, on average; `steps`: those of
    training that had gone by since the start of the process, on average. `site`: the user's line that was running; None
    where that was not seen."""

    seen: int
    seconds: float
    steps: float
    site: Site | None = None


@dataclass(frozen=True, kw_only=True)
class Interruption:
    """Evaluations in the midst of an epoch. `seen` of them, `seconds` each (median), one every so many batches.
    `passes` and `with_graph`: as in an `EpochPause`. `by_mode`: they are only known by the model's evaluation mode, so
    the program may also generate with it, or collect what it trains on."""

    seen: int
    seconds: float
    every: float
    passes: int = 0
    with_graph: int = 0
    by_mode: bool = False

    @property
    def seconds_of_a_step(self) -> float:
        """Seconds for each step of the training; 0 unless two evaluations were seen."""
        return max(0.0, self.seconds) / self.every if self.seen > 1 and self.every > 0 else 0.0


@dataclass(frozen=True, kw_only=True)
class WholeRun:
    """How long the program will take in all, if it trains for as long as it says. Seconds, as written.

    `epochs` and `steps` (batches; steps without a loader) of the whole run; `epochs` is None where the program counts
    steps. `start`: until the first step. `training`: steps and the starts of epochs, which is what fixes make faster.
    `between`: evaluating, saving and all else between epochs; None where that was not seen twice, or where the program
    counts steps and may pause at any. `evaluations`: those in the midst of epochs, as far as they were seen.
    `may_end_sooner`: the program can leave its loops before their end.
    """

    epochs: int | None
    steps: int
    start: float
    training: float
    between: float | None
    may_end_sooner: bool
    evaluations: float = 0.0


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
class PaddingUse:
    """How much of the rows of batches is padding, as attention masks say. `columns`: places of a row. `empty`: the
    part of all places that hold nothing. `behind_longest`: the part that no row of its batch needs."""

    columns: float
    empty: float
    behind_longest: float


@dataclass(frozen=True, kw_only=True)
class PictureUse:
    """JPEG pictures that are decoded larger than they are used.

    `width`, `height`: of one of them; `used_width`, `used_height`: what is made of it. `factor`: by what the size of
    all can be divided when they are decoded. `whole_ms`, `reduced_ms`: what one took whole and so, as tried on a few of
    them (`tried`). `library`: "Pillow" or "OpenCV", which decodes them. `mode`: what they are converted to, in Pillow's
    words ("RGB", "L"); "" if they are not.
    """

    width: int
    height: int
    used_width: int
    used_height: int
    factor: int
    whole_ms: float
    reduced_ms: float
    tried: int
    library: str = "Pillow"
    mode: str = ""


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
    padding: PaddingUse | None = None
    """None where batches have no attention mask."""
    decoding: float | None = None
    """Seconds in which Pillow or OpenCV computed to decode and convert pictures, as a part of fetching; None if neither
    did."""
    pictures: PictureUse | None = None
    """None where none are decoded at twice the size that is used or more."""


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
class FrozenPart:
    """Modules that one line of the user's leads to, that do not learn, and that nothing that learns comes before.

    `names`: the slowest first. `share`: of a step. `batch`: their outputs depend on the rest of the batch, as those of
    BatchNorm in training mode do. `random`: they draw numbers, as dropout does,
    or what they are given is drawn within the step.
    """

    site: Site
    names: list[str]
    share: float
    batch: bool
    random: bool


@dataclass(frozen=True, kw_only=True)
class SynchronisingCall:
    """A place in the user's code that takes a value out of a tensor (`.item()`, `.cpu()`, `print` …), which makes the
    host wait for the device where there is one: how often a step, and milliseconds a step. `library`: whose code takes
    it, called at that line; "" where the line itself does."""

    name: str
    path: str
    line: int
    per_step: float
    ms_per_step: float
    library: str = ""


@dataclass(frozen=True, kw_only=True)
class GarbageCollection:
    """Python's collector during timed steps of the main process: runs, their milliseconds a step, share of the time."""

    collections: int
    ms_per_step: float
    share: float


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A statement drawn from the evidence by one rule.

    `weight`, from 0 to 1: what findings are ordered by; a cause takes over that of what it explains. `share`: the share
    of the training's time that was measured for it; None where none was. `at_most`: how many times as fast training
    would be if that took no time; None where this is not known. `evidence`: the figures of the sentence. `fixes`: ids
    of the fixes that answer it.
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
    at_most: float | None = None


@dataclass(frozen=True, kw_only=True)
class NotJudged:
    """A rule that could not be applied, and what was missing. Not the same as "fine"."""

    id: str
    reason: str
