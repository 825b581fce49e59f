"""The edit that makes a call before training begins: where it goes, and what it does with one that is there."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.diagnosable import FOUND

from bottleneck_doctor.edits.advice import changes_for
from bottleneck_doctor.edits.call import call_change
from bottleneck_doctor.edits.diff import ChangeText
from bottleneck_doctor.runtime.wire.messages import Site

CODE = "torch.set_num_threads(1)"
PRECISION = 'torch.set_float32_matmul_precision("high")'


def change(source: str, code: str = CODE) -> ChangeText:
    made = call_change(source, code)
    assert made is not None
    return made


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("import torch\nx = 1\n", f"import torch\n{CODE}\nx = 1\n"),
        ('"""Trains."""\n\nimport os\nimport torch\n', f'"""Trains."""\n\nimport os\nimport torch\n{CODE}\n'),
        ("import torch as t\nx = 1\n", "import torch as t\nt.set_num_threads(1)\nx = 1\n"),
        ("import os\nos.nice(1)\nimport torch\nx = 1\n", f"import os\nos.nice(1)\nimport torch\n{CODE}\nx = 1\n"),
        ("from torch import nn\nx = 1\n", f"from torch import nn\nimport torch\n{CODE}\nx = 1\n"),
        ("import torch", f"import torch\n{CODE}\n"),
        ("import torch\r\nx = 1\r\n", f"import torch\r\n{CODE}\r\nx = 1\r\n"),
        ("import torch\ndef f():\n    import torch\n", f"import torch\n{CODE}\ndef f():\n    import torch\n"),
        ("x = 1\n", f"import torch\n{CODE}\nx = 1\n"),
        ("x = 1\ndef f():\n    import torch\n", f"import torch\n{CODE}\nx = 1\ndef f():\n    import torch\n"),
        (
            "import os\nos.nice(1)\nimport torch\nimport yaml\n\nfrom a import b\nx = 1\nimport c\n",
            f"import os\nos.nice(1)\nimport torch\nimport yaml\n\nfrom a import b\n{CODE}\nx = 1\nimport c\n",
        ),
    ],
)
def test_the_call_goes_below_the_imports(before: str, after: str) -> None:
    made = change(before)
    assert (made.edited, made.note) == (after, "")
    assert ".set_num_threads(1)\n" in made.diff


def test_what_is_no_program_gets_no_edit() -> None:
    assert call_change("import (\n", CODE) is None


@pytest.mark.parametrize("written", ["torch.set_num_threads(16)", "set_num_threads(16)  # as on the server"])
def test_a_call_that_is_there_gets_the_other_argument(written: str) -> None:
    made = change(f"import torch\n\n\ndef main():\n    {written}\n")
    assert made.edited == f"import torch\n\n\ndef main():\n    {written.replace('16', '1')}\n"
    assert (made.line, made.note) == (5, "")


def test_quotes_are_the_file_s_own() -> None:
    assert "precision('high')" in change("import torch\nname = 'x'\n", PRECISION).edited
    made = change('import torch\ntorch.set_float32_matmul_precision("highest")\n', PRECISION)
    assert made.edited == f"import torch\n{PRECISION}\n"


def test_an_argument_that_is_not_written_out_is_left_to_the_user() -> None:
    made = change("import torch\ntorch.set_num_threads(args.threads)\n")
    assert (made.diff, made.line) == ("", 2)
    assert made.note == "Line 2 sets this value now: set it to `1` there."


def test_what_sets_a_worker_up_is_another_matter() -> None:
    source = "import torch\ndef worker_init(number):\n    torch.set_num_threads(2)\n"
    assert change(source).edited == source.replace("import torch\n", f"import torch\n{CODE}\n")


def test_nobody_waits_for_what_makes_edits_who_makes_none() -> None:
    code = (
        "import sys; import bottleneck_doctor.examine.examination; sys.exit(bool({'libcst', 'yaml'} & {*sys.modules}))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_setting_that_is_nothing_but_a_call_has_its_line(tmp_path: Path) -> None:
    """It had none: what it takes was said beside the edit of something else alone."""
    script = tmp_path / "train.py"
    script.write_text("import torch\nloss = model(x)\n")
    found = replace(FOUND, device="cpu", forward_site=Site(file=str(script), line=2), loader_site=None)
    (only,) = changes_for({"intra_op_threads": 1}, found)
    assert (only.file, only.line, only.note) == (str(script), 2, "")
    assert f"+{CODE}\n" in only.diff
    script.unlink()
    (only,) = changes_for({"intra_op_threads": 1}, found)
    assert (only.line, only.diff, only.note) == (2, "", f"Call `{CODE}` before training begins.")
    assert changes_for({"intra_op_threads": 1}, replace(found, forward_site=None, backward_site=None)) == []
