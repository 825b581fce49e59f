"""How true the verdict's headline is: whole examinations on a machine that is made up, whose truth is known.

    python benchmarks/headline.py --examinations 1000 --json headline.json
    python benchmarks/headline.py --json headline.json --table

Everything of an examination is ours and real here: which setting is measured when, what is dropped, when it ends, the
judge and the sentence. Only processes and the clock are made up. Each process has luck of its own for each setting,
each window has noise, and a neighbour may come and go. The verdict names one setting out of all that were tried, so its
interval has to hold for the best of them, not for one that was chosen beforehand. `tests/truth/test_headline.py` runs
a small version.

All rows grow together, some examinations at a time. With `--json` each row keeps what it has counted: run the same
command again, and it goes on where it was interrupted, until each row has as many as are asked for. The table says
which revisions counted.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from _common import machine, machine_line, save, table, taken_up

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.unit.made_up_machine import Examined, Machine

from bottleneck_doctor.documents.labels import key_of
from bottleneck_doctor.documents.report import Result, Setting, Speedup
from bottleneck_doctor.runtime.wire.messages import Grant
from bottleneck_doctor.wording import ranking

FORMAT = 1
AT_ONCE = 25
"""Examinations of a row before the next one has its turn."""
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


def examined(row: Row, seed: int) -> Examined:
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
    return Examined(machine, seed=seed)


def told(row: Row, seed: int) -> Told:
    """What one examination of a row said."""
    made = examined(row, seed)
    result: Result = made.result
    promised = ranking.promise(result)
    if promised is None or promised.speedup is None:
        return Told(None, 1.0, False, made.machine.now)
    worth = truth(row.worth, promised.setting)
    parts = [{name: value for name, value in promised.setting.items() if name != left} for left in promised.setting]
    needless = any(worth < WORTH_NOTHING * truth(row.worth, part) for part in parts)
    return Told(promised.speedup, worth, needless, made.machine.now)


@dataclass(frozen=True)
class Summary:
    """What was counted over the examinations of a row.

    `right`: what was named is as good as the best there is, or nothing was named where nothing helps. `wrong`: what was
    named is no faster. `needless`: a part of it is worth nothing. `named`: something was named, and of those, `held`
    intervals hold the truth, and `off` is the sum of the errors of the figures (logs). `seconds`: the sum of how long
    they took.
    """

    examinations: int = 0
    right: int = 0
    wrong: int = 0
    needless: int = 0
    named: int = 0
    held: int = 0
    off: float = 0.0
    seconds: float = 0.0

    @property
    def bias(self) -> float | None:
        """The mean error of the figures; None where nothing was named."""
        return self.off / self.named if self.named else None

    def with_more(self, more: Summary) -> Summary:
        return Summary(**{name: value + getattr(more, name) for name, value in asdict(self).items()})


def summary(row: Row, examinations: int, seed: int) -> Summary:
    """So many examinations of a row, from this seed on."""
    all_told = [told(row, seed + number) for number in range(examinations)]
    figures = [(each.figure, each.worth) for each in all_told if each.figure is not None]
    best = _best(row.worth)
    return Summary(
        examinations=examinations,
        right=sum(each.figure is None if best < WORTH_NOTHING else each.worth >= AS_GOOD * best for each in all_told),
        wrong=sum(each.figure is not None and each.worth < WORTH_NOTHING for each in all_told),
        needless=sum(each.needless for each in all_told),
        named=len(figures),
        held=sum(figure.low <= worth <= figure.high for figure, worth in figures),
        off=math.fsum(math.log(figure.estimate / worth) for figure, worth in figures),
        seconds=math.fsum(each.seconds for each in all_told),
    )


def _best(worth: Worth) -> float:
    """The best that there is: the best value of each knob."""
    knobs = {name for name, _ in worth}
    return math.prod(max(1.0, *(speed for (name, _), speed in worth.items() if name == knob)) for knob in knobs)


def line(name: str, each: Summary) -> list[str]:
    """A row of the table."""
    shares = [f"{count / each.examinations:.1%}" for count in (each.right, each.wrong, each.needless)]
    held = f"{each.held / each.named:.1%}" if each.named else ""
    bias = "" if each.bias is None else f"{each.bias:+.1%}"
    return [
        name,
        f"{each.examinations}",
        *shares,
        f"{each.named}",
        held,
        bias,
        f"{each.seconds / each.examinations:.0f}",
    ]


def show(document: dict[str, Any]) -> None:
    for each in document["machines"]:
        print(machine_line(each))
    head = ["truth; noise", "examinations", "right", "wrong", "needless", "named", "held", "bias", "mean seconds"]
    counted = {name: Summary(**each) for name, each in document["rows"].items()}
    print(table(head, [line(name, each) for name, each in counted.items() if each.examinations]))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--examinations", type=int, default=200, help="of each row, in all")
    parser.add_argument("--only", metavar="TEXT", default="", help="rows whose name holds this")
    parser.add_argument("--jobs", type=int, default=1, help="how many to simulate at once")
    parser.add_argument("--json", type=Path, metavar="FILE", help="what is counted is kept there")
    parser.add_argument("--table", action="store_true", help="only print what was counted")
    options = parser.parse_args()
    document = taken_up(options.json, {"format": FORMAT, "machines": [], "rows": {}})
    if options.table:
        show(document)
        return 0
    document["machines"].append(machine())
    chosen = {row.name: row for row in rows() if options.only in row.name}
    with ProcessPoolExecutor(options.jobs) as pool:
        while short := [row for row in chosen.values() if _counted(document, row).examinations < options.examinations]:
            begun = [_counted(document, row).examinations for row in short]
            counts = [min(AT_ONCE, options.examinations - done) for done in begun]
            for row, more in zip(short, pool.map(summary, short, counts, (1 + done for done in begun)), strict=True):
                document["rows"][row.name] = asdict(_counted(document, row).with_more(more))
                save(options.json, document)
            print(f"{min(begun) + min(counts)} examinations a row", file=sys.stderr, flush=True)
    show(document)
    return 0


def _counted(document: dict[str, Any], row: Row) -> Summary:
    return Summary(**document["rows"].get(row.name, {}))


if __name__ == "__main__":
    sys.exit(main())
