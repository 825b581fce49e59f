"""Shows with real environments that installing the wheel leaves the user's torch alone, and that a tool without torch
examines a script of another environment.

    python tests/install/check_install.py [--folder FOLDER]

Exit code 0: all of it held; 1: something did not. Each check is printed with what was seen. It downloads torch 2.6
(about 3 GB, 6 GB on the disk) into a temporary folder, which is removed; with `--folder` the environments are kept
there, and one with torch that lies there already is used again. The Python that runs it is the one of all
environments, 3.10 to 3.13: for others there is no torch 2.6. 5 to 15 minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
TORCH = "torch==2.6.*"
TORCHVISION = "torchvision==0.21.*"
"""The release that was built together with that torch."""
BROUGHT = re.compile(r"(torch|torchvision|triton|cuda.*|nvidia-(?!ml-py$).+)$")
"""What must come from the user's own hands. `nvidia-ml-py` asks the driver, and brings nothing of CUDA."""
BUDGET = 40

TRAIN = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Numbers(Dataset):
    def __len__(self):
        return 100_000

    def __getitem__(self, index):
        total = 0
        for each in range(400):
            total += each * index % 7
        return torch.tensor([float(total % 5), 1.0]), torch.tensor([1.0])


model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
for inputs, wanted in DataLoader(Numbers(), batch_size=16):
    optimizer.zero_grad()
    nn.functional.mse_loss(model(inputs), wanted).backward()
    optimizer.step()
"""


class Failed(Exception):
    """Something did not hold."""


def say(text: str) -> None:
    print(f"[{time.monotonic() - STARTED:5.0f} s] {text}", flush=True)


def held(condition: bool, text: str) -> None:
    """Print a check that held. Raises `Failed`."""
    if not condition:
        raise Failed(text)
    say(f"ok: {text}")


def run(*words: str | Path, env: Mapping[str, str] | None = None, cwd: Path | None = None, code: int = 0) -> str:
    """What a command writes to its output, and then what to its errors. It has to end with `code`. Raises `Failed`."""
    done = subprocess.run([str(each) for each in words], env=env, cwd=cwd, text=True, capture_output=True)
    said = done.stdout + done.stderr
    if done.returncode != code:
        raise Failed(f"{' '.join(map(str, words))} ended with {done.returncode}, not {code}:\n{said[-4000:]}")
    return said


def environment(folder: Path, *packages: str) -> Path:
    """A new environment's interpreter, with these packages."""
    venv.create(folder, with_pip=True, symlinks=True)
    if packages:
        install(folder / "bin" / "python", *packages)
    return folder / "bin" / "python"


def install(python: Path, *packages: str) -> None:
    run(python, "-m", "pip", "install", "--disable-pip-version-check", "--no-cache-dir", "--quiet", *packages)


def packages(python: Path) -> dict[str, str]:
    """What `pip list` shows, by name."""
    listed = run(python, "-m", "pip", "--disable-pip-version-check", "list", "--format", "json")
    return {each["name"].lower().replace("_", "-"): each["version"] for each in json.loads(listed.splitlines()[0])}


def installed_beside(python: Path, wheel: Path, what: str) -> set[str]:
    """Install the wheel into an environment that has torch, and compare `pip list` before and after: what is new.

    Raises `Failed` where anything was replaced, or torch or a part of CUDA came along.
    """
    before = packages(python)
    install(python, str(wheel))
    after = packages(python)
    changed = {name: (version, after.get(name)) for name, version in before.items() if after.get(name) != version}
    new = set(after) - set(before)
    say(f"{what}: {len(before)} packages before, torch {before['torch']}; new: {', '.join(sorted(new))}")
    held(changed == {}, f"{what}: the {len(before)} packages that were there are as they were {changed or ''}".rstrip())
    brought = sorted(filter(BROUGHT.match, new))
    held(brought == [], f"{what}: nothing of torch or CUDA came along {brought or ''}".rstrip())
    held("bottleneck-doctor" in new, f"{what}: the wheel is installed")
    doctor = python.with_name("doctor")
    run(doctor, "--version")
    run(doctor, "fixes")
    return new


