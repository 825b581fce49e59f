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

from bottleneck_doctor.edits.given_argument import given_argument_change
from bottleneck_doctor.knobs import GivenArgument
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
        self.several = nn.ModuleList(nn.MultiheadAttention(8, 2, batch_first=True) for _ in range(2))
        self.named = nn.ModuleDict({"own": nn.MultiheadAttention(8, 2, batch_first=True)})
        self.mixed = nn.ModuleList([nn.MultiheadAttention(8, 2, batch_first=True), nn.Identity()])
        self.norms = nn.ModuleList([nn.LayerNorm(8), nn.LayerNorm(8)])
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


def leaves_out_the_same(steps: Steps) -> tuple[Any, torch.Tensor, torch.Tensor]:
    """The block makes the same without its weights. Returns it, what it was given, and what it made."""
    block, x = steps.roots[0], torch.randn(2, 5, 8)
    as_written = block(x)
    knob, context = AttentionWeights(), GuestContext(steps, "cpu")
    knob.apply(False, context)
    changed = block(x)
    assert knob.effect(False, context) is True
    knob.revert(context)
    torch.testing.assert_close(changed, as_written)
    return block, x, as_written


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
    leaves_out_the_same(steps)


OF_SEVERAL = {
    "by place": ("for i in range(2):\n    x, _ = self.several[i](x, x, x)\nreturn x", "several"),
    "by name": ("return self.named['own'](x, x, x)[0]", "named"),
    "each": ("for layer in self.several:\n    x, _ = layer(x, x, x)\nreturn x", "layer"),
    "numbered": ("for i, layer in enumerate(self.several):\n    x = layer(x, x, x)[0]\nreturn x", "layer"),
    "with others": (
        "for layer, norm in zip(self.several, self.norms):\n    x = norm(layer(x, x, x)[0])\nreturn x",
        "layer",
    ),
    "with others, numbered": (
        "for i, (norm, layer) in enumerate(zip(self.norms, self.several)):\n    x = layer(norm(x), x, x)[0]\nreturn x",
        "layer",
    ),
    "at once": ("return sum(layer(x, x, x)[0] for layer in self.several)", "layer"),
}
OF_SOMETHING_ELSE = {
    "not all are such layers": "x = self.mixed[0](x, x, x)[0]\nreturn x",
    "in a loop, not all are": "for layer in self.mixed:\n    x = layer(x, x, x)[0]\n    break\nreturn x",
    "assigned elsewhere": "for layer in self.several:\n    layer = self.mixed[0]\n    x = layer(x, x, x)[0]\nreturn x",
    "an argument inside": (
        "def call(layer):\n    return layer(x, x, x)[0]\n"
        "for layer in self.several:\n    pass\nreturn call(self.mixed[0])"
    ),
    "of another loop": "for a, layer in zip(self.norms, [self.mixed[0]]):\n    x = layer(x, x, x)[0]\nreturn x",
}


@pytest.mark.parametrize(("body", "name"), OF_SEVERAL.values(), ids=OF_SEVERAL)
def test_layers_of_a_list_are_called_by_place_or_in_a_loop(tmp_path: Path, body: str, name: str) -> None:
    steps, facts = facts_of(module_of(tmp_path, body))
    assert facts is not None
    assert facts["obstacle"] == ""
    called, _, line = facts["calls"][0]
    assert (called, len(facts["calls"])) == (name, 1)
    source = (tmp_path / "blocks.py").read_text()
    edited = given_argument_change(source, [(called, line)], GivenArgument("need_weights", False, 4, lambda _: ()))
    assert edited is not None
    block, x, as_written = leaves_out_the_same(steps)
    (tmp_path / "blocks.py").write_text(edited.edited)
    torch.testing.assert_close(loaded(tmp_path / "blocks.py").Block.forward(block, x), as_written)


@pytest.mark.parametrize("body", OF_SOMETHING_ELSE.values(), ids=OF_SOMETHING_ELSE)
def test_a_call_that_may_be_of_another_layer_is_left_alone(tmp_path: Path, body: str) -> None:
    _, facts = facts_of(module_of(tmp_path, body))
    assert facts == {"obstacle": "no call of `nn.MultiheadAttention` was found in the program's own classes"}


def test_a_name_that_holds_another_layer_in_another_object_is_left_alone(tmp_path: Path) -> None:
    module = module_of(tmp_path, "return self.attention(x, x, x)[0]")
    steps, other = Steps(), module.Block()
    other.attention = torch.nn.Identity()
    steps.callers.roots.extend([module.Block(), other])
    facts = AttentionWeights.facts(steps, "cpu")
    assert facts == {"obstacle": "no call of `nn.MultiheadAttention` was found in the program's own classes"}


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
