"""What the doctor promises against the truth: the same scripts, edited by hand and run in full.

    python benchmarks/edited.py --json edited.json

Each script is examined, and every setting that got a speedup is then made in a copy of the script with the edits that
the report shows. The script as written and its copies are started in rounds, each once a round and in random order, so
that drift of the machine falls on all of them; the true speedup is the ratio of their training times an epoch, with an
interval from the spread between starts. `--json` keeps every start: run the same command again and it goes on where it
was interrupted.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
from _common import (
    DOCTOR,
    ROOT,
    WORKLOADS,
    Ratio,
    Start,
    machine,
    machine_line,
    save,
    say,
    setting_text,
    shuffled,
    table,
    taken_up,
    unpaired,
)
from _common import start as start_script

from bottleneck_doctor.documents.report import Result, Setting, Speedup, from_json
from bottleneck_doctor.edits.autocast_block import autocast_change
from bottleneck_doctor.edits.call import call_change
from bottleneck_doctor.edits.loader_call import loader_change
from bottleneck_doctor.edits.memory_format import memory_format_change
from bottleneck_doctor.knobs import Call, MemoryFormat, knobs_of

FORMAT = 1
WRITTEN = "as written"
LOADER_KEYWORDS = ("num_workers", "prefetch_factor", "persistent_workers", "pin_memory")
SESSIONS_OF_A_CLAIM = 3


@dataclass(frozen=True)
class Script:
    """A training script and how it is started. Marks are beginnings of the lines that an edit is made at.

    `epochs` is how many a start of the benchmark runs, the first of which is not counted; all else is as in the
    examination, the length of the epochs above all.
    """

    name: str
    file: Path
    arguments: tuple[str, ...]
    epochs: int
    loader: str
    forward: str
    backward: str = "loss.backward()"
    config: str = ""
    """A JSON file beside the script that holds the number of epochs; without one it is the option `--epochs`."""

    def examined(self) -> list[str]:
        return [str(self.file), "--", *self.arguments]

    def copied(self, folder: Path, epochs: int, source: str) -> list[str]:
        """Put the script with this text into `folder`, limited to `epochs`; returns the arguments of its start."""
        if not self.config:
            (folder / self.file.name).write_text(source, encoding="utf-8")
            return [self.file.name, *self.arguments, "--epochs", str(epochs)]
        for file in self.file.parent.glob("*.py"):
            shutil.copy(file, folder)
        (folder / self.file.name).write_text(source, encoding="utf-8")
        config = msgspec.json.decode((self.file.parent / self.config).read_bytes())
        config.update(epochs=epochs, data=str(self.file.parent / config["data"]), output=str(folder / "runs"))
        (folder / self.config).write_bytes(msgspec.json.encode(config))
        return [self.file.name, self.config]


PETS = ROOT / "examples" / "pets"
_SHORT = {"file": WORKLOADS / "short_epochs.py", "epochs": 13, "loader": "loader = DataLoader(", "forward": "output ="}
SCRIPTS = (
    Script(
        name="pets",
        file=PETS / "train.py",
        arguments=(str(PETS / "config.json"),),
        epochs=4,
        loader="train_loader = DataLoader(",
        forward="logits = model(",
        config="config.json",
    ),
    Script(
        name="conv",
        file=WORKLOADS / "conv.py",
        arguments=(),
        epochs=4,
        loader="loader = DataLoader(",
        forward="output = model(",
    ),
    Script(name="short-epochs", arguments=("--num-workers", "1"), **_SHORT),
    Script(name="short-epochs-persistent", arguments=("--num-workers", "1", "--persistent-workers"), **_SHORT),
)


# -- promises ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Promise:
    """A speedup that one examination gave for a setting, and whether it rests on enough processes to be a claim."""

    examination: int
    label: str
    setting: Setting
    speedup: Speedup
    status: str

    @property
    def ratio(self) -> Ratio:
        return Ratio(self.speedup.estimate, self.speedup.low, self.speedup.high)

    @property
    def claimed(self) -> bool:
        return self.speedup.sessions >= SESSIONS_OF_A_CLAIM


def promises(result: Result, examination: int) -> Iterator[Promise]:
    """Every setting with a speedup, each once: fixes whatever their status, points of the curve, the combination."""
    seen: list[Setting] = []
    offers: list[tuple[str, Setting, Speedup | None, str]] = [
        (fix.id, fix.setting, fix.speedup, fix.status) for fix in result.fixes
    ]
    if result.workers is not None:
        for point in result.workers.curve:
            if not point.is_baseline:
                offers.append(("curve", {"num_workers": point.num_workers}, point.speedup, ""))
    if result.combination is not None:
        for rung in result.combination.ladder:
            offers.append(("ladder", rung.setting, rung.speedup, ""))
    for label, setting, speedup, status in offers:
        if speedup is not None and setting and setting not in seen and setting.get("autocast") != "float16":
            seen.append(setting)
            yield Promise(examination, label, setting, speedup, status)


def examine(script: Script, number: int, seed: int, budget: str | None) -> dict[str, Any]:
    """One examination of the script as written, of speedups alone: what it took, and its report if any."""
    with tempfile.TemporaryDirectory(prefix="examined-") as folder:
        command = [*DOCTOR, "run", "-q", "--no-explain", "-o", folder, "--seed", str(seed)]
        command += ["--budget", budget] if budget else []
        say(f"{script.name}: examination {number}")
        begun = time.monotonic()
        process = subprocess.Popen(
            [*command, *script.examined()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            out, err = process.communicate()
        except KeyboardInterrupt:
            process.terminate()  # It ends what it started; killing it would not.
            process.communicate(timeout=60)
            raise
        record = {"number": number, "seed": seed, "exit": process.returncode, "wall": time.monotonic() - begun}
        try:
            report = (Path(folder) / "report.json").read_bytes()
        except OSError:
            return {**record, "failure": (err or out).strip()[-2000:], "report": None}
        return {**record, "failure": "", "report": msgspec.json.decode(report)}


# -- edits -------------------------------------------------------------------------------------------------------------


class NoEdit(Exception):
    """The setting can't be written into the script."""


