"""Attention that a program writes out: what is computed by torch's one function, and what stays as written."""

from __future__ import annotations

import copy
import pickle
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.unit.own_modules import loaded

from bottleneck_doctor.runtime.knobs import GuestContext, Refused
from bottleneck_doctor.runtime.knobs.fused_attention import FusedAttention
from bottleneck_doctor.runtime.loop.steps import Steps

HEAD = """import math
import torch
import torch.nn.functional as F
from torch import bmm, einsum, nn


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.softmax = nn.Softmax(dim=-1)
        self.dropout = nn.Dropout(0.0)
        self.inputs = nn.Linear(8, 8)
        self.seen = None

    def forward(self, x, mask):
        q = k = v = self.inputs(x)
"""
FUSED = {
    "methods": "return (q @ k.transpose(-2, -1) / math.sqrt(8)).softmax(-1) @ v",
    "functions": "a = F.softmax(torch.matmul(q, k.transpose(2, 3)) * 0.3, dim=-1)\nreturn torch.matmul(a, v)",
    "a number in front": "return torch.softmax(0.3 * (q @ k.mT), -1) @ v",
    "no scale": "return (q @ k.mT).softmax(dim=3) @ v",
    "scaled before": "return ((q * 0.5) @ k.mT).softmax(-1) @ v",
    "a tensor's scale": "s = torch.matmul(q, k.mT) / torch.sqrt(torch.tensor(8.0))\nreturn s.softmax(-1).matmul(v)",
    "in place": "s = q @ k.mT\ns /= 2.0\ns.mul_(0.7)\ns.masked_fill_(mask, -1e9)\nreturn s.softmax(-1) @ v",
    "masked": "s = (q @ k.mT).masked_fill(mask, float('-inf'))\nreturn self.softmax(s) @ v",
    "masked by name": "s = (q @ k.mT).masked_fill(mask=mask, value=-1e4)\nreturn self.softmax(s) @ v",
    "scaled behind the mask": "return ((q @ k.mT).masked_fill(mask, -1e9) * 0.5).softmax(-1) @ v",
    "scaled behind a mask in place": "scores = q @ k.transpose(2, 3)\nhidden = mask.bool()[:6, :6]\n"
    "scores.masked_fill_(hidden, -torch.inf)\nweights = torch.softmax(scores / k.shape[-1]**0.5, dim=-1)\n"
    "weights = self.dropout(weights)\nout = (weights @ v).transpose(1, 2)\nreturn out.transpose(1, 2)",
    "masked if there is a mask": "s = q @ k.mT / 2\nif mask is not None:\n    s = s.masked_fill(mask == 1, -1e9)\n"
    "return s.softmax(-1) @ v",
    "a part of a mask": "s = q @ k.mT\nif mask is not None:\n    part = mask[:, :6].float() * -1e9\n    s = s + part\n"
    "return s.softmax(-1) @ v",
    "a sum as mask": "s = (q @ k.mT) / 2 + mask.float() * -1e4\nreturn self.softmax(s) @ v",
    "dropout": "return self.dropout(self.softmax(q @ k.mT)) @ v",
    "einsum": "s = torch.einsum('b h i d, b h j d -> b h i j', q, k)\n"
    "return torch.einsum('bhij,bhjd->bhid', (s * 0.3).softmax(-1), v)",
    "einsum by its name": "s = einsum(f'b h i d, b h j d -> b h i j', q, k) * 0.3\n"
    "attn = self.dropout(s.softmax(dim=-1))\nreturn einsum('b h i j, b h j d -> b h i d', attn, v)",
    "bmm by its name": "q = k = v = q.flatten(0, 1)\nreturn bmm(F.softmax(bmm(q, k.transpose(1, 2)), -1), v)",
    "three dimensions": "q = k = v = q.flatten(0, 1)\n"
    "return torch.bmm(F.softmax(torch.bmm(q, k.transpose(1, 2)), -1), v)",
    "the same type": "return (q @ k.mT).softmax(-1, dtype=torch.float32).to(q.dtype) @ v",
    "shapes asked": "s = q @ k.mT\nassert s.shape == (2, 2, s.size(2), s.shape[-1])\nreturn s.softmax(s.dim() - 1) @ v",
    "kept, not read": "a = (q @ k.mT).softmax(-1)\nself.seen = a\nreturn a @ v",
}
AS_WRITTEN = {
    "another dimension": "return (q @ k.mT).softmax(-2) @ v",
    "a scale that turns the mask round": "return ((q @ k.mT).masked_fill(mask, -1e9) * -0.5).softmax(-1) @ v",
    "a scale that makes the mask small": "return ((q @ k.mT).masked_fill(mask, -1e4) / 64).softmax(-1) @ v",
    "a scaled sum": "return ((q @ k.mT + mask.float() * -1e9) / 2).softmax(-1) @ v",
    "a mask that hides little": "return (q @ k.mT).masked_fill(mask, -3.0).softmax(-1) @ v",
    "clamped": "return (q @ k.mT).clamp(-1, 1).softmax(-1) @ v",
    "weighed twice": "return (q @ k.mT).softmax(-1).softmax(-1) @ v",
    "summed": "a = (q @ k.mT).softmax(-1)\nreturn (a / a.sum(-1, keepdim=True)) @ v",
    "weights behind": "return v.mT @ (q @ k.mT).softmax(-1)",
    "other products": "s = q @ k.mT\nt = s @ s\nreturn t.softmax(-1) @ v",
    "viewed": "s = (q @ k.mT).view(4, 6, 6).softmax(-1)\nreturn s.view(2, 2, 6, 6) @ v",
    "a tensor as scale": "return ((q @ k.mT) * q.mean()).softmax(-1) @ v",
    "another type": "return ((q @ k.mT).softmax(-1, dtype=torch.float64) @ v.double()).float()",
    "einsum turned": "s = torch.einsum('bhid,bhjd->bhji', q, k)\nreturn s.softmax(-1) @ v",
    "into a list": "s = torch.stack([q @ k.mT, q @ k.mT]).mean(0)\nreturn s.softmax(-1) @ v",
    "copied out": "s = q @ k.mT\ntorch.tensor(s.detach().numpy())\nreturn s.softmax(-1) @ v",
}


