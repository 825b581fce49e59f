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


def test_a_threshold_that_nothing_repeats_to_is_refused() -> None:
    with pytest.raises(DoctorError) as refused:
        configured(said(step_time=MetricConfig(threshold=0.0001)), None)
    assert refused.value.slug == "threshold-too-small"
    assert "0.01% for step_time" in refused.value.sentence
