"""How often the demo, which everybody runs first, ends with a fix to act on, and after how many seconds.

    python benchmarks/demo.py --json benchmarks/demo.json
    python benchmarks/demo.py --json benchmarks/demo.json --table

Each examination is what `make demo` runs, with its default options, in a fresh copy of `examples/pets`: on a quiet
machine, and beside each kind of other program (`_neighbour.py`). With `--json` every examination is kept as soon as it
is done: run the same command again, on another day, and it goes on. Exit code 1 where a goal is missed for good.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
from _common import ROOT, concluded, examination, machine, revision, save, say, table, taken_up
from decisive import LIMIT, QUIET, beside, median_seconds

FORMAT = 1
WANTED = {QUIET: 20, "core": 7, "bursts": 7, "memory": 6}
"""Examinations, by what runs beside them."""
GOALS = {True: 19, False: 16}
"""Of how many of them a fix is to be claimed: on a quiet machine, and beside other programs."""


def examine(kind: str, reports: Path | None) -> dict[str, Any]:
    """One examination: what was claimed, what the changed program said of it, and how long it took. `reports`: where
    its `report.json` is kept."""
    with tempfile.TemporaryDirectory(prefix="demo-") as folder, beside(kind):
        pets, output = Path(folder) / "pets", Path(folder) / "out"
        shutil.copytree(ROOT / "examples" / "pets", pets, ignore=shutil.ignore_patterns("data", "runs", "__pycache__"))
        words = ["run", "--quiet", "-o", str(output), str(pets / "train.py"), "--", str(pets / "config.json")]
        _, failure, wall = examination(words, Path(folder), LIMIT)
        report = {} if failure else msgspec.json.decode((output / "report.json").read_bytes())
        if reports is not None and report:
            reports.mkdir(parents=True, exist_ok=True)
            shutil.copy(output / "report.json", reports / f"{kind}-{time.strftime('%Y%m%d-%H%M%S')}.json")
    method, verdict, confirmation = (report.get(name) or {} for name in ("method", "verdict", "confirmation"))
    return {
        "revision": revision(),
        "taken": time.strftime("%Y-%m-%d %H:%M", time.gmtime()),
        "wall": wall,
        "failure": failure.replace(folder, "."),
        "claims": bool(verdict.get("fix") or verdict.get("together")),
        "sentence": verdict.get("sentence", "").replace(folder, "."),
        "known": method.get("claimed_after_seconds"),
        "outcome": confirmation.get("outcome"),
        "promised": confirmation.get("promised"),
        "speedup": confirmation.get("speedup"),
    }


def report_text(records: dict[str, list[dict[str, Any]]]) -> str:
    lines = []
    for kind, wanted in WANTED.items():
        taken = records.get(kind, [])
        if not taken:
            continue
        outcomes = Counter(each["outcome"] or "-" for each in taken)
        lines.append(
            [
                kind,
                f"{len(taken)}{'' if len(taken) >= wanted else f' of {wanted}'}",
                str(sum(each["claims"] for each in taken)),
                ", ".join(f"{each} {count}" for each, count in outcomes.most_common()),
                _range([each["promised"]["estimate"] for each in taken if each["promised"]]),
                _range([each["speedup"]["estimate"] for each in taken if each["speedup"]]),
                median_seconds(taken, "known"),
                f"{median(each['wall'] for each in taken):.0f}",
            ]
        )
    head = ["beside", "examined", "claimed", "changed program", "promised", "edited", "known after", "median s"]
    return table(head, lines, left=1)


def _range(speedups: Sequence[float]) -> str:
    """The least, the median and the largest of them."""
    if not speedups:
        return "-"
    return " ".join(f"{each:.2f}" for each in (min(speedups), median(speedups), max(speedups)))


def missed(records: dict[str, list[dict[str, Any]]]) -> list[str]:
    """The goals that can't be met any more, however the examinations end that are to come."""
    said = []
    for quiet, least in GOALS.items():
        kinds = [kind for kind in WANTED if (kind == QUIET) == quiet]
        taken = [each for kind in kinds for each in records.get(kind, [])[: WANTED[kind]]]
        open_ = sum(WANTED[kind] for kind in kinds) - len(taken)
        claimed = sum(each["claims"] for each in taken)
        if claimed + open_ < least:
            said.append(f"claimed in {claimed} of {len(taken)} ({', '.join(kinds)}); the goal is {least}")
    return said


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--beside", nargs="+", choices=list(WANTED), help="only beside these")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep everything here; taken up again if it exists")
    parser.add_argument("--reports", type=Path, metavar="FOLDER", help="keep the report.json of each examination here")
    parser.add_argument("--table", action="store_true", help="measure nothing, print what the file holds")
    options = parser.parse_args()

    document = taken_up(options.json, {"format": FORMAT, "machines": [], "examinations": {}})
    records = document["examinations"]
    interrupted = False
    if not options.table:
        document["machines"].append(machine())
        try:
            for number in range(max(WANTED.values())):
                for kind in options.beside or WANTED:
                    mine = records.setdefault(kind, [])
                    if number < WANTED[kind] and len(mine) <= number:
                        say(f"{kind}, {number + 1} of {WANTED[kind]}")
                        mine.append(examine(kind, options.reports))
                        save(options.json, document)
        except KeyboardInterrupt:
            interrupted = True
    return concluded(
        "The demo, with default options",
        document["machines"],
        report_text(records),
        missed(records),
        interrupted=interrupted,
    )


if __name__ == "__main__":
    sys.exit(main())
