"""Whether the doctor finds the cause: training programs with one known bottleneck each, planted by hand.

    python benchmarks/planted.py --json benchmarks/planted.json

Every program in `planted/` is examined as a user would, and what the report says is held against what is known of it:
is the right finding the first, does it name the right line (those that end in `# the slow line`), do no two findings
contradict each other, and is nothing found that is not so: some programs only look as if they had a cause. A confusion
matrix follows, in Markdown. With `--json` an examination is kept as soon as it is done: run the same command again and
it goes on where it was interrupted; a program whose text or arguments have changed is examined anew.

Exit code 1 where a target is missed: the right finding first in 97 %, every line right, no contradiction, no falsehood.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed, wait
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any

import msgspec
import psutil
from _common import examination, machine, machine_line, revision, save, say, table, taken_up
from _planted_truth import CONTRADICTIONS, PROGRAMS, SCRATCH, SUITE, Planted

FORMAT = 2
SLIGHT = 0.1
"""Weight under which a finding contradicts nothing of what takes nearly all of the time."""
TARGET = 0.97
"""Part of the programs in which the right finding has to be the first."""
GRACE = 300.0
"""Seconds beyond its budget after which an examination has failed."""
DEFAULT_LIMIT = 900.0
"""The same of one without a budget of its own, which should take four minutes."""


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
    falsehoods: tuple[str, ...]
    found: tuple[str, ...]
    not_judged: str
    failure: str
    seconds: float
    first_try: str = ""
    """What came first in an examination before this one, which was wrong."""

    @property
    def good(self) -> bool:
        return self.right and self.line is not False


def judged(program: Planted, record: dict[str, Any]) -> Judged:
    """Hold one examination, as kept by `examine`, against the truth. One that failed is wrong in everything.

    Where it is a second try, what the first said falsely counts all the same.
    """
    if "first_try" in record:
        first = judged(program, record["first_try"])
        second = judged(program, {name: value for name, value in record.items() if name != "first_try"})
        return replace(
            second,
            first_try=first.first or first.failure or "no finding",
            contradictions=(*first.contradictions, *second.contradictions),
            falsehoods=(*first.falsehoods, *second.falsehoods),
        )
    findings = record["findings"]
    first = findings[0] if findings else None
    ids = [finding["id"] for finding in findings]
    slight = {finding["id"] for finding in findings if finding["weight"] < SLIGHT}
    # The line is asked of the right finding, wherever it stands: what stands before it is counted by `right`.
    cause = next((finding for finding in findings if finding["id"] in program.expected), first)
    site = cause["site"] if cause is not None else None
    named = f"{PurePath(site['file']).name}:{site['line']}" if site is not None else ""
    faster = [each for each in record["fixes"] if each["status"] == "faster"]
    fix = max(faster, key=lambda each: each["low"])["id"] if faster else ""  # As the report ranks them.
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
        contradictions=tuple(contradictions(ids, reasons, slight)),
        falsehoods=tuple(each for each in ids if each in program.untrue),
        found=tuple(ids),
        not_judged="; ".join(f"{each}: {reasons[each]}" for each in program.expected if each in reasons),
        failure=record["failure"],
        seconds=record["wall"],
    )


def contradictions(
    ids: Sequence[str], not_judged: Sequence[str] | dict[str, str], slight: Collection[str] = ()
) -> Iterator[str]:
    """Pairs of findings that can't both be true, and findings that are said not to have been judged.

    `slight`: those of little weight, which may stand beside computing that takes nearly all of the time.
    """
    for position, one in enumerate(ids):
        for other in ids[position + 1 :]:
            beside = "compute-bound" in (one, other) and not slight.isdisjoint((one, other))
            if frozenset((one, other)) in CONTRADICTIONS and not beside:
                yield f"{one} and {other}"
        if one in not_judged:
            yield f"{one} and that it was not judged"


def examine(program: Planted, budget: str, scratch: Path, reports: Path | None = None) -> dict[str, Any]:
    """One examination of a program: what the report says that is judged here, or why there is none.

    `budget`: as for `doctor run`; "" for its default. `scratch`: a folder that exists, in which it is run. `reports`: a
    folder in which each report is kept whole, under the program's name.
    """
    with tempfile.TemporaryDirectory(prefix="planted-report-") as folder:
        output = reports / program.name if reports is not None else Path(folder)
        arguments = [word.replace(SCRATCH, str(scratch)) for word in program.arguments]
        seconds = program.late * _seconds(budget) if budget else None
        given = [] if seconds is None else ["--budget", f"{seconds:g}s"]
        words = ["run", "--quiet", "--no-confirm", "-o", str(output), *given, str(program.file), "--", *arguments]
        code, failure, wall = examination(words, scratch, DEFAULT_LIMIT if seconds is None else seconds + GRACE)
        report: dict[str, Any] = {}
        if not failure:
            report = msgspec.json.decode((output / "report.json").read_bytes())
    fixes = [
        {"id": each["id"], "status": each["status"], "low": (each["speedup"] or {}).get("low", 0.0)}
        for each in report.get("fixes", [])
    ]
    record = {
        "program": program.fingerprint(),
        "revision": revision(),
        "taken": time.strftime("%Y-%m-%d %H:%M", time.gmtime()),
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
    return without_places(record, [PROGRAMS, scratch, output.parent, Path(sys.prefix)])


def without_places(record: Any, folders: Sequence[Path]) -> Any:
    """A record whose paths begin in one of `folders`: what is published must not name places of one machine."""
    if isinstance(record, str):
        for folder in folders:
            record = record.replace(f"{folder}/", "")
        return record
    if isinstance(record, list):
        return [without_places(each, folders) for each in record]
    if isinstance(record, dict):
        return {name: without_places(value, folders) for name, value in record.items()}
    return record


def _seconds(budget: str) -> float:
    from bottleneck_doctor.wording.durations import parse_duration

    return parse_duration(budget)


# -- the whole ---------------------------------------------------------------------------------------------------------


def report_text(rows: Sequence[Judged], long: bool) -> str:
    """The table, what went wrong in detail, and the sums."""
    head = ["program", "expected", "first finding", "right", "line", "fix", "contra-", "false", "s"]
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
                str(len(row.falsehoods)),
                f"{row.seconds:.0f}",
            ]
        )
    told = []
    for row in rows:
        if long or not row.right:
            told.append(f"{row.program.name}: {row.sentence or row.failure or 'no finding'}")
        if not row.right and row.not_judged:
            told.append(f"{row.program.name}: not judged: {row.not_judged}")
        if row.first_try:
            told.append(f"{row.program.name}: a second try; the first said {row.first_try}")
        if row.line is False:
            marked = ", ".join(map(str, sorted(row.program.marked())))
            told.append(f"{row.program.name}: names {row.named or 'no line'} instead of line {marked}")
        told.extend(f"{row.program.name}: finds {each}" for each in row.contradictions)
        told.extend(f"{row.program.name}: finds {each}, which is not so" for each in row.falsehoods)
    return "\n".join([table(head, lines, left=6), "", *told, *([""] if told else []), sums(rows)])


def sums(rows: Sequence[Judged]) -> str:
    right, placed = sum(row.right for row in rows), [row for row in rows if row.line is not None]
    fixed = [row for row in rows if row.fix_right is not None]
    return (
        f"right finding first in {right} of {len(rows)}; right line in {sum(bool(row.line) for row in placed)} of "
        f"{len(placed)}; contradictions {sum(len(row.contradictions) for row in rows)}; "
        f"falsehoods {sum(len(row.falsehoods) for row in rows)}; "
        f"right fix first in {sum(bool(row.fix_right) for row in fixed)} of {len(fixed)}"
    )


def confusion_text(rows: Sequence[Judged]) -> str:
    """What was planted against what came first, and each rule from both sides: two tables in Markdown.

    A program counts under the first of its expected ids; a finding that says the same of its cause is right as well.
    What is wrong stands in bold.
    """
    planted = list(dict.fromkeys(row.program.expected[0] for row in rows))
    firsts = [row.first or ("failed" if row.failure else "nothing") for row in rows]
    ids = planted + sorted(set(firsts) - set(planted))
    shown = [each for each in ids if each in firsts]
    lines = [
        "| planted | programs | " + " | ".join(str(ids.index(each) + 1) for each in shown) + " |",
        "|---|--:|" + "--:|" * len(shown),
    ]
    for number, cause in enumerate(ids, 1):
        mine = [(row, first) for row, first in zip(rows, firsts, strict=True) if row.program.expected[0] == cause]
        cells = []
        for each in shown:
            right = sum(first == each and row.right for row, first in mine)
            wrong = sum(first == each and not row.right for row, first in mine)
            cells.append(" ".join([*([str(right)] if right else []), *([f"**{wrong}**"] if wrong else [])]))
        lines.append(f"| {number} {cause} | {len(mine) or ''} | " + " | ".join(cells) + " |")
    lines += [
        "",
        "Columns: the first finding, by the number of its row; bold where it is wrong.",
        "",
        "| finding | true of | found there | missed | not true of | found nevertheless |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    lines += [
        f"| {each.id} | {each.so or ''} | {each.found or ''} | {_bold(each.missed)} | {each.not_so or ''} "
        f"| {_bold(each.false)} |"
        for each in sides(rows)
    ]
    false = [f"{row.program.name}: {', '.join(row.falsehoods)}" for row in rows if row.falsehoods]
    lines += ["", f"Falsehoods: {'; '.join(false)}." if false else "Falsehoods: none."]
    return "\n".join(lines)


def _bold(count: int) -> str:
    return f"**{count}**" if count else ""


@dataclass(frozen=True)
class Sides:
    """A finding over all programs.

    `so`: in how many it is right; of these it was found in `found`, and neither it nor another that says the same in
    `missed`. `not_so`: of how many it is false; of these it was found in `false`.
    """

    id: str
    so: int
    found: int
    missed: int
    not_so: int
    false: int


def sides(rows: Sequence[Judged]) -> list[Sides]:
    """Every finding of which the truth about these programs says something, in alphabetical order."""
    made = []
    for each in sorted({one for row in rows for one in (*row.program.expected, *row.program.untrue)}):
        so = [row for row in rows if each in row.program.expected]
        not_so = [row for row in rows if each in row.program.untrue]
        made.append(
            Sides(
                id=each,
                so=len(so),
                found=sum(each in row.found for row in so),
                missed=sum(not set(row.program.expected) & set(row.found) for row in so),
                not_so=len(not_so),
                false=sum(each in row.found for row in not_so),
            )
        )
    return made


def missed(rows: Sequence[Judged]) -> list[str]:
    """Targets that these rows miss."""
    said = []
    if sum(row.right for row in rows) < TARGET * len(rows):
        said.append(f"the right finding first in {TARGET:.0%}")
    if any(row.line is False for row in rows):
        said.append("every line right")
    if any(row.contradictions for row in rows):
        said.append("no contradiction")
    if any(row.falsehoods for row in rows):
        said.append("no falsehood")
    return said


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these programs")
    parser.add_argument("--one-each", action="store_true", help="one program for each cause, the first of its kind")
    parser.add_argument("--budget", default="", help="of an examination, as for `doctor run`; its default without")
    parser.add_argument(
        "--jobs", type=int, default=1, metavar="N", help="so many examinations beside one another: a busy machine"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep everything here; taken up again if it exists")
    parser.add_argument("--again", action="store_true", help="examine anew what the file holds already")
    parser.add_argument(
        "--second-try", default="", metavar="BUDGET", help="examine what was wrong once more, for so long, and say so"
    )
    parser.add_argument("--reports", type=Path, metavar="DIR", help="keep the whole reports here, by program")
    parser.add_argument("--show", action="store_true", help="examine nothing, print what the file holds")
    parser.add_argument("--list", action="store_true", help="name the programs and the truth about them")
    options = parser.parse_args()
    if options.jobs < 1:
        parser.error("--jobs is a number from 1 on")
    known = {program.name: program for program in SUITE}
    unknown = set(options.only or ()) - set(known)
    if unknown:
        parser.error(f"programs are {', '.join(known)}")
    wanted = [known[name] for name in options.only or known]
    if options.one_each:
        wanted = one_each(wanted)
    if options.list:
        head = ["program", "finding", "line", "fix", "never"]
        print(table(head, [_truth(program) for program in wanted], left=5))
        return 0
    if options.show and not (options.json and options.json.exists()):
        parser.error("--show needs a --json file that exists")

    fresh: dict[str, Any] = {"format": FORMAT, "budget": options.budget, "machines": [], "programs": {}}
    document = taken_up(options.json, fresh, [] if options.show else ["budget"])
    interrupted = False
    if not options.show:
        document["machines"].append(machine())
        try:
            _run(wanted, document["programs"], options, lambda: save(options.json, document))
            if options.second_try:
                longer = argparse.Namespace(**{**vars(options), "budget": options.second_try})
                _try_again(wanted, document["programs"], longer, lambda: save(options.json, document))
        except KeyboardInterrupt:
            interrupted = True

    rows = [judged(each, document["programs"][each.name]) for each in wanted if each.name in document["programs"]]
    print(f"Planted bottlenecks: what the doctor names as the cause, budget {document['budget'] or 'the default'} each")
    print(beside_text([document["programs"][row.program.name] for row in rows]) + "\n")
    for seen in document["machines"]:
        print(f"on {machine_line(seen)}")
    print()
    print(report_text(rows, long=True) if rows else "nothing was examined")
    if rows:
        print("\n" + confusion_text(rows))
    if interrupted:
        print("\ninterrupted: the same command with --json goes on")
        return 130
    failing = missed(rows)
    for each in failing:
        print(f"target missed: {each}")
    return 1 if failing or not rows else 0


def one_each(programs: Sequence[Planted]) -> list[Planted]:
    """The first program of each cause, in the order of the suite."""
    first: dict[str, Planted] = {}
    for program in programs:
        first.setdefault(program.expected[0], program)
    return list(first.values())


def _truth(program: Planted) -> list[str]:
    lines = ", ".join(map(str, sorted(program.marked()))) if program.place else "-"
    fix = "any" if program.fix is None else " / ".join(program.fix) or "none"
    return [program.name, " / ".join(program.expected), lines, fix, ", ".join(sorted(program.never)) or "-"]


def beside_text(records: Sequence[dict[str, Any]]) -> str:
    """How many of these examinations ran beside others, which makes a busy machine of any."""
    counts = Counter(record.get("jobs", 1) for record in records)
    told = [
        f"{count} {'alone' if jobs == 1 else f'with {jobs} beside one another'}"
        for jobs, count in sorted(counts.items())
    ]
    revisions = Counter(record.get("revision", "unknown") for record in records)
    at = ", ".join(f"{count} at {name}" for name, count in revisions.items())
    return f"examined: {', '.join(told) or 'none'}; revisions: {at or 'none'}"


def _try_again(
    programs: Sequence[Planted], records: dict[str, Any], options: argparse.Namespace, keep: Callable[[], None]
) -> None:
    """Examine those that were wrong once more, where the records don't hold a second try."""
    first = {each.name: records[each.name] for each in programs if not judged(each, records[each.name]).good}
    wrong = [each for each in programs if each.name in first and "first_try" not in first[each.name]]
    for program in wrong:
        del records[program.name]
        try:
            _run([program], records, options, lambda: None)
            records[program.name]["first_try"] = first[program.name]
        finally:
            records.setdefault(program.name, first[program.name])
            keep()


