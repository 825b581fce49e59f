"""The edit that calls what a function wraps: each way to write such a call, and what it leaves alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.test_fixes import FOUND

from bottleneck_doctor.edits.advice import changes_for
from bottleneck_doctor.edits.direct_call import direct_call_change
from bottleneck_doctor.knobs import checkpointing

OWN = ("use_reentrant", "preserve_rng_state")


def after(source: str, line: int = 1, name: str = "checkpoint") -> str | None:
    change = direct_call_change(source, [(name, line)], OWN)
    return None if change is None else change.edited


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("y = checkpoint(layer, x, use_reentrant=False)\n", "y = layer(x)\n"),
        ("y = checkpoint(layer, x)\n", "y = layer(x)\n"),
        ("y = checkpoint(layer)\n", "y = layer()\n"),
        ("y = checkpoint(self.layers[3], x, mask, use_reentrant=False)\n", "y = self.layers[3](x, mask)\n"),
        ("y = checkpoint(layer, x, use_reentrant=False, mask=m)\n", "y = layer(x, mask=m)\n"),
        ("y = checkpoint(layer, *inputs, use_reentrant=False)\n", "y = layer(*inputs)\n"),
        ("y = x + torch.utils.checkpoint.checkpoint(layer, x)\n", "y = x + layer(x)\n"),
        ("y = checkpoint(lambda z: z + 1, x)\n", "y = (lambda z: z + 1)(x)\n"),
        ("y = checkpoint((a or b), x)\n", "y = (a or b)(x)\n"),
        ("y = checkpoint(made(layer), x)\n", "y = made(layer)(x)\n"),
        ("y = checkpoint(one, checkpoint(two, x), use_reentrant=False)\n", "y = one(two(x))\n"),
        (
            "y = checkpoint(\n    layer,\n    x,\n    mask,\n    use_reentrant=False,\n)\n",
            "y = layer(\n    x,\n    mask,\n)\n",
        ),
    ],
)
def test_what_is_wrapped_is_called(before: str, expected: str) -> None:
    assert after(before) == expected


@pytest.mark.parametrize(
    "source",
    [
        "y = other(layer, x)\n",
        "y = checkpoint()\n",
        "y = checkpoint(*layer_and_inputs)\n",
        "y = checkpoint(function=layer)\n",
        "y = checkpoint(layer, x, **options)\n",
        "y = checkpoint(layer,  # the large one\n    x)\n",
        "y = checkpoint(layer, x\n",
    ],
)
def test_what_is_not_clear_is_left_alone(source: str) -> None:
    assert after(source) is None


def test_all_calls_of_a_file_are_one_edit(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    text = "def forward(x):\n    x = checkpoint(one, x)\n    return checkpoint(two, x, use_reentrant=False)\n"
    program.write_text(text)
    calls = [["checkpoint", str(program), line] for line in (2, 3)]
    found = replace(FOUND, facts={"checkpointing": {"count": 8, "calls": calls}})
    assert len(checkpointing.calls(found)) == 2
    (change,) = changes_for({"checkpointing": False}, found)
    assert "+    x = one(x)\n+    return two(x)\n" in change.diff
    assert change.note == ""
    # Where the line says something else, it is told what to do.
    program.write_text("import torch\n")
    (change,) = changes_for({"checkpointing": False}, found)
    assert "what `checkpoint` wraps in line 2" in change.note
