"""`doctor try` as a user types it: what reaches the measuring, what is refused before, and the exit code."""

from __future__ import annotations

import runpy
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import bottleneck_doctor.gate.check
import bottleneck_doctor.gate.race
from bottleneck_doctor.cli import main
from bottleneck_doctor.documents.check import STEP_TIME, Check, Status
from bottleneck_doctor.errors import Exit
from bottleneck_doctor.gate.check import CheckOutcome
from bottleneck_doctor.gate.limits import DEFAULTS
from bottleneck_doctor.gate.request import TryRequest
from bottleneck_doctor.system.progress import Progress

CHECKS: dict[str, Check] = runpy.run_path(str(Path(__file__).parents[1] / "golden" / "checks.py"))["results"]()
PATCH = "--- a/train.py\n+++ b/train.py\n@@ -1 +1 @@\n-import torch\n+import torch, os\n"
_answer = CHECKS["try-faster"]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[TryRequest]:
    """What was asked for; the answer is a golden one, which `answer` chooses."""
    recorded: list[TryRequest] = []

    def check(request: TryRequest, progress: Progress) -> CheckOutcome:
        recorded.append(request)
        return CheckOutcome(_answer, tmp_path)

    monkeypatch.setattr(bottleneck_doctor.gate.check, "check", check)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "train.py").write_text("import torch\n")
    (tmp_path / "fast.patch").write_text(PATCH)
    (tmp_path / "new.py").write_text("import torch, sys\n")
    answer("try-faster")
    return recorded


def answer(name: str, status: Status | None = None) -> None:
    global _answer
    _answer = CHECKS[name] if status is None else replace(CHECKS[name], status=status)


def test_everything_that_was_asked_for(asked: list[TryRequest]) -> None:
    options = "--patch fast.patch --env A=1 --env B=x=y --name quick --threshold 3% --budget 2m --steady --seed 4"
    words = [*options.split(), "--args", "--workers 8 --name 'a b'", "train.py", "--", "--workers", "2"]
    assert main(["try", "-q", *words]) == Exit.DONE
    (request,) = asked
    assert request.start.entrypoint() == ("train.py", "--workers", "2")
    assert request.edit.edited(request.start).entrypoint() == ("train.py", "--workers", "8", "--name", "a b")
    assert dict(request.edit.files) == {"train.py": b"import torch, os\n"}
    assert request.edit.variables == {"A": "1", "B": "x=y"}
    assert request.edit.called(request.discretion) == "quick"
    assert (request.budget, request.pairs, request.steady, request.seed) == (120, None, True, 4)
    assert request.limits == {**DEFAULTS, STEP_TIME: replace(DEFAULTS[STEP_TIME], threshold=0.03)}
    again = request.repeat(4)
    asked.clear()
    assert main([again[1], "-q", *again[2:]]) == Exit.DONE
    assert replace(asked[0], discretion=request.discretion) == request


def test_a_program_runs_as_its_user_starts_it_unless_asked(asked: list[TryRequest]) -> None:
    """An edit may be worth what it spares the allocator: with a steady one, 2.5 times as fast became 1.15 times."""
    assert main(["try", "-q", "--patch", "fast.patch", "train.py"]) == Exit.DONE
    assert asked[0].steady is False
    assert not {"--steady", "--no-steady"} & set(asked[0].repeat(4))


@pytest.mark.parametrize(
    "words",
    [
        ["--args", "--workers 8", "train.py"],
        ["--args=--workers 8", "train.py"],
        ["train.py", "--args", "--workers 8", "--"],
        ["train.py", "--args", "--workers 8", "--", "--workers", "2"],
    ],
)
def test_arguments_begin_with_a_dash(asked: list[TryRequest], words: list[str]) -> None:
    assert main(["try", "-q", *words]) == Exit.DONE
    assert asked[0].edit.arguments == ("--workers", "8")


