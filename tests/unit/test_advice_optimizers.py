"""The edits of what optimizers do, and of autocast: where one is made, what is said where it is not found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.diagnosable import FOUND

from bottleneck_doctor.documents.report import Change, Setting
from bottleneck_doctor.edits.advice import changes_for
from bottleneck_doctor.runtime.wire.messages import Found, Site

LOOP = """\
for x in loader:
    optimizer.zero_grad(set_to_none=False)
    loss = model(x).sum()
    loss.backward()
    optimizer.step()
"""
FUSED: Setting = {"fused_optimizer": True}
FOREACH: Setting = {"foreach_optimizer": True}
MERGED: Setting = {"merged_groups": True}
NONE: Setting = {"zero_grad_none": True}
OFF: Setting = {"no_autocast": True}


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return tmp_path / "train.py"


def only(setting: Setting, script: Path, source: str) -> Change:
    script.write_text(source + LOOP)
    (change,) = changes_for(setting, found_in(script))
    return change


def found_in(script: Path) -> Found:
    place = Site(file=str(script), line=1)
    return replace(FOUND, device="cpu", loader_site=None, forward_site=place, backward_site=None)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("torch.autocast('cuda', dtype=torch.bfloat16)", "torch.autocast('cuda', dtype=torch.bfloat16, enabled=False)"),
        ("torch.amp.autocast('cpu', enabled=True)", "torch.amp.autocast('cpu', enabled=False)"),
        ("torch.cuda.amp.autocast()", "torch.cuda.amp.autocast(enabled=False)"),
        ("autocast(device_type='cuda')", "autocast(device_type='cuda', enabled=False)"),
    ],
)
def test_autocast_is_switched_off_where_it_is_made(before: str, after: str, script: Path) -> None:
    change = only(OFF, script, f"import torch\ncontext = {before}\n")
    assert f"+context = {after}\n" in change.diff


def test_an_option_that_switches_autocast_on_is_followed(script: Path) -> None:
    script.write_text(
        "import argparse, torch\nparser = argparse.ArgumentParser()\n"
        "parser.add_argument('--amp', type=bool, default=True)\nargs = parser.parse_args()\n"
        "context = torch.autocast('cpu', enabled=args.amp)\n" + LOOP
    )
    (change,) = changes_for(OFF, found_in(script))
    assert "+parser.add_argument('--amp', type=bool, default=False)\n" in change.diff


BENCHMARK: Setting = {"cudnn_benchmark": True}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("import torch\nx = 1\n", "+torch.backends.cudnn.benchmark = True\n"),
        ("import torch\ntorch.backends.cudnn.benchmark = False\n", "+torch.backends.cudnn.benchmark = True\n"),
        ("import torch.backends.cudnn as cudnn\ncudnn.benchmark = False\n", "+cudnn.benchmark = True\n"),
    ],
)
def test_a_switch_is_set_where_it_is_written_and_else_before_training(before: str, after: str, script: Path) -> None:
    change = only(BENCHMARK, script, before)
    assert after in change.diff
    assert change.diff.count("\n+") == 1
    assert change.note == ""


def test_a_method_of_a_framework_of_that_name_is_no_autocast_of_torch(script: Path) -> None:
    change = only(OFF, script, "context = accelerator.autocast()\n")
    assert (change.line, change.diff) == (1, "")
    assert '`mixed_precision="no"`' in change.note


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("torch.optim.AdamW(net.parameters(), lr=0.1)", "torch.optim.AdamW(net.parameters(), lr=0.1, fused=True)"),
        ("SGD(net.parameters(), 0.1, 0.9)", "SGD(net.parameters(), 0.1, 0.9, fused=True)"),
        ("optim.Adam(params, foreach=True)", "optim.Adam(params, fused=True)"),
        ("optim.Adam(params, fused=False)", "optim.Adam(params, fused=True)"),
        ("prepare(model, optim.Adam(params), loader)", "prepare(model, optim.Adam(params, fused=True), loader)"),
    ],
)
def test_the_call_that_makes_the_optimizer_gets_the_argument(before: str, after: str, script: Path) -> None:
    change = only(FUSED, script, f"import torch\noptimizer = {before}\n")
    assert change.line == 2
    assert f"+optimizer = {after}\n" in change.diff
    assert change.note == ""


def test_each_of_two_optimizers_gets_it(script: Path) -> None:
    change = only(FUSED, script, "d = Adam(net_d.parameters())\ng, e = Adam(net_g.parameters()), SGD(rest)\n")
    assert "+d = Adam(net_d.parameters(), fused=True)\n" in change.diff
    assert "+g, e = Adam(net_g.parameters(), fused=True), SGD(rest, fused=True)\n" in change.diff


def test_a_class_that_knows_no_fused_step_gets_the_other(script: Path) -> None:
    assert "+o = NAdam(p, foreach=True)\n" in only(FOREACH, script, "o = NAdam(p)\n").diff


def test_options_of_the_users_own_are_named(script: Path) -> None:
    change = only(FUSED, script, "o = AdamW(p, **options)\n")
    assert '+o = AdamW(p, **{**options, "fused": True, "foreach": None})\n' in change.diff
    assert change.note == "`**options` may hold fused and foreach: what is written behind it wins."


def test_an_optimizer_that_is_made_elsewhere(script: Path) -> None:
    change = only(FUSED, script, "o = make()\n")
    assert (change.line, change.diff) == (1, "")
    assert change.note == "Pass `fused=True` where the optimizer is made, or tell the trainer that makes it."
    assert changes_for(FUSED, replace(found_in(script), forward_site=None)) == []


def seen_in(script: Path, source: str, **seen: list[Any]) -> Change:
    """The change where the optimizer is made in another file than the loop's. `seen`: what the guest told of that."""
    script.write_text("from making import made\no = made()\n" + LOOP)
    (script.parent / "making.py").write_text(source)
    (change,) = changes_for(FUSED, replace(found_in(script), facts={"fused_optimizer": seen}))
    return change


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("AdamW(net.parameters(), lr=0.1)", "AdamW(net.parameters(), lr=0.1, fused=True)"),
        ("CLASSES[name](ps, lr=0.1)", "CLASSES[name](ps, lr=0.1, fused=True)"),
        ("getattr(torch.optim, name)(ps, lr=0.1)", "getattr(torch.optim, name)(ps, lr=0.1, fused=True)"),
        ("self.partial(params=ps)", "self.partial(params=ps, fused=True)"),
        ("prepare(kind(ps, lr=0.1), net)", "prepare(kind(ps, lr=0.1, fused=True), net)"),
        ("kind(ps, **own)", 'kind(ps, **{**own, "fused": True, "foreach": None})'),
    ],
)
def test_a_call_that_was_seen_to_make_it_gets_the_argument(before: str, after: str, script: Path) -> None:
    making = str(script.parent / "making.py")
    change = seen_in(script, f"import torch\n\nmade = lambda: None\no = {before}\n", calls=[["AdamW", making, 4]])
    assert (change.file, change.line) == (making, 4)
    assert f"+o = {after}\n" in change.diff


