"""Knobs that put a value of torch's in place of the user's: they hold in a window, and leave what the user had."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn

from bottleneck_doctor.runtime import knobs
from bottleneck_doctor.runtime.knobs import GuestContext
from bottleneck_doctor.runtime.knobs.intra_op_threads import IntraOpThreads
from bottleneck_doctor.runtime.loop.steps import Steps


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def model() -> nn.Module:
    return nn.Linear(2, 1)


@pytest.fixture
def context(model: nn.Module) -> GuestContext:
    steps = Steps()
    steps.roots = [model]
    return GuestContext(steps, "cpu")


def test_threads_hold_in_the_window_and_are_as_they_were_behind_it(model: nn.Module, context: GuestContext) -> None:
    torch.set_num_threads(2)
    knob = IntraOpThreads()
    knob.apply(1, context)
    model(torch.ones(1, 2))
    assert torch.get_num_threads() == 1
    torch.set_num_threads(2)  # As a program may at the start of every epoch.
    knob.before_step(context)
    assert torch.get_num_threads() == 1
    assert knob.effect(1, context) is True
    knob.timed_part_begins(context)
    assert not model._forward_pre_hooks, "nothing is looked at while steps are timed"
    knob.revert(context)
    assert torch.get_num_threads() == 2


def test_threads_that_are_set_again_in_the_step_did_not_take_effect(model: nn.Module, context: GuestContext) -> None:
    """It looked at a step's end alone, and took what stood there for what the model computed with."""
    torch.set_num_threads(2)
    knob = IntraOpThreads()
    knob.apply(1, context)
    torch.set_num_threads(2)
    model(torch.ones(1, 2))
    knob.before_step(context)
    assert knob.effect(1, context) is False
    knob.revert(context)


def test_what_is_not_applied_is_not_put_back() -> None:
    torch.set_num_threads(1)
    IntraOpThreads().revert(GuestContext(Steps(), "cpu"))
    assert torch.get_num_threads() == 1


def test_a_knob_that_cannot_look_keeps_no_other_from_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Blind(knobs.Knob):
        @classmethod
        def facts(cls, steps: Steps, device: str, loader: Any = None) -> dict[str, object]:
            raise RuntimeError

    class Seeing(knobs.Knob):
        @classmethod
        def facts(cls, steps: Steps, device: str, loader: Any = None) -> dict[str, object]:
            return {"device": device}

    monkeypatch.setattr(knobs, "_kinds", {"blind": Blind, "plain": knobs.Knob, "seeing": Seeing})
    assert knobs.facts(Steps(), "cpu") == {"seeing": {"device": "cpu"}}


LIBRARY = "/lib/python3/site-packages/trains.py"


def run_as(file: str, text: str) -> None:
    exec(compile(f"import torch\n{text}", file, "exec"), {})


def test_who_sets_the_threads_is_noted_by_what_behaves_as_torch_s_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "set_num_threads", torch.set_num_threads)
    steps, count = Steps(), torch.get_num_threads()
    IntraOpThreads.watch(steps)
    assert pickle.loads(pickle.dumps(torch.set_num_threads)) is torch.set_num_threads
    run_as(LIBRARY, f"torch.set_num_threads({count})")
    assert IntraOpThreads.facts(steps, "cpu") == {"set_by": {"file": LIBRARY, "line": 2}, "written": None}
    run_as("/home/user/train.py", f"torch.set_num_threads({count})")
    assert IntraOpThreads.facts(steps, "cpu") == {"set_by": None, "written": {"file": "/home/user/train.py", "line": 2}}
    with pytest.raises(RuntimeError, match="expects an int"):
        torch.set_num_threads("two")


SETTING = {
    "deterministic_algorithms": "torch.use_deterministic_algorithms(False, warn_only=True)",
    "cudnn_benchmark": "torch.backends.cudnn.benchmark = False",
    "cudnn_deterministic": "torch.backends.cudnn.deterministic = False",
}


@pytest.mark.parametrize("name", SETTING)
def test_who_sets_a_switch_is_noted(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "use_deterministic_algorithms", torch.use_deterministic_algorithms)
    for attribute in ("benchmark", "deterministic"):
        held = vars(type(torch.backends.cudnn))[attribute]
        monkeypatch.setattr(held, "setter", held.setter)
    steps, kind = Steps(), knobs.kinds()[name]
    kind.watch(steps)
    assert kind.facts(steps, "cpu")["set_by"] is None
    run_as(LIBRARY, SETTING[name])
    assert kind.facts(steps, "cpu")["set_by"] == {"file": LIBRARY, "line": 2}
    run_as("/home/user/train.py", SETTING[name])
    assert kind.facts(steps, "cpu")["set_by"] is None
    # A window sets it, too, and is nobody.
    run_as(LIBRARY, SETTING[name])
    stands = kind.stands()
    knob = kind()
    knob.apply(True, GuestContext(steps, "cpu"))
    knob.revert(GuestContext(steps, "cpu"))
    assert kind.stands() == stands
    assert kind.facts(steps, "cpu")["set_by"] == {"file": LIBRARY, "line": 2}