def examine(doctor: Path, folder: Path, python: Path, *options: str | Path, env: Mapping[str, str]) -> None:
    """Examine the script of `folder` with a doctor that has no torch. Raises `Failed` where there is no baseline."""
    report = folder / "report"
    shutil.rmtree(report, ignore_errors=True)
    said = run(
        doctor, "run", "--budget", f"{BUDGET}s", "-o", report, *options, "train.py", cwd=folder, env=env
    )  # fmt: skip
    result = json.loads((report / "report.json").read_text("utf-8"))
    own = run(python, "-c", "import torch; print(torch.__version__)").splitlines()[0]
    held(result["environment"]["torch"] == own, f"the report is of that environment's torch {own}")
    held(bool(result["baseline"]), f"it was measured: {result['verdict']['sentence']}")
    held((report / "report.html").stat().st_size > 0, "there is a page")
    # Doctor's own line_profiler is lent: both environments are of one Python.
    refused = [each["sentence"] for each in result["profiles"]["missing"] if "line_profiler" in each["sentence"]]
    held(refused == [], f"line_profiler is there {refused or ''}".rstrip())
    if not options:
        held(f"The script runs with {python} (torch " in said, "the terminal says which interpreter is used")


def check(scratch: Path) -> None:
    """All checks in turn. Raises `Failed` at the first that does not hold."""
    say("building the wheel")
    dist = scratch / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", dist, ROOT)
    (wheel,) = dist.glob("*.whl")
    say(wheel.name)

    user = scratch / "user"
    python = user / "bin" / "python"
    if not python.exists():
        say(f"an environment with {TORCH} and nothing else")
        environment(user, TORCH)
    held("torchvision" not in packages(python), "there is no torchvision")
    new = installed_beside(python, wheel, "torch alone")
    run(python, "-m", "pip", "uninstall", "--yes", "--quiet", *sorted(new))

    # Another environment, so that the one without torchvision is there to be examined, and to be used again.
    both = scratch / "both"
    shutil.rmtree(both, ignore_errors=True)
    say(f"the same with {TORCHVISION}")
    shutil.copytree(user, both, symlinks=True, copy_function=os.link)
    second = both / "bin" / "python"
    # pip's own programs name the first environment; modules are started by their interpreter, which finds its own.
    install(second, TORCHVISION)
    held(packages(second)["torch"] == packages(python)["torch"], "torchvision came beside the same torch")
    installed_beside(second, wheel, "torch and torchvision")
    shutil.rmtree(both)

    say("a tool environment")
    shutil.rmtree(scratch / "tool", ignore_errors=True)
    tool = environment(scratch / "tool", str(wheel))
    doctor = tool.with_name("doctor")
    held(not any(map(BROUGHT.match, packages(tool))), "it has no torch")

    project = scratch / "project"
    project.mkdir(exist_ok=True)
    (project / "train.py").write_text(TRAIN)
    plain = {name: value for name, value in os.environ.items() if not re.match("VIRTUAL_ENV|CONDA_|PYTHON", name)}
    plain["PATH"] = "/usr/bin:/bin"
    say("--python names the other environment")
    examine(doctor, project, python, "--python", python, env=plain)
    say("the other environment is activated")
    examine(doctor, project, python, env={**plain, "VIRTUAL_ENV": str(user), "PATH": f"{user}/bin:{plain['PATH']}"})
    say("neither")
    said = run(doctor, "run", "train.py", cwd=project, env={**plain, "PATH": str(scratch / "nowhere")}, code=2)
    held("[torch-missing]" in said and "Traceback" not in said, said.strip())
    say("an interpreter that has none")
    said = run(doctor, "run", "--python", tool, "train.py", cwd=project, env=plain, code=4)
    held("The Python that runs the script has no torch. [torch-missing]" in said, "it is said in a sentence")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Check that installing doctor leaves torch alone.")
    parser.add_argument("--folder", type=Path, help="where the environments are made, and kept")
    folder = parser.parse_args(arguments).folder
    scratch = Path(tempfile.mkdtemp(prefix="doctor-install-")) if folder is None else folder.absolute()
    scratch.mkdir(parents=True, exist_ok=True)
    try:
        check(scratch)
    except Failed as failed:
        say(f"FAILED: {failed}")
        return 1
    finally:
        if folder is None:
            shutil.rmtree(scratch, ignore_errors=True)
    say("installing leaves torch alone, and a tool without torch examines another environment")
    return 0


STARTED = time.monotonic()

if __name__ == "__main__":
    sys.exit(main())
