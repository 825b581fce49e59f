"""Keys planted wherever a program may get them from: none reaches a file of ours or the terminal."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.process.driver import PRELUDE, write

from bottleneck_doctor.documents.report import Result, from_json
from bottleneck_doctor.errors import Exit

pytestmark = pytest.mark.process

PLANTED = {
    "variable": "planted-in-a-variable",
    "key in a variable": "hf_" + "PlantedKey" * 3,
    "argument": "planted-in-an-argument",
    "key in an argument": "sk-proj-" + "PlantedKey1" * 3,
    "URL": "planted-in-a-url",
    "configuration": "planted-in-a-configuration",
}
VARIABLES = {"HUB_TOKEN": PLANTED["variable"], "HUB_NOTE": PLANTED["key in a variable"]}
ARGUMENTS = (
    *("--config", "config.yaml", "--db", f"postgres://me:{PLANTED['URL']}@localhost/runs"),
    *("--api-key", PLANTED["argument"], "name=" + PLANTED["key in an argument"]),
)

TELLTALE = (
    PRELUDE
    + """
from torch.utils.data import get_worker_info

everything = " ".join([*sys.argv, os.environ["HUB_TOKEN"], os.environ["HUB_NOTE"], open("config.yaml").read()])
print("starting with", everything, flush=True)


class Telling(Rows):
    def __getitem__(self, index):
        if get_worker_info() is not None:
            raise RuntimeError("no workers with " + everything.replace("\\n", " "))
        source_marker = index
        return super().__getitem__(source_marker)


for epoch in range(100000):
    for number, batch in enumerate(DataLoader(Telling(400, 0.002), batch_size=4)):
        train_on(batch)
"""
)
CRASHING = TELLTALE.replace(
    "        train_on(batch)\n", "        train_on(batch)\n        if number == 5: raise RuntimeError(everything)\n"
)


def examine(folder: Path, text: str, *options: str) -> subprocess.CompletedProcess[str]:
    write(folder, text)
    (folder / "config.yaml").write_text(f"hub:\n  password: {PLANTED['configuration']}\n  lr: 0.1\n")
    return subprocess.run(
        [sys.executable, "-m", "bottleneck_doctor", "run", "-o", "out", *options, "train.py", "--", *ARGUMENTS],
        cwd=folder,
        env={**os.environ, **VARIABLES},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=170,
    )


def told(folder: Path, done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """Everything of ours that can be read: each file beside the program and what the terminal showed."""
    texts = {"stdout": done.stdout, "stderr": done.stderr}
    for path in folder.rglob("*"):
        if path.is_file() and path.name not in ("train.py", "config.yaml") and path.suffix != ".pyc":
            data = path.read_bytes()
            data = gzip.decompress(data) if path.suffix == ".gz" else data
            texts[path.name] = data.decode(errors="replace")
    return texts


def assert_kept_secret(texts: dict[str, str]) -> None:
    found = [(name, kind) for name, text in texts.items() for kind, value in PLANTED.items() if value in text]
    assert not found, found


def report(folder: Path) -> Result:
    return from_json((folder / "out" / "report.json").read_bytes(), source="report.json")


def test_a_script_that_crashes_with_keys_in_its_last_words(tmp_path: Path) -> None:
    done = examine(tmp_path, CRASHING, "--budget", "30s")
    assert done.returncode == Exit.ENTRYPOINT_FAILED, done.stderr
    assert_kept_secret(told(tmp_path, done))
    assert "RuntimeError: train.py --config config.yaml" in done.stderr
    assert "raise RuntimeError(everything)" in done.stderr
    assert "postgres://***@localhost/runs" in done.stderr


@pytest.mark.slow(together=True)
def test_a_script_that_crashes_without_its_source(tmp_path: Path) -> None:
    done = examine(tmp_path, CRASHING, "--budget", "30s", "--no-source")
    assert done.returncode == Exit.ENTRYPOINT_FAILED, done.stderr
    assert "RuntimeError: train.py --config config.yaml" in done.stderr
    assert "train.py" in done.stderr
    assert "raise RuntimeError(everything)" not in done.stderr


def test_a_report_and_a_talkative_terminal(tmp_path: Path) -> None:
    done = examine(tmp_path, TELLTALE, "--budget", "25s", "--no-explain", "--only", "workers", "-v")
    assert done.returncode == Exit.DONE, done.stderr
    texts = told(tmp_path, done)
    assert {"report.json", "report.html"} <= set(texts)
    assert_kept_secret(texts)
    assert "starting with train.py --config config.yaml" in done.stderr
    result = report(tmp_path)
    shown = ["--config", "config.yaml", "--db", "postgres://***@localhost/runs", "--api-key", "***", "name=***"]
    assert result.entrypoint.argv == ["train.py", *shown]
    assert result.method.command[-len(shown) :] == shown
    assert set(result.environment.variables).isdisjoint(VARIABLES)
    assert "fill it in" in done.stdout
    reasons = [fix.reason for fix in result.fixes if fix.status == "failed"]
    assert any("no workers with" in reason for reason in reasons), result.fixes


@pytest.mark.slow(together=True)
@pytest.mark.timeout(240)
def test_an_explained_report_without_source(tmp_path: Path) -> None:
    done = examine(tmp_path, TELLTALE, "--budget", "60s", "--no-source")
    assert done.returncode == Exit.DONE, done.stderr
    texts = told(tmp_path, done)
    assert_kept_secret(texts)
    assert "__getitem__" in texts["report.json"]  # Names of functions are told …
    for marker in (
        "source_marker",
        "enumerate(DataLoader(Telling",
        "everything.replace",
    ):  # … and what is in them is not.
        assert not [name for name, text in texts.items() if marker in text], marker
    result = report(tmp_path)
    assert not result.method.source
    assert "--no-source" in result.method.command
    # What a busy machine leaves no time for is named as missing.
    profiles = result.profiles
    assert profiles is not None, result.warnings
    files = profiles.sampling.files if profiles.sampling is not None else []
    files = files + (profiles.lines.files if profiles.lines is not None else [])
    files = files + (profiles.device.files if profiles.device is not None else [])
    assert files, profiles.missing
    assert {Path(file).name for file in files} <= set(texts)
    if profiles.lines is not None:
        assert not any(line.text for listing in profiles.lines.listings for line in listing.lines)
