"""Whether the doctor finds the cause: training programs with one known bottleneck each, planted by hand.

    python benchmarks/planted.py --json planted.json

Every program in `planted/` is examined as a user would, and what the report says is held against what is known of it:
is the right finding the first, does it name the right line (those that end in `# the slow line`), and do no two
findings contradict each other. With `--json` an examination is kept as soon as it is done: run the same command again
and it goes on where it was interrupted; a program whose text or arguments have changed is examined anew.

Exit code 1 where a target is missed: the right finding first in 19 of 20, every line right, no contradiction.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

import msgspec
from _common import examination, machine, machine_line, save, say, table

FORMAT = 1
PROGRAMS = Path(__file__).resolve().parent / "planted"
MARK = "# the slow line"
SCRATCH = "{scratch}"
"""Stands in a program's arguments for a folder that is the run's own and gone afterwards."""
TARGET = 19 / 20
"""Part of the programs in which the right finding has to be the first."""
BUDGET = "3m"
GRACE = 300.0
"""Seconds beyond its budget after which an examination has failed."""


# -- what is known -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Planted:
    """One program, and the truth about it.

    `expected`: ids of the finding that names the cause; several where they say the same of it. `place`: whether a line
    of the program is the cause, so that the finding has to name one that is marked. `fix`: ids of which the fastest fix
    must be one; () where there must be none, None where that depends on the machine or is no fix of the doctor's.
    """

    name: str
    expected: tuple[str, ...]
    arguments: tuple[str, ...] = ()
    place: bool = True
    fix: tuple[str, ...] | None = None

    @property
    def file(self) -> Path:
        return PROGRAMS / f"{self.name}.py"

    def marked(self) -> set[int]:
        """Numbers of the lines that the right finding may name."""
        lines = self.file.read_text(encoding="utf-8").splitlines()
        return {number for number, line in enumerate(lines, 1) if line.rstrip().endswith(MARK)}

    def fingerprint(self) -> str:
        """Changes with whatever would make an earlier examination another one."""
        return hashlib.sha256(self.file.read_bytes() + repr(self.arguments).encode()).hexdigest()


def _on_disk(name: str, **known: Any) -> Planted:
    return Planted(name=name, arguments=("--data", f"{SCRATCH}/{name}"), **known)


SUITE = (
    # Loading: where a sample or a batch is made.
    Planted(name="sleep_in_transform", expected=("slow-transform",), fix=("workers",)),
    Planted(name="heavy_transform", expected=("slow-transform",)),
    _on_disk("decode_pictures", expected=("slow-decode",), fix=("workers",)),
    Planted(name="features_in_fetch", expected=("slow-fetch", "too-few-workers"), fix=("workers",)),
    Planted(name="slow_collate", expected=("slow-collate",)),
    Planted(name="big_hand_over", expected=("slow-hand-over",), place=False, fix=("no-workers",)),
    _on_disk("small_files", expected=("many-small-files",)),
    Planted(name="slow_storage", expected=("workers-io-bound",), fix=("workers",)),
    # Loading: how many make it, and on what cores.
    Planted(name="tokenize_in_workers", expected=("workers-cpu-bound", "slow-fetch")),
    Planted(name="one_worker", expected=("too-few-workers",), place=False, fix=("workers",)),
    # Sixteen workers on two cores cost most where they are started: at every turn of an epoch.
    Planted(name="too_many_workers", expected=("too-many-workers", "slow-epoch-turn"), place=False),
    Planted(name="workers_for_tensors", expected=("memory-data-needs-no-workers",), place=False, fix=("no-workers",)),
    Planted(name="thread_storm", expected=("oversubscribed-threads",), place=False),
    Planted(name="uneven_shards", expected=("worker-imbalance",), place=False),
    Planted(name="rare_slow_sample", expected=("step-jitter",), place=False),
    # The step.
    Planted(name="conv_compute", expected=("compute-bound",), place=False),
    Planted(name="small_layers", expected=("python-bound",), place=False),
    Planted(name="python_forward", expected=("python-bound",)),
    Planted(name="own_optimizer", expected=("slow-optimizer",)),
    Planted(name="cyclic_garbage", expected=("garbage-collection",), place=False),
    Planted(name="collect_each_step", expected=("garbage-collection", "work-between-steps")),
    # Between steps.
    Planted(name="heavy_callback", expected=("work-between-steps",)),
    Planted(name="logging_between_steps", expected=("work-between-steps",)),
    Planted(name="item_loop", expected=("synchronising-calls", "work-between-steps")),
    Planted(name="python_metrics", expected=("work-between-steps", "python-bound")),
    Planted(name="checkpoint_often", expected=("work-between-steps",), arguments=("--output", SCRATCH)),
    # Between epochs, and the whole run.
    Planted(name="short_epochs", expected=("slow-epoch-turn",), place=False, fix=("persistent-workers", "no-workers")),
    Planted(name="long_evaluation", expected=("slow-epoch-turn",), place=False),
    Planted(name="losses_kept", expected=("memory-growth",), place=False),
    Planted(name="slow_start", expected=("slow-start",), place=False),
)

INPUT = (
    "input-bound",
    "slow-fetch",
    "slow-decode",
    "slow-transform",
    "slow-collate",
    "slow-hand-over",
    "too-few-workers",
    "workers-io-bound",
    "workers-cpu-bound",
    "many-small-files",
    "network-file-system",
    "cold-cache",
)
HOST = ("python-bound", "launch-bound", "work-between-steps", "slow-optimizer", "garbage-collection", "transfer-bound")
CONTRADICTIONS: frozenset[frozenset[str]] = frozenset(
    frozenset(pair)
    for pair in (
        # Workers can't be short of cores and idle for the disk's sake, or too few and too many, or needless and short.
        ("workers-io-bound", "workers-cpu-bound"),
        ("workers-io-bound", "oversubscribed-cores"),
        ("too-few-workers", "too-many-workers"),
        ("too-few-workers", "oversubscribed-cores"),
        # Data in memory that costs next to nothing to make is not slow to make, nor read from anywhere.
        *(("memory-data-needs-no-workers", other) for other in INPUT if other not in ("input-bound", "slow-hand-over")),
        # What stands at the ceiling of its computing is not held up by anything else.
        *(("compute-bound", other) for other in (*INPUT, *HOST)),
        ("compute-bound", "worker-imbalance"),
        ("compute-bound", "memory-data-needs-no-workers"),
        ("compute-bound", "too-many-workers"),
        # A device that waits for launches is not one that is kept too busy by what it was given.
        ("launch-bound", "tensor-cores-idle"),
    )
)


# -- what is found -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Judged:
    """What a report says of a program, beside the truth. `line` is None for a program that has none."""

    program: Planted
    first: str
    sentence: str
    right: bool
    line: bool | None
    named: str
    fix: str
    fix_right: bool | None
    contradictions: tuple[str, ...]
    not_judged: str
    failure: str
    seconds: float


def judged(program: Planted, record: dict[str, Any]) -> Judged:
    """Hold one examination, as kept by `examine`, against the truth. One that failed is wrong in everything."""
    findings = record["findings"]
    first = findings[0] if findings else None
    ids = [finding["id"] for finding in findings]
    # The line is asked of the right finding, wherever it stands: what stands before it is counted by `right`.
    cause = next((finding for finding in findings if finding["id"] in program.expected), first)
    site = cause["site"] if cause is not None else None
    named = f"{PurePath(site['file']).name}:{site['line']}" if site is not None else ""
    fix = next((each["id"] for each in record["fixes"] if each["status"] == "faster"), "")
    reasons = {each["id"]: each["reason"] for each in record["not_judged"]}
    return Judged(
        program=program,
        first=first["id"] if first is not None else "",
        sentence=first["sentence"] if first is not None else "",
        right=first is not None and first["id"] in program.expected,
        line=named in {f"{program.file.name}:{number}" for number in program.marked()} if program.place else None,
        named=named,
        fix=fix,
        fix_right=None if program.fix is None or record["failure"] else fix in (program.fix or ("",)),
        contradictions=tuple(contradictions(ids, reasons)),
        not_judged="; ".join(f"{each}: {reasons[each]}" for each in program.expected if each in reasons),
        failure=record["failure"],
        seconds=record["wall"],
    )


def contradictions(ids: Sequence[str], not_judged: Sequence[str] | dict[str, str]) -> Iterator[str]:
    """Pairs of findings that can't both be true, and findings that are said not to have been judged."""
    for position, one in enumerate(ids):
        for other in ids[position + 1 :]:
            if frozenset((one, other)) in CONTRADICTIONS:
                yield f"{one} and {other}"
        if one in not_judged:
            yield f"{one} and that it was not judged"


