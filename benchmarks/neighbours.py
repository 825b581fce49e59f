"""What other programs beside an examination do to its figures: simulated machines whose truth is known.

    python benchmarks/neighbours.py --replications 2000

Programs share the CPUs of a machine, thread by thread (as Linux does) or program by program (as it does where each has
a control group). The training as written wants one CPU; a setting with workers wants three, is faster alone, and
leaves a neighbour less. A window takes as long as its work needs. The truth is what simultaneous windows would show:
every window of a setting beside one of the training as written at the same moment, without noise.

Three ways to make pairs: `plain`, which knows no neighbours; `got`, adjusted for what others got of the CPUs; `wanted`,
adjusted for what they wanted, as `measure.pairing` does: by what is seen of it, and by what they got. And a fourth:
windows that were disturbed are taken again, as `measure.quiet` does.

The second table is of a neighbour that stays during the first process only: all pairs, and those that the judge keeps
(`pairing.undisturbed`). There, the truth is that of the machine without the neighbour. `tests/unit/test_neighbours.py`
runs a small version. The third one is of pairs of processes whose windows take turns, as in a check: each pair knows
its own windows only, or what was usual in those before, and has more rounds where others were disturbed.
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from typing import Literal

from bottleneck_doctor.documents.labels import BASELINE
from bottleneck_doctor.documents.report import Surroundings, Window
from bottleneck_doctor.gate import decide, plan
from bottleneck_doctor.gate.decide import GateEstimate
from bottleneck_doctor.measure import pairing, quiet, side_pairs
from bottleneck_doctor.measure.side_pairs import PairSample, SideSample
from bottleneck_doctor.statistics import neighbours, speedups

STEP = 0.05
"""Seconds in which nobody comes or goes."""
NOTICED = 0.25
"""How far looks at the run queue over one second miss its mean, in threads."""
LEAD_IN = 0.5
Way = Literal["plain", "got", "wanted"]
WAYS: tuple[Way, ...] = ("plain", "got", "wanted")


@dataclass(frozen=True)
class Scenario:
    """A machine of `cpus`, with a neighbour of so many `threads` that computes for `busy` of every `every` seconds.

    `wants`: CPUs that each setting wants beside the one of the training as written; `alone`: how many times as fast it
    is with the machine for itself. Windows differ by `window`, processes by `process`, both of log costs.
    """

    name: str
    threads: float = 2.0
    busy: float = 5.0
    every: float = 20.0
    by_program: bool = False
    cpus: float = 2.0
    wants: tuple[float, ...] = (3.0, 3.0, 1.0)
    alone: tuple[float, ...] = (1.5, 1.2, 1.0)
    window: float = 0.02
    process: float = 0.02
    sessions: int = 3
    blocks: int = 2
    seconds: float = 2.0
    first_only: bool = False
    """Whether the neighbour is there during the first process only."""
    overcounted: float = 0.0
    """Threads of others that looks at the run queue see too many, for each thread of ours beyond the first."""

    def share(self, wants: float, threads: float) -> float:
        """What part of the CPUs that somebody wants it gets beside so many threads of others."""
        if not self.by_program:
            return min(1.0, self.cpus / (wants + threads))
        return min(wants, max(self.cpus / 2, self.cpus - threads)) / wants


SCENARIOS = (
    Scenario("nobody", threads=0.0),
    Scenario("one that stays", busy=20.0),
    Scenario("bursts, both CPUs", threads=2.0),
    Scenario("bursts, both CPUs, by program", threads=2.0, by_program=True),
    Scenario("long bursts, four threads", threads=4.0, busy=15.0, every=45.0),
    Scenario("long bursts, four threads, by program", threads=4.0, busy=15.0, every=45.0, by_program=True),
    Scenario("bursts, one thread", threads=1.0),
    Scenario("rare bursts, noisy windows", busy=4.0, every=40.0, window=0.06),
    Scenario("bursts, both CPUs, and threads of ours counted as others'", overcounted=0.15),
    Scenario("bursts by program, and threads of ours counted as others'", by_program=True, overcounted=0.15),
)


@dataclass(frozen=True)
class Examined:
    """One examination: log ratios by setting, in each way, with the truth of its very windows."""

    estimates: dict[Way, dict[str, speedups.SpeedupEstimate]]
    truth: dict[str, float]


def run(scenario: Scenario, generator: random.Random, ways: Sequence[Way] = WAYS, *, again: bool = False) -> Examined:
    """Simulate one examination. `again`: windows that were disturbed are taken again, as `measure.quiet` does; what is
    waited for is over when it is."""
    taken = _examination(scenario, generator, again)
    truths: dict[str, list[float]] = {}
    for each in taken:
        if each.truth is not None and each.counts:
            truths.setdefault(each.label, []).append(each.truth)
    estimates = {}
    for way in ways:
        windows = [each.window(way, scenario.cpus) for each in taken]
        estimates[way] = speedups.estimate_all(pairing.observations(pairing.pairs(windows, None)))
    return Examined(estimates, {label: fmean(values) for label, values in truths.items()})


@dataclass(frozen=True)
class _Taken:
    """A window: when it began, seconds of its clock, what others wanted (as it was seen) and got, and for a setting the
    log ratio of what the training as written would have taken at the same moment."""

    session: int
    block: int
    label: str
    at: float
    seconds: float
    wanted: float
    got: float
    truth: float | None
    counts: bool = True

    def window(self, way: Way, cpus: float) -> Window:
        seen = {"plain": None, "got": self.got, "wanted": self.wanted}[way]
        return Window(
            session=self.session, rank=0, block=self.block, setting={} if self.truth is None else {"knob": self.label},
            mode="timed", steps=10, samples=10.0, seconds=self.seconds, lead_in_steps=0, lead_in_seconds=0.0,
            wait_seconds=0.0, turn_seconds=None, whole_epochs=0, queue_change=0, ready_share=None, effect={},
            started=self.at, label=self.label, status="ok" if self.counts else "discarded",
            around=None if seen is None else Surroundings(cpus=cpus, others_wanted=seen),
        )  # fmt: skip


def _examination(scenario: Scenario, generator: random.Random, again: bool) -> list[_Taken]:
    """The windows of all processes."""
    return [
        each for session in range(1, scenario.sessions + 1) for each in _process(scenario, session, generator, again)
    ]


@dataclass(frozen=True)
class _Machine:
    """A machine whose neighbour has been there for `phase` seconds of its turn at the time 0."""

    scenario: Scenario
    phase: float
    session: int = 1

    def there(self, at: float) -> float:
        """Threads of the neighbour that compute then."""
        scenario = self.scenario
        if scenario.first_only and self.session > 1:
            return 0.0
        return scenario.threads if (at + self.phase) % scenario.every < scenario.busy else 0.0

    def lasts(self, at: float, wants: float, seconds: float) -> tuple[float, float, float]:
        """Seconds until so many of work alone are done; what others wanted and got meanwhile."""
        scenario = self.scenario
        alone = scenario.share(wants, 0.0)
        done = wanted = got = 0.0
        began = at
        while done < seconds:
            threads = self.there(at)
            share = scenario.share(wants, threads)
            span = min(STEP, (seconds - done) * alone / share)
            done += span * share / alone
            wanted += span * threads
            got += span * min(threads, scenario.cpus - share * wants)
            at += span
        return at - began, wanted / (at - began), got / (at - began)


def _process(scenario: Scenario, session: int, generator: random.Random, again: bool) -> Iterator[_Taken]:
    """The windows of one process."""
    now, machine = 0.0, _Machine(scenario, generator.uniform(0.0, scenario.every), session)
    luck = [generator.gauss(0.0, scenario.process) for _ in scenario.wants]
    tries = quiet.MOST_AGAIN if again else 0
    loads: list[float] = []

    def take(block: int, each: int | None) -> tuple[_Taken, float]:
        """A window and when it is over."""
        at = now + LEAD_IN
        wants = 1.0 if each is None else scenario.wants[each]
        seconds, wanted, got = machine.lasts(at, wants, scenario.seconds)
        measured = seconds * math.exp(generator.gauss(0.0, scenario.window))
        looks = wanted + scenario.overcounted * (wants - 1.0) + generator.gauss(0.0, NOTICED / math.sqrt(seconds))
        seen = neighbours.wanted(looks, got, wants, scenario.cpus)
        if each is None:
            return _Taken(session, block, BASELINE, at, measured, seen, got, None), at + seconds
        truth = math.log(scenario.alone[each] * machine.lasts(at, 1.0, scenario.seconds)[0] / seconds)
        measured /= scenario.alone[each] * math.exp(luck[each])
        return _Taken(session, block, f"s{each}", at, measured, seen, got, truth), at + seconds

    for block in range(1, scenario.blocks + 1):
        order = list(range(len(scenario.wants)))
        generator.shuffle(order)
        for each in [None, *(item for k in order for item in (k, None))][0 if block == 1 else 1 :]:
            taken, now = take(block, each)
            load = neighbours.load(taken.wanted, scenario.cpus)
            if tries and len(loads) >= quiet.LEAST_LIKE and neighbours.disturbed(load, loads):
                tries -= 1
                until = now + quiet.WAIT_SECONDS
                while now < until and machine.there(now):
                    now += quiet.LOOK_SECONDS
                second, now = take(block, each)
                if not neighbours.disturbed(calmer := neighbours.load(second.wanted, scenario.cpus), loads):
                    taken, second, load = second, taken, calmer
                yield replace(second, counts=False)
            loads.append(load)
            yield taken


@dataclass(frozen=True)
class Row:
    """Over many examinations, of all settings of one scenario in one way: the mean error of the log ratio of the
    setting for which it is largest, against the truth of its very windows; how far errors spread; how often the
    interval holds the truth; and how wide it is at the median (high over low, log)."""

    bias: float
    spread: float
    coverage: float
    width: float


def rows(
    scenario: Scenario, replications: int, seed: int, ways: Sequence[Way] = WAYS, *, again: bool = False
) -> dict[Way, Row]:
    """Simulate so many examinations."""
    generator = random.Random(seed)
    runs = [run(scenario, generator, ways, again=again) for _ in range(replications)]
    # The ratio that an interval has to hold is that of the machine, not of the bursts that one examination met.
    truth = {label: fmean(each.truth[label] for each in runs) for label in runs[0].truth}
    made: dict[Way, Row] = {}
    for way in ways:
        errors, held, widths, own = [], [], [], dict.fromkeys(truth, 0.0)
        for each in runs:
            for label, mean in truth.items():
                found = each.estimates[way][label]
                errors.append(found.log_mean - mean)
                own[label] += (found.log_mean - each.truth[label]) / replications
                held.append(math.log(found.low) <= mean <= math.log(found.high))
                widths.append(math.log(found.high / found.low))
        made[way] = Row(max(own.values(), key=abs), stdev(errors), fmean(held), sorted(widths)[len(widths) // 2])
    return made


FIRST_ONLY = tuple(
    Scenario(
        f"{threads:g} threads beside the first of {sessions}", threads, busy=20.0, first_only=True, sessions=sessions
    )
    for threads in (0.0, 1.0, 4.0)
    for sessions in (4, 6)
)


def kept(scenario: Scenario, replications: int, seed: int) -> tuple[Row, Row]:
    """Simulate so many examinations. Returns the rows of all pairs and of those that the judge keeps, for the first
    setting, against the machine without a neighbour."""
    generator = random.Random(seed)
    truth = math.log(scenario.alone[0])
    found: tuple[list[speedups.SpeedupEstimate], list[speedups.SpeedupEstimate]] = ([], [])
    for _ in range(replications):
        taken = _examination(scenario, generator, again=False)
        windows = [each.window("wanted", scenario.cpus) for each in taken]
        made = pairing.pairs(windows, None)
        for place, pairs in zip(found, (made, pairing.undisturbed(made, windows)), strict=True):
            place.append(speedups.estimate_all(pairing.observations(pairs))["s0"])
    rows = []
    for estimates in found:
        errors = [each.log_mean - truth for each in estimates]
        held = [math.log(each.low) <= truth <= math.log(each.high) for each in estimates]
        widths = sorted(math.log(each.high / each.low) for each in estimates)
        rows.append(Row(fmean(errors), stdev(errors), fmean(held), widths[len(widths) // 2]))
    return rows[0], rows[1]


PAIRS = 6
"""Pairs of processes that a check has."""
SETUP = 4.0
"""Seconds until both processes of a pair stand at their loops."""
ROUNDS = 3
TURN = 0.3
"""Seconds of lead-in of a window of a pair."""


def in_pairs(scenario: Scenario, replications: int, seed: int) -> tuple[Row, Row]:
    """Simulate so many checks whose head is the first setting. Returns the rows without the pairs before (each pair
    knows its own windows only, and has the rounds that were planned) and with them, against the machine without a
    neighbour; one that stays belongs to it."""
    generator = random.Random(seed)
    machine = _Machine(scenario if scenario.busy >= scenario.every else replace(scenario, threads=0.0), 0.0)
    base, head = (machine.lasts(0.0, wants, 1.0)[0] for wants in (1.0, scenario.wants[0]))
    truth = math.log(head / scenario.alone[0] / base)
    found: tuple[list[GateEstimate], list[GateEstimate]] = ([], [])
    for _ in range(replications):
        for place, told in zip(found, (False, True), strict=True):
            ratios = [pair.ratio() for pair in _pairs(scenario, generator, told=told)]
            place.append(decide.estimate([each.log for each in ratios], [None for _ in ratios]))
    rows = []
    for estimates in found:
        errors = [each.mean - truth for each in estimates]
        widths = sorted(2 * each.half_width(0.025) for each in estimates)
        held = [abs(each.mean - truth) <= each.half_width(0.025) for each in estimates]
        rows.append(Row(fmean(errors), stdev(errors), fmean(held), widths[len(widths) // 2]))
    return rows[0], rows[1]


def _pairs(scenario: Scenario, generator: random.Random, *, told: bool) -> Iterator[PairSample]:
    """The pairs of a check. `told`: each knows what was usual in those before, and rounds that were disturbed are
    followed by others, as in `gate.paired`."""
    machine, now, usual = _Machine(scenario, generator.uniform(0.0, scenario.every)), 0.0, list[float]()
    for number in range(1, PAIRS + 1):
        now += SETUP + generator.uniform(0.0, 1.0)
        luck = [generator.gauss(0.0, scenario.process) for _ in range(2)]
        windows: tuple[list[Window], list[Window]] = ([], [])
        order = plan.order(ROUNDS, generator) + plan.order(plan.MOST_AGAIN, generator)
        for turn, names in enumerate(order, 1):
            base_loads, head_loads = map(side_pairs.loads_by_round, windows)
            enough = not told or len(side_pairs.calm_rounds(base_loads, head_loads, usual)) >= plan.LEAST_ROUNDS
            if turn > ROUNDS and enough:
                break
            for side in (0 if name == "base" else 1 for name in names):
                wants, speed = (1.0, 1.0) if side == 0 else (scenario.wants[0], scenario.alone[0])
                at = now + TURN
                seconds, wanted, got = machine.lasts(at, wants, plan.WINDOW_SECONDS)
                looks = wanted + generator.gauss(0.0, NOTICED / math.sqrt(seconds))
                seen = neighbours.wanted(looks, got, wants, scenario.cpus)
                noise = generator.gauss(0.0, scenario.window) + luck[side]
                measured = seconds / speed * math.exp(noise)
                taken = _Taken(number, turn, "s0", at, measured, seen, got, None)
                windows[side].append(taken.window("wanted", scenario.cpus))
                now = at + seconds
        base, head = (SideSample(windows=each, has_loader=True, epoch_batches=None) for each in windows)
        yield PairSample(number=number, base=base, head=head, usual=tuple(usual) if told else ())
        usual += pairing.known_loads([*windows[0], *windows[1]])


IN_PAIRS = (
    Scenario("nobody", threads=0.0),
    Scenario("two threads that stay", busy=20.0),
    Scenario("two threads, 5 s in every 20"),
    Scenario("two threads, 5 s in every 20; CPUs by program", by_program=True),
    Scenario("four threads, 15 s in every 45", threads=4.0, busy=15.0, every=45.0),
    Scenario("one thread, 5 s in every 20", threads=1.0),
)


def cells(row: Row) -> str:
    return f"{row.bias:>+8.2%} {row.spread:>7.1%} {row.coverage:>7.1%} {row.width:>8.1%}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replications", type=int, default=2000)
    parser.add_argument("--sessions", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(f"{'neighbour':40}" + "".join(f"{name:>33}" for name in (*WAYS, "wanted, and taken again")))
    print(f"{'':40}" + "    bias  spread   holds    width" * (len(WAYS) + 1))
    for scenario in SCENARIOS:
        each = replace(scenario, sessions=options.sessions)
        made = rows(each, options.replications, options.seed)
        calm = rows(each, options.replications, options.seed + 1, ("wanted",), again=True)
        print(scenario.name.ljust(40) + "".join(map(cells, (*made.values(), *calm.values()))), flush=True)
    print(f"\n{'neighbour':40}{'all pairs':>33}{'those kept':>33}")
    for scenario in FIRST_ONLY:
        print(
            scenario.name.ljust(40) + "".join(map(cells, kept(scenario, options.replications, options.seed))),
            flush=True,
        )
    print(f"\n{'neighbour, beside pairs of processes':40}{'each pair for itself':>33}{'told by pairs before':>33}")
    for scenario in IN_PAIRS:
        print(
            scenario.name.ljust(40) + "".join(map(cells, in_pairs(scenario, options.replications, options.seed))),
            flush=True,
        )


if __name__ == "__main__":
    main()
