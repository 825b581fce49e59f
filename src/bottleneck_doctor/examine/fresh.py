"""`--fresh-runs`: starts the entrypoint again for every probe. This slow way is the reference for the quick one."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from bottleneck_doctor.documents.labels import BASELINE
from bottleneck_doctor.examine.blocks import Blocks
from bottleneck_doctor.measure import schedule
from bottleneck_doctor.measure.budget import Budget, OutOfTime
from bottleneck_doctor.measure.schedule import Probe, probe
from bottleneck_doctor.measure.starter import Live


def fresh_runs(
    blocks: Callable[[], Blocks],
    in_session: Callable[[Callable[[Live], None]], None],
    budget: Budget,
    generator: random.Random,
) -> None:
    """Measure every probe in its own process, which `in_session` starts. A round of processes counts as one session.
    `blocks`: known once the first process stands at its loop. Raises `OutOfTime`."""

    def run(each: Probe, number: int) -> None:
        def measure(live: Live) -> None:
            blocks().look_first(live)
            blocks().warming.warm_up(live)
            prober, windows = blocks().prober, blocks().selection.measured.windows
            prober.measure(live.session, each)
            windows[-1] = replace(windows[-1], session=number)

        in_session(measure)

    run(probe(BASELINE, {}), 0)
    made = blocks()
    cost = 0.0
    for number in range(1, made.plan.sessions + 1):
        made.prober.block += 1
        probes = made.selection.probes(number, first_block=True)
        for each in schedule.block(probes, probe(BASELINE, {}), generator):
            if budget.left() < cost:
                raise OutOfTime
            begun = budget.now()
            if made.selection.alive(each):
                run(each, number)
                cost = budget.now() - begun
        if number == 1:
            made.selection.choose(number)
            made.selection.climb()
