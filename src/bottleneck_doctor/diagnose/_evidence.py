"""What findings are drawn from: everything that an examination gathered, and what a rule may ask for by name.

A rule names the evidence that it can't do without (`Rule.needs`); `missing` says in words which of it is not there, so
that the rule is reported as not judged instead of being taken for "fine". Nothing here judges.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from types import MappingProxyType

from bottleneck_doctor.documents.labels import BASELINE
from bottleneck_doctor.documents.report import (
    Baseline,
    DeviceProfile,
    Environment,
    EpochPause,
    Exchanges,
    FixOutcome,
    FrozenPart,
    GarbageCollection,
    Interruption,
    LineProfile,
    Loading,
    LongPause,
    Noise,
    Phases,
    PhaseTable,
    Profiles,
    Rank,
    SamplingProfile,
    Speedup,
    StepTimes,
    SynchronisingCall,
    Utilization,
    Window,
    Workers,
)
from bottleneck_doctor.runtime.wire.messages import Found

SEEN_OFTEN = 2
"""How often something that happens once an epoch has to be seen before a finding may name it."""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """All that was gathered. None (for `synchronising` too) means not gathered; an empty sequence means none seen.

    `loading`: as written and perhaps under other settings. `setup_seconds`: from the start of each session to its
    first window.
    """

    found: Found
    baseline: Baseline | None = None
    environment: Environment | None = None
    phases: PhaseTable | None = None
    steps: StepTimes | None = None
    epoch_pause: EpochPause | None = None
    interruption: Interruption | None = None
    long_pause: LongPause | None = None
    loading: Sequence[Loading] = ()
    utilization: Utilization | None = None
    profiles: Profiles | None = None
    synchronising: Sequence[SynchronisingCall] | None = None
    garbage: GarbageCollection | None = None
    exchanges: Exchanges | None = None
    frozen: Sequence[FrozenPart] = ()
    fixes: Sequence[FixOutcome] = ()
    ceilings: Mapping[str, Speedup] = field(default_factory=lambda: MappingProxyType({}))
    workers: Workers | None = None
    noise: Noise | None = None
    windows: Sequence[Window] = ()
    ranks: Sequence[Rank] = ()
    setup_seconds: Sequence[float] = ()

    @property
    def on_device(self) -> bool:
        """Whether the model computes on something else than the CPU."""
        return not self.found.device.startswith("cpu")

    @property
    def as_written(self) -> Loading | None:
        """How batches are made under the user's own setting."""
        return next((each for each in self.loading if not each.setting), None)

    @property
    def shares(self) -> Phases | None:
        """The phases of a step as written."""
        return self.phases.baseline if self.phases is not None else None

    @property
    def sampling(self) -> SamplingProfile | None:
        return self.profiles.sampling if self.profiles is not None else None

    @property
    def lines(self) -> LineProfile | None:
        return self.profiles.lines if self.profiles is not None else None

    @property
    def operators(self) -> DeviceProfile | None:
        return self.profiles.device if self.profiles is not None else None

    @property
    def wait(self) -> float | None:
        """The part of a step spent waiting for its batch.

        Timed windows say it without the cost of phase timers. On a device, though, they also count waiting during
        which the device computes. There, the smaller of the two figures is what data costs.
        """
        if not self.found.has_loader:
            return None
        timed = self._timed_wait
        phased = self.shares.data_wait if self.shares is not None else None
        if timed is None or phased is None:
            return phased if timed is None else timed
        return min(timed, phased) if self.on_device else timed

    @property
    def _timed_wait(self) -> float | None:
        if self.baseline is None or self.baseline.data_wait_share is None:
            return None
        wait, start = self.baseline.data_wait_share, self._start_of_epoch
        return max(0.0, (wait - start) / (1.0 - start)) if start < 1.0 else wait

    @property
    def _start_of_epoch(self) -> float:
        """The part of the baseline's steps that is the wait for an epoch's first batch.

        Short epochs are timed whole, so their start is in the step and in the wait for data. It belongs to the pause
        between epochs, and must not count twice.
        """
        baseline, pause = self.baseline, self.epoch_pause
        if baseline is None or pause is None or not baseline.epoch_batches or baseline.step_ms <= 0:
            return 0.0
        if not any(window.whole_epochs and window.label == BASELINE for window in self.windows):
            return 0.0
        return min(1.0, (self._first_batch or 0.0) / (baseline.epoch_batches * baseline.step_ms / 1000))

    @property
    def step_ms(self) -> float | None:
        """Milliseconds that a step takes as written, without what starting an epoch takes."""
        if self.baseline is not None and self.baseline.step_ms > 0 and self._start_of_epoch < 1.0:
            return self.baseline.step_ms * (1.0 - self._start_of_epoch)
        return self.steps.mean_ms if self.steps is not None and self.steps.mean_ms > 0 else None

    @property
    def first_step_seconds(self) -> float | None:
        """Seconds from the start of the process to its first step.

        Sessions also spend time on finding the loop before they can serve windows, so this is never more than they
        took. The first start may have filled caches: if later starts took less, that is what a start takes.
        """
        later = min(self.setup_seconds[1:], default=math.inf)
        if self.steps is not None and self.steps.first_step_seconds is not None:
            return min(self.steps.first_step_seconds, later)
        if self.found.setup_seconds > 0:
            return min(self.found.first_step_seconds, later)
        return min(self.setup_seconds) if self.setup_seconds else None

    @property
    def first_batch_seconds(self) -> float | None:
        """The part of these seconds in which training waited for its first batch; None where that is not known, as
        where later starts took less."""
        first = self.found if self.steps is None else self.steps
        return first.first_batch_seconds if first.first_step_seconds == self.first_step_seconds else None

    @property
    def epoch_seconds(self) -> float | None:
        """Seconds that the steps of one epoch take, without the pause after them."""
        batches = self.baseline.epoch_batches if self.baseline is not None else self.found.epoch_length
        return batches * self.step_ms / 1000 if batches and self.step_ms else None

    @property
    def pause(self) -> EpochPause | None:
        """What lies between epochs, without parts that were seen only once; None if no part was seen twice.

        The first pause may hold something that happens only once, and so may the first start of an epoch.
        """
        seen = self.epoch_pause
        if seen is not None and seen.seen < SEEN_OFTEN:
            seen = None
        first = self._first_batch
        if seen is None and first is None:
            return None
        evaluation, saving, rest = (
            max(0.0, part) for part in ((seen.evaluation, seen.saving, seen.rest) if seen is not None else (0.0,) * 3)
        )
        first = first or 0.0
        return EpochPause(
            seen=seen.seen if seen is not None else 0,
            seconds=evaluation + saving + rest + first,
            evaluation=evaluation,
            saving=saving,
            first_batch=first,
            rest=rest,
            of_training=max(0.0, seen.of_training) if seen is not None else 0.0,
            waiting=max(0.0, seen.waiting) if seen is not None else 0.0,
            waited_for=seen.waited_for if seen is not None else None,
            passes=seen.passes if seen is not None else 0,
            with_graph=seen.with_graph if seen is not None else 0,
            in_mode=max(0.0, seen.in_mode) if seen is not None else 0.0,
            collecting=max(0.0, seen.collecting) if seen is not None else 0.0,
            collected_at=seen.collected_at if seen is not None else None,
        )

    @property
    def _first_batch(self) -> float | None:
        """How many seconds longer the first batch of an epoch takes than others; None unless it was seen often enough.

        Seen between the epochs of the training itself, or in windows that began with an epoch.
        """
        pause = self.epoch_pause
        if pause is not None and pause.first_batches_seen >= SEEN_OFTEN:
            usual = self.steps.wait_mean_ms / 1000 if self.steps is not None else 0.0
            return max(0.0, pause.first_batch - usual)
        seen = (each.turn_seconds for each in self.windows if each.label == BASELINE)
        overheads = [each for each in seen if each is not None]
        return max(0.0, median(overheads)) if len(overheads) >= SEEN_OFTEN else None

    @property
    def pause_seconds(self) -> float | None:
        """Seconds between the last step of an epoch and the first of the next, as far as `pause` knows them."""
        return self.pause.seconds if self.pause is not None else None

    @property
    def evaluating_seconds(self) -> float:
        """Seconds of evaluation in the midst of epochs for each step; 0 unless it was seen often enough."""
        return 0.0 if self.interruption is None else self.interruption.seconds_of_a_step

    @property
    def pausing_seconds(self) -> float:
        """Seconds for each step of pauses whose end was not awaited, at least; 0 unless they were seen often enough."""
        seen = self.long_pause
        return 0.0 if seen is None or seen.seen < SEEN_OFTEN else seen.seconds / max(1.0, seen.steps)

    @property
    def seconds_of_a_step(self) -> float:
        """Seconds that the training as a whole takes for each step, with all that lies between its steps; 0 where that
        is not known."""
        if not self.step_ms:
            return 0.0
        turn = 0.0
        if self.pause_seconds is not None and self.epoch_seconds:
            turn = self.pause_seconds * self.step_ms / 1000 / self.epoch_seconds
        return self.step_ms / 1000 + turn + self.evaluating_seconds + self.pausing_seconds

    @property
    def whole_epoch_seconds(self) -> float | None:
        """Seconds from the start of an epoch to that of the next."""
        return self.epoch_seconds / self.in_steps if self.epoch_seconds else None

    @property
    def in_steps(self) -> float:
        """The part of the training's time that lies inside steps; the rest are pauses between epochs, and evaluations
        within them."""
        whole = self.seconds_of_a_step
        return self.step_ms / 1000 / whole if self.step_ms and whole > 0 else 1.0


