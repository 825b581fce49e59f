"""The pytest plugin: a fixture `doctor` that runs `doctor check` as a test.

    def test_speed(doctor):
        doctor.check("train.py", "--epochs", "1").assert_no_regression()

It is imported at the start of every pytest where bottleneck-doctor is installed, so it costs nothing until a test asks
for the fixture: the check runs as a command of its own, and what it found is read from its `--json` file.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from bottleneck_doctor.documents.check import Check

PATIENCE = 15.0
"""Seconds that a check has to end its sessions once it was told to stop."""

_CANNOT_TELL = 3
_MADE_A_CHECK = (0, 1, _CANNOT_TELL)
"""Exit codes after which there is an outcome: passed, regressed, cannot tell."""


class DoctorWarning(UserWarning):
    """A check that passed without an answer: too little could be measured to tell, or there was nothing to compare."""


@dataclass(frozen=True)
class Checked:
    """The outcome of one check: its document (docs/check.schema.json), all that the command printed, and how it ended
    (docs/commands.md)."""

    check: Check
    output: str
    exit_code: int

    def assert_no_regression(self, *, inconclusive: str | None = None) -> None:
        """Fail the test where a metric of level `error` is worse than its threshold allows.

        A check that can't tell passes with a `DoctorWarning`, or fails: as `inconclusive` says, "pass" or "fail", and
        as the project's configuration does where it is None.
        """
        __tracebackhide__ = True
        if inconclusive not in (None, "pass", "fail"):
            raise ValueError(f'inconclusive is "pass" or "fail", not {inconclusive!r}')
        status, sentence = self.check.status, self.check.sentence
        strict = self.exit_code == _CANNOT_TELL if inconclusive is None else inconclusive == "fail"
        if status == "regressed" or (status == "cannot_tell" and strict):
            pytest.fail(f"{sentence}\n\n{self.output}".rstrip(), pytrace=False)
        if status != "passed":
            warnings.warn(DoctorWarning(sentence), stacklevel=2)


class Doctor:
    """What a test gets as `doctor`. `base_ref` and `budget`: as the command line of pytest gave them."""

    def __init__(self, folder: Path, base_ref: str | None, budget: str | None) -> None:
        self._folder = folder
        self._base_ref = base_ref
        self._budget = budget

    def check(
        self,
        script: str | os.PathLike[str],
        *arguments: str,
        base_ref: str | None = None,
        budget: str | None = None,
        options: Sequence[str] = (),
        cwd: str | os.PathLike[str] | None = None,
    ) -> Checked:
        """Check `script` with its `arguments` against `base_ref`, in the folder `cwd` (pytest's root folder).

        `--doctor-base-ref` wins over `base_ref`; without either it is as the project's configuration says.
        `options`: more options of `doctor check`. A check that could not be made fails the test with its message.
        """
        __tracebackhide__ = True
        with tempfile.TemporaryDirectory(prefix="doctor-pytest-") as scratch:
            document = Path(scratch) / "check.json"
            command = [sys.executable, "-m", "bottleneck_doctor", "check", "--json", str(document), "--no-github"]
            for option, value in (
                ("--base-ref", self._base_ref or base_ref),
                ("--budget", self._budget or budget),
            ):
                command += [] if value is None else [option, value]
            command += [*options, os.fspath(script), "--", *map(str, arguments)]
            code, output = _run(command, self._folder if cwd is None else Path(cwd))
            if code not in _MADE_A_CHECK or not document.exists():
                pytest.fail(f"doctor check ended with exit code {code}:\n\n{output}".rstrip(), pytrace=False)
            from bottleneck_doctor.documents.check_json import from_json

            return Checked(from_json(document.read_bytes(), source=str(document)), output, code)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options that hold for every check of the session."""
    group = parser.getgroup("bottleneck-doctor")
    group.addoption("--doctor-base-ref", metavar="REF", help="The revision that the fixture `doctor` compares with.")
    group.addoption("--doctor-budget", metavar="TIME", help="How long each check of the fixture `doctor` may take.")


@pytest.fixture
def doctor(request: pytest.FixtureRequest) -> Doctor:
    """Runs `doctor check`: `doctor.check("train.py", "--epochs", "1").assert_no_regression()`."""
    config = request.config
    return Doctor(config.rootpath, config.getoption("--doctor-base-ref"), config.getoption("--doctor-budget"))


def _run(command: list[str], folder: Path) -> tuple[int, str]:
    """Exit code and output. Interrupted, by a user or by a timeout, it ends the check before it goes on."""
    # What pytest sets for itself is no part of the training that is measured.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    with tempfile.TemporaryFile() as output:
        with subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        ) as process:
            try:
                process.wait()
            except BaseException:
                process.terminate()
                try:
                    process.wait(PATIENCE)
                except subprocess.TimeoutExpired:
                    process.kill()
                raise
        output.seek(0)
        return process.returncode, output.read().decode("utf-8", "replace")
