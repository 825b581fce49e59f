"""Which Python runs the script where the user names none."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.notebooks import notebook

from bottleneck_doctor.cli import main
from bottleneck_doctor.errors import DoctorError, Exit
from bottleneck_doctor.examine import no_result
from bottleneck_doctor.session import interpreter
from bottleneck_doctor.session.ending import Ending, SessionOver
from bottleneck_doctor.session.interpreter import Candidate, Chosen, activated, another, candidates, check_torch, choose
from bottleneck_doctor.session.start import Start

OWN = "/tools/doctor/bin/python"
PROJECT = [Path("/work/project/src"), Path("/work/project")]


def found(*there: str, launcher: str = "", **environment: str) -> list[tuple[str, str]]:
    """Candidates on a machine that has the programs `there`, and doctor in an environment of its own."""
    environment.setdefault("PATH", "/usr/local/bin:/usr/bin")
    seen = candidates(environment, PROJECT, {OWN, *there}.__contains__, own=OWN, launcher=launcher or None)
    return [(each.python, each.what) for each in seen]


# -- places that are looked at -----------------------------------------------------------------------------------------


def test_nothing_is_made_up() -> None:
    assert found() == []
    assert found(VIRTUAL_ENV="/gone", CONDA_PREFIX="/gone/too") == []


def test_the_activated_environment_comes_before_the_project_and_that_before_the_path() -> None:
    assert found(
        "/usr/bin/python3", "/work/project/.venv/bin/python", "/env/bin/python",
        VIRTUAL_ENV="/env", PATH="/env/bin:/usr/bin",
    ) == [
        ("/env/bin/python", "the one of the activated environment"),
        ("/work/project/.venv/bin/python", "the one in the project's .venv"),
        ("/usr/bin/python3", "`python3` in PATH"),
    ]  # fmt: skip


def test_of_two_activated_environments_the_one_whose_programs_a_shell_finds_first() -> None:
    both = {"VIRTUAL_ENV": "/venv", "CONDA_PREFIX": "/conda"}
    assert activated({**both, "PATH": "/conda/bin:/venv/bin:/usr/bin"}) == ["/conda", "/venv"]
    assert activated({**both, "PATH": "/venv/bin:/conda/bin:/usr/bin"}) == ["/venv", "/conda"]
    assert activated({**both, "PATH": "/usr/bin:/conda/bin"}) == ["/conda", "/venv"]
    assert activated({**both, "PATH": "/usr/bin"}) == ["/venv", "/conda"]
    assert activated({"VIRTUAL_ENV": ""}) == []


def test_condas_base_counts_as_python_in_the_path_only() -> None:
    """It is activated in every shell of many machines, and is nobody's choice."""
    conda = {"CONDA_PREFIX": "/conda", "CONDA_DEFAULT_ENV": "base", "PATH": "/conda/bin:/usr/bin"}
    assert activated(conda) == []
    assert found("/conda/bin/python", "/work/project/.venv/bin/python", **conda) == [
        ("/work/project/.venv/bin/python", "the one in the project's .venv"),
        ("/conda/bin/python", "`python` in PATH"),
    ]


def test_the_nearest_environment_of_the_project_comes_first() -> None:
    near, far = "/work/project/src/venv/bin/python", "/work/project/.venv/bin/python"
    assert [python for python, _ in found(far, near)] == [near, far]


def test_in_the_path_the_one_that_a_shell_would_start() -> None:
    assert found("/usr/bin/python", "/usr/local/bin/python", "/usr/bin/python3") == [
        ("/usr/local/bin/python", "`python` in PATH"),
        ("/usr/bin/python3", "`python3` in PATH"),
    ]


def test_one_folder_is_one_place() -> None:
    assert found("/usr/bin/python", "/usr/bin/python3") == [("/usr/bin/python", "`python` in PATH")]
    assert [what for _, what in found("/env/bin/python", VIRTUAL_ENV="/env", PATH="/env/bin")] == [
        "the one of the activated environment"
    ]


