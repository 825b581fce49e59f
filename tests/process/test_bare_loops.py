"""Loops of which little is seen: no loader, no optimizer, or neither; and what only looks like one."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.process.conftest import StartGuest
from tests.process.driver import PRELUDE, Guest, wait_until
from tests.process.known_programs import PROGRAMS
from tests.quiet import lasting

from bottleneck_doctor.measure import phases
from bottleneck_doctor.measure.schedule import typical_step
from bottleneck_doctor.runtime.wire import messages
from bottleneck_doctor.runtime.wire.expected import Expected
from bottleneck_doctor.runtime.wire.seen import Counts

pytestmark = pytest.mark.process

MODULE = (
    PRELUDE
    + """
from torch.utils.checkpoint import checkpoint



class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 1)

    def forward(self, rows):
        return checkpoint(self.inner, rows, use_reentrant=True)


model = Model()
rows = torch.ones(8, 4, requires_grad=True)
while True:
    time.sleep(0.02)
    loss = model(rows).mean()  # called
    loss.backward()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter -= 0.001 * parameter.grad
            parameter.grad = None
    note("steps", 1)
    time.sleep(0.02)
"""
).replace("optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)\n", "")


def seconds_between(script: Guest) -> None:
    """A step that sleeps for 40 ms, as timed and as phases."""
    done = script.window(steps=10)
    assert (done.status, done.steps, done.samples) == ("ok", 10, 10)
    assert done.seconds / done.steps in lasting(0.04, rel=0.3, abs=0.004)
    told = script.window(mode="phases", steps=10)
    assert told.status == "ok"
    phases = told.detail["phases"]
    assert sum(phases.values()) == pytest.approx(told.detail["seconds"])
    assert phases["backward"] > 0
    assert phases["between"] > 0.9 * 0.4
    assert (phases["optimizer"], phases["data_wait"], phases["zero_grad"]) == (0, 0, 0), "nothing is invented"
    assert len(told.detail["step_seconds"]) == 10


@pytest.mark.timed
def test_parameters_of_a_module_updated_by_hand(guest: StartGuest) -> None:
    """A pass that is made by another, as checkpoints make them, is no step."""
    script = guest(MODULE)
    found = script.found()
    assert (found.rung, found.period, found.periodic, found.has_loader) == ("backward", 1, True, False)
    assert found.position == len(script.notes("steps")) + 1
    assert found.has_root_module
    lines = MODULE.splitlines()
    assert found.forward_site is not None
    assert found.backward_site is not None
    assert "# called" in lines[found.forward_site.line - 1]
    assert "loss.backward()" in lines[found.backward_site.line - 1]
    seconds_between(script)
    cast = script.window({"autocast": "bfloat16"})
    assert (cast.status, cast.effect) == ("ok", {"autocast": True})
    loader = script.window({"num_workers": 2})
    assert (loader.status, loader.reason) == ("failed", "this loop takes no batches from a DataLoader")


FUNCTIONAL = """
import time
import torch

torch.set_num_threads(1)
weights = [torch.zeros(4, 1), torch.zeros(1)]


def loss_of(weights, rows):
    made = rows.requires_grad_() @ weights[0] + weights[1]
    (slope,) = torch.autograd.grad(made.sum(), rows, create_graph=True)  # a part of the loss
    return (made - 1).square().mean() + slope.square().mean()


while True:
    time.sleep(0.02)
    known = [weight.detach().requires_grad_() for weight in weights]
    gradients = torch.autograd.grad(loss_of(known, torch.ones(8, 4)), known)
    weights = [weight - 0.01 * gradient for weight, gradient in zip(known, gradients)]
    time.sleep(0.02)
"""


@pytest.mark.slow(together=True)
@pytest.mark.timed
def test_an_update_of_gradients_that_are_returned(guest: StartGuest) -> None:
    script = guest(FUNCTIONAL)
    found = script.found()
    assert (found.rung, found.period, found.has_loader, found.has_root_module) == ("backward", 1, False, False)
    assert found.device == "cpu"
    seconds_between(script)


TWO_LOSSES = """
import time
import torch

torch.set_num_threads(1)
one, other = torch.zeros(4, requires_grad=True), torch.zeros(4, requires_grad=True)


def update(weight):
    with torch.no_grad():
        weight -= 0.01 * weight.grad
        weight.grad = None


while True:
    time.sleep(0.04)
    (one - 1).square().sum().backward()
    update(one)
    (other - one.detach()).square().sum().backward()
    update(other)
