"""Switches for debugging that a script has on: found, off in a window, and as they were behind it."""

from __future__ import annotations

import pytest
from tests.process.conftest import StartGuest
from tests.process.driver import PRELUDE

from bottleneck_doctor.fixes import Offer, catalogue

pytestmark = pytest.mark.process

SWITCHED_ON = (
    PRELUDE
    + """
torch.use_deterministic_algorithms(True, warn_only=True)


class Told(nn.Linear):
    def forward(self, rows):
        # What the engine does, and not what the program is told.
        out = super().forward(rows)
        note("anomaly", "traceback_" in out.grad_fn.metadata)
        note("deterministic", torch.get_deterministic_debug_mode())
        return out


model = Told(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
loader = DataLoader(Rows(), batch_size=4)
for epoch in range(4):
    for batch in loader:
        with torch.autograd.set_detect_anomaly(True):
            train_on(batch)
        note("left", torch.is_anomaly_enabled())
"""
)


def test_switches_are_found_on_and_off_in_a_window(guest: StartGuest) -> None:
    script = guest(SWITCHED_ON)
    found = script.found()
    assert found.own == {"detect_anomaly": True, "deterministic_algorithms": True}
    offer = next(fix for fix in catalogue() if fix.id == "debug-switches").propose(found)
    assert isinstance(offer, Offer)
    (setting,) = offer.settings
    begun = len(script.notes("anomaly"))
    done = script.window(setting, lead_in=4, steps=8)
    assert (done.status, done.reason) == ("ok", "")
    assert done.effect == {"detect_anomaly": True, "deterministic_algorithms": True}
    ended = len(script.notes("anomaly"))
    assert script.window().status == "ok"
    assert script.run_out().code == 0
    anomaly, deterministic = script.notes("anomaly"), script.notes("deterministic")
    assert len(anomaly) == 64
    for told, on, off in ((anomaly, True, False), (deterministic, 1, 0)):
        assert set(told[:begun]) == {on}
        assert set(told[begun:ended]) == {off}
        assert set(told[ended:]) == {on}
    assert not any(script.notes("left"))
