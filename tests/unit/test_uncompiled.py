"""The edit that takes compiling out: what goes, what stays, and what is left to the user."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bottleneck_doctor.edits.diff import ChangeText
from bottleneck_doctor.edits.uncompiled import uncompiled_change


def change(source: str) -> ChangeText:
    made = uncompiled_change(source)
    assert made is not None
    return made


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("model = Net()\nmodel = torch.compile(model, mode='default')\ntrain()\n", "model = Net()\ntrain()\n"),
        ("fast = torch.compile(model)\n", "fast = model\n"),
        ("self.net = torch.compile(self.net)\ntrain()\n", "train()\n"),
        ("trainer.fit(torch.compile(model), data)\n", "trainer.fit(model, data)\n"),
        ("train()\nmodel.compile()\n", "train()\n"),
        ("@torch.compile\ndef f(x):\n    return x\n", "def f(x):\n    return x\n"),
        ("@torch.compile(fullgraph=True)\ndef f(x):\n    return x\n", "def f(x):\n    return x\n"),
        ("if args.fast:\n    model = torch.compile(model)\ntrain()\n", "train()\n"),
        ("if args.fast:\n    print(1)\n    model = torch.compile(model)\n", "if args.fast:\n    print(1)\n"),
        (
            "# Two of them.\na = torch.compile(a)\nb = torch.compile(c, dynamic=True)  # fast\n",
            "# Two of them.\nb = c  # fast\n",
        ),
    ],
)
def test_what_compiles_is_taken_out(before: str, after: str) -> None:
    made = change(f"import torch\n{before}")
    assert made.edited == f"import torch\n{after}"
    assert made.note == ""


@pytest.mark.parametrize(
    ("head", "call"),
    [
        ("import torch as t", "t.compile"),
        ("from torch import compile", "compile"),
        ("import torch.nn", "torch.compile"),
    ],
)
def test_torch_goes_by_other_names(head: str, call: str) -> None:
    assert change(f"{head}\nmodel = {call}(model)\ntrain()\n").edited == f"{head}\ntrain()\n"


@pytest.mark.parametrize(
    "source",
    [
        "import re\nP = re.compile('x')\nre.compile('y')\n",
        "compile('1', '', 'eval')\n",
        "import other as torch\nmodel = torch.compile(model)\n",
        "model.fit()\n",
        "def broken(:\n",
    ],
)
def test_other_things_are_compiled_elsewhere(source: str) -> None:
    assert uncompiled_change(source) is None


def test_what_has_no_argument_is_named() -> None:
    made = change("import torch\nf = torch.compile(fullgraph=True)(g)\n")
    assert (made.diff, made.line, made.note) == ("", 2, "Leave out `torch.compile` in line 2.")


PARTS = (
    "model = torch.compile(model)",
    "fast = torch.compile(net, mode=m)",
    "model.compile()",
    "if fast:\n    model = torch.compile(model)",
    "@torch.compile\ndef f(x):\n    return x",
    "print(1)  # torch.compile(x)",
    "class A:\n    def go(self):\n        self.m = torch.compile(self.m)",
)


@given(st.lists(st.sampled_from(PARTS), max_size=6))
def test_nothing_is_broken_and_once_is_enough(parts: list[str]) -> None:
    source = "\n".join(["import torch", *parts]) + "\n"
    made = uncompiled_change(source)
    if made is None:
        assert not any("compile" in part for part in parts if not part.startswith("print"))
        return
    assert made.edited is not None
    ast.parse(made.edited)
    assert uncompiled_change(made.edited) is None
