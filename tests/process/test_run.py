"""`doctor run` from end to end: what it writes, says and returns, and that nothing stays behind however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from tests.process.driver import PRELUDE, wait_until, write

from bottleneck_doctor.documents.report import Result, from_json
from bottleneck_doctor.errors import Exit
from bottleneck_doctor.profiling.pyspy import find_tool

pytestmark = pytest.mark.process

SLEEPING = (
    PRELUDE
    + """
class Slow(Rows):
    def __getitem__(self, index):
        time.sleep(0.004)
        return super().__getitem__(index)


for epoch in range(100000):
    for batch in DataLoader(Slow(400), batch_size=4):
        train_on(batch)
        time.sleep(0.004)
"""
)
"""A step is 20 ms, of which the data take 16; with two workers it is 8 ms, with four 4 ms."""

DOCTOR = [sys.executable, "-m", "bottleneck_doctor"]


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*DOCTOR, "run", *arguments], cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=170
    )


def report(folder: Path) -> Result:
    return from_json((folder / "report.json").read_bytes(), source="report.json")


@pytest.mark.slow  # `tests/truth` promises the same of a program like it.
def test_slow_data_are_found_and_measured(tmp_path: Path) -> None:
    write(tmp_path, SLEEPING)
    others = ("--skip", "cached-samples")  # It brings more, and is no edit of the call that makes the loader.
    done = run("--budget", "55s", "--no-explain", "--seed", "1", *others, "-o", "out", "train.py", cwd=tmp_path)
    assert done.returncode == Exit.DONE, done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "train.py"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "report-artifacts",
        "report.html",
        "report.json",
    ]
    result = report(tmp_path / "out")
    outcomes = {outcome.id: outcome for outcome in result.fixes}
    workers = outcomes["workers"]
    assert workers.status == "faster"
    assert workers.speedup is not None
    assert workers.speedup.sessions >= 3
    assert 1.5 < workers.speedup.low <= workers.speedup.estimate <= workers.speedup.high
    assert workers.change is not None
    assert f"num_workers={workers.setting['num_workers']}" in workers.change.diff
    assert Path(workers.change.file) == tmp_path / "train.py"
    assert outcomes["no-workers"].status == "not_applicable"
    assert outcomes["pinned-memory"].reason
    assert result.baseline is not None
    assert result.baseline.data_wait_share is not None
    assert 0.5 < result.baseline.data_wait_share < 1
    assert result.baseline.batch_size == 4
    assert result.ceilings["synthetic"].estimate > 1.5
    assert result.verdict.fix in outcomes
    assert "faster" in result.verdict.sentence
    assert "report.html" in done.stdout
    assert {record.ended for record in result.method.sessions} <= {"told to end", "the time was over"}
    html = (tmp_path / "out" / "report.html").read_text()
    assert "num_workers" in html
    applied_and_taken_back(tmp_path, f"num_workers={workers.setting['num_workers']}")


def applied_and_taken_back(folder: Path, wanted: str) -> None:
    """The change that the report in `out` promises goes into train.py, by its patch and by `doctor apply`."""
    train = folder / "train.py"
    before = train.read_text()
    assert wanted not in before
    for there, back in (
        (["git", "apply", "out/report-artifacts/fix.patch"], ["git", "apply", "-R", "out/report-artifacts/fix.patch"]),
        ([*DOCTOR, "apply", "out"], [*DOCTOR, "apply", "out", "--undo"]),
    ):
        subprocess.run(there, cwd=folder, check=True, capture_output=True)
        assert wanted in train.read_text()
        subprocess.run(back, cwd=folder, check=True, capture_output=True)
        assert train.read_text() == before


@pytest.mark.slow(together=True)
def test_script_that_ends_is_started_again(tmp_path: Path) -> None:
    write(tmp_path, SLEEPING.replace("100000", "1"))
    done = run("--budget", "20s", "--no-explain", "--only", "workers", "-q", "train.py", cwd=tmp_path)
    assert done.returncode == Exit.DONE, done.stderr
    result = report(tmp_path)
    assert result.baseline is not None
    assert len(result.method.sessions) > 1


@pytest.mark.slow(together=True)
def test_a_long_pause_after_an_epoch_is_not_waited_for(tmp_path: Path) -> None:
    """Epochs of four seconds, and a minute and a half after each: no window could be taken after the first pause."""
    pausing = """
loader = DataLoader(Rows(400, 0.01), batch_size=4)
for epoch in range(100):
    for batch in loader:
        train_on(batch)
    time.sleep(90)
