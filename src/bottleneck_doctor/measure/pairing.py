"""From windows to comparable numbers: each window is paired with the baseline windows around it.

Pure. Windows as measured come in, log ratios for `statistics.speedups` go out. Every pair has two ratios: the *steady*
one counts steps alone; the *promised* one adds what an epoch's start and end cost, at the real epoch length, and how
long Python's garbage collector runs between two epochs. The baseline is worked out for the load of other programs that
the window met (`statistics.neighbours`), and for the size of its batches, where rows of different lengths are put
together (`statistics.covariates`). Pairs beside a program that was there for a smaller part of the examination can be
left out (`undisturbed`).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from bottleneck_doctor.documents.labels import BASELINE, CONTROL
from bottleneck_doctor.documents.report import Setting, Window
from bottleneck_doctor.knobs import of_collector, of_layer, resizes
from bottleneck_doctor.statistics import neighbours
from bottleneck_doctor.statistics.covariates import Seen, slopes
from bottleneck_doctor.statistics.speedups import (
    SESSIONS_OF_A_LARGE_CLAIM,
    Observation,
    baseline_at,
    promised_log_ratio,
)

QUEUE_TOLERANCE = 0.02
STEEPEST_SIZE = 2.0
"""Largest slope of the log cost of a step with the log of its batches' size that is believed: attention's, whose work
grows with the square of the length."""
COUNTED = ("timed", "loader_only")
"""Modes of windows that speedups are made of."""


@dataclass(frozen=True)
class Pair:
    """One window against the baseline around it: logs of (its speed / the baseline's). `load`: the highest load of
    other programs during one of these windows (`neighbours.load`); None if that was not seen."""

    key: str
    session: int
    block: int
    promised: float
    steady: float
    load: float | None = None


def usable(window: Window) -> bool:
    """Whether a window counts: it ran to its end, took effect, and was neither burn-in nor a window that explains."""
    return window.status == "ok" and _timed(window)


def _timed(window: Window) -> bool:
    return window.mode in COUNTED and window.steps > 0 and window.seconds > 0 and window.samples > 0


def samples_per_step(windows: Iterable[Window]) -> float:
    """Mean samples a step over all counted windows: the unit in which ragged batches become comparable."""
    counted = [window for window in windows if usable(window)]
    steps = sum(window.steps for window in counted)
    return sum(window.samples for window in counted) / steps if steps else 1.0


def step_cost(window: Window, per_step: float) -> float:
    """Seconds that a step of average size takes in this window.

    If the queue lost q batches during n steps, q of the batches were made before the window began. So loading can
    sustain only n - q batches in that time.
    """
    return window.seconds * per_step / (window.samples * _sustained(window))


def _sustained(window: Window) -> float:
    """The part of a window's speed at which it could go on for ever; less than 1 if its queue lost batches."""
    if window.mode == "timed" and window.queue_change < -max(1.0, QUEUE_TOLERANCE * window.steps):
        return max(0.1, 1.0 + window.queue_change / window.steps)
    return 1.0


def middle(window: Window) -> float:
    """The middle of a window's timed part, in seconds of the guest's clock."""
    return window.started + window.lead_in_seconds + window.seconds / 2


def load_beside(window: Window) -> float | None:
    """How much other programs loaded the machine meanwhile (`neighbours.load`); None if that was not seen."""
    around = window.around
    if around is None or around.others_wanted is None or not around.cpus:
        return None
    return neighbours.load(around.others_wanted, around.cpus)


def known_loads(windows: Iterable[Window]) -> list[float]:
    """How much other programs loaded the machine during windows that count, where that was seen."""
    return [load for each in windows if usable(each) and (load := load_beside(each)) is not None]


def met_more_load(window: Window, windows: Iterable[Window]) -> bool:
    """Whether other programs wanted much more of the machine in a window than in those of `windows` that count; False
    where that was not seen."""
    here = load_beside(window)
    return here is not None and here > _most_calm(windows)


def others_always(windows: Iterable[Window]) -> float:
    """How many threads of other programs wanted to run in every window so far, on average; 0.0 where fewer than two
    windows showed that."""
    seen = [each.around.others_wanted for each in windows if each.status == "ok" and each.around is not None]
    known = [each for each in seen if each is not None]
    return min(known) if len(known) > 1 else 0.0


def elements_a_sample(window: Window) -> float | None:
    """Log of the elements of a sample, as batches had them; None if they were not counted."""
    return math.log(window.elements / window.samples) if window.elements and window.samples > 0 else None


def _most_calm(windows: Iterable[Window]) -> float:
    """The highest load beside which a window is calm, as these windows show it."""
    return neighbours.most_calm(load_beside(each) for each in windows if usable(each))


class _Covariates:
    """What the load of other programs and the size of batches cost the training as written, from its windows in all
    sessions. That includes windows that were disturbed and repeated.

    What few disturbed windows show does not hold between calm ones: threads that wait for one another, where another
    program keeps a core busy, may take twenty times as long. So there is a second fit, of the calm windows, for pairs
    of these alone.
    """

    _KINDS = (load_beside, elements_a_sample)
    _STEEPEST = (neighbours.STEEPEST, STEEPEST_SIZE)

    def __init__(self, windows: Sequence[Window], per_step: float) -> None:
        self._most_calm = _most_calm(windows)
        mine = {
            index: window
            for index, window in enumerate(windows)
            if window.label == BASELINE and window.status in ("ok", "discarded") and _timed(window)
        }
        self._used = [
            which for which, kind in enumerate(self._KINDS) if any(kind(each) is not None for each in mine.values())
        ]
        self._seen: dict[int, Seen] = {}
        for index, window in mine.items():
            values = [value for which in self._used if (value := self._KINDS[which](window)) is not None]
            if len(values) == len(self._used):
                self._seen[index] = Seen(window.session, math.log(step_cost(window, per_step)), values)
        columns = zip(*(each.covariates for each in self._seen.values()), strict=True)
        self._ranges = [(min(values), max(values)) for values in columns]
        sizes = [value for each in mine.values() if (value := elements_a_sample(each)) is not None]
        # Of the sizes, not of their logs: a training takes as long as all of its batches do.
        self._usual_size = math.log(fmean(map(math.exp, sizes))) if sizes else None
        self._index = {id(window): index for index, window in enumerate(windows)}
        self._calm = {index: each for index, each in self._seen.items() if self.is_calm(mine[index])}
        self._slopes = self._fitted(self._seen.values())
        self._calm_slopes = self._fitted(self._calm.values())

    def _fitted(self, seen: Iterable[Seen]) -> list[float]:
        return slopes(seen, [self._STEEPEST[which] for which in self._used])

    def is_calm(self, window: Window) -> bool:
        """Whether other programs did not want much more than usual meanwhile, as far as that was seen."""
        return neighbours.is_calm(load_beside(window), self._most_calm)

    def growth(self, kind: Callable[[Window], float | None]) -> float:
        """The slope of one of the covariates."""
        fitted = zip(self._used, self._slopes, strict=True)
        return next((slope for which, slope in fitted if self._KINDS[which] is kind), 0.0)

    def added(self, windows: Sequence[Window], at: Window) -> tuple[list[float], float]:
        """What the covariates added to the log cost of each of these windows of the training as written, and what those
        that `at` met would add. What is not known of all of them adds nothing.

        If `at` is a window of the training as written itself, the slopes are computed without it.
        """
        calm = all(map(self.is_calm, (*windows, at)))
        fitted, seen = (self._calm_slopes, self._calm) if calm else (self._slopes, self._seen)
        if any(fitted) and (own := self._index[id(at)]) in seen:
            fitted = self._fitted(each for index, each in seen.items() if index != own)
        sums, of_here = [0.0] * len(windows), 0.0
        for which, slope, (least, most) in zip(self._used, fitted, self._ranges, strict=False):
            kind = self._KINDS[which]
            values = [kind(window) for window in windows]
            # Batches of another size are what such a setting is tried for. It is held against the usual size.
            here = self._usual_size if kind is elements_a_sample and resizes(at.setting) else kind(at)
            known = [value for value in values if value is not None]
            if not slope or here is None or len(known) < len(values):
                continue
            sums = [total + slope * value for total, value in zip(sums, known, strict=True)]
            # Nothing is known outside of the range that was seen.
            of_here += slope * min(most, max(least, here))
        return sums, of_here


def growth_with_size(windows: Sequence[Window]) -> float:
    """By how much the log cost of a step as written grows with the log of its batch's size; 0 if that is not known, or
    if batches are all alike."""
    return _Covariates(windows, samples_per_step(windows)).growth(elements_a_sample)


def pairs(windows: Sequence[Window], epoch_batches: int | None) -> list[Pair]:
    """Every counted window against the baseline windows around it in the same session, under the load that it met and
    with batches of the same size.

    A baseline window between two others is the control: it shows what a fix that changes nothing would look like.
    """
    counted = [window for window in windows if usable(window)]
    per_step = samples_per_step(counted)
    # What starting workers costs is known before a process is warm, and later they may go on from window to window.
    overheads = _epoch_overheads([each for each in windows if each.status in ("ok", "discarded")])
    collecting = _collecting(windows)
    covariates = _Covariates(windows, per_step)
    made: list[Pair] = []
    for session in sorted({window.session for window in counted}):
        mine = [window for window in counted if window.session == session]
        baseline = sorted((window for window in mine if window.label == BASELINE), key=middle)
        if not baseline:
            continue

        def beside(window: Window, baseline: Sequence[Window] = baseline) -> list[Window]:
            around = [each for each in baseline if each is not window]
            calm = [each for each in around if covariates.is_calm(each)]
            return calm if calm and covariates.is_calm(window) else around

        def base_for(window: Window, around: Sequence[Window]) -> float:
            added, here = covariates.added(around, window)
            alone = [step_cost(each, per_step) / math.exp(more) for each, more in zip(around, added, strict=True)]
            return baseline_at([middle(each) for each in around], alone, middle(window)) * math.exp(here)

        own_overhead = _known(overheads, session, _loader_part({}), 0.0)
        own_collecting = _known(collecting, session, _collector_part({}), 0.0)
        for window in baseline[1:-1]:
            around = beside(window)
            ratio = math.log(base_for(window, around) / step_cost(window, per_step))
            made.append(Pair(CONTROL, session, window.block, ratio, ratio, _load_of_pair(window, around)))
        for window in mine:
            if window.label == BASELINE:
                continue
            cost = step_cost(window, per_step)
            around = beside(window)
            base = base_for(window, around)
            steady = math.log(base / cost)
            promised = steady
            if window.mode == "timed" and epoch_batches:
                turn, own_turn = 0.0, 0.0
                if not window.whole_epochs:
                    lowest = -0.5 * epoch_batches * min(base, cost)
                    turn = max(lowest, _known(overheads, session, _loader_part(window.setting), own_overhead))
                    own_turn = max(lowest, own_overhead)
                turn += _known(collecting, session, _collector_part(window.setting), own_collecting)
                promised = promised_log_ratio(epoch_batches, base, own_turn + own_collecting, cost, turn)
            load = _load_of_pair(window, around)
            made.append(Pair(window.label, session, window.block, promised, steady, load))
    return made


def _load_of_pair(window: Window, baseline: Sequence[Window]) -> float | None:
    """The highest load during a window and the baseline windows just before and after it. `baseline`: by time."""
    at = middle(window)
    before = [each for each in baseline if each is not window and middle(each) <= at][-1:]
    after = [each for each in baseline if each is not window and middle(each) > at][:1]
    loads = [load_beside(each) for each in (window, *before, *after)]
    known = [load for load in loads if load is not None]
    return max(known) if len(known) == len(loads) else None


def undisturbed(made: Sequence[Pair], windows: Iterable[Window]) -> list[Pair]:
    """The pairs, without those of which a window ran beside much more load than usual. A setting keeps all of its pairs
    if fewer sessions than a claim needs would be left: then what was measured beside other programs is better than
    nothing.

    The load alone decides, and no setting changes what other programs want. So no setting is favoured.
    """
    most = _most_calm(windows)

    def is_calm(pair: Pair) -> bool:
        return neighbours.is_calm(pair.load, most)

    sessions: dict[str, set[int]] = defaultdict(set)
    for each in filter(is_calm, made):
        sessions[each.key].add(each.session)
    enough = {key for key, seen in sessions.items() if len(seen) >= SESSIONS_OF_A_LARGE_CLAIM}
    return [each for each in made if each.key not in enough or is_calm(each)]


def quick_speeds(windows: Sequence[Window], epoch_batches: int | None) -> dict[str, float]:
    """Rough speed of each setting relative to the baseline so far, by key. It decides what is measured next, and
    nothing is claimed from it."""
    by_key: dict[str, list[float]] = {}
    for pair in pairs(windows, epoch_batches):
        by_key.setdefault(pair.key, []).append(pair.promised)
    return {key: math.exp(fmean(values)) for key, values in by_key.items()}


Part = tuple[tuple[str, object], ...]
"""The knobs of a setting on which a cost depends, with their values."""
EpochCosts = dict[tuple[int | None, Part], float]
"""Seconds an epoch, by session and part of the setting; with None for a session, the mean of all."""


def _loader_part(setting: Setting) -> Part:
    return tuple(sorted(of_layer(setting, "loader").items()))


def _collector_part(setting: Setting) -> Part:
    return tuple(sorted(of_collector(setting).items()))


def _known(costs: EpochCosts, session: int, part: Part, otherwise: float) -> float:
    return costs.get((session, part), costs.get((None, part), otherwise))


def _collecting(windows: Iterable[Window]) -> EpochCosts:
    """How long Python's garbage collector runs between two epochs under each set-up of it: means over all such times.

    It is a part of what an epoch costs, since a setting can act on it.
    """
    turns: dict[tuple[int | None, Part], int] = defaultdict(int)
    seconds: dict[tuple[int | None, Part], float] = defaultdict(float)
    for window in windows:
        if window.turns and window.status in ("ok", "discarded"):
            for session in (window.session, None):
                key = session, _collector_part(window.setting)
                turns[key] += window.turns
                seconds[key] += window.turns_collecting
    return {key: seconds[key] / number for key, number in turns.items()}


def _epoch_overheads(windows: Sequence[Window]) -> EpochCosts:
    """What starting an epoch costs under each set-up of the loader, in seconds: the mean of each session, and over all.

    Some figures may be below 0 by chance. They stay as they are, since means of figures cut off at 0 would be too high.
    """
    seen: dict[tuple[int | None, Part], list[float]] = defaultdict(list)
    for window in windows:
        if window.turn_seconds is None or window.whole_epochs:
            continue
        part = _loader_part(window.setting)
        seen[window.session, part].append(window.turn_seconds)
        seen[None, part].append(window.turn_seconds)
    return {key: fmean(values) for key, values in seen.items()}


def observations(made: Iterable[Pair], *, steady: bool = False) -> list[Observation]:
    """Pairs in the form that the statistics take."""
    return [Observation(pair.session, pair.block, pair.key, pair.steady if steady else pair.promised) for pair in made]


def collecting_a_turn(windows: Iterable[Window]) -> float | None:
    """Mean seconds that Python's garbage collector runs between two epochs of the training as written; None if no
    window of it held the end of one epoch and the start of the next."""
    return _collecting(windows).get((None, _collector_part({})))


def wait_share(windows: Iterable[Window]) -> float | None:
    """Part of the baseline's time that was spent waiting for the next batch."""
    baseline = [window for window in windows if usable(window) and window.label == BASELINE]
    seconds = sum(window.seconds for window in baseline)
    return min(1.0, sum(window.wait_seconds for window in baseline) / seconds) if seconds else None


def waiting(windows: Iterable[Window]) -> dict[str, float]:
    """The part of the time that steps wait for batches, by the key of a setting, if all went on as in its windows."""
    sums: dict[str, tuple[float, float]] = {}
    for window in windows:
        if usable(window) and window.mode == "timed":
            waited, seconds = sums.get(window.label, (0.0, 0.0))
            whole = window.seconds / _sustained(window)
            sums[window.label] = waited + window.wait_seconds + whole - window.seconds, seconds + whole
    return {key: min(1.0, waited / seconds) for key, (waited, seconds) in sums.items()}


def baseline_epoch_overhead(windows: Sequence[Window]) -> float | None:
    """Mean seconds that starting an epoch costs the user now; None if whole epochs were timed or no start was seen.

    A mean that is below 0 by chance becomes 0.
    """
    overhead = _epoch_overheads([window for window in windows if usable(window)]).get((None, _loader_part({})))
    return None if overhead is None else max(0.0, overhead)
