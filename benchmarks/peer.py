"""`doctor try` beside the nearest peer's `compare`: the same edits, the same seconds, the same machine, in turn.

    python benchmarks/peer.py --json benchmarks/peer.json
    python benchmarks/peer.py --json benchmarks/peer.json --table

The peer is train-doctor of a pinned version, from the package index, in an environment of its own. Three edits are
measured: one that changes nothing, and the cures of two root causes (`causes.py`), of which one brings little and one
more. In each repetition, the peer goes first or second by chance, with its default options; `doctor try` gets as many
seconds as the peer took for this edit so far (the median). The truth is that of `causes.py`: both programs started in
turn, without either tool. The table holds, for each edit and tool, how wide intervals are, how many hold the truth, and
how often an edit is called faster or slower.

With `--json` every repetition is kept as soon as it is done: run the same command again and it goes on.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from _causes_truth import CAUSES, Cause
from _common import Ratio, examination, machine, machine_line, revision, save, say, shuffled, table, taken_up
from causes import step_seconds, truth

FORMAT = 1
PEER = "train-doctor==0.2.0"
REPETITIONS = 20
STARTS = 8
"""Starts of each side for the truth."""
LIMIT = 900.0
"""Seconds after which a measurement has failed."""
FIRST_SECONDS = 90.0
"""What `doctor try` gets before the peer has shown how long it takes."""
TOOLS = ("doctor try", "peer")


@dataclass(frozen=True)
class Edit:
    """What is measured. `changes`: whether the edited program is another one than the program as written."""

    name: str
    cause: Cause
    changes: bool = True

    @property
    def written(self) -> str:
        return self.cause.file.read_text(encoding="utf-8")

    @property
    def edited(self) -> str:
        return self.cause.cured() if self.changes else f"{self.written}\n# The same program.\n"

    def fingerprint(self) -> str:
        return self.cause.fingerprint()


def _cause(name: str) -> Cause:
    return next(each for each in CAUSES if each.name == name)


EDITS = (
    Edit("nothing changed", _cause("an optimizer's group for each tensor"), changes=False),
    Edit("gradients set to None", _cause("gradients filled with zeros")),
    Edit("one group for all tensors", _cause("an optimizer's group for each tensor")),
)
"""Programs with short steps: the peer runs a program for 50 steps, twelve times."""


# -- one measurement ---------------------------------------------------------------------------------------------------


def environment(folder: Path) -> Path:
    """The interpreter of an environment that holds the peer, made in `folder` unless it is there."""
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", PEER], check=True)
    return python


def by_peer(edit: Edit, python: Path) -> dict[str, Any]:
    with _both(edit) as (folder, written, edited):
        words = [str(python), "-m", "train_doctor", "compare", "--quiet", "--json", "--out", str(folder / "out")]
        words += ["--baseline", f"{sys.executable} {written}", "--candidate", f"{sys.executable} {edited}"]
        begun = time.monotonic()
        try:
            done = subprocess.run(
                words, cwd=written.parent, capture_output=True, text=True, timeout=LIMIT, stdin=subprocess.DEVNULL
            )
        except subprocess.TimeoutExpired:
            return _record(LIMIT, failure=f"not done after {LIMIT:.0f} s")
        seconds = time.monotonic() - begun
        try:
            told = json.loads(done.stdout)
        except ValueError:
            return _record(seconds, failure=(done.stderr or done.stdout).strip()[-300:])
    ratio = told.get("ratio")
    if not ratio:
        return _record(seconds, failure=str(told.get("reason"))[:300])
    verdict = {"faster": "faster", "slower": "slower"}.get(str(told.get("verdict")), "")
    return _record(seconds, Ratio(ratio["point"], ratio["low"], ratio["high"]), verdict)


def by_doctor(edit: Edit, budget: float) -> dict[str, Any]:
    with _both(edit) as (folder, written, edited):
        output = folder / "try.json"
        words = ["try", "--quiet", "--edit", str(edited), "--budget", f"{budget:.0f}s", "--json", str(output)]
        code, failure, seconds = examination([*words, str(written)], written.parent, LIMIT)
        if not output.exists():
            return _record(seconds, failure=failure or f"exit code {code}")
        told = json.loads(output.read_text(encoding="utf-8"))
    speedup = (told.get("edit") or {}).get("speedup")
    step = next((each for each in told["metrics"] if each["id"] == "step_time"), None)
    if speedup is None or step is None:
        return _record(seconds, failure=told["sentence"])
    verdict = {"improvement": "faster", "regression": "slower"}.get(step["verdict"], "")
    return _record(seconds, Ratio(speedup["estimate"], speedup["low"], speedup["high"]), verdict)


@contextlib.contextmanager
def _both(edit: Edit) -> Iterator[tuple[Path, Path, Path]]:
    """A scratch folder, and in a copy of the program's folder the program as written and, beside it, edited."""
    with tempfile.TemporaryDirectory(prefix="peer-") as scratch:
        program, there = edit.cause.file, Path(scratch) / "there"
        shutil.copytree(program.parent, there, ignore=shutil.ignore_patterns("__pycache__"))
        edited = there / f"edited_{program.name}"
        edited.write_text(edit.edited, encoding="utf-8")
        yield Path(scratch), there / program.name, edited


