"""Where the optimizers of a loop are made, as the guest sees it."""

from __future__ import annotations

import importlib.util
import inspect
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from bottleneck_doctor.runtime.knobs import _made_optimizers, kinds
from bottleneck_doctor.runtime.loop.steps import Steps

HERE = os.path.abspath(__file__)


@pytest.fixture
def steps() -> Iterator[Steps]:
    before = torch.optim.Optimizer.__init__
    watching = Steps()
    _made_optimizers.watch(watching)
    yield watching
    _made_optimizers.told(watching)
    assert torch.optim.Optimizer.__init__ is before, "nothing of it is left"


def weights() -> list[torch.nn.Parameter]:
    return [torch.nn.Parameter(torch.zeros(3))]


def line_here() -> int:
    return inspect.currentframe().f_back.f_lineno  # type: ignore[union-attr]


KINDS: list[Callable[[], Any]] = [
    lambda: torch.optim.AdamW(weights(), lr=0.1),
    lambda: getattr(torch.optim, "SGD")(weights(), lr=0.1),  # noqa: B009
    lambda: partial(torch.optim.Adam, lr=0.1)(params=weights()),
]


@pytest.mark.parametrize("make", KINDS)
def test_the_line_that_makes_one_is_told_whatever_it_calls(make: Callable[[], Any], steps: Steps) -> None:
    made = make()
    steps.optimizers = [made]
    line = make.__code__.co_firstlineno
    assert _made_optimizers.told(steps) == {"calls": [[type(made).__name__, HERE, line]], "through": []}


def test_the_first_line_of_a_call_of_several(steps: Steps) -> None:
    kind = torch.optim.AdamW
    line = line_here() + 1
    made = kind(
        weights(),
        lr=0.1,
    )
    steps.optimizers = [made]
    told = _made_optimizers.told(steps)
    assert told is not None
    assert told["calls"] == [["AdamW", HERE, line]]


def test_those_of_the_loop_are_told_and_a_line_once(steps: Steps) -> None:
    used = [torch.optim.SGD(weights(), lr=0.1) for _ in range(3)]
    torch.optim.Adam(weights())
    steps.optimizers = list(used)
    told = _made_optimizers.told(steps)
    assert told is not None
    assert len(told["calls"]) == 1


def library(folder: Path) -> ModuleType:
    """A package that was installed, and makes optimizers."""
    inside = folder / "lib" / "site-packages" / "making"
    inside.mkdir(parents=True)
    file = inside / "__init__.py"
    file.write_text("import torch\n\ndef make(params):\n    return torch.optim.SGD(params, lr=0.1)\n")
    spec = importlib.util.spec_from_file_location("making", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_library_that_makes_it_is_named(tmp_path: Path, steps: Steps) -> None:
    making = library(tmp_path)
    line = line_here() + 1
    made = making.make(weights())
    steps.optimizers = [made]
    assert _made_optimizers.told(steps) == {"calls": [], "through": [["making", HERE, line]]}


MODELS = """
import torch

class Model:
    def __init__(self, optimizer_params=None, **kwargs):
        self.optimizer_params = dict(lr=0.02) if optimizer_params is None else optimizer_params

    def fit(self, params):
        return torch.optim.Adam(params, **self.optimizer_params)

class Deaf(Model):
    def fit(self, params):
        return torch.optim.Adam(params, lr=0.5)
"""


def module(name: str) -> dict[str, Any]:
    made: dict[str, Any] = {"__name__": name}
    exec(compile(MODELS, f"/lib/site-packages/{name}.py", "exec"), made)
    return made


@pytest.mark.parametrize(
    ("name", "kind", "within", "holds", "called"),
    [
        ("pytorch_tabnet", "Model", "optimizer_params", {"lr": 0.02}, "fused"),
        ("darts.models", "Deaf", "optimizer_kwargs", {}, "fused"),
        ("skorch.net", "Model", "", {}, "optimizer__fused"),
    ],
)
def test_what_takes_its_arguments_in_a_library_is_told(
    steps: Steps, name: str, kind: str, within: str, holds: dict[str, Any], called: str
) -> None:
    steps.optimizers = [module(name)[kind]().fit(weights())]
    told = _made_optimizers.told(steps)
    assert told is not None
    (taker,) = told["takers"]
    assert (taker["made"], taker["within"], taker["holds"]) == (kind, within, holds)
    assert taker["names"]["fused"] == called


def test_a_library_that_takes_no_notice_of_its_arguments_is_not_told(steps: Steps) -> None:
    steps.optimizers = [module("pytorch_tabnet")["Deaf"]().fit(weights())]
    told = _made_optimizers.told(steps)
    assert told is not None
    assert "takers" not in told


def test_an_optimizer_that_was_made_before_is_not_known() -> None:
    made = torch.optim.SGD(weights(), lr=0.1)
    steps = Steps()
    _made_optimizers.watch(steps)
    steps.optimizers = [made]
    assert _made_optimizers.told(steps) is None


class Unlike(torch.optim.SGD):
    """One that can't be a key."""

    __hash__ = None  # type: ignore[assignment]


def test_an_optimizer_that_can_not_be_a_key_is_made_all_the_same(steps: Steps) -> None:
    made = Unlike(weights(), lr=0.1)
    assert made.param_groups[0]["lr"] == 0.1


def test_an_error_is_the_users_own(steps: Steps) -> None:
    with pytest.raises(ValueError, match="empty parameter list"):
        torch.optim.SGD([], lr=0.1)


def test_the_knobs_that_apply_tell_it() -> None:
    steps = Steps()
    kinds()["fused_optimizer"].watch(steps)
    kinds()["merged_groups"].watch(steps)
    made = torch.optim.AdamW(weights(), foreach=False)
    steps.optimizers = [made]
    told = {name: kinds()[name].facts(steps, "cpu") for name in ("fused_optimizer", "merged_groups")}
    assert told["fused_optimizer"]["calls"][0][0] == "AdamW"
    assert told["merged_groups"] is None, "it has one group"


def test_an_optimizer_that_is_left_alone_is_not_told() -> None:
    """The edit would give its class an argument that it may not know."""

    class Lion(torch.optim.SGD):
        def step(self, closure: Any = None) -> Any:
            return None

    steps = Steps()
    kinds()["fused_optimizer"].watch(steps)
    steps.optimizers = [torch.optim.AdamW(weights()), Lion(weights(), lr=0.1), torch.optim.Adam(weights(), fused=True)]
    assert [each[0] for each in kinds()["fused_optimizer"].facts(steps, "cpu")["calls"]] == ["AdamW"]
