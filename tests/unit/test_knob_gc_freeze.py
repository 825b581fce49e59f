"""`gc_freeze`: how long the collector runs is watched, it is frozen in a window, and as the user had it behind it."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.test_fixes import FOUND

from bottleneck_doctor.fixes import NotApplicable, Offer, catalogue
from bottleneck_doctor.runtime.knobs import GuestContext, Refused, _memory
from bottleneck_doctor.runtime.knobs.gc_freeze import GcFreeze
from bottleneck_doctor.runtime.loop.steps import Steps
from bottleneck_doctor.runtime.process.originals import now
from bottleneck_doctor.runtime.serve.bare_run import BareRun
from bottleneck_doctor.runtime.wire.messages import Grant

FIX = next(fix for fix in catalogue() if fix.id == "gc-freeze")
OWN = (651, 9, 8)
EVERYTHING = 2000
"""More objects than Python 3.12 itself puts beside the frozen ones, and fewer than there are."""


def anything_is_frozen() -> bool:
    return gc.get_freeze_count() > EVERYTHING


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before, on = gc.get_threshold(), gc.isenabled()
    gc.set_threshold(*OWN)
    yield
    assert not anything_is_frozen()
    gc.set_threshold(*before)
    (gc.enable if on else gc.disable)()


@pytest.fixture
def context() -> GuestContext:
    steps = Steps()
    GcFreeze.watch(steps)
    gc.callbacks.pop()
    return GuestContext(steps, "cpu")


def test_frozen_in_a_window_and_as_it_was_behind_it(context: GuestContext) -> None:
    knob = GcFreeze()
    knob.apply(50_000, context)
    assert anything_is_frozen()
    assert gc.get_threshold() == (50_000, *OWN[1:])
    assert gc.isenabled(), "garbage that refers to itself still goes"
    knob.before_step(context)
    assert knob.effect(50_000, context) is True
    knob.revert(context)
    assert not anything_is_frozen()
    assert gc.get_threshold() == OWN
    knob.revert(context)


def test_a_larger_threshold_of_the_users_stays(context: GuestContext) -> None:
    gc.set_threshold(10**6, *OWN[1:])
    knob = GcFreeze()
    knob.apply(50_000, context)
    assert gc.get_threshold()[0] == 10**6
    assert knob.effect(50_000, context) is True
    knob.revert(context)
    assert gc.get_threshold()[0] == 10**6


def test_what_the_script_sets_meanwhile_stays_its_own(context: GuestContext) -> None:
    knob = GcFreeze()
    knob.apply(50_000, context)
    gc.set_threshold(123, 4, 5)
    assert knob.effect(50_000, context) is False
    knob.revert(context)
    assert gc.get_threshold() == (123, 4, 5)


def test_a_window_that_fails_before_it_was_applied_leaves_everything(context: GuestContext) -> None:
    GcFreeze().revert(context)
    assert gc.get_threshold() == OWN


def test_no_window_where_the_script_deals_with_the_collector_itself(context: GuestContext) -> None:
    gc.disable()
    with pytest.raises(Refused, match="off"):
        GcFreeze().apply(50_000, context)
    gc.enable()
    gc.freeze()
    try:
        with pytest.raises(Refused, match="freeze"):
            GcFreeze().apply(50_000, context)
        assert gc.get_threshold() == OWN
    finally:
        gc.unfreeze()


def test_how_long_the_collector_runs_is_told() -> None:
    steps, callbacks = Steps(), list(gc.callbacks)
    GcFreeze.watch(steps)
    gc.collect()
    assert steps.noted["gc_freeze"].count == 0, "nothing trains yet"
    steps.started = now()
    for _ in range(3):
        gc.collect()
    told = GcFreeze.facts(steps, "cpu")
    assert gc.callbacks == callbacks
    assert told["collections"] >= 3
    assert 0.5 < told["share"] <= 1
    assert (told["on"], told["frozen"]) == (True, False)


def test_what_python_itself_froze_is_not_the_scripts_doing() -> None:
    steps = Steps()
    gc.freeze()  # As Python 3.12 does with some objects, before the script begins and later.
    try:
        GcFreeze.watch(steps)
        gc.callbacks.pop()
        steps.started = now()
        assert GcFreeze.facts(steps, "cpu")["frozen"] is False
        knob, context = GcFreeze(), GuestContext(steps, "cpu")
        knob.apply(50_000, context)
        assert knob.effect(50_000, context) is True
        knob.revert(context)
        assert knob.effect(50_000, context) is False
        gc.freeze()
        assert GcFreeze.facts(steps, "cpu")["frozen"] is True
    finally:
        gc.unfreeze()


def test_what_the_script_freezes_meanwhile_stays_frozen(context: GuestContext) -> None:
    knob = GcFreeze()
    knob.apply(50_000, context)
    gc.freeze()
    try:
        knob.revert(context)
        assert anything_is_frozen()
    finally:
        gc.unfreeze()


def test_a_window_fails_in_which_memory_ran_short(context: GuestContext, monkeypatch: pytest.MonkeyPatch) -> None:
    held = [1 << 30]
    monkeypatch.setattr(_memory, "host_free", lambda: 1 << 30)
    monkeypatch.setattr(_memory, "resident", lambda: held[0])
    monkeypatch.setattr(_memory, "LOOKS_EVERY", 0.0)
    run = BareRun(Grant(7, {"gc_freeze": 50_000}, "timed", 1, 3), context, lambda: None)
    run.apply()
    assert not run.step_ended()
    held[0] = 2 << 30
    assert not run.step_ended()
    assert not anything_is_frozen(), "nothing is kept any longer than that"
    assert gc.get_threshold() == OWN
    while not run.step_ended():
        pass
    done = run.done()
    assert (done.window, done.status, done.steps) == (7, "failed", 0)
    assert "grew by 1.0 GiB" in done.reason
    run.revert()


# -- what is offered ---------------------------------------------------------------------------------------------------

SEEN = {"share": 0.08, "collections": 12, "on": True, "frozen": False}


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"share": 0.019}, "1.9 % of the time"),
        ({"on": False}, "already on"),
        ({"frozen": True}, "already on"),
        ({"share": None}, "not measured"),
    ],
)
def test_it_is_offered_where_the_collector_takes_long(facts: dict[str, Any], reason: str) -> None:
    assert FIX.propose(replace(FOUND, facts={"gc_freeze": SEEN})) == Offer(({"gc_freeze": 50_000},))
    refused = FIX.propose(replace(FOUND, facts={"gc_freeze": {**SEEN, **facts}}))
    assert isinstance(refused, NotApplicable)
    assert reason in refused.reason
    assert isinstance(FIX.propose(FOUND), NotApplicable)
