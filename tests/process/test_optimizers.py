"""What optimizers do otherwise in a window: found in the live loop, held in it, and gone behind it."""

from __future__ import annotations

import pytest
from tests.process.conftest import StartGuest
from tests.process.driver import PRELUDE

from bottleneck_doctor.documents.report import Setting
from bottleneck_doctor.edits.advice import changes_for
from bottleneck_doctor.fixes import Offer, catalogue

pytestmark = pytest.mark.process

FIXES = ("fused-optimizer", "merged-groups", "zero-grad-none")

SCHEDULED = (
    PRELUDE
    + """
model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
groups = [{"params": [each], "weight_decay": 0.1 if each.ndim > 1 else 0.0} for each in model.parameters()]
optimizer = torch.optim.AdamW(groups, lr=1e-3)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step))
scaler = torch.amp.GradScaler("cpu", enabled=ENABLED)
loader = DataLoader(Rows(), batch_size=4)
for epoch in range(12):
    for rows, _ in loader:
        optimizer.zero_grad(set_to_none=False)
        scaler.scale(model(rows).square().mean()).backward()
        scaler.step(optimizer)
        scaler.update()
        schedule.step()
        note("groups", [len(optimizer.param_groups), sum(bool(group["fused"]) for group in optimizer.param_groups)])
note("left", sorted(set(vars(optimizer)) & {"_step_supports_amp_scaling", "grad_scale", "found_inf"}))
note("hooks", len(optimizer._optimizer_step_pre_hooks))
note("weights", [each.tolist() for each in model.parameters()])
"""
)


@pytest.mark.parametrize("enabled", [pytest.param(False, marks=pytest.mark.slow(together=True)), True])
def test_optimizers_are_changed_in_windows_alone(guest: StartGuest, enabled: bool) -> None:
    script = guest(SCHEDULED.replace("ENABLED", str(enabled)))
    found = script.found()
    settings: list[Setting] = []
    for fix in catalogue():
        if fix.id in FIXES:
            offer = fix.propose(found)
            assert isinstance(offer, Offer), offer
            settings += offer.settings
    settings.append({name: value for setting in settings for name, value in setting.items()})
    for setting in settings:
        done = script.window(setting, lead_in=4, steps=8)
        assert (done.status, done.reason) == ("ok", "")
        assert done.effect == dict.fromkeys(setting, True)
        assert script.window(lead_in=2, steps=4).status == "ok"
    assert script.run_out().code == 0
    assert set(map(tuple, script.notes("groups"))) == {(4, 0)}, "what the program sees is its own"
    assert script.notes("left") == [[]]
    assert script.notes("hooks") == [0]


CHOSEN = (
    PRELUDE
    + """
model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
kind, options = torch.optim.AdamW, {"lr": 1e-3}
optimizer = kind(model.parameters(), **options)
loader = DataLoader(Rows(), batch_size=4)
for epoch in range(4):
    for rows, _ in loader:
        optimizer.zero_grad()
        model(rows).square().mean().backward()
        optimizer.step()
note("watched", hasattr(torch.optim.Optimizer.__init__, "__wrapped__"))
"""
)


def test_an_optimizer_that_is_made_by_a_variable_gets_its_argument_where_it_is_made(guest: StartGuest) -> None:
    script = guest(CHOSEN)
    found = script.found()
    (change,) = changes_for({"fused_optimizer": True}, found)
    assert "-optimizer = kind(model.parameters(), **options)\n" in change.diff
    assert "+optimizer = kind(model.parameters(), **options, fused=True)\n" in change.diff
    assert script.run_out().code == 0
    assert script.notes("watched") == [False], "nothing of it is left"