def examine(program: Planted, budget: str, scratch: Path, reports: Path | None = None) -> dict[str, Any]:
    """One examination of a program: what the report says that is judged here, or why there is none.

    `reports`: a folder in which each report is kept whole, under the program's name.
    """
    with tempfile.TemporaryDirectory(prefix="planted-report-") as folder:
        output = reports / program.name if reports is not None else Path(folder)
        arguments = [word.replace(SCRATCH, str(scratch)) for word in program.arguments]
        words = ["run", "--quiet", "-o", str(output), "--budget", budget, str(program.file), "--", *arguments]
        code, failure, wall = examination(words, scratch, _seconds(budget) + GRACE)
        report: dict[str, Any] = {}
        if not failure:
            report = msgspec.json.decode((output / "report.json").read_bytes())
    fixes = [{"id": each["id"], "status": each["status"]} for each in report.get("fixes", [])]
    return {
        "program": program.fingerprint(),
        "exit": code,
        "wall": wall,
        "failure": failure,
        "verdict": report.get("verdict"),
        "findings": report.get("findings", []),
        "not_judged": report.get("not_judged", []),
        "fixes": fixes,
        "phases": report.get("phases"),
        "warnings": [each["slug"] for each in report.get("warnings", [])],
    }


def _seconds(budget: str) -> float:
    from bottleneck_doctor.duration import parse_duration

    return parse_duration(budget)


