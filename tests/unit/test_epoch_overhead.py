"""What starting an epoch costs, against loaders and loops that are simulated, so that every second is known."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import pytest

from bottleneck_doctor.runtime.serve.epoch_overhead import LeadIn, epoch_overhead


@dataclass(frozen=True)
class Program:
    """A loop that takes `compute` a step, the first ones `warm_up` longer, and workers that take `load` a batch after
    `start` seconds. Without workers batches are made as they are asked for. Seconds all."""

    load: float
    compute: float
    workers: int = 0
    start: float = 0.0
    warm_up: tuple[float, ...] = ()
    prefetch: int = 2

    def run(self, steps: int) -> tuple[list[float], list[float], list[int]]:
        """By step: when its batch was asked for, how long that took, and how many lay ready. One more than `steps`."""
        asked, waited, ready = [], [], []
        now, free = self.start, [self.start] * self.workers
        made: list[float] = []

        def order(at: float) -> None:
            begins = max(at, heapq.heappop(free))
            heapq.heappush(free, begins + self.load)
            made.append(begins + self.load)

        for _ in range(self.workers * self.prefetch):
            order(0.0)
        for step in range(steps + 1):
            asked.append(now)
            ready.append(sum(moment <= now for moment in made[step:]))
            got = now + self.load
            if self.workers:
                got = max(now, made[step])
                order(got)
            waited.append(got - now)
            now = got + self.compute + (self.warm_up[step] if step < len(self.warm_up) else 0.0)
        return asked, waited, ready

    def overhead(self, lead: int, steps: int) -> float:
        """As a window of so many steps says."""
        asked, waited, ready = self.run(lead + steps)
        began, ended = asked[lead], asked[lead + steps]
        return epoch_overhead(
            LeadIn(began, self.start, waited[:lead], self.workers),
            steps=steps,
            seconds=ended - began,
            waited=sum(waited[lead : lead + steps]),
            queue_change=ready[lead + steps] - ready[lead],
        )

    def truth(self, steps: int = 400) -> float:
        """What an epoch takes beyond its steps, where computing is as fast at its beginning as it is later."""
        calm = Program(self.load, self.compute, self.workers, self.start, (), self.prefetch)
        asked, _, _ = calm.run(steps)
        return asked[steps] - steps * max(self.load / self.workers if self.workers else 0.0, self.step())

    def step(self) -> float:
        return max(self.load / self.workers, self.compute) if self.workers else self.load + self.compute


IN_PROCESS = Program(0.02, 0.03)
COMPUTING = Program(0.016, 0.03, workers=2, start=0.5)
LOADING = Program(0.08, 0.01, workers=2, start=0.25)
MANY = Program(0.3, 0.02, workers=4, start=1.0)


@pytest.mark.parametrize("warm_up", [(), (2.0,), (1.0, 0.5, 0.5), (0.0, 0.03)])
@pytest.mark.parametrize("program", [IN_PROCESS, COMPUTING, LOADING, MANY])
def test_the_overhead_is_what_an_epoch_takes_beyond_its_steps(program: Program, warm_up: tuple[float, ...]) -> None:
    """However slow the first steps computed."""
    seen = Program(program.load, program.compute, program.workers, program.start, warm_up)
    lead = max(2, 3 * program.workers)
    assert seen.overhead(lead, 48) == pytest.approx(program.truth(), abs=program.step() + 1e-9)


@pytest.mark.parametrize("program", [IN_PROCESS, COMPUTING, LOADING, MANY])
def test_without_a_warm_up_nothing_is_lost(program: Program) -> None:
    assert program.overhead(max(2, 3 * program.workers), 24) == pytest.approx(program.truth(), abs=1e-9)


def test_a_lead_in_shorter_than_the_queue_sees_the_start_of_workers_all_the_same() -> None:
    assert COMPUTING.overhead(2, 24) == pytest.approx(COMPUTING.truth(), abs=1e-9)


def test_a_queue_that_ran_down_while_it_was_timed() -> None:
    """Six of twelve batches had been made before, so that each of the others took twice as long to come."""
    lead = LeadIn(seconds=1.3, opening=0.1, waits=(0.6, 0.0, 0.0, 0.0), workers=2)
    overhead = epoch_overhead(lead, steps=12, seconds=0.6, waited=0.48, queue_change=-6)
    assert overhead == pytest.approx(0.1 + 0.6 - 2 * (0.1 - 0.01))
    assert epoch_overhead(lead, steps=6, seconds=0.06, waited=0.0, queue_change=-9) > -1, "all that was timed"