"""
    write(tmp_path, PRELUDE + pausing)
    done = run("--budget", "60s", "--no-explain", "--only", "workers", "-q", "train.py", cwd=tmp_path)
    assert done.returncode == Exit.DONE, done.stderr
    sessions = report(tmp_path).method.sessions
    assert len(sessions) > 1
    assert "did something other than training for long" in sessions[0].ended
    assert sessions[0].seconds < 40


# -- what is wrong with what was given -------------------------------------------------------------------------------


def refused(
    tmp_path: Path, *arguments: str, exit_code: int, slug: str, reports: bool = False
) -> subprocess.CompletedProcess[str]:
    """`reports`: a report may be written all the same, for what was seen by then."""
    before = sorted(tmp_path.rglob("*"))
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == exit_code, (done.stdout, done.stderr)
    said = [line for line in done.stderr.splitlines() if line.startswith("doctor: ")]
    assert len(said) == 1, done.stderr
    assert said[0].endswith(f"[{slug}]")
    assert "bottleneck_doctor/" not in done.stderr
    left = {path for path in sorted(tmp_path.rglob("*")) if path not in before}
    tops = {path.relative_to(tmp_path).parts[0] for path in left}
    assert tops <= {"__pycache__", *(["doctor-report"] if reports else [])}
    return done


@pytest.mark.parametrize(
    ("arguments", "slug"),
    [
        (["missing.py"], "script-missing"),
        (["folder"], "script-is-directory"),
        (["data.bin"], "script-not-python"),
        (["--warp", "train.py"], "usage"),
        (["--budget", "soon", "train.py"], "usage"),
        (["-o", "train.py/out", "train.py"], "output-unwritable"),
        (["--only", "magic", "train.py"], "unknown-fix"),
    ],
)
def test_bad_input_is_refused_before_anything_starts(tmp_path: Path, arguments: list[str], slug: str) -> None:
    write(tmp_path, "raise SystemExit('must not be started')\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "data.bin").write_bytes(bytes(range(256)))
    done = refused(tmp_path, *arguments, exit_code=Exit.USAGE, slug=slug)
    assert "must not be started" not in done.stdout + done.stderr


def test_broken_syntax(tmp_path: Path) -> None:
    write(tmp_path, "def broken(:\n", "broken.py")
    refused(tmp_path, "broken.py", exit_code=Exit.ENTRYPOINT_FAILED, slug="script-syntax")


def test_script_that_exits_with_its_own_code(tmp_path: Path) -> None:
    write(tmp_path, "import sys\nprint('no GPU, giving up')\nsys.exit(7)\n")
    done = refused(tmp_path, "train.py", exit_code=Exit.ENTRYPOINT_FAILED, slug="entrypoint-failed")
    assert "no GPU, giving up" in done.stderr


@pytest.mark.parametrize("step", [3, pytest.param(9, marks=pytest.mark.slow(together=True))])
def test_script_that_fails_by_itself(tmp_path: Path, step: int) -> None:
    loop = f"""
def step(number, batch):
    if number == {step}:
        raise RuntimeError("NaN in the loss")
    train_on(batch)


for number, batch in enumerate(DataLoader(Rows(400, 0.01), batch_size=4)):
    step(number, batch)
