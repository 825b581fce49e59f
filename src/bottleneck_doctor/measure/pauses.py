"""What lies between the epochs of a window, such as evaluations: it takes time, and is not timed. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median

from bottleneck_doctor.documents.report import Window


def stretch(windows: Sequence[Window]) -> float:
    """How many times as long as its steps a window of whole epochs takes at least, by those of the training as written;
    1 where none shows it. Each begins with the rest of the epoch in which it was granted. How long that is is not told:
    a whole one at most."""
    return _stretch(windows, lambda window: 0.0)


def _stretch(windows: Sequence[Window], measured: Callable[[Window], float]) -> float:
    """The same, where so many seconds of a window's pauses count as its steps do."""
    seen = [
        (window.ended - window.started - window.seconds / window.whole_epochs)
        / (window.seconds + window.lead_in_seconds + measured(window))
        for window in windows
        if window.status == "ok"
        and window.mode == "timed"
        and window.whole_epochs
        and not window.setting
        and window.ended is not None
        and window.seconds > 0
    ]
    return max(1.0, median(seen)) if seen else 1.0


def stretch_of_steps(window: Window) -> float:
    """The same by a window that is not of whole epochs, and holds some; 1 where it does not tell."""
    timed = window.seconds + window.lead_in_seconds
    return 1.0 if window.ended is None or timed <= 0 else max(1.0, (window.ended - window.started) / timed)


def share(windows: Sequence[Window]) -> float:
    """The part of the time, 0 to 1, that goes by between epochs and that no speedup is about; 0 where no window shows
    it. The garbage collector's time there is a part of what speedups are about."""
    return 1 - 1 / _stretch(windows, lambda window: window.turns_collecting)


def gain_of_steps(gain: float, between: float) -> float | None:
    """How much faster steps have to be for the training as a whole to be faster by `gain`, where `between` is the part
    of the time that lies between epochs and stays as it is. None if no speed of steps does it.

    By Amdahl's law.
    """
    left = 1 / (1 + gain) - between
    return (1 - between) / left - 1 if left > 0 else None
