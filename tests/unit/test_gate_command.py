"""`doctor check` as a user types it: what reaches the check, what is printed where, and the exit code."""

from __future__ import annotations

import runpy
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import bottleneck_doctor.gate.check
from bottleneck_doctor.cli import main
from bottleneck_doctor.documents.check import STEP_TIME, Check, Status
from bottleneck_doctor.documents.check_json import to_json
from bottleneck_doctor.errors import Exit
from bottleneck_doctor.gate.check import CheckOutcome
from bottleneck_doctor.gate.limits import DEFAULTS
from bottleneck_doctor.gate.request import CheckRequest
from bottleneck_doctor.render.check import terminal as text
from bottleneck_doctor.system.progress import Progress

CHECKS: dict[str, Check] = runpy.run_path(str(Path(__file__).parents[1] / "golden" / "checks.py"))["results"]()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[CheckRequest]:
    """What was asked for; the answer is a golden check of the status that `answer` sets."""
    recorded: list[CheckRequest] = []

    def check(request: CheckRequest, progress: Progress) -> CheckOutcome:
        recorded.append(request)
        return CheckOutcome(_answer, tmp_path)

    monkeypatch.setattr(bottleneck_doctor.gate.check, "check", check)
    monkeypatch.chdir(tmp_path)
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "train.py").write_text("import torch\n")
    answer("passed")
    return recorded


_answer = CHECKS["passed"]


def answer(status: Status) -> None:
    global _answer
    _answer = replace(CHECKS["regressed"] if status == "regressed" else CHECKS["passed"], status=status)


def test_everything_that_was_asked_for(asked: list[CheckRequest]) -> None:
    options = (
        "--base-ref main --merge-base --base-setup make --threshold 3% --budget 2m --no-steady --in-place --seed 4"
    )
    assert main(["check", "-q", *options.split(), "train.py", "--", "--epochs", "3", "--", "x"]) == Exit.DONE
    (request,) = asked
    assert (request.base_ref, request.merge_base, request.base_setup) == ("main", True, "make")
    assert (request.budget, request.pairs, request.steady, request.start.in_place, request.seed) == (
        120,
        None,
        False,
        True,
        4,
    )
    assert request.limits == {**DEFAULTS, STEP_TIME: replace(DEFAULTS[STEP_TIME], threshold=0.03)}
    assert request.start.entrypoint() == ("train.py", "--epochs", "3", "--", "x")
    again = request.repeat(4)
    asked.clear()
    assert main(["check", "-q", *again[2:]]) == Exit.DONE
    assert replace(asked[0], discretion=request.discretion) == request


def test_a_module_and_its_arguments(asked: list[CheckRequest]) -> None:
    assert main(["check", "-q", "--base-ref", "main", "--pairs", "4", "-m", "pets.train", "x"]) == Exit.DONE
    assert asked[0].start.entrypoint() == ("-m", "pets.train", "x")
    assert (asked[0].budget, asked[0].pairs) == (None, 4)


TORCHRUN = f"{sys.executable} -m torch.distributed.run --nproc-per-node 2"


def test_a_launcher_before_the_script(asked: list[CheckRequest], tmp_path: Path) -> None:
    options = ["--base-ref", "main", "--launch", TORCHRUN, "--listen", "node1:0"]
    assert main(["check", "-q", *options, "train.py", "--", "--epochs", "3"]) == Exit.DONE
    assert asked[0].start.launcher == tuple(TORCHRUN.split())
    assert asked[0].start.listen == ("node1", 0)
    assert main(["check", "-q", *asked[0].repeat(4)[2:]]) == Exit.DONE
    assert replace(asked[1], seed=None, discretion=asked[0].discretion) == asked[0]
    (tmp_path / "doctor.toml").write_text(f'base-ref = "main"\nlaunch = "{TORCHRUN}"\n')
    assert main(["check", "-q", "train.py"]) == Exit.DONE
    assert main(["check", "-q", "--launch", f"{sys.executable} -m other", "train.py"]) == Exit.DONE
    assert main(["check", "-q", "--exec", f"A=b {sys.executable} train.py"]) == Exit.DONE
    assert [each.start.launcher[-1:] for each in asked[2:]] == [("2",), ("other",), ()]
    (tmp_path / "doctor.toml").write_text('base-ref = "main"\nlaunch = "no-such-launcher"\n')
    assert main(["check", "-q", "train.py"]) == Exit.USAGE


def test_a_command_as_it_is(asked: list[CheckRequest]) -> None:
    line = f"TOKEN=abc {sys.executable} -m pets.train --epochs 3"
    assert main(["check", "-q", "--base-ref", "main", "--exec", line]) == Exit.DONE
    assert asked[0].start.words == (sys.executable, "-m", "pets.train", "--epochs", "3")
    assert asked[0].start.environment == {"TOKEN": "abc"}
    assert asked[0].start.entrypoint() == asked[0].start.words
    assert asked[0].repeat(1)[-2] == "--exec"
    assert asked[0].repeat(1)[-1].endswith("-m pets.train --epochs 3")
    assert "abc" not in " ".join(asked[0].repeat(1))
    assert main(["check", "-q", "--base-ref", "main", "--exec", line, "train.py"]) == Exit.USAGE