def edit(script: Script, setting: Setting, device: str) -> str:
    """The script's source with the setting made in it."""
    source = script.file.read_text(encoding="utf-8")
    keywords = {name: value for name, value in setting.items() if name in LOADER_KEYWORDS}
    known = {each.name for each in knobs_of(setting) if isinstance(each.edit, Call | MemoryFormat)}
    strange = set(setting) - set(keywords) - known - {"autocast"}
    if strange:
        raise NoEdit(f"no edit is known for {', '.join(sorted(strange))}")
    if "autocast" in setting:
        forward, backward = _line(source, script.forward), _line(source, script.backward)
        dtype = str(setting["autocast"])
        source = _edited(autocast_change(source, forward, backward, device, dtype))
    if keywords:
        source = _edited(loader_change(source, _line(source, script.loader), keywords))
    for each in knobs_of(setting):
        if isinstance(each.edit, MemoryFormat):
            # The line of the call may have moved by edits above it.
            source = _edited(memory_format_change(source, _line(source, script.forward), each.edit.name))
    for code in _calls(setting):
        source = _edited(call_change(source, code))
    return source


def _calls(setting: Setting) -> list[str]:
    """What a setting asks to be called before training begins."""
    calls = [(each.edit, setting[each.name]) for each in knobs_of(setting)]
    return [edit.text.format(value=value) for edit, value in calls if isinstance(edit, Call)]


def _edited(change: Any) -> str:
    if change is None or not change.edited:
        raise NoEdit("no safe edit: " + (change.note if change is not None else "the place was not understood"))
    return str(change.edited)


