"""Drawings over time: a gap stays a gap, lanes are in order, and a few hundred points stand for thousands."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from bottleneck_doctor.documents.report import Event, Span, Timeline
from bottleneck_doctor.render import machine
from bottleneck_doctor.render.timeline import timeline


def runs(values: list[float | None], times: list[float]) -> list[list[tuple[float, float]]]:
    panel = machine.Panel("Cores", [machine.Line("main", values)], str, 1.0)
    drawing = machine.chart([panel], times, [], narrow=False)
    lines = list(ElementTree.fromstring(drawing).iter("polyline"))
    return [
        [(float(x), float(y)) for x, y in (pair.split(",") for pair in line.attrib["points"].split())] for line in lines
    ]


def test_a_value_that_is_not_there_is_a_gap() -> None:
    assert [len(run) for run in runs([1.0, 2.0, None, 3.0, 3.0, 3.0], [0, 1, 2, 3, 4, 5])] == [2, 3]


def test_a_time_in_which_nothing_was_sampled_is_a_gap() -> None:
    assert [len(run) for run in runs([1.0, 2.0, 2.0, 3.0, 3.0], [0, 1, 2, 60, 61])] == [3, 2]


def test_a_single_value_between_gaps_is_seen() -> None:
    (run,) = runs([None, 2.0, None], [0, 1, 2])
    assert run[0] == run[1]


def test_thousands_of_samples_become_means_that_keep_a_gap() -> None:
    values: list[float | None] = [1.0 + at % 2 for at in range(9_000)]
    values[4_000:5_000] = [None] * 1_000
    before, after = runs(values, [at / 10 for at in range(9_000)])
    assert len(before) + len(after) <= machine.MOST_POINTS
    heights = {y for _, y in before[1:-1]}
    assert max(heights) - min(heights) < 3, "the mean of 1 and 2, at every point"


def test_not_finite_values_are_gaps_and_not_finite_times_draw_nothing() -> None:
    assert [len(run) for run in runs([1.0, 2.0, float("nan"), 3.0, 4.0], [0, 1, 2, 3, 4])] == [2, 2]
    assert runs([1.0], [0.0]) != []
    panel = machine.Panel("Cores", [machine.Line("main", [1.0])], str, 1.0)
    assert machine.chart([panel], [float("nan")], [], narrow=True) == ""


def test_windows_as_written_are_shaded_apart_from_the_others() -> None:
    panel = machine.Panel("Cores", [machine.Line("main", [1.0] * 10)], str, 1.0)
    spans = [
        Span(start=0, end=4, label="baseline", session=1),
        Span(start=5, end=6, label="workers=4", session=1),
        Span(start=7, end=7, label="nothing", session=2),
        Span(start=8, end=9, label="sampled: baseline", session=2),
    ]
    drawing = machine.chart([panel], list(range(10)), spans, narrow=False)
    written, other = (re.findall(rf'd="([^"]+)" class="window {kind}"', drawing)[0] for kind in ("written", "other"))
    widths = [float(re.findall(r"h([\d.]+)", path)[0]) for path in (written, other)]
    assert widths[0] == pytest.approx(4 * widths[1], rel=0.01)
    assert other.count("M") == 1, "a window without length is not drawn"


def test_a_legend_takes_more_rows_where_it_is_narrow() -> None:
    lines = [machine.Line(f"a rather long name {at}", [1.0, 1.0]) for at in range(6)]
    panel = machine.Panel("GPU busy", lines, str, 1.0)
    heights = [
        float(ElementTree.fromstring(machine.chart([panel], [0, 1], [], narrow=narrow)).attrib["viewBox"].split()[3])
        for narrow in (False, True)
    ]
    assert heights[1] > heights[0]


def event(lane: str, start: float, seconds: float, kind: str = "fetch", batch: int | None = 1) -> Event:
    return Event(lane=lane, kind=kind, start=start, seconds=seconds, batch=batch)


def test_lanes_are_main_and_then_workers_by_number() -> None:
    events = [event(lane, 0, 1) for lane in ("worker 10", "worker 2", "main", "worker 0")]
    drawing = ElementTree.fromstring(timeline(Timeline(setting={}, seconds=1.0, events=events), "As written"))
    names = [text.text for text in drawing.iter("text") if (text.text or "").startswith(("main", "worker"))]
    assert names == ["main", "worker 0", "worker 2", "worker 10"]


def test_a_stretch_is_as_long_as_its_time_and_says_what_it_is() -> None:
    events = [event("main", 0.0, 0.3, "data_wait"), event("main", 0.3, 0.1, "forward"), event("main", 0.4, 0.6, "odd")]
    drawing = timeline(Timeline(setting={}, seconds=1.0, events=events), "As written")
    widths = re.findall(r'width="([\d.]+)" height="28" class="stretch phase-([a-z-]+)"', drawing)
    by_kind = {kind: float(width) for width, kind in widths}
    assert by_kind["data-wait"] == pytest.approx(3 * by_kind["forward"], rel=0.02)
    assert "Waiting for data, batch 1: 300 ms" in drawing


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), float("inf")])
def test_a_timeline_without_length_is_not_drawn(seconds: float) -> None:
    assert timeline(Timeline(setting={}, seconds=seconds, events=[event("main", 0, 1)]), "x") == ""
    assert timeline(Timeline(setting={}, seconds=1.0, events=[event("main", 0, seconds)]), "x") == ""