def test_a_project_says_what_the_command_line_does_not(asked: list[CheckRequest], tmp_path: Path) -> None:
    (tmp_path / "doctor.toml").write_text(
        'base-ref = "main"\nbudget = "9m"\nsteady = false\ninconclusive = "fail"\n'
        '[metrics.step_time]\nthreshold = "7%"\n'
    )
    answer("cannot_tell")
    assert main(["check", "-q", "train.py"]) == Exit.CANNOT_TELL
    assert (asked[0].base_ref, asked[0].budget, asked[0].steady) == ("main", 540, False)
    assert asked[0].limits[STEP_TIME].threshold == 0.07
    options = ["--base-ref", "v1", "--budget", "1m", "--steady", "--inconclusive", "pass", "--threshold", "2%"]
    assert main(["check", "-q", *options, "train.py"]) == Exit.DONE
    assert (asked[1].base_ref, asked[1].budget, asked[1].steady) == ("v1", 60, True)
    assert asked[1].limits[STEP_TIME].threshold == 0.02
    # As many pairs as were asked for, whatever time the project allows.
    assert main(["check", "-q", "--pairs", "5", "train.py"]) == Exit.CANNOT_TELL
    assert asked[2].budget is None


@pytest.mark.parametrize(
    ("status", "inconclusive", "code"),
    [
        ("passed", "fail", Exit.DONE),
        ("new", "fail", Exit.DONE),
        ("regressed", "pass", Exit.REGRESSION),
        ("cannot_tell", "pass", Exit.DONE),
        ("cannot_tell", "fail", Exit.CANNOT_TELL),
    ],
)
def test_exit_codes(asked: list[CheckRequest], status: Status, inconclusive: str, code: Exit) -> None:
    answer(status)
    assert main(["check", "-q", "--base-ref", "main", "--inconclusive", inconclusive, "train.py"]) == code
    assert len(asked) == 1


def test_the_summary_makes_way_for_a_document_on_stdout(
    asked: list[CheckRequest], capsys: pytest.CaptureFixture[str]
) -> None:
    main(["check", "-q", "--base-ref", "main", "--json", "-", "train.py"])
    said = capsys.readouterr()
    assert said.out.startswith("{")
    assert "Passed" in said.err
    assert asked


def test_the_text() -> None:
    said = text.render(CHECKS["regressed"], width=None, color=False)
    assert said.startswith("\nRegressed: A step takes 31 %")
    assert "What grew:" in said
    assert "it was changed" in said
    assert "(changed)" not in said, "said already"
    silent = [replace(each, sentence="It grew.") for each in CHECKS["regressed"].culprits]
    assert "It grew (changed)" in text.render(replace(CHECKS["regressed"], culprits=silent), width=None, color=False)
    assert "WORSE" in said
    assert "steady memory allocator" in " ".join(said.split())
    assert "[other-load]" in said
    assert "\x1b" not in said
    assert max(len(line) for line in said.splitlines()) <= text.PLAIN_WIDTH


@pytest.mark.parametrize("check", [CHECKS["hostile"], CHECKS["passed"]], ids=["hostile", "passed"])
def test_text_holds_nothing_that_drives_a_terminal(check: Check) -> None:
    said = text.render(check, width=80, color=False)
    assert "\x1b" not in said
    assert "\x00" not in said


def test_earlier_results_are_read_from_a_folder(asked: list[CheckRequest], tmp_path: Path) -> None:
    options = ["check", "-q", "--base-ref", "main", "--earlier", "before"]
    assert main([*options, "train.py"]) == Exit.DONE
    assert asked[0].earlier == []
    (tmp_path / "before").mkdir()
    for name in ("b", "a"):
        (tmp_path / "before" / f"{name}.json").write_bytes(to_json(replace(CHECKS["passed"], sentence=name)))
    (tmp_path / "before" / "damaged.json").write_text("{")
    (tmp_path / "before" / "notes.txt").write_text("{}")
    assert main([*options, "--json", "before/c.json", "train.py"]) == Exit.DONE
    assert [each.sentence for each in asked[1].earlier] == ["a", "b"]
    assert "--earlier before" in " ".join(asked[1].repeat(1))
    assert main([*options, "train.py"]) == Exit.DONE
    assert len(asked[2].earlier) == 3


def test_a_folder_of_earlier_results_that_is_none(
    asked: list[CheckRequest], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert main(["check", "--base-ref", "main", "--earlier", "file", "train.py"]) == Exit.USAGE
    assert "[earlier-unreadable]" in capsys.readouterr().err
    (tmp_path / "base.json").write_text("")
    assert main(["check", "--baseline", "base.json", "--earlier", "x", "train.py"]) == Exit.USAGE
    assert not asked
