"""What one examination of all fixes costs, against one of each fix alone, and against starting the program again and
again.

    python benchmarks/together.py --json together.json
    python benchmarks/together.py --json together.json --only residual --table

Measured for each program, with nothing that explains and nothing that confirms, so that all three measure the same:

- *together*: an examination with default options, in which one window may hold several fixes.
- *alone*: for each fix that it measured, an examination with `--only` that fix, one after another.
- *afresh*: processes of `--fresh-runs` with the best of these fixes: how long one lasts, and how far processes of one
  kind differ.

Extrapolated from the last: how many processes a side would bring the interval of a ratio to the median half width of
*together* (of logarithms), times that many for each fix and once more for the program as written.

With `--json` every examination is kept as soon as it is done: run the same command again and it goes on. Exit code 1
where a goal is missed.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
from _common import Ratio, concluded, examination, machine, revision, save, say, table, taken_up
from cost import pooled_spread, repetitions
from decisive import HERE, LIMIT, Program
from edited import SESSIONS_OF_A_CLAIM

FORMAT = 1
AGAINST_ALONE, AGAINST_FRESH = 1 / 2, 1 / 4
"""Goals: what *together* takes at most of either."""
LEAST_FIXES = 12
"""So many fixes apply to a program that is asked for here."""
FRESH_BUDGET = "3m"

PROGRAMS = (
    Program(file="tangled/photos.py", scratch="--data"),
    Program(file="tangled/texts.py"),
    Program(file="tangled/rows.py"),
    Program(file="tangled/masks.py"),
)


def examined(program: Program, *options: str) -> dict[str, Any]:
    """One examination of the program with these options: how long it took, and what of its report is needed here."""
    with tempfile.TemporaryDirectory(prefix="together-") as folder:
        output = Path(folder) / "out"
        own = [program.scratch, str(Path(folder) / "data")] if program.scratch else []
        words = ["run", "--quiet", "--no-explain", "--no-confirm", "-o", str(output), *options]
        _, failure, wall = examination([*words, str(HERE / program.file), "--", *own], Path(folder), LIMIT)
        report = {} if failure else msgspec.json.decode((output / "report.json").read_bytes())
    fixes = [{name: each[name] for name in ("id", "status", "speedup")} for each in report.get("fixes", [])]
    return {
        "revision": revision(),
        "wall": wall,
        "failure": failure.replace(folder, "."),
        "fixes": fixes,
        "sessions": [
            [each["setup_seconds"], each["seconds"]] for each in (report.get("method") or {}).get("sessions", [])
        ],
        "steps": [
            [each["label"], each["seconds"] / each["steps"]]
            for each in report.get("windows", [])
            if each["status"] == "ok" and each["mode"] == "timed" and each["steps"]
        ],
    }


def measured(together: dict[str, Any]) -> list[dict[str, Any]]:
    """The fixes that got a speedup."""
    return [each for each in together["fixes"] if each["speedup"] is not None]


def run(program: Program, record: dict[str, Any], keep: Any) -> None:
    """Measure what `record` lacks of this program, and keep all as it comes."""
    if "together" not in record:
        say(f"{program.name}: all fixes together")
        record["together"] = examined(program)
        keep()
    fixes = measured(record["together"])
    if not fixes:
        return
    best = max(fixes, key=lambda each: each["speedup"]["low"])["id"]
    if "afresh" not in record:
        say(f"{program.name}: {best} in processes of its own")
        record["afresh"] = examined(program, "--fresh-runs", "--only", best, "--budget", FRESH_BUDGET)
        keep()
    alone = record.setdefault("alone", {})
    for each in fixes:
        if each["id"] not in alone:
            say(f"{program.name}: {each['id']} alone")
            alone[each["id"]] = examined(program, "--only", each["id"])
            keep()


@dataclass(frozen=True)
class Costs:
    """What a program's examinations cost, in seconds; None where something was not measured yet."""

    applicable: int
    fixes: int
    together: float
    width: float
    """Median half width of the intervals of its fixes, of those seen in so many processes; infinite without any."""
    alone: float | None
    width_alone: float
    a_start: float | None
    repetitions: int

    @property
    def afresh(self) -> float | None:
        return None if self.a_start is None else self.repetitions * (self.fixes + 1) * self.a_start

    def ratio(self, other: float | None) -> float | None:
        return None if not other else self.together / other


