"""By which line, and whose code, values are taken out of tensors."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.unit.own_modules import loaded

from bottleneck_doctor.runtime.modes.values import TakenValues
from bottleneck_doctor.runtime.process.patches import Patches

SOLVER = """
def solve(values):
    while values.sum() > 0:
        values = values - 1
    return values
"""
SCRIPT = """
from solver import solve

def train(values):
    total = values.sum().item()
    solve(values)
    return total
"""


@pytest.fixture
def script(tmp_path: Path) -> Iterator[Any]:
    library = tmp_path / "site-packages"
    library.mkdir()
    (library / "solver.py").write_text(SOLVER)
    loaded(library / "solver.py")
    (tmp_path / "script.py").write_text(SCRIPT)
    yield loaded(tmp_path / "script.py")
    for name in ("solver", "script"):
        sys.modules.pop(name, None)


def test_what_a_library_takes_is_told_apart_from_what_the_line_takes(script: Any) -> None:
    values, patches = TakenValues(lambda: True), Patches()
    values.apply(patches)
    try:
        script.train(torch.tensor([2.0, 1.0]))
    finally:
        patches.take_off()
    told = {(each["name"], each["line"]): (each["library"], each["count"]) for each in values.detail()}
    assert told == {(".item()", 5): ("", 1), ("bool()", 6): ("solver", 3)}
    assert {each["file"] for each in values.detail()} == {script.__file__}