# -- the whole ---------------------------------------------------------------------------------------------------------


def report_text(rows: Sequence[Judged], long: bool) -> str:
    """The table, what went wrong in detail, and the sums."""
    head = ["program", "expected", "first finding", "right", "line", "fix", "contra-", "s"]
    lines = []
    for row in rows:
        first = row.first or ("failed" if row.failure else "none")
        lines.append(
            [
                row.program.name,
                " / ".join(row.program.expected),
                first,
                "yes" if row.right else "NO",
                {True: "yes", False: "NO", None: "-"}[row.line],
                (row.fix or "-") + ("" if row.fix_right in (True, None) else " (NO)"),
                str(len(row.contradictions)),
                f"{row.seconds:.0f}",
            ]
        )
    told = []
    for row in rows:
        if long or not row.right:
            told.append(f"{row.program.name}: {row.sentence or row.failure or 'no finding'}")
        if not row.right and row.not_judged:
            told.append(f"{row.program.name}: not judged: {row.not_judged}")
        if row.line is False:
            marked = ", ".join(map(str, sorted(row.program.marked())))
            told.append(f"{row.program.name}: names {row.named or 'no line'} instead of line {marked}")
        told.extend(f"{row.program.name}: finds {each}" for each in row.contradictions)
    return "\n".join([table(head, lines, left=6), "", *told, *([""] if told else []), sums(rows)])


def sums(rows: Sequence[Judged]) -> str:
    right, placed = sum(row.right for row in rows), [row for row in rows if row.line is not None]
    fixed = [row for row in rows if row.fix_right is not None]
    return (
        f"right finding first in {right} of {len(rows)}; right line in {sum(bool(row.line) for row in placed)} of "
        f"{len(placed)}; contradictions {sum(len(row.contradictions) for row in rows)}; "
        f"right fix first in {sum(bool(row.fix_right) for row in fixed)} of {len(fixed)}"
    )


