"""Whether the edited program does what was promised: the patch made, run and measured, program by program.

    python benchmarks/confirmed.py --json benchmarks/confirmed.json
    python benchmarks/confirmed.py --json benchmarks/confirmed.json --table

Every program here has something that helps, or nothing. It is copied and examined with `doctor run --confirm`, which
measures it with the promised change made, beside the one as written. Then `doctor apply` makes the change in the copy,
and a short examination has to find nothing left of the fixes that were taken. The table holds the promise beside the
figure of the edited program: how far apart they are in their own standard errors (`z`), and how many lie where they
should.

With `--json` a program is kept as soon as it is done: run the same command again and it goes on where it was
interrupted. Programs whose libraries are not installed are left out, and named. Exit code 1 where an edit fails, or is
not found on.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import math
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist, median
from typing import Any

import msgspec
from _common import DOCTOR, examination, machine, machine_line, revision, save, say, table, taken_up
from planted import without_places

FORMAT = 1
HERE = Path(__file__).resolve().parent
LIMIT = 900.0
"""Seconds after which an examination with its confirmation has failed."""
AGAIN = "45s"
"""The budget of the examination after the change."""
LEFT_OUT = "left out on request"
"""The reason that a report gives for a fix that was not asked for."""
ALREADY = "already on"
"""How the reason begins where the program has what a fix would bring."""
SHARES = (0.5, 0.8, 0.95)
Z95 = NormalDist().inv_cdf(0.975)


@dataclass(frozen=True, kw_only=True)
class Program:
    """`file` in a folder beside this one. `only`: the fixes that are tried; all where there are none. `needs`: the
    libraries that it imports. `helps`: whether one of these fixes is worth something. `by_hand`: there is
    nothing to apply, because the right answer is another command line, or an edit that only the user can make. `again`:
    the same file is measured for other fixes, too, so this one's name holds those it is measured for."""

    folder: str
    file: str
    words: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    helps: bool = True
    by_hand: bool = False
    again: bool = False

    @property
    def name(self) -> str:
        words = self.words if self.by_hand else ()
        words += tuple(f"--only {fix}" for fix in self.only if self.again)
        return " ".join((f"{self.folder}/{Path(self.file).stem}", *words))

    def fingerprint(self) -> str:
        """Of all that is copied, so that an edited program is measured anew."""
        seen = hashlib.sha256(repr((self.file, self.words, self.only)).encode())
        for path in sorted((HERE / self.folder).rglob("*")):
            if path.is_file() and path.suffix in (".py", ".yaml", ".json"):
                seen.update(path.read_bytes() if self.folder == "promised" or path.name == self.file else b"")
        return seen.hexdigest()[:16]


def _loads(file: str, *words: str, **known: Any) -> Program:
    return Program(folder="promised", file=file, words=words, only=("workers",), **known)


def _works(file: str, *only: str, **known: Any) -> Program:
    return Program(folder="workloads", file=file, only=only, **known)


def _planted(file: str, *only: str, **known: Any) -> Program:
    return Program(folder="planted", file=file, only=only, **known)


PROGRAMS = (
    _loads("literal.py"),
    _works("cleanup.py", "cleanup-calls"),
    _planted("features_in_fetch.py", "workers"),
    _works("large_tensors.py", "allocator"),
    _loads("yaml_config.py", "config.yaml", needs=("yaml",)),
    _works("group_a_tensor.py", "merged-groups"),
    _works("small_rows.py", "batched-fetch"),
    _works("many_tensors.py", "fused-optimizer"),
    _loads("argparse_option.py"),
    _works("residual.py", "channels-last"),
    _works("zero_filled.py", "zero-grad-none"),
    _works("long_sequences.py", "attention-weights"),
    _works("under_autocast.py", "full-precision"),
    _works("garbage.py", "gc-freeze"),
    _works("collected_epochs.py", "gc-freeze"),
    _works("same_samples.py", "cached-samples"),
    _works("uneven_batches.py", "out-of-order"),
    _works("small_pictures.py", "batched-transforms"),
    _works("spectra.py", "worker-threads"),
    _works("decoded_pictures.py", "cached-inputs"),
    _works("camera_pictures.py", "reduced-decoding"),
    _works("spawned_epochs.py", "forked-workers"),
    _works("many_columns.py", "sharing-strategy"),
    _works("dropped_features.py", "quick-dropout"),
    _works("policy_update.py", "distribution-checks"),
    _works("searched_parameters.py", "no-unused-search", "bucket-views"),
    _works("padded_texts.py", "checkpointing"),
    _works("padded_texts.py", "grouped-lengths", again=True),
    _planted("double_arrays.py", "single-precision", by_hand=True),
    _planted("padded_rows.py", "trimmed-padding"),
    _planted("vanishing_gradients.py", "flush-denormal"),
    _planted("workers_for_tensors.py", "no-workers"),
    _loads("lightning_fit.py", needs=("lightning",)),
    _loads("trainer_arguments.py", needs=("transformers", "accelerate")),
    _loads("hydra_app.py", needs=("hydra",)),
    _works("too_many_threads.py", "threads"),
    _loads("accelerate_loop.py", needs=("accelerate",)),
    _works("float32_products.py", "amp-bf16", "float32-precision", words=("--width", "256", "--layers", "4")),
    _planted("short_epochs.py", "persistent-workers", "no-workers"),
    _loads("factory.py"),
    _loads("dataclass_settings.py"),
    _loads("keywords.py"),
    _loads("json_config.py", "config.json"),
    _loads("click_option.py", needs=("click",)),
    _loads("positional.py"),
    _loads("bound.py"),
    _loads("argparse_option.py", "--workers", "0", by_hand=True),
    _planted("big_hand_over.py", "no-workers"),
    _planted("small_layers.py", helps=False),
    _planted("python_forward.py", "channels-last", "fused-optimizer", "workers", helps=False),
)


