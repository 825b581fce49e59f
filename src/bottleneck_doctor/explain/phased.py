"""Windows that told the phases of steps, and which of them to believe: other programs may have run beside some."""

from __future__ import annotations

from typing import Any

from bottleneck_doctor.documents import labels
from bottleneck_doctor.documents.report import Setting, Window
from bottleneck_doctor.measure import pairing
from bottleneck_doctor.measure.measurements import Measurements
from bottleneck_doctor.measure.prober import Prober

MOST = 3
"""Windows of phases under one setting, at most: a program that disturbs all of them will keep running."""
DISTURBED = 1.5
"""A window of phases whose steps take so many times as long as timed ones had neighbours. Ours: synchronisation and
timers alone cost a few percent of all but the shortest steps."""


class PhasedWindows:
    """The windows of phases that `prober` took so far."""

    def __init__(self, measured: Measurements, prober: Prober) -> None:
        self._measured = measured
        self._prober = prober
        self._taken: dict[str, list[tuple[Window, dict[str, Any]]]] = {}

    def add(self, window: Window, detail: dict[str, Any]) -> None:
        """Take in a window with what it told."""
        self._taken.setdefault(labels.key_of(window.setting), []).append((window, detail))

    def wants_another(self, setting: Setting) -> bool:
        """Whether the last window of a setting was disturbed, and another one may be calm."""
        taken = self._of(setting)
        return 0 < len(taken) < MOST and self._was_disturbed(taken[-1][0])

    def all_disturbed(self, setting: Setting) -> bool:
        """Whether something else ran beside all windows of a setting, if there are any."""
        return all(self._was_disturbed(window) for window, _ in self._of(setting))

    def details(self, setting: Setting) -> list[dict[str, Any]]:
        """What the windows of a setting told beside which nothing else ran, as far as is known by now; else what the
        fastest told."""
        taken = self._of(setting)
        calm = [detail for window, detail in taken if not self._was_disturbed(window)]
        return calm or [min(taken, key=lambda each: each[0].seconds / max(1, each[0].steps))[1]]

    def _of(self, setting: Setting) -> list[tuple[Window, dict[str, Any]]]:
        return self._taken.get(labels.key_of(setting), [])

    def _was_disturbed(self, window: Window) -> bool:
        """Whether steps took so much longer than in timed windows that something else must have run beside them, or
        other programs wanted much more of the machine than they did beside those."""
        usual = self._prober.costs.expected_step(window.setting)
        if window.steps > 0 and window.seconds / window.steps > DISTURBED * usual:
            return True
        return pairing.met_more_load(window, self._measured.windows)