def unlike_report(script: Script, setting: Setting, device: str, result: Result) -> str:
    """What the edit checked here has to do with the one that the report shows; "" where they are the same."""
    shown = [fix.change for fix in result.fixes if fix.setting == setting and fix.change is not None]
    if not shown or not shown[0].diff:
        return ""
    written = script.file.read_text(encoding="utf-8").splitlines()
    # Beside another edit a call is said in words.
    called = {each.name for each in knobs_of(setting) if isinstance(each.edit, Call)}
    rest = {name: value for name, value in setting.items() if name not in called}
    edited = edit(script, rest or setting, device)
    made = difflib.unified_diff(written, edited.splitlines(), n=0)
    return "" if _changes(made) == _changes(shown[0].diff.splitlines()) else "the report shows another edit than this"


def _changes(diff: Iterable[str]) -> list[str]:
    return [line for line in diff if line[:1] in ("+", "-") and not line.startswith(("+++", "---"))]


def _line(source: str, beginning: str) -> int:
    found = [number for number, line in enumerate(source.splitlines(), 1) if line.strip().startswith(beginning)]
    if len(found) != 1:
        raise NoEdit(f"{len(found)} lines begin with {beginning!r}")
    return found[0]


# -- truth -------------------------------------------------------------------------------------------------------------


def run_rounds(script: Script, record: dict[str, Any], options: argparse.Namespace, keep: Any) -> None:
    """Start the script as written and every edited copy in turn until each has its starts, keeping all as it comes."""
    variants: dict[str, Setting] = {WRITTEN: {}}
    variants.update({setting_text(each["setting"]): each["setting"] for each in record["variants"]})
    device = record["device"]
    with tempfile.TemporaryDirectory(prefix="edited-") as top:
        ready: dict[str, tuple[Path, list[str]]] = {}
        for index, (key, setting) in enumerate(variants.items()):
            folder = Path(top) / f"{index}"
            folder.mkdir()
            try:
                source = edit(script, setting, device) if setting else script.file.read_text(encoding="utf-8")
            except NoEdit as error:
                record["no_edit"][key] = str(error)
                continue
            ready[key] = (folder, script.copied(folder, record["epochs"], source))
        for number in range(options.starts):
            if number == len(record["rounds"]):
                seed = options.seed + number
                record["rounds"].append({"seed": seed, "order": shuffled(list(ready), seed), "starts": {}})
            current = record["rounds"][number]
            for place, key in enumerate(current["order"], 1):
                if key in current["starts"] or key not in ready:
                    continue
                folder, argv = ready[key]
                done = start_script(argv, folder, record["epochs"])
                current["starts"][key] = done.to_json()
                keep()
                told = done.failure or f"{done.epoch_mean:.3f} s an epoch"
                say(
                    f"{script.name}: round {number + 1}/{options.starts}, {place}/{len(current['order'])} {key}: {told}"
                )


def starts_of(record: dict[str, Any], key: str) -> list[Start]:
    return [Start.from_json(each["starts"][key]) for each in record["rounds"] if key in each["starts"]]


# -- rows --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """One promise beside its truth. `problem` says why there is no truth, or what of it failed."""

    script: str
    promise: Promise
    truth: Ratio | None
    problem: str

    @property
    def error(self) -> float | None:
        """Promise over truth, less one."""
        return self.promise.speedup.estimate / self.truth.estimate - 1 if self.truth else None

    @property
    def kept(self) -> bool | None:
        """Whether promise and truth agree within their joint 95 % interval."""
        if self.truth is None:
            return None
        return self.promise.ratio.agrees_with(self.truth)


