"""The command line as a user meets it: exit codes, messages, and what reaches the examination."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.notebooks import notebook

import bottleneck_doctor.examine.examination
from bottleneck_doctor import __version__
from bottleneck_doctor.cli import main
from bottleneck_doctor.confirm import confirming, room
from bottleneck_doctor.documents.report import Result, from_json
from bottleneck_doctor.errors import DoctorError, Exit
from bottleneck_doctor.examine.examination import ExaminationOutcome, ExaminationRequest
from bottleneck_doctor.session.start import Start
from bottleneck_doctor.system.progress import Progress

GOLDEN = Path(__file__).parents[1] / "golden"
HEAVY = {"torch", "torchvision", "numpy", "jinja2", "libcst", "rich", "msgspec", "psutil", "yaml"}

Run = Callable[..., subprocess.CompletedProcess[str]]


def golden() -> Result:
    return from_json((GOLDEN / "pets.json").read_bytes(), source="pets.json")


@pytest.fixture
def doctor(tmp_path: Path) -> Run:
    """Runs `doctor` as a process of its own in an empty folder."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
        return subprocess.run(
            [sys.executable, "-m", "bottleneck_doctor", *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    return run


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[ExaminationRequest]:
    """What the examination was asked for, by `doctor run` in this process; it answers with a golden result."""
    recorded: list[ExaminationRequest] = []

    def examine(request: ExaminationRequest, progress: Progress) -> ExaminationOutcome:
        progress.stage("pretending")
        recorded.append(request)
        return ExaminationOutcome(golden(), Exit.DONE)

    monkeypatch.setattr(bottleneck_doctor.examine.examination, "examine", examine)
    # How a verdict is confirmed is asked in test_confirm.py. Here it would start the script some fifty times.
    monkeypatch.setattr(confirming, "confirm", lambda result, *_: result)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("import torch\n")
    return recorded


# --- starting


def test_a_command_is_run_as_it_is(requests: list[ExaminationRequest], capsys: pytest.CaptureFixture[str]) -> None:
    line = f"A=1 PYTHONPATH='my lib' {sys.executable} -m trl 'sft --x' lr=0.1"
    assert main(["run", "-q", "--exec", line]) == Exit.DONE
    (request,) = requests
    assert request.start.entrypoint() == (sys.executable, "-m", "trl", "sft --x", "lr=0.1")
    assert request.start.environment == {"A": "1", "PYTHONPATH": "my lib"}
    assert request.repeat(5)[-2:] == ["--exec", f"A=... PYTHONPATH=... {sys.executable} -m trl 'sft --x' lr=0.1"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--exec", "no-such-command --x"], "[command-missing]"),
        (["--exec", "A=1"], "a command is missing"),
        (["--exec", "echo 'half"], "--exec"),
        (["--exec", "python x.py", "train.py"], "--exec gives the whole command"),
        (["--exec", "python x.py", "-m", "train"], "--exec gives the whole command"),
    ],
)
def test_what_is_no_command_is_refused(
    requests: list[ExaminationRequest], capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert main(["run", *arguments]) == Exit.USAGE
    assert said in capsys.readouterr().err
    assert not requests


def test_help_is_quick_and_light() -> None:
    command = [sys.executable, "-X", "importtime", "-c", "from bottleneck_doctor.cli import main; main(['--help'])"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    seconds = []
    for _ in range(3):
        began = time.monotonic()
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        seconds.append(time.monotonic() - began)
    imported = {line.rsplit("|", 1)[1].strip().split(".")[0] for line in done.stderr.split("\n") if "|" in line}
    assert "click" in imported
    assert not imported & HEAVY
    assert "run" in done.stdout
    assert min(seconds) < 1.0  # ten times what it takes on two busy cores


def test_every_command_has_help(doctor: Run) -> None:
    for name in ("run", "report", "fixes"):
        done = doctor(name, "--help")
        assert done.returncode == 0
        assert done.stdout.startswith(f"Usage: doctor {name} ")


def test_version(doctor: Run) -> None:
    assert doctor("--version").stdout == f"bottleneck-doctor {__version__}\n"


# --- usage


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "Missing command"),
        (["rum"], "did you mean 'run'"),
        (["train.py"], "doctor run train.py"),
        (["--versoin"], "--version"),
        (["run"], "No script was given"),
        (["run", "--budgt", "3m", "train.py"], "--budget"),
        (["run", "--budget", "soon", "train.py"], "'soon' is not a length of time"),
        (["run", "--budget"], "requires an argument"),
        (["run", "--sessions", "2", "train.py"], "x>=3"),
        (["run", "--lr", "3", "train.py"], "Options of your script go after the script, behind a `--`"),
        (["run", "train.py", "-m", "pkg.train", "--"], "Give either train.py or -m MODULE, not both"),
        (["run", "train.py", "--seed", "x", "--"], "'x' is not a valid integer"),
        (["run", "-q", "-v", "train.py"], "can't be used together"),
        (["run", "--only", "workers", "--skip", "workers", "train.py"], "workers is named by both"),
    ],
)
def test_usage_errors_say_what_to_do(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").touch()
    assert main(arguments) == Exit.USAGE
    shown = capsys.readouterr()
    assert shown.out == ""
    assert said in shown.err
    assert re.fullmatch(r"doctor: .* \[usage\]\n  → Run `doctor.*\n", shown.err)


@pytest.mark.parametrize(
    ("arguments", "slug", "said"),
    [
        (["tran.py"], "script-missing", "Did you mean train.py?"),
        (["train"], "script-missing", "Did you mean train.py?"),
        (["nowhere/else.py"], "script-missing", "Check the path"),
        (
            ["--launch", "torchrun", "env", "--", "1"],
            "script-missing",
            'env is a command: give it, with its arguments, as --exec "env ...".',
        ),
        (["folder"], "script-is-directory", "Give the file: folder/__main__.py"),
        (["notes.txt"], "script-not-python", "notes.txt"),
        (["model.bin"], "script-not-python", "model.bin"),
        (["empty.ipynb"], "notebook-unusable", "empty.ipynb can't be run: it has no code."),
        (["broken.ipynb"], "notebook-unusable", "Cell 2, line 1 of broken.ipynb can't be run by Python"),
        (["late.ipynb"], "notebook-unusable", "Cell 2, line 2 of late.ipynb can't be run behind the cells before it"),
        (["--only", "num_workers", "train.py"], "unknown-fix", "Did you mean"),
        (["--skip", "autocast", "train.py"], "unknown-fix", "amp-bf16"),
        (["--skip", "xyzzy", "train.py"], "unknown-fix", "doctor fixes"),
        (["--python", "no-such-python", "train.py"], "python-missing", "no-such-python"),
        (["-o", "train.py/out", "train.py"], "output-unwritable", "-o DIR"),
        (["-o", "folder", "train.py"], "output-not-ours", "report.json"),
    ],
)
def test_what_cannot_be_run_is_refused_before_any_work(
    arguments: list[str],
    slug: str,
    said: str,
    requests: list[ExaminationRequest],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "__main__.py").touch()
    (tmp_path / "folder" / "report.json").write_text("{}")
    (tmp_path / "notes.txt").write_text("These are notes, not a program.\n")
    (tmp_path / "model.bin").write_bytes(bytes(range(256)))
    (tmp_path / "empty.ipynb").write_bytes(notebook("", " "))
    (tmp_path / "broken.ipynb").write_bytes(notebook("x = 1", "y = = 2"))
    (tmp_path / "late.ipynb").write_bytes(notebook("x = 1", "\nfrom __future__ import annotations"))
    assert main(["run", *arguments]) == Exit.USAGE
    shown = capsys.readouterr().err
    assert f"[{slug}]\n  → " in shown
    assert said in shown
    assert requests == []


def test_a_syntax_error_in_the_script_is_shown_as_python_shows_it(
    requests: list[ExaminationRequest], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.py").write_text("import torch\nfor x in y\n    pass\n")
    assert main(["run", "train.py"]) == Exit.ENTRYPOINT_FAILED
    shown = capsys.readouterr().err
    assert "line 2, so Python can't run it. [script-syntax]" in shown
    assert "    for x in y\n" in shown
    assert "SyntaxError" in shown
    assert requests == []


def test_the_syntax_of_another_interpreter_is_not_judged(requests: list[ExaminationRequest], tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print 'python 2'\n")
    assert main(["run", "-q", "--python", sys.executable, "train.py"]) == Exit.DONE
    assert requests[0].start.python == sys.executable


# --- what reaches the examination


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        (["train.py"], ()),
        (["train.py", "config.json"], ("config.json",)),
        (["train.py", "--", "--lr", "0.1"], ("--lr", "0.1")),
        (["train.py", "--lr", "0.1"], ("--lr", "0.1")),
        (["train.py", "--", "--", "x"], ("--", "x")),
        (["train.py", "--", "a", "--", "b"], ("a", "--", "b")),
        (["train.py", "--seed", "3", "--", "a", "--", "b"], ("a", "--", "b")),
        (["train.py", "--seed", "3", "--"], ()),
        (["--", "train.py", "-v"], ("-v",)),
        (["--", "train.py", "a", "--", "-v"], ("a", "--", "-v")),
        (["train.py", "key=value", "", "-x", "--version"], ("key=value", "", "-x", "--version")),
    ],
)
def test_what_follows_the_script_is_the_scripts(
    words: list[str], arguments: tuple[str, ...], requests: list[ExaminationRequest]
) -> None:
    assert main(["run", "-q", *words]) == Exit.DONE
    assert requests[0].start.script == Path("train.py")
    assert requests[0].start.module is None
    assert requests[0].start.arguments == arguments


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        (["-m", "pkg.train"], ()),
        (["-m", "pkg.train", "config.json", "--lr", "1"], ("config.json", "--lr", "1")),
        (["-m", "pkg.train", "--lr", "1"], ("--lr", "1")),
        (["-mpkg.train", "--seed", "3", "--", "--lr", "1"], ("--lr", "1")),
        (["--module=pkg.train", "--", "--lr", "1"], ("--lr", "1")),
        (["-m", "pkg.train", "--", "--", "x"], ("--", "x")),
    ],
)
def test_a_module_takes_all_words_as_arguments(
    words: list[str], arguments: tuple[str, ...], requests: list[ExaminationRequest]
) -> None:
    assert main(["run", "-q", *words]) == Exit.DONE
    assert requests[0].start.script is None
    assert requests[0].start.module == "pkg.train"
    assert requests[0].start.arguments == arguments


