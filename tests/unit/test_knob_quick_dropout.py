"""Dropout that draws 16 bits for each value: what it drops and keeps, where it leaves torch's alone, and its edit."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from bottleneck_doctor.edits.own_function import own_function_change
from bottleneck_doctor.knobs import OwnFunction, quick_dropout
from bottleneck_doctor.runtime.knobs import GuestContext
from bottleneck_doctor.runtime.knobs.quick_dropout import ATTENTION, FEWEST, NAME, QuickDropout, _in_steps
from bottleneck_doctor.runtime.loop.steps import Steps

ORIGINAL = functional.dropout


def own_function() -> OwnFunction:
    made = quick_dropout.KNOB.edit
    assert isinstance(made, OwnFunction)
    return made


EDIT = own_function()


@pytest.fixture
def knob() -> Iterator[QuickDropout]:
    made = QuickDropout()
    context = GuestContext(Steps(), "cpu")
    made.apply(True, context)
    yield made
    made.revert(context)
    assert functional.dropout is ORIGINAL


def as_edited() -> Any:
    """The function that the edit writes."""
    scope: dict[str, Any] = {"torch": torch}
    exec(EDIT.function, scope)
    return scope[EDIT.name]


@pytest.mark.parametrize("probability", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("which", ["in the window", "as edited"])
@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16, torch.float64])
def test_it_drops_as_many_as_it_should(knob: QuickDropout, probability: float, which: str, kind: torch.dtype) -> None:
    torch.manual_seed(1)
    drop = functional.dropout if which == "in the window" else as_edited()
    values = torch.ones(1000, 401, dtype=kind, requires_grad=True)
    made = drop(values, probability, True)
    dropped = (made == 0).double()
    # 401 000 draws: five standard errors.
    assert dropped.mean().item() == pytest.approx(
        probability, abs=5 * (probability * (1 - probability) / 401000) ** 0.5
    )
    assert made.max().item() == pytest.approx(1 / (1 - probability), rel=0.01)
    for side in (0, 1):
        spread = (probability * (1 - probability) / dropped.shape[side]) ** 0.5
        assert (dropped.mean(side) - probability).abs().max().item() < 5.5 * spread, "whole rows are no different"
    made.sum().backward()
    assert values.grad is not None
    assert torch.equal(values.grad, made.detach()), "what is dropped gets no gradient"
    assert not torch.equal(drop(values, probability, True), made)
    torch.manual_seed(1)
    assert torch.equal(drop(values, probability, True), made), "the same seed drops the same"


def test_neighbours_are_dropped_independently(knob: QuickDropout) -> None:
    """Four values share one number of 64 bits."""
    dropped = (functional.dropout(torch.ones(400_000), 0.5) == 0).double() - 0.5
    for apart in (1, 2, 3, 4, 5):
        together = (dropped[:-apart] * dropped[apart:]).mean().item() * 4
        assert abs(together) < 5 / 400_000**0.5


def test_modules_and_what_is_done_in_place(knob: QuickDropout) -> None:
    assert (nn.Dropout(0.5)(torch.ones(FEWEST)) == 0).any()
    assert knob.effect(True, GuestContext(Steps(), "cpu"))
    values = torch.ones(64, 128).t()
    assert functional.dropout(values, 0.5, inplace=True) is values
    assert (values == 0).any()


def test_it_leaves_alone_what_it_can_not_do(knob: QuickDropout) -> None:
    values = torch.ones(FEWEST)
    assert functional.dropout(values, 0.5, training=False) is values or torch.equal(
        functional.dropout(values, 0.5, training=False), values
    )
    assert torch.equal(functional.dropout(values, 0.0), values)
    assert not functional.dropout(values, 1.0).any()
    functional.dropout(torch.ones(FEWEST - 1), 0.5)
    functional.dropout(torch.ones(2, FEWEST, device="meta"), 0.5)
    assert knob.effect(True, GuestContext(Steps(), "cpu")) is False
    with pytest.raises(ValueError, match="dropout probability"):
        functional.dropout(values, 1.5)


class Calls(nn.Module):
    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return functional.dropout(values, 0.5, self.training)


class Qualified(nn.Module):
    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.dropout(values, 0.5, self.training)


class Holds(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.dropout = nn.Dropout(0.0)

    def forward(self, values: torch.Tensor) -> Any:
        return self.dropout(values)


@pytest.mark.parametrize(
    ("model", "device", "says"),
    [
        (nn.Sequential(Qualified()), "cpu", ""),
        (nn.Sequential(Holds()), "cpu", "no dropout was found"),
        (nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.1)), "cpu", ""),
        (nn.Sequential(Calls()), "cpu", ""),
        (nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.0)), "cpu", "no dropout was found"),
        (nn.Sequential(nn.Dropout(0.1)), "cuda:0", "trains on a device"),
        (torch.compile(nn.Sequential(nn.Dropout(0.1))), "cpu", "is compiled"),
    ],
)
def test_where_it_can_be_tried(model: Any, device: str, says: str) -> None:
    steps = Steps()
    steps.roots.append(model)
    told = QuickDropout.facts(steps, device)["obstacle"]
    assert says in told
    assert bool(says) == bool(told)


def test_a_program_that_has_it_already(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functional, "dropout", as_edited())
    assert QuickDropout.facts(Steps(), "cpu")["obstacle"].startswith("already on: ")


BEFORE = '''"""Trains."""

import torch
from torch import nn

model = nn.Sequential(nn.Dropout(0.5))
print((model(torch.ones(100, 100)) == 0).any().item(), nn.functional.dropout.__name__)
'''


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (BEFORE, "torch"),
        (BEFORE.replace("import torch\n", "import torch as t\n").replace("torch.ones", "t.ones"), "t"),
        (
            BEFORE.replace("import torch\n", "").replace(
                "torch.ones(100, 100)", "nn.Parameter(nn.Linear(100, 100).weight)"
            ),
            "torch",
        ),
        (BEFORE.replace("\n", "\r\n"), "torch"),
    ],
)
def test_the_edit_stands_below_the_imports_and_works(
    tmp_path: Path, text: str, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for replaced in ("dropout", "scaled_dot_product_attention"):
        monkeypatch.setattr(functional, replaced, getattr(functional, replaced))  # Put back at the end.
    made = own_function_change(text, EDIT.name, [EDIT.function, EDIT.text])
    assert made is not None
    assert f"{name}.nn.functional.dropout = quick_dropout" in made.edited
    assert made.edited.index("def quick_dropout") > made.edited.index("from torch import nn")
    script = tmp_path / "train.py"
    script.write_bytes(made.edited.encode())
    runpy.run_path(str(script))
    assert capsys.readouterr().out.split() == ["True", "quick_dropout"]
    assert own_function_change(made.edited, EDIT.name, [EDIT.function, EDIT.text]) is None, "it is there already"
    assert own_function_change("import (\n", EDIT.name, [EDIT.function, EDIT.text]) is None
    more = own_function_change(text, EDIT.name, [EDIT.function, EDIT.text, *EDIT.more(ATTENTION)])
    assert more is not None
    assert f"\n{name}.nn.functional.scaled_dot_product_attention = quick_attention" in more.edited.replace("\r", "")
    attends = "print(nn.functional.scaled_dot_product_attention(*3 * [nn.Linear(8, 8).weight], dropout_p=0.5).shape)\n"
    script.write_bytes((more.edited + attends).encode())
    runpy.run_path(str(script))
    assert capsys.readouterr().out.splitlines() == ["True quick_dropout", "torch.Size([8, 8])"]


MASK = torch.rand(2, 1, 16, 16) > 0.5
MASK[..., 0] = True


def attention(which: str) -> Any:
    """The function that takes the place of torch's."""
    if which == "in the window":
        return _in_steps(ATTEND)
    scope: dict[str, Any] = {"torch": torch}
    exec(quick_dropout.OF_ATTENTION[0], scope)
    return scope["quick_attention"]


