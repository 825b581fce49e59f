"""The fixture `doctor`, in a pytest of its own, with a doctor that says what the test tells it to."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parents[1] / "golden" / "checks"

FAKE = """\
import json, os, sys
from pathlib import Path

arguments = sys.argv[1:]
Path("asked.json").write_text(json.dumps([arguments, os.getcwd(), sorted(os.environ)]))
print("the doctor's own words")
code = int(os.environ.get("FAKE_CODE", "0"))
if "FAKE_CHECK" in os.environ:
    Path(arguments[arguments.index("--json") + 1]).write_bytes(Path(os.environ["FAKE_CHECK"]).read_bytes())
sys.exit(code)
"""

USE = """
def test_speed(doctor):
    doctor.check("train.py", "--epochs", "1").assert_no_regression()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project, and a package that stands in for the doctor's command and has its real everything else."""
    package = tmp_path / "fake" / "bottleneck_doctor"
    package.mkdir(parents=True)
    import bottleneck_doctor

    real = Path(bottleneck_doctor.__file__).parent
    (package / "__init__.py").write_text(f"__path__.append({str(real)!r})\n__version__ = '0'\n")
    (package / "__main__.py").write_text(FAKE)
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "pytest.ini").write_text("[pytest]\n")
    return tmp_path


def run(folder: Path, test: str, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    (folder / "project" / "test_it.py").write_text(test)
    path = os.pathsep.join([str(folder / "fake"), os.environ.get("PYTHONPATH", "")])
    # By `-p` and not by its entry point, which is there only where this release is installed.
    command = [sys.executable, "-m", "pytest", "-p", "bottleneck_doctor.pytest_plugin", "-p", "no:cacheprovider"]
    return subprocess.run(
        [*command, *options, "test_it.py"],
        cwd=folder / "project",
        env={**os.environ, "PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )


def asked(folder: Path) -> tuple[list[str], str, list[str]]:
    import json

    arguments, cwd, environment = json.loads((folder / "project" / "asked.json").read_text())
    return arguments, cwd, environment


def test_a_check_that_passed(folder: Path) -> None:
    done = run(folder, USE, "--doctor-base-ref", "v1", FAKE_CHECK=str(GOLDEN / "passed.json"))
    assert done.returncode == 0, done.stdout + done.stderr
    arguments, cwd, environment = asked(folder)
    assert arguments[:2] == ["check", "--json"]
    assert arguments[3:] == ["--no-github", "--base-ref", "v1", "train.py", "--", "--epochs", "1"]
    assert Path(cwd) == folder / "project"
    assert not [name for name in environment if name.startswith("PYTEST_")]


def test_a_regression_fails_with_its_sentence(folder: Path) -> None:
    done = run(folder, USE, FAKE_CHECK=str(GOLDEN / "regressed.json"), FAKE_CODE="1")
    assert done.returncode == 1
    assert "A step takes 31 % longer than on origin/main" in done.stdout
    assert "the doctor's own words" in done.stdout
    assert "pytest_plugin.py" not in done.stdout, "no traceback of ours"


def test_a_check_that_could_not_be_made_fails(folder: Path) -> None:
    done = run(folder, USE, FAKE_CODE="2")
    assert done.returncode == 1
    assert "exit code 2" in done.stdout
    assert "the doctor's own words" in done.stdout


def test_no_answer_is_a_warning_or_a_failure(folder: Path) -> None:
    text = (GOLDEN / "passed.json").read_text().replace('"status": "passed"', '"status": "cannot_tell"')
    (folder / "check.json").write_text(text)
    given = str(folder / "check.json")
    done = run(folder, USE, FAKE_CHECK=given, FAKE_CODE="0")
    assert done.returncode == 0
    assert "DoctorWarning: A step has not become slower" in done.stdout
    strict = USE.replace("regression()", 'regression(inconclusive="fail")')
    assert run(folder, strict, FAKE_CHECK=given, FAKE_CODE="0").returncode == 1
    # The command ends so where the project's configuration asks for it.
    assert run(folder, USE, FAKE_CHECK=given, FAKE_CODE="3").returncode == 1
    mild = USE.replace("regression()", 'regression(inconclusive="pass")')
    assert run(folder, mild, FAKE_CHECK=given, FAKE_CODE="3").returncode == 0


def test_arguments_of_one_check(folder: Path) -> None:
    test = """
import pathlib
def test_speed(doctor, tmp_path):
    checked = doctor.check(
        pathlib.Path("a.py"), base_ref="v2", budget="2m", options=["--no-steady"], cwd=pathlib.Path.cwd())
    assert checked.check.status == "passed"
    assert "words" in checked.output
"""
    done = run(folder, test, FAKE_CHECK=str(GOLDEN / "passed.json"))
    assert done.returncode == 0, done.stdout
    arguments = asked(folder)[0]
    assert arguments[3:] == ["--no-github", "--base-ref", "v2", "--budget", "2m", "--no-steady", "a.py", "--"]


def test_it_costs_nothing_where_it_is_not_used(folder: Path) -> None:
    test = """
import sys
def test_nothing():
    heavy = {"torch", "msgspec", "jinja2", "click", "bottleneck_doctor.gate", "bottleneck_doctor.cli"}
    assert not heavy & set(sys.modules)
"""
    done = run(folder, test)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not (folder / "project" / "asked.json").exists()


def test_an_interrupted_test_ends_its_check(folder: Path) -> None:
    (folder / "fake" / "bottleneck_doctor" / "__main__.py").write_text(
        "import os, time\nfrom pathlib import Path\nPath('pid').write_text(str(os.getpid()))\ntime.sleep(60)\n"
    )
    test = """
import os, signal, threading, time
from pathlib import Path
import pytest

class Over(BaseException):
    pass

def test_speed(doctor):
    def over(number, frame):
        raise Over
    signal.signal(signal.SIGUSR1, over)
    def interrupt():
        while not Path("pid").exists() or not Path("pid").read_text():
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGUSR1)
    threading.Thread(target=interrupt).start()
    with pytest.raises(Over):
        doctor.check("train.py")
    with pytest.raises(ProcessLookupError):
        os.kill(int(Path("pid").read_text()), 0)
"""
    done = run(folder, test)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_entry_point_names_it() -> None:
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8")
    assert '[project.entry-points.pytest11]\nbottleneck_doctor = "bottleneck_doctor.pytest_plugin"' in text
