"""How optimizers step otherwise on a CUDA device: counts of steps beside their parameters and back, the same bits with
merged groups, and gradients that are scaled."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.gpu.test_cuda import _has_cuda

pytestmark = pytest.mark.skipif(not _has_cuda(), reason="there is no CUDA device")

COMMON = """
import torch
from torch import nn
from bottleneck_doctor.runtime.knobs import GuestContext, kinds, obstacles
from bottleneck_doctor.runtime.loop.steps import Steps


class Training:
    def __init__(self, scaled=False, **options):
        torch.manual_seed(0)
        self.model = nn.Sequential(*(nn.Linear(16, 16) for _ in range(6))).cuda()
        groups = [{"params": [p], "weight_decay": 0.1 * (p.ndim > 1)} for p in self.model.parameters()]
        self.optimizer = torch.optim.AdamW(groups, lr=1e-2, **options)
        self.scaler = torch.amp.GradScaler("cuda", init_scale=64.0, growth_interval=3, enabled=scaled)
        self.numbers = torch.Generator().manual_seed(1)
        self.steps = Steps()
        self.steps.roots, self.steps.optimizers, self.steps.user_scaler = [self.model], [self.optimizer], scaled
        self.house = GuestContext(self.steps, "cuda:0")

    def run(self, count, overflow=()):
        for number in range(count):
            self.optimizer.zero_grad()
            loss = self.model(torch.randn(8, 16, generator=self.numbers).cuda()).square().mean()
            self.scaler.scale(loss).backward()
            if number in overflow:
                self.model[0].weight.grad.fill_(float("inf"))
            self.scaler.step(self.optimizer)
            self.scaler.update()
        return self

    def applied(self, name):
        assert obstacles(self.steps)[name] == "", obstacles(self.steps)
        knob = kinds()[name]()
        knob.apply(True, self.house)
        return knob

    def values(self):
        return [*self.model.parameters(), *(v for state in self.optimizer.state.values() for v in state.values())]
"""

COUNTS = """
for options in ({}, {"foreach": False}):
    other, plain = Training(**options).run(3), Training(**options).run(3)
    before = [state["step"] for state in other.optimizer.state.values()]
    knob = other.applied("fused_optimizer")
    other.run(5)
    assert all(state["step"].is_cuda for state in other.optimizer.state.values())
    assert knob.effect(True, other.house) is True
    other.optimizer.load_state_dict(other.optimizer.state_dict())
    other.run(1)
    knob.revert(other.house)
    assert not any(state["step"].is_cuda for state in other.optimizer.state.values())
    assert {float(state["step"]) for state in other.optimizer.state.values()} == {9.0}
    for one, two in zip(other.run(2).values(), plain.run(8).values(), strict=True):
        torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-5)
"""

MERGED = """
for options in ({"foreach": False}, {"foreach": True}, {"fused": True}):
    other, plain = Training(**options).run(3), Training(**options).run(203)
    knob = other.applied("merged_groups")
    other.run(200)
    assert knob.effect(True, other.house) is True
    knob.revert(other.house)
    assert all(map(torch.equal, other.values(), plain.values()))
"""

SCALED = """
other, plain = Training(scaled=True).run(2), Training(scaled=True).run(2)
knob = other.applied("fused_optimizer")
assert other.optimizer._step_supports_amp_scaling
other.run(8, overflow=(1, 5))
plain.run(8, overflow=(1, 5))
assert knob.effect(True, other.house) is True
knob.revert(other.house)
assert not {"_step_supports_amp_scaling", "grad_scale", "found_inf"} & set(vars(other.optimizer))
assert other.scaler.get_scale() == plain.scaler.get_scale()
for one, two in zip(other.run(1).values(), plain.run(1).values(), strict=True):
    torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-5)
"""


@pytest.mark.parametrize("body", [COUNTS, MERGED, SCALED], ids=["counts", "merged", "scaled"])
def test_on_the_device(body: str) -> None:
    done = subprocess.run([sys.executable, "-c", COMMON + body], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
