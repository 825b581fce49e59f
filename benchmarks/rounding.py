"""Whether losses tell which changes spoil a training: 20 networks that changed rounding leaves alone, and three others.

    python benchmarks/rounding.py --json benchmarks/rounding.json
    python benchmarks/rounding.py --json benchmarks/rounding.json --table

Each network of `workloads/nets.py` is looked at under a change: autocast to bfloat16, channels-last (where it has
images), or compilation. First the truth, without doctor: the network is trained with the change made by hand and
without it, from three seeds, and the means of its last losses are compared. Then `doctor try` measures the change by
hand and compares the losses of both programs, and `doctor run` tries the fix in windows and compares the losses of
these. Both have to leave 20 networks alone, and to find the three that a change spoils.

With `--json` a network is kept as soon as it is done: run the same command again and it goes on where it was
interrupted. Exit code 1 where a network is judged wrongly.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from _common import (
    WORKLOADS,
    designed_for,
    examination,
    machine,
    machine_line,
    revision,
    save,
    say,
    table,
    taken_up,
)

FORMAT = 1
SCRIPT = WORKLOADS / "nets.py"
SEEDS = (1, 2, 3)
STEPS = 640
"""Ten epochs: by then, all of these networks have learnt most of what they learn."""
LIMIT = 300.0
BUDGET = "45s"
PAIRS = 3
SPOILT = 1.5
"""A change spoils a network whose last losses are this many times as high with it, or no numbers."""
CHANGES = {"autocast": "amp-bf16", "channels-last": "channels-last", "compile": "compile"}
"""The option of the script, and the fix that is the same."""
LAST = re.compile(r"^step (\d+) loss (\S+)", re.MULTILINE)


@dataclass(frozen=True)
class Case:
    """A network under a change. `spoils`: it then learns nothing, as its author says."""

    net: str
    change: str
    spoils: bool

    @property
    def name(self) -> str:
        return f"{self.net} {self.change}"


@functools.cache
def cases() -> list[Case]:
    """All of them, autocast first."""
    # The script's own list; it is read by a process of its own, since it imports torch.
    code = "import json, nets; print(json.dumps([[k, n.spoilt, n.convolves] for k, n in nets.NETS.items()]))"
    done = subprocess.run([sys.executable, "-c", code], cwd=WORKLOADS, capture_output=True, text=True, check=True)
    nets: list[tuple[str, bool, bool]] = [tuple(each) for each in json.loads(done.stdout)]
    return [
        Case(name, change, spoilt and change == "autocast")
        for change in CHANGES
        for name, spoilt, convolves in nets
        if convolves or change != "channels-last"
    ]


# -- one network under one change --------------------------------------------------------------------------------------


def measure(case: Case) -> dict[str, Any]:
    """By hand, by `doctor try`, and by `doctor run`."""
    record: dict[str, Any] = {"revision": revision(), "taken": time.strftime("%Y-%m-%d %H:%M", time.gmtime())}
    written = [last_loss(case.net, seed) for seed in SEEDS]
    changed = [last_loss(case.net, seed, f"--{case.change}") for seed in SEEDS]
    record |= {"written": written, "changed": changed}
    with tempfile.TemporaryDirectory(prefix="rounding-") as scratch:
        record["try"] = tried(case, Path(scratch))
        record["run"] = examined(case, Path(scratch))
    return record


def last_loss(net: str, seed: int, *options: str) -> float | None:
    """The mean of the last 50 losses; None if they are no numbers."""
    words = [sys.executable, str(SCRIPT), net, "--seed", str(seed), "--steps", str(STEPS), *options]
    done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT, check=True)
    loss = float(LAST.findall(done.stdout)[-1][1])
    return loss if math.isfinite(loss) else None


def tried(case: Case, scratch: Path) -> dict[str, Any]:
    """What `doctor try` says of the losses."""
    output = scratch / "try.json"
    options = ["--pairs", str(PAIRS), "--json", str(output), "--args", f"{case.net} --{case.change}"]
    # Exit code 1 is an answer: the edit is slower, or it trains to another loss.
    code, failure, seconds = examination(["try", "--quiet", *options, str(SCRIPT), "--", case.net], scratch, LIMIT)
    if not output.exists():
        return {"failure": failure or f"exit code {code}", "seconds": seconds}
    losses = json.loads(output.read_bytes()).get("losses") or {"verdict": "unknown", "sentence": "No losses were told."}
    told = {name: losses.get(name) for name in ("verdict", "sentence", "steps", "difference")}
    return {"failure": "", "seconds": seconds, **told}


def examined(case: Case, scratch: Path) -> dict[str, Any]:
    """What `doctor run` says of the fix."""
    options = ["--quiet", "--no-explain", "--no-confirm", "--budget", BUDGET, "--only", CHANGES[case.change]]
    words = ["run", *options, "-o", str(scratch / "report"), str(SCRIPT), "--", case.net]
    _, failure, seconds = examination(words, scratch, LIMIT)
    if failure:
        return {"failure": failure, "seconds": seconds}
    report = json.loads((scratch / "report" / "report.json").read_bytes())
    fix = next(each for each in report["fixes"] if each["id"] == CHANGES[case.change])
    told = {name: fix[name] for name in ("status", "reason", "speedup")}
    return {"failure": "", "seconds": seconds, "verdict": report["verdict"]["sentence"], **told}


# -- what it says ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    case: Case
    record: dict[str, Any]

    @property
    def higher(self) -> float:
        """How many times as high the last losses are with the change made by hand; infinite if they are no numbers."""
        if None in self.record["changed"]:
            return math.inf
        return fmean(self.record["changed"]) / fmean(self.record["written"])

    @property
    def as_said(self) -> bool:
        """Whether the change does by hand what the network's author says."""
        return (self.higher > SPOILT) == self.case.spoils

    @property
    def of_pairs(self) -> str:
        """`right`, `wrong` or `open`: what `doctor try` says of the losses."""
        if self.record["try"]["failure"]:
            return "failed"
        verdict = self.record["try"]["verdict"]
        if verdict == "unknown":
            return "open"
        return "right" if (verdict in ("moved", "not_finite")) == self.case.spoils else "wrong"

    @property
    def of_windows(self) -> str:
        """The same of `doctor run`, which looks for spoilt trainings only where a fix may be promised."""
        told = self.record["run"]
        if told["failure"]:
            return "failed"
        struck = told["status"] == "failed" and "the loss was" in told["reason"]
        if self.case.spoils and not struck:
            return "wrong" if told["status"] == "faster" else "open"
        return "right" if struck == self.case.spoils else "wrong"


