"""What lies between epochs, by the windows that hold whole ones, and what it leaves to faster steps."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.diagnosable import window

from bottleneck_doctor.documents.report import Window
from bottleneck_doctor.measure import pauses
from bottleneck_doctor.measure.costs import Costs
from bottleneck_doctor.measure.schedule import LoopShape, probe


def whole(epochs: int, step: float, between: float, rest: float, **others: object) -> Window:
    """A window of whole epochs of ten steps. `rest`: the part of an epoch that is left when it is granted."""
    seconds = 10 * epochs * step
    took = seconds + epochs * between + rest * 10 * step
    values = {"steps": 10 * epochs, "seconds": seconds, "whole_epochs": epochs, "started": 5.0, "ended": 5.0 + took}
    return window(1, **{**values, "lead_in_steps": 0, "lead_in_seconds": 0.0, **others})


@given(st.integers(1, 50), st.floats(0.001, 1.0), st.floats(0.0, 10.0), st.floats(0.0, 1.0), st.floats(0.001, 1.0))
def test_what_lies_between_epochs_is_never_taken_for_more(
    epochs: int, step: float, between: float, rest: float, other: float
) -> None:
    true = between / (between + 10 * step)
    seen = pauses.share([whole(epochs, step, between, rest), whole(epochs, step, between, other)])
    assert 0.0 <= seen <= true + 1e-9
    assert seen >= min(true, 1 - 1 / max(1.0, 1 / (1 - true) - 1 / epochs)) - 1e-9


def test_only_windows_of_whole_epochs_as_written_tell_it() -> None:
    pausing = whole(20, 0.01, 0.5, 0.0)
    assert pauses.share([pausing]) == pytest.approx(5 / 6, abs=0.01)
    others: list[dict[str, object]] = [
        {"whole_epochs": 0},
        {"setting": {"num_workers": 2}},
        {"mode": "phases"},
        {"status": "failed"},
        {"ended": None},
    ]
    for changed in others:
        assert pauses.share([whole(20, 0.01, 0.5, 0.0, **changed)]) == 0.0
    assert pauses.share([]) == 0.0


def test_what_the_collector_takes_there_is_measured() -> None:
    """Twenty epochs of 0.1 s, with 0.5 s after each, of which the collector takes 0.4 s."""
    windows = [whole(20, 0.01, 0.5, 0.0, turns=19, turns_collecting=19 * 0.4)]
    assert pauses.share(windows) == pytest.approx(2 / 12, abs=0.04)
    assert pauses.stretch(windows) > 5


@given(st.floats(0.001, 1.0), st.floats(0.0, 0.99))
def test_a_gain_of_steps_is_what_the_whole_gains_by(gain: float, between: float) -> None:
    steps = pauses.gain_of_steps(gain, between)
    if steps is None:
        assert between >= 1 / (1 + gain) - 1e-12
    else:
        assert 1 / (between + (1 - between) / (1 + steps)) == pytest.approx(1 + gain, rel=1e-6)
        assert steps >= gain - 1e-9


def test_windows_that_explain_are_shorter_where_the_first_of_them_showed_long_pauses() -> None:
    """Epochs of ten steps of 10 ms, with half a second between them: three seconds of steps would take 18."""
    shape = LoopShape(period=1, epoch_batches=10, num_workers=0, prefetch_factor=2, served=True)
    each = probe("phases:baseline", {}, mode="phases")
    costs = Costs(shape, 0.01, 1.0, brief=True)
    plain = costs.explaining_size(each, 3.0, None, 18.0)
    assert costs.explaining(each, 3.0) == pytest.approx(0.01 * (plain.steps + plain.lead_in))
    costs.learnt_first(
        window(1, mode="phases", steps=100, seconds=1.0, lead_in_steps=0, lead_in_seconds=0.0, started=0.0, ended=6.0)
    )
    shorter = costs.explaining_size(each, 3.0, None, 18.0)
    assert shorter.steps == pytest.approx(plain.steps / 3, abs=1)
    assert costs.explaining(each, 3.0) == pytest.approx(0.06 * (shorter.steps + shorter.lead_in), rel=0.1)
    # A window that holds no whole epoch says nothing of what lies between epochs.
    unknown = Costs(shape, 0.01, 1.0, brief=True)
    unknown.learnt_first(
        window(1, mode="phases", steps=5, seconds=0.05, lead_in_steps=0, lead_in_seconds=0.0, started=0.0, ended=0.6)
    )
    assert unknown.explaining_size(each, 3.0, None, 18.0) == plain
