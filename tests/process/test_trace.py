"""Steps under torch.profiler inside a living loop, and what is read from the trace."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.process.conftest import StartGuest
from tests.process.driver import LOOP, PRELUDE, Guest

from bottleneck_doctor.explain import details
from bottleneck_doctor.profiling.device import device_profile, read_trace
from bottleneck_doctor.runtime.wire import messages

pytestmark = pytest.mark.process

STEPS = 6
TRACED = STEPS - 1
"""The first step is traced by itself, to see how long reading its trace takes."""


def trace(script: Guest, file: Path, *, steps: int = STEPS, epochs: int = 0) -> messages.WindowDone:
    options: dict[str, Any] = {"chrome_trace": str(file)}
    script.session.grant(messages.Grant(1, {}, "trace", 0 if epochs else 2, steps, epochs, options))
    event = script.event()
    assert isinstance(event, messages.WindowDone), (event, script.session.tail())
    if event.status == "ok":
        details.check(event.detail, details.TraceDetail)
    return event


@pytest.mark.timed
def test_operators_of_a_few_steps(guest: StartGuest, tmp_path: Path) -> None:
    script = guest(LOOP.replace("Rows()", "Rows(4000, 0.0005)"))
    script.found()
    file = tmp_path / "trace.json.gz"
    done = trace(script, file)
    assert (done.status, done.reason) == ("ok", "")
    assert (done.detail["steps"], done.detail["chrome_trace"], done.detail["trouble"]) == (TRACED, str(file), "")
    profile = device_profile(done.detail, file, [str(file)])
    calls = {each.name: each.calls for each in profile.operators}
    assert calls["aten::addmm"] == TRACED
    assert calls["Optimizer.step#SGD.step"] == TRACED
    assert sum(each.share for each in profile.operators) == pytest.approx(1, abs=0.01)
    assert profile.operators == sorted(profile.operators, key=lambda each: -each.cpu_ms)
    assert not any(name.startswith("ProfilerStep") or "waiting" in name for name in calls)
    assert TRACED * 4 * 0.0005 <= profile.seconds < done.seconds
    # Loading is an operator of torch's too: its own time is what the user's dataset takes.
    loading = next(each for each in profile.operators if "DataLoader" in each.name)
    assert loading.cpu_ms >= TRACED * 4 * 0.5
    if not done.detail["device"]:
        assert (profile.utilization, profile.kernels, profile.idle_share, profile.idle_cause) == (None, [], None, "")


@pytest.mark.slow(together=True)
def test_a_trace_of_many_steps_stays_small(guest: StartGuest, tmp_path: Path) -> None:
    script = guest(LOOP)
    script.found()
    done = trace(script, tmp_path / "trace.json.gz", steps=100)
    assert done.steps == 100
    assert STEPS <= done.detail["steps"] <= 20


def test_the_trace_holds_steps_and_waits(guest: StartGuest, tmp_path: Path) -> None:
    script = guest(LOOP.replace("Rows()", "Rows(4000, 0.001)"))
    script.found()
    file = tmp_path / "trace.json.gz"
    done = trace(script, file)
    assert file.read_bytes()[:2] == b"\x1f\x8b"
    marks = read_trace(file)["user_annotation"]
    steps = [span for span in marks if span.name.startswith("ProfilerStep#")]
    waits = [span for span in marks if span.name == done.detail["waiting"]]
    assert [span.name for span in steps] == [f"ProfilerStep#{number}" for number in range(TRACED)]
    assert len(waits) == TRACED
    for step, wait in zip(steps, waits, strict=True):
        assert step.start <= wait.start
        assert wait.end <= step.end
        assert wait.duration >= 4000
    assert not any(earlier.end > later.start for earlier, later in pairwise(steps))


@pytest.mark.parametrize("epochs", [pytest.param(0, marks=pytest.mark.slow(together=True)), 1])
def test_evaluation_is_no_part_of_it(guest: StartGuest, tmp_path: Path, epochs: int) -> None:
    """Of several stretches the longest is kept, whole."""
    body = """
    evaluation = DataLoader(Rows(8), batch_size=4)
    loader = DataLoader(Rows(48), batch_size=4)
    for epoch in range(100000):
        for batch in loader:
            train_on(batch)
        with torch.no_grad():
            for rows, _ in evaluation:
                torch.fft.fft(rows)
    """
    script = guest(PRELUDE + "if True:" + body)
    script.found()
    done = trace(script, tmp_path / "trace.json.gz", steps=0 if epochs else 20, epochs=epochs)
    assert done.status == "ok", done.reason
    calls = {name: count for name, count, *_ in done.detail["operators"]}
    assert calls["Optimizer.step#SGD.step"] == done.detail["steps"]
    assert 10 <= done.detail["steps"] <= 12
    assert not any("fft" in name for name in calls)


@pytest.mark.slow(together=True)
def test_a_loop_without_loader(guest: StartGuest, tmp_path: Path) -> None:
    script = guest(PRELUDE + "while True:\n    train_on(torch.ones(1, 3, 4))\n")
    script.found()
    done = trace(script, tmp_path / "trace.json")
    assert done.status == "ok", done.reason
    assert done.detail["steps"] == TRACED
    steps = [span for span in read_trace(tmp_path / "trace.json")["user_annotation"] if "ProfilerStep" in span.name]
    assert len(steps) >= TRACED


@pytest.mark.slow(together=True)
def test_a_trace_that_cannot_be_written_costs_itself_only(guest: StartGuest, tmp_path: Path) -> None:
    script = guest(LOOP)
    script.found()
    done = trace(script, tmp_path / "nowhere" / "trace.json.gz")
    assert done.status == "ok"
    assert done.detail["operators"]
    assert done.detail["chrome_trace"] == ""
    assert done.detail["trouble"]


USERS = (
    LOOP.replace("for epoch", "PROFILER\nfor epoch")
    + "        note('profiling', torch._C._autograd._profiler_enabled())\n"
    + "        MORE\n"
)


@pytest.mark.slow(together=True)
@pytest.mark.parametrize(
    ("profiler", "more", "running"),
    [
        ("mine = torch.profiler.profile(); mine.start()", "", True),
        (
            "plan = torch.profiler.schedule(wait=10**6, warmup=1, active=1)\n"
            "mine = torch.profiler.profile(schedule=plan); mine.start()",
            "mine.step()",
            False,
        ),
    ],
)
def test_the_users_own_profiler_is_left_alone(
    guest: StartGuest, tmp_path: Path, profiler: str, more: str, running: bool
) -> None:
    script = guest(USERS.replace("PROFILER", profiler).replace("MORE", more))
    script.found()
    done = trace(script, tmp_path / "trace.json.gz")
    assert done.status == "failed"
    assert done.reason.startswith("the script")
    assert script.window({}).status == "ok"
    assert set(script.notes("profiling")) == {running}


def test_the_profiler_is_off_afterwards(guest: StartGuest, tmp_path: Path) -> None:
    script = guest(USERS.replace("PROFILER", "").replace("MORE", ""))
    script.found()
    trace(script, tmp_path / "trace.json.gz")
    before = len(script.notes("profiling"))
    assert script.window({}, steps=8).status == "ok"
    assert not any(script.notes("profiling")[before + 2 :])
    assert any(script.notes("profiling")[:before])


def test_a_script_that_ends_within_a_trace_ends_as_without_us(guest: StartGuest, tmp_path: Path) -> None:
    """torch kills a process that ends while its profiler runs."""
    script = guest(PRELUDE + "for step in range(60):\n    train_on([torch.ones(4, 4)])\nprint('trained')\n")
    script.found()
    script.session.grant(messages.Grant(1, {}, "trace", 2, 1000, 0, {"chrome_trace": str(tmp_path / "trace.json")}))
    assert script.exited().code == 0
    assert "trained" in script.session.tail()


def test_ranges_around_a_step_end_with_its_trace_and_are_watched_in_it_alone(guest: StartGuest, tmp_path: Path) -> None:
    """An optimizer has one around its step, in which a step of such a loop ends."""
    body = (
        "from torch.autograd.profiler import record_function\n"
        "while True:\n"
        "    train_on([torch.ones(4, 4)])\n"
        "    note('entering', record_function.__enter__.__code__.co_filename)\n"
    )
    script = guest(PRELUDE + body)
    script.found()
    file = tmp_path / "trace.json"
    trace(script, file)
    before = len(script.notes("entering"))
    assert script.window({}, steps=8).status == "ok"
    watched = ["bottleneck_doctor" in each for each in script.notes("entering")]
    assert any(watched[:before])
    assert not any(watched[before + 2 :])
    ranges = [each for each in json.loads(file.read_text())["traceEvents"] if "SGD.step" in each.get("name", "")]
    assert len(ranges) >= TRACED - 1
    assert all(each["dur"] < 1e6 for each in ranges)


EPISODES = (
    PRELUDE
    + """
rows = torch.ones(4, 4)
while True:
    for _ in range(3000):  # an episode
        model(rows)
    train_on([rows])
"""
)


@pytest.mark.slow(together=True)
def test_of_steps_with_many_operators_one_is_traced(guest: StartGuest, tmp_path: Path) -> None:
    """Reading the traces of all of them would take longer than a hanging training is waited for."""
    script = guest(EPISODES)
    script.found()
    done = trace(script, tmp_path / "trace.json")
    assert (done.status, done.steps, done.detail["steps"]) == ("ok", STEPS, 1)
    calls = {name: count for name, count, *_ in done.detail["operators"]}
    assert calls["aten::addmm"] == 3001
