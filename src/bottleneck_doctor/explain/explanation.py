"""What was gathered to explain the figures: details of windows in, the parts of a result out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bottleneck_doctor.documents.labels import BASELINE
from bottleneck_doctor.documents.report import (
    DeviceProfile,
    EpochPause,
    Exchanges,
    FrozenPart,
    GarbageCollection,
    Interruption,
    LineProfile,
    Loading,
    LongPause,
    PhaseTable,
    Profiles,
    SamplingProfile,
    Setting,
    StepTimes,
    SynchronisingCall,
    Timeline,
    Utilization,
    Warning,
    Window,
)
from bottleneck_doctor.explain.details import PausesTold, PhasesDetail, Unreadable, check
from bottleneck_doctor.measure import phases
from bottleneck_doctor.monitor import UsageWatch, utilization
from bottleneck_doctor.runtime.wire import messages


@dataclass
class Explanation:
    """All that was gathered, as the result holds it."""

    phases: PhaseTable | None = None
    steps: StepTimes | None = None
    epoch_pause: EpochPause | None = None
    interruption: Interruption | None = None
    long_pause: LongPause | None = None
    loading: list[Loading] = field(default_factory=list)
    timelines: list[Timeline] = field(default_factory=list)
    synchronising: list[SynchronisingCall] | None = None
    garbage: GarbageCollection | None = None
    exchanges: Exchanges | None = None
    frozen: list[FrozenPart] = field(default_factory=list)
    sampling: SamplingProfile | None = None
    lines: LineProfile | None = None
    device: DeviceProfile | None = None
    missing: list[Warning] = field(default_factory=list)
    watches: list[UsageWatch] = field(default_factory=list)

    def profiles(self) -> Profiles | None:
        """The profiles, with what is missing of them; None where none was tried."""
        if not (self.sampling or self.lines or self.device or self.missing):
            return None
        return Profiles(sampling=self.sampling, lines=self.lines, device=self.device, missing=self.missing)

    def utilization(self, windows: Sequence[Window], best: str | None) -> Utilization | None:
        """The machine during these windows, those of the baseline and of the setting labelled `best` in detail."""
        return utilization(self.watches, windows, best)

    def loading_as_written(self) -> Loading | None:
        """How batches are made as the training is written; None where that was not seen."""
        return next((each for each in self.loading if not each.setting), None)

    def read_phases(self, setting: Setting, details: list[dict[str, Any]], found: messages.Found) -> None:
        """Take in what windows of phases under `setting` told, in place of what was known of it.

        Raises `Unreadable`.
        """
        for detail in details:
            check(detail, PhasesDetail)
        shares = phases.phases(details)
        made = phases.loading(details, setting)
        self.loading = [each for each in self.loading if each.setting != setting]
        if made is not None:
            self.loading.append(made)
        elif found.has_loader and not setting:
            self.miss(
                slug="loading-unseen",
                sentence=f"How batches are made could not be seen: {phases.loading_missing(details)}.",
            )
        line = phases.timeline(details, setting)
        self.timelines = [each for each in self.timelines if each.setting != setting]
        if line is not None:
            self.timelines.append(line)
        if setting:
            if self.phases is not None and shares is not None:
                self.phases = replace(self.phases, best=shares, best_setting=setting)
            return
        if shares is not None:
            self.phases = PhaseTable(baseline=shares)
        self.steps = phases.step_times(details, found.first_step_seconds, found.first_batch_seconds)
        self.synchronising = phases.synchronising(details)
        self.garbage = phases.garbage(details)
        self.exchanges = phases.exchanges(details)
        self.frozen = phases.frozen(details)

    def read_pauses(self, told: Sequence[dict[str, Any]], windows: Sequence[Window]) -> None:
        """Take in what each process has told last of its pauses, in place of what was known of them."""
        try:
            for each in told:
                check(each, PausesTold)
        except Unreadable as error:
            self.miss_unreadable("what lies between epochs", error)
            return
        overheads = [window.turn_seconds for window in windows if window.label == BASELINE]
        known = [each for each in overheads if each is not None]
        self.epoch_pause = phases.epoch_pause(told, sum(known) / len(known) if known else None)
        self.interruption = phases.interruption(told)

    def add_stacks(self, read: SamplingProfile | Warning) -> None:
        """Take in what stacks tell, or why there are none."""
        if isinstance(read, Warning):
            self.missing.append(read)
        else:
            self.sampling = read

    def miss_unreadable(self, part: str, error: Unreadable) -> None:
        """Say that what a process told could not be read."""
        self.miss(
            slug="explanation-unreadable",
            sentence=f"The report lacks {part}, which could not be read: {error}.",
        )

    def miss(self, *, slug: str, sentence: str) -> None:
        """Say that a part could not be had, once."""
        if all(each.slug != slug for each in self.missing):
            self.missing.append(Warning(slug=slug, sentence=sentence.replace("..", ".")))