def test_doctors_own_interpreter_is_left_out() -> None:
    """`uvx` puts its folder in front of PATH; whoever activates doctor's environment has it there too."""
    own = {"VIRTUAL_ENV": "/tools/doctor", "PATH": "/tools/doctor/bin:/usr/bin"}
    assert found("/tools/doctor/bin/python3", "/usr/bin/python", **own) == [("/usr/bin/python", "`python` in PATH")]


def test_the_interpreter_beside_a_launcher_comes_first() -> None:
    there = ("/env/bin/python", "/other/bin/python")
    assert found(*there, launcher="/other/bin/torchrun", VIRTUAL_ENV="/env") == [
        ("/other/bin/python", "the one in the launcher's folder"),
        ("/env/bin/python", "the one of the activated environment"),
    ]
    assert [python for python, _ in found(*there, launcher="/scripts/run", VIRTUAL_ENV="/env")] == ["/env/bin/python"]


# -- the choice --------------------------------------------------------------------------------------------------------


def having(**torch: str) -> Callable[[str], str | None]:
    """Answers of interpreters, of which those have torch that stand in the folders named."""
    return {f"/{folder}/bin/python": version for folder, version in torch.items()}.get


FOUND = [Candidate("/a/bin/python", "the first"), Candidate("/b/bin/python", "the second")]


def test_the_first_that_has_torch_is_taken_and_named() -> None:
    chosen = choose(OWN, FOUND, having(b="2.6.0"))
    assert chosen.python == "/b/bin/python"
    assert "/b/bin/python (torch 2.6.0), the second" in chosen.note
    assert choose(OWN, FOUND, having(a="", b="2.6.0")).python == "/a/bin/python"


@pytest.mark.parametrize(
    ("count", "said"),
    [(0, "has no torch."), (1, "and /a/bin/python has none either."), (2, "none of /a/bin/python, /b/bin")],
)
def test_where_none_has_torch_it_is_said_what_was_looked_at(count: int, said: str) -> None:
    with pytest.raises(DoctorError) as raised:
        choose(OWN, FOUND[:count], having())
    assert raised.value.slug == "torch-missing"
    assert raised.value.exit_code == Exit.USAGE
    assert OWN in raised.value.sentence
    assert said in raised.value.sentence
    assert "--python" in raised.value.next_step


@pytest.mark.parametrize("torch", ["2.4.0", "2.4.0a0+git1234", "2.14.1", "3.0", "", "unknown"])
def test_torch_that_can_be_examined(torch: str) -> None:
    check_torch("python", torch)


@pytest.mark.parametrize("torch", ["2.3.1", "1.13.1+cu117", "2.0"])
def test_torch_that_is_too_old(torch: str) -> None:
    with pytest.raises(DoctorError, match=r"2\.4 or newer") as raised:
        check_torch("python", torch)
    assert raised.value.slug == "torch-too-old"
    with pytest.raises(DoctorError, match=re.escape(torch)):
        choose(OWN, FOUND, having(a=torch))


def test_another_environment_is_activated_than_doctors_own() -> None:
    active = {"VIRTUAL_ENV": "/env", "PATH": "/env/bin"}
    assert another(active, OWN, ["/tools/doctor", "/tools/doctor/lib/torch"]).endswith("--python /env/bin/python")
    assert another(active, "/env/bin/python", ["/env", "/env/lib/torch"]) == ""
    # `uv run --with` lays an environment of its own over the project's.
    assert another(active, "/over/bin/python", ["/over", "/env/lib/torch"]) == ""
    assert another({"PATH": "/usr/bin"}, OWN, ["/tools/doctor"]) == ""


def test_a_script_that_finds_no_torch_is_told_so() -> None:
    words = "ModuleNotFoundError: No module named 'torch'"
    error = no_result.entrypoint_failed(SessionOver(Ending.CRASH, words, tail=words))
    assert (error.slug, error.exit_code) == ("torch-missing", Exit.ENTRYPOINT_FAILED)
    assert error.detail == words
    for other in ("ModuleNotFoundError: No module named 'torchvision'", "RuntimeError: No module named 'torch'"):
        assert no_result.entrypoint_failed(SessionOver(Ending.CRASH, other)).slug == "entrypoint-failed"


# -- this machine ------------------------------------------------------------------------------------------------------


