"""`cleanup_calls`: what the user's lines call in steps is seen, left out in a window, and called again behind it."""

from __future__ import annotations

import gc
import sys
import threading
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import torch
from tests.unit.test_fixes import FOUND

from bottleneck_doctor.fixes import NotApplicable, Offer, catalogue
from bottleneck_doctor.knobs import cleanup_calls as declared
from bottleneck_doctor.runtime.knobs import GuestContext, Refused, _memory, cleanup_calls
from bottleneck_doctor.runtime.knobs.cleanup_calls import CleanupCalls
from bottleneck_doctor.runtime.loop.steps import Steps

FIX = next(fix for fix in catalogue() if fix.id == "cleanup-calls")


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What really was called, of functions that stand for the real ones."""
    made: list[str] = []

    def stand_in(name: str, answer: Any) -> Callable[..., Any]:
        def function(*args: Any) -> Any:
            made.append(name)
            return answer

        return function

    collect = stand_in("collect", 7)
    monkeypatch.setattr(gc, "collect", collect)
    monkeypatch.setattr(cleanup_calls, "_collect", collect)
    monkeypatch.setattr(torch.cuda, "empty_cache", stand_in("empty_cache", None))
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    for module, name in ((torch._C, "_cuda_emptyCache"), (torch.mps, "empty_cache"), (torch.xpu, "empty_cache")):
        if hasattr(module, name):
            monkeypatch.setattr(module, name, getattr(module, name))
    accelerator = sys.modules.get("torch.accelerator")
    if accelerator is not None and hasattr(accelerator, "empty_cache"):
        monkeypatch.setattr(accelerator, "empty_cache", accelerator.empty_cache)
    return made


@pytest.fixture
def steps(counted: list[str]) -> Steps:
    """Of a loop that has made four steps, with the knob watching since before the first."""
    steps = Steps()
    CleanupCalls.watch(steps)
    steps.optimizer_steps = 4
    return steps


def in_the_loop() -> int:
    found = gc.collect()
    torch.cuda.empty_cache()
    return found


LINE = in_the_loop.__code__.co_firstlineno


def test_the_lines_are_told(steps: Steps, counted: list[str]) -> None:
    for _ in range(4):
        in_the_loop()
    assert CleanupCalls.facts(steps, "cpu") == {
        "lines": [["gc.collect", __file__, LINE + 1, 4], ["torch.cuda.empty_cache", __file__, LINE + 2, 4]],
        "steps": 4,
    }
    assert counted == ["collect", "empty_cache"] * 4
    in_the_loop()
    assert steps.noted["cleanup_calls"].counts[__file__, LINE + 1] == 4, "nobody counts once the loop is found"


def test_what_is_no_part_of_a_step_is_not_told(steps: Steps, monkeypatch: pytest.MonkeyPatch) -> None:
    with torch.no_grad():
        in_the_loop()
    steps.optimizer_steps = 0
    in_the_loop()
    steps.optimizer_steps = 4
    thread = threading.Thread(target=in_the_loop)
    thread.start()
    thread.join()
    assert CleanupCalls.facts(steps, "cpu") is None


def test_between_epochs_is_no_step(steps: Steps) -> None:
    class Record:
        in_epoch = 0

    steps.records[1] = record = Record()  # type: ignore[assignment]
    in_the_loop()
    assert CleanupCalls.facts(steps, "cpu") is None
    steps.noted.clear()
    record.in_epoch = 3
    in_the_loop()
    assert CleanupCalls.facts(steps, "cpu") is not None


def test_an_empty_cache_of_a_device_that_is_not_used_costs_nothing(
    steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    in_the_loop()
    told = CleanupCalls.facts(steps, "cpu")
    assert [line[0] for line in told["lines"]] == ["gc.collect"]


def test_left_out_in_a_window_and_called_again_behind_it(steps: Steps, counted: list[str]) -> None:
    in_the_loop()
    CleanupCalls.facts(steps, "cpu")
    knob, context = CleanupCalls(), GuestContext(steps, "cpu")
    knob.apply(False, context)
    counted.clear()
    assert in_the_loop() == 0, "as `gc.collect` answers that found nothing"
    knob.before_step(context)
    assert counted == []
    gc.collect()  # From a line that was not seen in a step.
    assert counted == ["collect"]
    assert knob.effect(False, context) is True
    knob.revert(context)
    assert in_the_loop() == 7
    assert counted == ["collect", "collect", "empty_cache"]


def test_torchs_own_calls_go_through(steps: Steps, counted: list[str]) -> None:
    in_the_loop()
    CleanupCalls.facts(steps, "cpu")
    knob, context = CleanupCalls(), GuestContext(steps, "cpu")
    knob.apply(False, context)
    counted.clear()
    library = compile("def clean():\n    gc.collect()\n", "/opt/lib/site-packages/torch/library.py", "exec")
    scope: dict[str, Any] = {"gc": gc}
    exec(library, scope)
    scope["clean"]()
    assert counted == ["collect"]
    knob.revert(context)


def test_calls_that_do_not_come_did_not_take_effect(steps: Steps) -> None:
    for _ in range(4):
        in_the_loop()
    CleanupCalls.facts(steps, "cpu")
    knob, context = CleanupCalls(), GuestContext(steps, "cpu")
    knob.apply(False, context)
    knob.before_step(context)
    assert knob.effect(False, context) is None, "too early to tell"
    for _ in range(6):
        knob.before_step(context)
    assert knob.effect(False, context) is False
    knob.revert(context)


def test_nothing_seen_is_nothing_to_leave_out(steps: Steps) -> None:
    with pytest.raises(Refused):
        CleanupCalls().apply(False, GuestContext(steps, "cpu"))


def test_it_gives_up_where_memory_runs_short(steps: Steps, counted: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    in_the_loop()
    CleanupCalls.facts(steps, "cpu")
    monkeypatch.setattr(_memory, "host_free", lambda: 4 << 30)
    monkeypatch.setattr(_memory, "LOOKS_EVERY", 0.0)
    held = [1 << 30]
    monkeypatch.setattr(_memory, "resident", lambda: held[0])
    knob, context = CleanupCalls(), GuestContext(steps, "cpu")
    knob.apply(False, context)
    knob.before_step(context)
    assert knob.gave_up == ""
    held[0] = 4 << 30
    counted.clear()
    knob.before_step(context)
    assert knob.gave_up == (
        "the memory of the process grew by 3.0 GiB, of 4.0 GiB that were free, so the window was given up"
    )
    assert counted[0] == "collect", "what was kept goes back at once"
    knob.before_step(context)
    assert knob.gave_up
    assert in_the_loop() == 7
    knob.revert(context)


def test_a_name_taken_before_torch_was_there(counted: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    script = ModuleType("my_training")
    script.__file__ = "/home/me/my_training.py"
    script.sweep = gc.collect  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "my_training", script)
    steps = Steps()
    CleanupCalls.watch(steps)
    assert script.sweep is gc.collect
    assert hasattr(gc.collect, "_doctor_asks")


def test_what_is_compiled_meets_what_it_would_meet_without_us(steps: Steps, counted: list[str]) -> None:
    def step(x: torch.Tensor) -> torch.Tensor:
        y = x.sin()
        gc.collect()
        return y.cos()

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        torch.compile(step, backend="eager")(torch.ones(2))
    assert not [each for each in said if "_getframe" in str(each.message)]
    assert counted == ["collect"]


# -- the machine -------------------------------------------------------------------------------------------------------


def test_memory_is_read_here() -> None:
    if not sys.platform.startswith("linux"):
        pytest.skip("read from /proc")
    held, free = _memory.resident(), _memory.host_free()
    assert held is not None
    assert free is not None
    assert held > 10 << 20
    assert free > 1 << 20
    assert _memory.MemoryLimit("cpu").short() == ""


def test_a_control_group_is_a_limit(tmp_path: Any) -> None:
    group = tmp_path / "a" / "b"
    group.mkdir(parents=True)
    (tmp_path / "a" / "memory.max").write_text("1000\n")
    (tmp_path / "a" / "memory.current").write_text("900\n")
    (tmp_path / "a" / "memory.stat").write_text("anon 300\ninactive_file 400\nactive_file 100\n")
    (group / "memory.max").write_text("max\n")
    (group / "memory.current").write_text("800\n")
    assert _memory._left(str(tmp_path), "/a/b", "memory.max", "memory.current") == 600
    assert _memory._left(str(tmp_path), "/elsewhere", "memory.max", "memory.current") is None


# -- what is offered ---------------------------------------------------------------------------------------------------


def test_it_is_offered_where_lines_were_seen() -> None:
    from dataclasses import replace

    lines = [["torch.cuda.empty_cache", "/home/me/train.py", 9, 2], ["gc.collect", "/home/me/train.py", 8, 12]]
    found = replace(FOUND, facts={"cleanup_calls": {"lines": lines, "steps": 12}})
    assert FIX.propose(found) == Offer(({"cleanup_calls": False},))
    assert [(name, site.line) for name, site in declared.calls(found)] == [
        ("gc.collect", 8),
        ("torch.cuda.empty_cache", 9),
    ]
    for facts in ({}, {"cleanup_calls": None}, {"cleanup_calls": {"lines": [["gc.collect"]]}}):
        proposal = FIX.propose(replace(FOUND, facts=facts))
        assert isinstance(proposal, NotApplicable)
        assert "gc.collect()" in proposal.reason
