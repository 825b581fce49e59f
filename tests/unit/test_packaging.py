"""Installing doctor leaves the user's torch alone, and doctor itself does without one."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from bottleneck_doctor import config

ROOT = Path(__file__).parents[2]
PROJECT = config.read_toml((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
BROUGHT = re.compile(r"torch|nvidia-(?!ml-py\b)|triton|cuda", re.IGNORECASE)
"""What must come from the user's own hands. `nvidia-ml-py` asks the driver, and brings nothing of CUDA."""


def test_no_requirement_is_torch_or_of_cuda() -> None:
    """`tests/install/check_install.py` asks the same of a wheel that it builds, and of an environment beside it."""
    assert PROJECT["dependencies"]
    assert PROJECT["dynamic"] == ["version"], "the wheel's requirements are those that stand in the file"
    assert [each for each in PROJECT["dependencies"] if BROUGHT.match(each)] == []
    assert BROUGHT.match("torchvision>=0.19")
    assert BROUGHT.match("nvidia-nccl-cu13")
    assert not BROUGHT.match("nvidia-ml-py>=12")


def test_extras_bring_what_make_needs() -> None:
    assert {re.split(r"[<>=]", each)[0] for each in EXTRAS["demo"]} >= {"torch", "torchvision"}
    # `make test` counts as set up for the demo too.
    assert set(EXTRAS["demo"]) <= set(EXTRAS["dev"])
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert '--editable ".[demo]"' in makefile
    assert '--editable ".[dev]"' in makefile


IMPORT_ALL = """
import importlib, json, pkgutil, sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "torchvision", "line_profiler"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked())
import bottleneck_doctor
names, failed = [], {}

def walk(package):
    for each in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        if each.name == "bottleneck_doctor.runtime" or each.name.endswith("__main__"):
            continue
        names.append(each.name)
        try:
            module = importlib.import_module(each.name)
        except Exception as error:
            failed[each.name] = repr(error)
        else:
            if each.ispkg:
                walk(module)

walk(bottleneck_doctor)
print(json.dumps([names, failed]))
"""


def test_all_but_the_guest_is_imported_without_torch() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL], capture_output=True, text=True, timeout=120, check=True, cwd=ROOT
    )
    names, failed = json.loads(done.stdout.splitlines()[-1])
    assert len(names) > 100
    assert {"bottleneck_doctor.cli.run", "bottleneck_doctor.gate.baseline.machine"} <= set(names)
    assert failed == {}