def test_a_call_of_several_lines_is_seen_at_its_first(script: Path) -> None:
    making = str(script.parent / "making.py")
    source = "o = kind(\n    net.parameters(),\n    lr=0.1,\n)\nkind(others, lr=0.2)\n"
    change = seen_in(script, source, calls=[["AdamW", making, 1]])
    assert "+    fused=True,\n" in change.diff
    assert "others" not in "".join(line for line in change.diff.splitlines() if line.startswith("+"))


@pytest.mark.parametrize("code", ["o = kind(ps)", "o = kind(ps, lr=0.1), kind(rest, lr=0.1)", "o = kinds["])
def test_a_line_that_does_not_show_which_call_makes_it_is_named(code: str, script: Path) -> None:
    making = str(script.parent / "making.py")
    change = seen_in(script, f"{code}\n", calls=[["AdamW", making, 1]])
    assert (change.file, change.line, change.diff) == (making, 1, "")
    assert change.note.startswith("Pass `fused=True` where the optimizer is made")
    assert change.note.endswith("Its class is `AdamW`.")


def test_what_hands_its_arguments_on_gets_it_and_of_any_other_library_the_line_is_named(script: Path) -> None:
    making = str(script.parent / "making.py")
    made = seen_in(script, "o = hydra.utils.instantiate(cfg.optim, params=ps)\n", through=[["hydra", making, 1]])
    assert "+o = hydra.utils.instantiate(cfg.optim, params=ps, fused=True)\n" in made.diff
    other = seen_in(script, "o = create_optimizer_v2(net, lr=0.1)\n", through=[["timm", making, 1]])
    assert (other.file, other.line, other.diff) == (making, 1, "")
    assert other.note.endswith("Here, timm makes it.")