ATTEND = functional.scaled_dot_product_attention


@pytest.mark.parametrize("which", ["in the window", "as edited"])
@pytest.mark.parametrize(
    "given",
    [
        {},
        {"attn_mask": MASK},
        {"attn_mask": torch.where(MASK, 0.0, float("-inf"))},
        {"attn_mask": torch.rand(16, 16)},
        {"is_causal": True},
        {"scale": 0.5},
    ],
    ids=["plain", "bool", "infinite", "numbers", "causal", "scaled"],
)
def test_attention_is_torch_s_but_for_what_it_drops(
    monkeypatch: pytest.MonkeyPatch, which: str, given: dict[str, Any]
) -> None:
    query, key, value = (torch.randn(2, 8, 16, 32, requires_grad=True) for _ in range(3))
    expected = ATTEND(query, key, value, **given)
    gradients = torch.autograd.grad(expected.sum(), (query, key, value))
    asked: list[float] = []

    def keeps_all(values: torch.Tensor, p: float) -> torch.Tensor:
        asked.append(p)
        return values

    monkeypatch.setattr(functional, "dropout", keeps_all)
    made = attention(which)(query, key, value, dropout_p=0.25, **given)
    assert asked == [0.25]
    torch.testing.assert_close(made, expected, rtol=1e-4, atol=1e-5)
    for one, other in zip(torch.autograd.grad(made.sum(), (query, key, value)), gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("which", ["in the window", "as edited"])
def test_attention_that_it_can_not_do_is_left_to_torch(monkeypatch: pytest.MonkeyPatch, which: str) -> None:
    monkeypatch.setattr(functional, "dropout", None)
    query = torch.randn(2, 8, 16, 32)
    assert torch.equal(attention(which)(query, query, query), ATTEND(query, query, query))
    lost = torch.zeros(16, 16, dtype=torch.bool)
    monkeypatch.setattr(functional, "dropout", lambda values, p: values)
    assert attention(which)(query, query, query, lost, 0.5).isfinite().all(), "rows of which all is masked"
    monkeypatch.setattr(functional, "dropout", None)
    if "enable_gqa" in str(getattr(ATTEND, "__doc__", "")):
        few = query[:, :2]
        assert attention(which)(query, few, few, dropout_p=0.5, enable_gqa=True).shape == query.shape


class Attends(nn.Module):
    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return functional.scaled_dot_product_attention(values, values, values, dropout_p=0.1)


class Configured(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.config = type("Config", (), {"_attn_implementation": "sdpa"})()


@pytest.mark.parametrize(
    ("module", "attends"),
    [
        (nn.TransformerEncoderLayer(8, 2), True),
        (Attends(), True),
        (Configured(), True),
        (nn.Linear(2, 2), False),
    ],
)
def test_attention_is_told_where_the_model_may_call_it(module: nn.Module, attends: bool) -> None:
    steps = Steps()
    steps.roots.append(nn.Sequential(module, nn.Dropout(0.1)))
    assert QuickDropout.facts(steps, "cpu") == {"obstacle": "", "attention": attends}


def test_attention_takes_part_where_that_is_asked_for_and_is_put_back() -> None:
    knob, context = QuickDropout(), GuestContext(Steps(), "cpu")
    knob.apply(ATTENTION, context)
    query = torch.randn(2, 8, 16, 32)
    functional.scaled_dot_product_attention(query, query, query, dropout_p=0.5)
    assert knob.effect(ATTENTION, context)
    assert functional.scaled_dot_product_attention is not ATTEND
    knob.revert(context)
    assert functional.scaled_dot_product_attention is ATTEND
    assert functional.dropout is ORIGINAL


def test_the_knob_and_its_edit_are_called_alike() -> None:
    assert NAME == quick_dropout.NAME == EDIT.name
