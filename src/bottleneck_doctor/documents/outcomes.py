"""What became of the fixes: each one's outcome and edit, all of them together, the workers, and the verdict."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from bottleneck_doctor.documents.measured import Setting, Speedup

Status = Literal["faster", "slower", "no_difference", "cannot_tell", "not_applicable", "failed"]
Risk = Literal["identical", "order", "numerics", "semantics"]


@dataclass(frozen=True, kw_only=True)
class Settle:
    """What would settle what is still open: a command, about how many seconds it takes, and the ids of the fixes that
    it would decide."""

    seconds: float
    command: list[str]
    fixes: list[str]


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """One sentence with figures, and the fix it speaks of (None where nothing is faster).

    `together`: the sentence promises the combination, and `fix` is the best single one (None where none is faster by
    itself). `settle`: what would settle what is still open and could matter, where nothing is faster; None where more
    time would not do."""

    sentence: str
    finding: str | None = None
    fix: str | None = None
    together: bool = False
    settle: Settle | None = None


@dataclass(frozen=True, kw_only=True)
class ChangedWords:
    """Words of the program's command line and what takes their place, as a shell has them. `before`: "" where words are
    added at the end; `after`: "" where they are left out."""

    before: str
    after: str


@dataclass(frozen=True, kw_only=True)
class Change:
    """The edit to make in the user's own code. `diff` is a unified diff without file headers; "" where none fits.
    `unfinished`: `note` says what is still to be done by hand. False in reports of earlier releases. `words`: what of
    it is done on the command line, as `note` says, too."""

    file: str
    line: int
    diff: str
    note: str = ""
    unfinished: bool = False
    words: list[ChangedWords] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class SourceFile:
    """A file of the user's, as it was when changes of it were made.

    `file`: as `Change.file` has it. `path`: the same from the project's root, with `/`; "" where it lies elsewhere, so
    that no patch names it. `sha256`: of its bytes, in hexadecimal. `line_digests`: four hexadecimal digits for each
    line, which tell what lines differ today, and next to nothing of what they held.
    """

    file: str
    path: str
    sha256: str
    line_digests: str


@dataclass(frozen=True, kw_only=True)
class Sources:
    """The files that changes edit. `project`: the folder that patches name them by: the repository's root, or that of
    the run."""

    project: str
    files: list[SourceFile]


@dataclass(frozen=True, kw_only=True)
class Preparation:
    """What a setting does once, before training begins, as it was estimated: it prepares this many `samples`, which
    takes `seconds`, and `bytes` of memory for as long as training lasts."""

    samples: int
    seconds: float
    bytes: int


@dataclass(frozen=True, kw_only=True)
class PeakMemory:
    """The most memory that all processes of a training held, in bytes, on the host or on the device that holds most:
    of the program as `written`, and `changed`."""

    where: Literal["host", "device"]
    written: float
    changed: float


@dataclass(frozen=True, kw_only=True)
class FixOutcome:
    """What became of one fix.

    `speedup` is the promise: whole epochs of the user's own length, against the baseline. `steady` leaves the epoch's
    start and end out. `over` is the setting that this fix builds on (empty: the baseline) and `added` its own worth
    on top of that. `confirmed` uses only processes started after the fix was chosen. `chance`, 0 to 1, is that of being
    worth an edit; nothing is claimed from it, and it is None where nothing was measured. `settle` would decide a fix
    that is still open; None where more time would not, and then `reason` says why. `peak_memory`: what its windows
    needed beside those as written, with what workers held at their ends; None where that is not known, and in reports
    of earlier releases. `memory` and `numerics` are None: no release has written them, and no page draws them.
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
    chance: float | None = None
    settle: Settle | None = None
    more_changes: list[Change] = field(default_factory=list)
    """Edits in other places that the fix needs beside `change`."""

    preparation: Preparation | None = None
    """What `setting` does once before training begins; None where it does nothing."""

    peak_memory: list[PeakMemory] | None = None

    at_least: float | None = None
    """How many times as fast training surely is with a fix that is still open because it was measured in one process
    only; None where that may be no faster."""

    worth: Speedup | None = None
    """What a fix that is not applicable since it is on already brings, by a fix that takes it back; None where none was
    measured surely enough."""


@dataclass(frozen=True, kw_only=True)
class LadderStep:
    """One rung of the combination: the fix added last, everything set by then, and the speedup so far. `added`: what it
    is worth on top of the rung before, from processes that measured both; None for the first rung."""

    fix: str
    setting: Setting
    speedup: Speedup
    added: Speedup | None = None


@dataclass(frozen=True, kw_only=True)
class Combination:
    """The fixes together. `setting`: all of the ladder, or as far up as the verdict goes. `risk` is the gravest of what
    that takes, `changes` are the edits that make it."""

    setting: Setting
    speedup: Speedup
    confirmed: Speedup | None
    ladder: list[LadderStep]
    risk: Risk = "identical"
    changes: list[Change] = field(default_factory=list)
    preparation: Preparation | None = None
    """As of a `FixOutcome`."""
    peak_memory: list[PeakMemory] | None = None
    """As of a `FixOutcome`."""


Confirmed = Literal["agrees", "differs", "unclear", "not_faster", "failed", "other_loss", "missing"]
"""What the program with the change made says of the promise. `agrees` and `differs`: it is faster, by as much as was
promised or by another factor. `unclear`: it may be, its processes differ too much. `not_faster`: what was promised does
not come. `failed`: it does not train. `other_loss`: it trains to another loss. `missing`: it was not measured."""

ConfirmedBy = Literal["edit", "variables", "setting"]


@dataclass(frozen=True, kw_only=True)
class Confirmation:
    """The promise held against the program with the change made: pairs of processes, one as written and one changed.

    `promised` rests on windows that switch the setting while a process trains. `speedup` is that of the changed
    program; None where it `failed` or is `missing`. `by`: whether files were edited, environment variables were set,
    or, where doctor can make no edit, the setting was switched on in processes of its own; None where nothing was
    started. `sentence` tells the outcome, with the reason where there is no figure. `seconds`: what it took.
    """

    outcome: Confirmed
    sentence: str
    promised: Speedup
    speedup: Speedup | None = None
    by: ConfirmedBy | None = None
    seconds: float = 0.0
    memory: list[PeakMemory] = field(default_factory=list)
    """Empty where it is not known."""
    alike_steps: int = 0
    """Over how many optimizer steps the losses of both programs were compared and found to differ by no more than
    chance and rounding do; 0 where they differ more, where nobody can tell, and in reports of earlier releases."""


@dataclass(frozen=True, kw_only=True)
class Refused:
    """A promise that the program with the change made refused. Another one took its place."""

    setting: Setting
    confirmation: Confirmation


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
