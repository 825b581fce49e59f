"""Gathers what explains the figures, in windows of their own: phases, profiles, traces, and the machine meanwhile.

A live session and what was measured so far go in; an `Explanation` comes out. Phases and a sampled window of the
training as written come first of all (`begin`): they need nothing to be compared with, so that whatever ends the
examination, it is known where the time goes. The rest (`explain`, `lines`) comes once everything is measured. Nothing
here is counted for a speedup, nothing here may cost the examination: a part that can't be had is missing, with its
reason. The time that it takes is bounded (`Explainer.allowance`), and comes on top of the budget only where the user
set none.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bottleneck_doctor.documents import labels
from bottleneck_doctor.documents.labels import BASELINE
from bottleneck_doctor.documents.report import (
    Setting,
    Window,
)
from bottleneck_doctor.explain.details import LinesDetail, TraceDetail, Unreadable, check
from bottleneck_doctor.explain.explanation import Explanation as Explanation
from bottleneck_doctor.explain.phased import PhasedWindows
from bottleneck_doctor.explain.stacks import ExplainOptions as ExplainOptions
from bottleneck_doctor.explain.stacks import Stacks
from bottleneck_doctor.measure import first_look, pauses
from bottleneck_doctor.measure.budget import Allowance, Budget, OutOfTime
from bottleneck_doctor.measure.measurements import Measurements
from bottleneck_doctor.measure.prober import Prober
from bottleneck_doctor.measure.sampled import AS_SAMPLED, elsewhere, folder_of, not_sampled_elsewhere, sampled, under
from bottleneck_doctor.measure.schedule import Probe, probe
from bottleneck_doctor.measure.starter import Live
from bottleneck_doctor.monitor import UsageWatch
from bottleneck_doctor.profiling.device import device_profile
from bottleneck_doctor.profiling.lines import functions_to_profile, line_profile, line_setting
from bottleneck_doctor.profiling.pyspy import PySpySampler
from bottleneck_doctor.session.ending import SessionOver
from bottleneck_doctor.system.output import ARTIFACTS_NAME
from bottleneck_doctor.system.progress import Progress
from bottleneck_doctor.wording import words

ALLOWANCE = 60.0
"""Seconds on top of a budget that the user left to us."""
ALLOWANCE_SHARE = 0.25
"""Part of a budget that the user set."""
LEAST_ALLOWANCE, LARGEST_SHARE = 20.0, 0.4
"""Under small budgets explaining gets so many seconds, as long as that is no larger a part: why is told by few windows,
how much only by many."""
PHASE_SECONDS = 3.0
SAMPLED_SECONDS = 5.0
LINES_SECONDS = 5.0
TRACED_STEPS = 6
"""Operators of a few steps say what many say, and a trace grows by megabytes a second."""
TRACED_SECONDS = 6.0
"""Fewer than that are traced where they take longer."""
TRACE_WRITING_SECONDS = 3.0
WORTH_A_LOOK = 1.02
"""Settings that promise less than this are not laid beside the baseline."""
PARTS = {
    "phases": "the phases of a step",
    "sampled": "the sampling profile",
    "trace": "the table of operators",
    "lines": "the times of lines",
}
"""What a report lacks where a window of this mode is missing."""
START_SECONDS = 1.0
"""What py-spy takes to start and to write its file."""

LEAD_IN_SECONDS = 5.0
"""What lies around them: lead-in, and py-spy's own start and end."""
REST_SECONDS = 2 * PHASE_SECONDS + LINES_SECONDS
"""What windows of phases and lines take together once everything is measured, without their lead-in."""
SMALLEST_SCALE = 0.3
FIRST_SHARE = 0.3
"""Part of the allowance that each of the two first windows may take, lead-in included. Where steps are so long that two
of them take more, it is more: without them there is no reason to tell."""
MOST_TRIES = 2
"""Processes in which the first windows are tried: a script that ends in one may be long enough for shorter ones."""