def missing(name: str, evidence: Evidence) -> str:
    """Why the evidence called `name` can't be used, or "". Raises `KeyError` for a name that nothing is called by."""
    there, reason = NEEDS[name]
    return "" if there(evidence) else reason


def _ranks(evidence: Evidence) -> bool:
    return any(len(window.parts) > 1 for window in evidence.windows)


NEEDS: Mapping[str, tuple[Callable[[Evidence], bool], str]] = MappingProxyType(
    {
        "loader": (lambda e: e.found.has_loader, "no torch DataLoader feeds this loop"),
        "own-workers": (
            lambda e: (e.as_written.num_workers if e.as_written else e.found.num_workers) > 0,
            "batches are made in the training process itself, without workers",
        ),
        "device": (lambda e: e.on_device, "the model trains on the CPU, so there is no device to judge"),
        "baseline": (lambda e: e.baseline is not None, "the training as written was not measured"),
        "wait": (lambda e: e.wait is not None, "how long steps wait for their data was not measured"),
        "step": (lambda e: e.step_ms is not None, "how long a step takes was not measured"),
        "phases": (lambda e: e.phases is not None, "the phases of a step were not measured"),
        "steps": (lambda e: e.steps is not None, "the times of single steps were not recorded"),
        "epoch": (lambda e: e.epoch_seconds is not None, "the length of an epoch is not known"),
        "epoch-pause": (lambda e: e.pause_seconds is not None, "the end of an epoch was not seen twice"),
        "loading": (lambda e: e.as_written is not None, "how batches are made was not measured"),
        "files": (
            lambda e: e.as_written is not None and e.as_written.files is not None,
            "no file was opened while batches were made, or opening files could not be watched",
        ),
        "utilization": (
            lambda e: e.utilization is not None and bool(e.utilization.windows),
            "the use of the machine was not sampled",
        ),
        "profile": (
            lambda e: e.sampling is not None or e.lines is not None,
            "neither a sampling profile nor a line profile could be taken",
        ),
        "operators": (lambda e: e.operators is not None, "torch.profiler gave no tables"),
        "synchronising": (
            lambda e: e.synchronising is not None,
            "calls that take values out of tensors were not watched",
        ),
        "garbage": (lambda e: e.garbage is not None, "Python's garbage collector was not watched"),
        "curve": (lambda e: e.workers is not None, "no other number of workers was measured"),
        "noise": (lambda e: e.noise is not None, "the noise of the machine was not measured"),
        "start": (
            lambda e: e.first_step_seconds is not None,
            "the time to the first step was not measured",
        ),
        "ranks": (_ranks, "one process trains, so none lags behind others"),
    }
)
