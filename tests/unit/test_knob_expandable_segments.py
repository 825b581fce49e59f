"""What torch's allocator counted on a CUDA device, as far as it can be asked without one."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from bottleneck_doctor.runtime.knobs import GuestContext, Refused
from bottleneck_doctor.runtime.knobs.expandable_segments import KNOB, VARIABLES, variable
from bottleneck_doctor.runtime.loop.steps import Steps


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def facts(retries: int, monkeypatch: pytest.MonkeyPatch) -> Any:
    asked: list[str] = []

    def counted(device: str) -> dict[str, int]:
        asked.append(device)
        return {"num_alloc_retries": retries}

    monkeypatch.setattr(torch.cuda, "memory_stats", counted)
    told = KNOB.facts(Steps(), "cuda:1")
    assert set(asked) <= {"cuda:1"}
    return told


def test_what_was_asked_for_again_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert facts(2, monkeypatch) == {"obstacle": "", "retries": 2, "variable": variable()}
    assert "never ran short" in facts(0, monkeypatch)["obstacle"]
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:128")
    assert facts(2, monkeypatch)["obstacle"].startswith("already on: `PYTORCH_CUDA_ALLOC_CONF`")


def test_nothing_is_asked_without_a_device_and_nothing_is_switched() -> None:
    assert KNOB.facts(Steps(), "cpu") is None
    with pytest.raises(Refused):
        KNOB().apply("PYTORCH_ALLOC_CONF", GuestContext(Steps(), "cuda:0"))


def test_the_variable_has_another_name_since_torch_2_9() -> None:
    assert variable("2.8.1+cu128") == "PYTORCH_CUDA_ALLOC_CONF"
    assert variable("2.9.0") == variable("3.0.0a0") == "PYTORCH_ALLOC_CONF"
