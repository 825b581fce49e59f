"""The edit of attention that is written out: what it becomes, and where nothing is edited."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tests.unit.own_modules import loaded
from tests.unit.test_knob_fused_attention import FUSED, steps_of

from bottleneck_doctor.edits.attention_call import attention_change
from bottleneck_doctor.runtime.knobs.fused_attention import FusedAttention

BY_HAND = {"in place", "masked by name", "the same type", "shapes asked", "kept, not read"}
"""What of `FUSED` the edit leaves to the user."""

IF_X = "s = q @ k.mT\nif x is not None:\n"

HEAD = """import math
import torch
import torch.nn.functional as F


class Attention(torch.nn.Module):
    def forward(self, x, mask):
        q, k, v = self.parts(x)
"""


def edited(body: str) -> str | None:
    """What becomes of the lines of a method whose softmax is the only one."""
    source = HEAD + "".join(f"        {line}\n" for line in body.splitlines())
    line = next(number for number, each in enumerate(source.splitlines(), 1) if "softmax" in each or "attend(" in each)
    change = attention_change(source, line)
    if change is None:
        return None
    assert change.edited.startswith(HEAD)
    return "\n".join(each[8:] for each in change.edited[len(HEAD) :].splitlines())


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            "s = q @ k.transpose(-2, -1) / math.sqrt(8)\nw = s.softmax(dim=-1)\nreturn self.out((w @ v).flatten(1))",
            "return self.out(F.scaled_dot_product_attention(q, k, v, scale=1 / math.sqrt(8)).flatten(1))",
        ),
        (
            "att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))\n"
            "att = att.masked_fill(self.bias[:,:,:4,:4] == 0, float('-inf'))\n"
            "att = F.softmax(att, dim=-1)\n"
            "att = self.attn_dropout(att)\n"
            "y = att @ v # (B, nh, T, hs)\n"
            "return y",
            "y = F.scaled_dot_product_attention(\n    q,\n    k,\n    v,\n    attn_mask=self.bias[:,:,:4,:4] != 0,\n"
            "    dropout_p=self.attn_dropout.p if self.training else 0.0,\n    scale=1.0 / math.sqrt(k.size(-1)),\n) "
            "# (B, nh, T, hs)\nreturn y",
        ),
        (
            "dots = torch.matmul(q, k.transpose(-1, -2)) * self.scale\nattn = self.attend(dots)\n"
            "out = torch.matmul(attn, v)\nreturn out",
            "out = F.scaled_dot_product_attention(q, k, v, scale=self.scale)\nreturn out",
        ),
        (
            'sim = einsum(f"b h i d, b h j d -> b h i j", q, k) * scale\nattn = sim.softmax(dim = -1)\n'
            "attn = self.attn_dropout(attn)\n"
            'out = einsum(f"b h i j, b h j d -> b h i d", attn, v)\nreturn out',
            "out = F.scaled_dot_product_attention(\n    q,\n    k,\n    v,\n"
            "    dropout_p=self.attn_dropout.p if self.training else 0.0,\n    scale=scale,\n)\nreturn out",
        ),
        (
            "return torch.einsum('nhqk,nhkd->nhqd', (q @ k.mT).softmax(-1), v)",
            "return F.scaled_dot_product_attention(q, k, v, scale=1.0)",
        ),
        (
            "return torch.softmax(q @ k.mT + mask, -1) @ v",
            "return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=1.0)",
        ),
        (
            "w = torch.bmm(q, k.transpose(1, 2)).masked_fill(mask, -1e9).softmax(-1)\nreturn w.bmm(v)",
            "return F.scaled_dot_product_attention(q, k, v, attn_mask=~mask, scale=1.0)",
        ),
        (
            "return (q @ turned).softmax(-1) @ v",
            "return F.scaled_dot_product_attention(q, turned.transpose(-2, -1), v, scale=1.0)",
        ),
        (
            "s = torch.matmul(q, k.mT)\ny = x + 1\nreturn y + torch.matmul(F.softmax(s / 8, -1), v)",
            "y = x + 1\nreturn y + F.scaled_dot_product_attention(q, k, v, scale=1 / 8)",
        ),
        (
            "scores = q @ k.transpose(2, 3)\nhidden = self.mask.bool()[:n, :n]\n"
            "scores.masked_fill_(hidden, -torch.inf)\n"
            "weights = torch.softmax(scores / k.shape[-1]**0.5, dim=-1)\nweights = self.dropout(weights)\n"
            "out = (weights @ v).transpose(1, 2)\nreturn out",
            "hidden = self.mask.bool()[:n, :n]\nout = F.scaled_dot_product_attention(\n    q,\n"
            "    k.transpose(2, 3).transpose(-2, -1),\n    v,\n    attn_mask=~hidden,\n"
            "    dropout_p=self.dropout.p if self.training else 0.0,\n    scale=1 / (k.shape[-1]**0.5),\n"
            ").transpose(1, 2)\nreturn out",
        ),
        (
            "s = q @ k.mT / 8\nif mask is not None:\n    s = s.masked_fill(mask == 0, -1e9)\nreturn s.softmax(-1) @ v",
            "return F.scaled_dot_product_attention(\n    q,\n    k,\n    v,\n"
            "    attn_mask=mask != 0 if mask is not None else None,\n    scale=1 / 8,\n)",
        ),
        (
            "s = q @ k.mT\nif mask is not None:\n    part = mask[:, :6]\n    s = s + part\nreturn s.softmax(-1) @ v",
            "if mask is not None:\n    part = mask[:, :6]\nreturn F.scaled_dot_product_attention(\n    q,\n    k,\n"
            "    v,\n    attn_mask=part if mask is not None else None,\n    scale=1.0,\n)",
        ),
        (
            "s = q @ k.mT\nif self.causal:\n    s.masked_fill_(mask, -torch.inf)\nreturn (s / 8).softmax(-1) @ v",
            "return F.scaled_dot_product_attention(\n    q,\n    k,\n    v,\n"
            "    attn_mask=~mask if self.causal else None,\n    scale=1 / 8,\n)",
        ),
        (
            "s = (q @ k.mT).masked_fill(mask, -1e9) * 0.5\nreturn s.softmax(-1) @ v",
            "return F.scaled_dot_product_attention(q, k, v, attn_mask=~mask, scale=0.5)",
        ),
    ],
)
def test_the_whole_chain_becomes_one_call(body: str, expected: str) -> None:
    assert edited(body) == expected


@pytest.mark.parametrize(
    ("made", "known"),
    [
        ("k = self.key(x)\nk = k.view(b, n, self.heads, 8)\nk = k.transpose(1, 2)\n", True),
        ("k = (self.key(x).reshape(b, n, 4, 8)).transpose(1, 2)\n", True),
        ("k = self.key(x).view(b, n, 4, 8)\nif turned:\n    k = k.transpose(1, 2)\n", False),
        ("k = self.key(x).view(b, n, 4, 8)\nk.squeeze_(0)\n", False),
        ("k = self.key(x).view(1, b, n, 4, 8)\n", False),
        ("k = self.key(x).view(*shape, n, 4, 8)\n", False),
        ("k = self.key(x).transpose(1, 2)\n", False),
        ("", False),
    ],
)
def test_the_last_two_of_four_dimensions_may_be_told_from_the_front(made: str, known: bool) -> None:
    keys = "k" if known else "k.transpose(2, 3).transpose(-2, -1)"
    body = f"{made}s = q @ k.transpose(2, 3)\nreturn (s / 8).softmax(-1) @ v"
    found = edited(body)
    assert found is not None
    call = f"F.scaled_dot_product_attention(q, {keys}, v, scale=1 / 8)"
    assert "".join(found.split()).replace(",)", ")") == "".join(f"{made}return {call}".split())


@pytest.mark.parametrize(
    "body",
    [
        "w = (q @ k.mT).softmax(-1)\nreturn w @ v, w",
        "s = torch.einsum('bhid,bhjd->bhji', q, k)\nreturn s.softmax(-1) @ v",
        "return torch.einsum('bhij,bhjd->bdhi', (q @ k.mT).softmax(-1), v)",
        "s = torch.einsum(equation, q, k)\nreturn s.softmax(-1) @ v",
        "s = torch.einsum(f'b h i d, b h j d -> {order}', q, k)\nreturn s.softmax(-1) @ v",
        "return torch.einsum('bhid,bhjd->bhij', (q @ k.mT).softmax(-1), v)",
        "s = q @ k.mT\nw = s.softmax(-1)\nself.seen = s\nreturn w @ v",
        "s = q @ k.mT\nif mask is not None:\n    s = s * 2\nw = s.softmax(-1)\nreturn w @ v",
        IF_X + "    s = s + x\nelse:\n    s = s + 1\nreturn s.softmax(-1) @ v",
        "s = q @ k.mT\nif s.any():\n    s = s.masked_fill(mask, -1e9)\nw = s.softmax(-1)\nreturn w @ v",
        IF_X + "    q = q + 1\n    s = s.masked_fill(mask, -1e9)\nreturn s.softmax(-1) @ v",
        IF_X + "    x = None\n    s = s.masked_fill(mask, -1e9)\nreturn s.softmax(-1) @ v",
        IF_X + "    z = s\n    s = s.masked_fill(mask, -1e9)\nreturn s.softmax(-1) @ v",
        "s = q @ k.mT\nif mask is not None:\n    s = s + mask\nmask = None\nreturn s.softmax(-1) @ v",
        IF_X + "    s = s + x\nif mask is not None:\n    s = s + mask\nreturn s.softmax(-1) @ v",
        "w = (q @ k.mT).softmax(-1)\nif mask is not None:\n    w = w.masked_fill(mask, -1e9)\nreturn w @ v",
        "w = (q @ k.mT).softmax(-1)\nreturn w @ (w @ v)",
        "s = q @ k.mT\nq = q + 1\nw = s.softmax(-1)\nreturn w @ v",
        "s = q @ k.mT\nq.add_(1)\nw = s.softmax(-1)\nreturn w @ v",
        "s = q @ k.mT\ns /= 8\nw = s.softmax(-1)\nreturn w @ v",
        "s = (q @ k.mT).masked_fill(mask, -3.0)\nreturn s.softmax(-1) @ v",
        "s = (q @ k.mT).clamp(0, 1)\nreturn s.softmax(-1) @ v",
        "s = (q @ k.mT).masked_fill(mask, -1e9) * -0.5\nreturn s.softmax(-1) @ v",
        "s = (q @ k.mT).masked_fill(mask, -1e4) * 0.5\nreturn s.softmax(-1) @ v",
        "s = (q @ k.mT + mask) * 0.5\nreturn s.softmax(-1) @ v",
        "s = q @ k.mT\ns.masked_fill_(mask, -1e9)\nmask = ~mask\nreturn s.softmax(-1) @ v",
        "s = q @ k.mT\ns.masked_fill_(mask, -1e9)\nz = s\nreturn s.softmax(-1) @ v",
        "return v @ (q @ k.mT).softmax(-1)",
        "s = q\nreturn s.softmax(-1) @ v",
        "return F.softmax(q @ k.mT, dim=-1, dtype=torch.float64) @ v",
        "w = F.dropout((q @ k.mT).softmax(-1), 0.1)\nreturn w @ v",
        "w = (q @ k.mT).softmax(-1)\nreturn [w @ each for each in v]",
        "s = q @ k.mT  # scores\nw = (\n    # weights\n    s.softmax(-1)\n)\nz = w @ v + w\nreturn z",
    ],
)
def test_what_is_not_certain_is_left_alone(body: str) -> None:
    assert edited(body) is None


@pytest.mark.parametrize("name", FUSED)
def test_what_is_edited_computes_the_same(tmp_path: Path, name: str) -> None:
    """As what the knob computes, of which this is the edit."""
    steps, path = steps_of(tmp_path, FUSED[name]), tmp_path / "attending.py"
    as_written, ((_, line),) = steps.roots[0], FusedAttention.facts(steps, "cpu")["places"]
    change = attention_change(path.read_text(), line)
    assert (change is None) == (name in BY_HAND)
    if change is None:
        return
    path.write_text(change.edited)
    block = loaded(path).Attention()
    block.load_state_dict(as_written.state_dict())
    x, mask = torch.randn(2, 2, 6, 8), torch.ones(6, 6, dtype=torch.bool).triu(1)
    torch.testing.assert_close(block(x, mask), as_written(x, mask))


def test_a_file_that_does_not_import_torch_is_left_alone() -> None:
    assert attention_change("def f(q, k, v):\n    return (q @ k.mT).softmax(-1) @ v\n", 2) is None


@pytest.mark.parametrize(
    ("imports", "name"),
    [
        ("import torch as th", "th.nn.functional"),
        ("from torch import nn", "nn.functional"),
        ("import torch.nn as nn", "nn.functional"),
        ("from torch.nn import functional", "functional"),
        ("import torch\nfrom torch.nn import functional as F", "F"),
    ],
)
def test_torch_is_called_as_the_file_calls_it(imports: str, name: str) -> None:
    source = f"{imports}\n\n\ndef f(q, k, v):\n    return (q @ k.mT).softmax(-1) @ v\n"
    change = attention_change(source, source.count("\n"))
    assert change is not None
    assert f"return {name}.scaled_dot_product_attention(q, k, v, scale=1.0)" in change.edited
