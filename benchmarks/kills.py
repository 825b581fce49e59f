"""Is anything left, or changed, after a process of an examination was killed at a random moment?

    python benchmarks/kills.py --kills 100 --json kills.json

Examines a small program that writes its files as it trains (checkpoints, logs, a database, files that are replaced and
removed), in a folder, a home and a folder for temporary files of its own. At a random moment the supervisor, the guest
or a loader worker gets SIGKILL, SIGTERM or SIGINT. Then the examination may come to its end; after `kill -9` of the
supervisor, which nothing can clean up after, another `doctor run` is started, as the next one of the user's would be.
At last every file, process, shared memory segment, socket and temporary folder is compared with what was there before.

In every second pair of kills workers are started by spawn, so that Python keeps semaphores with names for them. Every
other kill finds the doctor without the right to build a sandbox (only root can take it away), so that the guard
that puts files back is killed as often as the sandbox is. Exit code 1 where anything is left or changed.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import random
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil
from _common import DOCTOR, machine, machine_line, save, say, table, taken_up
from _remains import MARK, difference, hashes, left_behind, processes, shared_memory

FORMAT = 2
BUDGET = {"fork": 9.0, "spawn": 16.0}
"""Seconds of an examination, by how its workers start: it ends and starts several processes in them."""
LATER = 2.0
"""Seconds beyond those until which a moment is drawn: some fall behind the end."""
EXPECTED = (0, 4, 124, 130, -signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT)
"""Exit codes that make sense: 4 where the script's own worker died before it was measured, 124 where too little time
was left after that, a signal's own where it came before the doctor had begun."""
GRACE = 45.0
"""Seconds beyond which an examination that should have ended hangs."""
VICTIMS = ("supervisor", "guest", "worker")
SIGNALS = ("SIGKILL", "SIGTERM", "SIGINT")
_PR_CAPBSET_DROP, _CAP_SYS_ADMIN = 24, 21
"""From linux/prctl.h and linux/capability.h."""

PROGRAM = """
import os, shutil, sqlite3, sys, time
from pathlib import Path

import torch
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)


class Rows(Dataset):
    def __len__(self):
        return 160

    def __getitem__(self, index):
        time.sleep(0.002)
        return torch.ones(2000) * index


def save(number):
    torch.save(model.state_dict(), "model.pt")
    torch.save({"step": number}, "checkpoint.tmp")
    os.replace("checkpoint.tmp", "checkpoint.pt")
    with open("log.txt", "a") as log:
        log.write(f"step {number}\\n")
    with sqlite3.connect("tracking.db") as database:
        database.execute("create table if not exists metrics (step)")
        database.execute("insert into metrics values (?)", [number])
    os.makedirs(f"runs/{number}", exist_ok=True)
    Path(f"runs/{number}/done").touch()
    shutil.rmtree("old", ignore_errors=True)
    (Path.home() / ".cache").mkdir(exist_ok=True)
    (Path.home() / ".cache" / "weights").write_text(str(number))
    (Path.home() / ".settings").write_text(str(number))


if __name__ == "__main__":
    model = torch.nn.Linear(2000, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    loader = DataLoader(
        Rows(),
        batch_size=4,
        num_workers=1,
        multiprocessing_context=sys.argv[1],
        persistent_workers=sys.argv[1] == "spawn",
    )
    number = 0
    for epoch in range(100000):
        for rows in loader:
            optimizer.zero_grad()
            model(rows).mean().backward()
            optimizer.step()
            number += 1
            if number % 4 == 0:
                save(number)
"""


@dataclass(frozen=True)
class Draw:
    """Who is to be killed, how, and when."""

    victim: str
    signal: str
    protection: str
    started_by: str
    """How workers start."""
    moment: float
    """Seconds after the start of the doctor."""

    def __str__(self) -> str:
        return f"{self.victim} {self.signal} ({self.protection}, {self.started_by}) after {self.moment:.1f} s"


