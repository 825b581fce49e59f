"""Only a test that measures time is tried again, every retry is named, and many of them fail the run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.retries import MOST_RETRIED

ROOT = Path(__file__).parents[2]
CONFTEST = """
from tests import quiet, retries
from tests.retries import pytest_runtest_setup, pytest_sessionfinish, pytest_terminal_summary

quiet.wait_until_quiet = lambda seconds: None


def pytest_configure(config):
    for name in ("alone", "sleeping", "timed"):
        config.addinivalue_line("markers", name)


def pytest_collection_modifyitems(items):
    for item in items:
        retries.allow(item)
"""
TESTS = """
import pytest

tries = []


@pytest.mark.{marker}
@pytest.mark.parametrize("number", range({count}))
def test_second_try(number):
    tries.append(number)
    assert tries.count(number) > 1
"""
SHOWN = """
def pytest_collection_finish(session):
    for item in session.items:
        print("MARKS", ",".join(mark.name for mark in item.iter_markers()) or "none", item.nodeid)
"""


def run(folder: Path, marker: str, count: int, *options: str) -> subprocess.CompletedProcess[str]:
    """A run of that many tests, each of which passes at its second try only."""
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_it.py").write_text(TESTS.format(marker=marker, count=count))
    command = [sys.executable, "-m", "pytest", "-c", os.devnull, "--rootdir", str(folder), "-p", "no:cacheprovider"]
    mine = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment = {**mine, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [*command, *options, str(folder)], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("marker", ["alone", "sleeping", "timed"])
def test_what_measures_time_is_tried_again_and_named(tmp_path: Path, marker: str) -> None:
    done = run(tmp_path, marker, 1)
    assert done.returncode == 0, done.stdout
    named = done.stdout.partition("tests that needed another try")[2]
    assert named.count("test_it.py::test_second_try[0]") == 1
    assert "FAILED" not in named


def test_any_other_test_fails_at_once(tmp_path: Path) -> None:
    done = run(tmp_path, "usefixtures()", 1)
    assert done.returncode == 1
    assert "1 failed" in done.stdout
    assert "another try" not in done.stdout


def test_a_handful_of_retries_passes(tmp_path: Path) -> None:
    assert run(tmp_path, "alone", MOST_RETRIED).returncode == 0


@pytest.mark.parametrize("options", [(), ("-n", "2")])
def test_more_than_a_handful_fails_the_run(tmp_path: Path, options: tuple[str, ...]) -> None:
    done = run(tmp_path, "alone", MOST_RETRIED + 1, *options)
    assert done.returncode == 1, done.stdout
    assert f"{MOST_RETRIED + 1} passed" in done.stdout
    assert f"FAILED: {MOST_RETRIED + 1} tests needed another try, and at most {MOST_RETRIED} may" in done.stdout


def test_marks_of_this_project_s_tests(tmp_path: Path) -> None:
    """Nothing but the three markers lets a test be tried again. What is computed from seeds has neither."""
    (tmp_path / "shown_marks.py").write_text(SHOWN)
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "-p", "shown_marks"]
    done = subprocess.run(
        [*command, "tests/process", "tests/truth"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line.split(" ", 2)[1:] for line in done.stdout.splitlines() if line.startswith("MARKS ")]
    marks = {name: set(words.split(",")) for words, name in rows}
    for name, words in marks.items():
        assert ("flaky" in words) == bool({"alone", "sleeping", "timed"} & words), name
    assert all("flaky" not in words for name, words in marks.items() if "truth/test_stats_coverage.py::" in name)
    assert all("flaky" in words for name, words in marks.items() if "tests/process/test_files.py::" in name)