def test_another_optimizer_of_the_loops_file_stays_as_it_is(script: Path) -> None:
    script.write_text("import torch\nother = AdamW(ps)\no = kind(ps, lr=0.1)\n" + LOOP)
    seen = {"calls": [["AdamW", str(script), 3]]}
    (change,) = changes_for(FUSED, replace(found_in(script), facts={"fused_optimizer": seen}))
    assert "+o = kind(ps, lr=0.1, fused=True)\n" in change.diff
    assert "other = AdamW(ps)\n" in change.diff
    assert "-other" not in change.diff


def test_two_of_a_class_on_a_line_both_get_it(script: Path) -> None:
    making = str(script.parent / "making.py")
    calls = [["Adam", making, 1], ["SGD", making, 1]]
    change = seen_in(script, "d, g, e = Adam(p), Adam(q), SGD(r)\n", calls=calls)
    assert "+d, g, e = Adam(p, fused=True), Adam(q, fused=True), SGD(r, fused=True)\n" in change.diff


def test_a_call_of_the_name_is_edited_where_the_line_that_was_seen_shows_none(script: Path) -> None:
    script.write_text("import torch\no = AdamW(ps)\n" + LOOP)
    seen = {"through": [["timm", str(script), 1]]}
    (change,) = changes_for(FUSED, replace(found_in(script), facts={"fused_optimizer": seen}))
    assert "+o = AdamW(ps, fused=True)\n" in change.diff


def test_groups_are_named_where_the_optimizer_is_made(script: Path) -> None:
    change = only(MERGED, script, "import torch\n\no = torch.optim.AdamW([{'params': [p]} for p in ps])\n")
    assert (change.line, change.diff) == (3, "")
    assert change.note.startswith("Give the optimizer one group for all parameters with the same hyperparameters: `[{")


@pytest.mark.parametrize(
    ("setting", "before", "after"),
    [
        ({"bucket_cap_mb": 100}, "DDP(model)", "DDP(model, bucket_cap_mb=100)"),
        ({"bucket_cap_mb": 5}, "DDP(model, bucket_cap_mb=25)", "DDP(model, bucket_cap_mb=5)"),
        (
            {"static_graph": True},
            "nn.parallel.DistributedDataParallel(m)",
            "nn.parallel.DistributedDataParallel(m, static_graph=True)",
        ),
        ({"batched_grad_copy": True}, "DDP(model)", "DDP(model, batched_grad_copy=True)"),
    ],
)
def test_how_gradients_are_exchanged_is_said_where_the_model_is_wrapped(
    setting: Setting, before: str, after: str, script: Path
) -> None:
    change = only(setting, script, f"import torch\nmodel = {before}\n")
    assert f"+model = {after}\n" in change.diff
    note = only(setting, script, "").note
    ((name, value),) = setting.items()
    assert f"pass `{name}={value}` where the model is wrapped" in note.lower() or f"`{name}={value}`" in note


def test_zeros_become_none_where_gradients_are_cleared(script: Path) -> None:
    change = only(NONE, script, "import torch\n")
    assert "+    optimizer.zero_grad(set_to_none=True)\n" in change.diff
    script.write_text("from mine import train_on\ntrain_on()\n")
    (elsewhere,) = changes_for(NONE, found_in(script))
    assert elsewhere.note == "Let `zero_grad` set gradients to `None`, as it does without an argument."


def test_several_at_once(script: Path) -> None:
    script.write_text("o = make()\n" + LOOP)
    setting: Setting = {"intra_op_threads": 1, **FUSED, **MERGED, **NONE}
    change, call = changes_for(setting, found_in(script))
    assert "+    optimizer.zero_grad(set_to_none=True)\n" in change.diff
    assert "+torch.set_num_threads(1)\n" in call.diff
    for sentence in ("And pass `fused=True`", "And give the optimizer one group"):
        assert sentence in change.note