def _record(seconds: float, ratio: Ratio | None = None, verdict: str = "", failure: str = "") -> dict[str, Any]:
    interval = None if ratio is None else [ratio.estimate, ratio.low, ratio.high]
    return {"seconds": seconds, "interval": interval, "verdict": verdict, "failure": failure}


# -- what it says ------------------------------------------------------------------------------------------------------


def true_ratio(edit: Edit, record: dict[str, Any]) -> Ratio | None:
    return truth(edit.cause, record) if edit.changes else Ratio(1.0, 1.0, 1.0)


def holds(interval: Sequence[float], true: Ratio) -> bool:
    """Whether an interval holds the truth, as far as that is known: an interval of its own is around it."""
    _, low, high = interval
    error = true.half_width
    return low / math.exp(error) <= true.estimate <= high * math.exp(error)


def lines(records: dict[str, Any]) -> Iterator[list[str]]:
    for edit in EDITS:
        record = records.get(edit.name)
        if record is None:
            continue
        true = true_ratio(edit, record)
        for tool in TOOLS:
            taken = record["tools"][tool]
            good = [each for each in taken if each["interval"]]
            widths = [math.log(each["interval"][2] / each["interval"][1]) / 2 for each in good]
            inside = [holds(each["interval"], true) for each in good] if true is not None else []
            yield [
                edit.name,
                true.text() if true is not None else "-",
                tool,
                f"{len(taken)}" if len(taken) >= REPETITIONS else f"{len(taken)} of {REPETITIONS}",
                f"{len(taken) - len(good)}",
                f"±{median(widths):.1%}" if widths else "-",
                f"{sum(inside)} of {len(inside)}" if inside else "-",
                f"{sum(each['verdict'] == 'faster' for each in taken)}",
                f"{sum(each['verdict'] == 'slower' for each in taken)}",
                f"{median(each['seconds'] for each in taken):.0f}" if taken else "-",
            ]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--repetitions", type=int, default=REPETITIONS)
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep everything here; taken up again if it exists")
    parser.add_argument("--environment", type=Path, metavar="DIR", help="keep the peer's environment here")
    parser.add_argument("--table", action="store_true", help="measure nothing, print what the file holds")
    options = parser.parse_args()
    document = taken_up(options.json, {"format": FORMAT, "peer": PEER, "machines": [], "edits": {}}, ["peer"])
    interrupted = False
    if not options.table:
        document["machines"].append(machine())
        try:
            with tempfile.TemporaryDirectory(prefix="peer-environment-") as scratch:
                python = environment((options.environment or Path(scratch) / "peer").resolve())
                measure(document, options, python)
        except KeyboardInterrupt:
            interrupted = True
    print(f"`doctor try` beside `{PEER}`: an edit's worth, at equal seconds")
    for seen in document["machines"][-1:]:
        print(f"on {machine_line(seen)}")
    head = ["edit", "truth", "tool", "measured", "failed", "half width", "hold it", "faster", "slower", "median s"]
    print("\n" + table(head, list(lines(document["edits"])), left=3))
    if interrupted:
        print("\ninterrupted: the same command with --json goes on")
        return 130
    return 0


def measure(document: dict[str, Any], options: argparse.Namespace, python: Path) -> None:
    """What is missing: the truth of each edit, then repetition by repetition both tools on every edit."""
    records = document["edits"]
    for edit in EDITS:
        if records.get(edit.name, {}).get("program") != edit.fingerprint():
            fresh = {"written": [], "cured": []}
            records[edit.name] = {"program": edit.fingerprint(), "starts": fresh, "tools": {tool: [] for tool in TOOLS}}
    for number in range(STARTS):
        for edit in EDITS:
            for side in shuffled(["written", "cured"], number) if edit.changes else ():
                starts = records[edit.name]["starts"][side]
                if len(starts) <= number:
                    starts.append(step_seconds(edit.cause, cured=side == "cured")[0])
                    save(options.json, document)
    for number in range(options.repetitions):
        for edit in EDITS:
            tools = records[edit.name]["tools"]
            for tool in shuffled(TOOLS, number):
                if len(tools[tool]) > number:
                    continue
                took = [each["seconds"] for each in tools["peer"] if each["interval"]]
                made = by_peer(edit, python) if tool == "peer" else by_doctor(edit, median(took or [FIRST_SECONDS]))
                tools[tool].append({**made, "revision": revision()})
                save(options.json, document)
                said = made["failure"] or Ratio(*made["interval"]).text()
                say(f"{number + 1} of {options.repetitions}, {edit.name}, {tool}: {said}, {made['seconds']:.0f} s")


if __name__ == "__main__":
    sys.exit(main())
