"""What windows cost: how long a step takes, how long a window should be, and what it takes with its lead-in. Pure.

All figures are expectations in seconds. They come from the steps in which the loop was found, until windows show more.
"""

from __future__ import annotations

import math
from dataclasses import replace

from bottleneck_doctor import knobs
from bottleneck_doctor.documents import labels
from bottleneck_doctor.documents.labels import BASELINE
from bottleneck_doctor.documents.report import Setting, Window
from bottleneck_doctor.knobs import Loading, num_workers
from bottleneck_doctor.measure import pairing, pauses, schedule
from bottleneck_doctor.measure.schedule import LEAST_TOLD_STEPS, LoopShape, Probe, WindowSize
from bottleneck_doctor.measure.supply import HARDLY, SMALL, Supply
from bottleneck_doctor.measure.windows import AS_WRITTEN

LONGER = 2.0
"""A window may be longer by this factor than it aims at, to be as long as its lead-in."""
MOST_STRETCHED = 2.0
"""Where pauses between epochs, such as evaluations, make windows longer by more than this factor, their timed parts are
shorter, because the time goes by where nothing is timed."""
LEAST_STRETCHED = 0.4
"""Timed seconds of such a window that are left at least."""
COMPARED = 3
"""Windows that a comparison takes: a setting between two as written."""
LED_PAST = 3
"""One step of so many is timed where a process soon ends and the queue is deep; the others lead past as much of it as
they can."""
SHORT_STEP = 0.1
"""If steps are shorter than this many seconds, going past any queue takes little time."""


