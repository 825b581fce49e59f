"""Every supported Python with the oldest torch that it runs and with the newest: `nox`, or one of them, as in
`nox -s "tests-3.10(torch2.4)"`. Each cell has an environment of its own under `.nox`, of several gigabytes."""

from __future__ import annotations

import re

import nox

nox.options.reuse_existing_virtualenvs = True
nox.options.error_on_missing_interpreters = False

NEWEST = "newest"
OLDEST = {"3.10": "2.4", "3.11": "2.4", "3.12": "2.4", "3.13": "2.6", "3.14": "2.9"}
"""The oldest torch for each Python: the oldest that we support, or the first with wheels for that Python."""
TORCHVISION = {"2.4": "0.19", "2.6": "0.21", "2.9": "0.24"}
"""The release that was built together with that torch."""
QUICK = ("tests/unit", "tests/process/test_run.py", "tests/process/test_windows.py")
"""What is run where nothing else is named behind a `--`."""
PROGRAMS = tuple(
    f"tests/process/test_{name}.py"
    for name in ("programs", "frameworks", "loggers", "handles", "clock", "console_commands", "ranks", "files")
)
"""What is run where all libraries are installed that programs are written with."""
NOT_FOR_TESTS = re.compile(r"build|lightning|mypy|nox|ruff|types-")


def add_cells(python: str, oldest: str) -> None:
    """The cells of one Python: `tests-3.10(torch2.4)` and `tests-3.10(torch-newest)`."""
    cells = [nox.param(python, oldest, id=f"torch{oldest}"), nox.param(python, NEWEST, id="torch-newest")]

    @nox.session(name=f"tests-{python}")
    @nox.parametrize(["python", "torch"], cells)
    def tests(session: nox.Session, torch: str) -> None:
        """Unit tests and the quick tests of processes; words behind `--` go to pytest."""
        project = nox.project.load_toml("pyproject.toml")["project"]
        libraries = [each for each in project["optional-dependencies"]["dev"] if not NOT_FOR_TESTS.match(each)]
        pair = ["torch", "torchvision"]
        if torch != NEWEST:
            pair = [f"torch=={torch}.*", f"torchvision=={TORCHVISION[torch]}.*"]
        # Named together, so that nothing else replaces the pair.
        session.install(*pair, "--editable", ".", *libraries)
        if session.posargs:
            session.run("python", "-m", "pytest", *session.posargs)
        else:
            # As `make test` does: two at a time, and then one by one what measures time.
            session.run("python", "-m", "pytest", "-n", "2", "--dist", "worksteal", "-m", "not alone", *QUICK)
            session.run("python", "-m", "pytest", "-m", "alone", *QUICK)


for each, oldest in OLDEST.items():
    add_cells(each, oldest)


@nox.session(default=False)
def programs(session: nox.Session) -> None:
    """Programs of many libraries, at their current versions: found, measured, and left as they were."""
    project = nox.project.load_toml("pyproject.toml")["project"]
    libraries = [each for each in project["optional-dependencies"]["dev"] if not NOT_FOR_TESTS.match(each)]
    session.install("--editable", ".[programs]", *libraries)
    session.run("python", "-m", "pytest", *(session.posargs or PROGRAMS), env={"SLOW_TESTS": "1"})
