"""Exact samples in, the document's figures out."""

from __future__ import annotations

import math
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bottleneck_doctor.documents.report import Utilization, Window
from bottleneck_doctor.monitor.recording import Device, Recorder, UsageRecording
from bottleneck_doctor.monitor.usage import MOST_POINTS, fastest, summarise, timed

NAN = math.nan


def recording(begun: float, columns: dict[str, list[float]], **others: Any) -> UsageRecording:
    rows = len(next(iter(columns.values())))
    return UsageRecording(begun, [begun + 0.1 * (row + 1) for row in range(rows)], columns, **others)


def window(started: float, seconds: float, **others: Any) -> Window:
    values: dict[str, Any] = {
        "session": 1, "rank": 0, "block": 1, "setting": {}, "mode": "timed", "steps": 10, "samples": 40.0,
        "seconds": seconds, "lead_in_steps": 0, "lead_in_seconds": 0.0, "wait_seconds": 0.0, "turn_seconds": None,
        "whole_epochs": 0, "queue_change": 0, "ready_share": None, "effect": {}, "started": started,
        "label": "baseline",
    }  # fmt: skip
    return Window(**{**values, **others})


def summary(*args: Any) -> Utilization:
    found = summarise(*args)
    assert found is not None
    return found


def test_means_over_a_window_weigh_samples_by_their_overlap() -> None:
    sampled = recording(100.0, {"cores_busy": [1.0, 2.0, 3.0, 4.0]})
    assert sampled.mean("cores_busy", 100.1, 100.3) == pytest.approx(2.5)
    assert sampled.mean("cores_busy", 100.15, 100.25) == pytest.approx(2.5)
    assert sampled.mean("cores_busy", 100.0, 100.125) == pytest.approx(1.2)
    assert sampled.mean("cores_busy", 100.38, 105.0) == pytest.approx(4.0)
    assert sampled.mean("cores_busy", 90.0, 99.0) is None
    assert sampled.mean("io_pressure", 100.0, 101.0) is None
    assert (sampled.samples(100.1, 100.3), sampled.samples(100.32, 100.38)) == (3, 0)


def test_gaps_are_left_out_of_means() -> None:
    sampled = recording(0.0, {"cores_busy": [1.0, NAN, 3.0], "io_pressure": [NAN, NAN, NAN]})
    assert sampled.mean("cores_busy", 0.0, 0.3) == pytest.approx(2.0)
    assert sampled.mean("io_pressure", 0.0, 0.3) is None


@given(
    st.lists(st.floats(0, 100) | st.just(NAN), min_size=1, max_size=30),
    st.floats(-1, 4),
    st.floats(0.001, 4),
)
def test_a_mean_lies_among_its_values(values: list[float], start: float, length: float) -> None:
    sampled = recording(0.0, {"cores_busy": values})
    mean = sampled.mean("cores_busy", start, start + length)
    known = sampled.values("cores_busy", start, start + length)
    if mean is not None:
        assert min(known) - 1e-6 <= mean <= max(known) + 1e-6


def test_processes_machine_and_gpu_of_a_window() -> None:
    columns = {
        "main.processes": [1.0] * 10,
        "main.cpu_user": [0.5] * 10,
        "main.cpu_system": [0.25] * 10,
        "main.rss_bytes": [1e6] * 10,
        "workers.processes": [NAN] * 5 + [2.0] * 5,
        "workers.cpu_user": [NAN] * 5 + [1.5] * 5,
        "workers.cpu_system": [NAN] * 5 + [0.1] * 5,
        "other.processes": [0.0] * 10,
        "doctor.cpu_user": [0.05] * 10,
        "doctor.cpu_system": [0.05] * 10,
        "cores_busy": [1.0] * 5 + [4.0] * 5,
        "gpu0.utilization": [0.25] * 5 + [0.75] * 5,
        "gpu0.throttle_mask": [0.0] * 5 + [float(0x4), float(0x40), float(0x1), 0.0, 0.0],
    }
    sampled = recording(50.0, columns, devices=(Device(0, "H200"),), cpu_seconds=0.01, missing=("No clock.",))
    found = summary([sampled], [window(50.0, 0.5), window(50.5, 0.5, label="num_workers=2")], "num_workers=2")
    first, second = found.windows
    assert (first.window, first.label, second.window, second.label) == (0, "baseline", 1, "num_workers=2")
    assert [use.role for use in first.processes] == ["main", "workers"]
    main, workers = first.processes
    assert (main.cpu_user, main.cpu_system, main.rss_bytes, main.pss_bytes) == (0.5, 0.25, 1e6, None)
    assert (workers.processes, workers.cpu_user, workers.rss_bytes) == (0, None, None)
    assert (second.processes[1].processes, second.processes[1].cpu_user) == (2, 1.5)
    assert first.others_cpu == pytest.approx(0.15)
    assert second.others_cpu == pytest.approx(1.55)
    assert (first.devices[0].utilization, second.devices[0].utilization) == (0.25, 0.75)
    assert (first.devices[0].throttle_reasons, first.devices[0].power_watts) == ([], None)
    assert second.devices[0].throttle_reasons == ["power cap", "hardware thermal slowdown"]
    assert found.monitor_cpu == pytest.approx(0.01)
    assert found.interval_seconds == pytest.approx(0.1)
    assert found.missing == ["No clock."]
    assert found.series["main_cpu"] == [0.75] * 10
    assert found.series["workers_cpu"] == [None] * 5 + [1.6] * 5
    assert found.series["gpu0_utilization"] == [0.25] * 5 + [0.75] * 5
    assert "io_pressure" not in found.series, "nothing but gaps is not drawn"