class Costs:
    """The costs of windows of one loop. `step`: seconds that a step takes, about. `window_seconds`: what the timed part
    of a window aims at. `brief`: whether a window may hold fewer steps if steps are long."""

    def __init__(self, shape: LoopShape, step: float, window_seconds: float, *, brief: bool = False) -> None:
        self.shape = shape
        self.window_seconds = window_seconds
        self.seconds: dict[str, float] = {}
        """Seconds that the last window of each probe took with its lead-in, by the probe's key."""
        self.epochs = schedule.whole_epochs(shape, step, window_seconds)
        """Whether windows are whole epochs."""
        self.baseline_step = step
        """Seconds that a step takes as written."""
        self.supply: Supply | None = None
        """How batches come to the training as written; None until that was seen."""
        self.regular = False
        """Whether all steps take equally long, as far as was seen."""
        self.most_steps: int | None = None
        """Timed steps that a window has at most, however short they are, because the script soon ends; None: as many as
        usual."""
        self._brief = brief
        self._life: float | None = None
        self._step_seconds: dict[str, float] = {}
        self._stretch = 1.0
        self._opening = 0.0
        """Seconds that the loader takes to start, in a window that does not find it at work."""

    def with_windows_of(self, seconds: float) -> Costs:
        """The same loop in other processes, with brief windows whose timed part aims at `seconds`."""
        made = Costs(self.shape, self.expected_step({}), seconds, brief=True)
        made.take_over(self)
        return made

    def take_over(self, known: Costs) -> None:
        """Take over what other processes with the same loop have shown, but for how long its steps take."""
        self.heed(known.supply, regular=known.regular)
        self.most_steps = known.most_steps
        self._stretch = known._stretch

    def heed_life(self, most_steps: int | None, steps: float | None) -> None:
        """Learn for how many `steps` a process lives once it has found its loop, and how many timed ones a window has
        at most; None for as many as usual. Where it lives for fewer epochs than a comparison takes, no window is
        one."""
        self.most_steps, self._life = most_steps, steps
        self.epochs = self.epochs and self._lives_for_epochs()

    def _lives_for_epochs(self) -> bool:
        # It comes to its loop in the midst of an epoch, of which half is left on average.
        return self._life is None or self._life >= (COMPARED + 0.5) * (self.shape.epoch_batches or 0)

    @property
    def has_long_steps(self) -> bool:
        """Whether a step as written takes so long that each one counts."""
        return self.baseline_step >= schedule.LONG_LEAD_IN

    @property
    def loading_may_pay(self) -> bool:
        """Whether faster loading may bring something, as far as was seen. If so, windows over an iterable dataset have
        to load the same samples."""
        return self.supply is None or not self.supply.no_reason

    @property
    def epoch_seconds(self) -> float:
        """About how long one epoch takes as written."""
        return (self.shape.epoch_batches or 0) * self.baseline_step

    def learnt(self, each: Probe, window: Window) -> None:
        """Learn from a timed window of this probe."""
        step = window.seconds / window.steps
        self._step_seconds[each.key] = step
        if each.key in AS_WRITTEN:
            self.baseline_step = step
            if window.whole_epochs:
                self._stretch = pauses.stretch([window])

    def learnt_first(self, window: Window) -> None:
        """Learn from a window that explains, before any that counts: until then, only the few steps are known in which
        the loop was found."""
        self.baseline_step = window.seconds / window.steps
        if self._epochs_within(window.steps + window.lead_in_steps):
            self._stretch = pauses.stretch_of_steps(window)
        elif not window.turns:
            self._opening = max(0.0, window.lead_in_seconds - window.lead_in_steps * self.baseline_step)

    def learnt_epoch(self, batches: int, *, anew: bool) -> None:
        """Learn how many batches an epoch has. `anew`: decide once more whether windows are whole epochs."""
        if batches == self.shape.epoch_batches:
            return
        self.shape = replace(self.shape, epoch_batches=batches)
        if anew:
            self.epochs = schedule.whole_epochs(self.shape, self.baseline_step, self.window_seconds)
            self.epochs = self.epochs and self._lives_for_epochs()
            self.heed(self.supply, regular=self.regular)

    def heed(self, supply: Supply | None, *, regular: bool) -> None:
        """Learn how batches come to the training as written, and whether all of its steps take equally long."""
        self.supply, self.regular = supply, regular
        if not self.epochs or supply is None:
            return
        long = self.has_long_steps
        hardly_waits = supply.waiting < HARDLY and self._lies_ready(self.shape.loading({}))
        if not ((supply.no_reason or hardly_waits) if long else self._is_fed(supply)):
            return
        # Whole epochs take long. If nobody waits where one begins, they tell no more than a part of one.
        self.epochs = False
        size = self.size(schedule.probe(BASELINE, {}), self.window_seconds)
        is_short = self.epoch_seconds <= (schedule.ABOUT_A_WINDOW if long else 1.0) * self.window_seconds
        self.epochs = is_short or size.lead_in + size.steps > (self.shape.epoch_batches or 0)

    def _is_fed(self, supply: Supply) -> bool:
        """Whether the training process makes its batches itself, in so little time that workers can't bring much, and
        epochs begin at once."""
        return self.shape.loading({}).workers == 0 and supply.wait < SMALL and supply.epoch_start < HARDLY

    # -- steps ---------------------------------------------------------------------------------------------------------

    def expected_step(self, setting: Setting) -> float:
        """Seconds that a step takes under a setting: as measured. If it was not measured and has fewer workers than the
        training as written, longer in proportion."""
        known = self._step_seconds.get(labels.key_of(setting))
        if known is not None:
            return known
        own = self.shape.num_workers
        fewer = own / max(1, num_workers.under(setting, own))
        return self.baseline_step * max(1.0, fewer)

    def step(self, each: Probe) -> float:
        """Seconds that a step is expected to take in a window of this probe."""
        if each.mode not in pairing.COUNTED:
            return self.expected_step(each.as_setting())
        return self._step_seconds.get(each.key, self.baseline_step)

    # -- sizes ---------------------------------------------------------------------------------------------------------

    def size(self, each: Probe, seconds: float, *, warm: bool = False) -> WindowSize:
        """How long a window that counts should be, for a timed part of `seconds`. `warm`: its process has computed
        under such a setting before."""
        step, setting = self.step(each), each.as_setting()
        if self._brief and self.epochs:
            seconds = self._beside_pauses(seconds)
        size = schedule.window_size(
            self.shape,
            setting,
            each.mode,
            step,
            seconds,
            epochs=self.epochs,
            warm=warm,
            least=self._least(step),
            settled=self._settled(each, step),
        )
        if self._brief and not size.epochs and each.mode == "timed":
            # Where filling a queue takes longer than what is timed behind it, a longer window costs little more.
            paid = min(size.lead_in, math.ceil(LONGER * seconds / max(1e-9, step)))
            size = replace(size, steps=max(size.steps, schedule.in_units(paid, size.unit)))
        if self.most_steps is None:
            return size
        if size.epochs:
            return replace(size, epochs=min(size.epochs, max(1, self.most_steps // (self.shape.epoch_batches or 1))))
        return self._within_life(size, self.most_steps)

    def _within_life(self, size: WindowSize, most_steps: int) -> WindowSize:
        """`size`, cut to a window's share of a process that soon ends. A faster setting has more steps a second, but
        the script has no more of them. Where that share has no room to lead past all of a queue, it leads past as much
        of it as fits."""
        period, share = self.shape.period, schedule.PLAIN_LEAD_IN + most_steps
        plain = schedule.in_units(schedule.PLAIN_LEAD_IN, period)
        fewest = schedule.in_units(max(LEAST_TOLD_STEPS, share // LED_PAST), period)
        if size.lead_in <= max(plain, share - max(size.unit, fewest)):
            most = min(most_steps, share - size.lead_in) // size.unit * size.unit
            return replace(size, steps=min(size.steps, max(size.unit, most)))
        lead_in = schedule.in_units(max(plain, min(size.lead_in, share - fewest)), period)
        return replace(size, lead_in=lead_in, steps=min(size.steps, fewest), unit=period)

    def _beside_pauses(self, seconds: float) -> float:
        """`seconds`, or as many fewer as pauses between epochs are longer than what a window may take."""
        shortest = min(seconds, LEAST_STRETCHED)
        return max(shortest, seconds * MOST_STRETCHED / max(MOST_STRETCHED, self._stretch))

    def explaining_size(self, each: Probe, seconds: float, most_steps: int | None, most_seconds: float) -> WindowSize:
        """The same for a window that explains: at most `most_steps` timed steps, and `most_seconds` with lead-in."""
        step = self.expected_step(each.as_setting())
        size = schedule.window_size(
            self.shape,
            each.as_setting(),
            each.mode,
            step,
            self._beside_pauses(seconds),
            epochs=False,
            least=self._least(step),
            settled=self._settled(each, step),
        )
        if most_steps is not None:
            size = replace(size, steps=min(size.steps, max(most_steps, self.shape.period)))
        if self.most_steps is not None and self.epochs:
            # An epoch is over before a queue is led past. Elsewhere, what lies ready in it would hide the wait.
            whole = self.shape.epoch_batches or 1
            most_seconds = min(most_seconds, step * max(schedule.PLAIN_LEAD_IN + self.most_steps, whole))
        return schedule.cut(size, self.shape.period, step, most_seconds)

    def _least(self, step: float) -> int:
        least = schedule.least_steps(step, regular=self.regular) if self._brief else schedule.LEAST_STEPS
        if self.most_steps is None:
            return least
        # Of whole epochs a script that soon ends has few, so a window holds no more of them than its seconds ask for.
        return LEAST_TOLD_STEPS if self.epochs else min(least, self.most_steps)

    def _settled(self, each: Probe, step: float) -> int | None:
        """Steps after which the queue is full and stays so; None if that is not known, or steps are so short that it
        does not matter."""
        if not self._brief or step < SHORT_STEP or each.mode == "loader_only":
            return None
        loading = self.shape.loading(each.as_setting())
        if loading.workers == 0:
            return 0
        if self.supply is None:
            return None
        settled = self.supply.settled_after(loading)
        ready = settled is None and self.supply.wait < HARDLY and self._lies_ready(loading)
        return schedule.PLAIN_LEAD_IN if ready else settled

    def _lies_ready(self, loading: Loading) -> bool:
        """Whether all batches of an epoch lie ready at once: then the queue only empties, and nobody sees how they are
        made."""
        return self.shape.epoch_batches is not None and self.shape.epoch_batches <= loading.depth

    def steps(self, size: WindowSize) -> int:
        """Steps of a window with its lead-in, at most."""
        if size.epochs:
            # One more: the rest of the epoch in which the window was granted.
            return (size.epochs + size.lead_in + 1) * (self.shape.epoch_batches or 1)
        return size.skipped + size.lead_in + size.steps

    def usual_steps(self, size: WindowSize) -> int:
        """Steps of a window with its lead-in, about."""
        return math.ceil(self._lead_in_steps(size)) + (size.epochs * (self.shape.epoch_batches or 1) or size.steps)

    def _lead_in_steps(self, size: WindowSize) -> float:
        # A window of whole epochs is granted in the middle of an epoch, on average: half of that epoch comes first.
        return (size.lead_in + 0.5) * (self.shape.epoch_batches or 1) if size.epochs else size.skipped + size.lead_in

    # -- seconds -------------------------------------------------------------------------------------------------------

    def baseline(self) -> float:
        """Seconds that a window as written takes with its lead-in."""
        known = self.seconds.get(BASELINE)
        return known if known is not None else self.measuring(schedule.probe(BASELINE, {}))

    def measuring(self, each: Probe, seconds: float | None = None) -> float:
        """Seconds that a window that counts would take with its lead-in, about. It is the first of its process."""
        begins = knobs.usual_first_step_seconds(each.as_setting())
        size = self.size(each, seconds or self.window_seconds)
        return begins + self.whole(each, size) + (0.0 if size.epochs or self._is_open(each) else self._opening)

    def _is_open(self, each: Probe) -> bool:
        """Whether its loader is at work where its window begins: the one of windows as written goes on."""
        same = self.shape.loading(each.as_setting()) == self.shape.loading({})
        return same and BASELINE in self.seconds

    def explaining(
        self, each: Probe, seconds: float, *, most_steps: int | None = None, most_seconds: float = math.inf
    ) -> float:
        """Seconds that a window that explains would take with its lead-in, about."""
        return self.whole(each, self.explaining_size(each, seconds, most_steps, most_seconds))

    def whole(self, each: Probe, size: WindowSize) -> float:
        """Seconds that a window of that size is expected to take with its lead-in, and with what lies between its
        epochs."""
        steps = self.timed(each, size) + self._lead_in_steps(size) * self.step(each)
        epochs = size.epochs + size.lead_in if size.epochs else self._epochs_within(size.steps + size.lead_in)
        return steps + epochs * (self._stretch - 1) * self.epoch_seconds

    def _epochs_within(self, steps: int) -> int:
        """Whole epochs that so many steps contain; 0 where nobody knows how long an epoch is."""
        return steps // self.shape.epoch_batches if self.shape.epoch_batches else 0

    def timed(self, each: Probe, size: WindowSize) -> float:
        """Seconds that the timed part of such a window is expected to take."""
        steps = size.epochs * (self.shape.epoch_batches or 1) if size.epochs else size.steps
        return steps * self.step(each)
