"""Processes of one revision, started one after another: a `Training` in, a `Draw` of each process out. This is how a
baseline is measured, and the head that is compared with one. The windows are those of a check of pairs (`paired`)."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from bottleneck_doctor.documents import stored_baseline
from bottleneck_doctor.documents.check import Side
from bottleneck_doctor.documents.redaction import Discretion
from bottleneck_doctor.documents.report import Environment, Warning
from bottleneck_doctor.documents.stored_baseline import Draw
from bottleneck_doctor.errors import DoctorError
from bottleneck_doctor.examine import no_result, outcome
from bottleneck_doctor.gate import plan
from bottleneck_doctor.gate.baseline import unpaired
from bottleneck_doctor.gate.paired import (
    LEAST_KEPT_ROUNDS,
    MOST_BROKEN_PAIRS,
    environment_of,
    nothing_timed,
    phases_of,
    sample_of,
    started,
)
from bottleneck_doctor.gate.sides import steady
from bottleneck_doctor.measure.budget import Budget, OutOfTime
from bottleneck_doctor.measure.outside import Outside
from bottleneck_doctor.measure.side_by_side import SideBySide
from bottleneck_doctor.measure.side_pairs import SideSample
from bottleneck_doctor.measure.starter import Broken, Starter
from bottleneck_doctor.measure.starter import Side as Started
from bottleneck_doctor.protection.protector import Protector, protecting
from bottleneck_doctor.session.ending import Ending
from bottleneck_doctor.session.start import Start
from bottleneck_doctor.system.progress import Progress


@dataclass(frozen=True, kw_only=True)
class Training:
    """What is started, and under which conditions."""

    start: Start
    steady: bool = True
    verbose: bool = False
    discretion: Discretion = field(default_factory=Discretion)
    """What every output has to keep secret."""

    def told(self) -> list[str]:
        """The command that is trained, without secrets. It identifies the training of a baseline."""
        return self.discretion.words((*self.start.launcher, *self.start.entrypoint()))

    def again(self, *ours: str) -> list[str]:
        """A doctor command that starts this training. Secrets in it are masked, so the user has to fill them in."""
        return self.discretion.words(self.start.again(*ours))

    def variables(self) -> dict[str, str]:
        """The variables to set for the processes in addition to the user's environment, which takes precedence."""
        own = self.start.environment
        return {**own, **steady.variables(own, steady=self.steady)}

    def surroundings(self) -> dict[str, str]:
        """The environment of the processes, without doctor's own variables."""
        return {**os.environ, **self.start.environment}


