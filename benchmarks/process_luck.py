"""How much processes differ in what they say of one setting, over kept examinations of unlike programs.

    python benchmarks/process_luck.py REPORTS... --json benchmarks/process_luck.json
    python benchmarks/process_luck.py --json benchmarks/process_luck.json --table

REPORTS are reports (`report.json`) or folders of them. Of every setting that was measured in three processes or more,
the corpus keeps the mean log speedup of each process; nothing else of a report is kept but the name of its entrypoint
and the kind of device. A setting's variance between processes is drawn from a distribution of its own, a scaled inverse
chi-square one, which is fitted to all of them (as in `statistics.spread`). The first table shows what that would
promise of a setting that was seen in one process, and how often the mean of its other processes lies there. The second
is of the intervals that doctor makes of two processes, with and without what it knows of other programs, and of three.
Each program is judged by what was fitted to the others.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean, median, quantiles
from typing import Any

from _common import save, table, taken_up

from bottleneck_doctor.documents.labels import CONTROL
from bottleneck_doctor.documents.report import from_json
from bottleneck_doctor.errors import DoctorError
from bottleneck_doctor.measure import pairing
from bottleneck_doctor.statistics.distributions import student_t_quantile
from bottleneck_doctor.statistics.spread import (
    MINIMUM_STANDARD_ERROR,
    Spread,
    own_spread,
    spreads,
    typical,
    with_others,
)

FORMAT = 1
LEAST = 3
"""Processes that a setting needs to be kept."""
LEVELS = (0.5, 0.8, 0.95)
MOST_DEGREES = 100.0


def kept(report: Path) -> dict[str, Any] | None:
    """What the corpus keeps of a report; None where no setting has its processes."""
    result = from_json(report.read_bytes(), source=str(report))
    batches = result.baseline.epoch_batches if result.baseline is not None else None
    means: dict[str, dict[int, list[float]]] = {}
    for pair in pairing.pairs(result.windows, batches):
        if pair.key != CONTROL and not pair.key.startswith(("replay", "loader_only")):
            means.setdefault(pair.key, {}).setdefault(pair.session, []).append(pair.promised)
    settings = {
        key: [round(fmean(values), 5) for values in sessions.values()]
        for key, sessions in sorted(means.items())
        if len(sessions) >= LEAST
    }
    if not settings or result.baseline is None:
        return None
    return {
        "program": next((Path(each).name for each in result.entrypoint.argv if each.endswith(".py")), ""),
        "device": result.baseline.device.split(":")[0],
        "settings": settings,
    }


def reports_in(places: Sequence[Path]) -> Iterator[Path]:
    for place in places:
        yield from [place] if place.is_file() else sorted(place.rglob("report.json"))


def settings_spreads(examinations: Sequence[dict[str, Any]]) -> list[Spread]:
    """Of each setting, between its processes."""
    found = [own_spread(values) for each in examinations for values in each["settings"].values()]
    return [replace(each, variance=max(MINIMUM_STANDARD_ERROR**2, each.variance)) for each in found]


def half_width(prior: Spread, level: float) -> float:
    """Of an interval around what one process says."""
    return student_t_quantile((1 + level) / 2, prior.degrees_of_freedom) * math.sqrt(prior.variance)


def prior_without(examinations: Sequence[dict[str, Any]], program: str) -> Spread:
    """What is fitted to all programs but one."""
    return typical(settings_spreads([each for each in examinations if each["program"] != program]), MOST_DEGREES)


def coverage(examinations: Sequence[dict[str, Any]], level: float) -> tuple[int, int]:
    """How many processes were near enough to the mean of the others of their setting, and of how many."""
    inside = seen = 0
    for each in examinations:
        half = half_width(prior_without(examinations, each["program"]), level)
        for values in each["settings"].values():
            for index, value in enumerate(values):
                rest = values[:index] + values[index + 1 :]
                # The mean of the others has luck of its own, which one process's interval need not hold.
                inside += abs(value - fmean(rest)) <= half * math.sqrt(1 + 1 / len(rest))
                seen += 1
    return inside, seen


def few_processes(
    examinations: Sequence[dict[str, Any]], first: int, level: float, *, others_lend: bool
) -> tuple[list[float], int]:
    """Half the width of each interval that is made of `first` processes, and how many hold the mean of the rest. From
    each examination, up to three groups of processes are taken."""
    halves: list[float] = []
    inside = 0
    for each in examinations:
        rows = {key: values for key, values in each["settings"].items() if len(values) > first}
        if not rows:
            continue
        prior = prior_without(examinations, each["program"])
        for start in range(LEAST):
            turned = {key: values[start:] + values[:start] for key, values in rows.items()}
            found = spreads({key: dict(enumerate(values[:first])) for key, values in turned.items()})
            for key, values in turned.items():
                spread = with_others(found[key], prior) if others_lend else found[key]
                error = max(MINIMUM_STANDARD_ERROR**2, spread.variance / first)
                half = half_width(replace(spread, variance=error), level)
                rest = values[first:]
                halves.append(half)
                # The mean of the rest has luck of its own, which the interval need not hold.
                allowed = half * math.sqrt(1 + first / len(rest))
                inside += abs(fmean(values[:first]) - fmean(rest)) <= allowed
    return halves, inside


def show_few(examinations: Sequence[dict[str, Any]]) -> None:
    lines = []
    for name, first, lend in (
        ("two processes alone", 2, False),
        ("two processes and other programs", 2, True),
        ("three processes alone", 3, False),
    ):
        told = [few_processes(examinations, first, level, others_lend=lend) for level in (0.95, 0.99)]
        halves = told[0][0]
        widest = quantiles(halves, n=10)[-1]
        held = (f"{inside / len(halves):.1%} of {len(halves)}" for halves, inside in told)
        lines.append([name, f"{math.expm1(median(halves)):.0%}", f"{math.expm1(widest):.0%}", *held])
    print(table(["interval from", "median width to either side", "a tenth has", "held at 95 %", "held at 99 %"], lines))


def show(document: dict[str, Any]) -> None:
    examinations: list[dict[str, Any]] = document["examinations"]
    lines = []
    for device in sorted({each["device"] for each in examinations}):
        mine = [each for each in examinations if each["device"] == device]
        seen = settings_spreads(mine)
        if len({each["program"] for each in mine}) < LEAST or len(seen) < 2 * LEAST:
            lines.append([device, str(len(mine)), str(len(seen)), *["too few"] * (2 + len(LEVELS))])
            continue
        prior = typical(seen, MOST_DEGREES)
        found = [coverage(mine, level) for level in LEVELS]
        lines.append(
            [
                device,
                str(len(mine)),
                str(len(seen)),
                f"{median(math.sqrt(each.variance) for each in seen):.1%}",
                f"{math.sqrt(prior.variance):.1%}, {prior.degrees_of_freedom:.1f}",
                *(
                    f"±{math.expm1(half_width(prior, level)):.0%}: {inside / count:.0%} of {count}"
                    for level, (inside, count) in zip(LEVELS, found, strict=True)
                ),
            ]
        )
    head = ["device", "programs", "settings", "median spread", "typical spread, degrees"]
    print(table([*head, *(f"one process at {level:.0%}" for level in LEVELS)], lines))
    cpu = [each for each in examinations if each["device"] == "cpu"]
    if len({each["program"] for each in cpu}) >= LEAST:
        print()
        show_few(cpu)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("reports", nargs="*", type=Path, metavar="REPORTS")
    parser.add_argument("--json", type=Path, metavar="FILE", help="the corpus; what is added is kept there")
    parser.add_argument("--table", action="store_true", help="only print what the corpus says")
    options = parser.parse_args()
    document = taken_up(options.json, {"format": FORMAT, "examinations": []})
    for report in reports_in(options.reports):
        try:
            found = kept(report)
        except (DoctorError, ValueError) as error:
            print(f"{report}: {error}", file=sys.stderr)
            continue
        if found is not None and found not in document["examinations"]:
            document["examinations"].append(found)
    if options.reports:
        save(options.json, document)
    show(document)
    return 0


if __name__ == "__main__":
    sys.exit(main())
