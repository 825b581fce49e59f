"""What a project may write into its configuration, and what it is told about the rest."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from bottleneck_doctor.config import Config, MetricConfig, load, parse
from bottleneck_doctor.documents.check import Unit
from bottleneck_doctor.errors import DoctorError

UNITS: dict[str, Unit] = {"step_time": "seconds", "peak_memory": "bytes", "data_wait": "share"}

WHOLE = """
base-ref = "origin/main"
base-setup = "make build"
budget = "5m"
steady = false
inconclusive = "fail"

[metrics.step_time]
threshold = "5%"
level = "error"

[metrics.peak_memory]
most = "2 GiB"
level = "warn"

[metrics.data_wait]
threshold = 0.05
most = 0.3
"""


def read(folder: Path) -> Config:
    return load([folder], UNITS)


def refusal(folder: Path, text: str, name: str = "doctor.toml") -> DoctorError:
    (folder / name).write_text(text)
    with pytest.raises(DoctorError) as refused:
        read(folder)
    assert str(folder / name) in refused.value.sentence
    return refused.value


@pytest.mark.parametrize(("name", "place"), [("doctor.toml", ""), ("pyproject.toml", "tool.bottleneck-doctor")])
def test_everything_is_read(tmp_path: Path, name: str, place: str) -> None:
    text = WHOLE.replace("[metrics", f"[{place}.metrics") if place else WHOLE
    (tmp_path / name).write_text((f"[{place}]\n" if place else "") + text)
    assert read(tmp_path) == Config(
        source=tmp_path / name,
        base_ref="origin/main",
        base_setup="make build",
        budget=300.0,
        steady=False,
        inconclusive="fail",
        metrics={
            "step_time": MetricConfig(threshold=0.05, level="error"),
            "peak_memory": MetricConfig(level="warn", most=2 * 1024.0**3),
            "data_wait": MetricConfig(threshold=0.05, most=0.3),
        },
    )


def test_nothing_is_no_error(tmp_path: Path) -> None:
    assert read(tmp_path) == Config()
    (tmp_path / "pyproject.toml").write_text("[tool.ruff]\nline-length = 120\n[project]\nname = 'x'\n")
    assert read(tmp_path) == Config()
    (tmp_path / "doctor.toml").write_text("")
    assert read(tmp_path) == Config(source=tmp_path / "doctor.toml")


def test_the_nearest_file_up_to_the_repository_counts(tmp_path: Path) -> None:
    inner = tmp_path / "repository" / "training" / "deep"
    inner.mkdir(parents=True)
    (tmp_path / "doctor.toml").write_text("budget = 1")
    (tmp_path / "repository" / "pyproject.toml").write_text("[tool.bottleneck-doctor]\nbudget = 2")
    assert read(inner) == Config(), "without a repository only the folder itself is looked into"
    (tmp_path / "repository" / ".git").mkdir()
    assert read(inner).budget == 2
    (tmp_path / "repository" / "doctor.toml").write_text("budget = 3")
    assert read(inner).budget == 3, "a file of our own comes before the shared one"
    (inner.parent / "pyproject.toml").write_text("[tool.ruff]")
    assert read(inner).budget == 3, "a file that says nothing of us is passed by"
    (inner.parent / "doctor.toml").write_text("budget = 4")
    assert read(inner).budget == 4
    (tmp_path / "repository" / ".git").rmdir()
    (tmp_path / "repository" / ".git").write_text("gitdir: elsewhere")
    assert load([tmp_path / "repository", inner], UNITS).budget == 3, "the first start that has some counts"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('base_ref = "x"', "Did you mean base-ref?"),
        ("buget = 3", "Did you mean budget?"),
        ("xyzzy = 3", "There are base-ref, base-setup, budget, inconclusive, launch, metrics, steady."),
        ('[metrics.step-time]\nlevel = "warn"', "Did you mean step_time?"),
        ("[metrics.zzz]", "There are data_wait, peak_memory, step_time."),
        ("[metrics.step_time]\ntreshold = 3", "Did you mean threshold?"),
    ],
)
def test_unknown_keys_are_named_with_the_nearest(tmp_path: Path, text: str, said: str) -> None:
    refused = refusal(tmp_path, text)
    assert refused.slug == "config-unknown-key"
    assert refused.next_step == said


def test_a_table_beside_ours_is_named(tmp_path: Path) -> None:
    refused = refusal(tmp_path, "[tool.bottleneck_doctor]\nbudget = 3", "pyproject.toml")
    assert refused.slug == "config-unknown-key"
    assert refused.next_step == "Did you mean [tool.bottleneck-doctor]?"
    refused = refusal(tmp_path, "[tool.bottleneck-doctor.metrics.step_tim]", "pyproject.toml")
    assert "tool.bottleneck-doctor.metrics.step_tim" in refused.sentence


@pytest.mark.parametrize(
    ("text", "key", "expected"),
    [
        ("base-ref = 3", "base-ref is 3", "a text"),
        ('base-ref = " "', "base-ref", "a text"),
        ('budget = "soon"', "budget is 'soon'", "a length of time"),
        ("budget = -1", "budget", "a length of time"),
        ("budget = true", "budget", "a length of time"),
        ("budget = nan", "budget", "a length of time"),
        ('steady = "yes"', "steady", "true or false"),
        ('inconclusive = "failing"', "inconclusive", "did you mean 'fail'"),
        ("metrics = 3", "metrics is 3", "a table, [metrics]"),
        ("[metrics]\nstep_time = 0.05", "metrics.step_time is 0.05", "a table, [metrics.step_time]"),
        ("[metrics.step_time]\nlevel = 'eror'", "metrics.step_time.level", "did you mean 'error'"),
        ("[metrics.step_time]\nlevel = []", "metrics.step_time.level", '"off" or "warn" or "error"'),
        ("[metrics.step_time]\nthreshold = 5", "metrics.step_time.threshold is 5", '"5%" or 0.05'),
        ("[metrics.step_time]\nthreshold = 0", "metrics.step_time.threshold", '"5%" or 0.05'),
        ("[metrics.step_time]\nthreshold = '5 percent'", "metrics.step_time.threshold", '"5%" or 0.05'),
        ("[metrics.data_wait]\nthreshold = '150%'", "metrics.data_wait.threshold", "in points of the share"),
        ("[metrics.data_wait]\nmost = '2 GiB'", "metrics.data_wait.most", '"30%" or 0.3'),
        ("[metrics.peak_memory]\nmost = '30%'", "metrics.peak_memory.most", '"2 GiB" or a number of bytes'),
        ("[metrics.peak_memory]\nmost = inf", "metrics.peak_memory.most", '"2 GiB" or a number of bytes'),
        ("[metrics.step_time]\nmost = 0.1", "metrics.step_time.most", "Use `most` for memory and shares only"),
    ],
)
def test_wrong_values_are_named_with_what_is_expected(tmp_path: Path, text: str, key: str, expected: str) -> None:
    refused = refusal(tmp_path, text)
    assert refused.slug == "config-wrong-value"
    assert key in refused.sentence
    assert expected in refused.next_step


@pytest.mark.parametrize(
    ("text", "threshold"),
    [('"5%"', 0.05), ('" 2.5 % "', 0.025), ("0.05", 0.05), ("1", 1.0), ('"150%"', 1.5)],
)
def test_thresholds(tmp_path: Path, text: str, threshold: float) -> None:
    (tmp_path / "doctor.toml").write_text(f"[metrics.step_time]\nthreshold = {text}")
    assert read(tmp_path).metrics["step_time"].threshold == pytest.approx(threshold)


@pytest.mark.parametrize(
    ("text", "most"),
    [('"2 GiB"', 2 * 1024**3), ('"512MiB"', 512 * 1024**2), ('"1.5 gb"', 1.5e9), ('"100 B"', 100), ("4096", 4096)],
)
def test_sizes(tmp_path: Path, text: str, most: float) -> None:
    (tmp_path / "doctor.toml").write_text(f"[metrics.peak_memory]\nmost = {text}")
    assert read(tmp_path).metrics["peak_memory"].most == most


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    assert refusal(tmp_path, "budget = ").slug == "config-unreadable"
    (tmp_path / "doctor.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(DoctorError, match="not TOML"):
        read(tmp_path)
    (tmp_path / "doctor.toml").unlink()
    (tmp_path / "doctor.toml").mkdir()
    with pytest.raises(DoctorError) as refused:
        read(tmp_path)
    assert refused.value.slug == "config-unreadable"


# -- anything at all ---------------------------------------------------------------------------------------------------

KEYS = st.sampled_from(
    ["base-ref", "base-setup", "budget", "steady", "inconclusive", "metrics", "threshold", "level", "most", *UNITS]
) | st.text(max_size=6)
VALUES = st.recursive(
    st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(
        ["5%", "1e999%", "9" * 400 + "%", "2 GiB", "9" * 400 + "GB", "5m", "error", "fail", "\x00", 10**400]
    )
    | st.datetimes(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=8,
)


def refused_by(make: Callable[[], Config]) -> DoctorError | None:
    try:
        make()
    except DoctorError as refused:
        return refused
    return None


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(KEYS, VALUES, max_size=5))
@example({"metrics": {"step_time": {"threshold": 10**400}}})
@example({"budget": "9" * 400})
def test_any_table_is_a_configuration_or_refused(table: dict[str, Any]) -> None:
    refused = refused_by(lambda: parse(table, UNITS, Path("doctor.toml")))
    if refused is not None:
        assert refused.slug in ("config-unknown-key", "config-wrong-value")
        assert len(refused.sentence) < 400


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.binary(max_size=60)
    | st.text(max_size=60).map(lambda text: text.encode("utf-8", "replace"))
    | st.dictionaries(KEYS, st.text(max_size=5) | st.integers(), max_size=3).map(
        lambda table: "\n".join(f"{json.dumps(key)} = {json.dumps(value)}" for key, value in table.items()).encode()
    )
)
@example(b"[" * 5000)
@example(b"a = " + b"[" * 5000)
@example(b"a" + b".a" * 5000 + b" = 1")
def test_any_file_is_a_configuration_or_refused(tmp_path: Path, data: bytes) -> None:
    for name in ("doctor.toml", "pyproject.toml"):
        path = tmp_path / name
        path.write_bytes(data)
        refused = refused_by(lambda: read(tmp_path))
        assert refused is None or refused.slug.startswith("config-")
        path.unlink()