def costs(record: dict[str, Any]) -> Costs | None:
    """None where the program was not examined, or nothing was measured."""
    together = record.get("together")
    if together is None or not measured(together):
        return None
    fixes, alone = measured(together), record.get("alone", {})
    width = _width([each["speedup"] for each in fixes])
    whole = all(each["id"] in alone and not alone[each["id"]]["failure"] for each in fixes)
    alone_speedups = [
        fix["speedup"] for key, each in alone.items() for fix in each["fixes"] if fix["id"] == key and fix["speedup"]
    ]
    a_start, needed = None, 0
    afresh = record.get("afresh")
    if afresh is not None and not afresh["failure"]:
        sides: dict[str, list[float]] = defaultdict(list)
        for label, step in afresh["steps"]:
            sides[label].append(step)
        kept = [side for side in sides.values() if len(side) >= 2]
        if kept and math.isfinite(width):
            needed = repetitions(pooled_spread(kept)[0], width)
            a_start = afresh["wall"] / len(afresh["sessions"])
    return Costs(
        applicable=sum(each["status"] != "not_applicable" for each in together["fixes"]),
        fixes=len(fixes),
        together=together["wall"],
        width=width,
        alone=sum(each["wall"] for each in alone.values()) if whole else None,
        width_alone=_width(alone_speedups),
        a_start=a_start,
        repetitions=needed,
    )


def _width(speedups: Sequence[dict[str, Any]]) -> float:
    seen = [each for each in speedups if each["sessions"] >= SESSIONS_OF_A_CLAIM]
    widths = [Ratio(each["estimate"], each["low"], each["high"]).half_width for each in seen]
    return median(widths) if widths else math.inf


def report_text(records: dict[str, dict[str, Any]]) -> str:
    lines = []
    for name, record in records.items():
        cost = costs(record)
        if cost is None:
            failure = record.get("together", {}).get("failure") or "nothing was measured"
            lines.append([name, *["-"] * 8, failure.splitlines()[0][:60]])
            continue
        lines.append(
            [
                name,
                str(cost.applicable),
                str(cost.fixes),
                f"{cost.together:.0f}",
                f"{cost.width:.3f}",
                _seconds(cost.alone),
                f"{cost.width_alone:.3f}",
                _share(cost.ratio(cost.alone)),
                _seconds(cost.afresh),
                _share(cost.ratio(cost.afresh)),
            ]
        )
    head = ["program", "apply", "measured", "together s", "width", "alone s", "width", "ratio", "afresh s", "ratio"]
    return table(head, lines, left=1)


def _seconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.0f}"


def _share(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.2f}"


def missed(records: dict[str, dict[str, Any]]) -> list[str]:
    """The goals that a program misses."""
    said = []
    for name, record in records.items():
        cost = costs(record)
        if cost is None:
            continue
        if cost.applicable < LEAST_FIXES:
            said.append(f"{name}: {cost.applicable} fixes apply; {LEAST_FIXES} are asked for")
        for what, other, goal in (("alone", cost.alone, AGAINST_ALONE), ("afresh", cost.afresh, AGAINST_FRESH)):
            ratio = cost.ratio(other)
            if ratio is not None and ratio > goal:
                said.append(f"{name}: {ratio:.2f} of what it takes {what}; the goal is {goal:.2f}")
    return said


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--only", nargs="+", choices=[each.name for each in PROGRAMS], help="only these programs")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep everything here; taken up again if it exists")
    parser.add_argument("--table", action="store_true", help="measure nothing, print what the file holds")
    options = parser.parse_args()

    document = taken_up(options.json, {"format": FORMAT, "machines": [], "programs": {}})
    records = document["programs"]
    interrupted = False
    if not options.table:
        document["machines"].append(machine())
        try:
            for program in PROGRAMS:
                if not options.only or program.name in options.only:
                    run(program, records.setdefault(program.name, {}), lambda: save(options.json, document))
        except KeyboardInterrupt:
            interrupted = True
    title = "All fixes together, each alone, and starts afresh"
    return concluded(title, document["machines"], report_text(records), missed(records), interrupted=interrupted)


if __name__ == "__main__":
    sys.exit(main())
