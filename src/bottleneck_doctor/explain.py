"""Gathers what explains the figures, in windows of their own: phases, profiles, traces, and the machine meanwhile.

A live session and the race so far go in; an `Explanation` comes out. Nothing here is counted for a speedup, nothing
here may cost the examination: a part that can't be had is missing, with its reason. The time that it takes is bounded
(`Explainer.allowance`), and comes on top of the budget only where the user set none.
"""

from __future__ import annotations

import contextlib
import importlib.util
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bottleneck_doctor import evidence as ev
from bottleneck_doctor import judge, phases
from bottleneck_doctor.errors import DoctorError
from bottleneck_doctor.monitor import Watch, utilization
from bottleneck_doctor.output import ARTIFACTS_NAME
from bottleneck_doctor.prober import Clock, Prober, SessionOver
from bottleneck_doctor.profiling.device import device_profile
from bottleneck_doctor.profiling.lines import functions_to_profile, line_profile, line_setting
from bottleneck_doctor.profiling.pyspy import RATE, Sampler
from bottleneck_doctor.profiling.sampling import sampling_profile
from bottleneck_doctor.progress import Progress
from bottleneck_doctor.race import Race
from bottleneck_doctor.result import (
    DeviceProfile,
    EpochPause,
    GarbageCollection,
    LineProfile,
    Loading,
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
from bottleneck_doctor.runtime import messages
from bottleneck_doctor.schedule import BASELINE, probe
from bottleneck_doctor.session import Session

ALLOWANCE = 60.0
"""Seconds on top of a budget that the user left to us."""
ALLOWANCE_SHARE = 0.25
"""Part of a budget that the user set."""
LEAST_ALLOWANCE, LARGEST_SHARE = 20.0, 0.4
"""Under small budgets explaining gets so many seconds, as long as that is no larger a part: why is told by few windows,
how much only by many."""
PHASE_SECONDS = 3.0
DISTURBED = 1.5
"""A window of phases whose steps take so many times as long as timed ones had neighbours, and is taken once more. Ours:
synchronisation and timers alone cost a few percent of all but the shortest steps."""
SAMPLED_SECONDS = 5.0
LINES_SECONDS = 5.0
TRACED_STEPS = 6
"""Operators of a few steps say what many say, and a trace grows by megabytes a second."""
TRACE_WRITING_SECONDS = 3.0
WORTH_A_LOOK = 1.02
"""Settings that promise less than this are not laid beside the baseline."""
START_SECONDS = 1.0
"""What py-spy takes to start and to write its file."""


FULL_SECONDS = 2 * PHASE_SECONDS + SAMPLED_SECONDS + LINES_SECONDS
"""What the windows of an explanation take together, without their lead-in."""
LEAD_IN_SECONDS = 5.0
"""What lies around them: lead-in, and py-spy's own start and end."""
SMALLEST_SCALE = 0.3


def reserve(clock: Clock) -> float:
    """Seconds set apart for the explanation: on top of our own budget, out of what is left of one that the user set.

    What is left and not the whole: a first start that makes caches may take most of it, and without the training as
    written nothing could be explained.
    """
    if not clock.strict:
        return ALLOWANCE
    left = max(0.0, clock.left())
    seconds = max(ALLOWANCE_SHARE * left, min(LEAST_ALLOWANCE, LARGEST_SHARE * left))
    clock.budget -= seconds
    return seconds


@dataclass
class Explanation:
    """All that was gathered, as the result holds it."""

    phases: PhaseTable | None = None
    steps: StepTimes | None = None
    epoch_pause: EpochPause | None = None
    loading: list[Loading] = field(default_factory=list)
    timelines: list[Timeline] = field(default_factory=list)
    synchronising: list[SynchronisingCall] | None = None
    garbage: GarbageCollection | None = None
    sampling: SamplingProfile | None = None
    lines: LineProfile | None = None
    device: DeviceProfile | None = None
    missing: list[Warning] = field(default_factory=list)
    watches: list[Watch] = field(default_factory=list)

    def profiles(self) -> Profiles | None:
        """The profiles, with what is missing of them; None where none was tried."""
        if not (self.sampling or self.lines or self.device or self.missing):
            return None
        return Profiles(sampling=self.sampling, lines=self.lines, device=self.device, missing=self.missing)

    def utilization(self, windows: Sequence[Window], best: str | None) -> Utilization | None:
        """The machine during these windows, those of the baseline and of the setting labelled `best` in detail."""
        return utilization(self.watches, windows, best)


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """What the user wants of the explanation. `folder`: where raw files are put meanwhile."""

    folder: Path
    rate: int = RATE
    native: bool = False


class Explainer:
    """Gathers an `Explanation` in live sessions. `done`: whether everything that wants a plain session was tried."""

    def __init__(
        self, race: Race, prober: Prober, clock: Clock, progress: Progress, wishes: Wishes, allowance: float
    ) -> None:
        self.explanation = Explanation()
        self.done = False
        self.allowance = allowance
        self._race = race
        self._prober = prober
        self._clock = clock
        self._progress = progress
        self._wishes = wishes
        self._spent = 0.0
        self._charging = False
        self._scale = 1.0
        self._cuts: list[str] = []
        self._pauses: dict[int, dict[str, Any]] = {}

    # -- the machine -------------------------------------------------------------------------------------------------

    def watch(self, session: Session) -> Watch | None:
        """Watch the process of a session that has shown itself, until the caller stops it."""
        if session.hello is None or elsewhere(session.hello):
            return None
        watch = Watch(session.hello.pid)
        watch.start()
        self.explanation.watches.append(watch)
        return watch

    # -- in a session that trains as written -------------------------------------------------------------------------

    def explain(self, session: Session, setup_seconds: float) -> None:
        """Everything but the lines, cheapest and most telling first. Raises `SessionOver` where the session ends.

        `setup_seconds`: what another start of the script takes, about.
        """
        self.done = True
        free = self.allowance - setup_seconds - LEAD_IN_SECONDS - self._trace_seconds()
        self._scale = min(1.0, max(SMALLEST_SCALE, free / FULL_SECONDS))
        self._prober.block += 1
        self._progress.stage("Looking where the time goes")
        self._phases(session, {})
        best = self._best()
        if best is not None:
            self._phases(session, best)
        self._sample(session)
        self._trace(session, setup_seconds)

    def _phases(self, session: Session, setting: Setting) -> None:
        seconds = self._seconds(PHASE_SECONDS)

        def gather() -> None:
            each = probe("phases:" + judge.key_of(setting), setting, mode="phases")
            window, detail = self._prober.explain(session, each, seconds, {})
            if window.status != "ok":
                self._miss(
                    slug="phases-failed", sentence=f"The phases of a step could not be told apart: {window.reason}."
                )
                return
            if self._was_disturbed(window):
                again, said = self._prober.explain(session, each, seconds, {})
                if again.status == "ok" and again.steps and again.seconds / again.steps < window.seconds / window.steps:
                    detail = said
            self._read_phases(setting, detail)
            self._read_pause(session.number, detail)

        self._within("phases", seconds, gather)

    def _was_disturbed(self, window: Window) -> bool:
        """Whether steps took so much longer than in timed windows that something else must have run beside them."""
        return window.steps > 0 and window.seconds / window.steps > DISTURBED * self._prober.expected_step(
            window.setting
        )

    def _read_phases(self, setting: Setting, detail: dict[str, Any]) -> None:
        told, details = self.explanation, [detail]
        shares = phases.phases(details)
        made = phases.loading(details, setting)
        if made is not None:
            told.loading.append(made)
        elif self._race.found.has_loader and not setting:
            self._miss(
                slug="loading-unseen",
                sentence=f"How batches are made could not be seen: {phases.loading_missing(details)}.",
            )
        line = phases.timeline(details, setting)
        if line is not None:
            told.timelines.append(line)
        if setting:
            if told.phases is not None and shares is not None:
                told.phases = replace(told.phases, best=shares, best_setting=setting)
            return
        if shares is not None:
            told.phases = PhaseTable(baseline=shares)
        told.steps = phases.step_times(details, self._race.found.setup_seconds)
        told.synchronising = phases.synchronising(details)
        told.garbage = phases.garbage(details)

    def _read_pause(self, session: int, detail: dict[str, Any]) -> None:
        # Its totals grow over the life of a process, so the last of each says all.
        self._pauses[session] = detail
        turns = [window.turn_seconds for window in self._race.windows if window.label == BASELINE]
        known = [turn for turn in turns if turn is not None]
        self.explanation.epoch_pause = phases.epoch_pause(
            list(self._pauses.values()), sum(known) / len(known) if known else None
        )

    def _best(self) -> Setting | None:
        """The fastest setting so far, where it is worth a look."""
        speeds = self._race.speeds()
        tried = {
            window.label: window.setting
            for window in self._race.windows
            if ev.usable(window) and window.mode == "timed" and window.setting and "replay" not in window.setting
        }
        best = max(tried, key=lambda key: speeds.get(key, 0.0), default=None)
        return tried[best] if best is not None and speeds.get(best, 0.0) > WORTH_A_LOOK else None

    def _sample(self, session: Session) -> None:
        hello = session.hello
        if hello is None:
            return
        if elsewhere(hello):
            self.explanation.missing.append(not_sampled_elsewhere(hello))
            return
        seconds = self._seconds(SAMPLED_SECONDS)

        def gather() -> None:
            sampler = Sampler(hello.pid, self._wishes.folder, rate=self._wishes.rate, native=self._wishes.native)
            file = sampled(sampler, self._prober, session, seconds)
            if isinstance(file, Warning):
                self.explanation.missing.append(file)
                return
            try:
                profile = sampling_profile(
                    [file],
                    rate=self._wishes.rate,
                    seconds=sampler.seconds,
                    main_pids=[hello.pid],
                    own_roots=[Path.cwd()],
                    speedscope_file=self._wishes.folder / "profile.speedscope.json",
                )
                kept = [f"{ARTIFACTS_NAME}/{name}" for name in profile.files]
                self.explanation.sampling = replace(profile, files=kept)
            except DoctorError as error:
                self._miss(slug=error.slug, sentence=str(error))

        self._within("sampled", seconds + START_SECONDS, gather)

    def _trace(self, session: Session, setup_seconds: float) -> None:
        seconds = self._trace_seconds()
        on_cpu = self._race.found.device.startswith("cpu")

        def gather() -> None:
            file = self._wishes.folder / "trace.json.gz"
            each = probe("trace:" + BASELINE, {}, mode="trace")
            window, detail = self._prober.explain(
                session, each, seconds, {"chrome_trace": str(file)}, most_steps=TRACED_STEPS
            )
            if window.status != "ok":
                self._miss(
                    slug="trace-failed", sentence=f"torch.profiler could not trace the training: {window.reason}."
                )
                return
            if not detail["steps"]:
                self._miss(
                    slug="trace-failed",
                    sentence="torch.profiler could not trace the training: the loop paused too often.",
                )
                return
            self.explanation.device = device_profile(detail, file, [self._kept(file)] if file.exists() else [])

        # Lines say more than operators do, but on a device; they need a start of their own.
        self._within("trace", seconds + (setup_seconds + self._seconds(LINES_SECONDS) if on_cpu else 0.0), gather)

    def _trace_seconds(self) -> float:
        """What the traced steps take, about (tracing doubles the shorter ones), with the writing of the trace."""
        return TRACE_WRITING_SECONDS + min(PHASE_SECONDS, 2 * TRACED_STEPS * self._prober.expected_step({}))

    # -- in a session of its own -------------------------------------------------------------------------------------

    def wants_session(self, setup_seconds: float) -> bool:
        """Whether there is time for another start of the script and some seconds in it."""
        if self._room(setup_seconds + self._seconds(LINES_SECONDS)):
            return True
        self._cut("lines")
        return False

    def lines(self, session: Session) -> None:
        """Time line by line, with loading in the main process. Raises `SessionOver` where the session ends."""

        def gather() -> None:
            file = self._wishes.folder / "lines.lprof"
            found = self._race.found
            setting = line_setting(found)
            options = {
                "functions": functions_to_profile(self.explanation.sampling, found),
                "output": str(file),
                "import_path": folder_of("line_profiler"),
            }
            each = probe("lines:" + judge.key_of(setting), setting, mode="lines")
            window, detail = self._prober.explain(session, each, self._seconds(LINES_SECONDS), options)
            if window.status != "ok":
                self._miss(slug="lines-failed", sentence=f"The lines could not be timed: {window.reason}.")
                return
            self.explanation.lines = line_profile(detail, [self._kept(file)] if file.exists() else [])

        self._progress.stage("Timing the lines that take long")
        self._within("lines", 0.0, gather)

    def left(self) -> float:
        """Seconds of the allowance that are not spent."""
        return max(0.0, self.allowance - self._spent)

    @contextlib.contextmanager
    def lent(self) -> Iterator[None]:
        """What is left of the allowance serves measuring in here; what that does not take comes back."""
        lent = self.left()
        self._clock.budget += lent
        try:
            yield
        finally:
            back = max(0.0, min(lent, self._clock.left()))
            self._clock.budget -= back
            self.allowance = self._spent + back

    def give_back(self) -> None:
        """Nothing more is to be explained: what is left of a budget that the user set goes to measuring."""
        left, self.allowance = self.left(), self._spent
        if self._clock.strict:
            self._clock.budget += left

    # -- bookkeeping -------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def on_the_allowance(self) -> Iterator[None]:
        """Time spent in here is the explanation's and not the measurement's, set-up of a session for it included."""
        if self._charging:
            yield
            return
        begun, left = time.monotonic(), self.allowance - self._spent
        self._charging = True
        self._clock.free += left
        try:
            yield
        finally:
            self._charging = False
            used = time.monotonic() - begun
            self._spent += used
            self._clock.free += used - left

    def _within(self, name: str, expected: float, gather: Callable[[], None]) -> None:
        if not self._room(expected):
            self._cut(name)
            return
        with self.on_the_allowance():
            try:
                gather()
            except SessionOver as over:
                self._miss(
                    slug="explanation-failed",
                    sentence=f"Part of the explanation ({name}) could not be had: {over.why}.",
                )
                raise
            except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
                # What a window tells comes out of somebody else's process: the figures stand without it.
                self._miss(
                    slug="explanation-unreadable",
                    sentence=f"Part of the explanation ({name}) could not be read ({type(error).__name__}: {error}).",
                )

    def _room(self, seconds: float) -> bool:
        return self._charging or self._spent + seconds <= self.allowance

    def _cut(self, name: str) -> None:
        self._cuts.append(name)
        missing = self.explanation.missing
        missing[:] = [each for each in missing if each.slug != "explanation-cut"]
        self._miss(
            slug="explanation-cut",
            sentence="There was no time for everything that explains the figures; left out: "
            f"{', '.join(dict.fromkeys(self._cuts))}. Give more with --budget.",
        )

    def _seconds(self, wanted: float) -> float:
        """How long a window may be: as wanted, or its part of a small allowance."""
        return wanted * self._scale

    def _miss(self, *, slug: str, sentence: str) -> None:
        if all(each.slug != slug for each in self.explanation.missing):
            self.explanation.missing.append(Warning(slug=slug, sentence=sentence.replace("..", ".")))

    @staticmethod
    def _kept(file: Path) -> str:
        """Where a file will lie beside the report."""
        return f"{ARTIFACTS_NAME}/{file.name}"


def elsewhere(hello: messages.Hello) -> bool:
    """Whether this process runs on another host, where its process id means nothing to us."""
    return hello.host not in ("", socket.gethostname())


def not_sampled_elsewhere(hello: messages.Hello) -> Warning:
    """That py-spy was not asked, for the process runs on another host."""
    sentence = f"py-spy can't look into rank {hello.rank}, which runs on another host ({hello.host})."
    return Warning(slug="sampling-elsewhere", sentence=sentence)


def sampled(sampler: Sampler, prober: Prober, session: Session, seconds: float) -> Path | Warning:
    """Run a window of the training as written under py-spy: its raw file, or why there is none.

    Raises what `Prober.explain` raises; then no file is left.
    """
    try:
        sampler.start()
        prober.explain(session, probe("sampled:" + BASELINE, {}, mode="sampled"), seconds, {})
    except BaseException:
        # Whoever interrupts should not wait until a file is written that nobody will read.
        sampler.abandon()
        raise
    return sampler.stop()


def folder_of(package: str) -> str:
    """The folder from which this interpreter imports a package; "" where there is none."""
    found = importlib.util.find_spec(package)
    places = found.submodule_search_locations if found is not None else None
    return str(Path(next(iter(places))).parent) if places else ""
