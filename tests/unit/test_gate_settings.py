"""What a project's configuration makes of the limits of a check."""

from __future__ import annotations

import pytest

from bottleneck_doctor.config import Config, MetricConfig
from bottleneck_doctor.documents.check import DATA_WAIT, HOST_MEMORY, STEP_TIME
from bottleneck_doctor.errors import DoctorError
from bottleneck_doctor.gate.limits import DEFAULTS, configured


def said(**metrics: MetricConfig) -> Config:
    return Config(metrics=metrics)


def test_what_is_not_said_is_as_ever() -> None:
    assert configured(Config(), None) == DEFAULTS
    made = configured(said(step_time=MetricConfig(threshold=0.02), data_wait=MetricConfig(level="off")), None)
    assert (made[STEP_TIME].threshold, made[STEP_TIME].level) == (0.02, "error")
    assert (made[DATA_WAIT].threshold, made[DATA_WAIT].level) == (DEFAULTS[DATA_WAIT].threshold, "off")


def test_the_command_line_wins() -> None:
    assert configured(said(step_time=MetricConfig(threshold=0.02)), 0.07)[STEP_TIME].threshold == 0.07


def test_an_absolute_limit_is_meant_to_be_kept() -> None:
    assert DEFAULTS[HOST_MEMORY].level == "warn"
    assert configured(said(host_memory=MetricConfig(most=1.0)), None)[HOST_MEMORY].level == "error"
    assert configured(said(host_memory=MetricConfig(most=1.0, level="warn")), None)[HOST_MEMORY].level == "warn"


@pytest.mark.parametrize("threshold", [0.0, 0.002, 0.005, 0.0099])
def test_a_threshold_that_no_check_can_promise_is_refused(threshold: float) -> None:
    """Below a percent, times of identical processes differ by as much."""
    told = f"{100 * threshold:g}%"
    for config, given in (
        (Config(), threshold),
        (said(step_time=MetricConfig(threshold=threshold)), None),
        (said(phase_forward=MetricConfig(threshold=threshold)), 0.05),
    ):
        with pytest.raises(DoctorError) as refused:
            configured(config, given)
        assert refused.value.slug == "threshold-too-small"
        assert told in refused.value.sentence
        assert "no check can promise" in refused.value.sentence
        assert refused.value.next_step.startswith("Give 1% or more.")
    assert configured(Config(), 0.01)[STEP_TIME].threshold == 0.01


def test_memory_repeats_better_than_times() -> None:
    assert configured(said(device_memory=MetricConfig(threshold=0.005)), None)["device_memory"].threshold == 0.005
    with pytest.raises(DoctorError) as refused:
        configured(said(host_memory=MetricConfig(threshold=0.0001)), None)
    assert "0.01% for host_memory" in refused.value.sentence
    assert refused.value.next_step.startswith("Give 0.2% or more.")