def test_a_worker_that_died_within_the_window_still_counts() -> None:
    columns = {
        "workers.processes": [1.0, 0.0, 0.0, 0.0],
        "workers.cpu_user": [1.0, 0.5, NAN, NAN],
    }
    use = summary([recording(0.0, columns)], [window(0.0, 0.4)]).windows[0]
    workers = next(each for each in use.processes if each.role == "workers")
    assert (workers.processes, workers.cpu_user) == (1, 0.75)


def test_workers_that_come_and_go_are_as_many_as_there_are_at_once() -> None:
    columns = {
        "workers.processes": [0.0] * 9 + [2.0] + [2.0, 0.0, 2.0, 1.0, 0.0, 2.0],
        "workers.cpu_user": [NAN] * 9 + [1.0] * 7,
    }
    uses = summary([recording(0.0, columns)], [window(0.0, 0.904), window(0.904, 0.696)]).windows
    workers = [next(each for each in use.processes if each.role == "workers") for use in uses]
    assert (workers[0].processes, workers[0].cpu_user) == (0, None), "the next window's, by a hair"
    assert (workers[1].processes, workers[1].cpu_user) == (2, 1.0)


def test_sessions_share_an_axis_with_a_gap_between() -> None:
    later = recording(110.0, {"cores_busy": [3.0, 3.0]})
    earlier = recording(100.0, {"cores_busy": [1.0, 1.0]})
    windows = [window(100.0, 0.1), window(110.0, 0.1, session=2, mode="phases"), window(0.0, 0.0, status="failed")]
    found = summary([later, earlier], windows)
    assert found.times == pytest.approx([0.05, 0.15, 5.1, 10.05, 10.15])
    assert found.series["cores_busy"] == [1.0, 1.0, None, 3.0, 3.0]
    assert [(span.start, span.end, span.label, span.session) for span in found.spans] == [
        (0.0, 0.1, "baseline", 1),
        (10.0, 10.1, "phases: baseline", 2),
    ]
    assert [use.window for use in found.windows] == [0], "a window that explains slows the loop"


@pytest.mark.parametrize("rows", [1, 599, 6001])
@pytest.mark.parametrize("sessions", [1, 3])
def test_series_are_thinned(rows: int, sessions: int) -> None:
    sampled = [recording(1000.0 * number, {"cores_busy": [float(r % 2) for r in range(rows)]})
               for number in range(sessions)]  # fmt: skip
    found = summary(sampled, [])
    assert len(found.times) == len(found.series["cores_busy"]) <= MOST_POINTS
    assert found.times == sorted(found.times)
    if rows == 6001:
        drawn = [value for value in found.series["cores_busy"] if value is not None]
        assert sum(drawn) / len(drawn) == pytest.approx(0.5, abs=0.01)


def test_timed_part_of_a_window() -> None:
    assert timed(window(10.0, 2.0, lead_in_seconds=1.0)) == (11.0, 13.0)
    assert timed(window(10.0, 2.0, lead_in_seconds=1.0, ended=13.5)) == (11.0, 13.5)
    assert timed(window(10.0, 2.0, lead_in_seconds=1.0, ended=20.0)) == (11.0, 20.0), "a pause lies within"
    assert timed(window(10.0, 2.0, ended=20.0, whole_epochs=3)) == (18.0, 20.0)


def test_the_fastest_setting_is_found() -> None:
    quick = {"label": "channels_last=True", "setting": {"channels_last": True}}
    windows = [
        window(0.0, 2.0),
        window(0.0, 1.0, **quick),
        window(0.0, 0.1, label="replay=True", setting={"replay": True}),
        window(0.0, 0.1, label="loader_only:", mode="loader_only"),
        window(0.0, 0.1, label="autocast", status="failed"),
        window(0.0, 1.5, label="aa"),
    ]
    assert fastest(windows) == "channels_last=True"
    assert fastest(windows[:1]) is None
    assert fastest([]) is None


def test_nothing_sampled() -> None:
    assert summarise([], []) is None
    assert summarise([UsageRecording(1.0, [], {}, missing=("The monitor failed.",))], []) is None


def test_slow_sampling_is_said() -> None:
    slow = UsageRecording(0.0, [0.5, 1.0], {"cores_busy": [1.0, 1.0]})
    assert any("0.5 s" in word for word in summary([slow], []).missing)


def test_recorder_fills_rows_since_the_last_reading() -> None:
    recorder = Recorder(0.0)
    recorder.row(0.1, {"main.cpu_user": 1.0})
    recorder.row(0.2, {"main.cpu_user": 2.0})
    recorder.fill("cores_busy", 0.0, 3.0)
    recorder.row(0.3, {"main.cpu_user": 1.0, "workers.cpu_user": 4.0})
    recorder.fill("cores_busy", 0.2, 5.0)
    recorder.row(0.4, {})
    done = recorder.recording((), 0.0, ())
    assert list(done.columns["cores_busy"])[:3] == [3.0, 3.0, 5.0]
    assert list(done.columns["main.cpu_user"])[:3] == [1.0, 2.0, 1.0]
    assert done.values("workers.cpu_user", 0.0, 0.4) == [4.0]
    assert all(len(column) == 4 for column in done.columns.values())


def test_ten_minutes_take_a_few_megabytes() -> None:
    recorder = Recorder(0.0)
    names = [
        f"{role}.{number}" for role in ("main", "workers", "other", "doctor", "machine", "gpu0") for number in range(12)
    ]
    row = dict.fromkeys(names, 1.0)
    for number in range(6000):
        recorder.row(0.1 * (number + 1), row)
    assert sum(sys.getsizeof(column) for column in recorder.recording((), 0.0, ()).columns.values()) < 2_500_000