@pytest.mark.parametrize(
    "line",
    [
        "train.py --seed 3 -- x",
        "-m pkg.train -- --budget 9 --seed 3",
        "-m pkg.train",
        "-o out --budget 90s --fresh-runs --only workers --skip no-workers --sessions 4 --no-explain train.py",
        "--rate 50 --native --no-source --in-place --listen localhost:0 train.py --",
        f"--exec '{sys.executable} -m trl --budget 3' --seed 8",
    ],
)
def test_the_command_that_repeats_asks_for_the_same(line: str, requests: list[ExaminationRequest]) -> None:
    assert main(["run", "-q", *shlex.split(line)]) == Exit.DONE
    assert main(requests[0].repeat(5)[1:]) == Exit.DONE
    first, second = (replace(each, explain=each.explain and replace(each.explain, folder=Path())) for each in requests)
    assert second == replace(first, seed=5)


def test_options_reach_the_examination(requests: list[ExaminationRequest], tmp_path: Path) -> None:
    line = (
        "-o out --budget 1m30s --fresh-runs --only workers --only amp-bf16 --skip no-workers --sessions 4 --seed 9 -v"
        " --no-explain"
    )
    assert main(["run", *line.split(), "train.py"]) == Exit.DONE
    assert requests == [
        ExaminationRequest(
            start=Start(script=Path("train.py")),
            output=Path("out"),
            budget=90.0,
            fresh_runs=True,
            only=frozenset({"workers", "amp-bf16"}),
            skip=frozenset({"no-workers"}),
            sessions=4,
            seed=9,
            verbose=True,
            confirming=room.seconds_kept,
        )
    ]
    assert sorted(entry.name for entry in (tmp_path / "out").iterdir()) == ["report.html", "report.json"]