def _run(
    programs: Sequence[Planted], records: dict[str, Any], options: argparse.Namespace, keep: Callable[[], None]
) -> None:
    """Examine every program that has no record yet, or one of another text, keeping each as it comes.

    Interrupted, it ends the examinations under way and keeps none of them.
    """
    if options.reports is not None:
        options.reports = options.reports.resolve()
        options.reports.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix="planted-"))
    missing = [
        program
        for program in programs
        if options.again or records.get(program.name, {}).get("program") != program.fingerprint()
    ]

    def one(number: int, program: Planted) -> dict[str, Any]:
        say(f"{number}/{len(missing)} {program.name}")
        own = scratch / program.name
        own.mkdir()
        try:
            return {**examine(program, options.budget, own, options.reports), "jobs": options.jobs}
        finally:
            shutil.rmtree(own, ignore_errors=True)

    others = set(psutil.Process().children())
    running: dict[Future[dict[str, Any]], Planted] = {}
    pool = ThreadPoolExecutor(options.jobs)
    try:
        running |= {pool.submit(one, number, program): program for number, program in enumerate(missing, 1)}
        for done in as_completed(running):
            program = running[done]
            records[program.name] = done.result()
            keep()
            row = judged(program, records[program.name])
            told = "right" if row.right else f"WRONG, expected {' / '.join(program.expected)}"
            false = f", FALSE: {', '.join(row.falsehoods)}" if row.falsehoods else ""
            say(f"{program.name}: {row.first or row.failure or 'no finding'}: {told}{false}, {row.seconds:.0f} s")
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        # More than once: one that was just about to be started isn't there yet.
        while any(future.running() for future in running):
            for child in set(psutil.Process().children()) - others:
                with contextlib.suppress(psutil.Error):
                    child.terminate()  # An examination ends what it started.
            wait(running, timeout=0.5)
        raise
    finally:
        pool.shutdown()
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
