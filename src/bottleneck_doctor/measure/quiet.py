"""Takes a window again that other programs disturbed, once they are quiet again or were waited for long enough.

What decides is how much others wanted of the machine meanwhile, never how fast the window was: so it is the same for
every setting, and favours none. The second window counts where it was not disturbed, else the first: the one of two
that seems to have had less beside it would be the one whose load is underrated. A neighbour that stays is this machine
as it is, and costs one or two tries.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

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
"""Windows that are taken again in one process: who disturbs more of them stays."""
SHARE = 0.1
"""Part of the budget that waiting and taking windows again may take."""
WAIT_SECONDS = 4.0
"""How long a neighbour is waited for."""
LOOK_SECONDS = 0.5
"""How long it is looked whether it is gone: shorter than bursts that are worth waiting for."""
LEAST_LIKE = 2
"""Windows of a process that tell what its usual load is."""
REASON = "other programs wanted more of the machine than beside other windows, and another one counts in its place"


class Quiet:
    """Measures by `prober`, and again where a window was disturbed."""

    def __init__(self, measured: Measurements, prober: Prober, starter: Starter) -> None:
        self._measured = measured
        self._prober = prober
        self._budget = starter.budget
        self._progress = starter.progress
        self._outside: Outside = starter.outside
        self._again: Counter[int] = Counter()
        self._spent = 0.0

    def measure(self, session: Session, each: Probe) -> Window:
        """As `Prober.measure`. Where a window is taken again and its process ends or the time is over, the first one
        counts."""
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
        """Loads beside the windows of a process that were taken before its last one."""
        mine = [window for window in self._measured.windows if window.session == session and pairing.usable(window)]
        loads = [pairing.load_beside(window) for window in mine[:-1]]
        return [load for load in loads if load is not None]

    def _wait(self, session: int, usual: list[float], cpus: float) -> None:
        """Until others want no more than usual, or were waited for long enough."""
        ends = self._budget.now() + WAIT_SECONDS
        while self._budget.now() < ends:
            said = f"Process {session}: waiting for another program, which takes more of the machine than before"
            self._progress.update(said, self._budget.elapsed(), self._budget.total)
            with self._outside.run_queue() as queue:
                self._outside.sleep(LOOK_SECONDS)
            # The process that trains stands: all that wants a CPU is others.
            wanted = queue.mean()
            if wanted is None or not neighbours.disturbed(neighbours.load(wanted, cpus), usual):
                return

    def _chosen(self, first: Window, second: Window, usual: list[float]) -> Window:
        """The one of two windows of the same that counts."""
        here = pairing.load_beside(second)
        if second.status != "ok" or here is None:
            return second
        out = second if neighbours.disturbed(here, usual) else first
        windows = self._measured.windows
        place = next(place for place, each in enumerate(windows) if each is out)
        windows[place] = replace(out, status="discarded", reason=REASON)
        return first if out is second else second
