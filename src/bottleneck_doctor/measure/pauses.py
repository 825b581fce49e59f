"""What lies between the epochs of a window, such as evaluations: it takes time, and is not timed. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import fmean, median

from bottleneck_doctor.documents.report import LongPause, Site, Window
from bottleneck_doctor.measure.measurements import Unfinished
from bottleneck_doctor.session.failure import own_frame


def stretch(windows: Sequence[Window]) -> float:
    """How many times as long as its steps a window of whole epochs takes at least, by those of the training as written;
    1 where none shows it. Each begins with the rest of the epoch in which it was granted. How long that is is not told:
    a whole one at most."""
    return _stretch(windows, collecting=False)


def _stretch(windows: Sequence[Window], *, collecting: bool) -> float:
    """The same. `collecting`: the garbage collector's time between epochs counts as that of steps does."""
    seen = [
        (window.ended - window.started - window.seconds / window.whole_epochs)
        / (window.seconds + window.lead_in_seconds + collecting * window.turns_collecting)
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


def long_pause(unfinished: Sequence[Unfinished]) -> LongPause | None:
    """What is known of the pauses whose end was not awaited; None if there were none. The line is the one that was
    running in most of them."""
    if not unfinished:
        return None
    running = (own_frame([stack for stack in each.stacks if not stack.worker]) for each in unfinished)
    sites = Counter((frame.file, frame.line) for frame in running if frame is not None)
    (file, line), _ = sites.most_common(1)[0] if sites else (("", 0), 0)
    return LongPause(
        seen=len(unfinished),
        seconds=fmean(each.seconds for each in unfinished),
        steps=fmean(each.steps for each in unfinished),
        site=Site(file=file, line=line) if file else None,
    )


def share(windows: Sequence[Window]) -> float:
    """The part of the time, 0 to 1, that goes by between epochs and that no speedup is about; 0 where no window shows
    it. The garbage collector's time there is a part of what speedups are about."""
    return 1 - 1 / _stretch(windows, collecting=True)


def gain_of_steps(gain: float, between: float) -> float | None:
    """How much faster steps have to be for the training as a whole to be faster by `gain`, where `between` is the part
    of the time that lies between epochs and stays as it is. None if no speed of steps does it.

    By Amdahl's law.
    """
    left = 1 / (1 + gain) - between
    return (1 - between) / left - 1 if left > 0 else None