"""
    write(tmp_path, PRELUDE + loop)
    done = refused(tmp_path, "--budget", "30s", "train.py", exit_code=Exit.ENTRYPOINT_FAILED, slug="entrypoint-failed")
    assert "Traceback (most recent call last):" in done.stderr
    assert "in step\n" in done.stderr
    assert done.stderr.rstrip().endswith("RuntimeError: NaN in the loss")


NOT_TRAINING = {
    "no torch": ("print('hello')\n", "no-torch"),
    "evaluates": (PRELUDE + "for rows, _ in DataLoader(Rows(), batch_size=4): model(rows)\n", "no-training-loop"),
    "three steps": (PRELUDE + "for batch in DataLoader(Rows(12), batch_size=4): train_on(batch)\n", "too-few-steps"),
    "twelve steps": (PRELUDE + "for batch in DataLoader(Rows(48), batch_size=4): train_on(batch)\n", "too-few-steps"),
}


@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=[pytest.mark.slow(together=True)] * (kind == "twelve steps")) for kind in NOT_TRAINING],
)
def test_script_that_does_not_train(tmp_path: Path, kind: str) -> None:
    text, slug = NOT_TRAINING[kind]
    write(tmp_path, text)
    # Six steps are left when a loop is found, and a slow machine may see in them where the time goes.
    refused(
        tmp_path, "--budget", "30s", "train.py", exit_code=Exit.NO_TRAINING, slug=slug, reports=kind == "twelve steps"
    )


def test_budget_that_set_up_uses_up(tmp_path: Path) -> None:
    write(tmp_path, "import time\ndef evaluate():\n    time.sleep(60)\nevaluate()\n")
    done = refused(tmp_path, "--budget", "5s", "train.py", exit_code=Exit.OUT_OF_TIME, slug="out-of-time")
    if find_tool() is not None:
        assert "It was in `evaluate` (train.py:3), called at train.py:4." in done.stderr


# -- interrupted -----------------------------------------------------------------------------------------------------


@pytest.fixture
def doctor(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """An examination under way, its own process group as in a terminal."""
    write(tmp_path, SLEEPING)
    command = [*DOCTOR, "run", "--budget", "30s", "train.py"]
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def wait_for(doctor: subprocess.Popen[str], words: str) -> None:
    """Read its progress until `words` come."""
    assert doctor.stderr is not None
    for line in doctor.stderr:
        if words in line:
            return
    raise AssertionError(f"it never said {words!r}")


@pytest.mark.timed
@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_interrupted_examination_leaves_what_it_knows(
    doctor: subprocess.Popen[str], tmp_path: Path, number: signal.Signals
) -> None:
    wait_for(doctor, "Measuring ")
    time.sleep(3)  # The baseline's first windows take less than one.
    began = time.monotonic()
    os.killpg(doctor.pid, number)
    out, err = doctor.communicate(timeout=30)
    assert time.monotonic() - began < 6
    assert doctor.returncode == Exit.INTERRUPTED, err
    assert "Traceback" not in err
    result = report(tmp_path)
    assert result.baseline is not None
    assert "interrupted" in {warning.slug for warning in result.warnings}
    assert (tmp_path / "report.html").exists()
    assert "report.html" in out


@pytest.mark.timed
def test_interrupted_before_anything_is_known(doctor: subprocess.Popen[str], tmp_path: Path) -> None:
    time.sleep(1.5)
    began = time.monotonic()
    doctor.send_signal(signal.SIGINT)
    _, err = doctor.communicate(timeout=30)
    assert time.monotonic() - began < 6
    assert doctor.returncode == Exit.INTERRUPTED
    assert "Traceback" not in err


@pytest.mark.slow(together=True)
def test_killed_doctor_takes_its_guests_along(doctor: subprocess.Popen[str], tmp_path: Path) -> None:
    """Nothing can be cleaned up after SIGKILL, but the guest ends at its next boundary."""

    def guests() -> list[psutil.Process]:
        return psutil.Process(doctor.pid).children(recursive=True)

    wait_for(doctor, "Measuring ")
    left = guests()
    assert left
    doctor.kill()
    doctor.wait()
    assert wait_until(lambda: not any(process.is_running() for process in left))
    for folder in Path(os.environ["TMPDIR"]).glob("bottleneck-doctor-*"):
        for path in sorted(folder.rglob("*"), reverse=True):
            path.unlink() if not path.is_dir() else path.rmdir()
        folder.rmdir()


# -- the yardstick -------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_fresh_runs_agree_with_windows(tmp_path: Path) -> None:
    """Every probe a run of its own knows nothing of switching inside a process: both must measure the same."""
    write(tmp_path, SLEEPING)
    measured = []
    for way, budget in (([], "40s"), (["--fresh-runs"], "110s")):
        command = [
            *DOCTOR,
            "run",
            *way,
            "--no-explain",
            "--budget",
            budget,
            "--only",
            "workers",
            "-q",
            "-o",
            f"out{len(way)}",
            "train.py",
        ]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=180)
        assert done.returncode == Exit.DONE, done.stderr
        result = report(tmp_path / f"out{len(way)}")
        assert result.method.ways == ("fresh-runs" if way else "windows")
        assert result.workers is not None
        measured.append({point.num_workers: point.speedup for point in result.workers.curve if not point.is_baseline})
    windows, fresh = measured
    both = [count for count in windows if count in fresh and min(windows[count].sessions, fresh[count].sessions) >= 2]
    assert both
    for count in both:
        assert windows[count].low < fresh[count].high, count
        assert fresh[count].low < windows[count].high, count
