"""Which line of a traceback names the error."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from torch.utils.data import DataLoader, Dataset

from bottleneck_doctor.runtime.serve.window import reason
from bottleneck_doctor.runtime.wire.error_text import naming_line
from bottleneck_doctor.session.failure import Failure, cause

LONG = "raise ValueError('weights only load failed.\\n\\t(1) set it to False\\n\\nCheck the documentation')"


@pytest.mark.parametrize(
    ("program", "named"),
    [
        ("raise KeyError('a')", "KeyError: 'a'"),
        (LONG, "ValueError: weights only load failed."),
        (
            "raise RuntimeError('\\n    An attempt has been made\\n    to start')",
            "RuntimeError: An attempt has been made",
        ),
        ("try:\n    1 / 0\nexcept ZeroDivisionError:\n    raise OSError('full')", "OSError: full"),
        ("import sys\nsys.stderr.write('before\\n')\nassert False", "AssertionError"),
        ("def f(:", "SyntaxError: invalid syntax"),
        (
            "class Left:\n    def __del__(self): raise OSError('late')\nleft = Left()\nraise KeyError('a')",
            "KeyError: 'a'",
        ),
    ],
)
def test_the_line_behind_the_frames_names_it(program: str, named: str, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(program)
    said = subprocess.run([sys.executable, str(script)], capture_output=True, text=True).stderr
    if program == "def f(:":
        # Python has no traceback for what it can't compile; the last line names the error.
        assert naming_line(said) == ""
    else:
        assert naming_line(said) == named
    assert cause(Failure(setting={}, words=f"epoch 1\n{said}")).sentence == named


def test_nothing_names_an_error_where_there_is_none() -> None:
    assert naming_line("epoch 1\nloss 0.3\n") == ""
    assert naming_line("Traceback (most recent call last):\n  File 'train.py', line 3\n") == ""
    assert cause(Failure(setting={}, words="epoch 1\nno space for this\n")).sentence == "no space for this"


class Broken(Dataset[int]):
    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> int:
        raise ValueError("bad magic number\nread on elsewhere")


def test_an_error_of_a_worker_is_named_by_its_own_traceback() -> None:
    with pytest.raises(ValueError, match="Caught ValueError in DataLoader worker") as raised:
        list(DataLoader(Broken(), num_workers=1, multiprocessing_context="fork"))
    assert reason(raised.value) == "ValueError: bad magic number"


def test_an_error_of_many_lines_is_named_by_the_first() -> None:
    assert reason(RuntimeError("shapes differ\nframe #0: c10::Error()")) == "RuntimeError: shapes differ"
    assert reason(RuntimeError()) == "RuntimeError"
