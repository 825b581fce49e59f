"""What is said where the script's interpreter has no line_profiler."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bottleneck_doctor.runtime.modes import Refused, lines

OTHER_PYTHON = """
raise ImportError(
    "The line_profiler._line_profiler c-extension is not importable. Has it been compiled? Underlying error is "
    "ex=ModuleNotFoundError(\\"No module named 'line_profiler._line_profiler'\\")"
)
"""
"""What the package does whose compiled part is of another version of Python."""


class Hidden:
    """Finds line_profiler nowhere but in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name.partition(".")[0] == "line_profiler" and self.folder not in sys.path:
            raise ModuleNotFoundError("No module named 'line_profiler'", name="line_profiler")


@pytest.fixture
def lent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder from which alone line_profiler is found, once it is there."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "line_profiler"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Hidden(tmp_path), *sys.meta_path])
    # What other tests import from is not looked at.
    monkeypatch.setattr(sys, "path", [])
    return tmp_path


def test_there_is_none_and_none_is_lent(lent: Path) -> None:
    with pytest.raises(Refused) as refused:
        lines._import("")
    assert "that runs the script: it is not installed there; install it with `python -m pip" in str(refused.value)


def test_what_is_lent_is_made_for_another_python(lent: Path) -> None:
    (lent / "line_profiler").mkdir()
    (lent / "line_profiler" / "__init__.py").write_text(OTHER_PYTHON)
    with pytest.raises(Refused) as refused:
        lines._import(str(lent))
    said = str(refused.value)
    assert "it is not installed there, and doctor's own is made for another Python; install it with" in said
    assert "c-extension" not in said
    assert "line_profiler" not in sys.modules
    assert sys.path == []


def test_what_is_broken_in_another_way_is_told(lent: Path) -> None:
    (lent / "line_profiler.py").write_text("raise ImportError('libfoo.so is missing')")
    with pytest.raises(Refused, match=r"runs the script: libfoo\.so is missing; install"):
        lines._import(str(lent))


def test_what_is_lent_is_used(lent: Path) -> None:
    (lent / "line_profiler.py").write_text("MARK = 7")
    assert lines._import(str(lent)).MARK == 7
    assert sys.path == []
    del sys.modules["line_profiler"]
