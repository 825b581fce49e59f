"""After how many steps a loop without a loader is found."""

from __future__ import annotations

import pytest

from bottleneck_doctor.runtime.loop import ladder, records
from bottleneck_doctor.runtime.loop.ladder import look
from bottleneck_doctor.runtime.loop.period import MINIMUM_STEPS
from bottleneck_doctor.runtime.loop.steps import Steps
from bottleneck_doctor.runtime.wire.expected import BARE_STEPS, Expected


def steps_until_found(monkeypatch: pytest.MonkeyPatch, seconds: float, expected: Expected | None = None) -> int:
    """Of a loop whose optimizer steps once in `seconds`."""
    clock = [1000.0]
    for module in (ladder, records):
        monkeypatch.setattr(module, "now", lambda: clock[0])
    steps = Steps()
    steps.started = clock[0]
    for number in range(1, 200):
        clock[0] += seconds
        steps.bare_steps.add(("optimizer", 0))
        if look(steps, expected) is not None:
            return number
    raise AssertionError("not found")


def test_fewer_long_steps_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twelve steps of 22 s, as those of LBFGS over all data, are four minutes."""
    assert steps_until_found(monkeypatch, 0.05) == BARE_STEPS
    assert steps_until_found(monkeypatch, 1.5) == BARE_STEPS
    assert steps_until_found(monkeypatch, 3.0) == 8
    assert steps_until_found(monkeypatch, 22.0) == MINIMUM_STEPS


def test_what_another_process_found_is_expected_only_of_such_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    known = Expected("optimizer step", 1, [])
    assert steps_until_found(monkeypatch, 0.05, known) == BARE_STEPS
    assert steps_until_found(monkeypatch, 0.05, Expected("optimizer step", 1, ["another"])) == BARE_STEPS