def test_two_calls_of_a_line_that_gets_too_long(script: Path) -> None:
    """The second of them may stand on another line once the first was edited."""
    making = str(script.parent / "making.py")
    names = ["generator_parameters_with_decay", "discriminator_parameters_with_decay"]
    calls = ", ".join(f"torch.optim.AdamW({each}, lr=0.1)" for each in names)
    change = seen_in(script, f"one, other = {calls}\n", calls=[["AdamW", making, 1]])
    assert change.diff.count("fused=True") >= 1


@pytest.mark.parametrize(
    ("before", "after", "taker"),
    [
        (
            "model = TabNet(verbose=0)",
            'model = TabNet(verbose=0, optimizer_params={"lr": 0.02, "fused": True})',
            {"within": "optimizer_params", "holds": {"lr": 0.02, "foreach": True}},
        ),
        (
            "model = TabNet(optimizer_params=None)",
            'model = TabNet(optimizer_params={"lr": 0.02, "fused": True})',
            {"within": "optimizer_params", "holds": {"lr": 0.02}},
        ),
        (
            "model = TabNet(optimizer_params=dict(lr=0.1))",
            'model = TabNet(optimizer_params={**dict(lr=0.1), "foreach": None, "fused": True})',
            {"within": "optimizer_params", "holds": {"lr": 0.1}},
        ),
        (
            "model = TabNet(optimizer_params=options)",
            'model = TabNet(optimizer_params={**(options or {}), "foreach": None, "fused": True})',
            {"within": "optimizer_params", "holds": {}},
        ),
        (
            'model = TabNet(optimizer_params={"lr": 0.1, "foreach": True})',
            'model = TabNet(optimizer_params={"lr": 0.1, "fused": True})',
            {"within": "optimizer_params", "holds": {"lr": 0.1, "foreach": True}},
        ),
        (
            "model = TabNet(None)",
            "model = TabNet(None, optimizer__fused=True)",
            {"names": {"fused": "optimizer__fused", "foreach": "optimizer__foreach"}},
        ),
    ],
)
def test_a_library_that_makes_it_is_given_its_arguments(
    before: str, after: str, taker: dict[str, object], script: Path
) -> None:
    script.write_text(f"{before}\nmodel.fit(rows)\n")
    names = {"fused": "fused", "foreach": "foreach"}
    told = {
        "calls": [],
        "through": [["tabnet", str(script), 2]],
        "takers": [{"made": "TabNet", "names": names, **taker}],
    }
    place = Site(file=str(script), line=2)
    found = replace(
        FOUND,
        device="cpu",
        loader_site=None,
        forward_site=place,
        backward_site=None,
        facts={"fused_optimizer": told},
    )
    (change,) = changes_for(FUSED, found)
    assert f"+{after}\n" in change.diff
    assert not change.unfinished


def test_each_of_several_that_libraries_make_is_given_its_arguments(script: Path) -> None:
    making = str(script.parent / "making.py")
    change = seen_in(
        script,
        "one = TabNet()\nother = TabNet()\none.fit(rows)\nother.fit(rows)\n",
        calls=[],
        through=[["tabnet", making, line] for line in (3, 4)],
        takers=[{"made": "TabNet", "names": {each: f"optimizer__{each}" for each in ("fused", "foreach")}}],
    )
    assert "+one = TabNet(optimizer__fused=True)\n+other = TabNet(optimizer__fused=True)\n" in change.diff
    assert not change.unfinished


def test_one_of_several_that_can_not_be_edited_is_left_to_do_by_hand(script: Path) -> None:
    making = str(script.parent / "making.py")
    change = seen_in(
        script,
        "one = torch.optim.AdamW(ps)\n\nother = build(ps)\n",
        calls=[["AdamW", making, 1], ["Adam", making, 3]],
    )
    assert "+one = torch.optim.AdamW(ps, fused=True)\n" in change.diff
    assert "Its class is `Adam`." in change.note
    assert change.unfinished
