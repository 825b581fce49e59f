"""How many steps a process has left, and windows that fit into them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.test_selection import FOUND

from bottleneck_doctor.measure import steps_left
from bottleneck_doctor.runtime.wire.messages import Ended


@pytest.mark.parametrize(
    ("says", "left"),
    [
        ({"run_epochs": 10, "epoch_batches": 5, "position": 8}, 42),
        ({"run_epochs": 10, "epoch_batches": 5, "epoch_batches_seen": 4, "position": 8}, 32),
        ({"run_epochs": 10, "epoch_batches": None}, None),
        ({"run_steps": 30, "run_epochs": 10, "epoch_batches": 5, "position": 8}, 22),
        ({"run_steps": 30, "position": 30}, None),
        ({"epoch_batches": 5}, None),
    ],
)
def test_what_a_program_says_of_its_end_is_counted_in_steps(says: dict[str, Any], left: int | None) -> None:
    quiet = {"run_epochs": None, "run_steps": None, "epoch_batches_seen": None, "position": 0}
    assert steps_left.told(replace(FOUND, **{**quiet, **says})) == left


def test_what_a_process_made_until_its_end_is_counted_from_its_loop() -> None:
    ended = Ended(batches=50, optimizer_steps=25, backwards=60, served=True)
    assert steps_left.seen(replace(FOUND, position=8, has_loader=True), ended) == 42
    assert steps_left.seen(replace(FOUND, position=8, has_loader=False), ended) == 52


def test_the_least_of_what_is_known() -> None:
    assert steps_left.least(None, 7, 3) == 3
    assert steps_left.least(None) is None


@pytest.mark.parametrize(
    ("left", "window", "most"), [(42, 15, 8), (90, 15, None), (89, 15, 20), (5, 15, 2), (None, 15, None)]
)
def test_windows_are_short_where_usual_ones_would_not_all_fit(left: int | None, window: int, most: int | None) -> None:
    assert steps_left.most_steps(left, window, steps_left.PAIRED) == most


def test_a_window_is_left_for_a_look_at_memory() -> None:
    assert steps_left.rounds(42, 7, 5) == 6
    assert steps_left.rounds(42, 42, 5) == 0
    assert steps_left.rounds(None, 7, 5) is None
