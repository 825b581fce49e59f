"""How often the gate is wrong, what it catches, and how long it takes, beside gates that compare a run with a run.

    python benchmarks/gate.py --kinds data --json gate-data.json
    python benchmarks/gate.py --show gate-*.json

A git repository is made with a base and, for each planted slowdown, a commit on top of it; `doctor check` is run in it
as CI would. **Identical**: both revisions are alike, so every regression is a false alarm. **Planted**: a slowdown in
loading, computing or between steps, with a threshold of half its size; it counts as caught where the check says
regression, and as explained where its phase and its function are named. **Naive**: the same pair of revisions as whole
runs in sequence, five against five, and each of the five against one of the other side; an alarm where the mean epoch
is slower by the threshold.

With `--json` every check is kept as soon as it is done: the same command goes on where it was interrupted, on another
day as well, and each check says when and on which revision it was made. `--show` prints what several such files hold
together. `--short` is one planted check, which tests the benchmark and not the gate. Exit code 1 where there were
too many false alarms (more than one in a hundred, and more than one), or where a check of the short form failed.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

from _common import WORKLOADS, designed_for, examination, machine, machine_line, revision, save, say, start, table

from bottleneck_doctor.gate.decide import ERROR_RATE

FORMAT = 2
SCRIPT = "gated.py"
EPOCHS = 4
"""Of a run on its own; its first epoch is dropped."""
REPEATS = 5
"""Runs of each side in the larger naive gate; the smaller has one of each, the first and the first, and so on."""
STARTS = 3
"""By which it is found out how long a step takes."""
BATCHES = 100
"""Steps of an epoch."""
AGREE = ("data", "workers")
"""Kinds whose processes agree within 1 %."""
PROMISED = {
    ("agree", 0.03): 0.90,
    ("agree", 0.05): 0.98,
    ("agree", 0.10): 1.0,
    ("conv", 0.10): 0.95,
    ("conv", 0.30): 1.0,
}
"""The part of planted slowdowns of a size that is to be caught, for loops that agree and for the net."""
GRACE = 180.0
"""Seconds beyond its budget after which a check has failed."""
WHERE = {"data": ("data_wait", "prepare"), "compute": ("forward", "compute"), "between": ("between", "between")}
"""Of each planted slowdown, the phase and the function that it lies in."""
BUSY_SECONDS, IDLE_SECONDS = (2.0, 5.0), (10.0, 30.0)
"""The neighbour loads one core for so long, and then leaves it alone for so long."""


@dataclass(frozen=True)
class Case:
    """One kind of check, which is repeated. `size`: 0 for identical revisions; `where` is "" then. `budget`: where it
    is another than that of all."""

    kind: str
    where: str
    size: float
    threshold: float
    neighbour: bool = False
    budget: str = ""

    @property
    def name(self) -> str:
        what = f"{self.where} +{self.size:.0%}" if self.where else "identical"
        more = (", neighbour" if self.neighbour else "") + (f", in {self.budget}" if self.budget else "")
        return f"{self.kind}, {what}, limit {self.threshold:.1%}{more}"


def cases(kinds: Sequence[str]) -> list[Case]:
    """All of them: identical pairs with and without a neighbour, and slowdowns at half their size."""
    made = [Case(kind, "", 0.0, 0.02, neighbour) for kind in kinds for neighbour in (False, True)]
    made += [Case(kind, "", 0.0, 0.05) for kind in kinds]
    for kind in kinds:
        for size in (0.10, 0.30) if kind == "conv" else (0.03, 0.05, 0.10, 0.30):
            # What two workers make ahead hides what the main process does meanwhile.
            places = ("data",) if kind == "workers" else tuple(WHERE)
            made += [Case(kind, where, size, size / 2) for where in places]
    if "conv" in kinds:
        # Half of 10 % lies within what its processes differ by: whether more time tells.
        made += [Case("conv", where, 0.10, 0.05, budget="10m") for where in WHERE]
    return made


# -- the repository --------------------------------------------------------------------------------------


def plant(where: str, seconds: float) -> str:
    """The text of plant.py: the function for `where` keeps the processor busy for so long, the others do nothing."""
    body = "    end = time.perf_counter() + {:.6f}\n    while time.perf_counter() < end:\n        pass\n"
    functions = [
        f"def {name}():\n" + (body.format(seconds) if place == where else "    return None\n")
        for place, (_, name) in WHERE.items()
    ]
    return "import time\n\n\n" + "\n\n".join(functions)


def repository(folder: Path) -> Path:
    """A new repository with the script, whose only commit is tagged `base`."""
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch", "main")
    shutil.copy(WORKLOADS / SCRIPT, folder)
    (folder / "plant.py").write_text(plant("", 0.0))
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "Base")
    git(folder, "tag", "base")
    return folder


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=Benchmark", "-c", "user.email=benchmark@example.org")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


def put(folder: Path, case: Case, step_seconds: float) -> None:
    """Make the head of the repository what the case says."""
    git(folder, "reset", "--quiet", "--hard", "base")
    if case.where:
        # Two workers share what each batch takes.
        share = 2 if case.kind == "workers" else 1
        (folder / "plant.py").write_text(plant(case.where, case.size * step_seconds * share))
    git(folder, "commit", "--quiet", "--all", "--allow-empty", "--message", case.name)


# -- measuring -------------------------------------------------------------------------------------------


@contextmanager
def neighbour(wanted: bool, seed: int) -> Iterator[None]:
    """Somebody who loads one core now and then."""
    over = threading.Event()

    def live() -> None:
        generator = random.Random(seed)
        while not over.wait(generator.uniform(*IDLE_SECONDS)):
            seconds = generator.uniform(*BUSY_SECONDS)
            code = f"import time\nend = time.monotonic() + {seconds}\nwhile time.monotonic() < end: pass"
            subprocess.run([sys.executable, "-c", code], check=False)

    thread = threading.Thread(target=live)
    if wanted:
        thread.start()
    try:
        yield
    finally:
        over.set()
        if wanted:
            thread.join()


def checked(folder: Path, case: Case, budget: str, seed: int, limit: float) -> dict[str, Any]:
    """One check: what it said, as far as the tables need it."""
    out = folder.parent / "check.json"
    out.unlink(missing_ok=True)
    words = ["check", "--base-ref", "base", "--threshold", f"{case.threshold:.3%}", "--budget", budget, "--quiet"]
    words += ["--seed", str(seed), "--json", str(out), "--no-github", SCRIPT, "--", case.kind]
    with neighbour(case.neighbour, seed):
        _, failure, seconds = examination(words, folder, limit)
    if not out.exists():
        return {"failure": failure, "seconds": seconds}
    found = json.loads(out.read_text())
    step = next(metric for metric in found["metrics"] if metric["id"] == "step_time")
    phase, function = WHERE.get(case.where, ("", ""))
    culprits = [(each["kind"], each["name"]) for each in found["culprits"]]
    phases = [name for kind, name in culprits if kind == "phase"]
    functions = [name for kind, name in culprits if kind == "function"]
    return {
        "failure": "",
        "status": found["status"],
        "base": step["base"],
        "change": step["change"],
        "low": step["low"],
        "high": step["high"],
        "smallest": step["smallest"],
        "pairs": len(found["pairs"]),
        "seconds": seconds,
        "phase": phases[:1] == [phase],
        "function": functions[:1] == [function],
        "culprits": culprits,
        "logs": [pair["log_ratio"] for pair in found["pairs"]],
        # What both sides share from pair to pair is in no ratio of theirs.
        "steps": [(pair["base_step_seconds"], pair["head_step_seconds"]) for pair in found["pairs"]],
    }


def naive(folder: Path, case: Case, seed: int) -> dict[str, Any]:
    """Runs of the base, and then as many of the head: the ratio of their mean epochs, of all runs and of each two."""
    with tempfile.TemporaryDirectory(prefix="naive-") as scratch, neighbour(case.neighbour, seed):
        base = Path(scratch) / "base"
        subprocess.run(
            ["git", "clone", "--quiet", "--branch", "base", str(folder), str(base)], check=True, capture_output=True
        )
        means: list[list[float]] = []
        for place in (base, folder):
            starts = [start([SCRIPT, case.kind, "--epochs", str(EPOCHS)], place, EPOCHS) for _ in range(REPEATS)]
            failure = next((each.failure for each in starts if each.failure), "")
            if failure:
                return {"failure": failure}
            means.append([each.epoch_mean for each in starts])
    before, after = means
    ones = [new / old for old, new in zip(before, after, strict=True)]
    return {"failure": "", "ones": ones, "all": fmean(after) / fmean(before)}


def step_seconds(folder: Path, kind: str, starts: int = STARTS) -> float:
    """What a step of the base takes here, by runs of its own with the allocator that a check gives it."""
    from bottleneck_doctor.gate.sides.steady import STEADY

    git(folder, "reset", "--quiet", "--hard", "base")
    seen = [start([SCRIPT, kind, "--epochs", str(EPOCHS)], folder, EPOCHS, variables=STEADY) for _ in range(starts)]
    failure = next((each.failure for each in seen if each.failure), "")
    if failure:
        raise SystemExit(f"{kind} can't be run: {failure}")
    return fmean(each.epoch_mean for each in seen) / BATCHES


# -- tables ----------------------------------------------------------------------------------------------


def share(part: int, whole: int) -> str:
    return f"{part}/{whole}" if whole else "-"


def summary(case: Case, kept: dict[str, Any]) -> list[str]:
    """A row of the table."""
    all_checks = kept["checks"]
    checks = [each for each in all_checks if not each["failure"]]
    called = [each for each in checks if each["status"] == "regressed"]
    cells = [case.name, share(len(called), len(checks))]
    cells.append(share(sum(each["status"] == "cannot_tell" for each in checks), len(checks)))
    if case.where:
        cells.append(share(sum(each["phase"] for each in called), len(called)))
        cells.append(share(sum(each["function"] for each in called), len(called)))
    else:
        cells += ["-", "-"]
    cells.append(f"{median(each['seconds'] for each in checks):.0f} s" if checks else "-")
    smallest = [each["smallest"] for each in checks if each["smallest"] is not None]
    cells.append(f"{median(smallest):.1%}" if smallest else "-")
    runs = [each for each in kept["naive"] if not each["failure"]]
    for ratios in ([one for each in runs for one in each["ones"]], [each["all"] for each in runs]):
        cells.append(share(sum(ratio > 1 + case.threshold for ratio in ratios), len(ratios)))
    failed = len(all_checks) - len(checks)
    cells.append(str(failed) if failed else "")
    return cells


HEAD = (
    "case",
    "called worse",
    "cannot tell",
    "phase",
    "function",
    "time",
    "smallest detectable",
    "naive 1:1",
    f"naive {REPEATS}:{REPEATS}",
    "failed",
)


def good(kept: dict[str, Any]) -> list[dict[str, Any]]:
    """The checks that came to an answer of some kind."""
    return [each for each in kept["checks"] if not each["failure"]]


def truth(case: Case, check: dict[str, Any]) -> float:
    """The slowdown that was planted, as a part of the step that the check saw on the base."""
    return float(check["planted_seconds"] / check["base"]) if case.where else 0.0


def told(known: Sequence[tuple[Case, dict[str, Any]]]) -> bool:
    """Print the tables. Whether false alarms are within the promise."""
    print(table(HEAD, [summary(case, kept) for case, kept in known if kept["checks"] or kept["naive"]]))
    times = sorted((each["taken"], each["revision"]) for _, kept in known for each in good(kept))
    if times:
        print(f"\nFrom {times[0][0]} to {times[-1][0]}, revisions {', '.join(sorted({each[1] for each in times}))}.")
    identical = [each for case, kept in known if not case.where for each in good(kept)]
    alarms = sum(each["status"] == "regressed" for each in identical)
    strict = sum(len(good(kept)) for case, kept in known if not case.where and case.threshold == 0.02)
    if identical:
        rate = designed_for(ERROR_RATE, alarms, len(identical))
        print(f"False alarms, of checks of identical revisions, {strict} of them at 2 %: {rate}.")
    else:
        print("False alarms: no identical revisions were checked.")
    caught(known)
    answered(known)
    seen = [
        (case.size >= each["smallest"], each["status"] == "regressed")
        for case, kept in known
        if case.where
        for each in good(kept)
        if each["smallest"] is not None
    ]
    large = [was_caught for is_large, was_caught in seen if is_large]
    print(f"Slowdowns at least as large as the check said that it could see: {share(sum(large), len(large))} caught.")
    held = [
        each["low"] <= truth(case, each) <= each["high"]
        for case, kept in known
        for each in good(kept)
        if each["low"] is not None
    ]
    print(f"Intervals of 95 % that hold the planted size: {share(sum(held), len(held))}.")
    return alarms <= max(1, len(identical) // 100)


def caught(known: Sequence[tuple[Case, dict[str, Any]]]) -> None:
    """Print what was caught of each size, beside what is promised, and how many of those were explained."""
    for (group, size), promised in PROMISED.items():
        kinds = AGREE if group == "agree" else (group,)
        for budget in sorted({case.budget for case, _ in known}):
            chosen = [(case, kept) for case, kept in known if (case.size, case.budget) == (size, budget)]
            checks = [each for case, kept in chosen if case.kind in kinds for each in good(kept)]
            hits = sum(each["status"] == "regressed" for each in checks)
            if checks:
                name = f"{' and '.join(kinds)} +{size:.0%}" + (f" in {budget}" if budget else "")
                print(f"{name}: {share(hits, len(checks))} caught, {promised:.0%} promised.")
    called = [each for case, kept in known if case.where for each in good(kept) if each["status"] == "regressed"]
    for name in ("phase", "function"):
        print(f"Regressions whose {name} was named: {share(sum(each[name] for each in called), len(called))}.")


def answered(known: Sequence[tuple[Case, dict[str, Any]]]) -> None:
    """Print how long a clear answer takes: a slowdown of 30 %, and no change within 5 %."""
    slower = [(case, kept) for case, kept in known if case.size == 0.30]
    alike = [(case, kept) for case, kept in known if not case.where and case.threshold == 0.05]
    for said, chosen, status in (
        ("a slowdown of 30 %", slower, "regressed"),
        ("no change within 5 %", alike, "passed"),
    ):
        for kinds in (AGREE, ("conv",)):
            found = [each for case, kept in chosen if case.kind in kinds for each in good(kept)]
            seconds = [each["seconds"] for each in found if each["status"] == status]
            if seconds:
                told_as = f"{said}, {' and '.join(kinds)}"
                print(f"Median time to {told_as}: {median(seconds):.0f} s ({len(seconds)} checks).")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kinds", default="data,workers,conv", help="loops to check, by comma")
    parser.add_argument("--identical", type=int, default=17, help="checks of each kind of identical revisions")
    parser.add_argument("--planted", type=int, default=7, help="checks of each planted slowdown in each place")
    parser.add_argument("--naive", type=int, default=5, help="naive gates of each kind of identical revisions at 2 %%")
    parser.add_argument("--naive-planted", type=int, default=1, help="naive gates of each planted slowdown")
    parser.add_argument("--budget", default="5m", help="of each check")
    parser.add_argument("--only", default="", help="cases in whose name this regular expression is found")
    parser.add_argument("--json", type=Path, help="keep what was measured here, and go on from it")
    parser.add_argument("--show", type=Path, nargs="+", help="print what these files hold together, measure nothing")
    parser.add_argument("--short", action="store_true", help="one check: tests the benchmark, not the gate")
    options = parser.parse_args()
    shown: dict[str, Any] = {}
    chosen = [case for case in cases(options.kinds.split(",")) if re.search(options.only, case.name)]
    if options.short:
        chosen = [Case("data", "data", 0.30, 0.15)]
        options.identical, options.planted = min(1, options.identical), min(1, options.planted)
        options.naive = options.naive_planted = 0
    if options.show:
        for document in map(opened, options.show):
            print(machine_line(document["machine"]))
            for name, found in document["cases"].items():
                both = shown.setdefault(name, empty())
                both["checks"] += found["checks"]
                both["naive"] += found["naive"]
        return 0 if told([(case, shown.get(case.name, empty())) for case in chosen]) else 1
    seen = machine()
    kept: dict[str, Any] = {"format": FORMAT, "machine": seen, "budget": options.budget, "cases": {}}
    if options.json is not None and options.json.exists():
        earlier = opened(options.json)
        if earlier["budget"] != options.budget:
            raise SystemExit(f"{options.json} holds checks of another budget; name another file")
        kept["cases"] = earlier["cases"]
    known = [(case, kept["cases"].setdefault(case.name, empty())) for case in chosen]
    print(machine_line(seen))
    print(f"Budget of a check {options.budget}; processes with the steady allocator.\n")
    try:
        measure(known, kept, options)
    except KeyboardInterrupt:
        say("interrupted: the tables hold what was measured")
    within = told(known)
    # The short form is there to show that all of this still works.
    failed = options.short and any(each["failure"] for _, kept in known for each in kept["checks"])
    return 0 if within and not failed else 1


def opened(path: Path) -> dict[str, Any]:
    """What an earlier run kept."""
    document: dict[str, Any] = json.loads(path.read_text())
    if document.get("format") != FORMAT:
        raise SystemExit(f"{path} holds checks of another form; name another file")
    return document


def empty() -> dict[str, Any]:
    return {"checks": [], "naive": []}


def measure(known: Sequence[tuple[Case, dict[str, Any]]], kept: dict[str, Any], options: argparse.Namespace) -> None:
    """Rounds over all cases, so that the machine's good and bad hours meet all of them."""
    from bottleneck_doctor.wording.durations import parse_duration

    with tempfile.TemporaryDirectory(prefix="gate-") as scratch:
        folder = repository(Path(scratch) / "repository")
        starts = 1 if options.short else STARTS
        steps = {kind: step_seconds(folder, kind, starts) for kind in {case.kind for case, _ in known}}
        kept["step_seconds"] = steps
        for number in range(max(options.identical, options.planted, options.naive, options.naive_planted)):
            for case, found in known:
                put(folder, case, steps[case.kind])
                wanted = options.planted if case.where else options.identical
                if number < wanted and len(found["checks"]) <= number:
                    begun = time.monotonic()
                    when = {"taken": time.strftime("%Y-%m-%d %H:%M", time.gmtime()), "revision": revision()}
                    planted = {"planted_seconds": case.size * steps[case.kind]}
                    budget = case.budget or options.budget
                    limit = parse_duration(budget) + GRACE
                    found["checks"].append({**checked(folder, case, budget, number, limit), **planted, **when})
                    last = found["checks"][-1]
                    said = last["failure"] or f"{last['status']}, {last['change']:+.1%}, {last['pairs']} pairs"
                    say(f"{case.name}: {said} ({time.monotonic() - begun:.0f} s)")
                    save(options.json, kept)
                naives = options.naive_planted if case.where else options.naive if case.threshold == 0.02 else 0
                naives *= not case.budget
                if number < naives and len(found["naive"]) <= number:
                    found["naive"].append(naive(folder, case, number))
                    save(options.json, kept)


if __name__ == "__main__":
    sys.exit(main())
