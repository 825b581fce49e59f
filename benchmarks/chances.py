"""How often the chances are right that order what is still open: `python benchmarks/chances.py [--replications N]`.

Simulated settings whose truth is known are seen in one, two or three processes, and `statistics.chance` gives each the
chance that it is worth an edit (more than 2 % faster). Each row has one group of chances: how many there were, their
mean, and the share of them that truly was worth an edit. Chances are calibrated where the last two agree.

The first tables have the assumptions true: half of the settings change nothing, the others anything from half to double
the speed; windows repeat to 4 %; the luck of processes has the scale and the heavy tail that are assumed. The others
break them one by one.
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from bottleneck_doctor.statistics import chance
from bottleneck_doctor.statistics.speedups import EQUIVALENCE, Observation, estimate_all

GROUPS = (0.0, 0.2, 0.5, 0.8, 0.95, 1.0)
PAIRS = 2
"""Pairs of windows in each process."""


@dataclass(frozen=True)
class World:
    """How settings, processes and windows really are. `luck`: scale of the luck of a process, with `tail` degrees of
    freedom (0: normal). `useless`: share of settings that change nothing."""

    name: str
    luck: float = chance.PROCESS_SPREAD
    tail: float = chance.PROCESS_DF
    windows: float = chance.WINDOW_SPREAD
    useless: float = chance.USELESS


WORLDS = (
    World("as assumed"),
    World("no setting changes nothing", useless=0.0),
    World("nine of ten settings change nothing", useless=0.9),
    World("processes differ by a normal 1 %", luck=0.01, tail=0),
    World("processes differ by a normal 12 %", luck=0.12, tail=0),
    World("windows repeat to 15 %", windows=0.15),
)


@dataclass(frozen=True)
class Row:
    """One group of chances, from `low` to `high`: how many, their mean, and the share that was worth an edit."""

    low: float
    high: float
    count: int
    said: float
    true: float


def simulated(world: World, sessions: int, generator: random.Random) -> tuple[float, bool]:
    """The chance that one simulated setting gets, and whether it is worth an edit."""
    useless = generator.random() < world.useless
    truth = 0.0 if useless else generator.uniform(-chance.LARGEST_CHANGE, chance.LARGEST_CHANGE)
    observed, changes = [], []
    for session in range(1, sessions + 1):
        luck = world.luck * _heavy(world.tail, generator)
        base = [generator.gauss(0, world.windows * math.sqrt(2 / 3)) for _ in range(2 * PAIRS + 1)]
        changes += [after - before for before, after in pairwise(base)]
        for pair in range(PAIRS):
            around = (base[2 * pair] + base[2 * pair + 1]) / 2
            own = generator.gauss(0, world.windows * math.sqrt(2 / 3))
            observed.append(Observation(session, pair, "x", truth + luck + around - own))
    estimates = estimate_all(observed)
    spread = chance.spread(observed, changes, estimates)
    return chance.chance_worth(estimates["x"], spread), truth > math.log1p(EQUIVALENCE)


def _heavy(tail: float, generator: random.Random) -> float:
    """Student's t with `tail` degrees of freedom; normal with 0."""
    value = generator.gauss(0, 1)
    return value / math.sqrt(generator.gammavariate(tail / 2, 2) / tail) if tail else value


def grouped(results: Iterable[tuple[float, bool]]) -> list[Row]:
    """Chances and what was true, by group; groups without any are left out."""
    told = list(results)
    rows = []
    for low, high in pairwise(GROUPS):
        inside = [each for each in told if low <= each[0] < high or (high == 1.0 and each[0] == 1.0)]
        if inside:
            said = sum(value for value, _ in inside) / len(inside)
            rows.append(Row(low, high, len(inside), said, sum(true for _, true in inside) / len(inside)))
    return rows


def table(world: World, sessions: int, replications: int, seed: int = 1) -> list[Row]:
    """The rows of one world, over this many simulated settings."""
    generator = random.Random(f"{world.name} {sessions} {seed}")
    return grouped(simulated(world, sessions, generator) for _ in range(replications))


def main(words: Sequence[str] | None = None, say: Callable[[str], None] = print) -> None:
    """Print every table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replications", type=int, default=20000, metavar="N")
    options = parser.parse_args(words)
    for world in WORLDS:
        for sessions in (1, 2, 3):
            say(f"\n{world.name}, {sessions} process{'es' if sessions > 1 else ''}")
            say("| chance | how many | mean chance | truly worth it |\n|---|---|---|---|")
            for row in table(world, sessions, options.replications):
                say(f"| {row.low:.0%} to {row.high:.0%} | {row.count} | {row.said:.0%} | {row.true:.0%} |")


if __name__ == "__main__":
    main()
