"""How much of a training's time the kernel works for it, by its windows, and what is left out because of that."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.test_judge import BF16, FOUND, Experiment, timed
from tests.unit.test_kept_memory import with_pages

from bottleneck_doctor.documents.labels import BASELINE
from bottleneck_doctor.documents.report import Surroundings, Window
from bottleneck_doctor.examine.selection import Selection
from bottleneck_doctor.measure import kernel_time
from bottleneck_doctor.measure.measurements import Measurements


def windows(written: Surroundings | None) -> list[Window]:
    busy = Surroundings(own_cpu=2.0, kernel_cpu=1.9)
    return with_pages(Experiment(timed([(BF16, 2.0)])).windows, written=written, under=busy)


def test_it_is_told_by_windows_as_written() -> None:
    told = kernel_time.of(windows(Surroundings(own_cpu=2.0, kernel_cpu=0.7)))
    assert told is not None
    assert told.bound == pytest.approx(0.7), "as if one thread at a time waited for the kernel"
    assert told.share == pytest.approx(0.35), "as if all threads did"


def test_more_cores_than_one_save_no_more_than_all_the_time() -> None:
    told = kernel_time.of(windows(Surroundings(own_cpu=16.0, kernel_cpu=4.0)))
    assert told == kernel_time.KernelTime(bound=1.0, share=0.25)


@pytest.mark.parametrize("written", [None, Surroundings(own_cpu=2.0), Surroundings(kernel_cpu=0.3)])
def test_where_the_system_tells_nothing_nothing_is_known(written: Surroundings | None) -> None:
    assert kernel_time.of(windows(written)) is None


def test_windows_that_failed_tell_nothing() -> None:
    taken = windows(Surroundings(own_cpu=2.0, kernel_cpu=0.7))
    assert kernel_time.of([replace(each, status="failed") for each in taken]) is None


def selection(kernel: float | None, *, measured: bool = False) -> Selection:
    """One whose first windows saw the kernel work on so many of two cores."""
    measurements = Measurements(replace(FOUND, device="cpu", facts={"kept_memory": {"obstacle": ""}}))
    around = None if kernel is None else Surroundings(own_cpu=2.0, kernel_cpu=kernel)
    taken = [each for each in windows(around) if each.label == BASELINE]
    if measured:
        taken += [replace(each, label="kept_memory=True", setting={"kept_memory": True}) for each in taken]
    measurements.windows += taken
    made = Selection(measurements, frozenset({"allocator"}), frozenset())
    made.heed_explained(None, None)
    return made


def test_keeping_memory_is_left_out_where_the_kernel_takes_too_little() -> None:
    (candidate,) = (each for each in selection(0.01).candidates if each.fix.id == "allocator")
    assert candidate.settings == []
    assert candidate.refusal == "too little to gain: the kernel takes only 1 % of the time"


@pytest.mark.parametrize(("kernel", "share"), [(0.7, 0.35), (None, None)])
def test_it_is_tried_elsewhere_and_its_share_of_the_time_is_known(kernel: float | None, share: float | None) -> None:
    (candidate,) = (each for each in selection(kernel).candidates if each.fix.id == "allocator")
    assert candidate.settings == [{"kept_memory": True}]
    assert candidate.share == (None if share is None else pytest.approx(share))


def test_what_was_measured_stays() -> None:
    (candidate,) = (each for each in selection(0.01, measured=True).candidates if each.fix.id == "allocator")
    assert candidate.settings
