"""How true the verdict's headline is: whole examinations on a machine that is made up, whose truth is known.

    python benchmarks/headline.py --examinations 1000

Everything of an examination is ours and real here: which setting is measured when, what is dropped, when it ends, the
judge and the sentence. Only processes and the clock are made up. Each process has luck of its own for each setting,
each window has noise, and a neighbour may come and go. The verdict names one setting out of all that were tried, so its
interval has to hold for the best of them, not for one that was chosen beforehand. `tests/truth/test_headline.py` runs
a small version.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.unit.made_up_machine import Examined, Machine

from bottleneck_doctor.documents.labels import key_of
from bottleneck_doctor.documents.report import Result, Setting, Speedup
from bottleneck_doctor.runtime.wire.messages import Grant
from bottleneck_doctor.wording import ranking

WORTH_NOTHING = 1.005
"""A change that is worth less than this in truth is named without need."""
AS_GOOD = 0.97
"""The verdict is as good as the best if what it names reaches this part of it in truth."""

Worth = Mapping[tuple[str, object], float]
"""How many times as fast training is with a value of a knob; 1 where it is not said. Knobs multiply."""

NOTHING: Worth = {}
WORKERS: Worth = {("num_workers", 1): 1.35, ("num_workers", 2): 1.6, ("num_workers", 4): 1.6, ("num_workers", 0): 1.0}
STACKED: Worth = {**WORKERS, ("autocast", "bfloat16"): 1.3}
ROUNDING: Worth = {("autocast", "bfloat16"): 1.2}
SLOWER: Worth = {**dict.fromkeys(WORKERS, 0.8), ("num_workers", 0): 1.0, ("autocast", "bfloat16"): 0.6}
SMALL: Worth = {("num_workers", 1): 1.1, ("num_workers", 2): 1.12, ("num_workers", 4): 1.12}


@dataclass(frozen=True)
class Row:
    """Deviations are of log speeds: 0.04 is 4 %. `process`: of a setting in a process. `window`: of a window. `heavy`:
    Student's t with 3 degrees of freedom for both. `neighbour`: seconds of a period, seconds of it in which another
    program is busy, and threads with which it then wants the two CPUs."""

    name: str
    worth: Worth
    process: float = 0.01
    window: float = 0.02
    heavy: bool = False
    neighbour: tuple[float, float, float] = (1.0, 0.0, 0.0)
    step: float = 0.1
    start: float = 4.0


NOISES: tuple[tuple[str, dict[str, object]], ...] = (
    ("quiet", {}),
    ("processes 5 %", {"process": 0.05}),
    ("processes 12 %", {"process": 0.12}),
    ("windows 6 %", {"window": 0.06}),
    ("heavy tails, 4 %", {"process": 0.04, "window": 0.04, "heavy": True}),
    ("busy 5 of 20 s", {"neighbour": (20.0, 5.0, 2.0)}),
    ("slow steps and starts", {"process": 0.03, "step": 1.5, "start": 15.0}),
)
WORTHS: tuple[tuple[str, Worth], ...] = (
    ("nothing helps", NOTHING),
    ("all is slower", SLOWER),
    ("workers 1.12", SMALL),
    ("autocast 1.2", ROUNDING),
    ("workers 1.6", WORKERS),
    ("workers 1.6, autocast 1.3", STACKED),
)


def rows() -> list[Row]:
    """Every truth under every noise."""
    return [
        Row(f"{truth}; {noise}", worth, **given)  # type: ignore[arg-type]
        for noise, given in NOISES
        for truth, worth in WORTHS
    ]


@dataclass(kw_only=True)
class Noisy(Machine):
    """A made-up machine with luck, noise and a neighbour, all drawn from `generator`."""

    row: Row
    generator: random.Random
    drawn: dict[tuple[int, str], float] = field(default_factory=dict)
    """The luck of each setting in each process."""

    def step_seconds(self, grant: Grant, made: int) -> float:
        session = next(each for each in self.sessions if each.grants and each.grants[-1] is grant)
        key = key_of(grant.setting)
        if (session.number, key) not in self.drawn:
            self.drawn[session.number, key] = self._draw(self.row.process)
        noise = self.drawn[session.number, key] + self._draw(self.row.window)
        return super().step_seconds(grant, made) / truth(self.row.worth, grant.setting) * math.exp(noise)

    def _draw(self, deviation: float) -> float:
        value = self.generator.gauss(0, 1)
        if self.row.heavy:
            value /= math.sqrt(self.generator.gammavariate(1.5, 2) / 3)
        return deviation * value


def truth(worth: Worth, setting: Setting) -> float:
    """How many times as fast training is under a setting."""
    return math.prod(worth.get(item, 1.0) for item in setting.items())


@dataclass(frozen=True)
class Told:
    """What one examination said. `figure` and `worth`: of the setting that was named, as promised and in truth; None
    and 1 where nothing was. `needless`: a part of it is worth nothing. `seconds`: how long it took."""

    figure: Speedup | None
    worth: float
    needless: bool
    seconds: float


def told(row: Row, seed: int) -> Told:
    """One examination of a row."""
    generator = random.Random(f"{row.name} {seed}")
    period, busy, threads = row.neighbour
    over = generator.uniform(0, period)
    machine = Noisy(
        row=row,
        generator=generator,
        others=lambda now: threads if (now + over) % period < busy else 0.0,
        step=row.step,
        start=row.start,
        wait=0.5,
    )
    examined = Examined(machine, seed=seed)
    result: Result = examined.result
    promised = ranking.promise(result)
    if promised is None or promised.speedup is None:
        return Told(None, 1.0, False, machine.now)
    worth = truth(row.worth, promised.setting)
    parts = [{name: value for name, value in promised.setting.items() if name != left} for left in promised.setting]
    needless = any(worth < WORTH_NOTHING * truth(row.worth, part) for part in parts)
    return Told(promised.speedup, worth, needless, machine.now)


@dataclass(frozen=True)
class Summary:
    """Shares over the examinations of a row.

    `right`: what was named is as good as the best there is, or nothing was named where nothing helps. `wrong`: what was
    named is no faster. `named`: how many named something. `held`, `bias`: of those, the share of intervals that hold
    the truth, and the mean error of the figure (a log); None where none did.
    """

    row: Row
    examinations: int
    right: float
    wrong: float
    needless: float
    named: int
    held: float | None
    bias: float | None
    seconds: float


def summary(row: Row, examinations: int, seed: int) -> Summary:
    """So many examinations of a row."""
    all_told = [told(row, seed + number) for number in range(examinations)]
    named = [each for each in all_told if each.figure is not None]
    best = _best(row.worth)
    right = [each.figure is None if best < WORTH_NOTHING else each.worth >= AS_GOOD * best for each in all_told]
    figures = [(each.figure, each.worth) for each in named if each.figure is not None]
    return Summary(
        row=row,
        examinations=examinations,
        right=fmean(right),
        wrong=fmean(each.figure is not None and each.worth < WORTH_NOTHING for each in all_told),
        needless=fmean(each.needless for each in all_told),
        named=len(named),
        held=fmean(figure.low <= worth <= figure.high for figure, worth in figures) if figures else None,
        bias=fmean(math.log(figure.estimate / worth) for figure, worth in figures) if figures else None,
        seconds=median(each.seconds for each in all_told),
    )


def _best(worth: Worth) -> float:
    """The best that there is: the best value of each knob."""
    knobs = {name for name, _ in worth}
    return math.prod(max(1.0, *(speed for (name, _), speed in worth.items() if name == knob)) for knob in knobs)


def table(summaries: Iterable[Summary]) -> str:
    """Markdown, a row each."""
    lines = [
        "| truth; noise | examinations | right | wrong | needless | named | intervals hold | bias | seconds |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for each in summaries:
        held = "" if each.held is None else f"{each.held:.1%}"
        bias = "" if each.bias is None else f"{each.bias:+.1%}"
        lines.append(
            f"| {each.row.name} | {each.examinations} | {each.right:.1%} | {each.wrong:.1%} | {each.needless:.1%} | "
            f"{each.named} | {held} | {bias} | {each.seconds:.0f} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--examinations", type=int, default=200, help="of each row")
    parser.add_argument("--only", metavar="TEXT", default="", help="rows whose name holds this")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    started = time.monotonic()
    done = []
    for row in rows():
        if options.only in row.name:
            done.append(summary(row, options.examinations, options.seed))
            print(table(done[-1:]).splitlines()[-1], file=sys.stderr, flush=True)
    print(table(done))
    print(f"\n{options.examinations} examinations a row, {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