def steps_of(folder: Path, body: str) -> Steps:
    path = folder / "attending.py"
    path.write_text(HEAD + "".join(f"        {line}\n" for line in body.splitlines()))
    module = loaded(path)
    steps = Steps()
    torch.manual_seed(0)
    steps.callers.roots.append(module.Attention())
    return steps


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    names = [(torch, name) for name in ("matmul", "bmm", "einsum")]
    before = [getattr(owner, name) for owner, name in names]
    own = {name for name in ("matmul", "bmm", "__matmul__") if name in vars(torch.Tensor)}
    yield
    module = sys.modules.pop("attending", None)
    assert module is None or (module.einsum, module.bmm) == (torch.einsum, torch.bmm)
    assert [getattr(owner, name) for owner, name in names] == before
    assert {name for name in ("matmul", "bmm", "__matmul__") if name in vars(torch.Tensor)} == own


def trained(block: Any, x: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """What the block returns, and the gradient of its weights."""
    made = block(x, mask)
    block.zero_grad()
    (made * torch.arange(made.numel()).view(made.shape)).mean().backward()
    return made.detach(), block.inputs.weight.grad.clone()


def both(steps: Steps) -> tuple[bool | None, Any, Any]:
    """Whether the knob saw an effect, and what comes of the block as written and under it."""
    block = steps.roots[0]
    x = torch.randn(2, 2, 6, 8)
    mask = torch.ones(6, 6, dtype=torch.bool).triu(1)
    as_written = trained(block, x, mask)
    knob, context = FusedAttention(), GuestContext(steps, "cpu")
    knob.apply(True, context)
    try:
        changed = trained(block, x, mask)
    finally:
        knob.revert(context)
    return knob.effect(True, context), as_written, changed


@pytest.mark.parametrize("body", FUSED.values(), ids=FUSED)
def test_attention_is_computed_by_torchs_function(tmp_path: Path, body: str) -> None:
    steps = steps_of(tmp_path, body)
    facts = FusedAttention.facts(steps, "cpu")
    ((file, line),) = facts["places"]
    assert file == str(tmp_path / "attending.py")
    assert "softmax" in Path(file).read_text().splitlines()[line - 1]
    fused, as_written, changed = both(steps)
    assert fused is True
    torch.testing.assert_close(changed, as_written)


@pytest.mark.parametrize("body", AS_WRITTEN.values(), ids=AS_WRITTEN)
def test_what_is_not_attention_is_computed_to_the_letter(tmp_path: Path, body: str) -> None:
    steps = steps_of(tmp_path, body)
    if FusedAttention.facts(steps, "cpu") is None:
        with pytest.raises(Refused):
            both(steps)
        return
    fused, as_written, changed = both(steps)
    assert fused is False
    assert torch.equal(changed[0], as_written[0])
    # Gradients of what is used several times may be added up in another order.
    torch.testing.assert_close(changed[1], as_written[1])


def test_weights_that_are_read_behind_are_what_the_program_wrote(tmp_path: Path) -> None:
    steps = steps_of(tmp_path, "a = (q @ k.mT / 2).softmax(-1)\nself.seen = a\nreturn a @ v")
    assert FusedAttention.facts(steps, "cpu") is not None
    block, (x, mask) = steps.roots[0], (torch.randn(2, 2, 6, 8), torch.zeros(6, 6, dtype=torch.bool))
    block(x, mask)
    expected = block.seen
    knob, context = FusedAttention(), GuestContext(steps, "cpu")
    knob.apply(True, context)
    block(x, mask)
    knob.revert(context)
    assert torch.equal(block.seen + 0, expected)
    assert torch.equal(block.seen.sum(-1), expected.sum(-1))


def test_what_was_kept_is_not_changed_by_what_happens_to_the_scores_later(tmp_path: Path) -> None:
    steps = steps_of(tmp_path, "s = q @ k.mT\na = s.softmax(-1)\ns.mul_(3.0)\nself.seen = s\nreturn a @ v")
    assert FusedAttention.facts(steps, "cpu") is not None
    fused, as_written, changed = both(steps)
    assert fused is True
    torch.testing.assert_close(changed, as_written)


def test_what_torch_transforms_is_computed_as_written(tmp_path: Path) -> None:
    steps = steps_of(tmp_path, "return (q @ k.mT).softmax(-1) @ v")
    assert FusedAttention.facts(steps, "cpu") is not None
    block, (x, mask) = steps.roots[0], (torch.randn(3, 2, 2, 6, 8), torch.zeros(6, 6, dtype=torch.bool))
    mapped = torch.func.vmap(block, in_dims=(0, None))
    expected = mapped(x, mask)
    knob, context = FusedAttention(), GuestContext(steps, "cpu")
    knob.apply(True, context)
    changed = mapped(x, mask)
    knob.revert(context)
    assert torch.equal(changed, expected)
    assert knob.effect(True, context) is False


def test_a_kept_product_outlives_its_window(tmp_path: Path) -> None:
    steps = steps_of(tmp_path, "a = (q @ k.mT).softmax(-1)\nself.seen = a\nreturn a @ v")
    assert FusedAttention.facts(steps, "cpu") is not None
    block, (x, mask) = steps.roots[0], (torch.randn(2, 2, 6, 8), torch.zeros(6, 6, dtype=torch.bool))
    with torch.no_grad():
        block(x, mask)
        expected = block.seen
        knob, context = FusedAttention(), GuestContext(steps, "cpu")
        knob.apply(True, context)
        block(x, mask)
        knob.revert(context)
    copied = pickle.loads(pickle.dumps(block.seen))
    assert type(copied) is torch.Tensor
    for each in (copied, copy.deepcopy(block).seen, block.seen @ torch.eye(6)):
        assert torch.equal(each, expected)
    block.seen[0] = 0.0
    assert block.seen[0].sum() == 0


def test_a_program_without_attention_has_nothing_to_compute_so(tmp_path: Path) -> None:
    steps = steps_of(tmp_path, "return q @ k.mT @ v")
    assert FusedAttention.facts(steps, "cpu") is None
    with pytest.raises(Refused):
        FusedAttention().apply(True, GuestContext(steps, "cpu"))


def test_a_module_that_the_model_does_not_have_computes_nothing(tmp_path: Path) -> None:
    """Files with layers of all kinds, of which a model has a few, as those of YOLOv7."""
    steps = steps_of(tmp_path, "return (q @ k.mT).softmax(-1) @ v\n\n\nOTHERS")
    path = tmp_path / "attending.py"
    others = (
        "class Own(nn.Module):\n    def forward(self, x):\n        return x\n\n\nclass Heir(Attention):\n    pass\n"
    )
    path.write_text(path.read_text().replace("        OTHERS", others))
    module = loaded(path)
    for made, seen in ((module.Own, False), (module.Heir, True), (module.Attention, True)):
        steps.callers.roots[:] = [made()]
        assert (FusedAttention.facts(steps, "cpu") is not None) is seen


def test_a_program_that_calls_torchs_function_where_it_can_has_it_on(tmp_path: Path) -> None:
    """As in nanoGPT, which writes attention out for old releases of torch."""
    body = (
        "if self.seen is None:\n    return F.scaled_dot_product_attention(q, k, v)\nreturn (q @ k.mT).softmax(-1) @ v"
    )
    facts = FusedAttention.facts(steps_of(tmp_path, body), "cpu")
    assert facts["obstacle"].startswith("already on: ")


def test_scores_that_autograd_is_given_by_hand_are_left_alone(tmp_path: Path) -> None:
    steps = steps_of(tmp_path, "s = Clipped.apply(q @ k.mT)\nreturn s.softmax(-1) @ v")
    assert FusedAttention.facts(steps, "cpu") is None


@pytest.mark.parametrize("name", ["F.log_softmax(s, -1)", "s.logsoftmax(-1)"])
def test_another_softmax_is_no_attention(tmp_path: Path, name: str) -> None:
    steps = steps_of(tmp_path, f"s = q @ k.mT\nreturn {name} @ v")
    assert FusedAttention.facts(steps, "cpu") is None


def test_attention_in_a_function_beside_the_class_is_found(tmp_path: Path) -> None:
    steps = steps_of(tmp_path, "return attend_to(q, k, v)\n\n\nELSE")
    path = tmp_path / "attending.py"
    helper = "def attend_to(q, k, v):\n    return (q @ k.mT).softmax(-1) @ v\n"
    path.write_text(path.read_text().replace("        ELSE", helper))
    module = loaded(path)
    steps.callers.roots[:] = [module.Attention()]
    assert FusedAttention.facts(steps, "cpu") is not None
    fused, as_written, changed = both(steps)
    assert fused is True
    torch.testing.assert_close(changed, as_written)
