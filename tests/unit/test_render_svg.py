"""Drawings: places and lengths that a reader compares by eye."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from bottleneck_doctor.documents.report import Speedup
from bottleneck_doctor.render import bars, curves


def speedup(estimate: float, low: float, high: float) -> Speedup:
    return Speedup(estimate=estimate, low=low, high=high, pairs=8, sessions=3)


def shapes(drawing: str, tag: str, class_: str) -> list[dict[str, str]]:
    root = ElementTree.fromstring(drawing)
    return [element.attrib for element in root.iter(tag) if element.get("class") == class_]


def point(workers: int, speed: float, label: str = "") -> curves.CurvePoint:
    return curves.CurvePoint(workers, speed, speed * 0.9, speed * 1.1, is_baseline=False, label=label)


def test_bars_of_one_scale_can_be_compared() -> None:
    two, four = speedup(2, 1.8, 2.2), speedup(4, 3.6, 4.4)
    scale = bars.bar_scale([two, four])
    gains = [float(shapes(bars.speedup_bar(value, scale, "fix"), "rect", "best")[0]["width"]) for value in (two, four)]
    assert gains[1] / gains[0] == pytest.approx(3, rel=0.01)
    assert scale > 4.4, "the whisker is inside"


def test_a_slowdown_is_shorter_than_the_baseline() -> None:
    drawing = bars.speedup_bar(speedup(0.5, 0.4, 0.6), 1.25, "fix")
    assert shapes(drawing, "rect", "best") == []
    assert float(shapes(drawing, "rect", "now")[0]["width"]) == pytest.approx(400)


def test_speed_bar_holds_now_best_and_ceiling() -> None:
    drawing = bars.speed_bar(10, speedup(2, 1.9, 2.1), 4, "samples a second")
    assert [float(shapes(drawing, "rect", name)[0]["width"]) for name in ("now", "best", "ceiling")] == [250, 500, 1000]
    assert "now 10.0 samples a second, best measured 20.0, ceiling of faster loading 40.0" in drawing


def test_interval_marks_stay_inside_their_scale() -> None:
    drawing = bars.interval_mark(speedup(1.0, 0.2, 9.0), reach=1.0, equivalence=0.02, name="fix")
    places = [float(value) for value in re.findall(r'x[12]="([^"]+)"', drawing)]
    assert min(places) >= 0
    assert max(places) <= 1000


def test_few_workers_are_spaced_by_number_and_many_by_doubling() -> None:
    def places(numbers: list[int]) -> list[float]:
        drawing = curves.worker_curve(
            [point(number, 10) for number in numbers], [], 4, narrow=False, unit="samples a second"
        )
        return sorted(float(circle["cx"]) for circle in shapes(drawing, "circle", "point"))

    zero, one, two, four = places([0, 1, 2, 4])
    assert two - one == pytest.approx(one - zero, abs=0.2)
    assert four - two == pytest.approx(2 * (one - zero), abs=0.2)
    *_, sixteen, thirty_two, sixty_four = places([0, 1, 2, 4, 8, 16, 32, 64])
    assert sixty_four - thirty_two == pytest.approx(thirty_two - sixteen, rel=0.1)


def test_labels_that_would_touch_are_left_to_the_sentence() -> None:
    points = [point(number, 10) for number in (0, 2, 4, 8, 16)]
    points += [point(30, 99, "enough"), point(32, 100, "best")]
    labels = ElementTree.fromstring(
        curves.worker_curve(points, [], 64, narrow=True, unit="samples a second")
    ).itertext()
    texts = list(labels)
    assert "best" in texts
    assert "enough" not in texts


@pytest.mark.parametrize("points", [[point(4, 10)], [point(4, 0)], [point(0, 1), point(0, 2)]])
def test_a_curve_of_hardly_any_points_is_drawn(points: list[curves.CurvePoint]) -> None:
    drawing = curves.worker_curve(
        points, [curves.Level("if every batch were ready at once", 5)], 4, narrow=False, unit="samples a second"
    )
    assert "nan" not in drawing
    ElementTree.fromstring(drawing)
