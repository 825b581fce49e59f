"""The programs of `programs/`, as people write them: found, measured against what sleeps predict, and unharmed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.process.driver import PATIENCE, Guest
from tests.process.known_programs import KNOWN, Known
from tests.quiet import LOOSE, lasting, times

from bottleneck_doctor.fixes import NotApplicable, catalogue
from bottleneck_doctor.runtime.wire import messages
from bottleneck_doctor.session.session import Command

pytestmark = pytest.mark.process

NEAR = 0.25
"""How far a speedup may lie from the one that sleeps predict, as a part of it: a busy core lengthens short ones."""
StartPlain = Callable[[tuple[str, ...], Path, Mapping[str, str]], "subprocess.Popen[str]"]


@pytest.fixture
def plain() -> Iterator[StartPlain]:
    """Starts a program without us. It sleeps for most of its life, so it may run beside the examined one."""
    started: list[subprocess.Popen[str]] = []

    def start(argv: tuple[str, ...], cwd: Path, environment: Mapping[str, str]) -> subprocess.Popen[str]:
        started.append(
            subprocess.Popen(
                argv,
                cwd=cwd,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )
        return started[-1]

    try:
        yield start
    finally:
        for each in started:
            each.kill()
            each.communicate()


def parameters() -> list[Any]:
    slow = pytest.mark.slow(together=True)
    return [pytest.param(known, id=known.name, marks=[slow] if known.slow else []) for known in KNOWN]


def pace(done: messages.WindowDone) -> float:
    """Seconds a step in a window that went well."""
    assert (done.status, done.reason) == ("ok", "")
    return done.seconds / done.steps


@pytest.mark.timed
@pytest.mark.parametrize("known", parameters())
def test_program_is_found_measured_and_unharmed(
    guests: list[Guest], plain: StartPlain, tmp_path: Path, known: Known
) -> None:
    if known.missing():
        pytest.skip(known.missing())
    guest = Guest(Command(known.argv(tmp_path / "ours"), tmp_path / "ours", dict(known.environment)))
    guests.append(guest)
    alone = plain(known.argv(tmp_path / "theirs"), tmp_path / "theirs", known.environment)

    found = guest.found()
    expected = {"rung": "optimizer step", "period": 1, "periodic": True, "has_loader": True, "workers_unsafe": ""}
    for name, value in {**expected, **known.found}.items():
        if name != "workers_unsafe" or not known.refused.get("workers"):
            assert getattr(found, name) == value, name
    assert found.samples_per_step == known.samples
    check_refusals(found, known)

    lead_in = 0 if known.epochs else 2
    written = guest.window({}, lead_in=lead_in, steps=known.steps, epochs=known.epochs)
    step = pace(written)
    assert written.steps % found.period == 0
    assert written.samples == written.steps * known.samples
    if not known.at_least:
        assert step in lasting(known.step({}), rel=NEAR, abs=0.003)
        if found.has_loader:
            assert written.wait_seconds / written.steps in lasting(known.wait(), rel=NEAR, abs=0.003)
    if known.right is not None:
        fixed = guest.window(known.right, lead_in=2 * lead_in, steps=known.steps, epochs=known.epochs)
        assert all(fixed.effect.values())
        if known.at_least:
            assert step / pace(fixed) > 1 + (known.at_least - 1) / LOOSE
        else:
            assert step / pace(fixed) in times(known.step({}) / known.step(known.right), rel=NEAR)
    if known.wrong is not None:
        missed = guest.window(known.wrong, lead_in=2 * lead_in, steps=known.steps, epochs=known.epochs)
        if known.without_effect:
            assert missed.status == "no_effect"
        elif known.slower:
            assert pace(missed) > step
        else:
            assert step / pace(missed) == pytest.approx(1.0, abs=0.15 * LOOSE)

    ended = guest.run_out()
    printed, _ = alone.communicate(timeout=PATIENCE)
    assert (ended.code, ended.tail) == (alone.returncode, printed)
    assert ended.code == known.code


def check_refusals(found: messages.Found, known: Known) -> None:
    """Fixes that can't be are not offered, for the reason that is known; those that are right are."""
    offers = {fix.id: fix.propose(found) for fix in catalogue()}
    for identifier, reason in known.refused.items():
        offer = offers[identifier]
        assert isinstance(offer, NotApplicable), (identifier, offer)
        assert reason in offer.reason
    if known.right is not None and "num_workers" in known.right:
        offered = "forked-workers" if "multiprocessing_context" in known.right else "workers"
        assert not isinstance(offers[offered], NotApplicable)
