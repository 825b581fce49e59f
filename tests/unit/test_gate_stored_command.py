"""`doctor baseline` and `doctor check --baseline` as a user types them: what is asked for, written and refused."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.stored_samples import CALIBRATION, MACHINE, NOISE, draw, stored

import bottleneck_doctor.gate.baseline.machine
import bottleneck_doctor.gate.baseline.recording
import bottleneck_doctor.gate.baseline.stored_check
from bottleneck_doctor.cli import main
from bottleneck_doctor.documents.check_json import from_json as check_from_json
from bottleneck_doctor.documents.report import Environment
from bottleneck_doctor.documents.stored_baseline import Draw, from_json, to_json
from bottleneck_doctor.errors import Exit
from bottleneck_doctor.gate.baseline import recording, single, stored_check
from bottleneck_doctor.gate.baseline.machine import Machine

GOLDEN = Path(__file__).parents[1] / "golden"
ENVIRONMENT = Environment(
    python="3.12.7", torch="2.9.1", platform="Linux", cpu=MACHINE.cpu, usable_cpus=4, total_cpus=16,
    memory_bytes=MACHINE.memory_bytes, devices=[], variables={}, fingerprint="b3f2c87d10e4",
)  # fmt: skip


@dataclass
class Bench:
    """What processes would have shown, and the machine that they would have run on."""

    step: float = 0.02
    machine: Machine = field(default_factory=lambda: Machine(MACHINE, CALIBRATION))
    started: list[single.Training] = field(default_factory=list)
    whole: list[bool | None] = field(default_factory=list)


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Bench:
    made = Bench()

    class Drawing(single.Drawing):
        def run(self, wanted: Callable[[], bool], whole: bool | None = None) -> None:
            made.started.append(self._training)
            made.whole.append(whole)
            while wanted():
                noise = NOISE[len(self.draws) % len(NOISE)]
                self.draws.append(draw(made.step * (1 + noise), 9))
                self.lasted.append(1.0)

        def environment(self) -> Environment:
            return ENVIRONMENT

    for room in (recording, stored_check):
        monkeypatch.setattr(room, "Drawing", Drawing)

    def describe(python: str, cwd: Path, environment: Any) -> Machine:
        return made.machine

    for function in (recording.record, stored_check.check):
        monkeypatch.setattr(function, "__defaults__", (describe,))
    monkeypatch.setattr(bottleneck_doctor.gate.baseline.machine, "SECONDS_BETWEEN_TRIES", 0.0)
    monkeypatch.chdir(tmp_path)
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "train.py").write_text("import torch\n")
    (tmp_path / "base.json").write_bytes(to_json(stored()))
    return made


def draws_in(path: Path) -> list[Draw]:
    return from_json(path.read_bytes(), source=str(path)).draws


# -- doctor baseline ---------------------------------------------------------------------------------------------------


def test_a_baseline_is_written_and_added_to(bench: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "new" / "here.json"
    words = ["baseline", "-q", "-o", str(path), "train.py", "--", "--epochs", "3"]
    assert main(words) == Exit.DONE
    assert len(draws_in(path)) == recording.PROCESSES
    said = capsys.readouterr().out
    assert "8 processes, measured at 1 time" in " ".join(said.split())
    assert f"doctor check --baseline {path} train.py -- --epochs 3" in said
    assert f"doctor baseline -o {path} train.py -- --epochs 3" in said
    assert main([*words[:2], "--sessions", "3", *words[2:]]) == Exit.DONE
    assert len(draws_in(path)) == recording.PROCESSES + 3
    read = from_json(path.read_bytes(), source="x")
    assert len(read.takes) == 2
    assert read.machine == MACHINE
    assert main([*words[:2], "--new", "--sessions", "3", *words[2:]]) == Exit.DONE
    assert len(draws_in(path)) == 3


def test_launchers_and_commands_are_part_of_what_is_trained(bench: Bench, tmp_path: Path) -> None:
    launched = ("--launch", "nice -n 1")
    assert main(["baseline", "-q", "-o", "x.json", *launched, "train.py"]) == Exit.DONE
    assert from_json((tmp_path / "x.json").read_bytes(), source="x").entrypoint.argv == ["nice", "-n", "1", "train.py"]
    assert bench.started[0].start.argv()[-1] == "train.py"
    assert bench.started[0].start.argv()[0].endswith("nice")
    assert main(["baseline", "-q", "-o", "x.json", "train.py"]) == Exit.USAGE
    assert main(["check", "-q", "--baseline", "x.json", "--json", "a.json", *launched, "train.py"]) == Exit.DONE
    assert main(["check", "-q", "--baseline", "x.json", "--json", "b.json", "train.py"]) == Exit.DONE
    slugs = [
        [each.slug for each in check_from_json((tmp_path / name).read_bytes(), source="x").warnings]
        for name in ("a.json", "b.json")
    ]
    assert "baseline-other-command" not in slugs[0]
    assert "baseline-other-command" in slugs[1]
    line = f"MALLOC_TOP_PAD_=1 {sys.executable} train.py --x"
    assert main(["baseline", "-q", "-o", "y.json", "--exec", line]) == Exit.DONE
    training = bench.started[-1]
    assert training.start.argv() == (sys.executable, "train.py", "--x")
    assert training.start.interpreter == sys.executable
    assert training.variables()["MALLOC_TOP_PAD_"] == "1"
    made = from_json((tmp_path / "y.json").read_bytes(), source="y")
    assert made.command[-1] == f"MALLOC_TOP_PAD_=... {sys.executable} train.py --x"


def test_a_budget_says_how_long(bench: Bench, tmp_path: Path) -> None:
    assert main(["baseline", "-q", "--budget", "1h", "-o", "long.json", "train.py"]) == Exit.DONE
    assert len(draws_in(tmp_path / "long.json")) == 30


def test_secrets_are_masked(bench: Bench, tmp_path: Path) -> None:
    assert main(["baseline", "-q", "-o", "x.json", "train.py", "--", "--api-key", "not-for-all-1742"]) == Exit.DONE
    assert "not-for-all-1742" not in (tmp_path / "x.json").read_text()
    # And yet it is known to be the same command.
    assert main(["baseline", "-q", "-o", "x.json", "train.py", "--", "--api-key", "not-for-all-1742"]) == Exit.DONE


@pytest.mark.parametrize(
    ("options", "slug"),
    [
        ((), "usage"),
        (("--sessions", "0", "train.py"), "usage"),
        (("--sessions", "3", "--budget", "5m", "train.py"), "usage"),
        (("-o", "train.py", "train.py"), "output-not-ours"),
        (("-o", "report.json", "train.py"), "baseline-is-report"),
        (("-o", "base.json", "other.py"), "script-missing"),
        (("-o", "base.json", "train.py", "--", "--epochs", "3"), "baseline-of-another"),
        (("-o", "base.json", "--no-steady", "train.py"), "baseline-other-way"),
        (("-o", ".", "train.py"), "output-unwritable"),
    ],
)
def test_what_no_baseline_can_be_made_of(
    bench: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], slug: str
) -> None:
    (tmp_path / "report.json").write_bytes((GOLDEN / "pets.json").read_bytes())
    assert main(["baseline", "-q", *options]) == Exit.USAGE
    assert f"[{slug}]" in capsys.readouterr().err
    assert bench.started == []


def test_another_machine_adds_nothing(bench: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bench.machine = replace(bench.machine, fingerprint=replace(MACHINE, usable_cpus=8))
    before = (tmp_path / "base.json").read_bytes()
    assert main(["baseline", "-q", "-o", "base.json", "train.py"]) == Exit.USAGE
    said = capsys.readouterr().err
    assert "[different-machine]" in said
    assert "cores that may be used: 4 there, 8 here" in said
    assert (tmp_path / "base.json").read_bytes() == before


def test_another_commit_is_said(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["baseline", "-q", "-o", "base.json", "train.py"]) == Exit.DONE
    assert "[baseline-other-commit]" in capsys.readouterr().out


# -- doctor check --baseline -------------------------------------------------------------------------------------------

OUTPUTS = ("json", "markdown", "junit", "html", "gitlab")


def check(*options: str) -> int:
    files = [word for name in OUTPUTS for word in (f"--{name}", f"out.{name}")]
    return main(["check", "-q", "--baseline", "base.json", *files, *options])


def test_a_slower_step_fails(bench: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bench.step = 0.03
    assert check("--github", "train.py") == Exit.REGRESSION
    said = capsys.readouterr().out
    assert "longer than on the baseline base.json of 19 November 2026" in said
    assert "3 processes against 30 stored ones (measured at 6 times)" in " ".join(said.split())
    assert "::error" in said
    assert "culprits-missing" in said
    made = check_from_json((tmp_path / "out.json").read_bytes(), source="x")
    assert made.stored is not None
    assert (made.stored.processes, len(made.stored.taken), made.stored.different) == (30, 6, [])
    assert [each.number for each in made.processes] == [1, 2, 3]
    assert made.pairs == []
    assert made.base.commit == "4fa76021c6f4"
    assert made.command[:4] == ["doctor", "check", "--baseline", "base.json"]
    for name in OUTPUTS:
        assert "base.json" in (tmp_path / f"out.{name}").read_text() or name == "gitlab"
    assert bench.whole == [False]


def test_the_same_training_passes_and_stops_early(bench: Bench, tmp_path: Path) -> None:
    assert check("train.py") == Exit.DONE
    made = check_from_json((tmp_path / "out.json").read_bytes(), source="x")
    assert made.status == "passed"
    assert len(made.processes) == 3


def test_as_many_processes_as_were_asked_for(bench: Bench, tmp_path: Path) -> None:
    assert check("--pairs", "7", "train.py") == Exit.DONE
    made = check_from_json((tmp_path / "out.json").read_bytes(), source="x")
    assert len(made.processes) == 7
    assert made.budget == 0


def test_few_times_cannot_tell(bench: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "base.json").write_bytes(to_json(stored(times=1)))
    assert check("train.py") == Exit.DONE
    assert "Cannot tell after 5 processes of the head" in " ".join(capsys.readouterr().out.split())
    assert check("--inconclusive", "fail", "train.py") == Exit.CANNOT_TELL
    assert "few-times" in (tmp_path / "out.markdown").read_text()


def test_another_machine_is_refused_or_marked(bench: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bench.machine = replace(bench.machine, fingerprint=replace(MACHINE, cpu="Xeon", torch="2.8"))
    assert check("train.py") == Exit.USAGE
    said = capsys.readouterr().err
    assert f"processor: {MACHINE.cpu} there, Xeon here; 1 more differ" in said
    assert bench.started == []
    bench.step = 0.03
    assert check("--allow-different-machine", "--github", "train.py") == Exit.REGRESSION
    assert "on another machine" in capsys.readouterr().out
    for name in OUTPUTS:
        assert "on another machine" in (tmp_path / f"out.{name}").read_text(), name
    made = check_from_json((tmp_path / "out.json").read_bytes(), source="x")
    assert made.stored is not None
    assert [each.key for each in made.stored.different] == ["processor", "torch"]
    assert "--allow-different-machine" in made.command


def test_a_slow_machine_is_another(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench.machine = replace(bench.machine, calibration=replace(CALIBRATION, memory_bytes_per_second=3e9))
    assert check("train.py") == Exit.USAGE
    assert "speed of memory: 14.0 GiB/s there, 2.8 GiB/s here" in capsys.readouterr().err


def test_another_command_is_said(bench: Bench, tmp_path: Path) -> None:
    assert check("train.py", "--", "--epochs", "3") == Exit.DONE
    assert "baseline-other-command" in (tmp_path / "out.markdown").read_text()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--base-ref", "main", "train.py"), "--base-ref and --baseline can't be used together"),
        (("--merge-base", "train.py"), "--merge-base and --baseline can't be used together"),
        (("--seed", "3", "train.py"), "--seed and --baseline can't be used together"),
        (("--no-steady", "train.py"), "was measured with --steady, but this command would measure with --no-steady"),
    ],
)
def test_options_that_do_not_go_together(
    bench: Bench, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], said: str
) -> None:
    assert check(*options) == Exit.USAGE
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("train.py",), "give --base-ref, such as --base-ref origin/main, or --baseline FILE"),
        (("--allow-different-machine", "train.py"), "needs --baseline"),
        (("--base-ref", "main", "--allow-different-machine", "train.py"), "can't be used together"),
        (("--baseline", "nothing.json", "train.py"), "[baseline-missing]"),
        (("--baseline", "train.py", "train.py"), "[baseline-unreadable]"),
        (("--baseline", "report.json", "train.py"), "[baseline-is-report]"),
    ],
)
def test_what_is_no_baseline(
    bench: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], said: str
) -> None:
    (tmp_path / "report.json").write_bytes((GOLDEN / "pets.json").read_bytes())
    assert main(["check", "-q", *options]) == Exit.USAGE
    assert said in capsys.readouterr().err
    assert bench.started == []


def test_a_project_s_base_gives_way_to_the_command_line(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "doctor.toml").write_text(
        'base-ref = "main"\nbase-setup = "make"\n[metrics.step_time]\nthreshold = "9%"\n'
    )
    assert check("train.py") == Exit.DONE
    made = check_from_json((tmp_path / "out.json").read_bytes(), source="x")
    assert made.metrics[0].threshold == 0.09


def test_a_baseline_without_the_steady_allocator_is_held_to_the_same(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "base.json").write_bytes(to_json(stored(steady=False)))
    assert check("train.py") == Exit.DONE
    assert bench.started[0].steady is False
    assert bench.started[0].variables() == {}
    made = check_from_json((tmp_path / "out.json").read_bytes(), source="x")
    assert made.command == ["doctor", "check", "--baseline", "base.json", "--no-steady", "train.py"]