def rows(records: dict[str, Any]) -> list[Row]:
    return [Row(each, records[each.name]) for each in cases() if each.name in records]


def report(shown: Sequence[Row]) -> Iterator[str]:
    lines = []
    for row in shown:
        told, run = row.record["try"], row.record["run"]
        difference = told.get("difference")
        lines.append(
            [
                row.case.net,
                row.case.change,
                "spoils" if row.case.spoils else "",
                f"{row.higher:.3f}" + ("" if row.as_said else " (NOT as said)"),
                told.get("verdict") or "-",
                "-" if difference is None else f"{100 * difference:+.1f} %",
                row.of_pairs,
                run.get("status") or "-",
                row.of_windows,
                f"{told['seconds'] + run['seconds']:.0f}",
            ]
        )
    head = ["network", "change", "", "by hand", "losses of pairs", "differ by", "is", "fix in windows", "is", "s"]
    yield table(head, lines, left=3)
    yield ""
    for what, judged in (("pairs", [row.of_pairs for row in shown]), ("windows", [row.of_windows for row in shown])):
        alone = [each for each, row in zip(judged, shown, strict=True) if not row.case.spoils]
        spoilt = [each for each, row in zip(judged, shown, strict=True) if row.case.spoils]
        yield (
            f"by the losses of {what}: {spoilt.count('right')} of {len(spoilt)} that a change spoils are found "
            f"({spoilt.count('open')} open); of those that it leaves alone, said to be spoilt: "
            f"{designed_for(0.01, alone.count('wrong'), len(alone))}"
        )
    for row in shown:
        for told in (row.record["try"], row.record["run"]):
            if told["failure"]:
                yield f"{row.case.name}: {told['failure'][-300:]}"


def is_right(row: Row) -> bool:
    return row.as_said and {row.of_pairs, row.of_windows} <= {"right", "open"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="where results are kept")
    parser.add_argument("--table", action="store_true", help="measure nothing, only show what is kept")
    parser.add_argument("--change", choices=CHANGES, help="only this change")
    parser.add_argument("nets", nargs="*", help="names of networks; all by default")
    options = parser.parse_args()
    document = taken_up(options.json, {"format": FORMAT, "records": {}})
    records = document["records"]
    wanted = [
        each
        for each in cases()
        if (not options.nets or each.net in options.nets) and options.change in (None, each.change)
    ]
    if not options.table:
        document["machine"] = machine()
        for number, case in enumerate(wanted, 1):
            if case.name in records:
                continue
            records[case.name] = measure(case)
            save(options.json, document)
            row = Row(case, records[case.name])
            judged = f"pairs {row.of_pairs}, windows {row.of_windows}"
            say(f"{number}/{len(wanted)} {case.name}: {row.higher:.2f} by hand; {judged}")
    if "machine" in document:
        print(machine_line(document["machine"]))
    shown = rows(records)
    print("\n".join(report(shown)))
    return 0 if all(map(is_right, shown)) else 1


if __name__ == "__main__":
    sys.exit(main())
