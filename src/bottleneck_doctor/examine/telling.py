"""What the user reads meanwhile: which window is measured, what is best so far, and how long everything takes."""

from __future__ import annotations

from collections.abc import Sequence

from bottleneck_doctor import knobs
from bottleneck_doctor.documents import labels
from bottleneck_doctor.documents.labels import BASELINE
from bottleneck_doctor.documents.report import Combination, FixOutcome, Rank, Setting, Speedup
from bottleneck_doctor.examine.time_wanted import PROCESS_LUCK, Wanted
from bottleneck_doctor.measure.budget import Budget
from bottleneck_doctor.measure.measurements import Measurements
from bottleneck_doctor.measure.schedule import LEAST_SESSIONS, Probe
from bottleneck_doctor.measure.windows import BURN_IN
from bottleneck_doctor.runtime.wire import messages
from bottleneck_doctor.system.progress import Progress
from bottleneck_doctor.wording import promise_words, words
from bottleneck_doctor.wording.durations import format_duration

NAMES = {BASELINE: "the training as written", BURN_IN: "warming up"}
EXPLAINING = {
    "phases": "timing the phases of a step",
    "sampled": "sampling the process with py-spy",
    "trace": "tracing operators",
    "lines": "timing lines",
}
"""What windows that explain do, by mode."""
WORTH_TELLING = 1.02


class Telling:
    """Shows every window that begins in `progress`. Called with the number of its session and its probe."""

    def __init__(self, measured: Measurements, budget: Budget, progress: Progress) -> None:
        self._measured = measured
        self._budget = budget
        self._progress = progress

    def __call__(self, session: int, each: Probe) -> None:
        named = {
            key: speed
            for key, speed in self._measured.speeds().items()
            if key not in (labels.CONTROL, labels.REPLAY) and not key.startswith(labels.LOADER_ONLY)
        }
        best = max(named, key=lambda key: named[key], default=None)
        so_far = ""
        if best is not None and named[best] > WORTH_TELLING:
            so_far = f"; best so far: {self._name(best)} ({named[best]:.2f}×)"
        what = EXPLAINING.get(each.mode) or f"measuring {self._name(each.key, each)}"
        what = NAMES[BURN_IN] if each.key == BURN_IN else what
        self._progress.update(f"Process {session}: {what}{so_far}", self._budget.elapsed(), self._budget.total)

    def _name(self, key: str, each: Probe | None = None) -> str:
        """The setting that is measured, as a user would write it."""
        if key in NAMES:
            return NAMES[key]
        if each is None:
            setting = next((window.setting for window in self._measured.windows if window.label == key), {})
        else:
            setting = each.as_setting()
        if knobs.is_ceiling(setting):
            return "the speed without loading (the same batches again)"
        text = words.setting_text(setting, self._measured.found.device) if setting else NAMES[BASELINE]
        if key.startswith(labels.LOADER_ONLY):
            return f"loading alone with {text}" if setting else "loading alone"
        return text


def sure(seconds: float, *, confirms: bool = False) -> str:
    """The note that measuring ends `seconds` after the start, because more of it would change nothing; or, if it
    `confirms`, because the program with the change made is worth more than the rest."""
    if confirms:
        return f"Known after {format_duration(seconds)}: the time that is left goes to the program with the change made"
    return f"Sure after {format_duration(seconds)}: measuring more would change nothing"


def claimed(seconds: float, setting: Setting, worth: Speedup, device: str, *, goes_on: bool) -> str:
    """The note that a large gain is sure `seconds` after the start. `goes_on`: more is measured all the same."""
    claim = promise_words.claim(setting, worth, device).rstrip(".").replace("`", "")
    rest = ". What may be faster still is measured; Ctrl-C ends that, with a report" if goes_on else ""
    return f"Known after {format_duration(seconds)}: {claim}{rest}"


def so_far(setting: Setting, speed: float, device: str) -> str:
    """Which setting leads once the first process is done."""
    return f"{words.setting_text(setting, device)} looks {speed:.2f}{words.TIMES} as fast so far. "


def longer(want: Wanted, step_seconds: float, start_seconds: float, total: float) -> str:
    """The note that everything now takes `total` seconds, and why."""
    why = _costs(step_seconds, start_seconds)
    if want.asked:
        why += f", and you asked for {want.processes} processes"
    elif want.processes > LEAST_SESSIONS:
        why += f", and a sure result needs {want.processes} processes"
        if want.spread > PROCESS_LUCK:
            why += f" because measurements of the same training differ by {words.share_text(want.spread)}"
    return f"{why}: {_in_all(total)}"


def goes_on_trying(settings: int, step_seconds: float, start_seconds: float, total: float) -> str:
    """The note that the first process tries so many settings more, and that everything now takes `total` seconds."""
    left = words.count_text(settings, "more setting")
    return f"{_costs(step_seconds, start_seconds)}, and {left} can be tried: {_in_all(total)}"


def undecided(leading: FixOutcome, processes: int, total: float, device: str, *, enough: bool) -> str:
    """The note that so many more processes measure what leads, and everything takes `total` seconds. `enough`: whether
    they should do to be sure of it."""
    assert leading.speedup is not None
    name, figure = words.setting_text(leading.setting, device), words.estimate_text(leading.speedup)
    more = words.count_text(processes, "more process")
    takes = f"To be sure takes {more}" if enough else f"There is time for {more}"
    return f"Not sure yet: {name} was measured at {figure}. {takes}: {_in_all(total)}"


def may_be_more(claimed: Speedup, together: Combination, processes: int, total: float, device: str) -> str:
    """The note that so many more processes measure several fixes together, which look worth more than what is sure."""
    name, figure = words.setting_text(together.setting, device), words.estimate_text(together.speedup)
    more = words.count_text(processes, "more process")
    sure_of = words.estimate_text(claimed)
    return f"Sure of {sure_of}, and {name} was measured at {figure}. To know takes {more}: {_in_all(total)}"


def _in_all(total: float) -> str:
    minutes = words.count_text(max(1, round(total / 60)), "minute")
    return f"about {minutes} in all. Ctrl-C ends the examination, with a report of what is known by then"


def loop(found: messages.Found, step: float, ranks: Sequence[Rank]) -> str:
    """The note that the training loop was found. `step`: seconds."""
    what = f"{found.device.upper()}, {words.duration_text(step)} a step"
    if found.has_loader:
        what += f", {found.loader_type} with num_workers={found.num_workers}"
    if ranks:
        what += f", {words.ranks_text(ranks)}"
    return f"Found the training loop: {what}"


def pairs(settings: Sequence[Setting], more: float) -> str:
    """The note that pairs of processes take `more` seconds than there were for them."""
    said = words.listed([words.setting_text(each) for each in settings])
    return f"Nothing leads by much so far. To measure {said} as well takes {words.duration_text(more)} more"


def too_long(step_seconds: float, start_seconds: float, budget: float) -> str:
    """The note that an answer would take more time than doctor takes without `--budget`."""
    minutes = round(budget / 60)
    why = _costs(step_seconds, start_seconds)
    return (
        f"{why}: a sure result would take about {words.count_text(minutes, 'minute')}. For that, give --budget "
        f"{minutes}m"
    )


def _costs(step_seconds: float, start_seconds: float) -> str:
    step, start = words.duration_text(step_seconds), words.duration_text(start_seconds)
    return f"A step takes {step} and starting the script {start}"
