"""What doctor promises on a GPU, beside what the same edits made by hand bring there.

    python benchmarks/on_gpu.py --json benchmarks/on_gpu.json --reports reports
    python benchmarks/on_gpu.py --json benchmarks/on_gpu.json --show

Each program of `gpu/` is examined as written. Then it is started as written and with each of its edits, which its
option `--edit` makes by hand; all of them once a round, in random order. The program takes its own time, and the first
epochs, which compile and warm up, are not counted. The table says of each edit what the fix of its name promised, and
what the edit brought.

With `--json` everything is kept as soon as it is done: run the same command again and it goes on where it was
interrupted. Exit code 1 where there is no CUDA device, or an examination left no report.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
from _common import (
    ROOT,
    Ratio,
    Start,
    examination,
    machine,
    machine_line,
    save,
    say,
    shuffled,
    start,
    table,
    taken_up,
    unpaired,
)

FORMAT = 1
PROGRAMS = Path(__file__).resolve().parent / "gpu"
AS_WRITTEN = "as written"
EPOCHS = 5
WARM = 2
"""Epochs of a start that are not counted: the first compiles, and the allocator and cuDNN settle in those after it."""
LIMIT = 900.0


@dataclass(frozen=True)
class Program:
    """Words of a start, and the edits that it can make; an edit of several joins them by a plus."""

    file: Path
    words: tuple[str, ...]
    edits: tuple[str, ...]


SUITE = {
    "pictures": Program(
        PROGRAMS / "pictures.py",
        (),
        ("pinned-memory", "amp-bf16", "channels-last", "cudnn-benchmark", "compile", "fused-optimizer"),
    ),
    "words": Program(
        PROGRAMS / "words.py",
        (),
        ("amp-bf16", "fused-attention", "float32-precision", "compile", "fused-optimizer"),
    ),
    "launches": Program(PROGRAMS / "launches.py", (), ("compile", "fused-optimizer")),
    "pets": Program(ROOT / "examples" / "pets" / "train.py", ("config.json",), ()),
}


def examine(name: str, options: argparse.Namespace) -> dict[str, Any]:
    program = SUITE[name]
    with tempfile.TemporaryDirectory(prefix="on-gpu-") as scratch:
        output = options.reports / name if options.reports else Path(scratch)
        words = ["run", "-q", "-o", str(output), *(["--budget", options.budget] if options.budget else [])]
        code, failure, seconds = examination(
            [*words, program.file.name, "--", *program.words], program.file.parent, LIMIT
        )
        report = output / "report.json"
        found = msgspec.json.decode(report.read_bytes()) if report.exists() else None
        return {"exit": code, "failure": failure, "seconds": seconds, "report": found}


def run_rounds(name: str, record: dict[str, Any], options: argparse.Namespace, keep: Any) -> None:
    """Start the program in each of its forms until each has its starts. A start's times are its counted epochs."""
    program = SUITE[name]
    forms = [AS_WRITTEN, *program.edits, *options.more] if program.edits else []
    starts = record.setdefault("starts", {})
    for number in range(options.starts):
        for form in shuffled(forms, options.seed + number):
            kept = starts.setdefault(form, [])
            if len(kept) > number:
                continue
            edits = [] if form == AS_WRITTEN else [word for each in form.split("+") for word in ("--edit", each)]
            words = [program.file.name, *program.words, "--epochs", str(EPOCHS), *edits]
            done = start(words, program.file.parent, EPOCHS)
            kept.append(done.to_json())
            keep()
            say(f"{name}: {form}: {done.failure or f'{epoch(done):.4f} s an epoch'}")


def epoch(done: Start) -> float:
    """Seconds of an epoch: the median of the counted ones."""
    return median(done.epochs[WARM:])


def times(record: dict[str, Any], form: str) -> list[float]:
    starts = (Start.from_json(each) for each in record.get("starts", {}).get(form, []))
    return [epoch(each) for each in starts if not each.failure]


def rows(name: str, record: dict[str, Any]) -> Iterator[list[str]]:
    """A line for each edit made by hand, and for each fix that got a speedup without one."""
    report = record["examination"]["report"]
    fixes = {fix["id"]: fix for fix in report["fixes"]} if report else {}
    written = times(record, AS_WRITTEN)
    edits = [each for each in record.get("starts", {}) if each != AS_WRITTEN]
    promised = [id for id, fix in fixes.items() if fix.get("speedup") and id not in edits]
    for form in (*edits, *promised):
        fix = fixes.get(form)
        truth = unpaired(written, times(record, form))
        yield [
            name,
            form,
            _speedup(fix),
            fix["status"] if fix else "-",
            truth.text() if truth else "-",
        ]


def _speedup(fix: dict[str, Any] | None) -> str:
    if not fix or not fix.get("speedup"):
        return "-"
    value = fix["speedup"]
    return f"{Ratio(value['estimate'], value['low'], value['high']).text()} [{value['sessions']} proc.]"


def show(document: dict[str, Any]) -> None:
    for seen in document["machines"]:
        print(machine_line(seen))
    lines = [line for name, record in document["programs"].items() for line in rows(name, record)]
    print(table(["program", "fix", "promised", "status", "edited by hand"], lines, left=2))
    for name, record in document["programs"].items():
        found = record["examination"]
        report = found["report"]
        said = found["failure"] or (report["verdict"]["sentence"] if report and report.get("verdict") else "no verdict")
        print(f"{name}: {found['seconds']:.0f} s: {said}")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--only", nargs="+", choices=SUITE, default=list(SUITE), metavar="NAME")
    parser.add_argument("--budget", help="of an examination, as for `doctor run`")
    parser.add_argument("--starts", type=int, default=4, help="of each form; 0 examines only")
    parser.add_argument("--more", nargs="*", default=[], metavar="EDIT+EDIT", help="also start these edits together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--reports", type=Path, metavar="DIR", help="keep the whole reports there")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep everything here; taken up again if it exists")
    parser.add_argument("--show", action="store_true", help="print what --json holds and measure nothing")
    options = parser.parse_args(arguments)
    document = taken_up(options.json, {"format": FORMAT, "machines": [], "programs": {}}, [])
    if options.show:
        show(document)
        return 0
    here = machine()
    if not here["devices"]:
        print("there is no CUDA device here", file=sys.stderr)
        return 1
    document["machines"].append(here)

    def keep() -> None:
        save(options.json, document)

    for name in options.only:
        record = document["programs"].setdefault(name, {})
        if not record.get("examination", {}).get("report"):
            say(f"{name}: examined")
            record["examination"] = examine(name, options)
            keep()
        run_rounds(name, record, options, keep)
    show(document)
    return int(any(not record["examination"]["report"] for record in document["programs"].values()))


if __name__ == "__main__":
    sys.exit(main())
