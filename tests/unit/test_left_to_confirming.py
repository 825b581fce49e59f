"""An examination ends while there is time to measure the program with the change made, if that says more of a large
claim than another process would. On a machine that is made up."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.made_up_machine import Examined, Machine
from tests.unit.test_judge import BF16, WORKERS_1, WORKERS_2
from tests.unit.test_looks import evidence

from bottleneck_doctor.confirm import room
from bottleneck_doctor.examine import looks, time_wanted
from bottleneck_doctor.wording import ranking


def slow(**changes: Any) -> Machine:
    """A start of 9 s, steps of 2 s, and processes that differ, so that another one would be of use."""
    made: dict[str, Any] = {"step": 2.0, "start": 9.0, "speeds": {"autocast=bfloat16": 1.77}, "workers": 2}
    return Machine(**{**made, "load": 0.01, "noise": 0.03, "luck": 0.04, **changes})


def test_it_ends_while_the_changed_program_can_still_be_measured() -> None:
    takes = 440.0
    plain, leaves = Examined(slow()), Examined(slow(), confirming=lambda *_: takes)
    assert len(leaves.result.method.sessions) < len(plain.result.method.sessions)
    assert time_wanted.LONGEST - leaves.machine.now >= takes > time_wanted.LONGEST - plain.machine.now
    assert [text for text, _ in leaves.machine.noted if text.startswith("Known after ")]
    promise = ranking.promise(leaves.result)
    assert promise is not None
    assert promise.speedup is not None
    assert promise.speedup.low > 1.4


def test_what_is_left_is_what_a_confirmation_asks_for() -> None:
    """By the same costs, with a margin for starts and windows that take longer."""
    examined = Examined(slow())
    assert examined.outcome is not None
    costs, promise = examined.outcome.costs, ranking.promise(examined.result)
    assert costs is not None
    assert promise is not None
    assert promise.speedup is not None
    worth = promise.speedup.estimate
    setups = [session.setup_seconds for session in examined.result.method.sessions]
    wanted = room.seconds_wanted(examined.result, room.costs_of(costs, worth))
    assert wanted < room.seconds_kept(setups, costs, worth) < 1.5 * wanted


def test_it_goes_on_where_both_fit() -> None:
    """Steps of 0.1 s: nothing is gained by ending early."""
    quick: dict[str, Any] = {"step": 0.1, "start": 4.0}
    plain = Examined(slow(**quick))
    leaves = Examined(slow(**quick), confirming=room.seconds_kept)
    assert leaves.machine.now == plain.machine.now
    assert leaves.names == plain.names


def test_it_goes_on_where_the_changed_program_could_not_be_measured_anyway() -> None:
    plain = Examined(slow())
    leaves = Examined(slow(), confirming=lambda *_: time_wanted.LONGEST)
    assert leaves.names == plain.names


@pytest.mark.parametrize(("speed", "enough"), [(2.0, True), (1.2, False)])
def test_only_a_large_claim_ends_it(speed: float, enough: bool) -> None:
    """Whatever may beat it, but not before it is known well."""
    seen = evidence([(WORKERS_2, speed), (WORKERS_1, 1.0), (BF16, 1.0)])
    large = looks.Look(seen).large
    assert (large is not None and large[0] == WORKERS_2) is enough


def test_nothing_is_a_large_claim_after_one_process() -> None:
    assert looks.Look(evidence([(WORKERS_2, 2.0), (BF16, 1.0)], sessions=1)).large is None
