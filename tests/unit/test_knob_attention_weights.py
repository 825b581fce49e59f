"""Which calls of an attention layer ask for weights that nothing reads, told from the source of a class; and what the
knob does to these calls and to no others."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.unit.own_modules import loaded

from bottleneck_doctor.runtime.knobs import GuestContext, Refused
from bottleneck_doctor.runtime.knobs.attention_weights import AttentionWeights
from bottleneck_doctor.runtime.loop.steps import Steps
from bottleneck_doctor.runtime.process.source_trees import SourceTrees
from bottleneck_doctor.runtime.process.unused_results import held_calls

HEAD = """import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.weights = None

    def forward(self, x):
"""


def module_of(folder: Path, body: str) -> Any:
    """The module of a block whose `forward` is `body`."""
    path = folder / "blocks.py"
    path.write_text(HEAD + "".join(f"        {line}\n" for line in body.splitlines()))
    return loaded(path)


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    forward = torch.nn.MultiheadAttention.forward
    yield
    sys.modules.pop("blocks", None)
    assert torch.nn.MultiheadAttention.forward is forward


def facts_of(module: Any) -> tuple[Steps, dict[str, Any] | None]:
    steps = Steps()
    steps.callers.roots.append(module.Block())
    return steps, AttentionWeights.facts(steps, "cpu")


UNREAD = {
    "first of them": "return self.attention(x, x, x)[0]",
    "underscore": "y, _ = self.attention(x, x, x)\nreturn x + y",
    "a name": "y, weights = self.attention(x, x, x)\nreturn x + y",
    "a list": "[y, weights] = self.attention(x, x, x)\nreturn x + y",
    "deleted": "y, weights = self.attention(x, x, x)\ndel weights\nreturn x + y",
    "kept whole": "out = self.attention(x, x, x)\nreturn x + out[0]",
    "asked for by name": "y, _ = self.attention(x, x, x, need_weights=True)\nreturn y",
    "asked for by place": "y, _ = self.attention(x, x, x, None, True)\nreturn y",
    "lines": "y, _ = self.attention(\n    x,\n    x,\n    x,\n)\nreturn y",
    "twice": "y, _ = self.attention(x, x, x)\nz, _ = self.attention(y, y, y)\nreturn z",
}
READ = {
    "returned": "return self.attention(x, x, x)",
    "second of them": "return self.attention(x, x, x)[1]",
    "a name": "y, weights = self.attention(x, x, x)\nself.weights = weights\nreturn y",
    "in a function inside": "y, weights = self.attention(x, x, x)\nreturn (lambda: (y, weights))()[0]",
    "an attribute": "y, self.weights = self.attention(x, x, x)\nreturn y",
    "kept whole": "out = self.attention(x, x, x)\nself.weights = out[1]\nreturn out[0]",
    "kept whole and given on": "out = self.attention(x, x, x)\nprint(len(out))\nreturn out[0]",
    "from behind": "return self.attention(x, x, x)[-2]",
    "all variables": "y, _ = self.attention(x, x, x)\nself.weights = locals()\nreturn y",
    "a global": "global kept\ny, kept = self.attention(x, x, x)\nreturn y",
    "two targets": "y, _ = both = self.attention(x, x, x)\nself.weights = both[1]\nreturn y",
    "unpacked": "more = {}\ny, _ = self.attention(x, x, x, **more)\nreturn y",
    "starred": "y, _ = self.attention(*(x, x, x))\nreturn y",
    "asked": "y, _ = self.attention(x, x, x, need_weights=self.training)\nreturn y",
}


@pytest.mark.parametrize("body", UNREAD.values(), ids=UNREAD)
def test_weights_that_nothing_reads_are_left_out(tmp_path: Path, body: str) -> None:
    module = module_of(tmp_path, body)
    steps, facts = facts_of(module)
    assert facts is not None
    assert facts["obstacle"] == ""
    lines = (tmp_path / "blocks.py").read_text().splitlines()
    for name, file, line in facts["calls"]:
        assert (name, file) == ("attention", str(tmp_path / "blocks.py"))
        assert "self.attention(" in lines[line - 1]
    assert len(facts["calls"]) == body.count("self.attention(")
    block, x = steps.roots[0], torch.randn(2, 5, 8)
    as_written = block(x)
    knob, context = AttentionWeights(), GuestContext(steps, "cpu")
    knob.apply(False, context)
    changed = block(x)
    assert knob.effect(False, context) is True
    knob.revert(context)
    torch.testing.assert_close(changed, as_written)


@pytest.mark.parametrize("body", READ.values(), ids=READ)
def test_weights_that_may_be_read_are_left_alone(tmp_path: Path, body: str) -> None:
    steps, facts = facts_of(module_of(tmp_path, body))
    assert facts == {"obstacle": "the program reads the attention weights, or may read them"}
    with pytest.raises(Refused):
        AttentionWeights().apply(False, GuestContext(steps, "cpu"))


def test_a_call_that_is_read_keeps_its_weights_beside_one_that_is_not(tmp_path: Path) -> None:
    body = "y, _ = self.attention(x, x, x)\nz, self.weights = self.attention(y, y, y)\nreturn z"
    steps, facts = facts_of(module_of(tmp_path, body))
    assert facts is not None
    assert len(facts["calls"]) == 1
    block = steps.roots[0]
    knob, context = AttentionWeights(), GuestContext(steps, "cpu")
    knob.apply(False, context)
    block(torch.randn(2, 5, 8))
    knob.revert(context)
    assert knob.effect(False, context) is True
    assert block.weights.shape == (2, 5, 5)


def test_calls_from_elsewhere_keep_their_weights(tmp_path: Path) -> None:
    steps, _ = facts_of(module_of(tmp_path, "return self.attention(x, x, x)[0]"))
    block, x = steps.roots[0], torch.randn(2, 5, 8)
    knob, context = AttentionWeights(), GuestContext(steps, "cpu")
    knob.apply(False, context)
    _, weights = block.attention(x, x, x)
    knob.revert(context)
    assert weights.shape == (2, 5, 5)
    assert knob.effect(False, context) is False


def test_two_calls_on_a_line_are_left_alone_where_one_is_read(tmp_path: Path) -> None:
    body = "return self.attention(x, x, self.attention(x, x, x)[0])"
    steps, facts = facts_of(module_of(tmp_path, body))
    with pytest.raises(Refused):
        AttentionWeights().apply(False, GuestContext(steps, "cpu"))
    assert facts == {"obstacle": "the program reads the attention weights, or may read them"}


def test_a_hook_reads_all_that_its_layer_returns(tmp_path: Path) -> None:
    module = module_of(tmp_path, "return self.attention(x, x, x)[0]")
    steps = Steps()
    block = module.Block()
    block.attention.register_forward_hook(lambda layer, given, made: None)
    steps.callers.roots.append(block)
    facts = AttentionWeights.facts(steps, "cpu")
    assert facts == {"obstacle": "the program reads the attention weights, or may read them"}


def test_weights_that_are_left_out_already_are_told(tmp_path: Path) -> None:
    body = "y, _ = self.attention(x, x, x, need_weights=False)\nreturn y"
    _, facts = facts_of(module_of(tmp_path, body))
    assert facts is not None
    assert facts["obstacle"].startswith("already on: ")


def test_a_model_without_such_layers_has_nothing_to_leave_out(tmp_path: Path) -> None:
    steps = Steps()
    steps.callers.roots.append(torch.nn.Linear(2, 2))
    assert AttentionWeights.facts(steps, "cpu") is None


def test_a_layer_in_torchs_own_block_is_no_call_of_the_users() -> None:
    steps = Steps()
    steps.callers.roots.append(torch.nn.TransformerEncoderLayer(8, 2, batch_first=True))
    facts = AttentionWeights.facts(steps, "cpu")
    assert facts == {"obstacle": "no call of `nn.MultiheadAttention` was found in the program's own classes"}


def test_a_class_whose_source_is_gone_says_nothing(tmp_path: Path) -> None:
    module = module_of(tmp_path, "return self.attention(x, x, x)[0]")
    (tmp_path / "blocks.py").unlink()
    assert held_calls(SourceTrees(), module.Block, {"attention"}) == []