@dataclass(frozen=True)
class Kill(Draw):
    """One killed examination. Texts are "" where all is as it should be, else they say what is not."""

    hit: str
    """Who got the signal in the end: `nobody`, where the examination was over by then."""
    code: int
    files: str
    left: str
    failure: str

    @property
    def good(self) -> bool:
        return not (self.files or self.left or self.failure)


def kill_once(draw: Draw) -> Kill:
    """One examination with one kill."""
    with tempfile.TemporaryDirectory(prefix="bdk-", dir="/tmp") as name:
        scratch = Path(name)
        folder, home, temporary = scratch / "program", scratch / "home", scratch / "tmp"
        _lay_out(folder, home)
        temporary.mkdir()
        environment = {**os.environ, "HOME": str(home), "TMPDIR": str(temporary), MARK: name}
        words = [
            "run",
            "--budget",
            f"{BUDGET[draw.started_by]:g}s",
            "--no-explain",
            "--only",
            "workers",
            "-o",
            str(scratch / "report"),
        ]
        before, shared = hashes(folder, home), shared_memory()
        with open(scratch / "said", "wb") as said:
            doctor = subprocess.Popen(
                [*DOCTOR, *words, "train.py", "--", draw.started_by],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_without_the_right_to_mount if draw.protection == "guard" else None,
            )
        time.sleep(draw.moment)
        hit = _strike(doctor, name, draw.victim, getattr(signal, draw.signal))
        failure = ""
        try:
            code = doctor.wait(GRACE)
        except subprocess.TimeoutExpired:
            failure = f"not done {GRACE:.0f} s after the kill"
            doctor.kill()
            code = doctor.wait()
        output = (scratch / "said").read_text(errors="replace")
        if "[bug]" in output or code not in EXPECTED:
            failure = failure or f"it fell over itself: {output.strip()[-400:]}"
        if code == -signal.SIGKILL:
            _next_examination(scratch, environment)
        return Kill(
            **asdict(draw),
            hit=hit,
            code=code,
            files=difference(before, hashes(folder, home)),
            left=left_behind(name, shared, temporary),
            failure=failure,
        )


def _lay_out(folder: Path, home: Path) -> None:
    """The program, with remains of an earlier run."""
    (folder / "old").mkdir(parents=True)
    home.mkdir()
    (folder / "train.py").write_text(textwrap.dedent(PROGRAM))
    (home / ".settings").write_text("mine")
    for name in ("model.pt", "checkpoint.pt", "log.txt", "old/model.pt"):
        (folder / name).write_text(f"{name} of last week")


def _without_the_right_to_mount() -> None:
    ctypes.CDLL(None).prctl(_PR_CAPBSET_DROP, _CAP_SYS_ADMIN, 0, 0, 0)


def _strike(doctor: subprocess.Popen[bytes], mark: str, victim: str, number: signal.Signals) -> str:
    """Send the signal. Who is not there yet is waited for; the guest stands in for workers that never come."""
    deadline = time.monotonic() + 3.0
    while doctor.poll() is None:
        found = _found(doctor.pid, mark)
        wanted = victim if found.get(victim) else "guest" if time.monotonic() > deadline else ""
        for each in found.get(wanted, [])[:1]:
            try:
                each.send_signal(number)
            except psutil.Error:
                continue
            return wanted
        time.sleep(0.005)
    return "nobody"


_TRAINING = ("train.py", "multiprocessing.spawn")
"""In the command lines of the guest and its workers."""


def _found(doctor: int, mark: str) -> dict[str, list[psutil.Process]]:
    """The processes of an examination by what they are; workers are the guest's own children."""
    found: dict[str, list[psutil.Process]] = {"supervisor": [], "guest": [], "worker": []}
    for process, command in processes(mark):
        try:
            if process.pid == doctor:
                found["supervisor"].append(process)
            elif "bottleneck_doctor" not in " ".join(command) and any(name in " ".join(command) for name in _TRAINING):
                found["guest" if process.ppid() == doctor else "worker"].append(process)
        except psutil.Error:
            continue
    return found