"""


@pytest.mark.slow(together=True)
def test_two_updates_by_hand_are_one_period(guest: StartGuest) -> None:
    script = guest(TWO_LOSSES)
    found = script.found()
    assert (found.rung, found.period, found.periodic) == ("backward", 2, True)


@pytest.mark.slow(together=True)
@pytest.mark.timed
def test_a_loop_in_which_nothing_can_be_changed_is_measured_all_the_same(tmp_path: Path) -> None:
    shutil.copy(PROGRAMS / "manual_update.py", tmp_path / "train.py")
    # Kept memory can be switched for any loop, and is only left out where windows were looked at.
    left_out = [word for fix in ("threads", "float32-precision", "allocator") for word in ("--skip", fix)]
    options = ["--budget", "40s", "--no-explain", *left_out]
    command = [sys.executable, "-m", "bottleneck_doctor", "run", *options, "train.py", "4000"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["baseline"]["rung"] == "backward"
    assert report["baseline"]["step_ms"] / 1000 in lasting(0.06, rel=0.3)
    # Float32 products are a matter of the processor.
    assert {fix["status"] for fix in report["fixes"]} == {"not_applicable"}
    assert "few-processes" not in [each["slug"] for each in report["warnings"]], "more time would bring nothing"


WARMING_UP = (
    PRELUDE
    + """
kind = sys.argv[1]
loader = DataLoader(Rows(4000), batch_size=4)
if kind == "no optimizer yet":
    del optimizer
