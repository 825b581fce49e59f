"""How often an examination ends with the right answer, how soon, and beside which other programs.

    python benchmarks/decisive.py --json benchmarks/decisive.json
    python benchmarks/decisive.py --json benchmarks/decisive.json --table

Each program has a best that is known by editing, or nothing that helps. `doctor run` examines it with its default
options on a quiet machine and beside each kind of other program. The answer is *right* if a fix that makes that best is
claimed, alone or among others, or if it says that nothing helps, or is likely to, where nothing does; *other* if only
other fixes are claimed, which has to be checked by editing; *wrong* if anything is claimed where nothing helps; and
else *open*.

With `--json` every examination is kept as soon as it is done: run the same command again and it goes on. Rows that are
short of the wanted number of examinations say so.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
from _common import concluded, examination, machine, revision, save, say, table, taken_up

FORMAT = 1
HERE = Path(__file__).resolve().parent
QUIET = "quiet"
WANTED = {QUIET: 3, "core": 2, "bursts": 2, "memory": 2}
"""Examinations of each program, by what runs beside it."""
LIMIT = 1200.0
"""Seconds after which an examination has failed."""
ANSWERS = ("right", "other", "wrong", "open", "failed")


@dataclass(frozen=True, kw_only=True)
class Program:
    """`best`: fixes of which each makes, alone or with others, what is best by editing; () where nothing helps.
    `small`: fixes that bring a little there all the same, by editing on two cores: to claim them is right, too.
    `scratch`: the option that names a folder for its files."""

    file: str
    best: tuple[str, ...] = ()
    small: tuple[str, ...] = ()
    beside: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """`best` beside another program of a kind, where it is another one by editing and running both beside it."""
    scratch: str = ""

    @property
    def name(self) -> str:
        return Path(self.file).stem


PROGRAMS = (
    Program(file="planted/decode_pictures.py", best=("workers", "cached-samples"), scratch="--data"),
    Program(file="planted/features_in_fetch.py", best=("workers", "intra-op-threads", "cached-samples")),
    Program(file="workloads/large_tensors.py", best=("allocator",)),
    # Beside a busy core, two threads wait for one another: one is 106 and 8 times as fast by editing.
    Program(file="workloads/many_tensors.py", best=("fused-optimizer",), beside={"core": ("threads",)}),
    Program(file="workloads/slow_steps.py", best=("workers",)),
    Program(file="planted/short_epochs.py", best=("persistent-workers", "no-workers", "cached-samples")),
    Program(file="workloads/too_many_threads.py", best=("threads",)),
    Program(file="workloads/spawned_worker.py", best=("workers",)),
    # There, two workers leave nothing for the training: 0.91 and 0.90 times as fast.
    Program(file="workloads/parsed_lines.py", best=("workers",), beside={"core": (), "memory": ()}),
    Program(file="workloads/two_bottlenecks.py", best=("workers", "cleanup-calls")),
    Program(file="workloads/residual.py", best=("channels-last",)),
    # One thread is ten times as fast as two that wait for one another, by editing (10 pairs).
    Program(file="planted/python_metrics.py", small=("fused-optimizer",), beside={"core": ("threads",)}),
    Program(file="planted/logging_between_steps.py", small=("threads",)),
    Program(file="planted/item_loop.py", beside={"core": ("threads",)}),
)


@contextlib.contextmanager
def beside(kind: str) -> Iterator[None]:
    """Another program of this kind, for as long as the context lasts."""
    if kind == QUIET:
        yield
        return
    words = [sys.executable, str(HERE / "_neighbour.py"), kind]
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def examine(program: Program, kind: str) -> dict[str, Any]:
    """One examination: what was claimed, and how long it took."""
    with tempfile.TemporaryDirectory(prefix="decisive-") as folder, beside(kind):
        output = Path(folder) / "out"
        own = [program.scratch, str(Path(folder) / "data")] if program.scratch else []
        words = ["run", "--quiet", "--no-confirm", "-o", str(output), str(HERE / program.file), "--", *own]
        _, failure, wall = examination(words, Path(folder), LIMIT)
        report = {} if failure else msgspec.json.decode((output / "report.json").read_bytes())
    verdict, together = report.get("verdict") or {}, report.get("combination") or {}
    claimed = [verdict["fix"]] if verdict.get("fix") else []
    if verdict.get("together"):
        claimed += [each["fix"] for each in together.get("ladder", [])]
    return {
        "revision": revision(),
        "taken": time.strftime("%Y-%m-%d %H:%M", time.gmtime()),
        "wall": wall,
        "known": (report.get("method") or {}).get("claimed_after_seconds"),
        "sure": (report.get("method") or {}).get("sure_after_seconds"),
        "failure": failure.replace(folder, "."),
        "claimed": sorted(set(claimed)),
        "claims": bool(claimed) or bool(verdict.get("together")),
        "undecided": [each["id"] for each in report.get("fixes", []) if each["status"] == "cannot_tell"],
        "sentence": verdict.get("sentence", ""),
    }


NOTHING = (
    "Nothing that was tried is likely to help",
    "Nothing we tried is faster",
    "Nothing that was measured is faster",
)
"""What a verdict says where nothing helps."""


def answer(program: Program, kind: str, record: dict[str, Any]) -> str:
    """One of `ANSWERS`."""
    best = program.beside.get(kind, program.best)
    if record["failure"]:
        return "failed"
    if record["claims"]:
        claimed = set(record["claimed"])
        if "MALLOC_" in record["sentence"]:
            claimed.add("allocator")  # The variables may belong to a promise of another fix.
        if not best:
            return "right" if claimed <= set(program.small) else "wrong"
        return "right" if set(best) & claimed else "other"
    return "right" if not best and any(said in record["sentence"] for said in NOTHING) else "open"


def report_text(records: dict[str, list[dict[str, Any]]], programs: Sequence[Program]) -> str:
    lines = []
    for program in programs:
        for kind, wanted in WANTED.items():
            taken = records.get(f"{program.name} {kind}", [])
            if not taken:
                continue
            answers = [answer(program, kind, each) for each in taken]
            short = "" if len(taken) >= wanted else f" of {wanted}"
            claimed = sorted({fix for each in taken for fix in each["claimed"]})
            lines.append(
                [
                    program.name,
                    kind,
                    f"{len(taken)}{short}",
                    *(str(answers.count(each) or "") for each in ANSWERS),
                    f"{median(each['wall'] for each in taken):.0f}",
                    median_seconds(taken, "known"),
                    median_seconds(taken, "sure"),
                    ", ".join(claimed) or "-",
                ]
            )
    head = ["program", "beside", "examined", *ANSWERS, "median s", "known after", "sure after", "claimed"]
    return table(head, lines, left=2) + "\n\n" + "\n".join(sums(records, programs))


def median_seconds(taken: Sequence[dict[str, Any]], what: str) -> str:
    """Median seconds after which a large gain was known, or nothing more could change what was claimed, of the
    examinations that said so."""
    known = [each[what] for each in taken if each.get(what) is not None]
    return f"{median(known):.0f}" if known else "-"


def sums(records: dict[str, list[dict[str, Any]]], programs: Sequence[Program]) -> Iterator[str]:
    """A line for each kind of neighbour and each kind of program."""
    for helps, what in ((True, "something helps"), (False, "nothing helps")):
        for kind in WANTED:
            answers = [
                answer(program, kind, each)
                for program in programs
                if bool(program.beside.get(kind, program.best)) == helps
                for each in records.get(f"{program.name} {kind}", [])
            ]
            if answers:
                told = ", ".join(f"{each} {answers.count(each)}" for each in ANSWERS if each in answers)
                yield f"{what}, {kind}: {told}, of {len(answers)}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these programs")
    parser.add_argument("--beside", nargs="+", choices=list(WANTED), help="only beside these")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep everything here; taken up again if it exists")
    parser.add_argument("--table", action="store_true", help="measure nothing, print what the file holds")
    options = parser.parse_args()
    known = {program.name: program for program in PROGRAMS}
    if set(options.only or ()) - set(known):
        parser.error(f"programs are {', '.join(known)}")
    wanted = [known[name] for name in options.only or known]

    document = taken_up(options.json, {"format": FORMAT, "machines": [], "examinations": {}})
    records = document["examinations"]
    interrupted = False
    if not options.table:
        document["machines"].append(machine())
        try:
            # Round by round, so that whatever is there of it holds every program.
            for number in range(max(WANTED.values())):
                for kind in options.beside or WANTED:
                    for program in wanted:
                        mine = records.setdefault(f"{program.name} {kind}", [])
                        if number < WANTED[kind] and len(mine) <= number:
                            say(f"{program.name}, {kind}, {number + 1} of {WANTED[kind]}")
                            mine.append(examine(program, kind))
                            save(options.json, document)
        except KeyboardInterrupt:
            interrupted = True
    title = "Answers of examinations with default options"
    return concluded(title, document["machines"], report_text(records, wanted), (), interrupted=interrupted)


if __name__ == "__main__":
    sys.exit(main())