def test_what_explains_is_asked_for_unless_it_is_refused(requests: list[ExaminationRequest]) -> None:
    assert main(["run", "--rate", "50", "--native", "train.py"]) == Exit.DONE
    options = requests[0].explain
    assert options is not None
    assert (options.rate, options.native) == (50, True)
    assert not options.folder.exists()  # A scratch folder, gone once the report is written.


def test_defaults_are_left_to_the_examination(requests: list[ExaminationRequest], tmp_path: Path) -> None:
    assert main(["run", "train.py"]) == Exit.DONE
    request = requests[0]
    assert (request.budget, request.sessions, request.seed, request.start.python) == (None, None, None, None)
    assert (request.fresh_runs, request.verbose, request.only, request.skip) == (False, False, frozenset(), frozenset())
    assert (tmp_path / "report.html").exists()


# --- how it ends


def test_the_outcome_is_on_stdout_and_progress_on_stderr(
    requests: list[ExaminationRequest], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "train.py"]) == Exit.DONE
    shown = capsys.readouterr()
    assert "report.html" in shown.out
    assert "pretending" not in shown.out
    assert "pretending" in shown.err
    assert main(["run", "--quiet", "train.py"]) == Exit.DONE
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("code", [Exit.DONE, Exit.NO_TRAINING, Exit.INTERRUPTED])
def test_the_exit_code_is_the_examinations(
    code: Exit, requests: list[ExaminationRequest], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def examine(request: ExaminationRequest, progress: Progress) -> ExaminationOutcome:
        return ExaminationOutcome(golden(), code)

    monkeypatch.setattr(bottleneck_doctor.examine.examination, "examine", examine)
    assert main(["run", "-q", "train.py"]) == code
    assert (tmp_path / "report.json").exists()


def test_an_error_carries_its_exit_code_and_detail(
    requests: list[ExaminationRequest], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def examine(request: ExaminationRequest, progress: Progress) -> ExaminationOutcome:
        raise DoctorError("some-slug", "It failed.", "Mend it.", Exit.ENTRYPOINT_FAILED, detail="Traceback:\n  [it]\n")

    monkeypatch.setattr(bottleneck_doctor.examine.examination, "examine", examine)
    assert main(["run", "-q", "train.py"]) == Exit.ENTRYPOINT_FAILED
    assert capsys.readouterr().err == "doctor: It failed. [some-slug]\n  → Mend it.\n\nTraceback:\n  [it]\n"


def test_ctrl_c_is_130(
    requests: list[ExaminationRequest], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def examine(request: ExaminationRequest, progress: Progress) -> ExaminationOutcome:
        raise KeyboardInterrupt

    monkeypatch.setattr(bottleneck_doctor.examine.examination, "examine", examine)
    assert main(["run", "-q", "train.py"]) == Exit.INTERRUPTED
    assert capsys.readouterr().err == "doctor: interrupted\n"


def test_a_bug_of_ours_is_a_file_and_not_a_traceback(
    requests: list[ExaminationRequest],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    def examine(request: ExaminationRequest, progress: Progress) -> ExaminationOutcome:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(bottleneck_doctor.examine.examination, "examine", examine)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert main(["run", "-q", "train.py", "--", "a b"]) == Exit.BUG
    shown = capsys.readouterr().err
    assert "This is a bug in doctor: ZeroDivisionError. [bug]" in shown
    assert "Traceback" not in shown
    (crash,) = tmp_path.glob("doctor-crash-*.txt")
    assert str(crash) in shown
    text = crash.read_text()
    assert "ZeroDivisionError: by zero" in text
    assert "doctor run -q train.py -- 'a b'" in text
    assert __version__ in text


def test_what_was_measured_is_kept_when_drawing_fails(
    requests: list[ExaminationRequest], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def render(result: Result) -> str:
        raise RuntimeError("no paint")

    monkeypatch.setattr("bottleneck_doctor.render.html.render", render)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert main(["run", "-q", "train.py"]) == Exit.BUG
    assert from_json((tmp_path / "report.json").read_bytes(), source="it") == golden()


def test_a_reader_that_leaves_is_no_error(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    for arguments in (["fixes"], ["--help"], ["report", str(GOLDEN / "pets.json"), "-o", str(tmp_path)]):
        read, write = os.pipe()
        os.close(read)
        with os.fdopen(write, "w") as stdout:
            done = subprocess.run(
                [sys.executable, "-m", "bottleneck_doctor", *arguments],
                env=environment,
                stdout=stdout,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
            )
        assert (done.returncode, done.stderr) == (0, "")


def test_a_terminal_without_unicode_gets_plain_arrows(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    done = subprocess.run(
        [sys.executable, "-m", "bottleneck_doctor", "run", "trän.py"],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert done.returncode == Exit.USAGE
    assert b"\n  -> Check the path" in done.stderr


# --- the other commands


def test_fixes_lists_the_catalogue_and_explains_one(doctor: Run) -> None:
    from bottleneck_doctor.fixes import catalogue

    listed = doctor("fixes")
    assert listed.returncode == 0
    assert [line.split()[0] for line in listed.stdout.splitlines()] == [fix.id for fix in catalogue()]
    for fix in catalogue():
        assert fix.title in listed.stdout
    assert "Train on larger batches (on request)" in listed.stdout
    assert "tried   on request: larger batches" in doctor("fixes", "batch-size").stdout
    explained = doctor("fixes", "workers")
    assert "https://" in explained.stdout
    unknown = doctor("fixes", "worker")
    assert unknown.returncode == Exit.USAGE
    assert "Did you mean workers" in unknown.stderr


def test_report_draws_again(doctor: Run, tmp_path: Path) -> None:
    (tmp_path / "report.json").write_bytes((GOLDEN / "pets.json").read_bytes())
    for arguments in (["report.json"], ["."], ["report.json", "-o", "again"]):
        done = doctor("report", *arguments)
        assert (done.returncode, done.stderr) == (0, "")
        assert Path(tmp_path / done.stdout.strip()).read_text("utf-8").startswith("<!doctype html>")
    assert (tmp_path / "again" / "report.html").exists()


@pytest.mark.parametrize(
    ("content", "slug"),
    [
        (None, "report-missing"),
        (b"{", "report-unreadable"),
        (b"{}", "report-unreadable"),
        (b'{"format": 99}', "too-new"),
    ],
)
def test_report_says_what_is_wrong_with_a_document(
    content: bytes | None, slug: str, doctor: Run, tmp_path: Path
) -> None:
    if content is not None:
        (tmp_path / "x.json").write_bytes(content)
    done = doctor("report", "x.json")
    assert done.returncode == Exit.USAGE
    assert f"{slug}]" in done.stderr
    assert not (tmp_path / "report.html").exists()


def test_report_leaves_somebody_elses_page_alone(doctor: Run, tmp_path: Path) -> None:
    (tmp_path / "report.json").write_bytes((GOLDEN / "pets.json").read_bytes())
    (tmp_path / "report.html").write_text("<html>mine</html>")
    assert "[output-not-ours]" in doctor("report", "report.json").stderr
    assert (tmp_path / "report.html").read_text() == "<html>mine</html>"


def test_the_command_that_somebody_trains_with(
    requests: list[ExaminationRequest], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", os.path.dirname(sys.executable), prepend=os.pathsep)
    launcher = str(Path(sys.executable).parent / "torchrun")
    assert main(["run", "--quiet", "torchrun", "--nproc-per-node", "2", "train.py", "--lr", "3"]) == Exit.DONE
    assert main(["run", "--quiet", "python", "train.py", "--lr", "3"]) == Exit.DONE
    assert main(["run", "--quiet", "env", "FAST=1", "python", "train.py"]) == Exit.DONE
    launched, plain, other = (request.start for request in requests)
    assert (launched.launcher[1:], launched.entrypoint()) == (("--nproc-per-node", "2"), ("train.py", "--lr", "3"))
    assert Path(launched.launcher[0]).name == Path(launcher).name
    assert (plain.launcher, plain.entrypoint()) == ((), ("train.py", "--lr", "3"))
    assert other.words[1:] == ("FAST=1", "python", "train.py")
    # What is asked for again is the same.
    assert launched.again("run")[-4:] == ["train.py", "--", "--lr", "3"]
