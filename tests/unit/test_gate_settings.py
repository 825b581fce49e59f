"""What a project's configuration makes of a check: limits, and what is too much whatever the base needs."""

from __future__ import annotations

import runpy
from dataclasses import replace
from pathlib import Path

import pytest

from bottleneck_doctor.config import Config, MetricConfig
from bottleneck_doctor.errors import DoctorError
from bottleneck_doctor.gate.document import Check
from bottleneck_doctor.gate.limits import DATA_WAIT, DEFAULTS, HOST_MEMORY, STEP_TIME
from bottleneck_doctor.gate.settings import held, limits

CHECKS: dict[str, Check] = runpy.run_path(str(Path(__file__).parents[1] / "golden" / "checks.py"))["results"]()
MIB = 1024**2


def said(**metrics: MetricConfig) -> Config:
    return Config(metrics=metrics)


def passed() -> Check:
    """A check with a host that needs 1421 MiB on the head."""
    check = CHECKS["passed"]
    memory = replace(check.metrics[1], id=HOST_MEMORY, level="error")
    return replace(check, metrics=[check.metrics[0], memory])


def test_what_is_not_said_is_as_ever() -> None:
    assert limits(Config()) == DEFAULTS
    made = limits(said(step_time=MetricConfig(threshold=0.02), data_wait=MetricConfig(level="off")))
    assert (made[STEP_TIME].threshold, made[STEP_TIME].level) == (0.02, "error")
    assert (made[DATA_WAIT].threshold, made[DATA_WAIT].level) == (DEFAULTS[DATA_WAIT].threshold, "off")


def test_an_absolute_limit_is_meant_to_hold() -> None:
    assert DEFAULTS[HOST_MEMORY].level == "warn"
    assert limits(said(host_memory=MetricConfig(most=1.0)))[HOST_MEMORY].level == "error"
    assert limits(said(host_memory=MetricConfig(most=1.0, level="warn")))[HOST_MEMORY].level == "warn"


def test_a_threshold_that_nothing_repeats_to_is_refused() -> None:
    with pytest.raises(DoctorError) as refused:
        limits(said(step_time=MetricConfig(threshold=0.0001)))
    assert refused.value.slug == "threshold-too-small"
    assert "step_time" in refused.value.sentence


def test_what_keeps_its_limit_is_left_as_it_is() -> None:
    check = passed()
    assert held(check, Config()) is check
    assert held(check, said(host_memory=MetricConfig(most=1500.0 * MIB))) is check
    assert held(check, said(data_wait=MetricConfig(most=0.1))) is check, "what was not measured has no figure"


def test_what_is_beyond_its_limit_fails() -> None:
    found = held(passed(), said(host_memory=MetricConfig(most=1000.0 * MIB)))
    assert found.status == "regressed"
    assert found.sentence == "Peak memory of the host: 1.4 GiB, more than 1000 MiB, which is the most allowed."
    assert [metric.verdict for metric in found.metrics] == ["unchanged", "regression"]


def test_a_warning_stays_one() -> None:
    check = passed()
    check = replace(check, metrics=[check.metrics[0], replace(check.metrics[1], level="warn")])
    found = held(check, said(host_memory=MetricConfig(most=1000.0 * MIB)))
    assert (found.status, found.sentence) == ("passed", check.sentence)
    assert found.metrics[1].verdict == "regression"


def test_a_regression_is_still_said_first() -> None:
    check = CHECKS["regressed"]
    check = replace(check, metrics=[check.metrics[0], replace(check.metrics[1], level="error")])
    found = held(check, said(data_wait=MetricConfig(most=0.2799)))
    assert found.sentence.startswith(check.sentence)
    assert found.sentence.endswith("a little more than 28 %, which is the most allowed.")