for _ in range(25):
    model(torch.ones(4, 4)).mean().backward()
    time.sleep(0.2)
    note("passes", 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
if kind == "optimizer":
    rows = torch.ones(4, 4)
    while True:
        train_on([rows])
for batch in loader:
    train_on(batch)
"""
)


@pytest.mark.parametrize(
    "kind",
    [
        "optimizer",
        pytest.param("loader", marks=pytest.mark.slow(together=True)),
        pytest.param("no optimizer yet", marks=pytest.mark.slow(together=True)),
    ],
)
def test_passes_before_training_are_no_training(guest: StartGuest, kind: str) -> None:
    """As of a warm-up, or of gradients of many passes that are added up."""
    script = guest(WARMING_UP, kind)
    found = script.found()
    assert len(script.notes("passes")) == 25
    assert (found.rung, found.has_loader) == ("optimizer step", kind != "optimizer")
    assert found.has_root_module


ADVERSARIAL = (
    PRELUDE
    + """
for batch in DataLoader(Rows(400), batch_size=4):
    rows = batch[0]
    for _ in range(30):
        rows = rows.detach().requires_grad_()
        (slope,) = torch.autograd.grad(model(rows).mean(), rows)
        rows = rows + 0.01 * slope.sign()
        time.sleep(0.005)
    train_on([rows])
"""
)


def test_examples_that_are_made_by_gradients_are_a_part_of_their_step(guest: StartGuest) -> None:
    found = guest(ADVERSARIAL).found()
    assert (found.rung, found.period, found.has_loader) == ("optimizer step", 1, True)


EVALUATING = (
    PRELUDE
    + """
with torch.no_grad():
    for rows, _ in DataLoader(Rows(40), batch_size=4):
        model(rows)
note("evaluated", 1)
time.sleep(60)
"""
)


def test_what_was_seen_is_known_of_a_script_that_is_ended(guest: StartGuest, tmp_path: Path) -> None:
    script = guest(EVALUATING)
    assert wait_until(lambda: script.notes("evaluated"), 30)
    assert script.event(0.1) is None
    script.close()
    assert script.session.seen == Counts(evaluated=10)
    script = guest("import time\nprint('here')\ntime.sleep(60)\n")
    assert wait_until(lambda: "here" in script.session.tail(), 30)
    script.close()
    assert script.session.seen is None, "torch was never imported"


def test_a_script_that_evaluates_says_so_at_its_end(guest: StartGuest) -> None:
    script = guest(EVALUATING.replace("time.sleep(60)", ""))
    assert script.exited().code == 0
    assert script.ended == messages.Ended(batches=0, optimizer_steps=0, backwards=0, served=False, evaluated=10)


ROLLOUTS = (
    PRELUDE
    + """
rows = torch.ones(4, 4)
while True:
    for _ in range(20):
        with torch.no_grad():
            model(rows)
        time.sleep(0.01)  # the environment's step
    for _ in range(16):
        train_on([rows])
        time.sleep(0.005)
"""
)


@pytest.mark.sleeping
def test_rollouts_between_steps_that_look_alike_are_a_period(guest: StartGuest) -> None:
    """So that every window holds as many steps of the environment as another."""
    script = guest(ROLLOUTS)
    found = script.found()
    assert (found.rung, found.period, found.periodic, found.has_loader) == ("optimizer step", 16, True, False)
    planned = typical_step(found.step_seconds, found.num_workers, found.period)
    whole = (20 * 0.01 + 16 * 0.005) / 16
    assert planned in lasting(whole, rel=0.3)
    for _ in range(2):
        done = script.window(lead_in=2, steps=32)
        assert done.seconds / done.steps in lasting(whole, rel=0.3)


EPISODES = (
    PRELUDE
    + """
import random

luck = random.Random(0)
while True:
    time.sleep(luck.choice([0.001] * 6 + [0.05, 0.08]))
    train_on([torch.ones(4, 4)])
"""
)


@pytest.mark.sleeping
def test_steps_of_all_lengths_have_no_period(guest: StartGuest) -> None:
    found = guest(EPISODES).found()
    assert (found.rung, found.period, found.periodic) == ("optimizer step", 1, False)


BY_CALLS = (
    PRELUDE
    + """
import pickle, random

luck = random.Random(0)
rows = torch.ones(4, 4)
while True:
    taken = []
    for _ in range(luck.randrange(5, 60)):  # an episode, whose length is chance
        taken.append(model(rows).mean())
        time.sleep(0.001)
    optimizer.zero_grad()
    torch.stack(taken).mean().backward()
    optimizer.step()
    saved = pickle.dumps(model)
    assert pickle.loads(saved) is not model and b"doctor" not in saved
"""
)


@pytest.mark.timed
def test_steps_that_take_as_long_as_they_have_calls_are_counted_by_these(guest: StartGuest) -> None:
    script = guest(BY_CALLS)
    found = script.found()
    assert (found.rung, found.period, found.periodic, found.by_calls) == ("optimizer step", 1, True, True)
    expected = Expected.of(found)
    assert expected is not None
    assert Expected.read(expected.told()) == expected
    assert expected.by_calls
    a_call, a_step = [], []
    for _ in range(6):
        done = script.window(steps=3)
        assert (done.status, done.steps) == ("ok", 3)
        assert 15 <= done.samples < 180
        a_call.append(done.seconds / done.samples)
        a_step.append(done.seconds / done.steps)
    assert max(a_call) / min(a_call) < 1.5 < max(a_step) / min(a_step)
    cast = script.window({"autocast": "bfloat16"}, steps=3)
    assert (cast.status, cast.effect) == ("ok", {"autocast": True})
    assert cast.samples >= 15


OF_ALL_SIZES = (
    PRELUDE
    + """
import pickle, random

class Carrying(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(4, 4)

    def forward(self, rows, state):
        return self.inner(rows) + state, state

model = Carrying()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
luck, state = random.Random(0), torch.zeros(4)
while True:
    size = luck.choice([2, 5])
    rows = torch.ones(size, 4)
    optimizer.zero_grad()
    model(rows, state=state)[0].mean().backward()
    optimizer.step()
    with torch.no_grad():
        model(rows, state)
    time.sleep(0.01)
    note("sizes", size)
    saved = pickle.dumps(model)
    assert pickle.loads(saved) is not model and b"doctor" not in saved
"""
)


@pytest.mark.sleeping
def test_what_the_model_is_given_is_measured_where_no_loader_knows_a_batch(guest: StartGuest) -> None:
    script = guest(OF_ALL_SIZES)
    found = script.found()
    assert (found.has_loader, found.by_calls) == (False, False)
    done = script.window(lead_in=2, steps=6)
    assert (done.status, done.steps, done.samples) == ("ok", 6, 6.0)
    # A batch has 8 or 20 elements, and its state, and what is called without gradients, are none of it.
    assert done.elements in {8 * few + 20 * (6 - few) for few in range(7)}
    many = script.window(lead_in=2, steps=300)
    assert (many.status, many.elements) == ("ok", 0), "steps that are so short have no time for it"


EVALUATED_FIRST = (
    PRELUDE
    + """
rows = torch.ones(4, 4)
with torch.no_grad():
    for _ in range(20):
        model(rows)
        time.sleep(0.01)
while True:
    train_on([rows])
    time.sleep(0.01)
    note("steps", 1)
"""
)


@pytest.mark.slow(together=True)
def test_an_evaluation_before_training_is_no_rollout(guest: StartGuest) -> None:
    script = guest(EVALUATED_FIRST)
    found = script.found()
    assert (found.period, found.periodic) == (1, True)
    assert len(script.notes("steps")) < 250, "a rhythm was waited for, but not for long"


EVALUATES = (
    PRELUDE
    + """
rows = torch.ones(4, 4)
model = nn.Sequential(model, nn.Dropout())
steps = 0
while True:
    time.sleep(0.01)
    train_on([rows])
    steps += 1
    if steps % 40 == 0:
        model.eval()
        for _ in range(3):
            with torch.no_grad():
                model(rows)
            time.sleep(0.1)
        model.train()
"""
)


@pytest.mark.sleeping
def test_evaluations_now_and_then_belong_to_no_step(guest: StartGuest) -> None:
    script = guest(EVALUATES)
    found = script.found()
    assert (found.period, found.has_loader) == (1, False)
    for mode in ("timed", "phases"):
        done = script.window(mode=mode, lead_in=2, steps=100)  # Two evaluations at least.
        assert done.status == "ok", done.reason
        assert done.steps == 100
        assert done.seconds / done.steps in lasting(0.0105, rel=0.2)
    within = phases.interruption([done.pauses])
    assert within is not None
    assert within.by_mode
    assert within.every == pytest.approx(40)
    assert within.seconds in lasting(0.3, abs=0.06)
    assert (within.passes >= 4, within.with_graph) == (True, 0)
    shares = phases.phases([done.detail])
    assert shares is not None
    assert shares.between > 0.85


@pytest.mark.sleeping
@pytest.mark.parametrize("under", ["no_grad", "enable_grad"])
def test_an_evaluation_in_each_step_is_a_known_part_of_it(guest: StartGuest, under: str) -> None:
    each = EVALUATES.replace("% 40", "% 1").replace("range(3)", "range(1)").replace("0.1", "0.03")
    script = guest(each.replace("no_grad", under))
    script.found()
    done = script.window(mode="phases", lead_in=2, steps=40)
    assert done.seconds / done.steps in lasting(0.0405, rel=0.2)
    times = phases.step_times([done.detail], None)
    assert times is not None
    assert times.evaluations in (39, 40)
    assert times.evaluation_share in lasting(0.03 / 0.0405, abs=0.08)
    assert (times.passes, times.with_graph) == (4, 4 if under == "enable_grad" else 0)
    assert phases.interruption([done.pauses]) is None
    timed = script.window({}, lead_in=2, steps=20)
    assert (timed.status, timed.steps) == ("ok", 20)


@pytest.mark.sleeping
def test_a_test_now_and_then_within_a_step_that_evaluates_belongs_to_none(guest: StartGuest) -> None:
    """As in a program that acts in each step, in evaluation mode, and tests what it has learnt."""
    acts = EVALUATES.replace("if steps % 40 == 0", "if True").replace("range(3)", "range(1)")
    script = guest(acts.replace("time.sleep(0.1)", "time.sleep(0.005 if steps % 40 else 0.5)"))
    script.found()
    for mode in ("timed", "phases"):
        done = script.window(mode=mode, lead_in=20, steps=100)  # Two tests at least.
        assert (done.status, done.steps) == ("ok", 100)
        assert done.seconds / done.steps in lasting(0.016, rel=0.2)
    within = phases.interruption([done.pauses])
    assert within is not None
    assert within.by_mode
    assert within.every == pytest.approx(40)
    assert within.seconds in lasting(0.5, abs=0.1)
    times = phases.step_times([done.detail], None)
    assert times is not None
    assert times.evaluations in (97, 98)
    assert times.evaluation_share in lasting(0.005 / 0.016, abs=0.08)
    assert done.detail["seconds"] == pytest.approx(done.seconds, rel=0.1)


@pytest.mark.sleeping
def test_a_model_that_trains_in_evaluation_mode_is_timed_as_any(guest: StartGuest) -> None:
    script = guest(EVALUATES.replace("        model.train()\n", ""))
    script.found()
    for mode in ("timed", "phases"):
        done = script.window(mode=mode, lead_in=2, steps=80)
        assert (done.status, done.steps) == ("ok", 80)
        # What it evaluates is a part of its steps then.
        assert done.seconds / done.steps in lasting(0.0105 + 0.3 / 40, rel=0.4)
    assert phases.interruption([done.pauses]) is None