class Drawing:
    """Measures a training, one process after another. `lasted`: seconds that each process took."""

    def __init__(
        self,
        training: Training,
        side: Side,
        root: Path,
        cwd: Path,
        budget: Budget,
        progress: Progress,
        outside: Outside | None = None,
    ) -> None:
        self.draws: list[Draw] = []
        self.lasted: list[float] = []
        self.warnings: list[Warning] = []
        self._training = training
        self._said = f"the head ({side.name})"
        self._root = root
        self._cwd = cwd
        self._budget = budget
        self._progress = progress
        self._broken: list[Broken] = []
        self._starter = Starter(
            budget, progress, outside or Outside(), verbose=training.verbose, discretion=training.discretion
        )

    def run(self, wanted: Callable[[], bool], whole: bool | None = None) -> None:
        """Start and measure processes as long as `wanted` returns true. `whole`: as for `SideBySide`.

        Raises `DoctorError` if nothing could be measured at all.
        """
        with self._side() as side:
            while wanted():
                begun = self._budget.now()
                try:
                    whole = self._one(side, whole)
                except Broken as broken:
                    self._broken.append(broken)
                    # A script that never reached its loop would not reach it the next time either.
                    if not self.draws and broken.live.found is None:
                        break
                    self._note_broken(broken)
                    if self.broke_off:
                        break
                except OutOfTime:
                    break
                else:
                    self.lasted.append(self._budget.now() - begun)
        if not self.draws:
            raise failure(self._broken[0]) if self._broken else no_result.out_of_time(self._budget.spent())
        if self._starter.missing_ranks:
            self.warnings.append(outcome.rank_missing(self._starter.missing_ranks))

    @property
    def broke_off(self) -> bool:
        """Whether it ended because processes failed."""
        return len(self._broken) >= MOST_BROKEN_PAIRS

    def seconds_each(self) -> float:
        """Seconds that a process takes, including its start."""
        return median(self.lasted) if self.lasted else 0.0

    def environment(self) -> Environment:
        """The machine and the libraries, as the processes saw them."""
        return environment_of(self._starter, steadied=self._training.steady)

    def _one(self, side: Started, whole: bool | None) -> bool:
        number = len(self.draws) + len(self._broken) + 1
        self._progress.stage(f"Starting the script (process {number})")
        taken = stored_baseline.now()
        starter = self._starter
        with started(starter, [side], f"Process {number}", first=number == 1) as lives:
            one = SideBySide(lives, self._budget, starter.outside, window_seconds=plan.WINDOW_SECONDS, whole=whole)
            self._progress.update(f"Process {number}: timing steps", self._budget.elapsed(), self._budget.total)
            sample = self._measured(one)
            if one.broken is not None:
                self._note_broken(one.broken)
            first = not self.draws
            self.draws.append(unpaired.draw(sample, taken, whole_epochs=one.whole_epochs, first=first))
            return one.whole_epochs

    def _measured(self, one: SideBySide) -> SideSample:
        """Measure as many windows as a process of a pair gets, then phases and memory. Raises `Broken` as
        `Pairs.measure` does."""
        (live,) = one.lives
        told: dict[str, float] | None = None
        with contextlib.suppress(Broken):
            one.burn_in()
            count = plan.rounds(self._starter.setup_seconds, one.cost_seconds(), self._budget.seconds)
            one.rounds([(live.side.name,)] * one.lived_for(count, least=plan.LEAST_ROUNDS))
            told = phases_of(one, live)
        sample = sample_of(one, live, told)
        if len(sample.costs(None)) < LEAST_KEPT_ROUNDS:
            raise one.broken or nothing_timed(one)
        return sample

    @contextlib.contextmanager
    def _side(self) -> Iterator[Started]:
        training = self._training
        protector = Protector() if training.start.in_place else protecting(self._cwd, training.start.entrypoint())
        try:
            yield Started(
                name="head",
                said=self._said,
                argv=training.start.argv(),
                cwd=self._cwd,
                environment=training.variables(),
                protector=protector,
                launched=bool(training.start.launcher),
                listen=training.start.listen,
            )
        finally:
            protector.close()
            if protector.lost:
                lost = ", ".join(sorted(set(protector.lost))[:3])
                told = f"{lost} could not be restored."
                self.warnings.append(Warning(slug="files-not-restored", sentence=told))

    def _note_broken(self, broken: Broken) -> None:
        """Warn why a process was cut short or lost. A script that came to its end needs no warning."""
        crashed = broken.crashed
        told = "After some windows had been measured, " if crashed else "A process could not be measured: "
        why = broken.why.rstrip(".")
        warning = Warning(slug="script-failed-later" if crashed else "pair-lost", sentence=f"{told}{why}.")
        if broken.ending is not Ending.END and all(each.slug != warning.slug for each in self.warnings):
            self.warnings.append(warning)


def failure(broken: Broken) -> DoctorError:
    """Why nothing can be measured."""
    if broken.ours:
        return no_result.guest_failed(broken)
    if broken.apart:
        return no_result.ranks_apart(broken)
    if broken.ending is Ending.END:
        return no_result.no_training(broken.live.session.farewell, broken.tail)
    return no_result.entrypoint_failed(broken)