def program(folder: Path, says: str, code: int = 0) -> str:
    """A program in the place of an interpreter."""
    path = folder / "bin" / "python"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\n{says}\nexit {code}\n")
    path.chmod(0o755)
    return str(path)


def test_an_interpreter_is_asked(tmp_path: Path) -> None:
    own = interpreter.own_torch()
    assert own is not None
    assert interpreter.torch_of(sys.executable) == own.version
    assert interpreter.torch_of(str(tmp_path / "nothing")) is None
    assert interpreter.torch_of(program(tmp_path / "fails", "", 1)) is None
    assert interpreter.torch_of(program(tmp_path / "no-python", "echo hello")) is None
    assert interpreter.torch_of(program(tmp_path / "speaks", "echo hello; echo; echo torch 2.6.0")) == "2.6.0"


def test_a_folder_called_torch_is_no_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = tmp_path / "bare" / "bin" / "python"
    bare.parent.mkdir(parents=True)
    # Without the libraries of this environment.
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    bare.chmod(0o755)
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").touch()
    monkeypatch.chdir(tmp_path)
    assert interpreter.torch_of(str(bare)) is None


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project in the current folder; doctor's own interpreter has no torch, and nothing is activated."""
    monkeypatch.setattr(interpreter, "own_torch", lambda: None)
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    project = tmp_path / "project"
    (project / "src").mkdir(parents=True)
    (project / ".git").mkdir()
    (project / "src" / "train.py").write_text("import torch\n")
    monkeypatch.chdir(project / "src")
    return project


def started(monkeypatch: pytest.MonkeyPatch, *words: str) -> tuple[int, list[Start]]:
    """What `doctor run` hands on, and its exit code."""
    seen = []

    def examine(request: object, progress: object) -> None:
        seen.append(request.start)  # type: ignore[attr-defined]
        raise DoctorError("seen", "Seen.", "Go on.")

    monkeypatch.setattr("bottleneck_doctor.examine.examination.examine", examine)
    return main(["run", *words]), seen


