"""The knobs of what float32 is multiplied in: they leave every backend's precision as it was, however it was set."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from bottleneck_doctor.runtime.knobs import GuestContext, float32_precision, own_settings
from bottleneck_doctor.runtime.knobs.cudnn_allow_tf32 import CudnnAllowTf32
from bottleneck_doctor.runtime.knobs.float32_precision import Float32Precision
from bottleneck_doctor.runtime.loop.steps import Steps

READ: Any = getattr(torch._C, "_get_fp32_precision_getter", None)
WRITE: Any = getattr(torch._C, "_set_fp32_precision_setter", None)
needs_backends = pytest.mark.skipif(READ is None, reason="torch is older than the precision of backends")
PLACES = [
    ("generic", "all"),
    *((backend, operation) for backend in ("cuda", "mkldnn") for operation in ("all", "matmul", "conv", "rnn")),
]


def state() -> list[object]:
    """All that torch tells of it, an error included."""
    seen: list[object] = [] if READ is None else [READ(*place) for place in PLACES]
    for ask in (torch.get_float32_matmul_precision, lambda: torch.backends.cudnn.allow_tf32):
        try:
            seen.append(ask())
        except RuntimeError:
            seen.append("refused")
    return seen


def inherited() -> list[object]:
    """What it would be if everybody's precision were another: that of an operation's own stays."""
    if READ is None:
        return []
    before = READ("generic", "all")
    WRITE("generic", "all", "tf32")
    try:
        return state()
    finally:
        WRITE("generic", "all", before)


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = state()
    yield
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = True
    if WRITE is not None:
        for place, precision in zip(PLACES, before, strict=False):
            WRITE(*place, precision)
    assert state() == before


def test_who_sets_it_is_noted(context: GuestContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "set_float32_matmul_precision", torch.set_float32_matmul_precision)
    Float32Precision.watch(context.steps)
    library = "/lib/python3/site-packages/trains.py"
    exec(compile("import torch\ntorch.set_float32_matmul_precision('high')", library, "exec"), {})
    knob = Float32Precision()
    knob.apply("highest", context)
    knob.revert(context)
    assert Float32Precision.facts(context.steps, "cpu")["set_by"] == {"file": library, "line": 2}
    torch.set_float32_matmul_precision("highest")
    assert Float32Precision.facts(context.steps, "cpu")["set_by"] is None


@pytest.fixture
def model() -> nn.Module:
    return nn.Linear(2, 1)


@pytest.fixture
def context(model: nn.Module) -> GuestContext:
    steps = Steps()
    steps.roots = [model]
    return GuestContext(steps, "cpu")


def write(*values: str) -> Callable[[], None]:
    return lambda: WRITE(*values)


SET = [
    pytest.param(lambda: None, id="nothing"),
    pytest.param(lambda: torch.set_float32_matmul_precision("highest"), id="highest"),
    pytest.param(lambda: torch.set_float32_matmul_precision("high"), id="high"),
    pytest.param(lambda: setattr(torch.backends.cuda.matmul, "allow_tf32", True), id="flag of CUDA"),
    pytest.param(write("generic", "all", "ieee"), marks=needs_backends, id="everybody's"),
    pytest.param(write("mkldnn", "all", "ieee"), marks=needs_backends, id="a backend's"),
    pytest.param(write("cuda", "matmul", "ieee"), marks=needs_backends, id="an operation's"),
    pytest.param(write("mkldnn", "conv", "bf16"), marks=needs_backends, id="another operation's"),
]


@pytest.mark.parametrize("value", ["high", "medium"])
@pytest.mark.parametrize("set_by_user", SET)
def test_precision_holds_in_the_window_and_is_as_it_was_behind_it(
    value: str, set_by_user: Callable[[], None], model: nn.Module, context: GuestContext
) -> None:
    set_by_user()
    before, from_everybody = state(), inherited()
    knob = Float32Precision()
    knob.apply(value, context)
    assert torch.get_float32_matmul_precision() == value, "one API with the other: asking is no error"
    assert isinstance(torch.backends.cuda.matmul.allow_tf32, bool)
    model(torch.ones(1, 2))
    knob.before_step(context)
    assert knob.effect(value, context) is True
    knob.timed_part_begins(context)
    assert not model._forward_pre_hooks
    knob.revert(context)
    assert state() == before
    assert inherited() == from_everybody


def test_precision_that_the_step_sets_again_did_not_take_effect(model: nn.Module, context: GuestContext) -> None:
    knob = Float32Precision()
    knob.apply("high", context)
    torch.set_float32_matmul_precision("highest")
    model(torch.ones(1, 2))
    knob.before_step(context)
    assert torch.get_float32_matmul_precision() == "high"
    assert knob.effect("high", context) is False
    knob.revert(context)


@needs_backends
def test_a_backend_s_own_precision_that_contradicts_the_one_value_is_left_alone(context: GuestContext) -> None:
    WRITE("cuda", "matmul", "tf32")
    before = state()
    assert "refused" in before
    assert own_settings()["float32_precision"] == "high"
    assert float32_precision._contradictory()
    knob = Float32Precision()
    with pytest.raises(RuntimeError, match="legacy and new"):
        knob.apply("high", context)
    knob.before_step(context)
    knob.revert(context)
    assert state() == before


def test_it_is_asked_only_where_it_matters(context: GuestContext, monkeypatch: pytest.MonkeyPatch) -> None:
    """torch 2.9 warns whoever asks, and the program would have that among its own words."""
    asked: list[bool] = []

    def contradictory() -> bool:
        asked.append(True)
        return False

    monkeypatch.setattr(float32_precision, "_contradictory", contradictory)
    monkeypatch.setattr(float32_precision, "_levels", lambda device: ["high"] if device == "cuda:0" else [])
    assert Float32Precision.facts(context.steps, "cpu")["contradictory"] is False
    assert not asked
    Float32Precision.facts(context.steps, "cuda:0")
    assert asked


def test_what_the_user_has_set_is_told() -> None:
    assert "float32_precision" not in own_settings()
    for value in ("high", "medium"):
        torch.set_float32_matmul_precision(value)
        assert own_settings()["float32_precision"] == value


@pytest.mark.parametrize("forbidden", [lambda: None, lambda: setattr(torch.backends.cudnn, "allow_tf32", False)])
def test_convolutions_of_cudnn(forbidden: Callable[[], None], model: nn.Module, context: GuestContext) -> None:
    assert "cudnn_allow_tf32" not in own_settings()
    forbidden()
    before = state()
    knob = CudnnAllowTf32()
    knob.apply(True, context)
    assert torch.backends.cudnn.allow_tf32
    model(torch.ones(1, 2))
    assert knob.effect(True, context) is True
    knob.revert(context)
    assert state() == before
    assert own_settings().get("cudnn_allow_tf32") is (False if before[-1] is False else None)


@needs_backends
def test_an_operation_of_cudnn_s_with_a_precision_of_its_own_is_left_alone(context: GuestContext) -> None:
    WRITE("cuda", "conv", "ieee")
    before = state()
    assert "cudnn_allow_tf32" not in own_settings()
    knob = CudnnAllowTf32()
    with pytest.raises(RuntimeError):
        knob.apply(True, context)
    knob.revert(context)
    assert state() == before


@pytest.mark.parametrize(
    ("flags", "levels"),
    [
        ("fpu avx512_bf16 amx_tile amx_bf16", ["medium"]),
        ("fpu avx512_bf16 amx_tile amx_bf16 amx_fp16", ["high", "medium"]),
        ("fpu avx512_bf16", []),
        ("fpu avx2", []),
    ],
)
def test_what_a_processor_has_units_for(
    flags: str, levels: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = tmp_path / "cpuinfo"
    told.write_text(f"processor\t: 0\nflags\t\t: {flags}\n\nprocessor\t: 1\n")
    read = float32_precision._cpu_flags
    monkeypatch.setattr(float32_precision, "_cpu_flags", lambda: read(str(told)))
    monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: True, raising=False)
    if READ is None:
        levels = [level for level in levels if level != "high"]
    assert float32_precision._levels("cpu") == levels
    torch._C._set_mkldnn_enabled(False)
    try:
        assert float32_precision._levels("cpu") == []
    finally:
        torch._C._set_mkldnn_enabled(True)
    assert read(str(tmp_path / "none")) == frozenset()
    assert float32_precision._levels("mps:0") == []


@pytest.mark.parametrize(("capability", "levels"), [((8, 0), ["high"]), ((9, 0), ["high"]), ((7, 5), [])])
def test_what_a_device_has_units_for(
    capability: tuple[int, int], levels: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    assert float32_precision._levels("cuda:1") == levels
    monkeypatch.setattr(torch.version, "hip", "6.0")
    assert float32_precision._levels("cuda:1") == []


def test_how_much_of_a_model_is_in_double_precision() -> None:
    steps = Steps()
    assert Float32Precision.facts(steps, "cpu")["double"] == 0.0
    steps.roots = [nn.Linear(3, 4), nn.Linear(3, 4).double()]
    assert Float32Precision.facts(steps, "cpu")["double"] == 0.5


@pytest.mark.parametrize(
    ("model", "multiplies"),
    [
        (nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)), False),
        (nn.Embedding(4, 4), False),
        (nn.Sequential(nn.Embedding(4, 4), nn.Linear(4, 4)), True),
        (nn.Linear(4, 4).to(torch.bfloat16), False),
    ],
)
def test_whether_a_model_multiplies_float32_matrices(model: nn.Module, multiplies: bool) -> None:
    steps = Steps()
    steps.roots = [model]
    assert Float32Precision.facts(steps, "cpu")["matrices"] is multiplies
    assert Float32Precision.facts(Steps(), "cpu")["matrices"] is True, "a loop without a module may multiply by hand"
