"""Records golden results: what `doctor run` really wrote of programs of this repository, scrubbed and thinned.

    python tests/golden/record.py                           examine all programs: a quarter of an hour, quiet
    python tests/golden/record.py pets                      that one
    python tests/golden/record.py pets --from report.json   keep a report that `doctor run` wrote of it already

Each is written as `NAME.json` beside this file. Scrubbed: folders, names of hosts, the time of day, the machine's
fingerprint. Thinned: series, call trees and lists of functions; figures keep five digits. Nothing else is touched.
What no machine at hand can record is made up, by `build.py`, and lies in `invented/`.
"""

from __future__ import annotations

import argparse
import json
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bottleneck_doctor.documents.report import Result, from_json, to_json
from bottleneck_doctor.render import thinning

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]

CHECKOUT = "/home/ada/bottleneck-doctor"
FOLDER = "/home/ada/work"
"""Stand for the folders of this repository and of the examination."""
CREATED = "2026-01-01T00:00:00+00:00"
FINGERPRINT = "0" * 16
USUAL = ("/home", "/media", "/opt", "/root", "/srv", "/tmp", "/var/tmp")
"""Folders that a sandbox covers on most machines; others say something of one."""
KNOWN = re.compile(rf"{CHECKOUT}|{FOLDER}|/home/ada/venv/|/usr/lib/|/dev/shm|/proc\b")
PATH = re.compile(r"(?<![\w./…~*])/[A-Za-z_][\w.@+-]*(?:/[\w.@+-]+)*")
DIGITS = 5
CLOCK = ("started", "ended")
"""Seconds by the machine's clock, of which five digits would not do; counted from the first window instead."""
POINTS = 120
FUNCTIONS = 20
LEAST = 0.01
"""Parts of a call tree with fewer of its samples are left out."""


# -- what is recorded --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GoldenRecording:
    """A program, how it is examined, and what the report has to show.

    `program`: the words behind the options, from the root of the repository. `interrupt`: words of the progress; Ctrl-C
    comes `after` seconds more.
    """

    program: Sequence[str]
    shows: Callable[[Result], bool]
    options: Sequence[str] = ()
    interrupt: str = ""
    after: float = 10.0


def fastest(result: Result) -> list[str]:
    return [fix.id for fix in result.fixes if fix.status == "faster"]


def interrupted(result: Result) -> bool:
    return any(warning.slug == "interrupted" for warning in result.warnings)


RECORDINGS = {
    "pets": GoldenRecording(
        ("examples/pets/train.py", "--", "examples/pets/config.json"),
        lambda result: bool(fastest(result) and result.combination and result.findings),
    ),
    "nothing-faster": GoldenRecording(
        ("benchmarks/planted/heavy_transform.py",),
        lambda result: result.baseline is not None and not fastest(result) and len(result.method.sessions) > 2,
    ),
    "bare-loop": GoldenRecording(
        ("benchmarks/planted/manual_update.py",),
        lambda result: result.baseline is not None and result.baseline.batch_size is None,
        ("--budget", "60s"),
    ),
    "interrupted": GoldenRecording(
        ("benchmarks/planted/quick_files.py", "--", "--data", "data"),
        lambda result: result.baseline is not None and interrupted(result),
        ("--budget", "60s"),
        interrupt="Measuring ",
    ),
    "no-baseline": GoldenRecording(
        ("benchmarks/planted/sleep_in_transform.py",),
        lambda result: result.baseline is None and bool(result.method.sessions),
        interrupt="Finding out where the time goes",
        after=6.0,
    ),
}