def _next_examination(scratch: Path, environment: dict[str, str]) -> None:
    """What the user's next `doctor run` does first is to clear up."""
    script = scratch / "other.py"
    script.write_text("print('nothing to train')\n")
    command = [*DOCTOR, "run", "-q", "-o", str(scratch / "other"), str(script)]
    subprocess.run(command, cwd=scratch, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)


# -- the whole ---------------------------------------------------------------------------------------------------------


def drawn(count: int, seed: int) -> list[Draw]:
    """All kinds of kills in turn, in random order, at random moments."""
    generator = random.Random(seed)
    kinds = [(victim, number) for victim in VICTIMS for number in SIGNALS]
    chosen: list[tuple[str, str]] = []
    while len(chosen) < count:
        generator.shuffle(kinds)
        chosen += kinds
    sandboxes = ("sandbox", "guard") if os.geteuid() == 0 else ("sandbox",)
    made = []
    for index, (victim, number) in enumerate(chosen[:count]):
        started_by = ("fork", "spawn")[index // 2 % 2]
        moment = generator.uniform(0.1, BUDGET[started_by] + LATER)
        made.append(Draw(victim, number, sandboxes[index % len(sandboxes)], started_by, moment))
    return made


def report_text(kills: Sequence[Kill]) -> str:
    """The table by victim and signal, and in full what is not as it should be."""
    rows = []
    for victim in VICTIMS:
        for number in SIGNALS:
            these = [each for each in kills if (each.victim, each.signal) == (victim, number)]
            if not these:
                continue
            codes = Counter(each.code for each in these)
            rows.append(
                [
                    victim,
                    number,
                    str(len(these)),
                    str(sum(each.hit == victim for each in these)),
                    ", ".join(f"{code} ({count})" for code, count in sorted(codes.items())),
                    str(sum(bool(each.files) for each in these)),
                    str(sum(bool(each.left) for each in these)),
                    str(sum(bool(each.failure) for each in these)),
                ]
            )
    head = ["who", "signal", "kills", "met", "exit codes", "files changed", "something left", "fell over"]
    told = [
        f"{each}, exit {each.code}: {text}" for each in kills for text in (each.files, each.left, each.failure) if text
    ]
    good = sum(each.good for each in kills)
    return "\n".join([table(head, rows, left=2), "", *told, f"nothing left, nothing changed: {good} of {len(kills)}"])


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--minutes", type=float, help="begin no kill after so many; the same command goes on from there"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep everything here; taken up again if it exists")
    options = parser.parse_args()
    fresh: dict[str, Any] = {"format": FORMAT, "seed": options.seed, "machines": [], "kills": []}
    document = taken_up(options.json, fresh, ["seed"])
    document["machines"].append(machine())
    # Shells start background jobs with SIGINT ignored, and whoever is started by these ignores it as well.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    begun = time.monotonic()
    interrupted = False
    try:
        for draw in drawn(options.kills, options.seed)[len(document["kills"]) :]:
            if options.minutes is not None and time.monotonic() - begun > 60 * options.minutes:
                interrupted = True
                break
            kill = kill_once(draw)
            document["kills"].append(asdict(kill))
            save(options.json, document)
            how = "as it should be" if kill.good else f"NOT as it should be: {kill.files} {kill.left} {kill.failure}"
            say(f"{len(document['kills'])}: {draw}, met {kill.hit}: {how}")
    except KeyboardInterrupt:
        interrupted = True
    kills = [Kill(**each) for each in document["kills"]]
    print("Kills: a process of an examination killed at a random moment\n")
    for seen in document["machines"]:
        print(f"on {machine_line(seen)}")
    print()
    print(report_text(kills) if kills else "nobody was killed")
    if interrupted:
        print("\ninterrupted: the same command with --json goes on")
        return 130
    return 0 if kills and all(kill.good for kill in kills) else 1


if __name__ == "__main__":
    sys.exit(main())