def rows_of(script: Script, record: dict[str, Any]) -> Iterator[Row]:
    name = script.name
    written = [each.epoch_mean for each in starts_of(record, WRITTEN) if not each.failure]
    for examination in record["examinations"]:
        if examination["report"] is None:
            continue
        result = from_json(msgspec.json.encode(examination["report"]), source=name)
        for promise in promises(result, examination["number"]):
            if promise.setting not in [each["setting"] for each in record["variants"]]:
                continue  # Beyond --settings-limit or --labels.
            key = setting_text(promise.setting)
            starts = starts_of(record, key)
            failed = [each for each in starts if each.failure]
            truth = unpaired(written, [each.epoch_mean for each in starts if not each.failure])
            problem = record["no_edit"].get(key, "") or unlike_report(script, promise.setting, record["device"], result)
            if failed:
                problem = f"{len(failed)} of {len(starts)} starts failed: {failed[-1].failure}"
            yield Row(name, promise, truth, problem or ("" if truth else "too few starts"))


def print_table(rows: list[Row], examinations: int) -> None:
    head = ["script", "setting", "from", "promised", "edited", "error", "kept"]
    lines = []
    for row in rows:
        mark = "" if row.promise.claimed else f" [{row.promise.speedup.sessions} proc.]"
        which = row.promise.label + (f" #{row.promise.examination}" if examinations > 1 else "")
        error = f"{row.error:+.1%}" if row.error is not None else "-"
        kept = {True: "yes", False: "NO", None: "-"}[row.kept]
        truth = row.truth.text() if row.truth else "-"
        promised = row.promise.ratio.text() + mark
        lines.append([row.script, setting_text(row.promise.setting), which, promised, truth, error, kept])
    print(table(head, lines, left=3))
    for row in rows:
        if row.problem:
            print(f"  {row.script}, {setting_text(row.promise.setting)}: {row.problem}")


def print_summary(name: str, rows: list[Row]) -> None:
    errors = [(abs(row.error), row) for row in rows if row.error is not None]
    if not errors:
        print(f"{name}: nothing to compare")
        return
    worst = max(errors, key=lambda each: each[0])[1]
    kept = sum(bool(row.kept) for _, row in errors)
    promised = median(row.promise.ratio.half_width for _, row in errors)
    edited = median(row.truth.half_width for _, row in errors if row.truth)
    print(
        f"{name}: {len(errors)} rows ({len(rows) - len(errors)} without a truth), median error "
        f"{median(error for error, _ in errors):.1%}, worst {worst.error:+.1%} ({worst.script}, "
        f"{setting_text(worst.promise.setting)}), within the joint 95 % interval {kept} of {len(errors)} "
        f"({kept / len(errors):.0%}); median half width of the promise {promised:.1%}, of the truth {edited:.1%}"
    )


