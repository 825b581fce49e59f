"""What the doctor does to, and says of, training programs that nobody here wrote: a row for each.

    python benchmarks/real.py FOLDER --json real.json --reports reports -- train.py -- --epochs 3
    python benchmarks/real.py --json real.json --table

FOLDER is a clone of somebody's repository, or a folder in one; what stands after the first `--` stands after
`doctor run` there, and is run in FOLDER as a user would, with the default options unless the words hold others. The row
says whether there is a report, what it finds first and where, how long it took, by how much it passed the time that
was promised, for how long its progress was silent, which files are not as they were, and what was left running. What a
report says is for a reader who knows the program: `--note` keeps what was read.

With `--json` a row is kept for each repository and command; one that is there is not measured again (`--again` does).
Exit code 1 where there is no report, a file was changed, something was left, or the time was passed by too much.
"""

from __future__ import annotations

import argparse
import codecs
import contextlib
import fcntl
import os
import pty
import re
import shlex
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePath
from typing import IO, Any

import msgspec
from _common import DOCTOR, machine, machine_line, save, say, taken_up
from _remains import MARK, difference, hashes, left_behind, shared_memory

from bottleneck_doctor.examine.examination import DEFAULT_BUDGET
from bottleneck_doctor.explain.explainer import ALLOWANCE
from bottleneck_doctor.wording.durations import parse_duration

FORMAT = 1
OVER = 0.03
"""Part of the promised time by which an examination may pass it."""
MOST = 600.0
"""Seconds that an examination takes at most where no budget is given."""
SILENCE = 10.0
"""Seconds for which the progress may show nothing new."""
UNSEEN = ("__pycache__", ".git")
"""Not compared: what Python caches of modules, and git's own, whose index a mere look at the state refreshes."""
GRACE = 300.0
"""Seconds beyond the promised ones after which an examination has failed."""
LINES_AND_COLUMNS = 24, 80
"""The size of the terminal."""
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
"""What moves the cursor or colours on a terminal."""
SPINNER = re.compile(r"[\u2800-\u28ff]")
"""The wheel before a live line: that it turns says nothing of the work."""
CONFIRMING = "Confirming it "
"""How the line of progress begins that says that the changed program is measured."""
SPENT = re.compile(r"\((\d[^()]*?) of (?:at most |about )?(\d[^()]*?)\)\s*$")
"""The time spent and the total, at the end of a line of progress."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """What came of one program. Seconds are wall time; texts are "" where there is nothing to say."""

    name: str
    revision: str
    command: list[str]
    exit: int
    failure: str
    """Last words of an examination without a report."""
    verdict: str
    finding: str
    sentence: str
    place: str
    findings: list[str]
    """Ids of all findings, in the report's order."""
    faster: list[str]
    """Fixes that the report claims, with their ratios."""
    warnings: list[str]
    seconds: float
    setup: float
    """Seconds that the first start of the script took, until its loop was found."""
    promised: float
    """Seconds that the examination might take by what is documented: see `promise`."""
    totals: list[str]
    """Totals that the progress named, in order, each once where several in a row are the same."""
    passed: str
    """What the progress showed when it had first passed its own total: `3 min 5 s of 3 min`."""
    silence: float
    """Longest time in which the progress showed nothing new, in seconds."""
    silent_after: str
    """What it had shown when that began."""
    terminal: bool
    """Whether it was watched through a terminal rather than a pipe."""
    files: str
    """What is gone, new or changed in the clone."""
    processes: str
    """What was left running, or lying in the temporary folder or in shared memory."""
    doctor: str
    """Revision of the doctor."""
    confirmed: str = ""
    """What became of the promise with the change made; "" where nothing is promised."""
    note: str = ""
    """What a reader of the report found, against the program's source."""

    @property
    def over(self) -> float:
        """Seconds beyond the promise, as a part of it; negative where time was left."""
        return self.seconds / self.promised - 1 if self.promised else 0.0

    @property
    def good(self) -> bool:
        return not (self.failure or self.files or self.processes) and self.over <= OVER


# -- what is pure ------------------------------------------------------------------------------------------------------


def silence(shown: Sequence[tuple[float, str]], begun: float, ended: float) -> tuple[float, str]:
    """The longest time without anything new, and what had been shown when it began.

    `shown`: when a text was seen, with the text, in order; one that repeats the text before says nothing new.
    """
    longest, after, since, text = 0.0, "", begun, ""
    for when, new in [*shown, (ended, "\0")]:
        if new == text:
            continue
        if when - since > longest:
            longest, after = when - since, text
        since, text = when, new
    return longest, after