def missing(program: Program) -> list[str]:
    return [name for name in program.needs if importlib.util.find_spec(name) is None]


# -- one program -------------------------------------------------------------------------------------------------------


def measure(program: Program) -> dict[str, Any]:
    """Examine a copy of the program, make the change, and examine it again."""
    with tempfile.TemporaryDirectory(prefix="confirmed-") as scratch:
        copy, output = Path(scratch) / program.folder, Path(scratch) / "report"
        shutil.copytree(HERE / program.folder, copy, ignore=shutil.ignore_patterns("__pycache__"))
        only = [word for fix in program.only for word in ("--only", fix)]
        target = [program.file, *(["--", *program.words] if program.words else [])]
        words = ["run", "--quiet", "--no-explain", "--confirm", "-o", str(output), *only, *target]
        code, failure, wall = examination(words, copy, LIMIT)
        report = {} if failure else msgspec.json.decode((output / "report.json").read_bytes())
        record: dict[str, Any] = {
            "program": program.fingerprint(),
            "revision": revision(),
            "taken": time.strftime("%Y-%m-%d %H:%M", time.gmtime()),
            "exit": code,
            "wall": wall,
            "failure": failure,
            "verdict": report.get("verdict"),
            "confirmation": report.get("confirmation"),
            "fixes": _outcomes(report, "id", "status", "reason", "speedup", "change"),
            "seconds": report.get("method", {}).get("seconds"),
        }
        if report.get("confirmation") is not None:
            record |= _applied(program, copy, output, only, target)
        return without_places(record, [copy.resolve(), copy, Path(scratch), Path(sys.prefix)])  # type: ignore[no-any-return]


def _applied(program: Program, copy: Path, output: Path, only: Sequence[str], target: Sequence[str]) -> dict[str, Any]:
    """What `doctor apply` does, and what an examination then says of the fixes."""
    done = subprocess.run(
        [*DOCTOR, "apply", str(output)], cwd=copy, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )
    applied: dict[str, Any] = {"apply": done.returncode, "apply_said": (done.stderr or done.stdout).strip()[-400:]}
    if done.returncode:
        return applied
    again = output.with_name("again")
    words = ["run", "--quiet", "--no-explain", "--no-confirm", "--budget", AGAIN, "-o", str(again), *only, *target]
    code, failure, wall = examination(words, copy, LIMIT)
    applied |= {"again_exit": code, "again_failure": failure, "again_wall": wall}
    if not failure:
        found = msgspec.json.decode((again / "report.json").read_bytes())
        applied["again"] = _outcomes(found, "id", "status", "reason")
    return applied


def _outcomes(report: dict[str, Any], *names: str) -> list[dict[str, Any]]:
    """What a report says of the fixes that were asked for."""
    asked = [each for each in report.get("fixes", []) if each["reason"] != LEFT_OUT]
    return [{name: each[name] for name in names} for each in asked]


