"""Whether everybody's code can be examined, and is left as it was: a table over whole programs as people write them.

    python benchmarks/compatibility.py --json compatibility.json

Every program of `tests/process/programs/` is examined by a short `doctor run` in a folder and a home of its own. For
each the table says whether its loop was found as it is known to be; whether the report claims the fix that is known to
be right, and none that is known to be wrong; whether any file was changed or added, our own outputs apart; and whether
a process, a shared memory segment or a temporary folder was left. The truth about the programs stands in
`tests/process/known_programs.py`. Programs whose library is missing are named as such and do not count.

Exit code 1 where anything is not as it should be.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec
from _common import ROOT, examination, machine, machine_line, save, say, table, taken_up
from _remains import MARK, difference, hashes, left_behind, shared_memory

sys.path.insert(0, str(ROOT))

from tests.process.known_programs import KNOWN, Known

FORMAT = 1
BUDGET = "60s"
GRACE = 120.0
"""Seconds beyond its budget after which an examination has failed."""


@dataclass(frozen=True)
class Row:
    """What came of one program. Each text is "" where all is as it should be, else it says what is not."""

    program: str
    found: str
    answer: str
    files: str
    processes: str
    failure: str
    told: str
    """What the report claims, in brief."""
    seconds: float

    @property
    def good(self) -> bool:
        return not (self.found or self.answer or self.files or self.processes or self.failure)


# -- one program -------------------------------------------------------------------------------------------------------


def examine(known: Known, budget: str) -> Row:
    """One examination, and what it left behind."""
    with tempfile.TemporaryDirectory(prefix="bdc-", dir="/tmp") as name:
        scratch = Path(name)
        folder, home, temporary = scratch / "program", scratch / "home", scratch / "tmp"
        entry = known.put(folder)
        home.mkdir()
        temporary.mkdir()
        separator = () if known.module else ("--",)
        words = ["run", "--quiet", "-o", str(scratch / "report"), "--budget", budget]
        shared = shared_memory()
        before = hashes(folder, home)
        _, failure, seconds = examination(
            [*words, *entry, *separator, *known.long],
            folder,
            _seconds(budget) + GRACE,
            env={**os.environ, **known.environment, "HOME": str(home), "TMPDIR": str(temporary), MARK: name},
        )
        report: dict[str, Any] = {}
        if not failure:
            report = msgspec.json.decode((scratch / "report" / "report.json").read_bytes())
        return Row(
            program=known.name,
            found="nothing" if failure else wrongly_found(known, report),
            answer="none" if failure else wrongly_answered(known, report),
            files=difference(before, hashes(folder, home)),
            processes=left_behind(name, shared, temporary),
            failure=failure,
            told="" if failure else claims(report),
            seconds=seconds,
        )


def wrongly_found(known: Known, report: dict[str, Any]) -> str:
    """Where the loop that the report speaks of is not the program's."""
    baseline = report["baseline"]
    expected = {
        "rung": known.found.get("rung", "optimizer step"),
        "period": known.found.get("period", 1),
        "batch_size": known.samples if known.found.get("has_loader", True) else baseline["batch_size"],
    }
    wrong = [f"{name} {baseline[name]}, not {value}" for name, value in expected.items() if baseline[name] != value]
    return "; ".join(wrong)


def wrongly_answered(known: Known, report: dict[str, Any]) -> str:
    """Where the report claims a fix that is none, misses the one that is, or tries what can't be."""
    fixes = {each["id"]: each for each in report["fixes"]}
    faster = [each["id"] for each in report["fixes"] if each["status"] == "faster"]
    wrong = []
    if known.right is not None and (wanted := _fix_of(known.right)) not in faster:
        wrong.append(f"{wanted} {fixes[wanted]['status']}{_how_far(fixes[wanted])}")
    if known.right is None and "workers" in faster:
        wrong.append("claims workers")
    for identifier, reason in known.refused.items():
        said = fixes[identifier]
        if said["status"] != "not_applicable" or reason not in said["reason"]:
            wrong.append(f"{identifier} {said['status']} ({said['reason']})")
    return "; ".join(wrong)


def _how_far(fix: dict[str, Any]) -> str:
    """What is known of a fix that is not claimed."""
    known = fix["speedup"]
    if known is None:
        return f" ({fix['reason']})"
    return (
        f" ({known['estimate']:.2f}x, {known['low']:.2f} to {known['high']:.2f}, "
        f"{known['pairs']} pairs of {known['sessions']} processes)"
    )


def _fix_of(setting: Any) -> str:
    return "no-workers" if setting["num_workers"] == 0 else "workers"


def claims(report: dict[str, Any]) -> str:
    """The fixes that the report calls faster, with their ratios."""
    told = [
        f"{each['id']} {each['speedup']['estimate']:.2f}x" for each in report["fixes"] if each["status"] == "faster"
    ]
    return ", ".join(told) or "nothing faster"


# -- the whole ---------------------------------------------------------------------------------------------------------


def report_text(rows: Sequence[Row], missing: dict[str, str]) -> str:
    """The table, and in full what is not as it should be."""
    head = ["program", "found", "right answer", "unchanged files", "clean processes", "claims", "s"]
    lines = [
        [
            row.program,
            *("yes" if not text else "NO" for text in (row.found, row.answer, row.files, row.processes)),
            row.told or "-",
            f"{row.seconds:.0f}",
        ]
        for row in rows
    ]
    lines += [[name, "-", "-", "-", "-", reason, "-"] for name, reason in missing.items()]
    told = []
    for row in rows:
        for what, text in (
            ("found", row.found),
            ("answer", row.answer),
            ("files", row.files),
            ("left behind", row.processes),
            ("failed", row.failure),
        ):
            if text:
                told.append(f"{row.program}: {what}: {text}")
    good = sum(row.good for row in rows)
    return "\n".join([table(head, lines, left=6), "", *told, f"as they should be: {good} of {len(rows)}"])


def _seconds(budget: str) -> float:
    from bottleneck_doctor.wording.durations import parse_duration

    return parse_duration(budget)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these programs")
    parser.add_argument("--budget", default=BUDGET, help="of an examination, as for `doctor run`")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep everything here; taken up again if it exists")
    options = parser.parse_args()
    known = {program.name: program for program in KNOWN}
    if unknown := set(options.only or ()) - set(known):
        parser.error(f"there is no {', '.join(sorted(unknown))}; programs are {', '.join(known)}")
    wanted = [known[name] for name in options.only or known]
    missing = {program.name: program.missing() for program in wanted if program.missing()}

    fresh: dict[str, Any] = {"format": FORMAT, "budget": options.budget, "machines": [], "programs": {}}
    document = taken_up(options.json, fresh, ["budget"])
    document["machines"].append(machine())
    interrupted = False
    try:
        for program in wanted:
            if program.name in missing or program.name in document["programs"]:
                continue
            say(program.name)
            row = examine(program, options.budget)
            document["programs"][program.name] = asdict(row)
            save(options.json, document)
            say(f"{program.name}: {'as it should be' if row.good else 'NOT as it should be'}, {row.seconds:.0f} s")
    except KeyboardInterrupt:
        interrupted = True

    rows = [Row(**document["programs"][each.name]) for each in wanted if each.name in document["programs"]]
    print(f"Compatibility: programs as people write them, budget {document['budget']} each\n")
    for seen in document["machines"]:
        print(f"on {machine_line(seen)}")
    print()
    print(report_text(rows, missing) if rows or missing else "nothing was examined")
    if interrupted:
        print("\ninterrupted: the same command with --json goes on")
        return 130
    return 0 if rows and all(row.good for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