def reserve(budget: Budget) -> Allowance:
    """Time set apart for the explanation: on top of our own budget, out of what is left of one that the user set.

    What is left and not the whole: a first start that makes caches may take most of it, and without the training as
    written nothing could be explained.
    """
    if not budget.strict:
        return budget.reserve(ALLOWANCE)
    left = max(0.0, budget.left())
    return budget.reserve(max(ALLOWANCE_SHARE * left, min(LEAST_ALLOWANCE, LARGEST_SHARE * left)))


class Explainer:
    """Gathers an `Explanation` in live sessions. `done`: whether everything that wants a plain session was tried."""

    def __init__(
        self,
        measured: Measurements,
        prober: Prober,
        budget: Budget,
        progress: Progress,
        options: ExplainOptions,
        allowance: Allowance,
        *,
        sampler: Callable[..., PySpySampler] = PySpySampler,
        watch: Callable[[int], UsageWatch] = UsageWatch,
    ) -> None:
        self.explanation = Explanation()
        self.done = False
        self.busy = False
        """Whether a window that explains is under way: a session that crashes then may owe it to that."""
        self.allowance = allowance
        self._measured = measured
        self._prober = prober
        self._budget = budget
        self._progress = progress
        self._options = options
        self._stacks = Stacks(options, sampler, measured)
        self._make_watch = watch
        self._tries = 0
        self._broke: set[str] = set()
        """Parts under which a process crashed: they are not tried again."""
        self._tried: set[str] = set()
        """Parts that were gathered, or can't be."""
        self._phased = PhasedWindows(measured, prober)
        self._scale = 1.0
        self._cuts: list[str] = []

    # -- the machine -------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def watching(self, live: Live) -> Iterator[None]:
        """Watch the process of a session that has shown itself, as long as the context lasts."""
        if live.session.hello is None or elsewhere(live.session.hello):
            yield
            return
        watch = self._make_watch(live.session.hello.pid)
        watch.start()
        self.explanation.watches.append(watch)
        try:
            yield
        finally:
            watch.stop()

    def explained(self) -> Explanation:
        """All that was gathered so far, and what processes told of their pauses in any window."""
        self.explanation.read_pauses(list(self._measured.pauses.values()), self._measured.windows)
        self.explanation.long_pause = pauses.long_pause(self._measured.unfinished)
        return self.explanation

    # -- in a session that trains as written -------------------------------------------------------------------------

    def begun(self) -> bool:
        """Whether the two first windows were had, or are not tried any more."""
        return self._tried >= {"phases", "sampled"} or bool(self._broke) or self._tries >= MOST_TRIES

    def shares_as_written(self) -> dict[str, float] | None:
        """Shares of the time of the training as written, by phase, from 0 to 1. None where they are not known, or are
        from windows beside which something else ran."""
        table = self.explanation.phases
        if table is None or self._phased.all_disturbed({}):
            return None
        return asdict(table.baseline)

    def begin(self, live: Live, *, at_once: bool = False) -> None:
        """Phases and a sampled window of the training as written, before anything is measured; both in one window if
        `at_once`, where steps take seconds: then neither changes the other, and a window of its own takes as long as
        another setting. Raises `SessionOver` and `OutOfTime`."""
        if self.begun():
            return
        self._tries += 1
        self._prober.block += 1
        self._progress.stage("Finding out where the time goes")
        # A process that ended under a window of this length may hold a shorter one.
        most = FIRST_SHARE * self.allowance.seconds if self._tries == 1 else 0.0
        if "phases" not in self._tried:
            sampler = self._stacks.sampler(live) if at_once and "sampled" not in self._tried else None
            self._phases(live, {}, most_seconds=most, sampler=sampler)
        if "sampled" not in self._tried:
            self._sample(live, most_seconds=most)

    def explain(self, live: Live, setup_seconds: float) -> None:
        """Everything else but the lines, cheapest and most telling first. Raises `SessionOver` where the session ends.

        `setup_seconds`: what another start of the script takes, about.
        """
        self.done = True
        free = self.allowance.left() - setup_seconds - LEAD_IN_SECONDS - self._trace_seconds()
        self._scale = min(1.0, max(SMALLEST_SCALE, free / REST_SECONDS))
        self._prober.block += 1
        self._progress.stage("Finding out in detail where the time goes")
        # What lies between epochs was not seen yet as this process began.
        self._phases(live, {})
        best = self._measured.fastest(WORTH_A_LOOK)
        if best is not None:
            self._phases(live, best)
        if "sampled" not in self._tried:
            self._sample(live, most_seconds=FIRST_SHARE * self.allowance.left())
        self._trace(live, setup_seconds)

    def _phases(
        self,
        live: Live,
        setting: Setting,
        *,
        most_seconds: float | None = None,
        sampler: PySpySampler | None = None,
    ) -> None:
        """`most_seconds`: of a first window, for which there is no timed one yet. `sampler`: takes stacks in it."""
        first = most_seconds is not None
        seconds = PHASE_SECONDS if first else self._seconds(PHASE_SECONDS)
        most = most_seconds if most_seconds is not None else max(seconds, FIRST_SHARE * self.allowance.left())
        each = probe(_phases_of(setting), setting, mode="phases")
        expected = self._prober.costs.explaining(each, seconds, most_seconds=most)

        def explained() -> tuple[Window, dict[str, Any]]:
            return self._prober.explain(live.session, each, seconds, {}, most_seconds=most)

        def take() -> bool:
            if sampler is None:
                window, detail = explained()
            else:
                (window, detail), file = under(sampler, explained)
                self.explanation.add_stacks(self._stacks.read(live, sampler, file))
            if window.status != "ok":
                self.explanation.miss(
                    slug="phases-failed", sentence=f"The phases of a step could not be timed: {window.reason}."
                )
                return False
            self._phased.add(window, detail)
            self.explanation.read_phases(setting, self._phased.details(setting), self._measured.found)
            if first:
                made, found = self.explanation.loading_as_written(), self._measured.found
                first_look.heed(self._prober.costs, window, detail, made, found, self._measured.epoch_batches)
            return True

        def gather() -> None:
            while take() and not first and self._phased.wants_another(setting) and self.allowance.room(expected):
                pass

        if sampler is None:
            self._within(["phases"], expected, gather, first=first)
        else:
            self._within(["phases", "sampled"], expected + START_SECONDS, gather, first=first)

    def _sample(self, live: Live, *, most_seconds: float) -> None:
        hello, sampler = live.session.hello, self._stacks.sampler(live)
        if hello is None:
            return
        if sampler is None:
            self.explanation.missing.append(not_sampled_elsewhere(hello))
            self._tried.add("sampled")
            return
        seconds = min(SAMPLED_SECONDS, max(SMALLEST_SCALE * SAMPLED_SECONDS, FIRST_SHARE * self.allowance.seconds))

        def gather() -> None:
            file = sampled(sampler, self._prober, live.session, seconds, most_seconds=most_seconds)
            self.explanation.add_stacks(self._stacks.read(live, sampler, file))

        expected = self._prober.costs.explaining(AS_SAMPLED, seconds, most_seconds=most_seconds)
        self._within(["sampled"], expected + START_SECONDS, gather, first=True)

    def _trace(self, live: Live, setup_seconds: float) -> None:
        on_cpu = self._measured.found.device.startswith("cpu")

        def gather() -> None:
            file = self._options.folder / "trace.json.gz"
            window, detail = self._prober.explain(
                live.session,
                _AS_TRACED,
                PHASE_SECONDS,
                {"chrome_trace": str(file)},
                most_steps=TRACED_STEPS,
                most_seconds=TRACED_SECONDS,
            )
            if window.status != "ok":
                self.explanation.miss(
                    slug="trace-failed", sentence=f"torch.profiler could not trace the training: {window.reason}."
                )
                return
            check(detail, TraceDetail)
            if not detail["steps"]:
                self.explanation.miss(
                    slug="trace-failed",
                    sentence="torch.profiler could not trace the training: the loop paused too often.",
                )
                return
            self.explanation.device = device_profile(detail, file, [_kept(file)] if file.exists() else [])

        # Lines say more than operators do, but on a device; they need a start of their own.
        lines = setup_seconds + self._lines_seconds() if on_cpu else 0.0
        self._within(["trace"], self._trace_seconds() + lines, gather)

    def _trace_seconds(self) -> float:
        """What the traced steps take, about (tracing doubles the shorter ones), with the writing of the trace."""
        steps = self._prober.costs.explaining(
            _AS_TRACED, PHASE_SECONDS, most_steps=TRACED_STEPS, most_seconds=TRACED_SECONDS
        )
        return TRACE_WRITING_SECONDS + max(steps, min(PHASE_SECONDS, 2 * steps))

    # -- in a session of its own -------------------------------------------------------------------------------------

    def wants_session(self, setup_seconds: float) -> bool:
        """Whether there is time for another start of the script and some seconds in it."""
        if self.allowance.room(setup_seconds + self._lines_seconds()):
            return True
        self._cut("lines")
        return False

    def lines(self, live: Live) -> None:
        """Time line by line, with loading in the main process. Raises `SessionOver` where the session ends."""

        def gather() -> None:
            file = self._options.folder / "lines.lprof"
            options = {
                "functions": functions_to_profile(self.explanation.sampling, self._measured.found),
                "output": str(file),
                "import_path": folder_of("line_profiler"),
            }
            seconds = self._seconds(LINES_SECONDS)
            window, detail = self._prober.explain(
                live.session, self._by_lines(), seconds, options, most_seconds=2 * seconds
            )
            if window.status != "ok":
                self.explanation.miss(slug="lines-failed", sentence=f"The lines could not be timed: {window.reason}.")
                return
            check(detail, LinesDetail)
            self.explanation.lines = line_profile(detail, [_kept(file)] if file.exists() else [])

        self._progress.stage("Timing the slow lines")
        self._within(["lines"], 0.0, gather)

    def _by_lines(self) -> Probe:
        setting = line_setting(self._measured.found)
        return probe("lines:" + labels.key_of(setting), setting, mode="lines")

    def _lines_seconds(self) -> float:
        """What the window of the lines takes, about, without the start of its process."""
        seconds = self._seconds(LINES_SECONDS)
        return max(seconds, self._prober.costs.explaining(self._by_lines(), seconds, most_seconds=2 * seconds))

    # -- bookkeeping -------------------------------------------------------------------------------------------------

    def _within(
        self, parts: Sequence[str], expected: float, gather: Callable[[], None], *, first: bool = False
    ) -> None:
        """Gather `parts` in a window that takes `expected` seconds, about, if there is so much time. The `first`
        windows of all may take more than the allowance: what they lack is measuring's, without which they still say
        something."""
        if self._broke & set(parts):
            return
        if not (expected <= self._budget.until_end() if first else self.allowance.room(expected)):
            for name in parts:
                if not first or name not in self._tried:
                    self._cut(name)
            self._tried.update(parts)
            return
        named = words.listed([PARTS[name] for name in parts])
        with self.allowance.charged():
            self.busy = True
            try:
                gather()
            except OutOfTime:
                self.busy = False
                raise
            except SessionOver as over:
                if over.crashed or over.ours or over.apart:
                    self._broke.update(parts)
                self.explanation.miss(slug="explanation-failed", sentence=f"The report lacks {named}: {over.why}.")
                raise
            except Unreadable as error:
                # What a window tells comes out of somebody else's process: the figures stand without it. Errors of our
                # own are not caught: they would look like this, and nobody would look for them.
                self.explanation.miss_unreadable(named, error)
            self.busy = False
            self._tried.update(parts)

    def _cut(self, name: str) -> None:
        self._cuts.append(name)
        missing = self.explanation.missing
        missing[:] = [each for each in missing if each.slug != "explanation-cut"]
        self.explanation.miss(
            slug="explanation-cut",
            sentence="There was no time for all measurements that show where the time goes. Left out: "
            f"{words.listed([PARTS[each] for each in dict.fromkeys(self._cuts)])}. Give more time with --budget.",
        )

    def _seconds(self, wanted: float) -> float:
        """How long a window may be: as wanted, or its part of a small allowance."""
        return wanted * self._scale


def _kept(file: Path) -> str:
    """Where a file will lie beside the report."""
    return f"{ARTIFACTS_NAME}/{file.name}"


_AS_TRACED: Probe = probe("trace:" + BASELINE, {}, mode="trace")


def _phases_of(setting: Setting) -> str:
    """The key of windows that tell the phases under a setting."""
    return "phases:" + labels.key_of(setting)