# -- what it says ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """A program beside what became of it. `z`: how far the edited program's log speedup is from the promised one, in
    standard errors of their difference; None where one of them is missing."""

    program: Program
    record: dict[str, Any]

    @property
    def confirmation(self) -> dict[str, Any]:
        return self.record.get("confirmation") or {}

    @property
    def outcome(self) -> str:
        return self.confirmation.get("outcome") or ("no report" if self.record["failure"] else "nothing promised")

    @property
    def z(self) -> float | None:
        promised, edited = self.confirmation.get("promised"), self.confirmation.get("speedup")
        if not promised or not edited:
            return None
        errors = [math.log(each["high"] / each["low"]) / 2 / Z95 for each in (promised, edited)]
        return math.log(edited["estimate"] / promised["estimate"]) / math.hypot(*errors)

    @property
    def off(self) -> float | None:
        """Part by which the edited program's speedup is off the promised one."""
        promised, edited = self.confirmation.get("promised"), self.confirmation.get("speedup")
        return edited["estimate"] / promised["estimate"] - 1 if promised and edited else None

    @property
    def on(self) -> str:
        """What the examination after the change says of the fixes that were taken: none of them may be faster again."""
        if "apply" not in self.record:
            return "-"
        if self.record["apply"]:
            return "not applied"
        if self.record.get("again_failure"):
            return f"FAILED: {self.record['again_failure']}"
        taken = {each["id"] for each in self.record["fixes"] if each["status"] == "faster"}
        found = [each for each in self.record["again"] if each["id"] in taken]
        left = [each["id"] for each in found if each["status"] == "faster"]
        said = {ALREADY if each["reason"].startswith(ALREADY) else each["status"].replace("_", " ") for each in found}
        return f"NO: {', '.join(left)}" if left else ", ".join(sorted(said))

    @property
    def good(self) -> bool:
        if self.program.by_hand:
            return self.outcome in ("agrees", "differs") and self.on == "not applied"
        if not self.program.helps:
            return self.outcome == "nothing promised"
        return self.outcome in ("agrees", "differs") and not self.on.startswith(("NO", "FAILED", "-"))


def rows(records: dict[str, Any]) -> list[Row]:
    return [Row(each, records[each.name]) for each in PROGRAMS if each.name in records]


def speedup_text(value: dict[str, Any] | None) -> str:
    return "-" if not value else f"{value['estimate']:.2f}× ({value['low']:.2f}–{value['high']:.2f})"


def markdown(shown: Sequence[Row]) -> Iterator[str]:
    """The table, and what it adds up to."""
    lines = []
    for row in shown:
        fixes = [each["id"] for each in row.record["fixes"] if each["status"] == "faster"]
        lines.append(
            [
                f"`{row.program.name}`",
                ", ".join(fixes) or "-",
                speedup_text(row.confirmation.get("promised")),
                speedup_text(row.confirmation.get("speedup")),
                "-" if row.z is None else f"{row.z:+.1f}",
                row.outcome,
                row.on,
                f"{row.record['wall']:.0f} s",
                "" if row.good else "**no**",
            ]
        )
    yield table(
        ["program", "faster", "promised", "edited program", "z", "outcome", "afterwards", "time", "as it should"], lines
    )
    known = [row.z for row in shown if row.z is not None]
    off = [abs(row.off) for row in shown if row.off is not None]
    if known:
        inside = [sum(abs(z) <= NormalDist().inv_cdf(0.5 + share / 2) for z in known) for share in SHARES]
        told = ", ".join(
            f"{count} of {len(known)} inside {share:.0%}" for count, share in zip(inside, SHARES, strict=True)
        )
        yield f"{told}; off by {median(off):.1%} (median), {max(off):.1%} (worst)."
    yield f"{sum(row.good for row in shown)} of {len(shown)} as they should be."


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="where results are kept")
    parser.add_argument("--table", action="store_true", help="measure nothing, only show what is kept")
    parser.add_argument("--again", action="store_true", help="measure again what is kept")
    parser.add_argument("programs", nargs="*", help="names of programs; all by default")
    options = parser.parse_args()
    document = taken_up(options.json, {"format": FORMAT, "records": {}})
    records = document["records"]
    wanted = [each for each in PROGRAMS if not options.programs or each.name in options.programs]
    if not options.table:
        document["machine"] = machine()
        for number, program in enumerate(wanted, 1):
            lacking = missing(program)
            fresh = records.get(program.name, {}).get("program") == program.fingerprint() and not options.again
            if lacking or fresh:
                say(f"{number}/{len(wanted)} {program.name}: " + (f"needs {', '.join(lacking)}" if lacking else "kept"))
                continue
            records[program.name] = measure(program)
            save(options.json, document)
            row = Row(program, records[program.name])
            say(f"{number}/{len(wanted)} {program.name}: {row.outcome}, {row.on}, {row.record['wall']:.0f} s")
    if "machine" in document:
        print(machine_line(document["machine"]))
    shown = rows(records)
    print("\n".join(markdown(shown)))
    absent = [each.name for each in PROGRAMS if each.name not in records]
    if absent:
        print(f"Not measured yet: {', '.join(absent)}.")
    return 0 if all(row.good for row in shown) else 1


if __name__ == "__main__":
    sys.exit(main())