def missed(rows: Sequence[Judged]) -> list[str]:
    """Targets that these rows miss."""
    said = []
    if sum(row.right for row in rows) < TARGET * len(rows):
        said.append(f"the right finding first in {TARGET:.0%}")
    if any(row.line is False for row in rows):
        said.append("every line right")
    if any(row.contradictions for row in rows):
        said.append("no contradiction")
    return said


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these programs")
    parser.add_argument("--budget", default=BUDGET, help="of an examination, as for `doctor run`")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep everything here; taken up again if it exists")
    parser.add_argument("--again", action="store_true", help="examine anew what the file holds already")
    parser.add_argument("--reports", type=Path, metavar="DIR", help="keep the whole reports here, by program")
    parser.add_argument("--show", action="store_true", help="examine nothing, print what the file holds")
    parser.add_argument("--list", action="store_true", help="name the programs and the truth about them")
    options = parser.parse_args()
    known = {program.name: program for program in SUITE}
    unknown = set(options.only or ()) - set(known)
    if unknown:
        parser.error(f"programs are {', '.join(known)}")
    wanted = [known[name] for name in options.only or known]
    if options.list:
        head = ["program", "finding", "line", "fix"]
        print(table(head, [_truth(program) for program in wanted], left=4))
        return 0
    if options.show and not (options.json and options.json.exists()):
        parser.error("--show needs a --json file that exists")

    document: dict[str, Any] = {"format": FORMAT, "budget": options.budget, "machines": [], "programs": {}}
    if options.json and options.json.exists():
        document = msgspec.json.decode(options.json.read_bytes())
        if document.get("format") != FORMAT or not (options.show or document["budget"] == options.budget):
            sys.exit(f"{options.json} was begun with other options: budget {document.get('budget')}")
    interrupted = False
    if not options.show:
        document["machines"].append(machine())
        try:
            _run(wanted, document["programs"], options, lambda: save(options.json, document))
        except KeyboardInterrupt:
            interrupted = True

    rows = [judged(each, document["programs"][each.name]) for each in wanted if each.name in document["programs"]]
    print(f"Planted bottlenecks: what the doctor names as the cause, budget {document['budget']} each\n")
    for seen in document["machines"]:
        print(f"on {machine_line(seen)}")
    print()
    print(report_text(rows, long=True) if rows else "nothing was examined")
    if interrupted:
        print("\ninterrupted: the same command with --json goes on")
        return 130
    failing = missed(rows)
    for each in failing:
        print(f"target missed: {each}")
    return 1 if failing or not rows else 0


def _truth(program: Planted) -> list[str]:
    lines = ", ".join(map(str, sorted(program.marked()))) if program.place else "-"
    fix = "any" if program.fix is None else " / ".join(program.fix) or "none"
    return [program.name, " / ".join(program.expected), lines, fix]


def _run(
    programs: Sequence[Planted], records: dict[str, Any], options: argparse.Namespace, keep: Callable[[], None]
) -> None:
    """Examine every program that has no record yet, or one of another text, keeping each as it comes."""
    if options.reports is not None:
        options.reports = options.reports.resolve()
        options.reports.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix="planted-"))
    try:
        for number, program in enumerate(programs, 1):
            record = records.get(program.name)
            if record is not None and record["program"] == program.fingerprint() and not options.again:
                continue
            say(f"{number}/{len(programs)} {program.name}")
            records[program.name] = examine(program, options.budget, scratch, options.reports)
            keep()
            row = judged(program, records[program.name])
            told = "right" if row.right else f"WRONG, expected {' / '.join(program.expected)}"
            say(f"{program.name}: {row.first or row.failure or 'no finding'}: {told}, {row.seconds:.0f} s")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