def test_the_environment_above_the_script_is_found(tool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = program(tool / ".venv", "echo; echo torch 2.6.0")
    program(tool.parent / ".venv", "echo; echo torch 2.7.0")
    _, (start,) = started(monkeypatch, "train.py")
    assert start.interpreter == os.path.realpath(python)
    monkeypatch.chdir(tool.parent)
    _, (start,) = started(monkeypatch, "project/src/train.py")
    assert start.interpreter == os.path.realpath(python)
    (tool / ".venv" / "bin" / "python").unlink()
    monkeypatch.chdir(tool)
    # Beyond the repository's root nothing is the project's.
    assert started(monkeypatch, "src/train.py") == (Exit.USAGE, [])


def test_the_terminal_says_which_interpreter_is_used(
    tool: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    python = program(tool.parent / "env", "echo; echo torch 2.6.0")
    monkeypatch.setenv("VIRTUAL_ENV", str(tool.parent / "env"))
    _, (start,) = started(monkeypatch, "train.py")
    assert start.interpreter == python
    assert start.again("run") == ["doctor", "run", "--python", python, "train.py"]
    assert f"{python} (torch 2.6.0), the one of the activated environment" in capsys.readouterr().err
    started(monkeypatch, "-q", "train.py")
    assert python not in capsys.readouterr().err


def kernel_of_jupyter(folder: Path, name: str, python: str) -> None:
    there = folder / "kernels" / name
    there.mkdir(parents=True)
    (there / "kernel.json").write_text(json.dumps({"argv": [python, "-m", "ipykernel_launcher"], "language": "python"}))


def test_the_kernel_of_a_notebook_comes_first(
    tool: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    python = program(tool.parent / "kernel", "echo; echo torch 2.6.0")
    beside = program(tool / ".venv", "echo; echo torch 2.7.0")
    monkeypatch.setenv("JUPYTER_PATH", str(tool.parent / "jupyter"))
    kernel_of_jupyter(tool.parent / "jupyter", "my-env", python)
    kernel_of_jupyter(tool.parent / "jupyter", "python3", python)
    kernel_of_jupyter(tool.parent / "jupyter", "gone", str(tool.parent / "gone" / "python"))
    (tool / "src" / "a.ipynb").write_bytes(notebook("import torch", kernel="My-Env"))
    _, (start,) = started(monkeypatch, "a.ipynb")
    assert start.interpreter == python
    assert "the one of the notebook's kernel, My-Env" in capsys.readouterr().err
    # One that Jupyter itself has, that is not here, or that no notebook has, says nothing.
    for kernel in ("python3", "gone", "elsewhere", "../my-env", ""):
        (tool / "src" / "a.ipynb").write_bytes(notebook("import torch", kernel=kernel))
        _, (start,) = started(monkeypatch, "a.ipynb")
        assert start.interpreter == os.path.realpath(beside)


def test_a_notebook_with_another_kernel_than_doctors_python_says_so(
    tool: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(interpreter, "own_torch", lambda: interpreter.OwnTorch("2.6.0", "/x/torch/__init__.py"))
    python = program(tool.parent / "kernel", "")
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tool.parent / "jupyter"))
    kernel_of_jupyter(tool.parent / "jupyter", "my-env", python)
    kernel_of_jupyter(tool.parent / "jupyter", "own", sys.executable)
    for kernel, said in (("my-env", f"To use that of its kernel, my-env, give --python {python}"), ("own", "")):
        (tool / "src" / "a.ipynb").write_bytes(notebook("import torch", kernel=kernel))
        _, (start,) = started(monkeypatch, "a.ipynb")
        assert start.python is None
        shown = capsys.readouterr().err
        assert said in shown
        assert ("--python" in shown) == bool(said)


def test_without_torch_anywhere_nothing_is_started(
    tool: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert started(monkeypatch, "train.py") == (Exit.USAGE, [])
    assert "[torch-missing]\n  → Activate the environment" in capsys.readouterr().err
    # What the user named is tried: a script may get its torch from somewhere else.
    bare = program(tool.parent / "bare", "", 3)
    _, (start,) = started(monkeypatch, "--python", bare, "train.py")
    assert start.interpreter == bare
    old = program(tool.parent / "old", "echo; echo torch 2.1.0")
    assert started(monkeypatch, "--python", old, "train.py") == (Exit.USAGE, [])
    assert "[torch-too-old]" in capsys.readouterr().err


def test_a_missing_script_is_missed_before_an_interpreter(
    tool: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert started(monkeypatch, "tran.py") == (Exit.USAGE, [])
    assert "[script-missing]" in capsys.readouterr().err


def test_a_command_runs_as_it_is_without_torch_too(tool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shell = "/bin/sh train.sh"
    _, (start,) = started(monkeypatch, "--exec", shell)
    assert start.argv() == ("/bin/sh", "train.sh")
    assert start.interpreter == sys.executable
    python = program(tool / ".venv", "echo; echo torch 2.6.0")
    _, (start,) = started(monkeypatch, "--exec", shell)
    assert start.argv() == ("/bin/sh", "train.sh")
    # Whoever asks the training's environment asks the one that was found.
    assert start.interpreter == os.path.realpath(python)
    assert start.again("run") == ["doctor", "run", "--exec", shell]


def test_a_launcher_brings_its_interpreter(tool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = program(tool / ".venv", "echo; echo torch 2.6.0")
    beside = program(tool.parent / "other", "echo; echo torch 2.6.0")
    for name in ("torchrun", "nice"):
        (tool.parent / "other" / "bin" / name).symlink_to(beside)
    _, (start,) = started(monkeypatch, "--launch", "../../other/bin/torchrun --nproc-per-node 2", "train.py")
    assert start.interpreter == os.path.realpath(beside)
    # One that starts any program says nothing of Python.
    _, (start,) = started(monkeypatch, "--launch", "../../other/bin/nice -n 1", "train.py")
    assert start.interpreter == os.path.realpath(project)
    assert started(monkeypatch, "--launch", "'", "train.py") == (Exit.USAGE, [])


def test_nothing_is_looked_for_where_doctors_own_has_torch(tool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreter, "own_torch", lambda: interpreter.OwnTorch("2.6.0", "/x/torch/__init__.py"))
    program(tool / ".venv", "echo; echo torch 2.6.0")
    assert interpreter.chosen([Path.cwd()]) == Chosen()
