"""Whether the doctor finds the root causes that people write about, and measures what their cure is worth.

    python benchmarks/causes.py --json benchmarks/causes.json
    python benchmarks/causes.py --json benchmarks/causes.json --table

Each program has one cause, and an edit by hand that cures it. The program as written and the cured one are started in
turn, without the doctor, and torch's own hook counts their optimizer steps: that is the truth. Then `doctor run` with
its default options examines the program as written. The cause is *named* if the finding that says so is there, or the
fix that cures it was measured as faster; *measured* if the promise of that fix and the truth agree within their joint
95 % interval. The offer is *best* if the fix that is ranked first makes the cure, or promises at least as much.

With `--json` every start and every examination is kept as soon as it is done: run the same command again and it goes on
where it was interrupted; a program whose text or cure has changed is measured anew. Exit code 1 where a goal is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from _causes_truth import CAUSES, HERE, Cause
from _common import Ratio, examination, machine, machine_line, revision, save, say, shuffled, table, taken_up, unpaired
from planted import without_places

FORMAT = 1
STARTS = 8
WARM = 4.0
"""Seconds of training that do not count, in each start."""
COUNTED = 8.0
START_LIMIT = 120.0
LIMIT = 900.0
"""Seconds after which an examination has failed."""
GAIN = 1.05
"""A cure counts as worth something here if all of its interval lies above this."""
GOALS = {"named": 0.97, "measured": 0.8, "best": 0.9}


# -- the truth ---------------------------------------------------------------------------------------------------------


def step_seconds(cause: Cause, cured: bool) -> tuple[float, str]:
    """Seconds a step of one start, and why there are none ("" where there are)."""
    with tempfile.TemporaryDirectory(prefix="cause-") as folder:
        shutil.copytree(cause.file.parent, Path(folder) / "there", ignore=shutil.ignore_patterns("__pycache__"))
        script, result = Path(folder) / "there" / cause.file.name, Path(folder) / "result.json"
        if cured:
            script.write_text(cause.cured(), encoding="utf-8")
        words = [str(HERE / "_stepping.py"), str(result), str(WARM), str(COUNTED), str(script), *cause.arguments]
        try:
            done = subprocess.run(
                [sys.executable, *words],
                cwd=script.parent,
                env={**os.environ, **(cause.variables if cured else {}), "TMPDIR": folder},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                timeout=START_LIMIT,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return 0.0, f"not done after {START_LIMIT:.0f} s"
        if not result.exists():
            return 0.0, f"exit code {done.returncode}: {done.stderr.strip()[-300:]}"
        counted = json.loads(result.read_text(encoding="utf-8"))
    return counted["seconds"] / counted["steps"], ""


def truth(cause: Cause, record: dict[str, Any]) -> Ratio | None:
    """How many times as fast the cured program is, a sample; None with fewer than two starts a side."""
    sides = {side: [each for each in record["starts"][side] if each] for side in ("written", "cured")}
    ratio = unpaired(sides["written"], sides["cured"])
    if ratio is None:
        return None
    return Ratio(*(cause.samples * each for each in (ratio.estimate, ratio.low, ratio.high)))


# -- rows --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """What is known of one cause."""

    cause: Cause
    record: dict[str, Any]

    @property
    def truth(self) -> Ratio | None:
        return truth(self.cause, self.record)

    @property
    def worth(self) -> bool:
        """Whether the cure is worth something on this machine."""
        return self.truth is not None and self.truth.low > GAIN

    @property
    def report(self) -> dict[str, Any]:
        found: dict[str, Any] = self.record.get("examined") or {}
        return found

    @property
    def faster(self) -> list[dict[str, Any]]:
        """Fixes that were measured as faster, as the report ranks them: by the lower end of their intervals."""
        found = [each for each in self.report.get("fixes", []) if each["status"] == "faster"]
        return sorted(found, key=lambda each: -each["speedup"][1])

    @property
    def cures(self) -> list[dict[str, Any]]:
        return [each for each in self.faster if each["id"] in self.cause.fixes]

    @property
    def named(self) -> bool:
        return bool(set(self.cause.findings) & set(self.report.get("findings", []))) or bool(self.cures)

    @property
    def first(self) -> bool | None:
        """Whether the finding that names the cause comes first; None where no finding is to name it."""
        findings = self.report.get("findings", [])
        return bool(findings) and findings[0] in self.cause.findings if self.cause.findings else None

    @property
    def measured(self) -> bool | None:
        """Whether a fix promises what the cure brings; None where no switch makes it, or it brings nothing here."""
        found = self.truth
        if not self.cause.fixes or found is None or not self.worth:
            return None
        return any(found.agrees_with(Ratio(*each["speedup"])) for each in self.cures)

    @property
    def best(self) -> bool | None:
        """Whether what is offered first makes the cure, or surely promises as much; None as for `measured`."""
        found = self.truth
        if self.measured is None or found is None:
            return None
        first = next(iter(self.faster), None)
        return first is not None and (first["id"] in self.cause.fixes or first["speedup"][1] >= found.estimate)


def sums(rows: Sequence[Row]) -> dict[str, tuple[int, int]]:
    """Of each goal: how many reached it, of how many that could."""
    asked = [row for row in rows if row.worth]
    answers = {
        "named": [row.named for row in asked],
        "measured": [row.measured for row in asked if row.measured is not None],
        "best": [row.best for row in asked if row.best is not None],
    }
    return {goal: (sum(map(bool, each)), len(each)) for goal, each in answers.items()}


def report_text(rows: Sequence[Row]) -> str:
    head = ["cause", "by hand", "first finding", "named", "cure", "promised", "measured", "first fix", "best", "s"]
    lines = []
    for row in rows:
        found, findings = row.truth, row.report.get("findings", [])
        cure = row.cures[0] if row.cures else None
        failed = row.report.get("failure") or row.record.get("failure", "")
        lines.append(
            [
                row.cause.name,
                found.text() if found else "-",
                "failed" if failed else findings[0] if findings else "none",
                _yes(row.named),
                cure["id"] if cure else "-",
                Ratio(*cure["speedup"]).text() if cure else "-",
                _yes(row.measured),
                row.faster[0]["id"] if row.faster else "-",
                _yes(row.best),
                f"{row.report.get('wall', 0):.0f}",
            ]
        )
    told = [f"{row.cause.name}: {row.record['failure']}" for row in rows if row.record.get("failure")]
    told += [f"{row.cause.name}: {row.report['failure']}" for row in rows if row.report.get("failure")]
    nothing = [row.cause.name for row in rows if row.truth is not None and not row.worth]
    if nothing:
        told.append(f"Worth nothing on this machine, so not counted: {', '.join(nothing)}.")
    counted = "; ".join(f"{goal} {hits} of {of}" for goal, (hits, of) in sums(rows).items())
    return "\n".join([table(head, lines, left=3), "", *told, counted])


def _yes(answer: bool | None) -> str:
    return {True: "yes", False: "NO", None: "-"}[answer]


# -- the whole ---------------------------------------------------------------------------------------------------------


def examine(cause: Cause) -> dict[str, Any]:
    """What the report says of the program as written: ids of its findings, and its fixes in their order."""
    with tempfile.TemporaryDirectory(prefix="cause-") as folder:
        output = Path(folder) / "out"
        words = ["run", "--quiet", "--no-confirm", "-o", str(output), str(cause.file), "--", *cause.arguments]
        environment = {**os.environ, "TMPDIR": folder}
        _, failure, wall = examination(words, Path(folder), LIMIT, env=environment)
        report: dict[str, Any] = {}
        if not failure:
            report = msgspec.json.decode((output / "report.json").read_bytes())
        fixes = [
            {
                "id": each["id"],
                "status": each["status"],
                "speedup": [each["speedup"][name] for name in ("estimate", "low", "high")] if each["speedup"] else None,
            }
            for each in report.get("fixes", [])
        ]
        record = {
            "revision": revision(),
            "taken": time.strftime("%Y-%m-%d %H:%M", time.gmtime()),
            "wall": wall,
            "failure": failure,
            "verdict": (report.get("verdict") or {}).get("sentence", ""),
            "findings": [each["id"] for each in report.get("findings", [])],
            "fixes": fixes,
        }
        found: dict[str, Any] = without_places(record, [Path(folder), HERE, Path(sys.prefix)])
        return found


def measure(cause: Cause, record: dict[str, Any], starts: int, keep: Any) -> None:
    """What is missing of one cause: its examination, then its starts, in turn and in an order of chance."""
    if "examined" not in record:
        say(f"{cause.name}: examining")
        record["examined"] = examine(cause)
        keep()
    for number in range(starts):
        for side in shuffled(["written", "cured"], number):
            if len(record["starts"][side]) > number:
                continue
            seconds, failure = step_seconds(cause, cured=side == "cured")
            record["starts"][side].append(seconds)
            record["failure"] = record.get("failure") or (f"{side}: {failure}" if failure else "")
            say(f"{cause.name}: start {number + 1} of {starts}, {side}: {failure or f'{1000 * seconds:.2f} ms a step'}")
            keep()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these causes")
    parser.add_argument("--starts", type=int, default=STARTS, help="starts of each side; may be raised later")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep everything here; taken up again if it exists")
    parser.add_argument("--table", action="store_true", help="measure nothing, print what the file holds")
    options = parser.parse_args()
    known = {cause.name: cause for cause in CAUSES}
    if set(options.only or ()) - set(known):
        parser.error(f"causes are {', '.join(known)}")
    wanted = [known[name] for name in options.only or known]

    document = taken_up(options.json, {"format": FORMAT, "machines": [], "causes": {}})
    records = document["causes"]
    interrupted = False
    if not options.table:
        document["machines"].append(machine())
        try:
            for cause in wanted:
                if records.get(cause.name, {}).get("program") != cause.fingerprint():
                    records[cause.name] = {"program": cause.fingerprint(), "starts": {"written": [], "cured": []}}
                measure(cause, records[cause.name], options.starts, lambda: save(options.json, document))
        except KeyboardInterrupt:
            interrupted = True

    rows = [Row(cause, records[cause.name]) for cause in wanted if cause.name in records]
    print("Root causes: what the doctor makes of each, beside its cure by hand")
    for seen in document["machines"][-1:]:
        print(f"on {machine_line(seen)}")
    print("\n" + (report_text(rows) if rows else "nothing was measured"))
    if interrupted:
        print("\ninterrupted: the same command with --json goes on")
        return 130
    missed = [goal for goal, (hits, of) in sums(rows).items() if hits < GOALS[goal] * of]
    for goal in missed:
        print(f"goal missed: {goal} in {GOALS[goal]:.0%}")
    return 1 if missed or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
