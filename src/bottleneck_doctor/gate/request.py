"""What is asked of a check: whatever two sides it compares, how long and how sure. Values only."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from bottleneck_doctor.documents.check import STEP_TIME, Check
from bottleneck_doctor.documents.redaction import Discretion
from bottleneck_doctor.gate import tried
from bottleneck_doctor.gate.limits import DEFAULTS, MetricLimit
from bottleneck_doctor.gate.plan import PAIRS_WANTED
from bottleneck_doctor.gate.sides.compared import Compared
from bottleneck_doctor.gate.sides.edit import Edit
from bottleneck_doctor.gate.sides.of_edit import of_edit
from bottleneck_doctor.gate.sides.of_revisions import of_revisions
from bottleneck_doctor.measure.costs import Costs
from bottleneck_doctor.runtime.wire.messages import Found
from bottleneck_doctor.session.start import Start
from bottleneck_doctor.wording.check_words import EDITED, REVISIONS, SideWords

DEFAULT_BUDGET = 300.0
"""Seconds; explaining a regression comes on top."""

Tell = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class PairsRequest(ABC):
    """What the user asked for, whatever is compared. `budget` in seconds; None: as the number of pairs wants, or the
    default."""

    start: Start
    """Its `listen` is the base's supervisor's; the head's is the next port."""
    budget: float | None = None
    pairs: int | None = None
    pairs_wanted: int = PAIRS_WANTED
    """How many pairs should fit into the budget, so that a pair gets no more of it."""
    known: Costs | None = None
    """What windows of the same loop cost, if somebody has measured it. Then windows of long steps are shorter."""
    loop: Found | None = None
    """The loop as another process has found it, if one has: the first pair then finds that of long steps sooner."""
    explains: bool = True
    """Whether it is asked what became slower, too: that takes windows of its own."""
    gives_up: bool = True
    """Whether measuring ends as soon as no pair that there is time for would bring an answer. More pairs would still
    tell more exactly what an edit is worth."""
    limits: Mapping[str, MetricLimit] = field(default_factory=lambda: DEFAULTS)
    usually_steady: ClassVar[bool] = True
    """Whether processes run with a steady memory allocator unless the user asks for something else."""
    steady: bool = True
    seed: int | None = None
    verbose: bool = False
    discretion: Discretion = field(default_factory=Discretion)
    """What no output may tell."""
    earlier: Sequence[Check] = ()
    """Results of earlier checks. Those of the same program on the same machine say how much pairs differ."""

    @property
    @abstractmethod
    def sides(self) -> SideWords:
        """How the sides are called."""

    @property
    def tries(self) -> Edit | None:
        """The edit whose worth is asked for; None where it is asked whether the head is worse."""
        return None

    @abstractmethod
    def compared(self, tell: Tell) -> contextlib.AbstractContextManager[Compared]:
        """Both sides, for as long as the context lasts. `tell`: what is done meanwhile."""

    @abstractmethod
    def repeat(self, seed: int) -> list[str]:
        """The command that does the same again, with what is secret masked: it has to be filled in."""

    def _again(self, command: str, seed: int, usual: float, *options: str) -> list[str]:
        """The same with the options that all of them have. `usual`: the threshold that need not be said."""
        words = [command, *options, "--seed", str(seed)]
        step = self.limits[STEP_TIME].threshold
        if step != usual:
            words += ["--threshold", f"{100 * step:g}%"]
        for option, value in (
            ("--budget", None if self.budget is None else f"{self.budget:g}s"),
            ("--pairs", None if self.pairs is None else str(self.pairs)),
        ):
            words += [] if value is None else [option, value]
        if self.steady != self.usually_steady:
            words.append("--steady" if self.steady else "--no-steady")
        return self.discretion.words(self.start.again(*words))


@dataclass(frozen=True, kw_only=True)
class CheckRequest(PairsRequest):
    """`doctor check --base-ref`: the working folder against a revision."""

    base_ref: str
    merge_base: bool = False
    base_setup: str | None = None
    earlier_in: str | None = None
    """The folder that `earlier` was read from."""

    @property
    def sides(self) -> SideWords:
        return REVISIONS

    def compared(self, tell: Tell) -> contextlib.AbstractContextManager[Compared]:
        return of_revisions(
            self.start,
            self.base_ref,
            merge_base=self.merge_base,
            setup=self.base_setup,
            steadied=self.steady,
            tell=tell,
        )

    def repeat(self, seed: int) -> list[str]:
        options = ["--base-ref", self.base_ref]
        options += [] if self.base_setup is None else ["--base-setup", self.base_setup]
        options += ["--merge-base"] if self.merge_base else []
        options += [] if self.earlier_in is None else ["--earlier", self.earlier_in]
        return self._again("check", seed, DEFAULTS[STEP_TIME].threshold, *options)


@dataclass(frozen=True, kw_only=True)
class TryRequest(PairsRequest):
    """`doctor try`: a program as written against the same with an edit. `options`: the words that say which."""

    edit: Edit
    options: tuple[str, ...] = ()
    # Part of what an edit is worth may be what it spares the allocator, so the program runs as its user starts it.
    usually_steady: ClassVar[bool] = False
    steady: bool = False

    @property
    def sides(self) -> SideWords:
        return EDITED

    @property
    def tries(self) -> Edit | None:
        return self.edit

    def compared(self, tell: Tell) -> contextlib.AbstractContextManager[Compared]:
        return of_edit(self.start, self.edit, self.edit.called(self.discretion), steadied=self.steady)

    def repeat(self, seed: int) -> list[str]:
        return self._again("try", seed, tried.THRESHOLD, *self.options)
