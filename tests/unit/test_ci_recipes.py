"""The action and the recipes of docs/ci.md: they parse, they are pinned, and what the action runs does what it says."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from bottleneck_doctor.cli import doctor
from bottleneck_doctor.gate.limits import KINDS
from bottleneck_doctor.wording.check_words import amount_text

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
RECIPES = (ROOT / "docs" / "ci.md").read_text("utf-8")
PINNED = re.compile(r"[\w.-]+/[\w.-]+@[0-9a-f]{40}")
BLOCKS = [yaml.safe_load(block) for block in re.findall(r"^```yaml\n(.*?)^```", RECIPES, re.MULTILINE | re.DOTALL)]


def steps_of(document: Any) -> Iterator[dict[str, Any]]:
    for job in document["jobs"].values():
        yield from job["steps"]


def step(name: str) -> dict[str, Any]:
    return next(each for each in ACTION["runs"]["steps"] if each["name"] == name)


# -- the action --------------------------------------------------------------------------------------------------------


def test_the_action_is_a_composite_one() -> None:
    assert {"name", "description", "inputs", "outputs", "runs"} <= set(ACTION)
    assert ACTION["runs"]["using"] == "composite"
    for name, given in ACTION["inputs"].items():
        assert given["description"].strip(), name
        assert given.get("required") or isinstance(given["default"], str), f"{name} needs a default that is a text"
    for each in ACTION["outputs"].values():
        assert each["description"]
        assert re.fullmatch(r"\$\{\{ steps\.check\.outputs\.[\w-]+ \}\}", each["value"])


def test_every_step_is_whole() -> None:
    for each in ACTION["runs"]["steps"]:
        assert ("run" in each) != ("uses" in each), each["name"]
        if "run" in each:
            assert each["shell"] == "bash", "a composite action has no default shell"
        else:
            assert PINNED.fullmatch(each["uses"]), "a tag may be moved"


def test_inputs_never_become_part_of_a_script() -> None:
    for each in ACTION["runs"]["steps"]:
        assert "${{" not in each.get("run", ""), each["name"]


def test_everything_referred_to_exists() -> None:
    text = (ROOT / "action.yml").read_text("utf-8")
    assert set(re.findall(r"\binputs\.([\w-]+)", text)) == set(ACTION["inputs"])
    ids = {each["id"]: each.get("run", "") for each in ACTION["runs"]["steps"] if "id" in each}
    for name, output in re.findall(r"\bsteps\.([\w-]+)\.outputs\.([\w-]+)", text):
        assert f'echo "{output}=' in ids[name]


def test_it_comments_nothing() -> None:
    assert not re.search(r"github\.token|GH_TOKEN|secrets\.", (ROOT / "action.yml").read_text("utf-8"))


@pytest.fixture
def runner(tmp_path: Path) -> Path:
    """A folder with what a runner gives: a python, and a doctor that writes down how it was called."""
    if shutil.which("bash") is None:
        pytest.skip("there is no bash")
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "python").symlink_to(sys.executable)
    doctor = tools / "doctor"
    doctor.write_text('#!/bin/bash\nprintf "%s\\n" "$@" >called\nexit "${DOCTOR_CODE:-0}"\n')
    doctor.chmod(0o755)
    return tmp_path


def run(name: str, folder: Path, **variables: str) -> tuple[int, dict[str, str]]:
    """The exit code of a step, and what it put out."""
    output = folder / "output"
    output.write_text("")
    environment = {
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        "GITHUB_OUTPUT": str(output),
        "GITHUB_ACTION_PATH": "/the/action",
        "RUNNER_TEMP": str(folder / "temp with space"),
        **dict.fromkeys(step(name).get("env", {}), ""),
        **variables,
    }
    Path(environment["RUNNER_TEMP"]).mkdir(exist_ok=True)
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step(name)["run"]],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    return done.returncode, dict(line.split("=", 1) for line in output.read_text().splitlines())


@pytest.mark.parametrize("code", [0, 1, 3])
def test_the_check_is_run_and_its_code_kept(runner: Path, code: int) -> None:
    found, output = run(
        "Check", runner, SCRIPT="my train.py", ARGUMENTS='--name "a b" $(touch x)', BASE="origin/main", BUDGET="5m",
        OPTIONS="--inconclusive fail", DOCTOR_CODE=str(code),
    )  # fmt: skip
    assert found == code
    reports = output["reports"]
    assert Path(reports).parent == runner / "temp with space"
    assert output["exit-code"] == str(code)
    assert (runner / "called").read_text().splitlines() == [
        "check", "--inconclusive", "fail", "--base-ref", "origin/main", "--budget", "5m",
        "--json", f"{reports}/check.json", "--markdown", f"{reports}/check.md",
        "--junit", f"{reports}/check.xml", "--html", f"{reports}/check.html",
        "my train.py", "--", "--name", "a b", "$(touch", "x)",
    ]  # fmt: skip
    assert not (runner / "x").exists()


def test_a_stored_baseline_takes_the_place_of_a_revision(runner: Path) -> None:
    assert run("Check", runner, SCRIPT="train.py", BASELINE="my pets.json")[0] == 0
    called = (runner / "called").read_text().splitlines()
    assert called[1:3] == ["--baseline", "my pets.json"]
    assert "--base-ref" not in called
    # Where both are asked for, the command says that they can't be used together.
    assert "inputs.baseline == ''" in step("Fetch the base")["if"]


def test_arguments_that_cannot_be_split_are_refused(runner: Path) -> None:
    found, _ = run("Check", runner, SCRIPT="train.py", ARGUMENTS="'open")
    assert found != 0
    assert not (runner / "called").exists()


def test_versions_are_full_ones(runner: Path) -> None:
    pip = runner / "bin" / "python"
    pip.unlink()
    pip.write_text('#!/bin/bash\nprintf "%s\\n" "$@" >called\n')
    pip.chmod(0o755)
    for version, package in (("", "/the/action"), ("0.1.0", "bottleneck-doctor==0.1.0"), ("1.0.0rc1", None)):
        assert run("Install bottleneck-doctor", runner, VERSION=version)[0] == 0
        called = (runner / "called").read_text().splitlines()
        assert called[-1] == (package or f"bottleneck-doctor=={version}")
    assert run("Install bottleneck-doctor", runner, REQUIREMENTS="my file.txt")[0] == 0
    assert (runner / "called").read_text().splitlines()[-2:] == ["-r", "my file.txt"]
    for version in ("1", ">=1.0", "latest", "1.0.0 evil", "1.0.0;x"):
        assert run("Install bottleneck-doctor", runner, VERSION=version)[0] == 2


def git(folder: Path, *arguments: str) -> str:
    settings = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    return subprocess.run(
        ["git", *settings, *arguments], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


def test_the_base_is_fetched_into_a_clone_of_one_commit(runner: Path) -> None:
    origin = runner / "origin"
    origin.mkdir()
    git(origin, "init", "--quiet", "--initial-branch=main")
    git(origin, "config", "uploadpack.allowAnySHA1InWant", "true")
    git(origin, "commit", "--quiet", "--allow-empty", "-m", "one")
    first = git(origin, "rev-parse", "HEAD")
    git(origin, "tag", "v1")
    git(origin, "checkout", "--quiet", "-b", "topic")
    git(origin, "commit", "--quiet", "--allow-empty", "-m", "two")
    for number, (variables, base, commit) in enumerate(
        [
            ({"TARGET": "main"}, "origin/main", first),
            ({"BEFORE": first}, first, first),
            ({"QUEUED": first}, first, first),
            ({"BEFORE": "0" * 40}, "", None),
            ({"BEFORE": "1" * 40}, "", None),
            ({"ASKED": first}, first, first),
            ({"ASKED": "origin/main", "TARGET": "other"}, "origin/main", first),
            ({"ASKED": "v1"}, "v1", first),
            ({"ASKED": "main"}, "origin/main", first),
            ({}, "", None),
        ]
    ):
        clone = runner / f"clone-{number}"
        git(runner, "clone", "--quiet", "--depth=1", "--branch=topic", f"file://{origin}", str(clone))
        (clone / "bin").symlink_to(runner / "bin")
        code, output = run("Fetch the base", clone, **variables)
        assert (code, output) == (0, {"ref": base})
        if commit is not None:
            assert git(clone, "rev-parse", f"{base}^{{commit}}") == commit


def test_an_asked_base_that_is_not_there_is_an_error(runner: Path) -> None:
    git(runner, "init", "--quiet", "--initial-branch=main")
    git(runner, "remote", "add", "origin", str(runner))
    git(runner, "commit", "--quiet", "--allow-empty", "-m", "one")
    assert run("Fetch the base", runner, ASKED="v9")[0] != 0
    assert run("Fetch the base", runner, ASKED="origin/none")[0] != 0


# -- the recipes -------------------------------------------------------------------------------------------------------


def test_workflows_are_whole_and_pinned() -> None:
    workflows = [block for block in BLOCKS if "jobs" in block]
    assert len(workflows) == 5
    assert any(one.get("with", {}).get("baseline") for each in workflows for one in steps_of(each))
    for each in workflows:
        assert True in each, "`on` is the word for true in YAML 1.1, as GitHub knows"
        for job in each["jobs"].values():
            assert job["runs-on"]
        for one in steps_of(each):
            uses = one.get("uses", "")
            if uses.startswith("your-organisation/bottleneck-doctor@"):
                assert set(one["with"]) <= set(ACTION["inputs"])
                assert "script" in one["with"]
            elif uses:
                assert PINNED.fullmatch(uses)
        permissions = each.get("permissions") or next(iter(each["jobs"].values()))["permissions"]
        assert permissions["contents"] == "read"


def test_the_gitlab_recipe_hands_over_what_it_writes() -> None:
    [job] = [each for block in BLOCKS if "jobs" not in block for each in block.values()]
    command = next(line for line in job["script"] if line.startswith("doctor check"))
    assert f"--junit {job['artifacts']['reports']['junit']} " in command
    assert f"--gitlab {job['artifacts']['reports']['codequality']} " in command
    assert job["artifacts"]["when"] == "always"


COMMANDS = re.findall(r"\bdoctor (check (?:--|\w+\.py)[^\n'`]*)", RECIPES)


@pytest.mark.parametrize("line", COMMANDS)
def test_commands_are_understood(line: str) -> None:
    words = shlex.split(re.sub(r"\$\{[^}]*\}", "main", line))
    with doctor.make_context("doctor", words[:1]) as context:
        command = doctor.get_command(context, words[0])
        assert command is not None
        # Options after the script would be the script's own.
        given = command.make_context(words[0], words[1:], parent=context).params
        assert given["base_ref"] or given["baseline"]
        assert given["words"][0] == "train.py"


def test_every_recipe_has_its_command() -> None:
    assert len(COMMANDS) == 5, COMMANDS


def test_the_metrics_listed_are_the_real_ones() -> None:
    listed: dict[str, tuple[str, str]] = {}
    row = re.compile(r"^\| (`[^|]*) \| [^|]* \| ([^|]*) \| ([^|]*) \|$", re.MULTILINE)
    for names, threshold, level in row.findall(RECIPES):
        listed |= dict.fromkeys(re.findall(r"`(\w+)`", names), (threshold, level))
    real = {name: (amount_text(kind.unit, kind.limit.threshold), kind.limit.level) for name, kind in KINDS.items()}
    assert listed == real


def test_the_configuration_shown_is_one() -> None:
    from bottleneck_doctor.config import parse, read_toml

    [block] = re.findall(r"^```toml\n(.*?)^```", RECIPES, re.MULTILINE | re.DOTALL)
    units = {name: kind.unit for name, kind in KINDS.items()}
    table = read_toml(block)["tool"]["bottleneck-doctor"]
    found = parse(table, units, ROOT / "pyproject.toml")
    assert found.budget == 300
    assert found.metrics["step_time"].threshold == 0.05
    assert found.metrics["host_memory"].most == 2 * 1024**3