# -- the whole ---------------------------------------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--scripts", default=",".join(each.name for each in SCRIPTS), help="names, with commas between")
    parser.add_argument("--examinations", type=int, default=1, help="examinations of each script")
    parser.add_argument("--starts", type=int, default=8, help="starts of each variant; may be raised later")
    parser.add_argument("--settings-limit", type=int, help="check only so many settings of a script")
    parser.add_argument(
        "--labels", metavar="LABELS", help="check only these: ids of fixes, `curve`, `ladder`; with commas between"
    )
    parser.add_argument("--budget", help="of an examination, as for `doctor run`")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep everything here; taken up again if it exists")
    parser.add_argument("--quick", action="store_true", help="2 starts of 2 epochs, 2 settings, 40 s examinations")
    options = parser.parse_args()
    if options.quick:
        options.starts, options.settings_limit, options.budget = 2, 2, options.budget or "40s"
    known = {each.name: each for each in SCRIPTS}
    wanted = options.scripts.split(",")
    if set(wanted) - set(known):
        parser.error(f"scripts are {', '.join(known)}")

    protocol = {
        "examinations": options.examinations,
        "settings_limit": options.settings_limit,
        "labels": options.labels,
        "budget": options.budget,
        "seed": options.seed,
        "quick": options.quick,
    }
    document = taken_up(
        options.json, {"format": FORMAT, "protocol": protocol, "machines": [], "scripts": {}}, ["protocol"]
    )
    document["machines"].append(machine())

    def keep() -> None:
        save(options.json, document)

    interrupted = False
    try:
        for name in wanted:
            run_script(known[name], document["scripts"], options, keep)
    except KeyboardInterrupt:
        interrupted = True
    keep()

    print("The doctor's promise against the edited script: times as fast as written, with 95 % intervals\n")
    for seen in document["machines"]:
        print(f"on {machine_line(seen)}")
    rows: list[Row] = []
    for name, record in document["scripts"].items():
        rounds = len(record["rounds"])
        seeds = ", ".join(str(each["seed"]) for each in record["rounds"])
        written = [each for each in starts_of(record, WRITTEN) if not each.failure]
        spent = sum(value["seconds"] for each in record["rounds"] for value in each["starts"].values())
        step = f", {median(each.epoch_mean for each in written):.3f} s an epoch as written" if written else ""
        print(
            f"{name}: {rounds} rounds in {spent / 60:.0f} min, seeds of their orders {seeds or '-'}; "
            f"{record['epochs'] - 1} epochs of a start counted{step}"
        )
        busy = [value["others"] for each in record["rounds"] for value in each["starts"].values()]
        if busy:
            print(
                f"  cores busy with other programs during the starts: median {median(busy):.2f}, most {max(busy):.2f}"
            )
        for each in record["examinations"]:
            outcome = f"failed with exit code {each['exit']}: {each['failure']}" if each["failure"] else "done"
            sessions = each["report"]["method"]["sessions"] if each["report"] else []
            loads = [session["other_load"] for session in sessions if session["other_load"] is not None]
            busy_then = f", cores busy with other programs up to {max(loads):.2f}" if loads else ""
            print(f"  examination {each['number']}, seed {each['seed']}, {each['wall']:.0f} s: {outcome}{busy_then}")
        for each in starts_of(record, WRITTEN):
            if each.failure:
                print(f"  a start as written failed: {each.failure}")
        rows += rows_of(known[name], record)
    print()
    if rows:
        print_table(rows, options.examinations)
        print()
        for name in document["scripts"]:
            print_summary(name, [row for row in rows if row.script == name])
        print_summary("all", rows)
        print_summary("claims (three processes or more)", [row for row in rows if row.promise.claimed])
    else:
        print("no setting got a speedup")
    if interrupted:
        print("\ninterrupted: the same command with --json goes on")
        sys.exit(130)


def run_script(script: Script, scripts: dict[str, Any], options: argparse.Namespace, keep: Any) -> None:
    """Examine a script and find the truth of what was promised, as far as `scripts` does not hold it yet."""
    epochs = 2 if options.quick else script.epochs
    text = hashlib.sha256(script.file.read_bytes()).hexdigest()
    fresh = {"text": text, "epochs": epochs, "device": "cpu"}
    record = scripts.setdefault(script.name, {**fresh, "examinations": [], "variants": [], "no_edit": {}, "rounds": []})
    if (record["text"], record["epochs"]) != (text, epochs):
        sys.exit(f"{script.file.name} has changed since these measurements began; begin anew in another file")
    while len(record["examinations"]) < options.examinations:
        number = len(record["examinations"]) + 1
        record["examinations"].append(examine(script, number, options.seed + number, options.budget))
        keep()
    if not record["variants"]:
        for examination in record["examinations"]:
            if examination["report"] is None:
                continue
            result = from_json(msgspec.json.encode(examination["report"]), source=script.name)
            if result.baseline is not None:
                record["device"] = result.baseline.device.split(":")[0]
            for promise in promises(result, examination["number"]):
                if options.labels and promise.label not in options.labels.split(","):
                    continue
                if promise.setting not in [each["setting"] for each in record["variants"]]:
                    record["variants"].append({"setting": promise.setting, "label": promise.label})
        if options.settings_limit is not None:
            del record["variants"][options.settings_limit :]
        keep()
    if record["variants"]:
        run_rounds(script, record, options, keep)


if __name__ == "__main__":
    main()
