"""A process that is told which loop an earlier one had finds it in fewer steps, and finds nothing else in its place."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.process.driver import LOOP, PRELUDE, Guest, write

from bottleneck_doctor.knobs import cached_samples, gc_freeze
from bottleneck_doctor.runtime.wire.expected import BARE_STEPS, Expected
from bottleneck_doctor.runtime.wire.messages import Found
from bottleneck_doctor.session.session import Command

TWO_LOADERS = PRELUDE + (
    "first = DataLoader(Rows(), batch_size=4)\n"
    "second = DataLoader(Rows(), batch_size=4)\n"
    "for number, batch in enumerate(first):\n"
    "    train_on(batch)\n"
    "    if number == 4:\n"
    "        break\n"
    "for epoch in range(100000):\n"
    "    for batch in second:\n"
    "        train_on(batch)\n"
)
"""A few steps on another loader come first, as where a learning rate is looked for."""

ACCUMULATED = PRELUDE + (
    "loader = DataLoader(Rows(), batch_size=1)\n"
    "for epoch in range(100000):\n"
    "    for number, batch in enumerate(loader):\n"
    "        model(batch[0]).mean().backward()\n"
    "        if number % 4 == 3:\n"
    "            optimizer.step()\n"
)
"""An optimizer step after every fourth batch."""

BARE = PRELUDE + (
    "rows = torch.ones(4, 4)\n"
    "with torch.no_grad():\n"
    "    for _ in range(20):\n"
    "        model(rows)\n"
    "        time.sleep(0.01)\n"
    "while True:\n"
    "    train_on([rows])\n"
    "    time.sleep(0.01)\n"
)
"""What is computed before the first step might come again, as rollouts do, so the first process waits for that."""

ON_ONE_BATCH = PRELUDE + (
    "loader = DataLoader(Rows(), batch_size=4)\n"
    "rows = next(iter(loader))\n"
    "while True:\n"
    "    train_on(rows)\n"
    "    time.sleep(0.05)\n"
)
"""All of its data come from a loader that is asked once."""


def found_in(folder: Path, text: str, expected: Expected | None) -> Found:
    script = write(folder, text)
    guest = Guest(Command((sys.executable, str(script)), folder), expected=expected)
    try:
        return guest.found()
    finally:
        guest.close()


def same(found: Found) -> Found:
    """All of it but the moment and the place at which it was found, and what samples and collections took."""
    timed = (cached_samples.NAME, gc_freeze.NAME)
    facts = {name: fact for name, fact in found.facts.items() if name not in timed}
    found = replace(found, position=0, optimizer_steps=0, facts=facts)
    return replace(found, step_seconds=[], wait_seconds=[], setup_seconds=0.0, first_batch=0.0)


def expected_of(found: Found) -> Expected:
    known = Expected.of(found)
    assert known is not None
    return known


def test_a_known_loop_is_found_in_fewer_steps(tmp_path: Path) -> None:
    first = found_in(tmp_path, LOOP, None)
    again = found_in(tmp_path, LOOP, expected_of(first))
    assert again.position == 3 < first.position
    assert same(again) == same(first)
    assert Expected.of(again) == Expected.of(first), "a third process is told the same"


@pytest.mark.slow(together=True)
def test_a_loop_that_accumulates_gradients_is_seen_for_two_whole_periods(tmp_path: Path) -> None:
    first = found_in(tmp_path, ACCUMULATED, None)
    again = found_in(tmp_path, ACCUMULATED, expected_of(first))
    assert (first.period, again.period) == (4, 4)
    assert again.position == 9 < first.position


def test_a_loop_that_does_not_come_first_is_not_expected(tmp_path: Path) -> None:
    found = found_in(tmp_path, TWO_LOADERS, None)
    assert not found.seen_alone
    assert Expected.of(found) is None


@pytest.mark.slow(together=True)
def test_another_loader_than_the_expected_one_is_looked_at_as_any(tmp_path: Path) -> None:
    first = found_in(tmp_path, LOOP, None)
    known = expected_of(first)
    other = replace(known, loader=[*known.loader[:-1], 5])
    assert found_in(tmp_path, LOOP, other).position == first.position


@pytest.mark.slow(together=True)
def test_a_loop_that_repeats_otherwise_than_expected_is_found_as_it_is(tmp_path: Path) -> None:
    known = expected_of(found_in(tmp_path, ACCUMULATED, None))
    wrong = replace(known, period=3)
    assert found_in(tmp_path, ACCUMULATED, wrong).period == 4


@pytest.mark.slow(together=True)
def test_a_loop_without_a_loader_is_not_waited_for_again(tmp_path: Path) -> None:
    first = found_in(tmp_path, BARE, None)
    assert (first.has_loader, first.period, first.periodic) == (False, 1, True)
    again = found_in(tmp_path, BARE, expected_of(first))
    assert again.position == BARE_STEPS < first.position
    assert same(again) == same(first)
    assert found_in(tmp_path, LOOP, expected_of(first)).has_loader, "another program is found as it is"


@pytest.mark.slow(together=True)
def test_what_trains_on_one_batch_is_found_and_known_again(tmp_path: Path) -> None:
    first = found_in(tmp_path, ON_ONE_BATCH, None)
    assert (first.has_loader, first.rung, first.period, first.periodic) == (False, "optimizer step", 1, True)
    again = found_in(tmp_path, ON_ONE_BATCH, expected_of(first))
    assert again.position == BARE_STEPS < first.position