@pytest.mark.parametrize(("words", "shown"), [(["--amp"], ("--amp",)), ([""], ()), (["a 'b c'"], ("a", "b c"))])
def test_arguments_of_one_word_and_of_none(asked: list[TryRequest], words: list[str], shown: tuple[str, ...]) -> None:
    assert main(["try", "-q", "--args", *words, "train.py", "--", "x"]) == Exit.DONE
    assert asked[0].edit.arguments == shown


def test_each_is_an_edit_of_its_own(asked: list[TryRequest], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    raced: list[list[TryRequest]] = []

    def race(requests: list[TryRequest], progress: Progress) -> CheckOutcome:
        raced.append(requests)
        return CheckOutcome(_answer, tmp_path)

    monkeypatch.setattr(bottleneck_doctor.gate.race, "race", race)
    words = "--each --patch fast.patch --edit new.py --env A=1 --env B=2 --args=-w --args=-x --seed 4 train.py -- -y"
    assert main(["try", "-q", *words.split()]) == Exit.DONE
    (requests,) = raced
    called = [each.edit.called(each.discretion) for each in requests]
    assert called == ["fast.patch", "new.py", "-w", "-x", "A=1", "B=2"]
    assert all(replace(each, edit=requests[0].edit) == requests[0] for each in requests)
    assert not asked
    again = requests[0].repeat(4)
    assert main([again[1], "-q", *again[2:]]) == Exit.DONE
    assert [each.edit for each in raced[1]] == [each.edit for each in requests]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--edit new.py --edit new.py", "--edit is given 2 times: give --each"),
        ("--args=-a --args=-b", "--args is given 2 times: give --each"),
        ("--each --env A=1", "there is only one"),
        ("--each", "nothing to try"),
        ("--each --env A=1 --env B=2 --name x", "--name calls one edit"),
        ("--each --env A=1 --env B=2 --listen 127.0.0.1:9000", "can't be used with --listen"),
        ("--each " + " ".join(f"--env A{n}=1" for n in range(9)), "9 are too many: 8 at most"),
    ],
)
def test_what_can_not_be_compared_at_once(
    asked: list[TryRequest], capsys: pytest.CaptureFixture[str], words: str, said: str
) -> None:
    assert main(["try", "-q", *words.split(), "train.py"]) == Exit.USAGE
    assert said in " ".join(capsys.readouterr().err.split())
    assert not asked


def test_another_script_and_a_module(asked: list[TryRequest], tmp_path: Path) -> None:
    assert main(["try", "-q", "--edit", "new.py", "train.py"]) == Exit.DONE
    assert dict(asked[0].edit.files) == {"train.py": b"import torch, sys\n"}
    assert asked[0].limits[STEP_TIME].threshold == 0.02
    assert main(["try", "-q", "--patch", "fast.patch", "-m", "train", "x"]) == Exit.DONE
    assert asked[1].start.entrypoint() == ("-m", "train", "x")
    assert main(["try", "-q", "--env", "A=1", "--exec", f"{sys.executable} train.py"]) == Exit.DONE
    assert asked[2].start.words == (sys.executable, "train.py")


def test_a_project_says_what_the_command_line_does_not(asked: list[TryRequest], tmp_path: Path) -> None:
    (tmp_path / "doctor.toml").write_text(
        'budget = "9m"\nsteady = false\ninconclusive = "fail"\n'
        '[metrics.step_time]\nthreshold = "7%"\nlevel = "warn"\n[metrics.host_memory]\nlevel = "error"\n'
    )
    answer("try-faster", "cannot_tell")
    assert main(["try", "-q", "--env", "A=1", "train.py"]) == Exit.CANNOT_TELL
    assert (asked[0].budget, asked[0].steady) == (540, False)
    step = asked[0].limits[STEP_TIME]
    assert (step.threshold, step.level) == (0.07, "error")
    assert asked[0].limits["host_memory"].level == "error"
    assert main(["try", "-q", "--env", "A=1", "--inconclusive", "pass", "--pairs", "5", "train.py"]) == Exit.DONE
    assert (asked[1].budget, asked[1].pairs) == (None, 5)


