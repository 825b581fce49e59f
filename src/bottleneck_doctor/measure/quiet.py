"""Repeats a window that other programs disturbed, once they are quiet again or after waiting long enough for them.

Only the load of the other programs decides, never how fast the window was, so no setting is favoured. The second window
counts if it was not disturbed, otherwise the first. Taking the one with the smaller load would be wrong: it would often
be the one whose load is underestimated. A program that keeps running belongs to this machine, and costs one or two
repeats.
"""

from __future__ import annotations

from collections import Counter

from bottleneck_doctor.documents.report import Window
from bottleneck_doctor.measure import pairing
from bottleneck_doctor.measure.measurements import Measurements
from bottleneck_doctor.measure.outside import Outside
from bottleneck_doctor.measure.prober import Prober
from bottleneck_doctor.measure.schedule import Probe
from bottleneck_doctor.measure.starter import Starter
from bottleneck_doctor.session.session import Session
from bottleneck_doctor.statistics import neighbours

MOST_AGAIN = 2
"""Windows that are repeated in one process, at most: a program that disturbs more of them will keep running."""
SHARE = 0.1
"""Part of the budget that waiting and repeating windows may take."""
WAIT_SECONDS = 4.0
"""How long to wait for other programs."""
LOOK_SECONDS = 0.5
"""How long one look at the load takes: shorter than the bursts that are worth waiting for."""
LEAST_LIKE = 2
"""Windows of a process that are needed to know its usual load."""
LATEST = 6
"""Windows that show what is usual now, where a process has had too few of its own."""
REASON = "other programs used more of the machine than during other windows, so another window counts instead"


class Quiet:
    """Measures with `prober`, and repeats a window that was disturbed."""

    def __init__(self, measured: Measurements, prober: Prober, starter: Starter) -> None:
        self._measured = measured
        self._prober = prober
        self._budget = starter.budget
        self._progress = starter.progress
        self._outside: Outside = starter.outside
        self._again: Counter[int] = Counter()
        self._spent = 0.0

    def measure(self, session: Session, each: Probe) -> Window:
        """As `Prober.measure`. If the process or the time ends while a window is repeated, the first one counts."""
        window = self._prober.measure(session, each)
        usual = self._usual(session.number)
        cost = WAIT_SECONDS + self._prober.costs.seconds.get(each.key, 0.0)
        here = pairing.load_beside(window)
        if here is None or window.status != "ok" or len(usual) < LEAST_LIKE or not neighbours.disturbed(here, usual):
            return window
        left = SHARE * self._budget.seconds - self._spent
        if self._again[session.number] >= MOST_AGAIN or cost > min(left, self._budget.left()):
            return window
        self._again[session.number] += 1
        begun = self._budget.now()
        try:
            self._wait(session.number, usual, window.around.cpus if window.around and window.around.cpus else 1.0)
            return self._chosen(window, self._prober.measure(session, each), usual)
        finally:
            self._spent += self._budget.now() - begun

    def _usual(self, session: int) -> list[float]:
        """The loads of other programs during the windows of a process, without its last window; during the latest of
        all processes where it has had too few."""
        counted = [window for window in self._measured.windows if pairing.usable(window)][:-1]
        mine = pairing.known_loads(window for window in counted if window.session == session)
        return mine if len(mine) >= LEAST_LIKE else pairing.known_loads(counted[-LATEST:])

    def _wait(self, session: int, usual: list[float], cpus: float) -> None:
        """Wait until other programs want no more than usual, but no longer than `WAIT_SECONDS`."""
        ends = self._budget.now() + WAIT_SECONDS
        while self._budget.now() < ends:
            said = f"Process {session}: waiting until another program uses less of the machine"
            self._progress.update(said, self._budget.elapsed(), self._budget.total)
            with self._outside.run_queue() as queue:
                self._outside.sleep(LOOK_SECONDS)
            # The training process stands still, so every thread that wants a CPU belongs to another program.
            wanted = queue.mean()
            if wanted is None or not neighbours.disturbed(neighbours.load(wanted, cpus), usual):
                return

    def _chosen(self, first: Window, second: Window, usual: list[float]) -> Window:
        """The window that counts, of two under the same setting."""
        here = pairing.load_beside(second)
        if second.status != "ok" or here is None:
            return second
        out = second if neighbours.disturbed(here, usual) else first
        self._measured.discard(out, REASON)
        return first if out is second else second
