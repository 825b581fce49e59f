"""Windows in a loop that no loader feeds: what a window that can't be had leaves behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn

from bottleneck_doctor.runtime.loop.ladder import Loop
from bottleneck_doctor.runtime.loop.steps import Steps
from bottleneck_doctor.runtime.serve.bare_server import BareServer
from bottleneck_doctor.runtime.wire.liveness import Liveness
from bottleneck_doctor.runtime.wire.messages import Grant, WindowDone


def test_a_window_that_fails_as_it_begins_leaves_nothing_of_it(tmp_path: Path) -> None:
    """One part of the setting can be had, and the other can't."""
    steps = Steps()
    steps.optimizers = [torch.optim.AdamW(nn.Linear(2, 1).parameters())]
    setting: dict[str, Any] = {"fused_optimizer": True, "merged_groups": True}
    grants = iter([Grant(window=1, setting=setting, mode="timed", lead_in=1, steps=1)])
    reports: list[WindowDone | None] = []

    def ask(report: WindowDone | None) -> Grant:
        reports.append(report)
        return next(grants, Grant(window=2, setting={}, mode="timed", lead_in=1, steps=1))

    loop = Loop("optimizer step", 1, True, None)
    BareServer(steps, loop, ask, "cpu", Liveness(str(tmp_path))).step_ended()
    failed = reports[1]
    assert failed is not None
    assert (failed.status, failed.reason) == ("failed", "ValueError: the optimizer has one group of parameters")
    assert not steps.optimizers[0]._optimizer_step_pre_hooks