@pytest.mark.parametrize(
    ("name", "status", "code"),
    [
        ("try-faster", None, Exit.DONE),
        ("try-slower", None, Exit.REGRESSION),
        ("try-faster", "cannot_tell", Exit.CANNOT_TELL),
    ],
)
def test_exit_codes(asked: list[TryRequest], name: str, status: Status | None, code: Exit) -> None:
    answer(name, status)
    assert main(["try", "-q", "--env", "A=1", "--inconclusive", "fail", "train.py"]) == code


@pytest.mark.parametrize(
    ("words", "slug", "said"),
    [
        ([], "usage", "There is nothing to try: give --patch, --edit, --args or --env."),
        (["--edit", "new.py", "-m", "train"], "usage", "--edit runs a file in place of SCRIPT"),
        (["--edit", "new.py", "--exec", "true"], "usage", "--edit runs a file in place of SCRIPT"),
        (["--args", "x", "--exec", "true"], "usage", "--args can't be used with --exec"),
        (["--args", "'x"], "usage", "No closing quotation"),
        (["--env", "A"], "usage", "'A' is not NAME=VALUE"),
        (["--env", "=1"], "usage", "'' is not NAME=VALUE"),
        (["--patch", "gone.patch"], "edit-unreadable", "gone.patch can't be read: No such file or directory."),
        (["--edit", "."], "edit-unreadable", ". can't be read: Is a directory."),
        (["--patch", "new.py"], "patch-unreadable", "new.py"),
        (["--patch", "other.patch"], "patch-does-not-apply", "other.patch does not apply"),
        (["--patch", "outside.patch"], "patch-outside", "outside.patch changes a/../x.py"),
        (["--edit", "broken.py"], "edit-does-not-parse", "train.py has a syntax error in line 2 with the edit"),
        (["--env", "A=1", "--threshold", "0.5%"], "threshold-too-small", "0.5% is too small"),
        (["--args", "--verbose"], "value-missing", "--args needs a value, but --verbose follows it"),
        (["--args", "--", "x"], "value-missing", "--args needs a value, but `--` follows it"),
    ],
)
def test_bad_input_is_one_sentence_and_changes_nothing(
    asked: list[TryRequest],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    slug: str,
    said: str,
) -> None:
    (tmp_path / "other.patch").write_text(PATCH.replace("-import torch", "-import numpy"))
    (tmp_path / "outside.patch").write_text(PATCH.replace("train.py", "../x.py"))
    (tmp_path / "broken.py").write_text("import torch\nfor x in y\n")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    script = [] if {"-m", "--exec"} & set(words) else ["train.py"]
    assert main(["try", "-q", *words, *script]) in (Exit.USAGE, Exit.ENTRYPOINT_FAILED)
    err = capsys.readouterr().err
    assert f"[{slug}]" in err
    assert said in err.splitlines()[0]
    assert asked == []
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_what_is_secret_is_masked_in_the_command_to_repeat(asked: list[TryRequest]) -> None:
    secret = "qwertz98765"
    words = ["--env", f"HF_TOKEN={secret}", "--args", f"--api-key {secret} --workers 8", "train.py"]
    assert main(["try", "-q", *words]) == Exit.DONE
    (request,) = asked
    told = " ".join([*request.repeat(1), request.edit.called(request.discretion)])
    assert secret not in told
    assert "--workers 8" in told
    assert secret not in request.discretion.text(f"the key {secret} was refused")


def test_the_summary(asked: list[TryRequest], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["try", "-q", "--env", "A=1", "train.py"]) == Exit.DONE
    said = capsys.readouterr().out
    assert "Faster: The edit makes training 1.32× as fast (1.21–1.44, 6 pairs of processes)." in " ".join(said.split())
    assert "As written" in said
    answer("try-slower")
    assert main(["try", "-q", "--env", "A=1", "train.py"]) == Exit.REGRESSION
    said = capsys.readouterr().out
    assert "Slower: The edit makes training slower" in said
    assert "SLOWER" in said