def words_of(chunk: str) -> list[str]:
    """The texts in a piece of what came from stderr, without what belongs to a terminal or to the moment."""
    plain = SPINNER.sub("", CONTROL.sub("\n", chunk))
    texts = [line.strip() for line in re.split(r"[\r\n]+", plain)]
    return [text for text in texts if text]


def totals(texts: Sequence[str]) -> tuple[list[str], str]:
    """Every total that the progress named, where it differs from the one before, and the first that was passed."""
    found: list[str] = []
    passed = ""
    for text in texts:
        match = SPENT.search(text)
        if match is None:
            continue
        with contextlib.suppress(ValueError):  # Not times: "(3 of 5 processes)".
            if parse_duration(match[1]) > parse_duration(match[2]) and not passed:
                passed = f"{match[1]} of {match[2]}"
            if not found or found[-1] != match[2]:
                found.append(match[2])
    return found, passed


def parted(texts: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """The progress of the examination, and that of measuring the changed program, which has a time of its own
    (docs/commands.md, "Confirming the change")."""
    first = next((number for number, text in enumerate(texts) if CONFIRMING in text), len(texts))
    return texts[:first], texts[first:]


def promise(words: Sequence[str], setup: float, totals: Sequence[str] = ()) -> float:
    """Seconds that `doctor run` with these words may take by its documentation.

    The budget where one is given. Otherwise three minutes beyond the first start of the script, which took `setup`, and
    one more for explaining; or what it said after the first process that it would take, ten minutes at most. `totals`:
    those that the progress named.
    """
    own = words[: words.index("--")] if "--" in words else words
    for word, following in zip(own, [*own[1:], ""], strict=True):
        if word == "--budget":
            return parse_duration(following)
        if word.startswith("--budget="):
            return parse_duration(word.partition("=")[2])
    unasked = DEFAULT_BUDGET + setup + (0.0 if "--no-explain" in own else ALLOWANCE)
    told = max((parse_duration(each) for each in totals), default=0.0)
    return max(unasked, min(told, MOST))


def first_setup(report: dict[str, Any]) -> float:
    """Seconds that the first process took until its loop was found; 0 where none is recorded."""
    sessions = report["method"]["sessions"] if report else []
    return float(sessions[0]["setup_seconds"]) if sessions else 0.0


def confirmed(confirmation: dict[str, Any] | None) -> str:
    """The outcome of a confirmation with its figure, if it has one."""
    if confirmation is None:
        return ""
    figure = confirmation["speedup"]
    return confirmation["outcome"] + (f" {figure['estimate']:.2f}×" if figure is not None else "")


def place_of(finding: dict[str, Any] | None, folder: str) -> str:
    """File and line that a finding names, as seen from the program's folder; "" where it names none."""
    site = finding["site"] if finding is not None else None
    if site is None:
        return ""
    file = PurePath(site["file"])
    if file.is_absolute():
        # Of a library only its last folders matter.
        file = file.relative_to(folder) if file.is_relative_to(folder) else PurePath(*file.parts[-3:])
    return f"{file}:{site['line']}"


def outcome(row: Row) -> str:
    """A row's verdict in a word."""
    if row.failure:
        return "no report"
    if row.faster:
        return "faster"
    return "reason" if row.finding else "nothing"


def markdown(rows: Sequence[Row]) -> str:
    """The table as RESULTS shows it: what isn't as it should be in capitals."""
    head = ["repository", "revision", "verdict", "first finding", "place", "faster", "time", "over budget"]
    head += ["longest silence", "unchanged files", "clean processes"]
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for row in rows:
        cells = (
            row.name,
            row.revision,
            outcome(row),
            row.finding or "-",
            f"`{row.place}`" if row.place else "-",
            ", ".join(row.faster) or "-",
            f"{row.seconds:.0f} s",
            f"{row.over:+.1%}" if row.over <= OVER else f"**{row.over:+.1%}**",
            f"{row.silence:.0f} s" if row.silence <= SILENCE else f"**{row.silence:.0f} s**",
            "NO" if row.files else "yes",
            "NO" if row.processes else "yes",
        )
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


def sums(rows: Sequence[Row]) -> str:
    counts = {
        "a report of": sum(not row.failure for row in rows),
        "a finding in": sum(bool(row.finding) for row in rows),
        f"time kept to {OVER:.0%} in": sum(row.over <= OVER for row in rows),
        f"never silent for {SILENCE:.0f} s in": sum(row.silence <= SILENCE for row in rows),
        "unchanged files in": sum(not row.files for row in rows),
        "clean processes in": sum(not row.processes for row in rows),
    }
    return f"{len(rows)} programs: " + ", ".join(f"{what} {count}" for what, count in counts.items())


# -- one examination ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Clone:
    """A program's folder as git sees it. `name`: owner and name of the repository, with the folder within it."""

    top: Path
    name: str
    revision: str


def clone_of(folder: Path) -> Clone:
    """The clone that a folder lies in; without git, or a remote, the folder's own name and the revision "-"."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=False)
        return done.stdout.strip() if done.returncode == 0 else ""

    top, url = Path(git("rev-parse", "--show-toplevel") or folder), git("remote", "get-url", "origin")
    name = repository(url) or top.name
    within = folder.relative_to(top) if folder.is_relative_to(top) else Path()
    return Clone(top, "/".join((name, *within.parts)), git("rev-parse", "--short", "HEAD") or "-")


def repository(url: str) -> str:
    """Owner and name of the repository that a remote's URL names; "" for none."""
    return "/".join(re.split(r"[/:]", url.rstrip("/").removesuffix(".git"))[-2:])


class Watched:
    """`doctor` with its stderr read as it comes, through a pipe; or in a terminal, with all that a user has there."""

    def __init__(
        self, command: Sequence[str], folder: Path, environment: dict[str, str], out: IO[bytes], terminal: bool
    ) -> None:
        self.shown: list[tuple[float, str]] = []
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.begun = time.monotonic()
        self._read, write = pty.openpty() if terminal else os.pipe()
        if terminal:
            fcntl.ioctl(write, termios.TIOCSWINSZ, struct.pack("HHHH", *LINES_AND_COLUMNS, 0, 0))
        stdin, stdout = (write, write) if terminal else (subprocess.DEVNULL, out)
        try:
            self.process = subprocess.Popen(
                command, cwd=folder, env=environment, stdin=stdin, stdout=stdout, stderr=write
            )
        finally:
            os.close(write)

    def finish(self, limit: float) -> str:
        """Read until it ends, or end it after `limit` seconds; returns why it was ended, "" where it wasn't."""
        failure = ""
        os.set_blocking(self._read, False)
        try:
            while self._take() or self.process.poll() is None:
                if time.monotonic() - self.begun > limit and not failure:
                    failure = f"not done after {limit:.0f} s. "
                    self.process.terminate()  # It ends what it started; killing it would not.
                time.sleep(0.05)
        except BaseException:
            self.process.terminate()
            self.process.wait(60)
            raise
        finally:
            self.ended = time.monotonic()
            os.close(self._read)
        return failure

    def _take(self) -> bool:
        """Take what has come; whether there was anything."""
        took = b""
        with contextlib.suppress(OSError):  # Nothing there yet, or (a terminal's way of ending) nobody left to write.
            while piece := os.read(self._read, 1 << 16):
                took += piece
        now = time.monotonic()
        self.shown += [(now, text) for text in words_of(self._decoder.decode(took))]
        return bool(took)


def examine(folder: Path, clone: Clone, words: Sequence[str], reports: Path, terminal: bool) -> Row:
    """One examination of the program in `folder`, whose report goes below `reports`."""
    # A report of its own for each command, under a name that can be read.
    output = reports / re.sub(r"[^\w.-]+", "-", f"{clone.name}-{' '.join(words)}")[:120]
    shared = shared_memory()
    with tempfile.TemporaryDirectory(prefix="bdr-", dir="/tmp") as scratch, tempfile.TemporaryFile() as out:
        before = hashes(clone.top, without=UNSEEN)
        environment = {**os.environ, "TMPDIR": scratch, MARK: scratch}
        watched = Watched([*DOCTOR, "run", "-o", str(output), *words], folder, environment, out, terminal)
        failure = watched.finish(promise(words, 600.0) + GRACE)
        if watched.process.returncode and not failure:
            failure = f"exit code {watched.process.returncode}. "
        files = difference(before, hashes(clone.top, without=UNSEEN))
        processes = left_behind(scratch, shared, Path(scratch))
        out.seek(0)
        said = out.read().decode(errors="replace").strip() or " ".join(text for _, text in watched.shown[-8:])
    report: dict[str, Any] = {}
    if failure:
        failure += said[-800:]
    else:
        report = msgspec.json.decode((output / "report.json").read_bytes())
    quiet, after = silence(watched.shown, watched.begun, watched.ended)
    texts = [text for _, text in watched.shown]
    named, passed = totals(texts)
    examining, confirming = (totals(each)[0] for each in parted(texts))
    setup = first_setup(report)
    findings = report.get("findings", [])
    first = findings[0] if findings else None
    return Row(
        name=clone.name,
        revision=clone.revision,
        command=list(words),
        exit=watched.process.returncode,
        failure=failure,
        verdict=report["verdict"]["sentence"] if report else "",
        finding=first["id"] if first else "",
        sentence=first["sentence"] if first else "",
        place=place_of(first, str(folder)),
        findings=[each["id"] for each in findings],
        faster=[
            f"{each['id']} {each['speedup']['estimate']:.2f}×"
            for each in report.get("fixes", [])
            if each["status"] == "faster"
        ],
        warnings=[each["slug"] for each in report.get("warnings", [])],
        seconds=watched.ended - watched.begun,
        setup=setup,
        promised=promise(words, setup, examining) + max(map(parse_duration, confirming), default=0.0),
        confirmed=confirmed(report.get("confirmation")),
        totals=named,
        passed=passed,
        silence=quiet,
        silent_after=after,
        terminal=terminal,
        files=files,
        processes=processes,
        doctor=machine()["revision"],
    )


# -- the whole ---------------------------------------------------------------------------------------------------------


def told(row: Row) -> str:
    """One row in full, for whoever reads the report beside it."""
    lines = [f"{row.name}@{row.revision}: doctor run {shlex.join(row.command)}"]
    for what, text in (
        ("failed", row.failure),
        ("verdict", row.verdict),
        ("first finding", f"{row.finding}: {row.sentence}" if row.finding else "none"),
        ("place", row.place),
        ("all findings", ", ".join(row.findings)),
        ("faster", ", ".join(row.faster)),
        ("with the change made", row.confirmed),
        ("warnings", ", ".join(row.warnings)),
        ("time", f"{row.seconds:.1f} s, {row.over:+.1%} of {row.promised:.1f} s promised (set-up {row.setup:.1f} s)"),
        ("totals shown", ", ".join(row.totals)),
        ("total passed", row.passed),
        ("longest silence", f"{row.silence:.1f} s, after: {row.silent_after or 'the start'}"),
        ("files", row.files),
        ("left behind", row.processes),
        ("note", row.note),
    ):
        if text:
            lines.append(f"  {what}: {text}")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("folder", nargs="?", type=Path, metavar="FOLDER", help="where the program is started")
    parser.add_argument("--name", metavar="NAME@REVISION", help="instead of what git says of the folder")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep all rows here")
    parser.add_argument("--reports", type=Path, metavar="DIR", help="keep the whole reports here")
    parser.add_argument("--note", default="", metavar="TEXT", help="kept with the row; alone, for a row that is there")
    parser.add_argument("--terminal", action="store_true", help="run it in a terminal, not with pipes")
    parser.add_argument("--again", action="store_true", help="measure anew what the file holds already")
    parser.add_argument("--table", action="store_true", help="measure nothing, print the file's rows as Markdown")
    given = sys.argv[1:]
    cut = given.index("--") if "--" in given else len(given)
    options, words = parser.parse_args(given[:cut]), given[cut + 1 :]
    document = taken_up(options.json, {"format": FORMAT, "machines": [], "rows": []})
    rows = [Row(**each) for each in document["rows"]]
    if options.table:
        for seen in dict.fromkeys(machine_line(each) for each in document["machines"]):
            print(f"on {seen}")
        print(f"\n{markdown(rows)}\n\n{sums(rows)}")
        return 0 if rows and all(row.good for row in rows) else 1
    if options.folder is None or not words:
        parser.error("name a FOLDER, then -- and what stands after `doctor run`")
    folder = options.folder.resolve()
    clone = clone_of(folder)
    if options.name:
        name, _, revision = options.name.partition("@")
        clone = replace(clone, name=name, revision=revision or clone.revision)
    known = next((row for row in rows if (row.name, row.command) == (clone.name, words)), None)
    if known is not None and not options.again:
        row = replace(known, note=options.note or known.note)
    else:
        document["machines"].append(machine())
        with tempfile.TemporaryDirectory(prefix="real-") as kept:
            say(f"{clone.name}@{clone.revision}: doctor run {shlex.join(words)}")
            row = examine(folder, clone, words, (options.reports or Path(kept)).resolve(), options.terminal)
        row = replace(row, note=options.note)
    rows = [each for each in rows if (each.name, each.command) != (clone.name, words)] + [row]
    document["rows"] = [asdict(each) for each in rows]
    save(options.json, document)
    print(told(row))
    return 0 if row.good else 1


if __name__ == "__main__":
    sys.exit(main())