def record(recording: GoldenRecording) -> bytes:
    """Examine the program and return the report.json that was written."""
    with tempfile.TemporaryDirectory(prefix="recording-") as folder:
        script, *words = recording.program
        at_root = script.startswith("examples/")
        if not at_root:
            script = str(ROOT / script)
        output = Path(folder) / "report"
        command = [sys.executable, "-m", "bottleneck_doctor", "run", "-o", str(output), *recording.options]
        process = subprocess.Popen(
            [*command, script, *words],
            cwd=ROOT if at_root else folder,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
        assert process.stderr is not None
        for line in process.stderr:
            sys.stderr.write(line)
            if recording.interrupt and recording.interrupt in line:
                threading.Timer(recording.after, process.send_signal, [signal.SIGINT]).start()
        process.wait()
        return (output / "report.json").read_bytes()


# -- what is kept of it ------------------------------------------------------------------------------------------------


def scrubbed(data: bytes, hosts: Sequence[str] = ()) -> Result:
    """The result without what tells the machine: see above. `hosts`: names that must not be in it.

    Raises `ValueError` where a path or one of these names is left.
    """
    document = json.loads(data)
    entrypoint, method, environment = document["entrypoint"], document["method"], document["environment"]
    cwd, script = entrypoint["cwd"], entrypoint["argv"][0]
    folders = {cwd: FOLDER}
    checkout = re.match(r"(/.+?)/(?:benchmarks|examples)/", script)
    folders[checkout[1] if checkout else cwd] = CHECKOUT
    command = method["command"]
    if "-o" in command:
        command[command.index("-o") + 1] = "report"
    document["created"] = CREATED
    environment["fingerprint"] = FINGERPRINT
    environment["platform"] = re.sub(r"^(Linux-\d+\.\d+).*?(-x86_64|-aarch64)", r"\1\2", environment["platform"])
    if method.get("protection"):
        method["protection"]["covered"] = [each for each in method["protection"]["covered"] if each in USUAL]
    for rank in document.get("ranks", []):
        rank["host"] = f"host-{rank['rank'] - rank['local_rank']}"
    document = _mapped(document, folders)
    begun = min((window["started"] for window in document["windows"]), default=0.0)
    for window in document["windows"]:
        window["started"] = round(window["started"] - begun, 3)
        if window.get("ended") is not None:
            window["ended"] = round(window["ended"] - begun, 3)
    text = json.dumps(document, ensure_ascii=False)
    left = [path for path in PATH.findall(text) if not KNOWN.match(path) and path not in USUAL]
    left += [host for host in hosts if len(host) > 3 and re.search(rf"\b{re.escape(host)}\b", text)]
    if left:
        raise ValueError(f"this is left of the machine: {', '.join(sorted(set(left)))}")
    return from_json(text.encode(), source="the recording")


def _mapped(value: Any, folders: dict[str, str]) -> Any:
    """Texts with other folders, numbers with fewer digits."""
    if isinstance(value, str):
        return _moved(value, folders)
    if isinstance(value, float):
        return value if value == int(value) else float(f"{value:.{DIGITS}g}")
    if isinstance(value, list):
        return [_mapped(each, folders) for each in value]
    if isinstance(value, dict):
        return {
            _moved(name, folders): each if name in CLOCK and isinstance(each, float) else _mapped(each, folders)
            for name, each in value.items()
        }
    return value


def _moved(text: str, folders: dict[str, str]) -> str:
    text = re.sub(r"/[^\s\"'`(),:]*/lib/(python3\.\d+)/site-packages/", r"/home/ada/venv/lib/\1/site-packages/", text)
    text = re.sub(r"/(?!home/ada)[^\s\"'`(),:]*/lib/(python3\.\d+)/(?!site-packages)", r"/usr/lib/\1/", text)
    for folder in sorted(folders, key=len, reverse=True):
        text = re.sub(rf"{re.escape(folder)}(?![\w.-])", folders[folder], text)
    return text


def thinned(result: Result) -> Result:
    """With fewer points, functions and operators than were measured: a golden file is read by people as well."""
    profiles, used = result.profiles, result.utilization
    if used is not None:
        used = thinning.thinned(used, POINTS)
    if profiles is not None and profiles.sampling is not None:
        sampling = profiles.sampling
        trees = {role: thinning.pruned(tree, LEAST) for role, tree in sampling.trees.items()}
        sampling = replace(sampling, functions=sampling.functions[:FUNCTIONS], trees=trees)
        profiles = replace(profiles, sampling=sampling)
    if profiles is not None and profiles.device is not None:
        device = profiles.device
        device = replace(device, operators=device.operators[:FUNCTIONS], kernels=device.kernels[:FUNCTIONS])
        profiles = replace(profiles, device=device)
    return replace(result, utilization=used, profiles=profiles)


def keep(name: str, data: bytes) -> Path:
    """Write what is kept of a report of this name. Raises `ValueError` where it is none of it, or tells too much."""
    recording = RECORDINGS[name]
    result = thinned(scrubbed(data, [socket.gethostname()]))
    if Path(result.entrypoint.argv[0]).name != Path(recording.program[0]).name:
        raise ValueError(f"that is a report of {result.entrypoint.argv[0]}, not of {recording.program[0]}")
    if not recording.shows(result):
        raise ValueError(f"the report does not show what {name} is for: {result.verdict.sentence}")
    path = HERE / f"{name}.json"
    path.write_bytes(to_json(result))
    return path


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(RECORDINGS)}; all without one")
    parser.add_argument(
        "--from", dest="source", type=Path, metavar="FILE", help="a report.json that was written before"
    )
    options = parser.parse_args()
    if unknown := set(options.names) - set(RECORDINGS):
        parser.error(f"no recording is named {', '.join(sorted(unknown))}")
    if options.source and len(options.names) != 1:
        parser.error("--from needs the one name that the report is for")
    for name in options.names or RECORDINGS:
        data = options.source.read_bytes() if options.source else record(RECORDINGS[name])
        print(f"wrote {keep(name, data)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
